"""The Z step on a GPU against that of the processor, which tests/zstep holds against an oracle."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest

from auxhash.compute import random
from auxhash.mac import affinity
from auxhash.mac.affinity.gpu import DeviceAffinity, from_labels
from auxhash.mac.zstep import Penalty, Problem, get, problem_on, z_step
from auxhash.mac.zstep import gpu as zstep_gpu
from auxhash.mac.zstep.gpu import on_grid


def signs(rng, *shape):
    return (2 * rng.integers(0, 2, shape) - 1).astype(np.int8)


def drawn(gpu, y, n_similar, n_dissimilar, seed):
    return DeviceAffinity(gpu, y, n_similar, n_dissimilar, random.seed(seed))


def listed(gpu, edges):
    """The edges of each point, as rising lists of (partner, row)."""
    indptr, indices, row = (gpu.fetch(part) for part in edges)
    pairs = np.split(np.stack([indices, row], axis=1), indptr[1:-1])
    return [sorted(map(tuple, part.tolist())) for part in pairs]


def real_valued(rng, n):
    i, j = rng.integers(0, n, (2, 12 * n))
    apart = i != j
    y = rng.normal(size=12 * n).clip(-1, 1)
    weight = rng.random(12 * n) + 0.1
    return affinity.from_pairs(i[apart], j[apart], y[apart], n, weight=weight[apart])


@pytest.mark.parametrize("sizes", [(3, 5), (100, 500), (1, 2)])
def test_the_same_pairs_are_drawn(gpu, rng, sizes):
    y = rng.choice(["a", "b", "c", "rare"], 40, p=[0.4, 0.3, 0.25, 0.05])
    with np.errstate(all="ignore"), pytest.warns() if sizes[0] > 1 else nullcontext():
        here = affinity.from_labels(y, *sizes, 7)
        there = drawn(gpu, y, *sizes, 7)
    expected = [[] for _ in range(40)]
    for i, j, value, weight in zip(here.i, here.j, here.y, here.weight, strict=True):
        for one, other in ((i, j), (j, i)):
            expected[one] += [(other, int(value > 0))] * int(weight)
    assert listed(gpu, there.edges) == [sorted(part) for part in expected]
    assert there.total_weight() == here.total_weight()
    classes = np.unique(y, return_inverse=True)[1]
    np.testing.assert_array_equal(there.class_weights(classes), here.class_weights(classes))
    later = there.on_processor()
    assert len(later) == len(here)
    np.testing.assert_array_equal(later.j, here.j)
    np.testing.assert_array_equal(later.weight, here.weight)


def test_what_is_not_drawn_there_is_drawn_here(gpu, rng):
    y = rng.integers(0, 2, (30, 3))
    pairs = from_labels(gpu, y, 4, 4, rng)
    assert not isinstance(pairs, DeviceAffinity)
    pairs = from_labels(gpu, y[:, 0], None, 4, rng)
    assert not isinstance(pairs, DeviceAffinity)


@pytest.mark.parametrize("b", [1, 5, 64, 70, 130])
@pytest.mark.parametrize("loss", ["ksh", "esplh"])
@pytest.mark.parametrize("kind", ["drawn", "real"])
def test_it_is_the_problem_of_the_processor(gpu, rng, b, loss, kind):
    n = 30
    if kind == "real":
        here = there = real_valued(rng, n)
    else:
        y = rng.integers(0, 3, n)
        here, there = affinity.from_labels(y, 4, 6, 3), drawn(gpu, y, 4, 6, 3)
    a, c = Problem(here, loss, b), problem_on(gpu, there, loss, b)
    Z, H = signs(rng, n, b), signs(rng, n, b)
    Zc, Hc = gpu.put(Z), gpu.put(H)
    np.testing.assert_array_equal(gpu.fetch(c.to_words(Zc)), a.to_words(Z))
    np.testing.assert_array_equal(gpu.fetch(c.to_codes(c.to_words(Zc))), Z)
    assert c.loss(Zc) == pytest.approx(a.loss(Z), rel=1e-9)
    np.testing.assert_allclose(gpu.fetch(c.fields(Zc)), a.fields(Z), rtol=0, atol=1e-9)
    assert c.last_mu == pytest.approx(a.last_mu, rel=1e-9)
    there = np.sort(gpu.fetch(c.flip_thresholds(Zc, Hc)))
    np.testing.assert_allclose(there, np.sort(a.flip_thresholds(Z, H)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("threads", [1024, 512, 256])
def test_all_colours_in_one_launch(gpu, rng, monkeypatch, threads):
    """The codes are those of one launch after the other, however many threads share a point."""
    problem = problem_on(gpu, drawn(gpu, rng.integers(0, 4, 300), 6, 20, 1), "ksh", 20)
    penalty = Penalty(gpu.put(signs(rng, 300, 20)), 0.2 * problem.last_mu)
    Z = gpu.put(signs(rng, 300, 20))
    codes = []
    for sharing in ((), (threads,)):
        monkeypatch.setattr(zstep_gpu, "THREADS_PER_POINT", sharing)
        result = z_step(problem, Z, penalty, get("descent"), 2, np.random.default_rng(0))
        codes.append(gpu.fetch(result.Z))
    np.testing.assert_array_equal(*codes)


def test_points_with_more_edges_than_a_block_holds(gpu, rng):
    """Two hubs, paired with all others: a sweep visits their bits one after the other."""
    n, b = 1800, 70
    i, j = np.triu_indices(n, 1)
    y = rng.choice([-1.0, 1.0], len(i))
    pairs = affinity.from_pairs(i[i < 2], j[i < 2], y[i < 2], n)
    here, there = Problem(pairs, "ksh", b), problem_on(gpu, pairs, "ksh", b)
    H, mu = signs(rng, n, b), 0.02 * here.last_mu  # more than the two pairs of the others pull
    Z = H.copy()
    Z[:2] = signs(rng, 2, b)
    result = z_step(there, gpu.put(Z), Penalty(gpu.put(H), mu), get("descent"), 1, rng)

    linear = Penalty(H, mu).linear()
    order = gpu.fetch(there.colours.order)
    for hub in order[order < 2]:
        for k in range(b):
            if Z[hub, k] * (here.fields(Z) + linear)[hub, k] > 0:
                Z[hub, k] *= -1
    np.testing.assert_array_equal(gpu.fetch(result.Z), Z)


@pytest.mark.parametrize("b", [3, 66])
def test_a_sweep_never_raises_the_loss_and_ends_where_no_flip_lowers_it(gpu, rng, b):
    y = rng.integers(0, 4, 40)
    problem = problem_on(gpu, drawn(gpu, y, 4, 9, 1), "ksh", b)
    H = gpu.put(signs(rng, 40, b))
    penalty = Penalty(H, 0.3 * problem.last_mu)
    Z = gpu.put(signs(rng, 40, b))
    values = [problem.penalized(Z, penalty)]
    for _ in range(30):
        result = z_step(problem, Z, penalty, get("descent"), 1, rng)
        assert result.value == pytest.approx(problem.penalized(result.Z, penalty), rel=1e-12)
        values.append(result.value)
        Z = result.Z
        if result.converged:
            break
    assert result.converged
    assert all(after <= before + 1e-9 for before, after in pairwise(values))
    change = -2 * gpu.fetch(Z) * (gpu.fetch(problem.fields(Z)) + gpu.fetch(penalty.linear()))
    assert change.min() >= -1e-9 * problem.last_mu


def test_no_pair_has_one_colour(gpu, rng):
    y = rng.integers(0, 3, 60)
    problem = problem_on(gpu, drawn(gpu, y, 5, 8, 1), "ksh", 4)
    order, starts = (gpu.fetch(part) for part in problem.colours[:2])
    colour = np.empty(60, int)
    for k, points in enumerate(np.split(order, starts[1:-1])):
        colour[points] = k
    assert sorted(order) == list(range(60))
    indptr, indices = gpu.fetch(problem.edges.indptr), gpu.fetch(problem.edges.indices)
    assert (colour[np.repeat(np.arange(60), np.diff(indptr))] != colour[indices]).all()


def test_sums_on_a_grid_are_exact_in_any_order(rng):
    table = on_grid(rng.normal(size=(3, 9)), 5000)
    terms = rng.choice(table.ravel(), 5000)
    assert len({float(np.cumsum(rng.permutation(terms))[-1]) for _ in range(20)}) == 1
    assert on_grid(np.zeros((2, 3)), 10).tolist() == np.zeros((2, 3)).tolist()
