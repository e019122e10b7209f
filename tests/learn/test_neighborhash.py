"""Codes from points alone: the estimator, its checkpoints, and whether neighbours rank first."""

import os
import re
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator

import auxhash
from auxhash import HammingIndex, NeighborHash
from auxhash.compute.extras import install
from auxhash.compute.neighbors import nearest
from auxhash.learn import neighborhash
from auxhash.learn.baselines import ITQ
from auxhash.learn.training import ranking
from auxhash.mac import hashfunctions
from auxhash.model.tables import TableFunction
from auxhash.search import metrics
from auxhash.search.index import tables_from_outputs
from auxhash.search.index.tables import table_distances
from tests.conftest import SOAK
from tests.programs import run_python

QUICK = {"n_bits": 12, "n_steps": 30 if SOAK else 10, "random_state": 0}
KINDS = ("linear", "rbf", "network")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[:500]], y[order[:500]], X[order[500:1000]]


@pytest.mark.parametrize("kind", KINDS)
def test_check_estimator(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(NeighborHash(n_bits=2, hash_function=kind, n_steps=2), on_skip=None)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        (kind, metric)
        for kind in KINDS
        for metric in ("cosine", "euclidean")
        if SOAK or kind == "linear" or metric == "cosine"
    ],
)
def test_new_points_find_their_neighbours_better_than_with_itq(kind, metric, digits):
    X, _, queries = digits
    truth = nearest(X, queries, 10, metric)[0]
    result = []
    for hasher in (
        ITQ(16, random_state=0),
        NeighborHash(16, metric, kind, n_steps=200 if SOAK else 60, random_state=0),
    ):
        hasher.fit(X)
        result.append(
            metrics.recall_at_k(hasher.encode(queries), hasher.codes_, neighbors=truth, k=20)
        )
    assert result[1] > result[0]


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_codes_on_any_number_of_threads(kind, digits):
    X = digits[0]
    one, two = (
        NeighborHash(**QUICK, hash_function=kind, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    other = NeighborHash(**{**QUICK, "random_state": 1}, hash_function=kind).fit(X)
    assert not np.array_equal(other.codes_, one.codes_)


def test_cosine_does_not_see_lengths(digits):
    X = digits[0]
    lengths = np.random.default_rng(0).uniform(0.01, 100, (len(X), 1))
    hasher = NeighborHash(**QUICK, metric="cosine").fit(X)
    np.testing.assert_allclose(
        hasher.decision_function(X * lengths), hasher.decision_function(X), atol=1e-9
    )


def test_the_rank_that_is_told_falls(digits):
    hasher = NeighborHash(
        16, n_steps=100, hash_function="linear", query_function=None, random_state=0
    ).fit(digits[0])
    ranks = [step.rank for step in hasher.history_]
    assert ranks[-1] < 0.9 * ranks[0]  # of points that are not learnt from
    assert hasher.history_[-1].step == 100
    assert hasher.n_learnt_ == 500
    assert hasher.device_ == "cpu"


def test_more_bits_than_features_and_few_points():
    X = np.random.default_rng(0).normal(size=(5, 2))
    hasher = NeighborHash(40, n_steps=3, random_state=0).fit(X)
    assert hasher.transform(X).shape == (5, 40)


def test_constant_features_and_points_that_are_all_the_same():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 2] = 7.0
    for kind in KINDS:
        hasher = NeighborHash(6, "euclidean", kind, n_steps=5, random_state=0).fit(X)
        assert np.isfinite(hasher.decision_function(X)).all()
        with pytest.warns(UserWarning, match="are the same"):
            NeighborHash(6, "euclidean", kind, n_steps=5, random_state=0).fit(np.ones((9, 3)))


def test_at_most_max_points_are_learnt_from(digits):
    X = digits[0]
    hasher = NeighborHash(**QUICK, hash_function="linear", max_points=100).fit(X)
    assert hasher.n_learnt_ == 100
    assert len(hasher.codes_) == len(X)
    np.testing.assert_array_equal(hasher.codes_, hasher.encode(X))


def test_given_neighbours_take_the_place_of_those_found(digits, monkeypatch):
    X = digits[0]
    hasher = NeighborHash(**QUICK, hash_function="linear")
    table = nearest(X, k=10, metric="cosine")[0]
    monkeypatch.setattr(ranking, "Neighbors", ranking.Partners)  # given ones have no known order
    monkeypatch.setattr(ranking.synthetic, "MAX_QUERIES_PER_POINT", 0)  # nor queries of their own
    model = clone(hasher).fit(X)
    np.testing.assert_array_equal(clone(hasher).fit(X, neighbors=table).codes_, model.codes_)
    others = np.random.default_rng(0).permuted(table, axis=0)
    others[others == np.arange(len(X))[:, None]] -= 1
    other = clone(hasher).fit(X, neighbors=np.abs(others))
    assert not np.array_equal(other.codes_, model.codes_)


def test_a_hash_function_with_settings_of_one_s_own(digits):
    X = digits[0]
    own = hashfunctions.NetworkHash(16, decay=0.0, dropout=0.3, noise=0.1)
    one, two = (NeighborHash(**QUICK, hash_function=own, n_jobs=n).fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.codes_, two.codes_)
    assert one.hash_function_.V.shape == (65, 16)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metric": "hamming"}, "metric"),
        ({"hash_function": "trees"}, "hash_function"),
        ({"hash_function": object()}, "hash_function must be one of network, linear, rbf"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"max_points": 2}, "max_points"),
        ({"device": "tpu"}, "device"),
        ({"n_bits": 0}, "n_bits"),
    ],
)
def test_bad_parameters(settings, said, digits):
    with pytest.raises((ValueError, TypeError), match=said):
        NeighborHash(**settings).fit(digits[0])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (np.zeros((3, 2), int), "neighbors must be of shape"),
        (np.zeros((500, 0), int), "neighbors must be of shape"),
        (np.full((500, 2), 500), "from 0 to 499"),
        (np.full((500, 2), -1), "from 0 to 499"),
        (np.full((500, 2), 0.5), "from 0 to 499"),
        (np.zeros((500, 2), int), "own row number"),
    ],
)
def test_bad_neighbours(table, said, digits):
    with pytest.raises(ValueError, match=said):
        NeighborHash(**QUICK).fit(digits[0], neighbors=table)


