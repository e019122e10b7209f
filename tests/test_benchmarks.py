"""Every benchmark runs, at a small size."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import auxhash
from auxhash.compute.neighbors import nearest
from auxhash.experiments.cells import Cells
from auxhash.experiments.datasets.dataset import Dataset, Points, ground_truth
from auxhash.experiments.scales import TINY
from auxhash.learn import baselines, querytables
from auxhash.learn.smooth import tables
from auxhash.learn.training import asking
from auxhash.search.index import rerank
from auxhash.search.metrics.ranks import by_positions
from benchmarks import __main__ as benchmarks
from benchmarks import (
    bits,
    core,
    deep,
    figures,
    metrics,
    neighbors,
    networks,
    peers,
    quantizers,
    queries,
    querydata,
    recall,
    scale,
    setting,
    unseen,
)
from benchmarks.records import read
from tests.conftest import SOAK


@pytest.mark.parametrize("name", benchmarks.NAMES)
def test_it_runs(name, capsys, monkeypatch):
    if name == "deep":
        pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
    if name == "speed" and not SOAK:  # the rows of others, which run under their own names
        for other in (core, metrics):
            monkeypatch.setattr(other, "rows", lambda *size: iter(()))
    benchmarks.main([name, "--small"])
    assert "ratio" in capsys.readouterr().out


def test_unknown_name():
    with pytest.raises(SystemExit, match="no benchmark 'nothing'"):
        benchmarks.main(["nothing"])


def test_only_some_have_options():
    with pytest.raises(SystemExit, match="--bits is no option of these"):
        benchmarks.main(["core", "--bits", "8"])


@pytest.mark.parametrize(("share", "first"), [(0.25, 8), (0.5, 16), (0.75, 24), (0.1, 8)])
def test_codes_side_by_side_are_whole_bytes_of_both(share, first):
    X, y = peers.decaying(120, 40, 0)
    both = unseen.SideBySide(baselines.CCAITQ(), baselines.PCARR(), share, random_state=3)
    codes = both.fit(X, y).encode(X)
    own = baselines.CCAITQ(n_bits=first, random_state=3).fit(X, y).encode(X)
    others = baselines.PCARR(n_bits=32 - first, random_state=3).fit(X).encode(X)
    assert np.array_equal(codes, np.hstack([own, others]))


@pytest.fixture
def made():
    """Sixty points, twelve of them queries, in eight features."""
    X = np.random.default_rng(0).normal(size=(60, 8)).astype("f4")
    base, query = X[:48], X[48:]
    near = Points(query, neighbors=ground_truth(base, query, 10))
    return Dataset("made", Points(base), Points(base), near, "made")


def test_outputs_rank_as_the_index_re_ranks(made):
    hasher = baselines.LSH(n_bits=64, random_state=0).fit(made.train.X)
    base, near = hasher.encode(made.base.X), made.query.neighbors

    class Coded:
        n_bits = 64

        def codes(self, ids):
            return base[ids]

    everything = np.tile(np.arange(48), (12, 1))
    ids = rerank.by_outputs(everything, hasher.decision_function(made.query.X), Coded())[1]
    assert len(np.unique(base, axis=0)) == 48  # no ties
    result = recall.by_outputs(hasher, made.query.X, base, near, (1, 10, 48))
    np.testing.assert_allclose(result, recall.at(by_positions(ids, near), (1, 10, 48)))


def test_few_points_take_parts_of_few_bits(made):
    ranks = (1, 10, 20, 48)
    measured = quantizers.product(made, 12, ranks, 0, part_bits=3)
    assert measured.bytes == 2
    assert (np.diff(measured.shares) >= 0).all()
    assert measured.shares[-1] == 1


def test_quantisers_of_whole_bytes_are_those_of_compare():
    X = peers.decaying(700, 24, 0)[0].astype("f4")
    base, query = Points(X[:600]), Points(X[600:], neighbors=nearest(X[:600], X[600:], 10)[0])
    data = Dataset("made", base, base, query, "made")
    options = {"n_bytes": 9, "metric": "euclidean", "n_train": 600, "verbose": 0}
    rows = auxhash.compare(data, ["PQ", "RaBitQ"], **options).rows
    own = {row["method"]: row["10@100"] for row in rows}
    for quantizer, method in ((quantizers.product, "PQ"), (quantizers.rabitq, "RaBitQ")):
        measured = quantizer(data, 72, (100,), 0)
        assert measured.shares[0] == pytest.approx(own[method])
        assert measured.bytes == 9


def test_bits_go_on_where_they_were_stopped(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bits, "_load", lambda name, seed: made)
    monkeypatch.setattr("benchmarks.records.TABLES", tmp_path)
    results = tmp_path / "made.jsonl"
    options = ["bits", "--data", "siftsmall", "--results", str(results)]
    options += ["--methods", "signs", "LSH", "RaBitQ", "--bytes"]
    benchmarks.main([*options, "1"])
    text = results.read_text()
    assert [(one["method"], one["bytes"]) for one in read(results)] == [("signs", 1), ("LSH", 1)]
    assert "RaBitQ (1 bytes): its factors alone take 8 bytes" in capsys.readouterr().out
    results.write_text(text[:-20])  # stopped while it wrote
    benchmarks.main([*options, "1", "2"])
    records = read(results)
    keys = [("signs", 1), ("LSH", 1), ("LSH", 2)]
    assert [(one["method"], one["bytes"]) for one in records] == keys
    assert json.loads(text.splitlines()[0]) == records[0]
    compared = auxhash.compare(made, "LSH", n_bytes=2, verbose=0)
    own = {row["distance"]: row["10@10"] for row in compared.rows if row["method"] == "LSH"}
    assert {by: one["10@10"] for by, one in records[2]["by"].items()} == pytest.approx(
        own, abs=1e-4
    )
    assert records[2]["code bytes"] == 2 * 48
    benchmarks.main([*options, "1", "--tables"])
    assert "| 2 | LSH | Hamming |" in (tmp_path / "bits-cost.md").read_text()


def test_bits_are_means_over_seeds(made, tmp_path, monkeypatch):
    monkeypatch.setattr(bits, "_load", lambda name, seed: made)
    results = tmp_path / "made.jsonl"
    options = ["--data", "siftsmall", "--results", str(results), "--methods", "LSH", "--bytes", "1"]
    benchmarks.main(["bits", *options, "--seeds", "0", "3"])
    records = read(results)
    assert [record["seed"] for record in records] == [0, 3]
    [mean] = bits.means(records)
    own = [record["by"]["Hamming"] for record in records]
    assert mean["by"]["Hamming"]["seeds"] == 2
    assert own[0]["10@10"] != own[1]["10@10"]
    assert mean["by"]["Hamming"]["10@10"] == pytest.approx(sum(one["10@10"] for one in own) / 2)
    error = (own[0]["error"] ** 2 + own[1]["error"] ** 2) ** 0.5 / 2  # of independent queries
    assert mean["by"]["Hamming"]["error"] == pytest.approx(error)
    [row] = [line for line in bits.tables(records).splitlines() if "| Hamming |" in line]
    assert row.endswith(" 2 |")
    tables = {**records[1], "by": {**records[1]["by"], "tables": own[1]}}  # kept by one training
    [mean] = bits.means([records[0], tables])
    assert mean["by"]["tables"] == {**own[1], "seeds": 1}
    assert mean["by"]["Hamming"]["seeds"] == 2


def test_bits_at_equal_bytes_stand_side_by_side():
    def record(method, n_bytes, **by):
        figures = {
            name: {"10@10": value, "10@100": 2 * value, "error": 0.01} for name, value in by.items()
        }
        facts = dict.fromkeys(("train", "base"), 48) | dict.fromkeys(bits.OF_METHOD, 1.0)
        about = {"data": "made", "seed": 0, "method": method, "bytes": n_bytes}
        return {**about, **facts, "by": figures}

    ours = record(bits.OURS, 4, Hamming=0.1, outputs=0.2, tables=0.3)
    table = bits.equal([record("OPQ", 4, own=0.25), ours, record("OPQ", 8, own=0.4)])
    row = "| 4 | made | .100 / .200 | .200 / .400 | .300 / .600 |  | .250 / .500 |  |  |"
    assert table.splitlines()[2:] == [row]
    table = bits.ahead([record("OPQ", 4, own=0.25), record("LSQ", 4, own=0.31), ours])
    assert table.splitlines()[2:] == ["| 4 | made |  | +.050 / +.100 |  | -.010 / -.020 |"]
    here = {**record(bits.OURS, 4, tables=0.9), "device": "cpu", "quality": "default"}
    assert bits.equal([record("OPQ", 4, own=0.25), here, ours, here]) == bits.equal(
        [record("OPQ", 4, own=0.25), ours]
    )
    assert [one["device"] for one in bits.means([here, ours])] == ["cpu", "cuda"]
    again = {**record(bits.OURS, 4, Hamming=0.2, outputs=0.2), "seed": 1}
    row = bits.equal([ours, again]).splitlines()[2]
    assert row == "| 4 | made | .150 / .300 (2) | .200 / .400 (2) | .300 / .600 |  |  |  |  |"
    before = {key: ours[key] for key in bits.WITHOUT_TABLES}
    without = [
        {**before, "hamming": {"10": 0.11, "100": recall}, "seed": seed}
        for seed, recall in enumerate((0.1, 0.2))
    ]
    table = bits.hamming([here, ours], [*without, {**without[0], "train": 24}])
    row = "| 4 | made | .100 / .200 | .110 / .150 | -.010 / +.050 | 1, 2 |"
    assert table.splitlines()[2:] == [row]


def test_what_has_learnt_from_a_part_of_the_points_stands_apart():
    def record(method=bits.OURS, train=48, base=48, seed=0, device="cuda", **by):
        shares = {name: {"10@10": r, "10@100": 2 * r, "error": 0.01} for name, r in by.items()}
        figures = {
            name: {**dict.fromkeys(bits.MEASURES, 0.5), **one} for name, one in shares.items()
        }
        about = {"data": "made", "train": train, "base": base, "seed": seed, "method": method}
        quality = {"cuda": "best", "cpu": "default"}[device] if method == bits.OURS else None
        about |= {"bytes": 4, "device": device, "quality": quality, "points": 50, "queries": 2}
        return {**about, "metric": "cosine", **dict.fromkeys(bits.OF_METHOD, 1.0), "by": figures}

    theirs = record("OPQ", device="cpu", own=0.2)
    complete = [record(tables=0.25), theirs]
    apart = [
        record(train=24, tables=0.125),
        record(train=24, seed=1, tables=0.2),  # no seed 1 of all points
        record(train=24, device="cpu", tables=0.1),  # none of all by this quality
        record(train=24, base=40, tables=0.1),
    ]
    smaller = record(train=40, base=40, tables=0.05)
    every = [*apart, smaller, *complete]
    assert bits.equal(every) == bits.equal(complete)
    assert bits.ahead(every) == bits.ahead(complete)
    assert bits.pages(every, [])["bits-cost.md"] == bits.pages(complete, [])["bits-cost.md"]
    assert "| cuda, best |" in bits.tables(complete)
    assert bits.tables([*complete, smaller]).count("**made**") == 2
    here = f"| made | 24 of 48 | 4 | {bits.OURS}"
    assert bits.unseen(every).splitlines()[2:] == [
        f"| made | 24 of 40 | 4 | {bits.OURS} | cuda, best | tables | .100 / .200 | .050 / .100 "
        "| +.050 / +.100 |",
        f"{here} | cpu, default | tables | .100 / .200 |  |  |",
        f"{here} | cuda, best | tables | .125 / .250 | .250 / .500 | -.125 / -.250 |",
    ]


def test_trainings_of_two_devices_are_not_mixed(made, tmp_path, monkeypatch):
    """Records that state no device are of the one that their page names."""
    monkeypatch.setattr(bits, "_load", lambda name, seed: made)
    asked = []
    monkeypatch.setattr(bits, "_measured", lambda data, job: asked.append(job) or {"by": {}})
    results = tmp_path / "made.jsonl"
    before = {"data": "made", "train": 48, "base": 48, "seed": 0, "method": bits.OURS, "bytes": 4}
    results.write_text(
        "".join(f"{json.dumps({**before, 'method': m})}\n" for m in ("ITQ", bits.OURS))
    )
    options = ["bits", "--data", "siftsmall", "--results", str(results), "--bytes", "4"]
    for device in ("cuda", "cpu", "cpu"):
        benchmarks.main([*options, "--methods", "ITQ", bits.OURS, "--device", device])
    assert asked == [{**before, "device": "cpu", "quality": "default"}]
    first = {"codes": "NeighborHash"}
    assert queries._complete(first) == {**first, "device": "cpu", "quality": "default"}
    assert queries._complete({"codes": "ITQ", "device": "cuda"})["quality"] is None
    on_gpu = queries._complete({**dict.fromkeys(queries.KEY), **first, "device": "cuda"})
    assert on_gpu["device"] == "cuda"


@pytest.fixture
def titles():
    """120 points, 20 more that are not searched, and 80 queries."""
    X = np.random.default_rng(0).normal(size=(140, 6)).astype(np.float32)
    Q = X[:80] + np.float32(0.1)
    return querydata.Asked(X[:120], X[:120], Q, np.arange(80), outside=X[120:])


BRIEF = {"bits": 8, "seed": 0, "steps": 4, "asker_steps": 4, "codes": "NeighborHash"}
BRIEF |= {"asker": "linear", "device": "cpu", "data": "titles", "base": 120, "common": None}


def test_relevance_is_learnt_from_by_codes_and_tables(titles, keeps_tables):
    """Its price is shown: the neighbours of points that are not searched."""
    [record] = queries._relevance(titles, [{**BRIEF, "study": "relevance"}])
    ways = [f"codes of documents{pairs}" for pairs in ("", " and pairs")]
    ways = [f"{codes}: {by}" for codes in ways for by in ("Hamming", "outputs", "tables")]
    assert list(record["neighbors"]) == ways
    assert {*record["found"]} == {*ways, "vectors", "codes of documents: tables from pairs"}
    shown = queries.tables([record])["queries-relevance.md"]
    share = f"{record['neighbors'][ways[-1]]:.3f}".lstrip("0")
    assert f"| 8 | {ways[-1]} |" in shown
    assert shown.endswith(f"| {share} | 1 |\n")
    [alone] = queries._relevance(titles._replace(outside=None), [{**BRIEF, "study": "relevance"}])
    assert alone == {**record, "neighbors": {}, "cpu_s": alone["cpu_s"]}
    with pytest.raises(SystemExit):
        benchmarks.main(["queries", "--study", "relevance", "--codes", "ITQ"])


def test_one_part_of_the_training_is_undone_at_a_time(titles, monkeypatch):
    learn, trained = queries._asker, []

    def noted(*arguments):
        weighted = querytables._weighted(np.ones((2, 1)), np.array([[2.0], [-2]])).ravel().tolist()
        last = querytables.AskerTraining is queries.LastKept
        trained.append((asking.RATE, tables.RIVAL_SHARE, weighted == [1, 1], last))
        return learn(*arguments)

    monkeypatch.setattr(queries, "_asker", noted)
    [record] = queries._first(titles, [{**BRIEF, "study": "first"}])
    now, every = (0.001, 0.5, False, False), (0.005, 0.0, True, True)
    one = [(*now[:i], every[i], *now[i + 1 :]) for i in range(4)]
    started = [now, one[0], one[1], one[3], (0.005, 0.0, False, True)]
    assert trained == [now, *one, every, *started]
    assert len(record["found"]) == 2 + len(trained)


def test_the_last_parameters_are_kept_in_place_of_the_best(titles, monkeypatch):
    reports = iter(range(1, 99))
    monkeypatch.setattr(asking.AskerTraining, "_recall", lambda *args: (1 / next(reports),) * 3)
    codes, asker = np.zeros((120, 1), np.uint8), auxhash.QueryTables(8, n_steps=3, random_state=0)
    best = asker.fit(titles.Q, titles.rows, codes).tables(titles.Q)
    monkeypatch.setattr(querytables, "AskerTraining", queries.LastKept)
    last = asker.fit(titles.Q, titles.rows, codes).tables(titles.Q)
    assert not np.array_equal(best, last)


def test_several_rows_are_relevant_to_a_picture():
    """They are those of its class that are nearest to it, none of which is a picture that asks."""
    rng = np.random.default_rng(0)
    X, other, classes = rng.normal(size=(200, 4)), rng.normal(size=(200, 6)), np.arange(200) % 4
    data = querydata.of_pictures(np.column_stack([X, np.arange(200)]), other, classes)
    searched = data.codes[:, -1].astype(int)
    np.testing.assert_array_equal(data.same, other[searched])
    np.testing.assert_array_equal(data.classes, classes[searched])
    assert (len(data.Q), data.rows.shape) == (80, (80, querydata.N_ALIKE))
    asking = np.setdiff1d(np.arange(200), searched)
    np.testing.assert_array_equal(data.Q, other[asking])
    assert (data.classes[data.rows] == classes[asking][:, None]).all()
    own = np.flatnonzero(data.classes == classes[asking[0]])
    near = nearest(data.same[own], data.Q[:1], querydata.N_ALIKE, "cosine")[0][0]
    np.testing.assert_array_equal(data.rows[0], own[near])
    np.testing.assert_array_equal(
        querydata.nearest_of_class(data.same, data.classes)[:, 0], np.arange(120)
    )
    hits, rows = np.array([[0, 1, 2, 3], [9, 8, 7, 6]]), np.array([[1, 5], [9, 6]])
    assert queries._shares(hits, rows) == [0.25, 0.75, 0.75]
    assert queries._shares(hits, rows[:, 0]) == [0.5, 1, 1]


def test_neighbors_go_on_where_they_were_stopped(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(neighbors, "load", lambda *arguments: made)
    monkeypatch.setattr("benchmarks.records.TABLES", tmp_path)
    monkeypatch.setitem(neighbors.DATA, "glove-50", neighbors.Setting("cosine", 48))
    results = tmp_path / "made.jsonl"
    options = ["--data", "glove-50", "--results", str(results), "--seeds", "0", "1"]
    options += ["--methods", "sign", "ITQ", "LSH", "--bits"]
    benchmarks.main(["neighbors", *options, "4"])
    text = results.read_text()
    assert len(text.splitlines()) == 6
    results.write_text(text[:-20])  # stopped while it wrote
    benchmarks.main(["neighbors", *options, "4", "16"])
    records = neighbors.read(results)
    keys = [(record["method"], record["bits"], record["seed"]) for record in records]
    assert len(set(keys)) == len(keys) == 8
    assert "ITQ, 16 bits: more bits than the 8 features" in capsys.readouterr().out
    assert json.loads(text.splitlines()[0]) == records[0]
    benchmarks.main(["neighbors", *options, "4", "--tables"])
    table = (tmp_path / "neighbors-glove-50.md").read_text()
    assert "| 8 | sign | 1 |" in table
    assert "means over seeds 0, 1" in table
    assert table.splitlines()[2].endswith("| 2 |")
    assert "bits for 95%" in (tmp_path / "neighbors-glove-50-rerank.md").read_text()


def test_margins_over_other_methods():
    """The least over all binary methods, each rank for itself, of the means over seeds."""

    def records(method, hamming, outputs):
        for seed, more in enumerate((0.0, 0.02)):
            at = {"data": "made", "train": 9, "base": 9, "method": method, "bits": 8, "seed": seed}
            result = [
                {
                    rank: share + more
                    for rank, share in zip(("10", "100", "1000"), part, strict=True)
                }
                if part
                else {}
                for part in (hamming, outputs)
            ]
            yield at | dict(zip(("hamming", "asymmetric"), result, strict=True))

    made = [
        *records("NeighborHash, linear", (0.5, 0.6, 0.7), (0.6, 0.7, 0.8)),
        *records("ITQ", (0.4, 0.61, 0.5), (0.1, 0.2, 0.3)),
        *records("LSH", (0.45, 0.3, 0.2), (0.59, 0.2, 0.1)),
        *records("OPQ (faiss)", (), (0.7, 0.7, 0.5)),
    ]
    lines = neighbors.margins(made).splitlines()[2:4]
    assert lines == [
        "| 8 | NeighborHash, linear | Hamming | +.050 / -.010 / +.200 |  |  |",
        "| 8 | NeighborHash, linear | outputs | +.010 / +.500 / +.500 |  | -.100 / +.000 / +.300 |",
    ]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        ({32: 0.96}, "at most 32"),
        ({32: 0.85, 64: 0.9}, "more than 64"),
        ({32: 0.9, 64: 1.0}, "48"),
        ({64: 0.97, 32: 0.95}, "at most 32"),
    ],
)
def test_bits_for_the_aim(share, expected):
    assert neighbors.enough(share) == expected


@pytest.fixture
def labelled():
    """300 points of four classes, 40 of them queries."""
    X, y = peers.decaying(300, 8, 0)
    base, query = Points(X[:260], y[:260] % 4), Points(X[260:], y[260:] % 4)
    return Dataset("made", base, base, query, "made")


def test_networks_go_on_where_they_were_stopped(labelled, tmp_path, monkeypatch):
    monkeypatch.setattr(networks.datasets, "load", lambda *arguments, **options: labelled)
    monkeypatch.setattr("benchmarks.records.TABLES", tmp_path)
    monkeypatch.setattr(networks, "QUICK_DIVISOR", 100)
    results = tmp_path / "made.jsonl"
    options = ["--results", str(results), "--data-sets", "cifar10-gist", "--seeds", "1"]
    options += ["--quick", "--methods", "linear", "network, rank"]
    benchmarks.main(["networks", *options])
    text = results.read_text()
    records = networks.read(results)
    cells = [("linear", 32), *(("network, rank", bits) for bits in (32, 16, 48, 64))]
    assert [(record["method"], record["bits"]) for record in records] == cells
    results.write_text(text[:-20])  # stopped while it wrote
    benchmarks.main(["networks", *options])
    again = networks.read(results)
    assert again[:4] == records[:4]
    assert again[4]["precision"] == records[4]["precision"]
    full = [{**record, "quick": False} for record in records]
    results.write_text("".join(f"{json.dumps(record)}\n" for record in full))
    benchmarks.main(["networks", "--results", str(results), "--tables"])
    table = (tmp_path / "networks.md").read_text().splitlines()
    assert len(table) == 2 + 5
    assert table[3].startswith("| cifar10-gist | 100 | 32 | linear | ")


def test_setting_goes_on_where_it_was_stopped(labelled, tmp_path, monkeypatch):
    monkeypatch.setattr(setting.datasets, "load", lambda *arguments, **options: labelled)
    monkeypatch.setattr(setting, "KAPPA", (5, 15))
    monkeypatch.setattr(setting, "RANKS", (10, 100))
    monkeypatch.setattr("benchmarks.records.TABLES", tmp_path)
    results = tmp_path / "made.jsonl"
    options = ["--results", str(results), "--train", "2000", "--functions", "linear", "--bits", "4"]
    options += ["--ways", "random order", "fixed order", "--seeds", "0"]
    benchmarks.main(["setting", *options])
    text = results.read_text()
    results.write_text(text[:-20])  # stopped while it wrote
    benchmarks.main(["setting", *options, "1"])
    records = setting.read(results)
    keys = [(record["way"], record["seed"]) for record in records]
    assert len(set(keys)) == len(keys) == 4
    assert json.loads(text.splitlines()[0]) == records[0]
    for record in records:
        losses = [step[1] for step in record["path"]]
        assert record["two_step"]["loss"] == pytest.approx(losses[0], abs=1)
        assert record["mac"]["loss"] == pytest.approx(min(losses), abs=1)
        assert record["last"]["loss"] == pytest.approx(losses[-1], abs=1)
        assert ("classes" in record) == (record["seed"] == 0)
    benchmarks.main(["setting", *options, "--tables"])
    assert "| linear | 4 | fixed order |" in (tmp_path / "setting.md").read_text()
    assert "| linear, 4 | fixed order |" in (tmp_path / "setting-alike.md").read_text()
    assert "| linear | 4 | 1 | fixed order |" in (tmp_path / "setting-seeds.md").read_text()
    assert "fixed order" not in (tmp_path / "setting-apart.md").read_text()  # only 32 bits
    assert "| linear, 4 | fixed order |" in (tmp_path / "setting-alike-seeds.md").read_text()
    [*_, orders] = (tmp_path / "setting-gain.md").read_text().splitlines()
    gains = [1 - record["mac"]["loss"] / record["two_step"]["loss"] for record in records]
    free = [record["free"]["loss"] for record in records]
    expected = f"{np.corrcoef(gains, free)[0, 1]:+.2f}"
    assert orders.startswith(f"| random order and fixed order alone | 4 | {expected} |")
    benchmarks.main(["setting", *options, "--sweeps", "2"])
    swept = setting.read(tmp_path / "setting-sweeps.jsonl")
    assert [(one["order"], one["sweeps"]) for one in swept] == [
        (order, number) for order in ("fixed", "random") for number in (1, 2)
    ]
    assert swept[1]["loss"] == records[1]["free"]["loss"]  # made by two sweeps as well


def test_likeness_of_bits():
    classes = np.repeat(np.arange(4), 5)
    apart = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.int8)
    result = setting.likeness(apart[classes], classes)
    assert result["correlation"] == 0
    assert result["effective"] == 2
    assert result["dimensions"] == pytest.approx(3)
    assert (result["splits"], result["closest"]) == (3, 2)
    assert result["in_turn"] == pytest.approx(2 / 3, abs=1e-4)
    alike = setting.likeness(apart[classes][:, [0, 0, 0]], classes)
    assert (alike["correlation"], alike["dimensions"], alike["splits"]) == (1, 1, 1)
    assert alike["closest"] == alike["in_turn"] == 0


def test_couples_of_classes(labelled):
    cell = setting.Cell(labelled, setting.draw(labelled, 0, (5, 15)), 6, "linear", 0)
    X = np.repeat(np.eye(4)[:, :3] * [0, 9, 9], 65, axis=0)  # classes 0 and 3, 1 and 2
    X[65:195, 2] += 9
    rng = np.random.default_rng(0)
    cell.data = Dataset(
        "made", Points(X + rng.normal(size=X.shape), np.repeat(np.arange(4), 65)), *[None] * 2, ""
    )
    assert len(list(setting._couples(range(10)))) == 945
    alike, unlike = setting.coupled(cell, True), setting.coupled(cell, False)
    assert alike == [(0, 3), (1, 2)]
    assert unlike != alike
    codes = setting.by_class(setting.opposed(cell, alike), cell.classes)
    assert (codes[0] == -codes[3]).all()
    assert (codes[1] == -codes[2]).all()


def test_scale_measures_each_size_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scale, "TABLES", tmp_path)
    results = tmp_path / "scale.jsonl"
    asked = ["--data", "made", "--bits", "6", "--neighbors", "4/8", "--iterations", "1"]
    asked += ["--results", str(results)]
    for _ in range(2):
        scale.main(options=[*asked, "--points", "200"])
    [record] = scale.read(results)
    assert record["points"] == 200
    assert record["peak_bytes"] > 5e7
    assert 0 < record["precision"] <= 1
    scale.append(results, {**record, "points": 400})
    scale.main(options=[*asked, "--tables"])
    assert "| 400 |" in (tmp_path / "scale.md").read_text("utf-8")
    assert "fitted exponents: time" in capsys.readouterr().out


def test_the_exponent_of_a_series():
    rows = [{"points": n, "seconds": 3 * n**1.5} for n in (10, 30, 100)]
    assert scale.exponent(rows, "points", "seconds") == pytest.approx(1.5)


@pytest.fixture
def pieces(tmp_path, monkeypatch):
    """90 pictures of three classes in files of 40, the last 30 to be queries."""
    monkeypatch.setattr(deep, "PIECE", 40)
    monkeypatch.setattr(deep, "N_TEST", 30)
    X = np.random.default_rng(0).integers(0, 256, (90, 8, 8, 3), np.uint8)
    deep.write_pieces(tmp_path / "pieces", X, np.arange(90) % 3)
    return tmp_path / "pieces", X


def test_deep_reads_pieces(pieces):
    folder, X = pieces
    assert len([*folder.glob("images*.npy")]) == 3
    result, labels = deep.pictures(folder)
    np.testing.assert_array_equal(result, X)
    np.testing.assert_array_equal(labels, np.arange(90) % 3)
    assert labels.dtype == np.int64


def test_deep_goes_on_where_it_was_stopped(pieces, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")
    results = tmp_path / "made.jsonl"
    options = ["--data", str(pieces[0]), "--results", str(results), "--protocols", "second"]
    options += ["--bits", "8", "--seeds", "0", "--epochs", "1", "--width", "2", "--batch", "20"]
    options += ["--methods", "one-hot", "cross-entropy"]
    benchmarks.main(["deep", *options])
    text = results.read_text()
    results.write_text(text[:-20])  # stopped while it wrote
    benchmarks.main(["deep", *options])
    records = deep.read(results)
    assert [record["method"] for record in records] == ["one-hot", "cross-entropy"]
    assert json.loads(text.splitlines()[0]) == records[0]
    benchmarks.main(["deep", *options, "--both-ways", "--methods", "one-hot"])
    assert [record["how"]["both_ways"] for record in deep.read(results)] == [False, False, True]


def test_the_queue_of_figures_goes_on_where_it_stopped(tmp_path):
    results = tmp_path / "figures.jsonl"

    def queue(h_steps=("plain", "monotone")):
        return figures.queue(["sup-nestederr"], h_steps, 1, TINY, results)

    runs = queue()
    assert len({one.run for one in runs}) == len(runs)
    quads = [one for one in runs if one.run.method == "MACquad"]
    assert len(quads) == 8  # two kinds, two numbers of bits, two h steps; it has no order
    assert len([one for one in runs if one.run.method == "KSH"]) == 4  # nor has this an h step
    cuts = [one for one in runs if one.run.method == "MACcut" and one.run.h_step == "plain"]
    figures.make([*quads[:1], *cuts[:1]], Cells(tmp_path), results, math.inf)
    rows = read(results)
    assert [row["method"] for row in rows] == ["quad", "MACquad", "cut", "MACcut"]
    assert [row["order"] for row in rows] == [None, None, *[cuts[0].run.order] * 2]
    with results.open("a") as out:
        out.write('{"figure": "sup-')  # stopped here
    figures.make([], Cells(tmp_path), results, math.inf)
    assert [one.run for one in queue()] == [
        one.run for one in runs if one not in (quads[0], cuts[0])
    ]


def test_macquad_comes_last_and_every_run_has_a_line_of_its_own(tmp_path):
    names = ["sup-nestederr", "sup-nestederr-freecodes", "run-time", "unsup-nestederr"]
    runs = figures.queue(names, ["plain"], 2, TINY, tmp_path / "figures.jsonl")
    methods = [one.run.method for one in runs]
    assert {one.run.seed for one in runs} == {0, 1}
    assert "MACcut" not in methods[methods.index("MACquad") :]
    assert len(set(map(str, runs))) == len(runs)


def test_a_part_of_the_queue_is_that_of_figures_and_methods(tmp_path, capsys):
    options = ["--list", "--results", str(tmp_path / "figures.jsonl"), "--figures", "sup-cosine"]
    figures.main(options=[*options, "--methods", "MACcut"])
    listed = capsys.readouterr().out.splitlines()
    assert {line.split(" h  ")[1].split(",")[0] for line in listed[:-1]} == {"sup-cosine: MACcut"}
    assert listed[-1].startswith(f"{len(listed) - 1} runs")
    with pytest.raises(SystemExit):
        figures.main(options=[*options, "--methods", "MACcat"])


def test_times_of_the_same_h_step_come_first(tmp_path):
    [run, *_] = (
        one.run
        for one in figures.queue(["sup-nestederr"], ["plain"], 1, TINY, tmp_path / "none.jsonl")
        if one.run.method == "MACcut"
    )
    ours, theirs = replace(run, h_step="monotone"), replace(run, n_bits=2 * run.n_bits)
    assert figures._guess(run, [(ours, 9.0), (theirs, 4.0)]) == 2.0
    assert figures._guess(run, [(ours, 9.0), (replace(theirs, loss="other"), 4.0)]) == 9.0


def test_a_run_that_fails_stops_no_queue(tmp_path, capsys, monkeypatch):
    results = tmp_path / "figures.jsonl"
    runs = figures.queue(["sup-nestederr"], ["plain"], 1, TINY, results)[:2]
    made = figures.PlannedRun.run
    monkeypatch.setattr(
        figures.PlannedRun, "run", lambda run: 1 / 0 if run == runs[0].run else made(run)
    )
    figures.make(runs, Cells(tmp_path), results, math.inf)
    assert "failed" in capsys.readouterr().out
    assert {row["bits"] for row in read(results)} == {runs[1].run.n_bits}
    figures.make(runs, Cells(tmp_path), results, -1.0)  # no time left: none is started
    assert not capsys.readouterr().out
