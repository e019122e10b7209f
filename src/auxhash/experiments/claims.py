"""The paper's claims as functions of measurements: each holds, does not hold, or is not tested.

A test takes records and gives (holds, the numbers in a sentence); holds is None if the records
cannot tell. One with parameters takes these first: lower_loss("MACcut", "cut") is a test. A case is
one (group, hash function, bits); two methods are compared by their means over the seeds that both
were run with.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec

import numpy as np
from scipy.stats import spearmanr

from auxhash.experiments.groups import PAPERS, TWO_STEP_OF, Record

Records = Sequence[Record]
Outcome = tuple[bool | None, str]
Test = Callable[[Records], Outcome]
Value = Callable[[Record], float]
TestParameters = ParamSpec("TestParameters")

# The paper's words as numbers: the share of the cases that has to agree.
ALWAYS, NEARLY_ALWAYS, USUALLY, OFTEN = 1.0, 0.9, 2 / 3, 1 / 3
WORDS = {ALWAYS: "all", NEARLY_ALWAYS: "nine tenths", USUALLY: "two thirds", OFTEN: "a third"}

UNTESTED: Outcome = (None, "This run has no numbers for it.")
REST = "The rest of the claim was not run."
START_OF = {mac: two_step for two_step, mac in TWO_STEP_OF.items()}


@dataclass(frozen=True)
class Claim:
    """A claim in words, and its test; `ours` if the claim is not from the paper."""

    words: str
    test: Test
    ours: bool = False

    @property
    def as_ours(self) -> "Claim":
        """The claim marked as ours, where the paper shows a figure and says nothing about it."""
        return replace(self, ours=True)


@dataclass(frozen=True)
class Verdict:
    """A claim after the test."""

    words: str
    ours: bool
    holds: bool | None
    numbers: str
    judged: bool = True  # False where the runs are too small to prove anything

    @property
    def word(self) -> str:
        if self.holds is not None and not self.judged:
            return "not judged"
        return {True: "held", False: "not held", None: "not tested"}[self.holds]


class Pair(NamedTuple):
    """Two methods in one case: the means over the seeds that both have."""

    case: str
    a: float
    b: float


def judge(claims: Iterable[Claim], records: Records) -> list[Verdict]:
    """Every claim's verdict."""
    return [Verdict(claim.words, claim.ours, *claim.test(records)) for claim in claims]


def parametrized(
    test: Callable[Concatenate[Records, TestParameters], Outcome],
) -> Callable[TestParameters, Test]:
    """Return a function of the parameters of a test, which gives the test of the records alone."""

    @wraps(test)
    def with_parameters(*args: TestParameters.args, **kwargs: TestParameters.kwargs) -> Test:
        return lambda records: test(records, *args, **kwargs)

    return with_parameters


def among(groups: str | Sequence[str], test: Test) -> Test:
    """The test on the records of one group, or of some."""
    wanted = (groups,) if isinstance(groups, str) else groups
    return lambda records: test([record for record in records if record.group in wanted])


def every(*tests: Test) -> Test:
    """Combine tests: the claim holds if all hold, and fails if one fails."""

    def test(records: Records) -> Outcome:
        results = [one(records) for one in tests]
        outcomes = [holds for holds, _ in results]
        holds = False if False in outcomes else None if None in outcomes else True
        tested = [numbers for outcome, numbers in results if outcome is not None]
        if tested and None in outcomes:
            tested.append(REST)
        return holds, " ".join(dict.fromkeys(tested or [UNTESTED[1]]))

    return test


LOWEST_RETURNED = (
    "It can hardly fail: MAC returns the iterate of lowest L(h), and its start is one of them. But "
    "it compares them on the pairs that it learns from, and L here is of all pairs, those of the "
    "points held out, too."
)
STEPS_REFUSED = "It cannot fail: a step that would lower this precision is ignored."
CUTS_EXACT = "It can fail by a fault of the program alone: graph cuts find the minimum of a block."


