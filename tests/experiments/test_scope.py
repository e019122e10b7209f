"""The cells that a claim looks at, and how many of its cases were run."""

import pytest

from auxhash.experiments import claims, scope
from auxhash.experiments.claims import Claim
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.groups import PAPERS, TWO_STEP_OF
from auxhash.experiments.scales import TINY
from tests.experiments.made import record

FIGURE = FIGURES["sup-nestederr"]
MACS = frozenset((*PAPERS, *TWO_STEP_OF))


def looked_at(test, figure=FIGURE):
    return scope.looked_at([Claim("it", test)], figure.groups(TINY), MACS)["it"]


def cells(*methods, groups=("KSH", "eSPLH"), bits=TINY.bits):
    kinds = "rbf", "linear"
    return {(g, m, kind, b) for g in groups for m in methods for kind in kinds for b in bits}


def test_the_cells_that_a_claim_looks_at():
    assert looked_at(claims.lower_loss("MACcut", "cut")) == cells("MACcut", "cut")
    one = claims.among("eSPLH", claims.lower_loss("MACcut", "cut"))
    assert looked_at(one) == cells("MACcut", "cut", groups=["eSPLH"])
    against = claims.lower_loss("MACquad", "KSH")
    assert looked_at(against) == cells("MACquad", groups=["KSH"])  # KSH is not asked about
    assert looked_at(lambda records: (True, "Always.")) == set()


def test_the_best_of_some_is_about_all_of_them():
    most = claims.beats_all(("MACcut", "MACquad"), ("KSH",), most_bits=True)
    expected = cells("MACcut", "MACquad", groups=["KSH"], bits=[max(TINY.bits)])
    # The other group has MACcut with as many bits, but no KSH to compare it with.
    assert looked_at(most) == expected


@pytest.mark.parametrize(
    "figure",
    [figure for figure in FIGURES.values() if isinstance(figure, GroupFigure)],
    ids=lambda figure: figure.name,
)
def test_every_claim_looks_at_some_run_of_mac_or_of_its_start(figure):
    by_claim = scope.of_figure(figure.name, TINY, MACS)
    assert list(by_claim) == [claim.words for claim in figure.claims]
    assert all(by_claim.values())


def test_cases_that_were_run():
    """A case counts with all methods that the claim looks at."""
    wanted = {("KSH", method, "linear", b) for method in ("MACcut", "MACquad") for b in (8, 16)}
    some = [record("MACcut", bits=b) for b in (8, 16)]
    assert scope.run(wanted, some) == scope.Coverage(0, 2)
    assert str(scope.run(wanted, [*some, record("MACquad")])) == "1 of 2 cases"
    complete = [*some, record("MACquad"), record("MACquad", bits=16)]
    assert scope.run(wanted, complete) == scope.Coverage(2, 2)
    assert scope.run(set(), some) == scope.Coverage(0, 0)
