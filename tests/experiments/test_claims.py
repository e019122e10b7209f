"""Every claim is tested on made numbers for which it holds, for which it does not, and on none."""

import pytest

from auxhash.experiments import claims
from auxhash.experiments.claims import UNTESTED, Claim, judge
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.groups import Record


def record(method, loss=1.0, p=0.5, kind="linear", bits=8, seed=0, group="KSH", **more):
    return Record(
        group, method, kind, bits, seed, loss, {10: p, 20: p / 2}, average_precision=p, **more
    )


def history(*losses, seconds=None, free=0.1, violations=0):
    seconds = seconds or [1.0] * len(losses)
    return [
        {"loss": loss, "seconds": s, "free_loss": free, "violations": violations}
        for loss, s in zip(losses, seconds, strict=True)
    ]


def held(test, *records):
    return test(list(records))[0]


def test_lower_loss():
    test = claims.lower_loss("MACcut", "cut")
    assert held(test, record("MACcut", 1.0), record("cut", 2.0)) is True
    assert held(test, record("MACcut", 2.0), record("cut", 2.0)) is False
    one_of_two = [record("MACcut", 1.0), record("cut", 2.0)]
    one_of_two += [record("MACcut", 3.0, bits=16), record("cut", 2.0, bits=16)]
    assert held(test, *one_of_two) is False
    assert held(claims.lower_loss("MACcut", "cut", claims.OFTEN), *one_of_two) is True
    told = test(one_of_two)[1]
    for part in ("1 of 2 cases", "-50.0% at worst", "KSH, linear, 16 bits", "0.0% on average"):
        assert part in told
    assert test([record("cut")]) == UNTESTED


def test_methods_are_compared_on_the_seeds_they_share():
    test = claims.lower_loss("MACcut", "MACquad")
    records = [record("MACcut", 1.0, seed=0), record("MACcut", 9.0, seed=1)]
    assert held(test, *records, record("MACquad", 2.0, seed=0)) is True
    assert held(test, *records, record("MACquad", 2.0, seed=1)) is False
    assert held(test, *records, record("MACquad", 2.0, seed=2)) is None


def test_a_method_without_hash_functions_is_compared_with_every_kind():
    test = claims.lower_loss("MACcut", "KSH")
    ksh = record("KSH", 2.0, kind="")
    assert held(test, record("MACcut", 1.0), record("MACcut", 1.0, kind="rbf"), ksh) is True
    assert held(test, record("MACcut", 1.0), record("MACcut", 3.0, kind="rbf"), ksh) is False


def test_better_precision():
    test = claims.better_precision("MACcut", "cut")
    assert held(test, record("MACcut", p=0.6), record("cut", p=0.5)) is True
    assert held(test, record("MACcut", p=0.4), record("cut", p=0.5)) is False
    assert "mAP by -0.100" in test([record("MACcut", p=0.4), record("cut", p=0.5)])[1]
    assert test([record("cut")]) == UNTESTED


def test_beats_all():
    test = claims.beats_all(("MACcut", "MACquad"), ("KSH", "ITQ"))
    field = [record("MACcut", p=0.5), record("KSH", p=0.4)]
    assert held(test, *field) is True
    assert held(test, *field, record("ITQ", p=0.6)) is False
    assert "ahead of it: ITQ 2" in test([*field, record("ITQ", p=0.6)])[1]
    most = claims.beats_all(("MACcut",), ("ITQ",), most_bits=True)
    few, many = record("ITQ", p=0.6), record("ITQ", p=0.3, bits=16)
    assert held(most, *field, few, record("MACcut", bits=16), many) is True
    assert held(test, record("KSH")) is None


def test_only_ones_ahead():
    test = claims.only_ones_ahead(("MACcut",), ("KSH",), "ITQ")
    itq = record("ITQ", p=0.4)
    assert held(test, record("MACcut", p=0.5), record("KSH", p=0.3), itq) is True
    assert held(test, record("MACcut", p=0.3), record("KSH", p=0.3), itq) is False
    assert held(test, record("MACcut", p=0.5), record("KSH", p=0.5), itq) is False
    assert held(test, record("MACcut", p=0.5)) is None
    good = [record("MACcut", p=0.5), record("KSH", p=0.3), itq]
    other = [record("MACcut", p=0.1, group="MNIST"), record("ITQ", p=0.2, group="MNIST")]
    assert held(test, *good, *other) is False  # it has to be so on every data set
    assert "MNIST, 8 bits: MACcut -0.075" in test([*good, *other])[1]


def four(mac_linear, mac_kernel, kernel=0.6):
    return [
        record("cut", p=0.4),
        record("cut", p=kernel, kind="rbf"),
        record("MACcut", p=mac_linear),
        record("MACcut", p=mac_kernel, kind="rbf"),
    ]


def test_larger_gain_for_linear():
    test = claims.larger_gain_for_linear("MACcut", "cut")
    assert held(test, *four(0.5, 0.65)) is True
    assert held(test, *four(0.45, 0.7)) is False
    assert held(test, record("MACcut"), record("cut")) is None


def test_gain_like_a_kernel():
    test = claims.gain_like_a_kernel("MACcut", "cut")
    assert held(test, *four(0.5, 0.6)) is True  # 0.1 against 0.2
    assert held(test, *four(0.45, 0.6)) is False
    assert held(test, *four(0.39, 0.6, kernel=0.3)) is False  # no gain is no gain
    assert held(test, record("MACcut"), record("cut")) is None


