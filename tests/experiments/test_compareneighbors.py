"""Comparison without labels."""

from dataclasses import replace
from types import SimpleNamespace

import faiss
import numpy as np
import pytest

import auxhash
from auxhash.codes import pack, sign
from auxhash.compute import deadline
from auxhash.compute.neighbors import nearest, normalized
from auxhash.experiments import coders, compareneighbors, datasets
from auxhash.experiments.neighborpage import write_page
from auxhash.learn import baselines
from auxhash.learn.hasher import Hasher
from auxhash.mac.hashfunctions.rotation import quantize
from auxhash.search import metrics

rng = np.random.default_rng(0)
X = (rng.normal(size=(600, 16)) @ rng.normal(size=(16, 16))).astype(np.float32)
QUICK = {"verbose": 0, "n_jobs": 1}


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch):
    monkeypatch.setattr(coders, "OPQ_ITERATIONS", 2)


def test_rows_are_those_of_the_method():
    comparison = auxhash.compare(X, "ITQ", n_bytes=2, **QUICK)
    search = comparison.search
    base, queries = (normalized(X[rows]) for rows in (search.base_rows, search.query_rows))
    assert (len(base), len(queries)) == (540, 60)
    assert not np.isin(search.query_rows, search.base_rows).any()
    near = nearest(base, queries, 10)[0]
    itq = baselines.ITQ(n_bits=16, random_state=0).fit(base.astype(np.float32))
    codes = itq.encode(queries.astype(np.float32)), itq.encode(base.astype(np.float32))
    [by_hamming] = [row for row in comparison.rows if row["distance"] == "Hamming"]
    for k, name in ((10, "10@10"), (100, "10@100")):
        assert by_hamming[name] == pytest.approx(metrics.recall_at_k(*codes, neighbors=near, k=k))
    share = metrics.recall_at_k(*codes, neighbors=near[:, :1], k=10)
    assert by_hamming["R@10"] == pytest.approx(share)
    assert np.isnan(by_hamming["10@1000"])
    assert by_hamming["code bytes"] == 2 * 600
    shown = comparison.first["ITQ", "Hamming", 2]
    index = auxhash.HammingIndex(16).add(codes[1])
    np.testing.assert_array_equal(shown, index.search(codes[0][:10], 10)[1])


def test_all_kinds_of_methods():
    methods = ["signs", "LSH", "PQ", "OPQ", "RaBitQ"]
    comparison = auxhash.compare(X, methods, n_bytes=(4, 10), metric="euclidean", **QUICK)
    keys = {(row["method"], row["distance"], row["bytes"]) for row in comparison.rows}
    both = {("LSH", by, n) for by in ("Hamming", "outputs") for n in (4, 10)}
    own = {("PQ", "own", 4), ("PQ", "own", 10), ("OPQ", "own", 4), ("OPQ", "own", 10)}
    signs = {("signs", "Hamming", 2), ("signs", "outputs", 2)}
    assert keys == both | own | signs | {("RaBitQ", "own", 10), ("vectors", "euclidean", 64)}
    assert comparison.protocol["left out"] == "RaBitQ (4 bytes): its factors alone take 8 bytes"
    order = [(row["bytes"], -row["10@10"]) for row in comparison.rows]
    assert order == sorted(order)
    best = {row["bytes"]: row["10@10"] for row in comparison.rows if row["best"]}
    assert set(best) == {2, 4, 10}
    assert all(row["10@10"] <= best.get(row["bytes"], 1) for row in comparison.rows)
    exact = comparison.rows[-1]
    assert exact["10@10"] == exact["R@1"] == 1
    text = str(comparison)
    assert "600 points of 16 features; 540 are searched for 60 queries" in text
    assert "standard error" in text


