"""Supervised hashing with kernels: products with S, the ascent, and the objective y'Ry."""

import numpy as np
import pytest

from auxhash.compute import context, threads
from auxhash.learn import baselines
from auxhash.learn.baselines import ksh
from auxhash.learn.baselines.ksh import ascend, similarity_of_labels, similarity_of_pairs, whitened
from auxhash.mac import affinity


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    return rng.standard_normal((150, 5)) + 2 * np.eye(5)[y], y


def similarity(y):
    return np.where(y[:, None] == y, 1.0, -1.0)


def test_products_with_s_from_labels_and_from_pairs(data):
    _, y = data
    V = np.random.default_rng(1).standard_normal((150, 4))
    S = similarity(y)
    np.testing.assert_allclose(similarity_of_labels(y)(V), S @ V)
    np.testing.assert_allclose(similarity_of_labels(y)(V[:, 0]), S @ V[:, 0])
    pairs = affinity.from_labels(y, None, None)
    with context.using(n_jobs=2), threads.pool() as run:
        np.testing.assert_allclose(similarity_of_pairs(pairs, run)(V), S @ V)
        np.testing.assert_allclose(similarity_of_pairs(pairs, run)(V[:, 0]), S @ V[:, 0])


def unlike(n, values, rng):
    """Random pairs with these values of y, one of them listed with two values."""
    i = np.append(0, rng.integers(0, n, 9 * n))
    j = np.append(1, (i[1:] + rng.integers(1, n, 9 * n)) % n)
    y = rng.choice(values, len(i))
    i, j, y = np.append(i, 0), np.append(j, 1), np.append(y, -y[0])
    return affinity.from_pairs(i, j, y, n)


@pytest.mark.parametrize("n_values", [2, 3, 40])  # 40: too many to be kept apart
@pytest.mark.parametrize("n", [7, 1_500])
def test_products_with_s_of_any_values(n, n_values):
    rng = np.random.default_rng(n_values)
    pairs = unlike(n, [-1.0, 1.0] if n_values == 2 else rng.uniform(-1, 1, n_values), rng)
    S = np.eye(n)
    np.add.at(S, (pairs.i, pairs.j), pairs.y)
    np.add.at(S, (pairs.j, pairs.i), pairs.y)
    v = rng.standard_normal(n)
    products = []
    for n_jobs in (1, 3):
        with context.using(n_jobs=n_jobs), threads.pool() as run:
            product = similarity_of_pairs(pairs, run)
            products.append(product(v))
            for more in ([1, 2], [1, 2, 3]):  # two vectors have a kernel of their own
                np.testing.assert_allclose(product(np.outer(v, more)), np.outer(S @ v, more))
    np.testing.assert_allclose(products[0], S @ v, atol=1e-12)
    np.testing.assert_array_equal(*products)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_products_with_many_vectors_dense_and_sparse(share, data, monkeypatch):
    monkeypatch.setattr(ksh, "DENSE_SHARE", share)
    _, y = data
    pairs = affinity.from_labels(y, 5, 10, random_state=0)
    S = np.eye(150)
    np.add.at(S, (pairs.i, pairs.j), pairs.y)
    np.add.at(S, (pairs.j, pairs.i), pairs.y)
    V = np.random.default_rng(1).standard_normal((150, 4))
    with context.using(n_jobs=2), threads.pool() as run:
        np.testing.assert_allclose(similarity_of_pairs(pairs, run)(V), S @ V)


def test_whitening_turns_the_constraint_into_a_unit_length():
    K = np.random.default_rng(0).standard_normal((80, 6))
    K[:, 5] = K[:, 4]  # collinear kernels are left out
    U, T = whitened(K)
    assert U.shape == (80, 5)
    np.testing.assert_allclose(U, K @ T)
    np.testing.assert_allclose(U.T @ U, 80 * np.eye(5), atol=1e-9)


def test_the_ascent_rises_in_each_accepted_step(data):
    X, y = data
    U, _ = whitened(X - X.mean(axis=0))
    S = similarity(y)
    start = np.linalg.eigh(U.T @ S @ U)[1][:, -1]
    steps = ascend(U, lambda v: S @ v, start, 100)
    assert len(steps) > 5
    assert (np.diff([value for _, value in steps]) > 0).all()
    for a, value in steps:
        z = 2 / (1 + np.exp(-U @ a)) - 1
        assert value == pytest.approx(z @ S @ z)


