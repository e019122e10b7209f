"""Queries of their own: codes that are there, asked from another space."""

import signal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from onnxruntime import InferenceSession
from scipy.sparse import csr_array

import auxhash
from auxhash import (
    ApproximateIndex,
    HammingIndex,
    NamedIndex,
    NeighborHash,
    QueryTables,
    stores,
)
from auxhash.compute.device import CPU
from auxhash.learn import querytables
from auxhash.learn.relevance import Relevance, checked_relevance
from auxhash.learn.smooth.similar import Relevant
from auxhash.learn.smooth.tables import QueryRank
from auxhash.learn.training import asking
from auxhash.learn.training.asking import rivals_of
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.learn.training.interrupt import TrainingInterrupted

N, BITS = 1200, 24


@pytest.fixture(scope="module")
def documents():
    """Points with codes, and the same points as another model sees them: more features, noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 8))
    other = np.tanh(X @ rng.normal(size=(8, 15)) / 2) + 0.02 * rng.normal(size=(N, 15))
    hasher = NeighborHash(BITS, "euclidean", "linear", n_steps=100, random_state=0).fit(X)
    index = HammingIndex(BITS, fingerprint=hasher.fingerprint_).add(hasher.codes_)
    return X, other, hasher, index


@pytest.fixture(scope="module", params=["network", "linear"])
def asker(request, documents):
    _, other, _, index = documents
    rows = np.arange(800)
    return QueryTables(BITS, request.param, "euclidean", n_steps=80, random_state=0).fit(
        other[rows], rows, index
    )


def recall(index, hits):
    return np.mean([row in near for row, near in zip(range(800, N), hits, strict=True)])


def test_new_queries_of_another_model_find_their_own_documents(documents, asker):
    X, other, hasher, index = documents
    same = recall(index, index.search(hasher.encode(X[800:]), 10)[1])
    chance = 10 / N
    by_tables = recall(index, index.search_tables(asker.tables(other[800:]), 10)[1])
    by_codes = recall(index, index.search(asker.encode(other[800:]), 10)[1])
    assert by_tables > 0.6 > 50 * chance
    assert by_codes > 0.4
    assert by_tables >= by_codes
    assert same > by_codes
    score = asker.score(other[800:], np.arange(800, N), index)
    assert score == pytest.approx(by_tables)


def test_a_file_carries_the_fingerprint_of_the_codes(documents, asker, tmp_path):
    _, other, hasher, index = documents
    assert asker.fingerprint_ == hasher.fingerprint_ == index.fingerprint
    asker.save(tmp_path / "asker.safetensors")
    loaded = auxhash.load(tmp_path / "asker.safetensors")
    value = auxhash.Model.load(tmp_path / "asker.safetensors")
    for each in (loaded, value):
        assert each.fingerprint == index.fingerprint
        np.testing.assert_array_equal(each.tables(other[:5]), asker.tables(other[:5]))
        np.testing.assert_array_equal(each.encode(other[:5]), asker.encode(other[:5]))


def test_same_seed_same_tables_on_any_number_of_threads(documents):
    _, other, _, index = documents
    one, two = (
        QueryTables(BITS, n_steps=20, random_state=1, n_jobs=n).fit(other, np.arange(N), index)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.tables(other), two.tables(other))


def test_several_rows_can_be_relevant(documents):
    _, other, _, index = documents
    rows = [[i, (i + 1) % N] if i % 3 else [i] for i in range(N)]
    asker = QueryTables(BITS, n_steps=20, random_state=0).fit(other, rows, index.packed)
    assert asker.made_for_ is None
    assert len(asker.history_) > 1


def test_a_row_that_is_listed_twice_counts_as_one_of_weight_2():
    listed, weighted = (
        checked_relevance(rows, 2, 3)
        for rows in ([[0, 0, 1], [2]], csr_array([[2, 1, 0], [0, 0, 1]]))
    )
    hits = np.array([[0], [1]])
    assert listed.recall(np.arange(2), hits, (1,)) == [1 / 3]
    assert weighted.recall(np.arange(2), hits, (1,)) == [1 / 3]
    values = np.array([[3.0], [9], [1]])
    np.testing.assert_array_equal(listed.means(values)[1], [[5], [1]])
    np.testing.assert_array_equal(weighted.means(values)[1], [[5], [1]])


def test_known_rows_are_never_negatives():
    relevance = Relevance(np.array([0, 2, 3]), np.array([4, 1, 0]))
    entries = Relevant(relevance.starts, relevance.rows, 6).among(
        np.array([0, 1]), np.array([4, 0]), np.array([0, 1, 2, 4])
    )
    table = np.ones((2, 4), np.float32)
    entries.clear(table, slice(0, 2))
    np.testing.assert_array_equal(table, [[1, 0, 1, 0], [0, 1, 1, 1]])
    alone = relevance.only(np.array([1]))
    np.testing.assert_array_equal(alone.starts, [0, 0, 1])
    np.testing.assert_array_equal(alone.rows, [0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 1], "rows must say for each of 3 queries"),
        ([0, 1, 9], "rows must lie in 0..5, got 9: they are row numbers of the codes"),
        ([0, -1, 2], "must lie in 0..5, got -1"),
        ([[0], [], [2]], "query 1 has none"),
        (["a", "b", "c"], "rows must be row numbers of the codes, not ids or names"),
    ],
)
def test_wrong_rows_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        checked_relevance(rows, 3, 6)


def test_wrong_arguments_are_refused_before_any_work(documents):
    _, other, _, index = documents
    rows = np.arange(N)
    with pytest.raises(ValueError, match="codes"):
        QueryTables(32).fit(other, rows, index)
    with pytest.raises(
        ValueError, match=r"codes of 24 bits must be .* got int64 of shape \(1200, 3\)"
    ):
        QueryTables(BITS).fit(other, rows, index.packed.tolist())
    with pytest.raises(ValueError, match="codes must be of n_bits=32"):
        QueryTables(32).fit(other, rows, ApproximateIndex.from_exact(index))
    with pytest.raises(ValueError, match="codes must hold at least one code"):
        QueryTables(BITS).fit(other, rows, NamedIndex(HammingIndex(BITS)))
    with pytest.raises(ValueError, match="hash_function must be one of network, linear"):
        QueryTables(BITS, "rbf").fit(other, rows, index)
    with pytest.raises(ValueError, match="validation must be from 0 to below 1"):
        QueryTables(BITS, validation=1).fit(other, rows, index)
    with pytest.raises(ValueError, match="made_for must be the fingerprint"):
        QueryTables(BITS, n_steps=1).fit(other, rows, index.packed, made_for="abc")


def test_a_model_of_the_codes_to_start_with_finds_more_from_few_pairs(documents):
    X, _, hasher, index = documents
    few = np.arange(40)
    make = partial(QueryTables, BITS, "linear", "euclidean", 2, validation=0, random_state=0)
    alone, started = (make().fit(X[few], few, index, start=start) for start in (None, hasher))
    new = np.arange(800, N)
    one, other = (asker.score(X[new], new, index) for asker in (alone, started))
    assert other > one + 0.1
    same = recall(index, index.search(started.encode(X[800:]), 10)[1])
    assert same == pytest.approx(
        recall(index, index.search(hasher.encode(X[800:]), 10)[1]), abs=0.1
    )
    again = make().fit(X[few], few, index, start=hasher.model_)
    np.testing.assert_array_equal(again.tables(X[:5]), started.tables(X[:5]))


@pytest.mark.parametrize("by", ["network", "linear"])
def test_any_hash_function_can_be_started_with(documents, by):
    X, _, _, _ = documents
    itq = auxhash.baselines.ITQ(8, random_state=0).fit(X)
    asker = QueryTables(8, by, "euclidean", n_steps=1, validation=0, random_state=0)
    asker.fit(X, np.arange(N), itq.codes_, start=itq)
    assert (asker.encode(X) == itq.encode(X)).mean() > 0.9


def test_weights_of_pairs_decide_what_is_drawn():
    starts, rows = np.array([0, 2, 2, 5]), np.array([3, 1, 0, 4, 2])
    similar = Relevant(starts, rows, 5, np.array([1.0, 3.0, 2.0, 1e-9, 2.0]), first=10)
    np.testing.assert_array_equal(similar.usable(), [10, 12])
    drawn = similar.draw(np.tile([10, 12], 4000), np.random.default_rng(0)).reshape(-1, 2)
    share = np.bincount(drawn[:, 0], minlength=5) / len(drawn)
    np.testing.assert_allclose(share, [0, 0.75, 0, 0.25, 0], atol=0.03)
    share = np.bincount(drawn[:, 1], minlength=5) / len(drawn)
    np.testing.assert_allclose(share, [0.5, 0, 0.5, 0, 0], atol=0.03)


def test_a_sparse_matrix_holds_weights(documents):
    _, other, _, index = documents
    weights = csr_array((np.ones(N), (np.arange(N), np.arange(N))), shape=(N, N))
    by_matrix, by_rows = (
        QueryTables(BITS, "linear", "euclidean", n_steps=10, random_state=0).fit(other, rows, index)
        for rows in (weights, np.arange(N))
    )
    assert by_matrix.score(other, weights, index) == pytest.approx(
        by_rows.score(other, np.arange(N), index), abs=0.05
    )
    relevance = checked_relevance(csr_array([[0, 2.0, 1], [0, 0, 4]]), 2, 3)
    assert relevance.recall(np.arange(2), np.array([[1, 0], [0, 2]]), (1, 2)) == pytest.approx(
        [1 / 3, 5 / 6]
    )
    used, means = relevance.means(np.array([[1.0], [3], [6]]))
    np.testing.assert_array_equal(used, [0, 1])
    np.testing.assert_array_equal(means, [[4], [6]])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (csr_array((2, 3)), "query 0 has none"),
        (csr_array([[1, 0, 0], [0, 0, 0]]), "query 1 has none"),
        (csr_array([[1, 0], [0, 1]]), r"of shape \(2, 3\)"),
        (csr_array([[1, 0, 0], [0, -1, 0]]), "must not be negative, got -1"),
        (csr_array([[1, 0, 0], [0, np.nan, 0]]), "must hold finite numbers"),
        (7, "must be row numbers"),
        ("ab", "must be row numbers"),
    ],
)
def test_wrong_weights_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        checked_relevance(matrix, 2, 3)


def test_codes_of_a_store_are_in_the_order_of_its_ids(documents, tmp_path):
    _, other, hasher, index = documents
    ids = np.random.default_rng(0).permutation(N)
    with stores.open(stores.file_url("sqlite", tmp_path / "codes.db"), BITS) as store:
        store.upsert(ids, index.packed[ids], fingerprint=hasher.fingerprint_)
        asker, same = (
            QueryTables(BITS, "linear", n_steps=2, random_state=0).fit(other, np.arange(N), codes)
            for codes in (store, index)
        )
    assert asker.made_for_ == hasher.fingerprint_
    np.testing.assert_array_equal(asker.tables(other), same.tables(other))


def test_codes_of_an_approximate_index_are_in_the_order_of_its_ids(documents):
    _, other, _, index = documents
    ids = np.random.default_rng(0).permutation(N)
    approximate = ApproximateIndex(BITS, n_lists=8, fingerprint=index.fingerprint)
    approximate.add(index.packed[ids], ids)
    asker, same = (
        QueryTables(BITS, "linear", n_steps=2, random_state=0).fit(other, np.arange(N), codes)
        for codes in (approximate, index)
    )
    assert asker.made_for_ == index.fingerprint
    np.testing.assert_array_equal(asker.tables(other), same.tables(other))


def test_rivals_are_half_of_the_sample_and_no_row_is_in_it_twice(documents):
    _, _, _, index = documents
    rows = np.arange(0, N, 2)
    rivals = rivals_of(rows, index.packed)
    drawn = rivals.draw(rows[:50], 200, np.random.default_rng(0))
    assert len(drawn) == len(set(drawn.tolist())) > 100
    near = set(rivals.near[:50].ravel().tolist())
    assert near.issuperset(drawn.tolist())
    known = Relevant(np.arange(N + 1), np.arange(N), N)
    asker = SimpleNamespace(device=CPU, smooth=SimpleNamespace(begin=lambda rng: None))
    rank = QueryRank(rivals_of(np.arange(N), index.packed), known, asker, 1, 1.0, 64, 300, (BITS,))
    batch = next(rank.batches(np.random.default_rng(0)))
    sample = batch[2 * rank.batch :]
    assert len(set(sample.tolist())) == len(sample) == 300
    np.testing.assert_array_equal(batch[:64], batch[64:128])  # query i is relevant to row i


def test_it_stops_when_held_out_queries_find_no_more(documents, monkeypatch):
    _, other, _, index = documents
    falling = iter(np.linspace(0.5, 0.1, 30))
    shares = lambda *_: (next(falling),) * 3  # noqa: E731
    monkeypatch.setattr(asking.AskerTraining, "_recall", shares)
    asker = QueryTables(BITS, "linear", n_steps=200, random_state=0)
    asker.fit(other, np.arange(N), index)
    assert len(asker.history_) == 1 + asking.MAX_REPORTS_IN_VAIN
    untrained = QueryTables(BITS, "linear", n_steps=1, validation=0.1, random_state=0)
    monkeypatch.setattr(asking, "N_REPORTS", 0)  # so that not even one step is made
    untrained.fit(other, np.arange(N), index)
    np.testing.assert_array_equal(asker.tables(other[:9]), untrained.tables(other[:9]))


def test_held_out_queries_are_not_learnt_from(documents, monkeypatch):
    _, other, _, index = documents
    monkeypatch.setattr(querytables, "RIDGES", (1e-3,))  # which they choose among
    rows = np.arange(N)
    held_out = np.random.default_rng(0).spawn(3)[0].permutation(N)[: N // 10]
    changed = rows.copy()
    changed[held_out] = changed[held_out[::-1]]
    one, two = (
        QueryTables(BITS, "linear", n_steps=1, random_state=0).fit(other, each, index)
        for each in (rows, changed)
    )
    assert one.history_[0].recall != two.history_[0].recall
    np.testing.assert_array_equal(one.encode(other), two.encode(other))


@pytest.mark.parametrize("stopped_after", [0, 2])
def test_an_interrupted_run_goes_on_to_the_same_tables(
    documents, tmp_path, monkeypatch, stopped_after
):
    _, other, _, index = documents
    make = partial(QueryTables, BITS, "linear", "euclidean", n_steps=40, random_state=0)
    model = make().fit(other, np.arange(N), index)
    write, times = Checkpoint.write, iter(range(99))

    def interrupted(self, saved):
        write(self, saved)
        if next(times) == stopped_after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make().fit(other, np.arange(N), index, checkpoint=tmp_path)
    resumed = make(verbose=1).fit(other, np.arange(N), index, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.tables(other), model.tables(other))
    assert [s.recall for s in resumed.history_] == [s.recall for s in model.history_]
    with pytest.raises(ValueError, match="belongs to another run: rows is not the same, starts is"):
        make().fit(other, [[0, 1], *range(1, N)], index, checkpoint=tmp_path)


def test_ctrl_c_keeps_what_was_learnt(documents, monkeypatch):
    _, other, _, index = documents
    note = asking.AskerTraining._note

    def pressed(self, history, step, *more):
        note(self, history, step, *more)
        if step:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(asking.AskerTraining, "_note", pressed)
    with pytest.warns(TrainingInterrupted, match="interrupted after step 2"):
        asker = QueryTables(BITS, "linear", n_steps=40).fit(other, np.arange(N), index)
    assert asker.interrupted_
    assert len(asker.history_) == 2


def test_the_graph_gives_the_same_codes_and_tables(documents, asker, tmp_path):
    _, other, _, _ = documents
    path = tmp_path / "asker.onnx"
    auxhash.export_onnx(asker, path, "float64")
    codes, tables = InferenceSession(path).run(None, {"features": other[:50]})
    np.testing.assert_array_equal(codes, asker.encode(other[:50]))
    np.testing.assert_allclose(tables, asker.tables(other[:50]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("model.safetensors", "start must be a fitted hasher or a Model, got str"),
        (auxhash.baselines.LSH(8).fit(np.eye(15)), "15 features to 8 bits, and Q has 15"),
        (auxhash.baselines.LSH(BITS).fit(np.eye(8)), f"8 features to {BITS} bits, and Q has 15"),
    ],
)
def test_another_start_is_refused(documents, start, message):
    _, other, _, index = documents
    with pytest.raises(ValueError, match=message):
        QueryTables(BITS).fit(other, np.arange(N), index, start=start)


def test_few_queries_of_many_features_get_more_ridge(documents, monkeypatch):
    _, _, _, index = documents
    rng = np.random.default_rng(0)
    signal = 2.0 * np.unpackbits(index.packed, axis=1, bitorder="little") - 1
    Q = signal @ rng.normal(size=(BITS, 90)) + 6 * rng.normal(size=(N, 90))
    rows, new = np.arange(130), np.arange(200, N)

    def score():
        asker = QueryTables(BITS, "linear", "euclidean", n_steps=1, random_state=0)
        return asker.fit(Q[rows], rows, index).score(Q[new], new, index)

    chosen = score()
    monkeypatch.setattr(querytables, "RIDGES", (1e-3,))
    assert chosen > score()


def test_codes_of_another_model_are_refused_wherever_they_meet(documents, asker):
    _, other, hasher, index = documents
    rows, stranger = np.arange(N), auxhash.baselines.LSH(BITS, random_state=5).fit(other)
    copy = HammingIndex(BITS, fingerprint="f" * 16).add(index.packed)
    with pytest.raises(ValueError, match=f"codes was made by model {'f' * 16} and the model"):
        asker.score(other, rows, copy)
    with pytest.raises(ValueError, match=f"and made_for by model {'f' * 16}"):
        QueryTables(BITS).fit(other, rows, index, made_for="f" * 16)
    with pytest.raises(ValueError, match=f"and start by model {stranger.fingerprint_}"):
        QueryTables(BITS).fit(other, rows, index, start=stranger)
    with pytest.raises(ValueError, match=f"and start by model {stranger.fingerprint_}"):
        QueryTables(BITS).fit(other, rows, index.packed, hasher.fingerprint_, start=stranger)


@pytest.mark.parametrize("codes", [None, "codes.index"])
def test_what_is_no_codes_is_named(documents, codes):
    _, other, _, _ = documents
    with pytest.raises(TypeError, match="codes must be packed codes, an index or a store, got"):
        QueryTables(BITS).fit(other, np.arange(N), codes)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({0: 1, 1: 2, 2: 0}, "row numbers, a list of them per query, or .* got dict"),
        ([[[0], [1]], [0], [1]], "a row number or a list of them per query"),
    ],
)
def test_rows_of_other_shapes_are_refused(rows, message):
    with pytest.raises(TypeError, match=message):
        checked_relevance(rows, 3, 6)