def test_the_bytes_of_models_are_counted(tmp_path):
    class Unsaved(Hasher):
        """A hasher of the user's own, which no file holds."""

        def __init__(self, n_bits=32):
            self.n_bits = n_bits

        def fit(self, X, y=None):
            return self

        def decision_function(self, X):
            return np.resize(X, (len(X), self.n_bits))

        def encode(self, X):
            return pack(sign(self.decision_function(X)))

    methods = {name: name for name in ("signs", "LSH", "PQ", "OPQ", "RaBitQ")} | {"own": Unsaved()}
    comparison = auxhash.compare(X, methods, n_bytes=10, metric="euclidean", **QUICK)
    model = {row["method"]: row["model bytes"] for row in comparison.rows}
    baselines.LSH(n_bits=80, random_state=0).fit(X).model_.save(tmp_path / "model")
    centroids, rotation = 256 * 20 * 4, 20 * 20 * 4  # of 16 features, filled up to 20
    assert (model["signs"], model["PQ"], model["OPQ"]) == (0, centroids, centroids + rotation)
    assert model["LSH"] == pytest.approx((tmp_path / "model").stat().st_size, rel=0.1)
    assert model["RaBitQ"] > 16 * 16 * 4
    assert np.isnan(model["own"])
    columns, rows = comparison.texts()
    shown = {row[columns.index("method")]: row[columns.index("model")] for row in rows}
    assert (shown["PQ"], shown["own"]) == ("20.5 kB", "-")
    few = comparison.protocol["few points"]
    assert few.startswith("PQ and OPQ: the 256 centroids per byte are learnt from the 540 points")
    assert few in comparison.summary()
    assert "few points" not in auxhash.compare(X, "LSH", n_bytes=2, **QUICK).protocol


def test_product_quantisation_ranks_as_faiss_does():
    coder = coders.PQ(4)
    coder.fit(X)
    codes = coder.encode(X)
    [ranking] = coder.rankings(X[:20], codes)
    decoded = coder.quantizer.decode(codes)
    distances = np.square(X[:20, None] - decoded[None]).sum(axis=2)
    near = nearest(X, X[:20], 10)[0]
    own = np.take_along_axis(distances, near, axis=1)
    # Within rounding: points of the same code tie exactly, but only in the ranking.
    nearer = (distances[:, None] < own[:, :, None] * (1 - 1e-5)).sum(axis=2)
    result = ranking.ranks(near)
    assert (nearer <= result.above).all()
    below = (distances[:, None] < own[:, :, None] * (1 + 1e-5)).sum(axis=2)
    assert (result.above + result.tied <= below + 1e-9).all()


@pytest.mark.parametrize("kind", [coders.RQ, coders.LSQ])
def test_additive_quantisers_rank_by_what_their_codes_decode_to(kind, capfd):
    coder = kind(2)
    coder.fit(X)
    codes = coder.encode(X)
    assert codes.shape == (600, 2)
    [ranking] = coder.rankings(X[:20], codes)
    decoded = coder.index.sa_decode(codes)
    assert np.square(X - decoded).sum() < 0.5 * np.square(X - X.mean(axis=0)).sum()
    distances = np.square(X[:20, None] - decoded[None]).sum(axis=2)
    hits = ranking.search(20, 50)
    rising = np.sort(distances, axis=1)[:, :50]
    result = np.take_along_axis(distances, hits, axis=1)
    np.testing.assert_allclose(result, rising, rtol=1e-4, atol=1e-3)
    near = nearest(X, X[:20], 10)[0]
    place = (hits[:, None] == near[:, :, None]).argmax(axis=2)
    seen = (hits[:, None] == near[:, :, None]).any(axis=2)
    np.testing.assert_array_equal(ranking.ranks(near).above[seen], place[seen])
    assert capfd.readouterr() == ("", "")  # faiss prints a warning of few points


def test_optimised_product_quantisation_is_faiss_s_own(monkeypatch):
    monkeypatch.setattr(coders, "OPQ_ITERATIONS", 4)
    coder = coders.OPQ(4)
    coder.fit(X)
    at_once = faiss.OPQMatrix(16, 4)
    at_once.pq = inner = coder._quantizer(16)
    at_once.niter = 4
    at_once.train(X)
    del inner
    np.testing.assert_allclose(coder.rotation.apply(X), at_once.apply(X), rtol=1e-4, atol=1e-4)


NOW = {"later": 0}  # seconds that seem to have passed


class Slow(baselines.LSH):
    """A method that takes longer than any limit."""

    def fit(self, X, y=None):
        NOW["later"] = 1e6
        deadline.check()
        pytest.fail("the limit is past")


