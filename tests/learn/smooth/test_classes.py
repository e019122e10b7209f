"""Codes of classes: the objective's gradient, and training by it alone."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import auxhash
from auxhash import EndToEndHash, Refine
from auxhash.compute import context, threads
from auxhash.learn.smooth.classes import ClassCodes, Head
from auxhash.mac import affinity

X, y = load_digits(return_X_y=True)
X, y = X[:400], y[:400]
SMALL = {"n_bits": 12, "n_similar": 10, "n_dissimilar": 30, "random_state": 0, "n_jobs": 1}
QUICK = Refine(200, 200, objective="classes", steepness=(1.0, 4.0), keep="refined")


def value(a, classes, s):
    """The mean over all pairs of points, written as it is defined."""
    u, n_classes = np.tanh(s * a), classes.max() + 1
    errors = [
        (u[i] @ u[j] / u.shape[1] - (1 if classes[i] == classes[j] else -1 / (n_classes - 1))) ** 2
        for i in range(len(u))
        for j in range(len(u))
        if i != j
    ]
    return np.mean(errors)


def test_the_pull_is_the_gradient():
    rng = np.random.default_rng(0)
    a, classes = rng.normal(size=(9, 4)), np.arange(9) % 3
    objective = ClassCodes(classes, 4)
    with context.using(n_jobs=1), threads.pool() as run:
        pull = objective.pull(lambda rows: a[rows].astype("f4"), np.arange(9), np.float32(1.5), run)
    for i, k in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[i, k] = 1e-5
        slope = (value(a + step, classes, 1.5) - value(a - step, classes, 1.5)) / 2e-5
        assert pull[i, k] == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_codes_as_far_apart_as_they_can_be_are_at_rest():
    """Four classes at the corners of a simplex: u'u / b is -1/3 between them."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float32)
    classes = np.arange(12) % 4
    np.testing.assert_allclose(
        ClassCodes(classes, 3).slope(corners[classes], classes), 0, atol=1e-7
    )


def test_the_cross_entropy_pulls_classes_apart():
    classes = np.arange(60) % 3
    objective = ClassCodes(classes, 3, cross_entropy=1.0)
    rng = np.random.default_rng(0)
    U = (np.eye(3)[classes] + 0.1 * rng.normal(size=(60, 3))).astype(np.float32)
    for _ in range(200):
        slope = objective.head.slope(U, classes)
    right = -slope[np.arange(60), classes]
    assert (right > 0).all()
    scores = U @ objective.head.W[:-1] + objective.head.W[-1]
    np.testing.assert_array_equal(scores.argmax(axis=1), classes)


def test_the_cross_entropy_s_gradient():
    """The gradient is that of a target of .9 for the class, and .1 for all classes alike."""
    rng = np.random.default_rng(0)
    classes, U = np.arange(8) % 4, rng.normal(size=(8, 3)).astype(np.float32)
    head = Head(4, 3)
    head.W[:] = W = rng.normal(size=head.W.shape)
    target = 0.9 * np.eye(4)[classes] + 0.1 / 4

    def value(U):
        logits = U @ W[:-1] + W[-1]
        sure = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return -(target * sure).sum(axis=1).mean()

    result = head.slope(U, classes)
    for at in np.ndindex(U.shape):
        step = np.zeros(U.shape)
        step[at] = 1e-5
        slope = (value(U + step) - value(U - step)) / 2e-5
        assert result[at] == pytest.approx(slope, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_it_learns_alone(kind, tmp_path):
    hasher = EndToEndHash(hash_function=kind, refine=QUICK, **SMALL).fit(X[:300], y[:300])
    start, *rest = hasher.history_
    assert start.iteration == 0
    assert [step.mu for step in rest] == [np.inf] * 10
    assert hasher.loss_ < 0.9 * start.loss
    queries = X[300:], y[300:]
    begun = hasher.two_step_
    before = EndToEndHash(hash_function=kind, refine=Refine(1, keep="refined"), **SMALL)
    assert hasher.score(*queries, k=20) > before.fit(X[:300], y[:300]).score(*queries, k=20) + 0.1
    assert begun.decision(begun.features(X)).shape == (400, 12)
    np.testing.assert_array_equal(clone(hasher).fit(X[:300], y[:300]).codes_, hasher.codes_)
    hasher.save(tmp_path / "m.safetensors")
    loaded = auxhash.load(tmp_path / "m.safetensors")
    assert type(loaded) is EndToEndHash
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))


def test_with_cross_entropy_and_a_checkpoint(tmp_path):
    refine = Refine(40, 100, objective="classes", cross_entropy=0.5, keep="refined")
    hasher = EndToEndHash(hash_function="linear", refine=refine, validation=0.2, **SMALL)
    first = clone(hasher).fit(X, y, checkpoint=tmp_path)
    again = clone(hasher).fit(X, y, checkpoint=tmp_path)
    np.testing.assert_array_equal(first.codes_, again.codes_)
    np.testing.assert_array_equal(first.codes_, clone(hasher).fit(X, y).codes_)


def test_it_goes_on_from_what_was_learnt():
    hasher = EndToEndHash(hash_function="linear", refine=QUICK, warm_start=True, **SMALL).fit(X, y)
    before = hasher.loss_
    hasher.fit(X, y)
    assert hasher.history_[0].loss == before
    assert hasher.loss_ <= before


def test_what_it_needs():
    near = affinity.from_neighbors(X, 5, 20, random_state=0)
    with pytest.raises(ValueError, match="drawn from classes"):
        EndToEndHash(refine=QUICK, **SMALL).fit(X, affinity=near)
    with pytest.raises(ValueError, match="refine is all of this training"):
        EndToEndHash(refine=None, **SMALL).fit(X, y)
    with pytest.raises(TypeError, match="cannot be trained by gradients alone"):
        EndToEndHash(hash_function="trees", **SMALL).fit(X, y)
    with pytest.raises(ValueError, match='cross_entropy is for objective="classes"'):
        Refine(cross_entropy=1.0)
