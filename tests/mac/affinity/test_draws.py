"""Draws of each point, against the plain definition: a sample of all candidates, listed."""

import numpy as np
import pytest

from auxhash.compute import random
from auxhash.mac.affinity import draws


def listed(n, seed, stream, candidates, k):
    """k of the candidates, which are in rising order, as `sample` takes them."""
    out = np.full(k, -1, np.int32)
    n_drawn = random.sample(len(candidates), k, seed, stream, np.zeros(n, bool), out)
    return [*np.asarray(candidates)[out[:n_drawn]], *[-1] * (k - n_drawn)]


@pytest.mark.parametrize("k", [1, 7, 28])
def test_points_that_are_not_among_the_nearest(k):
    n, wanted, seed = 30, 9, np.uint64(5)
    rng = np.random.default_rng(0)
    others = np.array([[m for m in range(n) if m != point] for point in range(n)])
    near = np.sort(rng.permuted(others, axis=1)[:, :k], axis=1).astype(np.int32)
    similar, dissimilar = draws.draw(n, (k, wanted), draws.by_rank, near, seed)
    np.testing.assert_array_equal(similar, near)
    for point in range(n):
        left = [m for m in others[point] if m not in near[point]]
        expected = listed(n, seed, 2 * point + 1, left, wanted)
        assert dissimilar[point].tolist() == expected


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_points_that_share_a_label_and_those_that_share_none(share):
    n, wanted, seed = 40, 12, np.uint64(7)
    labels = np.random.default_rng(1).random((n, 10)) < share
    bits = np.packbits(labels, axis=1)
    sets = np.unique(bits, axis=0, return_inverse=True)[1].reshape(n)
    args = bits, np.argsort(sets, kind="stable"), sets, seed
    tables = draws.draw(n, (wanted, wanted), draws.by_shared_label, *args)
    shares = (labels[:, None] & labels).any(axis=2)
    for point in range(n):
        others = np.arange(n) != point
        for table, among in zip(tables, (shares[point], ~shares[point]), strict=True):
            stream = 2 * point + (table is tables[1])
            candidates = np.flatnonzero(among & others)
            assert table[point].tolist() == listed(n, seed, stream, candidates, wanted)
