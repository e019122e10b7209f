import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.mac import affinity
from auxhash.mac.affinity import Affinity


def draws(A: Affinity) -> np.ndarray:
    """Count how often each point took part."""
    return np.bincount(A.i, A.weight, A.n_points) + np.bincount(A.j, A.weight, A.n_points)


@given(st.integers(0, 2**32), st.integers(5, 60), st.integers(2, 4))
def test_labels_give_the_numbers_asked_for(seed, n, n_classes):
    y = np.random.default_rng(seed).permutation(np.arange(n) % n_classes)
    A = affinity.from_labels(y, 2, 3, random_state=seed)
    np.testing.assert_array_equal(A.y > 0, y[A.i] == y[A.j])
    assert (A.i < A.j).all()
    pairs = A.i.astype(np.int64) * n + A.j
    assert len(np.unique(pairs)) == len(A)  # labels never give a pair two values
    assert A.weight.max() <= 2  # once from each side: draws are without replacement
    size = np.bincount(y)[y]
    assert A.weight.sum() == np.minimum(2, size - 1).sum() + np.minimum(3, n - size).sum()


def test_every_partner_is_equally_likely():
    y = np.repeat([0, 1], [20, 40])
    counts = np.zeros((60, 60))
    for seed in range(300):
        A = affinity.from_labels(y, 5, 10, random_state=seed)
        counts[A.i, A.j] += A.weight
    counts += counts.T
    # A pair of the class of 20 is drawn from both sides with chance 5/19 each, and so on.
    expected = np.where(y[:, None] == y, 10 / (np.bincount(y)[y] - 1)[:, None], 10 / 40 + 10 / 20)
    np.fill_diagonal(expected, 0)
    error = np.abs(counts / 300 - expected) / np.sqrt(np.maximum(expected, 1e-9) / 300)
    assert error.max() < 5


def test_all_pairs():
    y = np.array([0, 0, 1, 1, 1])
    A = affinity.from_labels(y, None, None)
    assert len(A) == 10
    assert (A.weight == 2).all()
    assert (draws(A) == 8).all()


def test_several_labels_share_at_least_one():
    rng = np.random.default_rng(0)
    labels = rng.random((50, 11)) < 0.15
    A = affinity.from_labels(labels.astype(int), 4, 6, random_state=0)
    np.testing.assert_array_equal(A.y > 0, (labels[A.i] & labels[A.j]).any(1))
    assert A.groups is None


def test_too_few_similar_points_warn_once():
    y = np.array([0, 0, 0, 1, 1, 1, 1])
    with pytest.warns(
        UserWarning, match="of 7 points, 3 points have fewer than n_similar=3; all"
    ) as caught:
        A = affinity.from_labels(y, 3, 3)
    assert len(caught) == 1
    assert A.weight[A.y > 0].sum() == 3 * 2 + 4 * 3


def test_same_seed_same_draws_on_any_number_of_threads():
    y = np.arange(3000) % 7
    one, two = (affinity.from_labels(y, 5, 9, random_state=3, n_jobs=n) for n in (1, 4))
    other = affinity.from_labels(y, 5, 9, random_state=4)
    np.testing.assert_array_equal(one.i, two.i)
    np.testing.assert_array_equal(one.j, two.j)
    assert len(one) != len(other) or (one.j != other.j).any()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_neighbours(metric):
    X = np.random.default_rng(0).normal(size=(80, 3))
    A = affinity.from_neighbors(X, 4, 10, metric, random_state=0)
    P = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    D = ((P[:, None] - P) ** 2).sum(2)
    np.fill_diagonal(D, np.inf)
    near = np.zeros((80, 80), bool)
    near[np.arange(80)[:, None], np.argsort(D, axis=1)[:, :4]] = True
    drawn = np.zeros((80, 80))
    np.add.at(drawn, (A.i[A.y > 0], A.j[A.y > 0]), A.weight[A.y > 0])
    np.testing.assert_array_equal(drawn, np.triu(near + near.T.astype(float)))
    assert A.weight[A.y < 0].sum() == 800
    # A pair drawn as near from one side and as far from the other carries both values.
    pairs = A.i.astype(np.int64) * 80 + A.j
    assert len(np.unique(pairs)) < len(A)


def test_neighbours_with_distances():
    X = np.random.default_rng(1).normal(size=(30, 2))
    A = affinity.from_neighbors(X, 3, 5, values="distance", random_state=0)
    D = ((X[A.i] - X[A.j]) ** 2).sum(1)
    assert A.kind == "distance"
    np.testing.assert_allclose(A.y, D / D.max())
    assert A.weight.sum() == 30 * 8