def test_without_cupy_a_gpu_is_refused_and_auto_takes_the_processor(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=re.escape(install("gpu"))):
        NeighborHash(**QUICK, device="cuda").fit(digits[0])
    assert NeighborHash(**QUICK, device="auto").fit(digits[0]).device_ == "cpu"


TABLES = {"query_function": "network"}


@pytest.mark.parametrize(
    ("kind", "tables"),
    [
        ("linear", {}),
        ("network", {}),
        ("linear", {**TABLES, "quality": "fast"}),
        ("network", {**TABLES, "quality": "best"}),  # codes and tables together
    ],
)
def test_killed_anywhere_it_ends_the_same(kind, tables, digits, tmp_path, monkeypatch):
    X = digits[0][:200]
    hasher = NeighborHash(**{**QUICK, "n_steps": 7}, hash_function=kind, **tables)
    monkeypatch.setattr(ranking.Judge, "prefers", lambda *_: True)  # tables are kept
    for name, plan in neighborhash.PLANS.items():
        monkeypatch.setitem(neighborhash.PLANS, name, plan._replace(n_hidden=16))
    if kind == "network":
        own = hashfunctions.NetworkHash(16, decay=0.0, dropout=0.3, noise=0.1)
        hasher.set_params(hash_function=own)
    model = clone(hasher).fit(X)
    steps = ranking.RankTraining._steps

    class KilledError(Exception):
        pass

    def killed(self, history):
        for step in steps(self, history):
            yield step
            raise KilledError

    for _ in range(len(model.history_) - 1):
        with monkeypatch.context() as patch:
            patch.setattr(ranking.RankTraining, "_steps", killed)
            with pytest.raises(KilledError):
                clone(hasher).fit(X, checkpoint=tmp_path)
    resumed = clone(hasher).fit(X, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.decision_function(X), model.decision_function(X))
    assert [s.rank for s in resumed.history_] == [s.rank for s in model.history_]
    if tables:
        np.testing.assert_array_equal(resumed.tables(X), model.tables(X))
    with pytest.raises(ValueError, match="n_bits was 12 and is 13"):
        clone(hasher).set_params(n_bits=13).fit(X, checkpoint=tmp_path)
    again = clone(hasher).fit(X, checkpoint=tmp_path)  # finished: at once
    np.testing.assert_array_equal(again.codes_, model.codes_)


