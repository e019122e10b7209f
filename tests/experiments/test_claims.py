"""Every claim is tested on made numbers for which it holds, for which it does not, and on none."""

import numpy as np
import pytest

from auxhash.experiments import claims
from auxhash.experiments.claims import UNTESTED, Claim, judge
from auxhash.experiments.figures import EVERY, FIGURES
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.scales import TINY
from auxhash.experiments.scope import made_records
from tests.experiments.made import outcome, record

GROUP_FIGURES = [figure for figure in FIGURES.values() if isinstance(figure, GroupFigure)]


def test_lower_loss():
    test = claims.lower_loss("MACcut", "cut")
    assert outcome(test, record("MACcut", 1.0), record("cut", 2.0)) is True
    assert outcome(test, record("MACcut", 2.0), record("cut", 2.0)) is False
    one_of_two = [record("MACcut", 1.0), record("cut", 2.0)]
    one_of_two += [record("MACcut", 3.0, bits=16), record("cut", 2.0, bits=16)]
    assert outcome(test, *one_of_two) is False
    assert outcome(claims.lower_loss("MACcut", "cut", claims.OFTEN), *one_of_two) is True
    message = test(one_of_two)[1]
    for part in ("1 of 2 cases", "-50.0% at worst", "KSH, linear, 16 bits", "0.0% on average"):
        assert part in message
    assert test([record("cut")]) == UNTESTED


def test_methods_are_compared_on_the_seeds_they_share():
    test = claims.lower_loss("MACcut", "MACquad")
    records = [record("MACcut", 1.0, seed=0), record("MACcut", 9.0, seed=1)]
    assert outcome(test, *records, record("MACquad", 2.0, seed=0)) is True
    assert outcome(test, *records, record("MACquad", 2.0, seed=1)) is False
    assert outcome(test, *records, record("MACquad", 2.0, seed=2)) is None


def test_a_method_without_hash_functions_is_compared_with_every_kind():
    test = claims.lower_loss("MACcut", "KSH")
    ksh = record("KSH", 2.0, kind="")
    assert outcome(test, record("MACcut", 1.0), record("MACcut", 1.0, kind="rbf"), ksh) is True
    assert outcome(test, record("MACcut", 1.0), record("MACcut", 3.0, kind="rbf"), ksh) is False


def test_better_precision():
    test = claims.better_precision("MACcut", "cut")
    assert outcome(test, record("MACcut", p=0.6), record("cut", p=0.5)) is True
    assert outcome(test, record("MACcut", p=0.4), record("cut", p=0.5)) is False
    assert "mAP by -0.100" in test([record("MACcut", p=0.4), record("cut", p=0.5)])[1]
    assert test([record("cut")]) == UNTESTED


def curve(method, *precisions, **more):
    """A precision/recall curve with recalls evenly spaced from 0 to 1."""
    n = len(precisions) - 1
    return record(method, radius=[(at / n, p) for at, p in enumerate(precisions)], **more)


def test_better_curve():
    test = claims.better_curve("MACcut", "cut")
    low, high = (0.1, 0.4, 0.2), (0.2, 0.5, 0.3)
    assert outcome(test, curve("MACcut", *high), curve("cut", *low)) is True
    assert outcome(test, curve("MACcut", *low), curve("cut", *high)) is False
    crossing = test([curve("MACcut", 0.2, 0.4, 0.2), curve("cut", 0.1, 0.4, 0.4)])
    assert crossing[0] is False  # ahead at small recall only
    assert "4 of 9 cases" in crossing[1]
    assert test([record("MACcut"), record("cut")]) == UNTESTED


def test_precision_at_recall_is_read_off_the_curve():
    one = curve("cut", 0.0, 0.4, 0.2)
    assert claims.precision_at_recall(one, 0.25) == pytest.approx(0.2)
    assert claims.precision_at_recall(one, 0.75) == pytest.approx(0.3)


def test_better_retrieval_wants_precision_and_recall():
    test = claims.better_retrieval("MACcut", "cut")
    good, bad = curve("MACcut", 0.3, 0.3, p=0.6), curve("MACcut", 0.1, 0.1, p=0.6)
    cut = curve("cut", 0.2, 0.2)
    assert outcome(test, good, cut) is True
    assert outcome(test, bad, cut) is False
    assert outcome(test, curve("MACcut", 0.3, 0.3, p=0.4), cut) is False
    assert outcome(test, record("MACcut", p=0.6), record("cut")) is None