def test_zeros_and_ones_are_likely_not_meant():
    with pytest.warns(UserWarning, match="where it is to say dissimilar, give -1"):
        affinity.from_pairs([0, 1], [1, 2], [0, 1], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        affinity.from_pairs([0, 1], [1, 2], [-1, 1], 3)
        affinity.from_pairs([0, 1], [1, 2], [0, 0.5], 3)
        affinity.from_pairs([0, 1], [1, 2], [0, 1], 3, kind="distance")


def test_pairs_fold():
    A = affinity.from_pairs([0, 2, 1, 2], [1, 0, 0, 0], [0.5, 1, 0.5, -1], 3, weight=[1, 2, 3, 4])
    np.testing.assert_array_equal(A.i, [0, 0, 0])
    np.testing.assert_array_equal(A.j, [1, 2, 2])
    np.testing.assert_array_equal(A.y, [0.5, -1, 1])
    np.testing.assert_array_equal(A.weight, [4, 4, 2])


def test_distances_and_similarities_convert_both_ways():
    A = affinity.from_pairs([0, 1], [1, 2], [0.0, 5.0], 3, kind="distance")
    np.testing.assert_array_equal(A.y, [0, 1])
    np.testing.assert_array_equal(A.read_as("similarity"), [1, -1])
    B = affinity.from_pairs([0, 1], [1, 2], [1.0, -1.0], 3)
    np.testing.assert_array_equal(B.read_as("distance"), [0, 1])


def test_subset_renumbers():
    y = np.arange(40) % 3
    A = affinity.from_labels(y, 4, 6, random_state=0)
    index = np.random.default_rng(0).permutation(40)[:25]
    B = A.subset(index)
    kept = np.isin(A.i, index) & np.isin(A.j, index)
    assert len(B) == kept.sum()
    assert (B.i < B.j).all()
    assert {frozenset(p) for p in zip(index[B.i], index[B.j], strict=True)} == {
        frozenset(p) for p in zip(A.i[kept], A.j[kept], strict=True)
    }
    np.testing.assert_array_equal(B.y > 0, y[index][B.i] == y[index][B.j])
    np.testing.assert_array_equal(B.groups, A.groups[index])
    mask = np.zeros(40, bool)
    mask[:10] = True
    assert A.subset(mask).n_points == 10


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: affinity.from_labels([1, 1, 1]), "at least two classes"),
        (lambda: affinity.from_labels([1, 2, 3]), "no similar pairs"),
        (lambda: affinity.from_labels(np.ones((2, 2, 2))), "shape"),
        (lambda: affinity.from_labels([[2, 0], [0, 1]]), "only 0 and 1"),
        (lambda: affinity.from_labels([0, 1, 0], n_similar=0), "n_similar must"),
        (lambda: affinity.from_labels([0, 1, 0], n_dissimilar=1.5), "n_dissimilar must"),
        (lambda: affinity.from_neighbors([[1.0], [2.0]]), "n >= 3"),
        (lambda: affinity.from_neighbors([[1.0], [np.nan], [2]]), "NaN"),
        (lambda: affinity.from_neighbors(1j * np.ones((9, 1)), 2), "real numbers"),
        (lambda: affinity.from_neighbors(np.ones((9, 1)), None), "n_similar must be a number"),
        (lambda: affinity.from_neighbors(np.ones((9, 1)), 2, values="no"), "values must"),
        (lambda: affinity.from_neighbors(np.ones((9, 1)), 2, metric="no"), "metric must"),
        (lambda: affinity.from_pairs([0], [0], [1], 2), "with itself"),
        (lambda: affinity.from_pairs([0], [2], [1], 2), "0..1"),
        (lambda: affinity.from_pairs([0], [1, 0], [1], 2), "one length"),
        (lambda: affinity.from_pairs([], [], [], 2), "at least one pair"),
        (lambda: affinity.from_pairs([0], [1], [np.nan], 2), "NaN"),
        (lambda: affinity.from_pairs([0], [1], [-1], 2, "distance"), "negative"),
        (lambda: affinity.from_pairs([0], [1], [1], 2, "kind"), "kind must"),
        (lambda: affinity.from_pairs([0], [1], [1], 2, weight=[0]), "weight must"),
        (lambda: affinity.from_pairs([0], [1], [1], 2).subset([0, 0]), "twice"),
        (lambda: affinity.from_pairs([0], [1], [1], 2).subset([2]), "0..1"),
        (lambda: affinity.from_pairs([0], [1], [1], 2).subset([True]), "boolean"),
    ],
)
def test_bad_arguments(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_folding_has_room_for_any_number_of_values():
    """n^2 times the number of values is beyond 2^63 here."""
    n = 2**31 - 1
    i, j = np.array([n - 1, 5, n - 1, 5, 0]), np.array([n - 2, 6, n - 2, 7, n - 1])
    pairs = affinity.from_pairs(i, j, [0.5, 0.25, 0.5, -1.0, 0.125], n)
    assert pairs.i.tolist() == [0, 5, 5, n - 2]
    assert pairs.j.tolist() == [n - 1, 6, 7, n - 1]
    assert pairs.y.tolist() == [0.125, 0.25, -1.0, 0.5]
    assert pairs.weight.tolist() == [1, 1, 1, 2]


@given(st.integers(2, 2**31 - 1), st.integers(0, 2**32))
def test_folding_against_a_dictionary(n, seed):
    rng = np.random.default_rng(seed)
    some = rng.integers(0, n, 6)
    i, j = rng.choice(some, 40), rng.choice(some, 40)
    i, j = i[i != j], j[i != j]
    y, weight = rng.integers(0, 4, len(i)) / 4, rng.integers(1, 5, len(i))
    if not len(i):
        return
    expected = {}
    for a, b, value, w in zip(i.tolist(), j.tolist(), y, weight, strict=True):
        key = min(a, b), max(a, b), value
        expected[key] = expected.get(key, 0) + w
    pairs = affinity.from_pairs(i, j, y, n, weight=weight)
    keys = zip(pairs.i.tolist(), pairs.j.tolist(), pairs.y, strict=True)
    assert dict(zip(keys, pairs.weight, strict=True)) == expected


def test_pairs_given_by_hand_are_checked():
    ones = np.ones(1)
    for i, j in ((-1, 1), (1, 1), (2, 1), (0, 3)):
        with pytest.raises(ValueError, match="0 <= i < j < n_points=3"):
            affinity.Affinity(np.array([i], np.int32), np.array([j], np.int32), ones, ones, 3)


def test_a_column_of_labels():
    y = np.random.default_rng(0).integers(0, 3, 60)
    column = affinity.from_labels(y[:, None], 5, 10, random_state=0)
    plain = affinity.from_labels(y, 5, 10, random_state=0)
    np.testing.assert_array_equal(column.y, plain.y)
    np.testing.assert_array_equal(column.j, plain.j)


@pytest.mark.parametrize("y", [[0.0, np.nan, 1, 1], [[0, 2], [1, 0], [1, 1], [0, 1]]])
def test_labels_that_are_none(y):
    with pytest.raises(ValueError, match=r"missing|0 and 1"):
        affinity.from_labels(y)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"i": [0.0]}, "i must be an array"),
        ({"j": [[1]]}, "j must be an array"),
        ({"y": [np.nan]}, "y must be"),
        ({"weight": [np.nan]}, "weight must be"),
        ({"weight": [-1.0]}, "weight must be above 0"),
        ({"kind": "dist"}, "kind must be"),
        ({"groups": [0.5, 1.0]}, "groups must be"),
    ],
)
def test_an_affinity_made_by_hand_is_checked(changes, says):
    parts = {"i": [0], "j": [1], "y": [1.0], "weight": [1.0], "n_points": 2}
    assert Affinity(**parts).i.dtype == np.int32
    with pytest.raises(ValueError, match=says):
        Affinity(**(parts | changes))