def test_end_up_similar():
    start = [record("cut", 2.0), record("quad", 3.0)]
    near = [record("MACcut", 1.0), record("MACquad", 1.01)]
    assert held(claims.end_up_similar, *start, *near) is True
    assert held(claims.end_up_similar, *start, near[0], record("MACquad", 1.3)) is False
    farther = [record("cut", 2.0), record("quad", 2.001)]
    assert held(claims.end_up_similar, *farther, *near) is False
    assert held(claims.end_up_similar, *near) is None


def test_iterations():
    test = claims.iterations(2, 3)
    assert held(test, record("MACcut", history=history(3, 2, 1))) is True
    assert held(test, record("MACcut", history=history(3, 1))) is False
    assert held(test, record("MACcut", history=history(3, 2, 1, violations=4))) is False
    assert held(test, record("cut", history=history(3))) is None


def test_progress():
    early = record("MACcut", history=history(9, 5, 4, 3))
    late = record("MACcut", history=history(9, 8.5, 8, 3))
    assert held(claims.progress_at_the_beginning, early) is True
    assert held(claims.progress_at_the_beginning, early, late) is False
    assert held(claims.progress_at_the_beginning, record("cut")) is None


def test_close_precision():
    test = claims.close_precision("MACquad", "MACcut")
    assert held(test, record("MACquad", p=0.51), record("MACcut")) is True
    assert held(test, record("MACquad", p=0.6), record("MACcut")) is False
    assert held(test, record("MACcut")) is None


def test_times():
    quick = record("MACcut", history=history(3, 2, 1, seconds=[4, 2, 2]))
    slow = record("MACcut", history=history(3, 2, 1, seconds=[4, 5, 5]))
    endless = record("MACcut", history=history(3, 2, seconds=[1, 30]))
    assert held(claims.later_are_faster, quick) is True
    assert held(claims.later_are_faster, quick, slow) is False
    assert held(claims.few_two_steps, quick, slow) is True
    assert held(claims.few_two_steps, quick, endless) is False
    for test in (claims.later_are_faster, claims.few_two_steps):
        assert held(test, record("cut")) is None


def test_iteration_in_time():
    full = {"bits": 48, "points": 10_000}
    steps = history(2, 1, seconds=[100, 60])
    assert held(claims.iteration_in_time, record("MACcut", history=steps, **full)) is True
    slow = history(2, 1, seconds=[300, 60])
    assert held(claims.iteration_in_time, record("MACcut", history=slow, **full)) is False
    for other in ({**full, "points": 5_000}, {"bits": 16, "points": 50_000}):
        assert held(claims.iteration_in_time, record("MACcut", history=steps, **other)) is None


def test_free_codes():
    far = record("MACcut", 1.0, history=history(1.2, 1.0, free=0.2))
    near = record("MACcut", 1.0, history=history(2.0, 1.0, free=0.9))
    assert held(claims.free_codes_far_below, far) is True
    assert held(claims.free_codes_far_below, far, near) is False
    assert held(claims.free_codes_far_below, record("cut")) is None
    linear, kernel = record("MACcut", 2.0), record("MACcut", 1.0, kind="rbf")
    assert held(claims.kernel_nearer_than_linear, linear, kernel) is True
    assert held(claims.kernel_nearer_than_linear, record("MACcut", 0.5), kernel) is False
    assert held(claims.kernel_nearer_than_linear, linear) is None


def used(method, bits, p=0.5):
    return record(method, p=p, kind="", effective={"base": bits, "query": bits})


def test_effective_bits():
    test = claims.largest_effective("TPCA")
    assert held(test, used("TPCA", 7), used("ITQ", 6)) is True
    assert held(test, used("TPCA", 5), used("ITQ", 6)) is False
    assert held(test, used("ITQ", 6)) is None
    low = claims.low_precision("TPCA")
    assert held(low, used("TPCA", 7, 0.1), used("ITQ", 6, 0.5)) is True
    assert held(low, used("TPCA", 7, 0.6), used("ITQ", 6, 0.5)) is False
    assert held(low, used("ITQ", 6)) is None
    goes_with = claims.utilization_goes_with_precision
    rising = [used("A", 3, 0.1), used("B", 4, 0.2), used("C", 5, 0.3)]
    falling = [used("A", 3, 0.3), used("B", 4, 0.2), used("C", 5, 0.1)]
    assert held(goes_with, *rising) is True
    assert held(goes_with, *falling) is False
    assert "-1.00 at 8 bits" in goes_with(falling)[1]
    assert held(goes_with, used("A", 3)) is None


def test_among_and_both():
    test = claims.among("eSPLH", claims.lower_loss("MACcut", "cut"))
    records = [record("MACcut", 3.0), record("cut", 2.0)]
    assert held(test, *records) is None
    good = [record("MACcut", 1.0, group="eSPLH"), record("cut", 2.0, group="eSPLH")]
    assert held(test, *records, *good) is True
    either = claims.both(test, claims.lower_loss("MACcut", "cut"))
    assert held(either, *good) is True
    assert held(either, *records, *good) is False
    assert held(either, *records) is False  # one fails, and the other cannot mend it
    assert held(either, record("MACcut", 1.0), record("cut", 2.0)) is None


def test_verdicts():
    claim = Claim("a is below b", claims.lower_loss("a", "b"))
    for loss, word in ((1.0, "held"), (3.0, "not held")):
        (verdict,) = judge([claim], [record("a", loss), record("b", 2.0)])
        assert verdict.word == word
    assert judge([claim], [])[0].word == "not tested"


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_no_claim_speaks_without_records(figure):
    if isinstance(figure, GroupFigure):
        assert {v.held for v in judge(figure.claims, [])} == {None}
        assert all(claim.words for claim in figure.claims)