def test_close_curve():
    test = claims.close_curve("MACquad", "MACcut")
    far = [curve("cut", 0.2, 0.2), curve("quad", 0.28, 0.28)]
    near = [curve("cut", 0.3, 0.3), curve("quad", 0.304, 0.304)]
    quad, cut = curve("MACquad", 0.3, 0.3), curve("MACcut", 0.31, 0.31)
    assert outcome(test, *far, quad, cut) is True
    assert outcome(test, *far, quad, curve("MACcut", 0.4, 0.4)) is False
    assert outcome(test, *near, quad, cut) is False  # the starts were nearer
    assert outcome(test, quad, cut) is None


def test_drops_at_both_ends():
    test = claims.drops_at_both_ends
    assert outcome(test, curve("cut", 0.0, 0.5, 0.1)) is True
    assert outcome(test, curve("cut", 0.4, 0.5, 0.1)) is False
    assert outcome(test, curve("cut", 0.0, 0.5, 0.5)) is False
    assert outcome(test, record("cut")) is None


def test_much_lower_loss():
    test = claims.much_lower_loss("MACcut", "cut")
    assert outcome(test, record("MACcut", 0.97), record("cut")) is True
    assert outcome(test, record("MACcut", 0.999), record("cut")) is False  # too little
    once = [record("MACcut", 0.9), record("cut")]
    worse = [record("MACcut", 1.01, bits=16), record("cut", bits=16)]
    assert outcome(test, *once, *worse) is False  # not consistent
    assert outcome(test, record("cut")) is None


def test_by_construction_is_told_and_changes_nothing():
    test = claims.of_the_lowest(claims.lower_loss("MACcut", "cut"))
    for iterate in ("lowest", "last"):
        mac = record("MACcut", 1.0, iterate=iterate)
        holds, message = test([mac, record("cut", 2.0)])
        assert holds is True
        assert message.endswith(claims.LOWEST_RETURNED) == (iterate == "lowest")
    assert claims.by_construction(lambda _: (True, "Yes."), "Why.")([]) == (True, "Yes. Why.")
    assert outcome(test, record("MACcut", 2.0), record("cut", 2.0)) is False
    assert test([record("cut")]) == UNTESTED


def test_large_margin():
    test = claims.large_margin(("MACcut", "MACquad"), ("KSH", "ITQ"))
    assert outcome(test, record("MACcut", p=0.7), record("KSH", p=0.5)) is True
    assert outcome(test, record("MACcut", p=0.54), record("KSH", p=0.5)) is False
    assert outcome(test, record("MACcut", p=0.7), record("KSH"), record("ITQ", p=0.69)) is False
    assert outcome(test, record("KSH")) is None


def test_trains_faster():
    test = claims.trains_faster("BinaryAutoencoder", "MACcut")
    quick, slow = record("BinaryAutoencoder", kind="", seconds=1), record("MACcut", seconds=5)
    assert outcome(test, quick, slow) is True
    assert outcome(test, quick, record("MACcut", seconds=0.5)) is False
    assert outcome(test, quick) is None


def test_beats_all():
    test = claims.beats_all(("MACcut", "MACquad"), ("KSH", "ITQ"))
    field = [record("MACcut", p=0.5), record("KSH", p=0.4)]
    assert outcome(test, *field) is True
    assert outcome(test, *field, record("ITQ", p=0.6)) is False
    assert "ahead of it: ITQ 2" in test([*field, record("ITQ", p=0.6)])[1]
    most = claims.beats_all(("MACcut",), ("ITQ",), most_bits=True)
    few, many = record("ITQ", p=0.6), record("ITQ", p=0.3, bits=16)
    assert outcome(most, *field, few, record("MACcut", bits=16), many) is True
    assert outcome(test, record("KSH")) is None


def test_only_ones_ahead():
    test = claims.only_ones_ahead(("MACcut",), ("KSH",), "ITQ")
    itq = record("ITQ", p=0.4)
    assert outcome(test, record("MACcut", p=0.5), record("KSH", p=0.3), itq) is True
    assert outcome(test, record("MACcut", p=0.3), record("KSH", p=0.3), itq) is False
    assert outcome(test, record("MACcut", p=0.5), record("KSH", p=0.5), itq) is False
    assert outcome(test, record("MACcut", p=0.5)) is None
    good = [record("MACcut", p=0.5), record("KSH", p=0.3), itq]
    other = [record("MACcut", p=0.1, group="MNIST"), record("ITQ", p=0.2, group="MNIST")]
    assert outcome(test, *good, *other) is False  # it has to be so on every data set
    assert "MNIST, 8 bits: MACcut -0.075" in test([*good, *other])[1]


