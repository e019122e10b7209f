"""Pulls against sums over all pairs, with slopes by hand."""

import numpy as np
import pytest

from auxhash.compute import context, threads
from auxhash.learn.smooth import pairs as refine_pairs
from auxhash.learn.smooth.pairs import AffinityPairs, FreshPairs, objective_for
from auxhash.mac import affinity, losses
from auxhash.mac.zstep import Problem

B = 6
S = np.float32(1.7)


def smooth_loss(A, pairs, loss):
    """Mean loss of the pairs at real distances, the table's values joined by parabolas."""
    U = np.tanh(S * A)
    d = (B - (U[pairs.i] * U[pairs.j]).sum(1)) / 2
    y = pairs.read_as(getattr(loss, "reads", "similarity"))
    return (pairs.weight * loss(d, y, B)).sum() / pairs.weight.sum()


def slope_of(A, value, at, width=1e-5):
    up, down = A.copy(), A.copy()
    up[at] += width
    down[at] -= width
    return (value(up) - value(down)) / (2 * width)


def outputs_of(A):
    return lambda rows: A[rows].astype(np.float32)


@pytest.mark.parametrize("loss", [losses.ksh, losses.bre])  # whose slopes are linear in d
@pytest.mark.parametrize("real", [False, True])
def test_given_pairs_are_exact(loss, real):
    rng = np.random.default_rng(0)
    n = 40
    i, j = rng.integers(0, n, (2, 700))
    i, j = i[i != j], j[i != j]
    y = rng.random(len(i)) if real else rng.choice([0.0, 1.0], len(i))
    pairs = affinity.from_pairs(i, j, y, n, kind="distance")
    A = rng.normal(size=(n, B))
    of_pairs = AffinityPairs(Problem(pairs, loss, B))
    rows = np.array([5, 0, 33])
    with context.using(n_jobs=2), threads.pool() as run:
        pull = of_pairs.pull(outputs_of(A), rows, S, run)
    for q, k in ((0, 0), (1, 3), (2, 5)):
        exact = slope_of(A, lambda A: smooth_loss(A, pairs, loss), (rows[q], k))
        assert pull[q, k] == pytest.approx(exact, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("rows", [[5, 0, 33], [7], list(range(60))])
def test_only_the_outputs_of_the_batch_and_its_partners_are_computed(rows, monkeypatch):
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 200, (2, 300))
    i, j = i[i != j], j[i != j]
    A, rows = rng.normal(size=(200, B)), np.array(rows)
    of_pairs = AffinityPairs(
        Problem(affinity.from_pairs(i, j, rng.normal(size=len(i)), 200), "ksh", B)
    )
    asked = []

    def outputs(wanted):
        asked.append(wanted)
        return outputs_of(A)(wanted)

    with context.using(n_jobs=1), threads.pool() as run:
        expected = of_pairs.pull(outputs, rows, S, run)
        monkeypatch.setattr(refine_pairs, "ALL_OUTPUTS_UP_TO", 0)
        np.testing.assert_array_equal(of_pairs.pull(outputs, rows, S, run), expected)
    partners = [*rows, *j[np.isin(i, rows)], *i[np.isin(j, rows)]]
    assert asked[0] == slice(None)
    if 2 * len(set(partners)) < 200:
        np.testing.assert_array_equal(asked[1], np.unique(partners))
    else:
        assert asked[1] == slice(None)


@pytest.mark.parametrize("loss", [losses.esplh, losses.ee, losses.hinge])
def test_any_other_loss_has_nearly_its_slope(loss):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 30)
    pairs = affinity.from_labels(labels, 5, 9, 0)
    A = rng.normal(size=(30, B))
    of_pairs = AffinityPairs(Problem(pairs, loss, B))
    with context.using(n_jobs=1), threads.pool() as run:
        pull = of_pairs.pull(outputs_of(A), np.arange(30), S, run)
    exact = np.array(
        [
            [slope_of(A, lambda A: smooth_loss(A, pairs, loss), (n, k)) for k in range(B)]
            for n in range(30)
        ]
    )
    assert np.corrcoef(pull.ravel(), exact.ravel())[0, 1] > 0.98