def by_construction(test: Test, why: str) -> Test:
    """The test, with the word that it can hardly fail."""

    def extended(records: Records) -> Outcome:
        holds, numbers = test(records)
        if holds is None:
            return holds, numbers
        return holds, f"{numbers} {why}"

    return extended


def of_the_lowest(test: Test) -> Test:
    """The test, with the word that it can hardly fail where MAC returned its lowest L(h)."""
    extended = by_construction(test, LOWEST_RETURNED)

    def chosen(records: Records) -> Outcome:
        returned = {record.iterate for record in records if record.method in PAPERS}
        return (extended if returned == {"lowest"} else test)(records)

    return chosen


@parametrized
def lower_loss(records: Records, a: str, b: str, share: float = ALWAYS) -> Outcome:
    """L(h) of a below that of b in this share of the cases."""
    pairs = paired(records, a, b, lambda r: r.loss)
    if not pairs:
        return UNTESTED
    gains = [(1 - pair.a / pair.b) * 100 for pair in pairs]
    least = int(np.argmin(gains))
    holds, won = counted([gain > 0 for gain in gains], share)
    return holds, (
        f"L of {a} below {b} in {won}; by {np.mean(gains):.1f}% on average, {gains[least]:.1f}% at "
        f"worst ({pairs[least].case})."
    )


MIN_LOSS_GAIN_PERCENT = 1.0


@parametrized
def much_lower_loss(records: Records, a: str, b: str) -> Outcome:
    """L(h) of a below that of b in all cases, and by MIN_LOSS_GAIN_PERCENT on average."""
    pairs = paired(records, a, b, lambda r: r.loss)
    if not pairs:
        return UNTESTED
    gains = [(1 - pair.a / pair.b) * 100 for pair in pairs]
    return bool(min(gains) > 0 and np.mean(gains) >= MIN_LOSS_GAIN_PERCENT), (
        f"L of {a} is {np.mean(gains):.2f}% below {b} on average (needed: "
        f"{MIN_LOSS_GAIN_PERCENT:g}%), {min(gains):.2f}% at worst (needed: above 0)."
    )


@parametrized
def better_precision(records: Records, a: str, b: str, share: float = NEARLY_ALWAYS) -> Outcome:
    """Precision at k of a above that of b in this share of the cases and k."""
    areas = paired(records, a, b, lambda r: r.average_precision)
    holds, numbers = _better(f"Precision of {a}", at_ranks(records, a, b), b, "k by k", share)
    if holds is None:
        return UNTESTED
    return holds, f"{numbers}; mAP by {np.mean([p.a - p.b for p in areas]):+.3f}."


RECALLS = tuple(np.arange(1, 10) / 10)  # at which the precision of two curves is compared


def precision_at_recall(record: Record, recall: float) -> float:
    """Precision at a recall, on the line through the points of the Hamming radii."""
    recalls, precisions = zip(*sorted(record.radius), strict=True)
    return float(np.interp(recall, recalls, precisions))


@parametrized
def better_curve(records: Records, a: str, b: str, share: float = NEARLY_ALWAYS) -> Outcome:
    """Precision over recall of a above that of b, in this share of the cases and recalls."""
    pairs = _at_recalls(records, a, b)
    holds, numbers = _better(f"Precision/recall: {a}", pairs, b, "recall by recall", share)
    return UNTESTED if holds is None else (holds, f"{numbers}.")


def _better(what: str, pairs: Sequence[Pair], b: str, step: str, share: float) -> Outcome:
    """Outcome for gains over b, in a sentence without its end."""
    if not pairs:
        return UNTESTED
    gains = [pair.a - pair.b for pair in pairs]
    least = int(np.argmin(gains))
    holds, won = counted([gain > 0 for gain in gains], share, f"cases, {step}")
    return holds, (
        f"{what} above {b} in {won}; by {np.mean(gains):+.3f} on average, {gains[least]:+.3f} at "
        f"worst ({pairs[least].case})"
    )