def test_end_up_similar():
    start = [record("cut", 2.0), record("quad", 3.0)]
    near = [record("MACcut", 1.0), record("MACquad", 1.01)]
    assert outcome(claims.end_up_similar, *start, *near) is True
    assert outcome(claims.end_up_similar, *start, near[0], record("MACquad", 1.3)) is False
    farther = [record("cut", 2.0), record("quad", 2.001)]
    assert outcome(claims.end_up_similar, *farther, *near) is False
    # What MAC gains is the scale: 1% apart is not similar where it gained half of that.
    little = [record("cut", 1.005), record("quad", 1.1), record("MACcut", 1.0)]
    assert outcome(claims.end_up_similar, *little, record("MACquad", 1.099)) is False
    assert outcome(claims.end_up_similar, *little, record("MACquad", 1.01)) is True
    assert outcome(claims.end_up_similar, *near) is None


def test_close_precision():
    test = claims.close_precision("MACquad", "MACcut")

    def ends(cut, quad, mac_cut, mac_quad):
        values = {"cut": cut, "quad": quad, "MACcut": mac_cut, "MACquad": mac_quad}
        return [record(name, p=p) for name, p in values.items()]

    assert outcome(test, *ends(0.4, 0.45, 0.5, 0.51)) is True
    assert outcome(test, *ends(0.4, 0.55, 0.5, 0.6)) is False  # nearer, but far all the same
    # Any start would do for a tolerance in itself: these were as near before.
    assert outcome(test, *ends(0.5, 0.504, 0.503, 0.508)) is False
    # Nearer than before, but by far less than they are still apart.
    assert outcome(test, *ends(0.5, 0.51, 0.502, 0.511)) is False
    message = test(ends(0.5, 0.51, 0.502, 0.511))[1]
    assert "in 0 of 2 cases, k by k (needed: two thirds)" in message
    assert test(ends(0.4, 0.45, 0.5, 0.51)[2:]) == UNTESTED  # without the starts
    assert outcome(test, record("MACcut")) is None


def used(method, bits, p=0.5):
    return record(method, p=p, kind="", effective={"base": bits, "query": bits})


def test_effective_bits():
    test = claims.largest_effective("TPCA")
    assert outcome(test, used("TPCA", 7), used("ITQ", 6)) is True
    assert outcome(test, used("TPCA", 5), used("ITQ", 6)) is False
    assert outcome(test, used("ITQ", 6)) is None
    low = claims.low_precision("TPCA")
    assert outcome(low, used("TPCA", 7, 0.1), used("ITQ", 6, 0.5)) is True
    assert outcome(low, used("TPCA", 7, 0.6), used("ITQ", 6, 0.5)) is False
    assert outcome(low, used("ITQ", 6)) is None
    more = claims.more_effective("MACcut", "cut")
    assert outcome(more, used("MACcut", 7), used("cut", 6)) is True
    assert outcome(more, used("MACcut", 5), used("cut", 6)) is False
    assert outcome(more, used("cut", 6)) is None
    goes_with = claims.utilization_goes_with_precision
    rising = [used("A", 3, 0.1), used("B", 4, 0.2), used("C", 5, 0.3)]
    falling = [used("A", 3, 0.3), used("B", 4, 0.2), used("C", 5, 0.1)]
    assert outcome(goes_with, *rising) is True
    assert outcome(goes_with, *falling) is False
    assert "-1.00 at 8 bits" in goes_with(falling)[1]
    assert outcome(goes_with, used("A", 3)) is None


def test_among_and_every():
    test = claims.among("eSPLH", claims.lower_loss("MACcut", "cut"))
    records = [record("MACcut", 3.0), record("cut", 2.0)]
    assert outcome(test, *records) is None
    good = [record("MACcut", 1.0, group="eSPLH"), record("cut", 2.0, group="eSPLH")]
    assert outcome(test, *records, *good) is True
    either = claims.every(test, claims.lower_loss("MACcut", "cut"))
    assert outcome(either, *good) is True
    assert outcome(either, *records, *good) is False
    assert outcome(either, *records) is False  # one fails, and the other cannot mend it
    half = [record("MACcut", 1.0), record("cut", 2.0)]
    assert outcome(either, *half) is None
    assert either(half)[1].endswith("8 bits). The rest of the claim was not run.")
    assert either([]) == claims.UNTESTED
    some = claims.among(("KSH", "eSPLH"), claims.lower_loss("MACcut", "cut"))
    assert outcome(some, *records, *good) is False
    assert outcome(some, record("MACcut", group="other"), record("cut", group="other")) is None


