"""free-codes, held against plain enumeration."""

from itertools import product

import numpy as np
import pytest

from auxhash.experiments.figures import sketch
from auxhash.experiments.figures.sketch import (
    LOWEST,
    Draw,
    all_signs,
    clipped,
    dichotomies,
    energies,
    verdicts,
)
from auxhash.mac import affinity, losses


@pytest.mark.parametrize("n", [3, 6, 9])
def test_every_line_that_divides_the_points(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    result = dichotomies(X)
    assert len(result.signs) == n * (n - 1) + 2  # Cover's count, for points in general position
    a, b, c = result.lines.T
    np.testing.assert_array_equal(
        np.where(np.outer(a, X[:, 0]) + np.outer(b, X[:, 1]) + c[:, None] >= 0, 1, -1), result.signs
    )


def test_energies_are_the_loss():
    pairs = affinity.from_labels([0, 0, 1, 1, 2], None, None)
    signs = all_signs(5)
    assert len(np.unique(signs, axis=0)) == 32
    energy = energies(signs, signs, pairs)
    for one, two in product((0, 7, 19, 31), repeat=2):
        codes = np.stack([signs[one], signs[two]], axis=1)
        assert energy[one, two] == pytest.approx(losses.total(codes, pairs, "ksh"))


def test_a_problem_is_solved_in_order():
    facts, arrays = Draw(0).run()
    again, _ = Draw(0).run()
    assert facts == again
    E = {name: facts[name][1] for name in sketch.LOOKS}
    assert facts[LOWEST] <= E["optimal"] <= E["MAC"] <= E["two-step"]
    assert facts[LOWEST] <= E["free codes"]
    assert E["optimal"] <= E["nearest realizable"]
    assert facts["nearest realizable"][0] <= facts["two-step"][0]
    realizable = {tuple(row) for row in arrays["realizable"].round(6).tolist()}
    for name in ("optimal", "MAC", "two-step", "nearest realizable"):
        assert (facts[name][0], round(E[name], 6)) in realizable
    for name in ("two-step", "MAC", "optimal"):  # the lines give the codes whose energy is told
        a, b, c = arrays[name].T[:, :, None]
        X = arrays["X"]
        codes = np.where(a * X[:, 0] + b * X[:, 1] + c >= 0, 1, -1).T
        pairs = affinity.from_labels(arrays["y"], None, None)
        assert losses.total(codes, pairs, "ksh") == pytest.approx(E[name])


def test_lines_are_cut_off_at_the_box():
    box = np.array([[0.0, 0.0], [2.0, 1.0]])
    np.testing.assert_allclose(clipped(np.array([0.0, 1.0, -0.5]), box), [[0, 0.5], [2, 0.5]])
    assert len(clipped(np.array([0.0, 1.0, -5.0]), box)) == 0


def problem(two_step, mac, optimal, nearest=9.0, lowest=1.0):
    names = {"two-step": two_step, "MAC": mac, "optimal": optimal, "nearest realizable": nearest}
    return {name: [1, energy] for name, energy in names.items()} | {LOWEST: lowest}


def test_verdicts_both_ways():
    good = [v.holds for v in verdicts([problem(4.0, 3.0, 3.0)])]
    assert good == [True] * 5
    bad = [v.holds for v in verdicts([problem(3.0, 4.0, 3.0, nearest=3.0, lowest=3.0)])]
    assert bad == [False] * 5
    assert {v.holds for v in verdicts([])} == {None}