@parametrized
def close_curve(records: Records, a: str, b: str) -> Outcome:
    """Precision over recall of two MACs ends up close, as that of `close_precision`."""
    return _close(records, f"Precision of {a} and {b} at equal recall", (a, b), _at_recalls)


def better_retrieval(a: str, b: str, share: float = NEARLY_ALWAYS) -> Test:
    """Better precision at k, and better precision over recall."""
    return every(better_precision(a, b, share), better_curve(a, b, share))


def drops_at_both_ends(records: Records) -> Outcome:
    """Test that in most precision/recall curves r = 0 and r = b have less than half the best."""
    complete = [record.radius for record in records if record.all_radii and len(record.radius) > 2]
    curves = [[precision for _, precision in radius] for radius in complete]
    if not curves:
        return UNTESTED
    low = [sum(curve[end] < max(curve) / 2 for curve in curves) for end in (0, -1)]
    both = [max(curve[0], curve[-1]) < max(curve) / 2 for curve in curves]
    holds, drops = counted(both, USUALLY, "curves")
    return holds, (
        f"Below half of the best precision at r = 0 in {low[0]}, at r = b in {low[1]}, at both in "
        f"{drops}."
    )


MIN_PRECISION_LEAD = 0.05


@parametrized
def large_margin(records: Records, ours: Sequence[str], others: Sequence[str]) -> Outcome:
    """The best of ours leads the best other by MIN_PRECISION_LEAD, in a third of cases and k."""
    gains = []
    for case in _by_case_and_rank(records):
        mine = [case[name] for name in ours if name in case]
        rest = [case[name] for name in others if name in case]
        if mine and rest:
            gains.append(max(mine) - max(rest))
    if not gains:
        return UNTESTED
    holds, won = counted([gain >= MIN_PRECISION_LEAD for gain in gains], OFTEN, "cases, k by k")
    return holds, (
        f"The better of {' and '.join(ours)} is ahead of the best other by {MIN_PRECISION_LEAD} "
        f"in {won}; by {np.mean(gains):+.3f} on average, {max(gains):+.3f} at best."
    )


@parametrized
def beats_all(
    records: Records,
    ours: Sequence[str],
    others: Sequence[str],
    share: float = NEARLY_ALWAYS,
    most_bits: bool = False,
    by_recall: bool = False,
) -> Outcome:
    """The best of ours above the best of the others, over cases and k, or cases and recalls."""
    if most_bits:
        records = _most_bits(records)
    wins, ahead = list[bool](), Counter[str]()
    cases = _by_case_and_recall(records) if by_recall else _by_case_and_rank(records)
    step = "recall by recall" if by_recall else "k by k"
    for case in cases:
        mine = [case[name] for name in ours if name in case]
        rest = {name: case[name] for name in others if name in case}
        if mine and rest:
            wins.append(max(mine) > max(rest.values()))
            ahead.update(name for name, value in rest.items() if value >= max(mine))
    if not wins:
        return UNTESTED
    listed = ", ".join(f"{name} {n}" for name, n in ahead.most_common())
    holds, won = counted(wins, share, f"cases, {step}")
    return holds, (
        f"The better of {' and '.join(ours)} is ahead of all others in {won}"
        f"{listed and f'; ahead of it: {listed}'}."
    )


@parametrized
def only_ones_ahead(
    records: Records, ours: Sequence[str], others: Sequence[str], of: str
) -> Outcome:
    """Test that with the most bits ours, and no others, exceed `of` in mean precision."""
    every = _most_bits(records)
    holds, lines = [], []
    for group in dict.fromkeys(r.group for r in every):
        (means,) = _means([r for r in every if r.group == group], _mean_precision).values()
        gains = {name: value - means[of] for name, value in means.items() if of in means}
        mine = {name: gains[name] for name in ours if name in gains}
        rest = {name: gains[name] for name in others if name in gains}
        if mine:
            holds.append(min(mine.values()) > 0 and max(rest.values(), default=0.0) <= 0)
            listed = (f"{name} {gain:+.3f}" for name, gain in {**mine, **rest}.items())
            lines.append(f"{group}, {every[0].bits} bits: {', '.join(listed)}")
    if not holds:
        return UNTESTED
    needed = f"above 0 for {' and '.join(ours)}, and for no other"
    return all(holds), f"Mean precision less that of {of} (needed: {needed}), {'; '.join(lines)}."