def test_start_apart():
    assert outcome(claims.start_apart, record("quad", 1.2), record("cut", 1.0)) is True
    assert outcome(claims.start_apart, record("quad", 1.01), record("cut", 1.0)) is False
    assert claims.start_apart([record("quad")]) == UNTESTED


def test_ahead_of_all_by_recall():
    test = claims.beats_all(("MACcut", "MACquad"), ("ITQ", "KSH"), by_recall=True)
    low, high = (0.1, 0.4, 0.2), (0.2, 0.5, 0.3)
    assert outcome(test, curve("MACcut", *high), curve("ITQ", *low)) is True
    assert outcome(test, curve("MACcut", *low), curve("ITQ", *high)) is False
    message = test([curve("MACcut", *high), curve("ITQ", 0.1, 0.4, 0.4)])[1]
    assert "7 of 9 cases, recall by recall (needed: nine tenths); ahead of it: ITQ 2" in message
    assert test([record("MACcut"), record("ITQ")]) == UNTESTED


def test_verdicts():
    claim = Claim("a is below b", claims.lower_loss("a", "b"))
    for loss, word in ((1.0, "held"), (3.0, "not held")):
        (verdict,) = judge([claim], [record("a", loss), record("b", 2.0)])
        assert verdict.word == word
    assert judge([claim], [])[0].word == "not tested"


@pytest.mark.parametrize("figure", EVERY.values(), ids=lambda figure: figure.name)
def test_no_claim_speaks_without_records(figure):
    if isinstance(figure, GroupFigure):
        assert {v.holds for v in judge(figure.claims, [])} == {None}
    words = [verdict.words for verdict in figure.claimed]
    assert all(words)
    assert len(set(words)) == len(words)  # tables find a claim by its words
    assert {verdict.holds for verdict in figure.claimed} == {None}


def random_records(figure, rng, iterate="last"):
    return made_records(figure.groups(TINY), rng, iterate)


@pytest.mark.parametrize("figure", GROUP_FIGURES, ids=lambda figure: figure.name)
def test_every_claim_fails_for_some_numbers(figure):
    rng = np.random.default_rng(0)
    unbroken = {claim.words for claim in figure.claims}
    for _ in range(30):
        verdicts = judge(figure.claims, list(random_records(figure, rng)))
        assert None not in {verdict.holds for verdict in verdicts}  # all of it is tested
        unbroken -= {verdict.words for verdict in verdicts if verdict.word == "not held"}
        if not unbroken:
            return
    pytest.fail(f"no numbers make these fail: {unbroken}")


@pytest.mark.parametrize("figure", GROUP_FIGURES, ids=lambda figure: figure.name)
def test_every_verdict_says_what_was_needed(figure):
    for verdict in judge(figure.claims, list(random_records(figure, np.random.default_rng(0)))):
        assert "(needed: " in verdict.numbers, verdict.words


@pytest.mark.parametrize("iterate", ["lowest", "last"])
def test_verdicts_that_the_algorithm_makes_sure_of_say_so(iterate):
    """In their numbers, whatever these are; the last iterate can be above the start."""
    sure = {
        "Validation: precision on the validation set is never below that of the start",
        "cut's never does",
    }
    sure_of_the_lowest = {
        "MACcut reduces the loss more than cut, in all cases",
        "MACquad reduces the loss more than quad, in all cases",
        "Two-step codes are suboptimal: MAC finds a better hash function of the same kind",
    }
    sure |= sure_of_the_lowest if iterate == "lowest" else set()
    rng = np.random.default_rng(0)
    for figure in GROUP_FIGURES:
        for verdict in judge(figure.claims, list(random_records(figure, rng, iterate))):
            words = "It can hardly fail", "It can fail by", "It cannot fail"
            says_so = any(each in verdict.numbers for each in words)
            assert says_so is (verdict.words in sure)


def test_what_the_paper_shows_without_a_word_is_ours():
    for name in ("sup-cosine", "unsup-cosine", "unsup-free"):
        assert all(verdict.ours for verdict in FIGURES[name].claimed)
    by_words = {v.words: v.ours for v in FIGURES["unsup-comparison"].claimed}
    assert by_words["With sufficiently many bits they beat ITQ"]