class Stopped(baselines.LSH):
    """A method that Ctrl-C stops: what it learnt until then can be asked for."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.interrupted_ = True
        return self


def test_a_limit_is_kept(monkeypatch):
    monotonic = deadline.time.monotonic
    clock = SimpleNamespace(monotonic=lambda: monotonic() + NOW["later"])
    monkeypatch.setattr(deadline, "time", clock)
    monkeypatch.setitem(NOW, "later", 0)
    methods = {"LSH": "LSH", "slow": Slow(), "PQ": "PQ"}
    comparison = auxhash.compare(X, methods, n_bytes=(2, 4), seconds=1e5, **QUICK)
    assert {row["method"] for row in comparison.rows} == {"LSH", "vectors"}
    late = "slow (2, 4 bytes), PQ (2, 4 bytes): not done within 100000 s"
    assert comparison.protocol["left out"] == late
    NOW["later"] = 0
    with pytest.raises(
        ValueError, match=r"no method could be measured: slow \(2 bytes\): not done"
    ):
        auxhash.compare(X, {"slow": Slow()}, n_bytes=2, seconds=1e5, **QUICK)


@pytest.mark.parametrize("coder", [coders.PQ(2), coders.OPQ(2)])
def test_learning_looks_at_the_limit(coder):
    with deadline.within(-1), pytest.raises(deadline.DeadlineError):
        coder.fit(X)


def test_itq_looks_at_the_limit():
    with deadline.within(-1), pytest.raises(deadline.DeadlineError):
        quantize(X.astype(float), np.eye(16), 1)


def test_nothing_of_an_interrupted_run_is_kept(tmp_path):
    methods = {"LSH": "LSH", "stopped": Stopped()}
    with pytest.raises(KeyboardInterrupt):
        auxhash.compare(X, methods, n_bytes=2, folder=tmp_path, **QUICK)
    assert len(list(tmp_path.glob("*.npz"))) == 1  # LSH was done
    data = datasets.from_arrays(X, y=np.arange(600) % 3)
    with pytest.raises(KeyboardInterrupt):
        auxhash.compare(data, {"stopped": Stopped()}, 8, 0, folder=tmp_path / "labels", **QUICK)
    assert not list((tmp_path / "labels").glob("*.npz"))


def test_runs_are_kept(tmp_path):
    methods = ["LSH", "PQ"]
    first, second = (
        auxhash.compare(X, methods, n_bytes=2, folder=tmp_path, **QUICK) for _ in range(2)
    )
    assert first.rows[:-1] == second.rows[:-1]  # the times included
    other = auxhash.compare(X, "LSH", n_bytes=2, seeds=1, folder=tmp_path, **QUICK)
    assert len(list(tmp_path.glob("*.npz"))) == 3
    assert other.rows[0]["10@10"] != first.rows[0]["10@10"]


def test_labels_decide():
    y = np.arange(600) % 3
    data = datasets.from_arrays(X, y=y)
    few = {"n_similar": 5, "n_dissimilar": 5, "k": 5}
    assert "mAP" in auxhash.compare(X, "LSH", 8, y=y, **few, **QUICK).rows[0]
    assert "mAP" in auxhash.compare(data, "LSH", 8, **few, **QUICK).rows[0]
    assert "10@10" in auxhash.compare(data, "LSH", n_bytes=1, **QUICK).rows[0]
    assert "10@10" in auxhash.compare(X, "LSH", n_bytes=1, **QUICK).rows[0]
    named = datasets.Dataset("own", data.train, datasets.Points(X), datasets.Points(X[:50]), "")
    comparison = auxhash.compare(named, "LSH", n_bytes=1, **QUICK)
    assert "600 are searched for 50 queries (of 50 given)" in comparison.protocol["data"]


def test_samples_are_said(monkeypatch):
    monkeypatch.setattr(compareneighbors, "MAX_QUERIES", 20)
    comparison = auxhash.compare(
        X, "LSH", n_bytes=1, n_base=300, n_train=100, queries=X[:40], **QUICK
    )
    said = comparison.protocol["data"]
    assert "300 are searched for 20 queries (of 40 given); methods learn from 100 of them" in said
    assert comparison.protocol["not all"] == (
        "recall depends on how many points are searched: among 600 it differs"
    )
    assert comparison.rows[0]["code bytes"] == 600
    full = auxhash.compare(X, "LSH", n_bytes=1, **QUICK)
    assert "not all" not in full.protocol


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": X[:2]}, "X must hold at least 20 points"),
        ({"queries": X[:, :3]}, "queries have 3 features, and X has 16"),
        ({"dataset": np.where(X == X[7, 2], np.nan, X)}, "X must hold finite numbers; row 7 does"),
        ({"metric": "hamming"}, "metric must be one of euclidean, cosine; got 'hamming'"),
        ({"methods": ["IQT"]}, "method must be one of .* did you mean 'ITQ'"),
        ({"methods": ["signs", "signs"]}, "methods must be named once each"),
        ({"methods": []}, "methods must hold at least one name or hasher, got none"),
        ({"methods": 5}, "methods must be names or hashers, got 5"),
        ({"n_bytes": 0}, "n_bytes must be a whole number from 1 to 4095, got 0"),
        ({"n_bytes": (4, 4)}, "n_bytes must be given once each, got 4 twice"),
        ({"seconds": 0}, "seconds must be a number above 0, got 0"),
        ({"bits": 8}, "bits is for labels, and neighbours are compared"),
        ({"loss": "hinge"}, "loss is for labels"),
        ({"seeds": (0, 1)}, "seeds must be one where neighbours are compared"),
    ],
)
def test_wrong_arguments(monkeypatch, changes, message):
    monkeypatch.setattr(baselines.LSH, "fit", lambda *args: pytest.fail("it was trained"))
    with pytest.raises(ValueError, match=message):
        auxhash.compare(**{"dataset": X, "methods": ["LSH"], **QUICK, **changes})


def test_a_method_that_fails_does_not_stop_the_others():
    class Broken(Hasher):
        def __init__(self, n_bits=8):
            self.n_bits = n_bits

        def fit(self, X, y=None):
            raise RuntimeError("no luck")

    comparison = auxhash.compare(X, [Broken(), "LSH"], n_bytes=2, **QUICK)
    assert comparison.protocol["left out"] == "Broken (2 bytes): RuntimeError: no luck"
    assert comparison.rows[0]["method"] == "LSH"


def test_without_faiss(monkeypatch):
    def missing():
        raise ImportError("this needs faiss")

    monkeypatch.setattr(coders, "import_faiss", missing)
    comparison = auxhash.compare(X, ["LSH", "PQ", "RaBitQ"], n_bytes=(2, 10), **QUICK)
    left_out = "PQ (2, 10 bytes), RaBitQ (10 bytes): this needs faiss"
    assert left_out in comparison.protocol["left out"]


def test_distances_of_a_method_are_told_apart_by_their_dashes(tmp_path, briefly_refined):
    result = auxhash.compare(X, ["LSH", "ITQ"], n_bytes=(1, 2), **QUICK)
    learnt = [row | {"distance": "tables"} for row in result.rows if row["distance"] == "outputs"]
    both = replace(result, rows=[*result.rows, *learnt])
    for plot in both.plots():
        looks = {series.style for series in plot.series}
        assert len(looks) == len(plot.series) == 6
        assert len({look.colour for look in looks}) == 2
        keyed = [series for series in plot.series if series.keyed]
        assert {series.label for series in keyed} == {"LSH", "ITQ"}
        assert not any(series.style.dashes for series in keyed)
    for comparison, has_tables in ((result, False), (both, True)):
        write_page(comparison, tmp_path / "page.html", "command")
        text = (tmp_path / "page.html").read_text("utf-8")
        assert ("by learnt tables" in text) == has_tables
        assert "at one size: the largest of at most 16 bytes, or its smallest" in text


def test_curves_of_one_method_are_told_apart():
    row = {"method": "LSH", "bytes": 4, "10@10": 0.5}
    by = ("outputs", "Hamming", "tables")
    exact = {**row, "method": "vectors", "distance": "cosine"}
    drawn = compareneighbors.curves([*({**row, "distance": each} for each in by), exact], "10@10")
    assert [curve.label for curve in drawn] == ["LSH", "LSH, Hamming", "LSH, tables"]
    assert len({curve.style for curve in drawn}) == 3
    assert [curve.keyed for curve in drawn] == [True, False, False]