MAX_LOSS_APART = 0.05  # as a share of one of the two


def end_up_similar(records: Records) -> Outcome:
    """L of MACquad and MACcut: nearer than quad and cut were, and than either of them moved."""
    ends = paired(records, "MACquad", "MACcut", lambda r: r.loss)
    starts = {pair.case: pair for pair in paired(records, "quad", "cut", lambda r: r.loss)}
    ends = [pair for pair in ends if pair.case in starts]
    if not ends:
        return UNTESTED
    after = [abs(pair.a / pair.b - 1) for pair in ends]
    before = [abs(starts[pair.case].a / starts[pair.case].b - 1) for pair in ends]
    gains = [
        max(1 - pair.a / starts[pair.case].a, 1 - pair.b / starts[pair.case].b) for pair in ends
    ]
    holds, nearer = _nearer(after, before, gains)
    return holds and max(after) <= MAX_LOSS_APART, (
        f"L of the two differs by {np.mean(after):.1%} on average and {max(after):.1%} at most "
        f"(needed: {MAX_LOSS_APART:.0%}), after {np.mean(before):.1%} between quad and cut; nearer "
        f"than those, and by no more than MAC gains ({np.mean(gains):.1%} on average), in {nearer}."
    )


def _nearer(
    after: Sequence[float], before: Sequence[float], gains: Sequence[float], of: str = "cases"
) -> tuple[bool, str]:
    """Return whether two MACs are usually nearer than their starts, and than either of them moved.

    The scale is what MAC gains: a tolerance beyond that would call any start similar, too.
    """
    agree = [x < y and x <= gain for x, y, gain in zip(after, before, gains, strict=True)]
    return counted(agree, USUALLY, of)


def start_apart(records: Records) -> Outcome:
    """L of quad and cut, where the two MACs start, differs by over MAX_LOSS_APART on average."""
    starts = paired(records, "quad", "cut", lambda r: r.loss)
    if not starts:
        return UNTESTED
    apart = [abs(pair.a / pair.b - 1) for pair in starts]
    return bool(np.mean(apart) > MAX_LOSS_APART), (
        f"L of quad and cut differs by {np.mean(apart):.1%} on average (needed: more than "
        f"{MAX_LOSS_APART:.0%}), {max(apart):.1%} at most."
    )


MAX_PRECISION_APART = 0.02


@parametrized
def close_precision(records: Records, a: str, b: str) -> Outcome:
    """Precision of two MACs: nearer than that of their starts, and than either of them moved.

    Usually, over cases and k; and MAX_PRECISION_APART at most, on average.
    """
    return _close(records, f"Precision of {a} and {b}", (a, b), at_ranks)


def _close(
    records: Records,
    what: str,
    macs: tuple[str, str],
    compared: Callable[[Records, str, str], list[Pair]],
) -> Outcome:
    one, other = (START_OF[mac] for mac in macs)
    starts = {pair.case: pair for pair in compared(records, one, other)}
    ends = [pair for pair in compared(records, *macs) if pair.case in starts]
    if not ends:
        return UNTESTED
    after = [abs(pair.a - pair.b) for pair in ends]
    before = [abs(starts[pair.case].a - starts[pair.case].b) for pair in ends]
    gains = [max(pair.a - starts[pair.case].a, pair.b - starts[pair.case].b) for pair in ends]
    step = "recall by recall" if compared is _at_recalls else "k by k"
    holds, nearer = _nearer(after, before, gains, f"cases, {step}")
    return bool(holds and np.mean(after) <= MAX_PRECISION_APART), (
        f"{what} differs by {np.mean(after):.3f} on average (needed: {MAX_PRECISION_APART}) and "
        f"{max(after):.3f} at most, after {np.mean(before):.3f} between {one} and {other}; nearer "
        f"than those, and by no more than MAC gains ({np.mean(gains):+.3f} on average), in "
        f"{nearer}."
    )


