"""Queries of their own: codes that are there, asked from another space."""

import numpy as np
import pytest

import auxhash
from auxhash import HammingIndex, NamedIndex, NeighborHash, QueryTables
from auxhash.learn.relevance import Relevance, checked_relevance
from auxhash.learn.smooth.similar import Relevant

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


def found(index, hits):
    return np.mean([row in near for row, near in zip(range(800, N), hits, strict=True)])


def test_new_queries_of_another_model_find_their_own_documents(documents, asker):
    X, other, hasher, index = documents
    same = found(index, index.search(hasher.encode(X[800:]), 10)[1])
    chance = 10 / N
    by_tables = found(index, index.search_tables(asker.tables(other[800:]), 10)[1])
    by_codes = found(index, index.search(asker.encode(other[800:]), 10)[1])
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
        ([0, 1], "for each of 3 queries"),
        ([0, 1, 9], "must lie in 0..5, got 9: they are row numbers of the codes"),
        ([0, -1, 2], "must lie in 0..5, got -1"),
        ([[0], [], [2]], "query 1 has none"),
        (["a", "b", "c"], "not ids or names"),
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
    with pytest.raises(ValueError, match="codes must hold at least one code"):
        QueryTables(BITS).fit(other, rows, NamedIndex(HammingIndex(BITS)))
    with pytest.raises(ValueError, match="hash_function must be one of network, linear"):
        QueryTables(BITS, "rbf").fit(other, rows, index)
    with pytest.raises(ValueError, match="validation must be from 0 to below 1"):
        QueryTables(BITS, validation=1).fit(other, rows, index)
    with pytest.raises(ValueError, match="made_for must be the fingerprint"):
        QueryTables(BITS, n_steps=1).fit(other, rows, index.packed, made_for="abc")
