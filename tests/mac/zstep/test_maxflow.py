import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from auxhash.mac.zstep import maxflow
from auxhash.mac.zstep.graph import Edges
from benchmarks.peers import MaxFlowCut
from tests import oracle

SIZES = st.sampled_from([0, 0.1, 1, 5])


class Block:
    """Some points of a graph, attracted by each other and by points that are not among them."""

    def __init__(self, A, points, u):
        A = csr_array(A)
        A.sort_indices()
        none = np.empty(0)
        self.edges = Edges(
            A.indptr.astype(np.int64),
            A.indptr[1:].astype(np.int64),
            A.indices.astype(np.uint32),
            none.astype(np.uint8),
            none.astype(np.uint32),
            none.reshape(0, 0),
        )
        self.a, self.u, self.points = A.data, u, points
        self.inner = A[points][:, points].toarray()
        self.slack = -0.5 * self.inner.sum(axis=1)
        self.place = np.full(A.shape[0], -1, np.int32)
        self.place[points] = np.arange(len(points))
        self.tiny = maxflow.TINY * 2 * np.abs(u).sum()

    def cut(self):
        return maxflow.minimum_cut(self.points, self.place, self.edges, self.a, self.u, self.slack)

    def spread(self):
        return maxflow._spread(
            self.points, len(self.place), self.edges, self.a, self.u, self.slack, self.tiny
        )

    def network(self):
        """With the flow of the potentials."""
        return maxflow._network(self.points, self.place, self.edges, self.a, *self.spread())

    def flow(self, network):
        """Return the flow as a full matrix."""
        F = np.zeros((len(self.place), len(self.place)))
        for t, n in enumerate(self.points):
            for e in range(network.start[t], network.stop[t]):
                F[n, self.edges.indices[e]] = network.flow[e - network.shift[t]]
        assert not np.delete(F, self.points, axis=1).any()
        return F[np.ix_(self.points, self.points)]

    def energy(self, z):
        z = z.astype(float)
        return z @ self.u + 0.25 * np.einsum("...i,ij,...j", z, self.inner, z)

    def maximum_flow(self, scale):
        """The library's value, for capacities that are whole numbers times `scale`."""
        n = len(self.u)
        full = np.zeros((n + 2, n + 2), np.int32)
        full[:n, :n] = np.rint(-self.inner / scale)
        full[n, :n] = np.rint(np.maximum(0, -2 * self.u) / scale)
        full[:n, n + 1] = np.rint(np.maximum(0, 2 * self.u) / scale)
        return maximum_flow(csr_array(full), n, n + 1).flow_value * scale


def random_block(seed, n, density, size, others=3, scale=None):
    rng = np.random.default_rng(seed)
    shape = n + others, n + others
    upper = np.triu(rng.exponential(size=shape) * (rng.random(shape) < density), 1)
    u = rng.normal(size=n) * size
    if scale is not None:
        upper, u = scale * np.rint(upper / scale), scale * np.rint(u / scale)
    return Block(-(upper + upper.T), np.sort(rng.permutation(n + others)[:n]), u)


def grid(seed, side, size):
    """Each point attracted by its four neighbours only: excess has far to go."""
    rng = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    i = np.concatenate([number[1:].ravel(), number[:, 1:].ravel()])
    j = np.concatenate([number[:-1].ravel(), number[:, :-1].ravel()])
    A = csr_array((-rng.exponential(size=len(i)), (i, j)), shape=(side * side,) * 2)
    return Block(A + A.T, number.ravel(), rng.normal(size=side * side) * size)


@given(st.integers(1, 14), st.integers(0, 2**32), st.floats(0, 1), SIZES)
def test_against_brute_force(n, seed, density, size):
    block = random_block(seed, n, density, size)
    z = block.cut()
    assert z.dtype == np.int8
    np.testing.assert_allclose(block.energy(z), block.energy(oracle.all_codes(n)).min(), atol=1e-9)


def check_against_library(block):
    other = MaxFlowCut.minimum_cut(csr_array(block.inner), block.u)
    ours, theirs = block.energy(block.cut()), block.energy(other)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)  # their capacities are rounded
    assert ours <= theirs + 1e-9 * abs(theirs)


@pytest.mark.parametrize("density", [0.02, 0.3])
@pytest.mark.parametrize("size", [0.5, 2, 8])
def test_against_a_max_flow_library(density, size):
    for seed in range(5):
        check_against_library(random_block(seed, 300, density, size))


@pytest.mark.parametrize("size", [0.1, 1, 3])
def test_a_grid_against_a_max_flow_library(size):
    for seed in range(5):
        check_against_library(grid(seed, 25, size))


def check_flow(block, network):
    """Opposite in both directions, nowhere above the capacity, and supply is what it leaves."""
    F = block.flow(network)
    near = 1e-12 * (1 + np.abs(block.u).sum())
    np.testing.assert_allclose(F, -F.T, atol=near)
    assert (F <= -block.inner + near).all()
    np.testing.assert_allclose(network.supply, -2 * block.u - F.sum(axis=1), atol=near)


@given(st.integers(1, 30), st.integers(0, 2**32), st.floats(0, 1), SIZES)
def test_every_stage_leaves_a_flow_and_the_last_a_maximum_one(n, seed, density, size):
    scale = 2.0**-16
    block = random_block(seed, n, density, size, scale=scale)
    network = block.network()
    check_flow(block, network)
    before = np.maximum(0, network.supply).sum()
    maxflow._hop(network, block.tiny)
    check_flow(block, network)
    after = np.maximum(0, network.supply).sum()
    assert after <= before + 1e-12 * (1 + before)
    maxflow._push_relabel(network, block.tiny, np.empty(n, np.int32))
    check_flow(block, network)
    kept = np.maximum(0, network.supply).sum()
    sent = np.maximum(0, -2 * block.u).sum() - kept
    np.testing.assert_allclose(sent, block.maximum_flow(scale), atol=1e-9)


def test_a_hop_takes_each_excess_to_the_room_of_partners():
    """0 is the partner of 1 and 2, which have room for less than it has; 3 is out of reach."""
    A = np.zeros((4, 4))
    A[0, 1:3] = A[1:3, 0] = A[2, 3] = A[3, 2] = -10
    block = Block(A, np.arange(4), np.array([-3.0, 1.0, 1.0, 2.0]))
    supply = -2 * block.u
    network = maxflow._network(block.points, block.place, block.edges, block.a, np.zeros(4), supply)
    maxflow._hop(network, block.tiny)
    np.testing.assert_array_equal(network.supply, [2, 0, 0, -4])
    check_flow(block, network)


def test_a_dense_block_needs_no_more_than_potentials():
    block = random_block(0, 300, 0.5, 2.0)
    block.u += 0.1 - block.u.mean()
    supply = block.spread()[1]
    assert (block.u < 0).any()
    assert (supply < 0).all()
    np.testing.assert_array_equal(block.cut(), -1)


def test_points_that_reach_no_room_are_plus_one():
    block = Block(np.zeros((3, 3)), np.arange(3), np.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(block.cut(), [-1, 1, 1])