@parametrized
def trains_faster(records: Records, a: str, b: str) -> Outcome:
    """a trains in less time than b, in all cases."""
    pairs = paired(records, a, b, lambda r: r.seconds)
    if not pairs:
        return UNTESTED
    holds, won = counted([pair.a < pair.b for pair in pairs], ALWAYS)
    one, other = (float(np.mean(values)) for values in zip(*[p[1:] for p in pairs], strict=True))
    return holds, (f"{a} faster than {b} in {won}; {one:.1f} s against {other:.1f} s on average.")


@parametrized
def largest_effective(records: Records, method: str) -> Outcome:
    """The method has the most effective bits on the base, at two thirds of the numbers of bits."""
    means = _means(records, lambda r: r.effective.get("base", float("nan")))
    means = {bits: of for bits, of in means.items() if method in of and len(of) > 1}
    if not means:
        return UNTESTED
    holds, won = counted([of[method] >= max(of.values()) for of in means.values()], USUALLY)
    lines = []
    for bits, of in means.items():
        best = max((name for name in of if name != method), key=lambda name: of[name])
        lines.append(f"{bits} bits: {of[method]:.2f}, best other {of[best]:.2f} ({best})")
    return holds, f"{method} is first in {won}; {'; '.join(lines)}."


@parametrized
def low_precision(records: Records, method: str) -> Outcome:
    """The method's mean precision is in the lower half of all, at two thirds of numbers of bits."""
    means = _means(records, _mean_precision)
    ranks = {
        bits: (sorted(of.values(), reverse=True).index(of[method]) + 1, len(of))
        for bits, of in means.items()
        if method in of and len(of) > 1
    }
    if not ranks:
        return UNTESTED
    holds, low = counted([r > n / 2 for r, n in ranks.values()], USUALLY, "numbers of bits")
    places = ", ".join(f"{r} of {n} at {bits} bits" for bits, (r, n) in ranks.items())
    return holds, f"{method} is in the lower half of precision at {low}: {places}."


@parametrized
def more_effective(records: Records, a: str, b: str) -> Outcome:
    """a has more effective bits than b on the base, in two thirds of the cases."""
    having = [record for record in records if "base" in record.effective]
    pairs = paired(having, a, b, lambda r: r.effective["base"])
    if not pairs:
        return UNTESTED
    gains = [pair.a - pair.b for pair in pairs]
    holds, won = counted([gain > 0 for gain in gains], USUALLY)
    return holds, (
        f"{a} has more than {b} in {won}; by {np.mean(gains):+.2f} bits on average, from "
        f"{min(gains):+.2f} to {max(gains):+.2f}."
    )


MIN_CORRELATION = 0.2  # of ranks, that counts


def utilization_goes_with_precision(records: Records) -> Outcome:
    """Mean rank correlation of effective bits and precision over methods >= MIN_CORRELATION."""
    effective = _means(records, lambda r: r.effective.get("base", float("nan")))
    precision = _means(records, _mean_precision)
    correlations = {}
    for bits, of in effective.items():
        if len(of) > 2:
            both = [of[name] for name in of], [precision[bits][name] for name in of]
            correlations[bits] = float(spearmanr(*both).statistic)
    if not correlations:
        return UNTESTED
    listed = ", ".join(f"{value:+.2f} at {bits} bits" for bits, value in correlations.items())
    return bool(np.mean(list(correlations.values())) >= MIN_CORRELATION), (
        f"Rank correlation over the methods: {listed} (needed: {MIN_CORRELATION} on average)."
    )


def _mean_precision(record: Record) -> float:
    return float(np.mean(list(record.precision.values())))


