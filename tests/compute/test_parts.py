import weakref

import numpy as np
import pytest

from auxhash.compute import context, threads
from auxhash.compute.parts import Chunks


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_local_to_a_part_or_a_sum_over_parts(n_jobs):
    X = np.random.default_rng(0).normal(size=(103, 4))
    out = np.zeros(103)
    with context.using(n_jobs=n_jobs), threads.pool() as run:
        parts = Chunks(len(X), 10, run)
        parts.each(lambda rows: np.sum(X[rows], axis=1, out=out[rows]))
        np.testing.assert_array_equal(out, X.sum(axis=1))
        np.testing.assert_array_equal(parts.join(lambda rows: 2 * X[rows]), 2 * X)
        gram = parts.sum(lambda rows: X[rows].T @ X[rows])
    np.testing.assert_allclose(gram, X.T @ X)
    # The parts define the sum, not the threads.
    with context.using(n_jobs=1), threads.pool() as run:
        again = Chunks(len(X), 10, run).sum(lambda rows: X[rows].T @ X[rows])
    np.testing.assert_array_equal(gram, again)


def test_a_sum_does_not_hold_the_terms_of_all_parts():
    alive, most = weakref.WeakSet(), []

    class Term:
        """A sum of them, too, is one."""

        n = 1

        def __add__(self, other):
            made = Term()
            made.n = self.n + other.n
            return made

    def term(rows):
        alive.add(term := Term())
        most.append(len(alive))
        return term

    with context.using(n_jobs=1), threads.pool() as run:
        assert Chunks(1000, 10, run).sum_here(term).n == 100
    assert max(most) <= 4
