"""The rank objective against its definition, written plainly, and against finite differences."""

import numpy as np
import pytest

from auxhash.compute import context, threads
from auxhash.learn.smooth.rank import Rank
from auxhash.learn.smooth.similar import Both, Neighbors, Partners, SameClass
from auxhash.mac import affinity


def soft_rank_loss(A, rows, size, similar, n, s, tau=0.5):
    """Mean log(R + 1/n), as the module's docstring has it, with loops."""
    U = np.tanh(s * A)
    b = A.shape[1]
    total = 0.0
    for i in range(size):
        one, other = rows[i], rows[size + i]
        nearer = []
        for m in rows[2 * size :]:
            if m == one or m in similar[one]:
                nearer.append(0.0)
                continue
            d_ij = (b - U[one] @ U[other]) / 2
            d_im = (b - U[one] @ U[m]) / 2
            nearer.append(1 / (1 + np.exp(-(d_ij - d_im) / tau)))
        total += np.log(np.mean(nearer) + 1 / n)
    return total / size


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 4, 40)
    classes[classes == 3] = 0
    classes[0] = 3  # alone in its class
    return rng.normal(size=(40, 5)), classes


def kinds(classes):
    n = len(classes)
    same = [{j for j in range(n) if classes[j] == classes[i]} for i in range(n)]
    table = np.random.default_rng(1).permuted(np.tile(np.arange(n - 1), (n, 1)), axis=1)[:, :3]
    table += table >= np.arange(n)[:, None]
    near = [set(row) for row in table.tolist()]
    return [(SameClass(classes), same), (Partners.of_table(table), near)]


@pytest.mark.parametrize("which", [0, 1])
def test_pull_is_the_gradient_of_the_definition(labelled, which):
    A, classes = labelled
    objective_similar, similar = kinds(classes)[which]
    objective = Rank(objective_similar, batch=7, sample=15)
    rows = next(objective.batches(np.random.default_rng(2)))
    s = 0.8
    with context.using(n_jobs=2), threads.pool() as run:
        pull = objective.pull(lambda r: A[r].astype(np.float32), rows, np.float32(s), run)
    # A point may stand in the batch several times: its pulls are added up.
    total = np.zeros_like(A)
    np.add.at(total, rows, pull)
    for n, k in [(int(n), k) for n in np.unique(rows)[::3] for k in range(5)]:
        moved = [A.copy() for _ in range(2)]
        moved[0][n, k] -= 1e-5
        moved[1][n, k] += 1e-5
        low, high = (soft_rank_loss(B, rows, 7, similar, len(A), s) for B in moved)
        assert total[n, k] == pytest.approx((high - low) / 2e-5, rel=2e-3, abs=2e-5)


def test_drawn_points_are_similar_and_all_of_them_are_drawn(labelled):
    _, classes = labelled
    for similar, sets in kinds(classes):
        rows = similar.usable()
        seen = [set() for _ in sets]
        rng = np.random.default_rng(0)
        for _ in range(300):
            for i, j in zip(rows, similar.draw(rows, rng), strict=True):
                seen[i].add(int(j))
        for i in rows:
            assert seen[i] == sets[i] - {int(i)}
        assert {i for i in range(len(sets)) if sets[i] - {i}} == set(rows.tolist())


def test_among_says_who_is_similar(labelled):
    _, classes = labelled
    rng = np.random.default_rng(0)
    rows, sample = rng.permutation(40)[:9], rng.permutation(40)[:20]
    for similar, sets in kinds(classes):
        wanted = np.array([[m == i or m in sets[i] for m in sample] for i in rows])
        for part in (slice(0, 9), slice(2, 5), slice(5, 6)):
            table = np.ones((part.stop - part.start, 20))
            similar.among(rows, similar.draw(rows, rng), sample).clear(table, part)
            np.testing.assert_array_equal(table == 0, wanted[part])


def test_among_neighbours_in_order_are_those_up_to_the_drawn_one():
    table = np.array([[1, 2, 3], [2, 3, 0], [3, 0, 1], [0, 1, 2]])
    rows, drawn = np.array([2, 0, 1]), np.array([0, 1, 0])
    left = np.ones((3, 4))
    Neighbors.of_table(table).among(rows, drawn, np.arange(4)).clear(left, slice(0, 3))
    np.testing.assert_array_equal(left, [[0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]])


def test_partners_of_an_affinity_are_its_similar_pairs_both_ways():
    pairs = affinity.from_pairs([0, 1, 2, 4], [1, 2, 3, 0], [1, -1, 1, 1], n_points=6)
    partners = Partners.of_affinity(pairs)
    lists = [
        sorted(partners.indices[a:b].tolist())
        for a, b in zip(partners.indptr[:-1], partners.indptr[1:], strict=True)
    ]
    assert lists == [[1, 4], [0], [3], [2], [0], []]
    assert partners.usable().tolist() == [0, 1, 2, 3, 4]
    far = affinity.from_pairs([0, 1], [1, 2], [0.0, 1.0], n_points=3, kind="distance")
    assert Partners.of_affinity(far).usable().tolist() == [0, 1]  # distance 0 is similar, 1 is not


def test_typical_rank_counts_ties_as_half(labelled):
    A, classes = labelled
    similar, sets = kinds(classes)[0]
    objective = Rank(similar, batch=6, sample=40)
    rows = next(objective.batches(np.random.default_rng(3)))
    Z = np.where(A < 0, -1, 1)
    ranks = []
    for i, j in zip(rows[:6], rows[6:12], strict=True):
        others = [m for m in range(40) if m not in sets[i]]
        score = Z[others] @ Z[i]
        ranks.append(1 + (score > Z[i] @ Z[j]).sum() + 0.5 * (score == Z[i] @ Z[j]).sum())
    result = objective.vector_rank(Z[rows].astype(np.float32), rows)
    assert result == pytest.approx(np.exp(np.log(ranks).mean()))


def test_both_kinds_at_once(labelled):
    _, classes = labelled
    (first, same), (second, near) = kinds(classes)
    either = [one | other for one, other in zip(same, near, strict=True)]
    both = Both(first, second, 0.5)
    rows = both.usable()
    assert rows.tolist() == first.usable().tolist()  # every point has neighbours
    seen = [set() for _ in either]
    rng = np.random.default_rng(0)
    for _ in range(400):
        for i, j in zip(rows, both.draw(rows, rng), strict=True):
            seen[i].add(int(j))
    assert all(seen[i] == either[i] - {int(i)} for i in rows)
    table = np.ones((len(rows), 40))
    both.among(rows, both.draw(rows, rng), np.arange(40)).clear(table, slice(0, len(rows)))
    wanted = [[m == i or m in either[i] for m in range(40)] for i in rows]
    np.testing.assert_array_equal(table == 0, wanted)
