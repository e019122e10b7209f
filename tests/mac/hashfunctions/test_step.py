"""The h step, one contract over every kind of hash function."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from auxhash import MACHash, Refine
from auxhash.codes import sign
from auxhash.mac.hashfunctions import BaseHash, get, h_step, is_smooth, svm


@dataclass(frozen=True)
class Plain:
    """A hash function with the five methods, and no base class."""

    mean: np.ndarray | None = None
    W: np.ndarray | None = None

    def prepare(self, X, rng):
        return replace(self, mean=X.mean(axis=0))

    def features(self, X):
        return np.hstack([X - self.mean, np.ones((len(X), 1))])

    def refit(self, F, Z, bits, weight=None):
        W = np.zeros((F.shape[1], Z.shape[1])) if self.W is None else self.W.copy()
        W[:, bits] = np.linalg.lstsq(F, Z[:, bits])[0]
        return replace(self, W=W)

    def take(self, other, bits):
        W = self.W.copy()
        W[:, bits] = other.W[:, bits]
        return replace(self, W=W)

    def decision(self, F):
        return F @ self.W


class Averaged(Plain, BaseHash):
    """One that overrides a default."""

    def average(self, other, share, F):
        return replace(self, W=(1 - share) * self.W + share * other.W)


KINDS = [
    Plain(),
    "linear",
    "rbf",
    "network",
    LinearSVC(),
    SVC(kernel="rbf"),
    GradientBoostingClassifier(n_estimators=5),
    LogisticRegression(),
    GaussianNB(),
    RidgeClassifier(),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) * 3 + 1
    Z = np.column_stack([X[:, 0] > 1, X[:, 1] * X[:, 2] > 1, rng.random(120) < 0.5])
    return X, np.where(Z, 1, -1).astype(np.int8)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_contract(kind, data):
    X, Z = data
    h = get(kind, 100.0).prepare(X, np.random.default_rng(1))
    F = h.features(X)
    first, H = h_step(h, None, F, Z, np.arange(3))
    assert H.dtype == np.int8
    np.testing.assert_array_equal(H, sign(first.decision(F)))
    np.testing.assert_array_equal(H, sign(first.decision(first.features(X.copy()))))
    assert (H[:, 0] == Z[:, 0]).mean() > 0.8

    # New targets for one bit leave the others' classifiers alone.
    target = Z.copy()
    target[:, 2] = np.where(X[:, 3] > 0, 1, -1)
    second, H2 = h_step(first, H, F, target, np.array([2]))
    np.testing.assert_array_equal(H2[:, :2], H[:, :2])
    np.testing.assert_array_equal(second.decision(F)[:, :2], first.decision(F)[:, :2])

    # A bit never ends up with more mistakes than it had.
    assert ((H2 != target).sum(0) <= (H != target).sum(0)).all()

    # Bits whose codes are all equal are learnt as such.
    constant = np.ones_like(Z)
    constant[:, 1] = -1
    _, H3 = h_step(second, H2, F, constant, np.arange(3))
    np.testing.assert_array_equal(H3, constant)


def test_a_worse_classifier_is_not_taken(data, monkeypatch):
    X, Z = data
    h = get("linear", 100.0).prepare(X, np.random.default_rng(0))
    F = h.features(X)
    good, H = h_step(h, None, F, Z, np.arange(3))
    monkeypatch.setattr(svm, "fit", lambda F, Z, *rest: np.zeros((F.shape[1], Z.shape[1])))
    kept, H2 = h_step(good, H, F, Z, np.arange(3))
    np.testing.assert_array_equal(H2[:, :2], H[:, :2])
    np.testing.assert_array_equal(kept.W[:, :2], good.W[:, :2])
    taken, H3 = h_step(good, H, F, Z, np.arange(3), monotone=False)
    assert not taken.W.any()
    assert (H3 != Z).sum() > (H != Z).sum()


def test_nothing_to_do(data):
    X, Z = data
    h = get("linear", 100.0).prepare(X, np.random.default_rng(0))
    F = h.features(X)
    fitted, H = h_step(h, None, F, Z, np.arange(3))
    assert h_step(fitted, H, F, Z, np.arange(0)) == (fitted, H)


def test_weights_need_a_classifier_that_takes_them(data):
    from sklearn.neighbors import KNeighborsClassifier

    X, Z = data
    weight = np.ones(Z.shape)
    for kind in (KNeighborsClassifier(), GaussianNB()):
        h = get(kind, 1.0).prepare(X, np.random.default_rng(0))
        if isinstance(kind, GaussianNB):
            h_step(h, None, h.features(X), Z, np.arange(3), weight)
        else:
            with pytest.raises(TypeError, match="takes no sample_weight"):
                h_step(h, None, h.features(X), Z, np.arange(3), weight)


def test_clones_are_seeded(data):
    X, Z = data
    forest = GradientBoostingClassifier(n_estimators=3, subsample=0.5)
    outputs = []
    for seed in (0, 0, 1):
        h = get(forest, 1.0).prepare(X, np.random.default_rng(seed))
        fitted, _ = h_step(h, None, h.features(X), Z, np.arange(3))
        outputs.append(fitted.decision(h.features(X)))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (outputs[0] != outputs[2]).any()


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        ("liner", ValueError, "did you mean 'linear'"),
        ("forest", ValueError, "hash_function must be one of"),
        (3, TypeError, "hash_function must be a name or a scikit-learn classifier"),
    ],
)
def test_what_is_no_hash_function(kind, error, says):
    with pytest.raises(error, match=says):
        get(kind, 1.0)


def test_unfitted():
    with pytest.raises(ValueError, match="not fitted"):
        get("linear", 1.0).decision(np.ones((2, 2)))
    with pytest.raises(ValueError, match="not fitted"):
        get("rbf", 1.0).features(np.ones((2, 2)))


SMALL = {"n_bits": 4, "n_similar": 5, "n_dissimilar": 10, "max_iter": 2, "random_state": 0}


@pytest.mark.parametrize("kind", [Plain, Averaged])
def test_five_methods_are_enough_for_an_estimator(kind, data):
    X, y = data[0], (data[0][:, 0] > 1).astype(int)
    hasher = MACHash(hash_function=kind(), **SMALL, warm_start=True).fit(X, y)
    first = hasher.hash_function_
    assert type(first) is kind
    assert hasher.score(X, y, k=10) > 0.7
    np.testing.assert_array_equal(hasher.decision_function(X), first.decision(first.features(X)))
    hasher.fit(-X[:60], y[:60])
    learnt = hasher.hash_function_
    assert type(learnt) is kind
    np.testing.assert_array_equal(learnt.mean, first.mean)  # it went on from the first


def test_defaults_are_overridden_where_they_are_asked_for(data, monkeypatch):
    """In a warm start on other points, the average of old and new is asked for."""
    X, y = data[0], (data[0][:, 0] > 1).astype(int)
    hasher = MACHash(hash_function=Averaged(), **SMALL, warm_start=True).fit(X[:60], y[:60])
    shares, average = [], Averaged.average

    def watched(h, other, share, F):
        shares.append(share)
        return average(h, other, share, F)

    monkeypatch.setattr(Averaged, "average", watched)
    hasher.fit(X[60:], y[60:])
    assert shares == [0.5]


def test_hooks_of_files_and_of_checkpoints_have_defaults():
    """A class without fields of its own for them is stored whole, and known by all its fields."""

    class Bare(BaseHash):
        seed = 3

    h = Bare()
    assert (h.TRAINING_ONLY, h.UNSTORED, h.unstored()) == ((), (), {})
    h.check_read()
    assert h.identity_parts() is None
    Bare.UNSTORED = ("seed",)
    assert h.unstored() == {"seed": 3}


def test_a_hash_function_without_gradients_is_not_refined(data):
    X, y = data[0], (data[0][:, 0] > 1).astype(int)
    assert not is_smooth(Plain())
    with pytest.raises(TypeError, match="Plain has no gradient"):
        MACHash(hash_function=Plain(), refine=Refine(10), **SMALL).fit(X, y)
    with pytest.raises(TypeError, match="hash_function must be a name"):
        get(object(), 1.0)
