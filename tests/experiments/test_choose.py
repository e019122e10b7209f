import numpy as np
import pandas
import pytest
from sklearn.datasets import make_blobs

from auxhash.experiments import choose as module
from auxhash.experiments.choose import choose

X, y = make_blobs(100, 5, centers=4, cluster_std=3.0, random_state=0)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(module, "LOSSES", ("ksh", "ee"))
    monkeypatch.setattr(module, "PAIRS", ((5, 10), (10, 20)))
    monkeypatch.setattr(module, "BITS", (4, 8))


def test_each_stage_goes_on_from_the_best():
    found = choose(X, y, n_jobs=1)
    assert set(found.settings) == {"n_bits", "loss", "hash_function", "n_similar", "n_dissimilar"}
    assert len(found.rows) == 2 * 3 + 2 + 2
    [chosen] = [row for row in found.rows if found.settings.items() <= row.items()]
    last = [row["precision"] for row in found.rows[-2:]]
    assert chosen["precision"] >= max(last) - module.ABOUT_AS_GOOD
    assert "20 held-out points among 80" in found.protocol
    assert found.settings == choose(X, y, n_jobs=1).settings


def test_about_as_good_and_cheaper_wins(monkeypatch):
    monkeypatch.setattr(module, "ABOUT_AS_GOOD", 1.0)
    found = choose(X, y, n_jobs=1)
    assert found.settings == {
        "n_bits": 4,
        "loss": "ksh",
        "hash_function": "linear",
        "n_similar": 5,
        "n_dissimilar": 10,
    }


def test_what_is_fixed_is_not_varied():
    fixed = {"n_bits": 6, "hash_function": "linear", "n_similar": 5, "n_dissimilar": 10}
    found = choose(X, y, {**fixed, "z_step": "cut"}, n_jobs=1)
    assert set(found.settings) == {"loss"}
    assert len(found.rows) == 2
    assert all({**fixed, "z_step": "cut"}.items() <= row.items() for row in found.rows)


def test_rare_classes_and_several_labels():
    rare = y.copy()
    rare[0] = 9
    fixed = {"hash_function": "linear", "loss": "ksh", "n_bits": 4}
    assert choose(X, rare, fixed, n_jobs=1).rows
    assert choose(X, np.eye(4, dtype=int)[y], fixed, n_jobs=1).rows


def test_too_few_points():
    with pytest.raises(ValueError, match="2 points are too few to hold some out"):
        choose(X[:2], y[:2])


def test_settled_values_of_any_kind():
    """Settings that were tried before are recognised by what they are, not by ==."""
    held = X[:10], y[:10]
    fixed = {"n_similar": 5, "n_dissimilar": 10, "loss": lambda d, y, b: (d / b - (y < 0)) ** 2}
    found = choose(X, y, {**fixed, "validation": held, "refine": None, "max_iter": 1}, n_jobs=1)
    assert len(found.rows) == 3 + 2  # three hash functions with 32 bits, then 4 and 8 bits
    assert set(found.settings) == {"n_bits", "hash_function"}
    assert all(row["validation"] is held for row in found.rows)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"random_state": 1}, "fixed must not hold random_state, which is an argument beside it"),
        ({"n_jobs": 1}, "fixed must not hold n_jobs"),
        ({"n_bit": 8}, "fixed must be one of .* got 'n_bit'; did you mean 'n_bits'"),
    ],
)
def test_wrong_settings_are_told(fixed, message):
    with pytest.raises(ValueError, match=message):
        choose(X, y, fixed)


def test_wrong_labels_are_told():
    with pytest.raises(ValueError, match="y must have one row for each of 100 points, got 99"):
        choose(X, y[:99])
    with pytest.raises(ValueError, match="y must not be missing"):
        choose(X, np.where(y, y, np.nan))


def test_lists_and_frames():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    fixed = {"loss": "ksh", "hash_function": "linear", "n_bits": 4, "refine": None, "max_iter": 1}
    fixed |= {"n_similar": 3, "n_dissimilar": 3}
    expected = choose(X, y, fixed).rows[0]["precision"]
    for points in (X.tolist(), pandas.DataFrame(X)):
        assert choose(points, y, fixed).rows[0]["precision"] == expected