class Alarmed(np.ndarray):
    """Products report an invalid operation, whatever the numbers, unless that is ignored."""

    def __matmul__(self, other):
        assert np.geterr()["invalid"] == "ignore"
        return np.asarray(self) @ np.asarray(other)


def test_the_ascent_survives_false_alarms_of_products(data):
    X, y = data
    U, _ = whitened(X - X.mean(axis=0))
    S = similarity(y)
    arguments = (lambda v: S @ v), np.linalg.eigh(U.T @ S @ U)[1][:, -1], 100
    result, wanted = ascend(U.view(Alarmed), *arguments), ascend(U, *arguments)
    assert [value for _, value in result] == [value for _, value in wanted]


def test_no_step_is_accepted_where_a_product_is_no_number(data):
    X, y = data
    U, _ = whitened(X - X.mean(axis=0))
    S = similarity(y)
    calls = []

    def fails_later(v):
        calls.append(v)
        return S @ v * (np.nan if len(calls) > 6 else 1.0)

    steps = ascend(U, fails_later, np.linalg.eigh(U.T @ S @ U)[1][:, -1], 100)
    assert len(calls) > 6
    assert len(steps) > 1
    assert all(np.isfinite(a).all() and np.isfinite(value) for a, value in steps)


def test_the_objective_of_every_bit_is_y_s_y_and_never_below_the_eigenvectors(data):
    X, y = data
    hasher = baselines.KSH(6, n_anchors=40, random_state=0).fit(X, y)
    assert (hasher.objective_[:, 1] >= hasher.objective_[:, 0]).all()
    assert (hasher.objective_[:, 1] > hasher.objective_[:, 0]).any()
    Y = hasher.transform(X).astype(float)
    R = 6 * similarity(y)
    for z, (_, value) in zip(Y.T, hasher.objective_, strict=True):
        assert z @ R @ z == pytest.approx(value)
        R -= np.outer(z, z)


def test_without_ascent_the_first_bit_is_the_generalised_eigenvector(data):
    from scipy.linalg import eigh

    X, y = data
    hasher = baselines.KSH(1, n_anchors=20, max_iter=0, random_state=0).fit(X, y)
    distance = np.square(X[:, None] - hasher.anchors_).sum(axis=2)
    assert hasher.width_ == pytest.approx(distance.mean())
    K = np.exp(-distance / (2 * distance.mean()))
    K -= K.mean(axis=0)
    a = eigh(K.T @ similarity(y) @ K, K.T @ K)[1][:, -1]
    outputs = hasher.decision_function(X)[:, 0]
    np.testing.assert_allclose(abs(np.corrcoef(K @ a, outputs)[0, 1]), 1, atol=1e-6)
    assert outputs @ outputs == pytest.approx(len(X))  # a'K'Ka = n


def test_linear_hash_functions_are_hyperplanes_of_the_points(data):
    from scipy.linalg import eigh

    X, y = data
    X = X + 5.0  # not centred
    hasher = baselines.KSH(1, hash_function="linear", max_iter=0, random_state=0).fit(X, y)
    assert not hasattr(hasher, "anchors_")
    np.testing.assert_allclose(hasher.center_, X.mean(axis=0))
    K = X - X.mean(axis=0)
    a = eigh(K.T @ similarity(y) @ K, K.T @ K)[1][:, -1]
    outputs = hasher.decision_function(X)[:, 0]
    np.testing.assert_allclose(abs(np.corrcoef(K @ a, outputs)[0, 1]), 1, atol=1e-6)
    assert outputs @ outputs == pytest.approx(len(X))  # a'X'Xa = n
    several = baselines.KSH(4, hash_function="linear", random_state=0).fit(X, y)
    assert several.weights_.shape == (5, 4)
    middle = (X[:1] + X[1:2]) / 2  # an output halfway between two points is their mean
    ends = several.decision_function(X[:2]).mean(axis=0)
    np.testing.assert_allclose(several.decision_function(middle)[0], ends)


def test_kernels_that_are_all_equal_give_one_code():
    X = np.ones((10, 2))
    with pytest.warns(UserWarning, match="all 10 points of X are the same"):
        hasher = baselines.KSH(4, random_state=0).fit(X, np.arange(10) % 2)
    assert len(np.unique(hasher.codes_)) == 1
