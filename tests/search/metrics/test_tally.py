"""Input is checked: codes and labels of both queries and base, and neighbours."""

import numpy as np
import pytest

from auxhash.codes import MAX_BITS, pack
from auxhash.search import metrics
from auxhash.search.metrics import truth as relevance
from tests.programs import run_python

RNG = np.random.default_rng(0)
BASE = RNG.choice(np.array([-1, 1], np.int8), (40, 12))
LABELS = RNG.integers(0, 3, 40)


def check(query, base, message, **more):
    labels = LABELS[: len(query)], LABELS[: len(base)]
    for swapped in (False, True):
        sides = (base, query) if swapped else (query, base)
        names = labels[::-1] if swapped else labels
        with pytest.raises(ValueError, match=message):
            metrics.distance_histogram(*sides, *names, **more)


def test_both_sides_have_the_same_bits():
    wide = np.ones((4, 16), np.int8)
    check(wide, BASE, "cannot be compared")
    check(pack(wide), BASE, "padding bits beyond n_bits=12")
    check(pack(wide), pack(BASE), "padding bits beyond n_bits=12", n_bits=12)
    check(pack(BASE), BASE[:, :3], "of 3 bits must be")
    check(BASE[:, :10], pack(BASE), "of 12 bits must be", n_bits=12)
    mixed = metrics.distance_histogram(pack(BASE), BASE, LABELS, LABELS)
    for a, b in zip(mixed, metrics.distance_histogram(BASE, BASE, LABELS, LABELS), strict=True):
        np.testing.assert_array_equal(a, b)


def test_padding_bits_of_queries_do_not_crash():
    """In a separate process: this used to write outside an array."""
    program = """
import numpy as np
from auxhash import metrics
base = np.random.default_rng(0).choice([-1, 1], (5000, 1))
queries = np.full((64, 1), 255, np.uint8)
try:
    metrics.precision_at_k(queries, base, np.zeros(64, int), np.zeros(5000, int), k=5)
except ValueError as error:
    print(error)
"""
    assert "padding bits beyond n_bits=1" in run_python(program)


@pytest.mark.parametrize("ties", ["expected", "index"])
def test_the_most_bits_there_may_be(ties):
    base = np.ones((6, MAX_BITS), np.int8)
    base[1] = -1
    base[2, 5] = -1
    labels = np.array([0, 0, 0, 1, 1, 1])
    counts, hits = metrics.distance_histogram(base[:2], base, labels[:2], labels)
    assert counts[0, [0, 1, MAX_BITS]].tolist() == [4, 1, 1]
    assert counts[1, [0, MAX_BITS - 1, MAX_BITS]].tolist() == [1, 1, 4]
    assert counts.sum(axis=1).tolist() == [6, 6]
    assert hits[0].sum() == hits[1].sum() == 3
    assert (hits[0, [0, 1, MAX_BITS]] == 1).all()
    assert (hits[1, [0, MAX_BITS - 1, MAX_BITS]] == 1).all()
    precision = metrics.precision_at_k(base[:2], base, labels[:2], labels, k=6, ties=ties)
    assert precision == pytest.approx(1 / 2)
    more = np.ones((2, MAX_BITS + 1), np.int8)
    with pytest.raises(ValueError, match=f"n_bits must be a whole number from 1 to {MAX_BITS}"):
        metrics.precision_at_k(more, more, [0, 0], [0, 0], k=1)


def test_a_column_of_labels_is_its_labels():
    plain = metrics.precision_at_k(BASE[:9], BASE, LABELS[:9], LABELS, k=5)
    for query, base in [(LABELS[:9, None], LABELS[:, None]), (LABELS[:9], LABELS[:, None])]:
        assert metrics.precision_at_k(BASE[:9], BASE, query, base, k=5) == plain


ODD = 2**53