def test_a_checkpoint_of_a_training_of_another_size_is_refused(tmp_path, monkeypatch):
    """Such as one of a version whose default was another: its steps would go on differently."""
    X = np.random.default_rng(0).normal(size=(60, 6))
    hasher = NeighborHash(8, hash_function="linear", n_steps=4, random_state=0)
    hasher.fit(X, checkpoint=tmp_path)
    larger = neighborhash.SMALL_PLAN._replace(batch=2048)
    monkeypatch.setattr(neighborhash, "SMALL_PLAN", larger)
    with pytest.raises(ValueError, match="belongs to another run: plan "):
        clone(hasher).fit(X, checkpoint=tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX, for signals")
def test_ctrl_c_keeps_what_was_learnt():
    program = """
        import os, signal, sys, warnings
        import numpy as np
        from auxhash import NeighborHash, TrainingInterrupted
        from auxhash.learn.training import ranking
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as by nohup
        steps = ranking.RankTraining._steps
        def pressed(self, history):
            for step in steps(self, history):
                if step.step == 3:
                    os.kill(os.getpid(), signal.SIGINT)
                yield step
        ranking.RankTraining._steps = pressed
        X = np.random.default_rng(0).normal(size=(50, 4))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hasher = NeighborHash(4, hash_function="linear", n_steps=40, random_state=0).fit(X)
        assert hasher.interrupted_ and hasher.history_[-1].step == 3
        assert any(issubclass(w.category, TrainingInterrupted) for w in caught)
    """
    run_python(program)


def test_y_is_kept_for_score(digits):
    X, y, _ = digits
    hasher = NeighborHash(**QUICK, hash_function="linear").fit(X, y)
    assert 0.1 < hasher.score(X, y, k=10) <= 1


@pytest.mark.parametrize(
    ("kind", "n", "steps"),
    [("network", 100, 500), ("network", 5_000, 1953), ("network", 10**6, 1565),
     ("linear", 100, 500), ("linear", 3_000, 1171), ("linear", 10**6, 2000)],
)  # fmt: skip
def test_how_many_steps_by_default(kind, n, steps):
    assert NeighborHash(hash_function=kind)._settings(n, 1_024).n_steps == steps


@pytest.mark.parametrize(
    ("n", "steps", "many"), [(30_000, (4_000, 2_500), 1_024), (100_000, (3_000, 4_000), 128)]
)
def test_steps_of_many_features_take_no_longer(n, steps, many):
    """Than all steps of 1,024, or of 128; those of tables are fewer in proportion."""

    def of(n_features, **parameters):
        settings = NeighborHash(**parameters)._settings(n, n_features)
        return settings.n_steps, settings.table_steps

    assert of(100) == of(many) == steps
    most = sum(steps) * (many + neighborhash.OTHER_FEATURES)
    for n_features in (many + 1, 1_536, 5_000):
        made = sum(of(n_features)) * (n_features + neighborhash.OTHER_FEATURES)
        assert 0.99 * most < made <= most + 2 * n_features
    others = {"quality": "best"}, {"quality": "fast"}, {"hash_function": "linear"}, {"n_steps": 9}
    for own in others:
        assert of(1_536, **own) == of(100, **own)


def test_the_default_suits_the_number_of_points():
    sizes = {n: NeighborHash()._settings(n, 100) for n in (30_000, 30_001)}
    assert [(each.sample, each.joint) for each in sizes.values()] == [(4096, False), (2048, True)]
    assert NeighborHash(hash_function="linear")._settings(30_001, 100).sample == 4096
    assert not NeighborHash(quality="fast")._settings(30_001, 100).joint


def test_a_network_of_few_points_has_dropout_and_noise():
    few, sampled, many = (
        NeighborHash(max_points=most)._settings(n, 9).hash_function
        for n, most in ((30_000, None), (10**6, 30_000), (10**6, None))
    )
    assert few.dropout == sampled.dropout == 0.3
    assert (few.noise, many.dropout, many.noise) == (0.2, 0.0, 0.0)


def test_the_cost_of_very_long_codes_is_told():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(UserWarning, match="2,048 bits: training takes about 32 times as long"):
        NeighborHash(2048, hash_function="linear", n_steps=1, random_state=0).fit(X)


def test_public_name():
    assert auxhash.NeighborHash is NeighborHash


@pytest.mark.parametrize("hash_function", ["linear", "rbf", "network"])
def test_what_the_caller_wants_of_small_numbers_changes_nothing(hash_function):
    X = np.random.default_rng(0).normal(size=(150, 16)).astype(np.float32)
    hasher = NeighborHash(8, hash_function=hash_function, n_steps=10, random_state=0, n_jobs=2)
    usual = hasher.fit(X).encode(X)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(hasher.fit(X).encode(X), usual)


@pytest.mark.parametrize("query_function", ["network", "linear"])
@pytest.mark.parametrize("hash_function", ["network", "linear", "rbf"])
def test_tables_rank_neighbours_better_than_bits(hash_function, query_function, keeps_tables):
    """By points that are not learnt from, and the prefixes are codes of their own."""
    X = np.random.default_rng(0).normal(size=(250, 12))
    hasher = NeighborHash(
        *(16, "euclidean", hash_function),
        n_steps=30,
        query_function=query_function,
        prefixes=(8,),
        quality="fast",
        random_state=0,
    ).fit(X)
    last = hasher.history_[-1]
    assert last.table_rank < last.rank
    tables = hasher.tables(X[:5])
    assert tables.shape == (5, 2, 256)
    assert tables.dtype == np.float32
    kind = hashfunctions.NetworkHash if query_function == "network" else hashfunctions.SVMHash
    assert isinstance(hasher.tables_.vector, kind) or hash_function == "rbf"


def test_half_precision_of_tables_changes_no_recall(digits, keeps_tables, monkeypatch):
    """Of the 10 nearest by tables, 98% are the same, with as many true neighbours."""
    X, _, queries = digits
    single, of = [], TableFunction.of.__func__

    def kept(cls, vector, rows):
        single.append(cls(vector, rows.reshape(-1, 256, rows.shape[1])))
        return of(cls, vector, rows)

    monkeypatch.setattr(TableFunction, "of", classmethod(kept))
    hasher = NeighborHash(32, "euclidean", "linear", n_steps=30, query_function="network")
    index = HammingIndex(32).add(hasher.set_params(random_state=0).fit(X).codes_)
    true = nearest(X, queries, 10)[0]
    both = [index.search_tables(f.tables(queries), 10)[1] for f in (*single, hasher.tables_)]
    assert not np.array_equal(single[0].codebook, hasher.tables_.codebook)
    shared = np.mean([np.isin(a, b).mean() for a, b in zip(*both, strict=True)])
    assert shared > 0.98
    hits = [[np.isin(*row).mean() for row in zip(ids, true, strict=True)] for ids in both]
    assert np.mean(hits[0]) == pytest.approx(np.mean(hits[1]), abs=0.002)


@pytest.mark.parametrize("asked", [False, True])
def test_tables_are_kept_if_they_find_more_than_outputs(asked, digits, monkeypatch):
    """Of the points that judge, by what a search among all points finds."""
    hasher = NeighborHash(**QUICK, hash_function="linear", query_function="network")
    X, shares = digits[0], []
    share = ranking.Judge._recall_sum

    def noted(judge, tables, codes, lists):
        every = np.broadcast_to(codes, (len(tables), *codes.shape))
        apart = table_distances(tables, np.arange(len(tables))[:, None], every)
        counts = []
        for own, ranked in zip(judge.own, np.argsort(apart, axis=1, kind="stable"), strict=True):
            near = set(lists.listed(np.array([own]))[1])
            others = ranked[ranked != own]
            counts.append([len(near & set(others[:k])) for k in (10, 100)] + [len(near)])
        *within, total = np.sum(counts, axis=0)
        shares.append(share(judge, tables, codes, lists))
        assert shares[-1] == pytest.approx(sum(within) / total)
        return shares[-1]

    monkeypatch.setattr(ranking.Judge, "_recall_sum", noted)
    more = {"queries": X[:60] + 0.1, "relevant": np.arange(60)} if asked else {}
    learnt = hasher.fit(X, **more)
    assert (learnt.tables_ is not None) == (shares[0] > shares[1])


@pytest.mark.parametrize(("by_tables", "kept"), [(0.5, False), (0.6, True)])
def test_tables_no_better_than_outputs_are_not_kept(by_tables, kept, digits, monkeypatch):
    shares = iter([by_tables, 0.5])
    monkeypatch.setattr(ranking.Judge, "_recall_sum", lambda *_: next(shares))
    hasher = NeighborHash(**QUICK, hash_function="linear", query_function="network")
    assert (hasher.fit(digits[0]).tables_ is not None) == kept


@pytest.mark.parametrize(("n", "learns"), [(999, False), (1_000, True)])
def test_tables_of_few_points_are_not_learnt_unless_they_are_asked_for(n, learns):
    settings = NeighborHash()._settings(n, 9)
    assert (settings.query_function is not None) == (settings.table_steps > 0) == learns
    assert NeighborHash(query_function="network")._settings(n, 9).query_function is not None


def test_points_that_judge_are_not_learnt_from(digits):
    settings = NeighborHash(**QUICK)._settings(500, 9)
    run = ranking.RankTraining(settings, digits[0], None, np.random.default_rng(0).spawn(5))
    judged = run.judge.rows[: run.judge.rank.batch]
    assert len(judged) == 25
    assert not np.isin(judged, run.objective.points).any()
    run.begin_tables(hashfunctions.SVMHash(hashfunctions.Scaled()))
    assert len(run.objective.points) >= 475
    assert not np.isin(judged, run.objective.points).any()
    assert (run.objective.points < 500).sum() == 475


def test_same_seed_gives_the_same_tables_on_any_number_of_threads(keeps_tables):
    X = np.random.default_rng(0).normal(size=(300, 9))
    one, other = (
        NeighborHash(11, n_steps=20, query_function="network", n_jobs=n, random_state=3).fit(X)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.codes_, other.codes_)
    np.testing.assert_array_equal(one.tables(X), other.tables(X))


def test_codes_learnt_with_their_tables(tmp_path, keeps_tables):
    """quality="best" lets both move; a file holds both; tables are of the same codes."""
    X = np.random.default_rng(0).normal(size=(300, 9))
    with pytest.MonkeyPatch.context() as patch:
        small = neighborhash.PLANS["best"]._replace(n_hidden=32, batch=64, sample=128)
        patch.setitem(neighborhash.PLANS, "best", small._replace(n_steps=40, table_steps=40))
        patch.setattr(neighborhash, "MIN_STEPS", 40)
        plain = NeighborHash(16, query_function=None, quality="best", random_state=0).fit(X)
        hasher = NeighborHash(16, query_function="network", quality="best", random_state=0).fit(X)
    assert (plain.codes_ != hasher.codes_).any()
    assert hasher.history_[-1].step == 80
    hasher.save(tmp_path / "model.safetensors")
    loaded = auxhash.load(tmp_path / "model.safetensors")
    assert repr(loaded.tables_) == "TableFunction(2 bytes, vectors of 16 numbers by NetworkHash)"
    np.testing.assert_array_equal(loaded.tables(X), hasher.tables(X))
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prefixes": 8}, "prefixes must be numbers of bits, such as"),
        ({"prefixes": (8, 20)}, "multiples of 8"),
        ({"prefixes": (16, 8)}, "rising"),
        ({"prefixes": (32,)}, "prefixes must be a whole number from 8 to 31"),
        ({"query_function": "rbf"}, "query_function must be one of auto, network, linear"),
        ({"quality": "worst"}, "quality must be one of fast, default, best"),
    ],
)
def test_wrong_settings_of_tables_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        NeighborHash(32, **parameters).fit(np.eye(50))


