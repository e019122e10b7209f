import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from auxhash.zstep.maxflow import minimum_cut
from benchmarks.peers import MaxFlowCut
from tests import oracle


def random_block(rng, n, density, size):
    i, j = map(np.ascontiguousarray, np.nonzero(np.triu(rng.random((n, n)) < density, 1)))
    return i, j, -rng.exponential(size=len(i)), rng.normal(size=n) * size


def energy(z, i, j, coupling, u):
    return z @ u + (z[..., i] * z[..., j]) @ coupling


@given(st.integers(1, 14), st.integers(0, 2**32), st.floats(0, 1), st.sampled_from([0, 0.1, 1, 5]))
def test_against_brute_force(n, seed, density, size):
    i, j, coupling, u = random_block(np.random.default_rng(seed), n, density, size)
    best = energy(oracle.all_codes(n).astype(float), i, j, coupling, u).min()
    z = minimum_cut(i, j, coupling, u)
    assert z.dtype == np.int8
    np.testing.assert_allclose(energy(z.astype(float), i, j, coupling, u), best, atol=1e-9)


@pytest.mark.parametrize("density", [0.02, 0.3])
@pytest.mark.parametrize("size", [0.5, 2, 8])
def test_against_a_max_flow_library(density, size):
    for seed in range(5):
        i, j, coupling, u = random_block(np.random.default_rng(seed), 300, density, size)
        inner = csr_array((2 * coupling, (i, j)), shape=(300, 300))
        other = MaxFlowCut.minimum_cut(csr_array(inner + inner.T), u).astype(float)
        z = minimum_cut(i, j, coupling, u).astype(float)
        ours, theirs = energy(z, i, j, coupling, u), energy(other, i, j, coupling, u)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)  # their capacities are rounded
        assert ours <= theirs + 1e-9 * abs(theirs)
