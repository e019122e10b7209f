"""Ranks of true neighbours, against their plain definition."""

from itertools import permutations

import numpy as np
import pytest

from auxhash.codes import hamming, pack, sign, unpack
from auxhash.search import metrics
from auxhash.search.index import tables_from_outputs
from auxhash.search.metrics import ranks
from auxhash.search.metrics.ranks import NeighborRanks


def plain(distances, near):
    """Points before each neighbour, and at its distance."""
    own = np.take_along_axis(distances, near, axis=1)
    above = (distances[:, None, :] < own[:, :, None]).sum(axis=2)
    return above, (distances[:, None, :] == own[:, :, None]).sum(axis=2)


@pytest.fixture(params=[3, 12, 40])
def coded(request):
    """Whole outputs, so that sums are exact, and few bits, so that codes tie."""
    rng = np.random.default_rng(request.param)
    outputs = rng.integers(-4, 5, (20, request.param)) + 0.5
    base = pack(sign(rng.normal(size=(300, request.param))))
    near = np.array([rng.permutation(300)[:10] for _ in range(20)])
    return outputs, base, near, request.param


def test_by_hamming(coded):
    outputs, base, near, n_bits = coded
    queries = pack(sign(outputs))
    result = ranks.by_hamming(queries, base, near, n_bits)
    above, tied = plain(hamming(queries, base), near)
    np.testing.assert_array_equal(result.above, above)
    np.testing.assert_array_equal(result.tied, tied)
    expected = metrics.recall_at_k(queries, base, neighbors=near, k=[1, 10, 100])
    np.testing.assert_allclose([result.within(k).mean() for k in (1, 10, 100)], expected)


def test_by_outputs(coded):
    outputs, base, near, n_bits = coded
    cost = np.abs(outputs).sum(axis=1, keepdims=True) - outputs @ unpack(base, n_bits).T
    result = ranks.by_tables(lambda rows: tables_from_outputs(outputs[rows]), base, near)
    above, tied = plain(cost, near)
    np.testing.assert_array_equal(result.above, above)
    np.testing.assert_array_equal(result.tied, tied)


def test_ties_count_by_their_expectation():
    distances, near = np.array([2, 1, 1, 1, 0]), [1, 2, 4]
    ranks = NeighborRanks(*plain(distances[None], np.array([near])))
    for k in range(1, 6):
        shares = []
        for order in permutations(range(5)):  # of ties
            ranked = sorted(order, key=distances.__getitem__)
            shares.append(np.isin(near, ranked[:k]).mean())
        assert ranks.within(k)[0] == pytest.approx(np.mean(shares))


def test_the_nearest_alone():
    ranks = NeighborRanks(np.array([[0, 50], [20, 0]]), np.ones((2, 2), int))
    np.testing.assert_array_equal(ranks.within(10), [0.5, 0.5])
    np.testing.assert_array_equal(ranks.within(10, 1), [1, 0])


def test_by_positions():
    result = ranks.by_positions(np.array([[5, 3, 1], [2, 0, 4]]), np.array([[3, 9], [4, 2]]))
    np.testing.assert_array_equal(result.within(1), [0, 0.5])
    np.testing.assert_array_equal(result.within(3), [0.5, 1])
    np.testing.assert_array_equal(result.within(1000), [0.5, 1])  # 9 may rank anywhere