def test_a_model_without_tables_says_so():
    X = np.random.default_rng(0).normal(size=(60, 5))
    with pytest.raises(ValueError, match="learnt no tables of queries"):
        NeighborHash(8, n_steps=5, query_function=None).fit(X).tables(X)


@pytest.mark.parametrize("query_function", ["linear", "network"])
def test_faiss_takes_over_as_an_additive_quantiser(query_function, keeps_tables):
    faiss = pytest.importorskip("faiss")
    X = np.random.default_rng(0).normal(size=(300, 9)).astype(np.float32)
    hasher = NeighborHash(
        20, "euclidean", "linear", query_function=query_function, n_steps=10, random_state=0
    ).fit(X)
    ids = np.arange(300) * 7 + 2**40
    index, function = HammingIndex(20).add(hasher.codes_, ids), hasher.model_.table_function
    theirs = index.to_faiss(function.codebook)
    again = faiss.deserialize_index(faiss.serialize_index(theirs))
    distances, hits = index.search_tables(hasher.tables(X[:40]), 12)
    for there in (theirs, again):
        products, result = there.search(function.vectors(X[:40]), 12)
        np.testing.assert_allclose(-products, distances, rtol=1e-4, atol=1e-5)
        apart = np.diff(distances, axis=1, append=-np.inf) > 1e-4  # by more than rounding
        clear = apart & np.roll(apart, 1, axis=1)
        assert clear.mean() > 0.3
        np.testing.assert_array_equal(result[clear], hits[clear])
    with pytest.raises(ValueError, match=r"codebook must be of shape \(3, 256, n_dims\), got"):
        index.to_faiss(function.codebook[:2])