def _means(records: Records, value: Value) -> dict[int, dict[str, float]]:
    """The mean of each method over groups and seeds, by number of bits."""
    values_of: dict[int, dict[str, list[float]]] = {}
    for record in records:
        values_of.setdefault(record.bits, {}).setdefault(record.method, []).append(value(record))
    return {
        bits: {name: float(np.mean(values)) for name, values in of.items()}
        for bits, of in values_of.items()
    }


def paired(records: Records, a: str, b: str, value: Value) -> list[Pair]:
    """Both methods in every case that both were run in; one of a fixed hash function fits any."""
    pairs = []
    kinds = dict.fromkeys(r.hash_function for r in records if r.method in (a, b))
    groups = dict.fromkeys((r.group, r.bits) for r in records)
    for group, bits in groups:
        for kind in [kind for kind in kinds if kind] or [""]:
            of = [
                {
                    r.seed: value(r)
                    for r in records
                    if (r.group, r.bits, r.method) == (group, bits, method)
                    and r.hash_function in (kind, "")
                }
                for method in (a, b)
            ]
            seeds = [seed for seed in of[0] if seed in of[1]]
            if seeds:
                means = (float(np.mean([part[seed] for seed in seeds])) for part in of)
                case = ", ".join(filter(None, (group, kind, f"{bits} bits")))
                pairs.append(Pair(case, *means))
    return pairs


def at_ranks(records: Records, a: str, b: str) -> list[Pair]:
    """`paired`, for the precision at every k."""
    compared = []
    for k in sorted({k for record in records for k in record.precision}):
        having = [record for record in records if k in record.precision]
        pairs = paired(having, a, b, lambda record: record.precision[k])  # noqa: B023
        compared += [Pair(f"{pair.case}, k = {k}", pair.a, pair.b) for pair in pairs]
    return compared


def _at_recalls(records: Records, a: str, b: str) -> list[Pair]:
    """`paired`, for the precision at each of RECALLS."""
    having = [record for record in records if record.radius]
    compared = []
    for recall in RECALLS:
        pairs = paired(having, a, b, lambda r: precision_at_recall(r, recall))  # noqa: B023
        compared += [Pair(f"{pair.case}, recall {recall:g}", pair.a, pair.b) for pair in pairs]
    return compared


def enough(won: int, total: int, share: float) -> bool:
    return won >= share * total - 1e-9


def counted(agree: Sequence[bool], share: float, of: str = "cases") -> tuple[bool, str]:
    """Return whether enough of the cases agree, and how many: "3 of 4 cases (needed: all)"."""
    won = sum(agree)
    words = f"{won} of {len(agree)} {of} (needed: {WORDS[share]})"
    return enough(won, len(agree), share), words


def mac_runs(records: Records) -> list[Record]:
    """The runs of MACcut and MACquad, with their steps."""
    return [r for r in records if r.method in ("MACcut", "MACquad") and r.history]


def _most_bits(records: Records) -> list[Record]:
    most = max((record.bits for record in records), default=0)
    return [record for record in records if record.bits == most]


def _by_case_and_rank(records: Records) -> list[dict[str, float]]:
    """Mean precision of every method over its seeds, for each group, number of bits and k."""
    return _by_case(records, lambda record: record.precision)


def _by_case_and_recall(records: Records) -> list[dict[str, float]]:
    """Mean precision of each method, for each group, number of bits and recall."""
    having = [record for record in records if record.radius]
    return _by_case(having, lambda r: {at: precision_at_recall(r, at) for at in RECALLS})


def _by_case(
    records: Records, values: Callable[[Record], Mapping[Any, float]]
) -> list[dict[str, float]]:
    cases: dict[tuple[str, int, Any], dict[str, list[float]]] = {}
    for record in records:
        for at, value in values(record).items():
            case = cases.setdefault((record.group, record.bits, at), {})
            case.setdefault(record.method, []).append(value)
    return [{name: float(np.mean(v)) for name, v in case.items()} for case in cases.values()]
