"""OneHot, LogitLSH, SDH and ILH."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from auxhash.codes import hamming
from auxhash.learn import baselines
from auxhash.learn.baselines.ilh import subsets
from auxhash.learn.baselines.onehot import codewords
from auxhash.learn.baselines.sdh import b_step
from auxhash.mac import affinity


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    return rng.standard_normal((300, 6)) + 2 * np.eye(6)[y], y


def test_codewords_are_one_hot_and_repeated():
    np.testing.assert_array_equal(
        codewords(3, 7) > 0,
        [[1, 0, 0, 1, 0, 0, 1], [0, 1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 1, 0]],
    )


@pytest.mark.parametrize(("n_classes", "n_bits"), [(4, 2), (5, 4), (100, 7), (1, 1)])
def test_with_fewer_bits_than_classes_codewords_still_differ(n_classes, n_bits):
    assert len(np.unique(codewords(n_classes, n_bits), axis=0)) == n_classes


def test_a_code_is_the_predicted_class(data):
    X, y = data
    labels = np.array(["cat", "dog", "eel"])[y]
    hasher = baselines.OneHot(12, DecisionTreeClassifier(max_depth=3), random_state=0)
    codes = hasher.fit(X, labels).encode(X)
    predicted = hasher.classifier_.predict(X)
    assert ((hamming(codes, codes) == 0) == (predicted[:, None] == predicted)).all()


def test_codes_of_log_probabilities_measure_angles_between_them(data):
    X, y = data
    model = LogisticRegression(max_iter=500)
    hasher = baselines.LogitLSH(20_000, model, random_state=0).fit(X, y)
    logits = hasher.classifier_.predict_log_proba(X)
    logits -= logits.mean(axis=0)
    a, b = logits[:2]
    angle = np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    codes = hasher.transform(X[:2])
    assert (codes[0] == codes[1]).mean() == pytest.approx(1 - angle / np.pi, abs=0.02)


def test_log_probabilities_of_0_are_bounded(data):
    hasher = baselines.LogitLSH(8, DecisionTreeClassifier(), random_state=0).fit(*data)
    assert np.isfinite(hasher.decision_function(data[0])).all()


def test_a_classifier_without_probabilities_is_refused(data):
    with pytest.raises(TypeError, match="LinearSVC has none"):
        baselines.LogitLSH(8, LinearSVC()).fit(*data)


def test_the_objective_of_sdh_never_rises(data):
    hasher = baselines.SDH(12, n_anchors=80, nu=0.1, n_iter=10, random_state=0).fit(*data)
    assert len(hasher.objective_) == 10
    assert (np.diff(hasher.objective_) <= 1e-6 * hasher.objective_[0]).all()


def test_no_single_bit_improves_on_the_b_step():
    rng = np.random.default_rng(0)
    Y, W = rng.standard_normal((40, 3)), rng.standard_normal((6, 3))
    Q = Y @ W.T + 0.1 * rng.standard_normal((40, 6))
    start = np.where(rng.standard_normal((40, 6)) >= 0, 1.0, -1.0)

    def value(B):
        return np.square(B @ W).sum(axis=1) - 2 * (B * Q).sum(axis=1)

    B = b_step(Q, W @ W.T, start)
    assert (value(B) <= value(start) + 1e-12).all()
    for k in range(6):
        flipped = B.copy()
        flipped[:, k] *= -1
        assert (value(flipped) >= value(B) - 1e-12).all()


def test_subsets_are_disjoint_as_long_as_points_last():
    rows = subsets(100, 7, 20, np.random.default_rng(0))
    assert rows.shape == (7, 20)
    assert len(np.unique(rows[:5])) == 100
    assert all(len(np.unique(row)) == 20 for row in rows)
    assert len(np.unique(rows[5:])) == 40
    assert subsets(10, 3, 20, np.random.default_rng(0)).shape == (3, 10)


def test_a_bit_of_ilh_depends_on_its_own_points_alone(data):
    X, y = data
    hasher = baselines.ILH(3, n_subset=100, random_state=0).fit(X, y)
    changed = y.copy()
    changed[hasher.subsets_[1]] = (y[hasher.subsets_[1]] + 1) % 3
    changed[hasher.subsets_[1][:30]] = 0
    again = baselines.ILH(3, n_subset=100, random_state=0).fit(X, changed)
    same = (hasher.hash_function_.W == again.hash_function_.W).all(axis=0)
    np.testing.assert_array_equal(same, [True, False, True])


def test_ilh_learns_from_an_affinity_and_says_where_a_subset_has_no_pairs(data):
    X, y = data
    pairs = affinity.from_labels(y, 50, 100, random_state=0)
    assert (
        baselines.ILH(8, n_subset=150, random_state=0).fit(X, y, affinity=pairs).score(X, y) > 0.5
    )
    one = affinity.from_pairs([0], [1], [1.0], len(X))
    with pytest.raises(ValueError, match="raise n_subset"):
        baselines.ILH(8, n_subset=20, random_state=0).fit(X, affinity=one)