@pytest.mark.parametrize(
    ("query", "base", "alike"),
    [
        (np.array([ODD, ODD + 1], np.uint64), np.array([ODD + 1, 7], np.int64), [[0, 0], [1, 0]]),
        (np.array([2**63, 5], np.uint64), np.array([-(2**63), 5]), [[0, 0], [0, 1]]),
        (np.array([2**64 - 1, 1], np.uint64), np.array([-1, 1]), [[0, 0], [0, 1]]),
        (np.array([ODD + 1, 3]), np.array([float(ODD), 3.0]), [[0, 0], [0, 1]]),
        (np.array([1, 2], np.int32), np.array([1.0, 2.5]), [[1, 0], [0, 0]]),
        (np.array([True, False]), np.array([1, 0]), [[1, 0], [0, 1]]),
        (np.array(["a", "bcd"]), np.array(["bcd", "b"]), [[0, 0], [1, 0]]),
    ],
)
def test_labels_match_only_where_they_are_equal(query, base, alike):
    codes = np.ones((2, 3), np.int8)
    for q in range(2):
        hits = metrics.distance_histogram(codes[:1], codes, query[q : q + 1], base)[1]
        assert hits.sum() == sum(alike[q])
    hits = metrics.distance_histogram(codes, codes, query, base)[1]
    assert hits.sum(axis=1).tolist() == np.sum(alike, axis=1).tolist()


@pytest.mark.parametrize(
    ("query", "base", "message"),
    [
        (["1", "2"], [1, 2], "query_labels are text and base_labels numbers"),
        ([1, 2], [b"1", b"2"], "query_labels are numbers and base_labels bytes"),
        ([1.0, np.nan], [1.0, 2.0], "query_labels must not be missing; row 1"),
        ([1.0, 2.0], [np.nan, 2.0], "base_labels must not be missing; row 0"),
        (np.array([None, 1], object), [1, 1], "query_labels must not be missing"),
        ([[0, 2], [1, 0]], [[0, 1], [1, 0]], "query_labels .* must hold only 0 and 1"),
        ([[0, 1], [1, 0]], [0, 1], "must both be"),
    ],
)
def test_labels_that_cannot_be_compared(query, base, message):
    codes = np.ones((2, 3), np.int8)
    with pytest.raises(ValueError, match=message):
        metrics.precision_at_k(codes, codes, query, base, k=1)


@pytest.mark.parametrize(
    ("neighbors", "message"),
    [
        ([[0, 0], [1, 2]], "row 0 does"),
        ([[1, 2], [2, 2]], "row 1 does"),
        ([[0, -1], [1, 2]], "must lie in 0..39"),
        (np.array([[0, 2**64 - 1], [1, 2]], np.uint64), "must lie in 0..39"),
        ([[0.0, 1.0], [1.0, 2.0]], "must be positions"),
    ],
)
@pytest.mark.parametrize("checked", [1, 512])
def test_neighbors_are_different_points_of_the_base(neighbors, message, checked, monkeypatch):
    monkeypatch.setattr(relevance, "QUERIES_PER_CHECK", checked)
    with pytest.raises(ValueError, match=f"neighbors .*{message}"):
        metrics.recall_at_k(BASE[:2], BASE, neighbors=neighbors, k=5)


def test_neighbors_of_any_whole_type():
    near = np.array([[3, 1], [0, 39]])
    for kind in (np.int8, np.uint64, np.int64):
        recall = metrics.recall_at_k(BASE[:2], BASE, neighbors=near.astype(kind), k=40)
        assert recall == 1


def test_neighbors_are_not_copied():
    """20,000 neighbours of each of 10,000 queries take 800 MB, mapped from disk."""
    near = np.array([[3, 1], [0, 39]], np.int32)
    truth = relevance.Truth(None, None, near, 2, 40)
    assert np.shares_memory(truth.neighbors, near)
    np.testing.assert_array_equal(np.flatnonzero(truth.relevant(slice(0, 1))), [1, 3])


def test_measures_of_codes_check_them_too():
    for call in (metrics.bit_balance, metrics.bit_correlation):
        with pytest.raises(ValueError, match="padding bits"):
            call(np.full((3, 1), 255, np.uint8), n_bits=5)
        with pytest.raises(ValueError, match="of 20 bits must be"):
            call(np.zeros((3, 1), np.uint8), n_bits=20)
    for call in (metrics.bit_balance, metrics.bit_correlation, metrics.code_utilization):
        with pytest.raises(ValueError, match="at least one code"):
            call(np.zeros((0, 1), np.uint8))
    with pytest.raises(ValueError, match="n must be"):
        metrics.utilization_bound(8, 0)
    with pytest.raises(ValueError, match="k must be a whole number"):
        metrics.mean_average_precision(BASE, BASE, LABELS, LABELS, k=[1, 2])