def test_fresh_pairs_are_all_pairs_when_all_are_given():
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1, 2], [12, 20, 7])
    pairs = affinity.from_labels(labels, None, None, 0)
    problem = Problem(pairs, "ksh", B)
    A = rng.normal(size=(len(labels), B))
    rows = np.arange(len(labels))
    with context.using(n_jobs=2), threads.pool() as run:
        expected = AffinityPairs(problem).pull(outputs_of(A), rows, S, run)
        fresh = objective_for(problem, "fresh", 1000).pull(outputs_of(A), rows, S, run)
    np.testing.assert_allclose(fresh, expected, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("loss", ["ksh", "bre"])
def test_pairs_of_a_class_are_summed_without_looking_at_them(loss):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 5, 90)
    fresh = FreshPairs(Problem(affinity.from_labels(labels, 9, 20, 0), loss, B), labels)
    U = rng.uniform(-1, 1, (40, B)).astype(np.float32)
    classes = labels[:40] % 4  # one class is not in the batch
    with context.using(n_jobs=2), threads.pool() as run:
        one_by_one = fresh._pair_by_pair(U, classes, run)
    assert fresh.line is not None
    summed = fresh._class_by_class(U, classes, *fresh.line)
    np.testing.assert_allclose(summed, one_by_one, atol=1e-5 * np.abs(one_by_one).max())


@pytest.mark.parametrize("loss", ["esplh", "ee", "hinge"])
def test_other_losses_are_no_lines(loss):
    labels = np.repeat([0, 1], 30)
    assert FreshPairs(Problem(affinity.from_labels(labels, 9, 20, 0), loss, B), labels).line is None


def test_batches_of_fresh_pairs_agree_with_all_pairs_on_average():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1], [30, 10])
    problem = Problem(affinity.from_labels(labels, 4, 6, 0), "ksh", B)
    A = rng.normal(size=(40, B))
    fresh = objective_for(problem, "auto", 1000)
    assert isinstance(fresh, FreshPairs)
    everyone = np.arange(40)
    total, count = np.zeros((40, B)), np.zeros((40, 1))
    with context.using(n_jobs=1), threads.pool() as run:
        full = fresh.pull(outputs_of(A), everyone, S, run)
        for _ in range(3000):
            rows = rng.permutation(40)[:20]
            total[rows] += fresh.pull(outputs_of(A), rows, S, run)
            count[rows] += 1
    mean = total / count
    assert np.corrcoef(mean.ravel(), full.ravel())[0, 1] > 0.99
    assert (mean * full).sum() / (full * full).sum() == pytest.approx(1, abs=0.01)


def test_fresh_pairs_only_where_classes_made_them():
    labels = np.repeat([0, 1], 30)
    drawn = affinity.from_labels(labels, 4, 6, 0)
    assert isinstance(objective_for(Problem(drawn, "ksh", B), "auto", 1000), FreshPairs)
    assert isinstance(objective_for(Problem(drawn, "ksh", B), "given", 1000), AffinityPairs)
    # Too many classes for a batch: hardly any point would meet its like.
    assert isinstance(objective_for(Problem(drawn, "ksh", B), "auto", 19), AffinityPairs)
    own = affinity.from_pairs(drawn.i, drawn.j, drawn.y, 60)
    assert isinstance(objective_for(Problem(own, "ksh", B), "auto", 1000), AffinityPairs)
    with pytest.raises(ValueError, match="drawn from classes"):
        objective_for(Problem(own, "ksh", B), "fresh", 1000)
    y = drawn.y.copy()
    y[0] = -y[0]
    odd = affinity.Affinity(drawn.i, drawn.j, y, drawn.weight, 60, groups=labels)
    assert isinstance(objective_for(Problem(odd, "ksh", B), "auto", 1000), AffinityPairs)


def test_classes_that_are_known_are_those_that_the_pairs_tell():
    labels = np.random.default_rng(0).permutation(np.repeat(["b", "a", "c"], (5, 20, 30)))
    drawn = affinity.from_labels(labels, 4, 6, 0)
    assert drawn.by_class
    again = affinity.Affinity(drawn.i, drawn.j, drawn.y, drawn.weight, 55, groups=drawn.groups)
    assert not again.by_class
    known = refine_pairs.classes_of(drawn)
    np.testing.assert_array_equal(known, refine_pairs.classes_of(again))
    np.testing.assert_array_equal(known, np.searchsorted(["a", "b", "c"], labels))
    # Others of the same pairs are not known to be right.
    assert refine_pairs.classes_of(drawn.grouped(np.zeros(55, int))) is None
    few = refine_pairs.classes_of(drawn.subset(np.flatnonzero(labels != "b")))
    np.testing.assert_array_equal(few, (labels[labels != "b"] == "c").astype(int))
    several = affinity.from_labels(np.eye(3, dtype=int)[known], 4, 6, 0)
    assert not several.by_class