def test_a_warm_start_goes_on_from_what_was_learnt(digits, tmp_path):
    X = digits[0]
    parameters = {**QUICK, "hash_function": "linear", "query_function": None, "n_steps": 300}
    first = NeighborHash(**parameters).fit(X)
    first.save(tmp_path / "first.safetensors")
    on = auxhash.load(tmp_path / "first.safetensors")
    on.set_params(warm_start=True, n_steps=5).fit(X)
    assert (on.codes_ == first.codes_).mean() > 0.9
    anew = NeighborHash(**{**parameters, "n_steps": 5}).fit(X)
    assert (anew.codes_ == first.codes_).mean() < 0.5
    with pytest.raises(ValueError, match="goes on with the 12 bits"):
        on.set_params(n_bits=16).fit(X)
    with pytest.raises(ValueError, match="features"):
        on.set_params(n_bits=12).fit(X[:, :20])


def test_queries_with_relevant_rows_are_learnt_from_beside_neighbours():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    rows, new = np.split(rng.permutation(400), [300])
    Q = X.copy()
    Q[:, 5:] = rng.permutation(Q[:, 5:])  # say nothing of what is relevant
    hasher = NeighborHash(24, "euclidean", "linear", n_steps=30, random_state=0)
    hasher.set_params(query_function="linear")
    alone, asked = (
        clone(hasher).fit(X, **more) for more in ({}, {"queries": Q[rows], "relevant": rows})
    )

    def recall(model, row_numbers):
        index = HammingIndex(24).add(model.codes_)
        hits = index.search_tables(tables_from_outputs(model.decision_function(Q[row_numbers])), 20)
        return np.mean([row in near for row, near in zip(row_numbers, hits[1], strict=True)])

    assert recall(asked, new) > 1.5 * recall(alone, new)
    weighted = csr_array((np.ones(300), (np.arange(300), rows)), shape=(300, 400))
    again = clone(hasher).fit(X, queries=Q[rows], relevant=weighted)
    assert recall(again, new) > 1.5 * recall(alone, new)
    limited = NeighborHash(24, "euclidean", "network", n_steps=3, random_state=0, max_points=50)
    assert limited.fit(X, queries=Q[rows], relevant=rows).n_learnt_ == 400


