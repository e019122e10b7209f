import re

import numpy as np
import pandas
import pytest
from sklearn.datasets import make_blobs

from auxhash import MACHash, NeighborHash
from auxhash.compute import bars, deadline
from auxhash.learn import choose as module
from auxhash.learn.choose import choose
from auxhash.learn.chooseneighbors import choose_neighbors

X, y = make_blobs(100, 5, centers=4, cluster_std=3.0, random_state=0)


@pytest.fixture(autouse=True)
def few(monkeypatch, briefly_refined):
    monkeypatch.setattr(module, "LOSSES", ("ksh", "ee"))
    monkeypatch.setattr(module, "PAIRS", ((5, 10), (10, 20)))


def test_each_stage_goes_on_from_the_best():
    choice = choose(X, y, {"n_bits": 4})
    assert set(choice.settings) == {"loss", "hash_function", "n_similar", "n_dissimilar"}
    assert len(choice.rows) == 3 + 1 + 2  # hash functions, another loss, pairs other than 100 / 500
    assert "20 held-out points among 80" in choice.protocol
    assert "too short" not in choice.protocol
    assert choice.settings == choose(X, y, {"n_bits": 4}).settings


def test_the_best_is_taken_however_small_its_lead(monkeypatch, precisions):
    precisions({"hash_function": "network"}, 0.801)
    precisions({"loss": "ee"}, 0.802)
    precisions({"n_similar": 10}, 0.803)
    choice = choose(X, y)
    assert choice.settings == {
        "hash_function": "network", "loss": "ee", "n_similar": 10, "n_dissimilar": 20,
    }  # fmt: skip
    assert {row["points"] for row in choice.rows} == {80}  # no network is judged on fewer


def test_of_equals_the_cheapest_is_taken(precisions):
    choice = choose(X, y)
    assert choice.settings == {
        "hash_function": "linear", "loss": "ksh", "n_similar": 5, "n_dissimilar": 10,
    }  # fmt: skip


@pytest.fixture
def precisions(monkeypatch):
    """A function that lets settings reach a precision at least; without it, all reach 0.8."""
    reached = []

    def score(self, X, y, k):
        fits = [p for settings, p in reached if settings.items() <= self.get_params().items()]
        return max(fits, default=0.8)

    monkeypatch.setattr(MACHash, "interrupted_", False, raising=False)
    monkeypatch.setattr(MACHash, "fit", lambda self, X, y: self)
    monkeypatch.setattr(MACHash, "score", score)
    return lambda settings, precision: reached.append((settings, precision))


def test_what_is_fixed_is_not_varied():
    fixed = {"n_bits": 6, "hash_function": "linear", "n_similar": 5, "n_dissimilar": 10}
    choice = choose(X, y, {**fixed, "z_step": "cut"})
    assert set(choice.settings) == {"loss"}
    assert len(choice.rows) == 2
    assert all({**fixed, "z_step": "cut"}.items() <= row.items() for row in choice.rows)


def test_a_limit_is_kept_and_what_was_not_tried_is_said(monkeypatch):
    """The trial under way is given up in the middle of its training."""
    fit, times = MACHash.fit, iter([60.0, 60.0, 1e-9])

    def timed(self, X, y):
        with deadline.within(next(times)):  # as if the limit came now
            return fit(self, X, y)

    monkeypatch.setattr(MACHash, "fit", timed)
    monkeypatch.setattr(module, "LOSSES", ("ksh",))
    monkeypatch.setattr(module, "PAIRS", ((100, 500),))
    choice = choose(X, y, {"n_bits": 4}, seconds=60)
    assert [row["hash_function"] for row in choice.rows] == ["linear", "rbf"]
    assert choice.protocol.endswith("The 60 s for it were too short for hash_function network")


def test_ctrl_c_in_a_trial_ends_the_choice(monkeypatch):
    monkeypatch.setattr(MACHash, "fit", lambda self, X, y: setattr(self, "interrupted_", True))
    with pytest.raises(KeyboardInterrupt):
        choose(X, y)
    monkeypatch.setattr(NeighborHash, "fit", lambda self, X: setattr(self, "interrupted_", True))
    with pytest.raises(KeyboardInterrupt):
        choose_neighbors(X)


def test_without_time_nothing_is_tried_and_the_defaults_are_taken(monkeypatch):
    monkeypatch.setattr(MACHash, "fit", None)  # no training begins
    choice = choose(X, y, seconds=1e-9)
    assert choice.rows == []
    assert choice.settings == {
        "loss": "ksh", "hash_function": "linear", "n_similar": 100, "n_dissimilar": 500,
    }  # fmt: skip
    assert choice.protocol.endswith("loss ee, n_similar 5 with n_dissimilar 10, "
                                   "n_similar 10 with n_dissimilar 20")  # fmt: skip
    with pytest.raises(ValueError, match="seconds must be a number above 0, got 0"):
        choose(X, y, seconds=0)


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 1e-3)
    fixed = {"hash_function": "linear", "loss": "ksh", "n_similar": 5, "n_dissimilar": 10}
    choose(X, y, fixed)
    assert capsys.readouterr() == ("", "")
    choose(X, y, {**fixed, "n_bits": 4}, verbose=1)
    shown = capsys.readouterr().err
    assert "choosing 3 of 3" in shown
    assert re.search(r"best \d\.\d{3}: linear, ksh", shown)


def test_rare_classes_and_several_labels():
    rare = y.copy()
    rare[0] = 9
    fixed = {"hash_function": "linear", "loss": "ksh", "n_bits": 4}
    assert choose(X, rare, fixed).rows
    assert choose(X, np.eye(4, dtype=int)[y], fixed).rows


def test_too_few_points():
    with pytest.raises(ValueError, match="2 points are too few to hold some out"):
        choose(X[:2], y[:2])


def test_settled_values_of_any_kind():
    """Settings that were tried before are recognised by what they are, not by ==."""
    validation = X[:10], y[:10]
    fixed = {"n_similar": 5, "n_dissimilar": 10, "loss": lambda d, y, b: (d / b - (y < 0)) ** 2}
    choice = choose(X, y, {**fixed, "validation": validation, "refine": None, "max_iter": 1})
    assert len(choice.rows) == 3
    assert set(choice.settings) == {"hash_function"}
    assert all(row["validation"] is validation for row in choice.rows)


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