def test_masked_pairs_and_points_are_refused():
    masked = np.ma.array([0, 1], mask=[False, True])
    for parts in ((masked, [2, 2], [1, 1]), ([0, 1], [2, 2], masked)):
        with pytest.raises(ValueError, match="row 1 is masked"):
            affinity.from_pairs(*parts, n_points=3)
    with pytest.raises(ValueError, match="X must not be missing"):
        affinity.from_neighbors(np.ma.array(np.eye(5), mask=np.eye(5)), 1, 1)


def test_weights_that_add_up_to_infinity_are_refused():
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="weight"):
        affinity.from_pairs([0, 0], [1, 1], [1, 1], 2, weight=[1e308, 1e308])


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e160, 1e300])
def test_distances_at_any_scale(scale):
    X = np.random.default_rng(0).normal(size=(30, 3))
    expected = affinity.from_neighbors(X, 3, 5, values="distance", random_state=0)
    pairs = affinity.from_neighbors(X * scale, 3, 5, values="distance", random_state=0)
    np.testing.assert_allclose(pairs.y, expected.y, rtol=1e-9)


@pytest.mark.parametrize("y", [[], [1]])
def test_too_few_labels(y):
    with pytest.raises(ValueError, match=f"at least two points, got {len(y)}"):
        affinity.from_labels(y)


def test_the_number_of_neighbours_is_checked_first():
    with pytest.raises(ValueError, match="n_similar must be a whole number"):
        affinity.from_neighbors(np.eye(5), "2", 2)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("values", ["sign", "distance"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, bool])
def test_neighbours_of_any_kind_of_numbers(dtype, values, metric, tmp_path):
    """They are those of the numbers in double precision, a memory map too: bytes do not wrap."""
    X = np.random.default_rng(0).integers(0, 256, (60, 5)).astype(dtype)
    path = tmp_path / "X.npy"
    np.save(path, X)
    settings = {"metric": metric, "values": values, "random_state": 0}
    want = affinity.from_neighbors(X.astype(np.float64), 4, 9, **settings)
    for stored in (X, np.load(path, mmap_mode="r")):
        pairs = affinity.from_neighbors(stored, 4, 9, **settings)
        for name in ("i", "j", "y", "weight"):
            np.testing.assert_array_equal(getattr(pairs, name), getattr(want, name))