def test_tables_learn_from_relevant_rows_what_outputs_cannot(monkeypatch):
    """Queries have the features in another order: one hash function can hardly serve both."""
    plan = neighborhash.SMALL_PLAN._replace(n_steps=30, table_steps=600)
    monkeypatch.setattr(neighborhash, "SMALL_PLAN", plan)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    Q, (rows, new) = X[:, ::-1], np.split(rng.permutation(400), [300])
    hasher = NeighborHash(16, "euclidean", "linear", n_steps=30, random_state=0)
    alone = clone(hasher).fit(X)
    hasher.set_params(query_function="linear").fit(X, queries=Q[rows], relevant=rows)

    def recall_at_ten(model, tables):
        hits = HammingIndex(16).add(model.codes_).search_tables(tables, 20)[1]
        return np.mean([row in near for row, near in zip(new, hits, strict=True)])

    by_outputs, of_points = (
        recall_at_ten(model, tables_from_outputs(model.decision_function(Q[new])))
        for model in (hasher, alone)
    )
    assert recall_at_ten(hasher, hasher.tables(Q[new])) > 1.5 * by_outputs > 3 * of_points


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"queries": np.ones((3, 6))}, "queries and relevant, the rows of X"),
        ({"relevant": [0, 1, 2]}, "queries and relevant, the rows of X"),
        ({"queries": np.ones((3, 5)), "relevant": [0, 1, 2]}, "must have the 6 features of X"),
        (
            {"queries": np.ones((3, 6)), "relevant": [0, 1, 30]},
            "relevant must lie in 0..29, got 30: they are row numbers of X, in their order, not",
        ),
        ({"queries": np.ones((3, 6)), "relevant": [0, 1]}, "relevant must say for each of 3"),
        ({"queries": np.ones((3, 6)), "relevant": [[0], [], [1]]}, "relevant must not be empty"),
        (
            {"queries": np.ones((3, 6)), "relevant": csr_array((3, 29))},
            r"relevant must be a matrix of shape \(3, 30\), .* per row of X, got \(3, 29\)",
        ),
        (
            {"queries": np.ones((3, 6)), "relevant": csr_array(-np.eye(3, 30))},
            "the weights of relevant must not be negative, got -1",
        ),
    ],
)
def test_wrong_queries_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        NeighborHash(8, n_steps=1).fit(np.random.default_rng(0).normal(size=(30, 6)), **asked)


@pytest.mark.parametrize(
    ("relevant", "message"),
    [
        (["a", "b", "c"], "relevant must be row numbers of X, not ids or names"),
        ({0: 1, 1: 2, 2: 0}, "relevant must be row numbers, a list of them per query, .* got dict"),
        ([[[0], [1]], [0], [1]], "relevant must hold a row number or a list of them per query"),
    ],
)
def test_relevant_rows_of_other_kinds_are_refused(relevant, message):
    X = np.random.default_rng(0).normal(size=(30, 6))
    with pytest.raises(TypeError, match=message):
        NeighborHash(8, n_steps=1).fit(X, queries=X[:3], relevant=relevant)
