import re

import numpy as np
import pandas
import pytest
from sklearn.datasets import make_blobs

from auxhash import MACHash
from auxhash.learn import choose as module
from auxhash.learn.choose import choose

X, y = make_blobs(100, 5, centers=4, cluster_std=3.0, random_state=0)


@pytest.fixture(autouse=True)
def few(monkeypatch, briefly_refined):
    monkeypatch.setattr(module, "LOSSES", ("ksh", "ee"))
    monkeypatch.setattr(module, "PAIRS", ((5, 10), (10, 20)))
    monkeypatch.setattr(module, "BITS", (4, 8))


def test_each_stage_goes_on_from_the_best():
    found = choose(X, y, n_jobs=1)
    assert set(found.settings) == {"n_bits", "loss", "hash_function", "n_similar", "n_dissimilar"}
    assert len(found.rows) == 2 * 3 + 2 + 2
    [chosen] = [row for row in found.rows if found.settings.items() <= row.items()]
    last = [row["precision"] for row in found.rows[-2:]]
    assert chosen["precision"] >= max(last) - module.PRECISION_TOLERANCE
    assert "20 held-out points among 80" in found.protocol
    assert found.settings == choose(X, y, n_jobs=1).settings


def test_about_as_good_and_cheaper_wins(monkeypatch):
    monkeypatch.setattr(module, "PRECISION_TOLERANCE", 1.0)
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


def test_few_points_first_and_the_promising_in_full(monkeypatch):
    monkeypatch.setattr(module, "BRIEF_POINTS", 40)
    monkeypatch.setattr(module, "LOSSES", ("ksh", "hinge", "esplh", "ee"))
    monkeypatch.setattr(module, "BITS", (2, 4, 8, 16))
    fixed = {"hash_function": "linear", "n_similar": 5, "n_dissimilar": 10}
    found = choose(X, y, fixed, n_jobs=1)
    assert [row["points"] for row in found.rows[:4]].count(80) == 2
    assert {row["points"] for row in found.rows} == {40, 80}
    assert len(found.rows) == 4 + 4
    [chosen] = [row for row in found.rows if found.settings.items() <= row.items()]
    assert chosen["points"] == 80  # never chosen by few points
    assert "tried briefly among 40 points, with precision at " in found.protocol
    again = choose(X, y, fixed, n_jobs=2)
    assert found.settings == again.settings
    assert [row["precision"] for row in found.rows] == [row["precision"] for row in again.rows]
    # A row in full is what fitting with its settings gives; brief settings are for few points.
    assert all("max_iter" not in row and "refine" not in row for row in found.rows)


def test_the_best_of_each_hash_function_goes_on():
    ranked = [{"hash_function": kind, "loss": loss} for kind in "ab" for loss in "1234"]
    ranked.append({"hash_function": "c", "loss": "1"})
    assert module._promising(ranked) == [ranked[0], ranked[4], ranked[8]]
    assert module._promising([{"n_bits": b} for b in (1, 2, 3, 4, 5, 6, 7)]) == [
        {"n_bits": b} for b in (1, 2, 3)
    ]
    assert module._promising([{"n_bits": 1}, {"n_bits": 2}]) == [{"n_bits": 1}, {"n_bits": 2}]


def test_few_points_are_more_where_classes_are_small(monkeypatch):
    monkeypatch.setattr(module, "BRIEF_POINTS", 10)
    train = np.arange(80)
    assert len(module._brief_trial(train, np.arange(80) % 4, {}).rows) == 20
    assert module._brief_trial(train, np.arange(80) % 20, {}) is None
    assert module._brief_trial(train, np.arange(80) % 4, {"hash_function": "trees"}).settings == {
        "max_iter": 10
    }


def test_what_is_fixed_holds_in_brief_trials_too(monkeypatch):
    monkeypatch.setattr(module, "BRIEF_POINTS", 40)
    seen = []
    monkeypatch.setattr(MACHash, "fit", lambda self, X, y: seen.append(self))
    monkeypatch.setattr(MACHash, "score", lambda self, X, y, k: 0.5)
    fixed = {"hash_function": "linear", "n_bits": 4, "n_similar": 5, "n_dissimilar": 10}
    choose(X, y, {**fixed, "refine": None, "max_iter": 3})
    assert {(hasher.refine, hasher.max_iter) for hasher in seen} == {(None, 3)}
    seen.clear()
    choose(X, y, fixed)
    assert {hasher.max_iter for hasher in seen} == {10, 50}


def test_a_time_budget(monkeypatch):
    found = choose(X, y, n_jobs=1, seconds=1e-9)
    assert len(found.rows) == 1  # the first is tried in any case
    assert found.settings.items() <= found.rows[0].items()
    assert "The 1e-09 s for it were spent: 9 of up to 10 trials were not made" in found.protocol
    monkeypatch.setattr(module, "BRIEF_POINTS", 40)
    found = choose(X, y, n_jobs=1, seconds=1e-9)
    assert [row["points"] for row in found.rows] == [40]
    assert set(found.settings) == {"n_bits", "loss", "hash_function", "n_similar", "n_dissimilar"}
    with pytest.raises(ValueError, match="seconds must be a number above 0, got 0"):
        choose(X, y, seconds=0)


def test_progress_is_shown(capsys):
    fixed = {"hash_function": "linear", "loss": "ksh", "n_similar": 5, "n_dissimilar": 10}
    choose(X, y, fixed, n_jobs=1)
    assert capsys.readouterr().out == ""
    choose(X, y, {**fixed, "n_bits": 4}, n_jobs=1, verbose=1)
    shown = capsys.readouterr().out
    assert "choosing" in shown
    assert "3/3" in shown
    assert re.search(r"best \d\.\d{3}: linear, ksh, 4 bits", shown)


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
