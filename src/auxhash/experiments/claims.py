"""The paper's claims as functions of what was measured: held, not held, or not tested.

A test takes records and gives (held, the numbers in a sentence); held is None if the records
cannot tell. A case is one (group, hash function, bits); two methods are compared by their means
over the seeds that both were run with.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from auxhash.experiments.groups import Record

Outcome = tuple[bool | None, str]
Test = Callable[[Sequence[Record]], Outcome]
Value = Callable[[Record], float]

# What the paper's words are taken to mean: the share of the cases that has to agree.
ALWAYS, NEARLY_ALWAYS, USUALLY, OFTEN = 1.0, 0.9, 2 / 3, 1 / 3
WORDS = {ALWAYS: "all", NEARLY_ALWAYS: "nine tenths", USUALLY: "two thirds", OFTEN: "a third"}

UNTESTED: Outcome = (None, "This run has no numbers for it.")


@dataclass(frozen=True)
class Claim:
    """What is claimed, and how it is tested; `ours` if the claim is not from the paper."""

    words: str
    test: Test
    ours: bool = False


@dataclass(frozen=True)
class Verdict:
    """A claim after the test."""

    words: str
    ours: bool
    held: bool | None
    numbers: str
    judged: bool = True  # False where the runs are too small to prove anything

    @property
    def word(self) -> str:
        if self.held is not None and not self.judged:
            return "not judged"
        return {True: "held", False: "not held", None: "not tested"}[self.held]


class Pair(NamedTuple):
    """Two methods in one case: the means over the seeds that both have."""

    case: str
    a: float
    b: float


def judge(claims: Iterable[Claim], records: Sequence[Record]) -> list[Verdict]:
    """Every claim's verdict."""
    return [Verdict(claim.words, claim.ours, *claim.test(records)) for claim in claims]


def among(group: str, test: Test) -> Test:
    """The test on the records of one group."""
    return lambda records: test([record for record in records if record.group == group])


def both(first: Test, second: Test) -> Test:
    """Held where both tests hold, not held where one does not, whatever the other says."""

    def test(records: Sequence[Record]) -> Outcome:
        one, other = first(records), second(records)
        failed = False in (one[0], other[0])
        held = False if failed else None if None in (one[0], other[0]) else True
        return held, f"{one[1]} {other[1]}"

    return test


def lower_loss(a: str, b: str, share: float = ALWAYS) -> Test:
    """L(h) of a below that of b in this share of the cases."""

    def test(records: Sequence[Record]) -> Outcome:
        pairs = paired(records, a, b, lambda r: r.loss)
        if not pairs:
            return UNTESTED
        gains = [(1 - pair.a / pair.b) * 100 for pair in pairs]
        least = int(np.argmin(gains))
        won = sum(gain > 0 for gain in gains)
        return enough(won, len(pairs), share), (
            f"L of {a} below {b} in {won} of {len(pairs)} cases{_needed(share)}; "
            f"by {np.mean(gains):.1f}% on average, {gains[least]:.1f}% at worst "
            f"({pairs[least].case})."
        )

    return test


def better_precision(a: str, b: str, share: float = NEARLY_ALWAYS) -> Test:
    """Precision at k of a above that of b in this share of the cases and k."""

    def test(records: Sequence[Record]) -> Outcome:
        pairs = at_ranks(records, a, b)
        if not pairs:
            return UNTESTED
        areas = paired(records, a, b, lambda r: r.average_precision)
        gains = [pair.a - pair.b for pair in pairs]
        least = int(np.argmin(gains))
        won = sum(gain > 0 for gain in gains)
        return enough(won, len(pairs), share), (
            f"Precision of {a} above {b} in {won} of {len(pairs)} cases, k by k"
            f"{_needed(share)}; by {np.mean(gains):+.3f} on average, {gains[least]:+.3f} at "
            f"worst ({pairs[least].case}); mAP by {np.mean([p.a - p.b for p in areas]):+.3f}."
        )

    return test


def beats_all(
    ours: Sequence[str],
    others: Sequence[str],
    share: float = NEARLY_ALWAYS,
    most_bits: bool = False,
) -> Test:
    """The best of ours above the best of the others, in precision, over cases and k."""

    def test(records: Sequence[Record]) -> Outcome:
        if most_bits:
            records = _most_bits(records)
        won, total, losers = 0, 0, dict[str, int]()
        for case in _by_case_and_rank(records):
            mine = [case[name] for name in ours if name in case]
            rest = {name: case[name] for name in others if name in case}
            if mine and rest:
                total += 1
                won += max(mine) > max(rest.values())
                for name, value in rest.items():
                    losers[name] = losers.get(name, 0) + (value >= max(mine))
        if not total:
            return UNTESTED
        worst = [f"{name} {n}" for name, n in sorted(losers.items(), key=lambda i: -i[1]) if n]
        told = f"; ahead of it: {', '.join(worst)}" if worst else ""
        return enough(won, total, share), (
            f"The better of {' and '.join(ours)} is ahead of all others in {won} of {total} cases, "
            f"k by k{_needed(share)}{told}."
        )

    return test


def only_ones_ahead(ours: Sequence[str], others: Sequence[str], of: str) -> Test:
    """With the most bits, in every group: ours, and no others, above `of` in mean precision."""

    def test(records: Sequence[Record]) -> Outcome:
        every = _most_bits(records)
        held, told = [], []
        for group in dict.fromkeys(r.group for r in every):
            (means,) = _means([r for r in every if r.group == group], _mean_precision).values()
            gains = {name: value - means[of] for name, value in means.items() if of in means}
            mine = {name: gains[name] for name in ours if name in gains}
            rest = {name: gains[name] for name in others if name in gains}
            if mine:
                held.append(min(mine.values()) > 0 and max(rest.values(), default=0.0) <= 0)
                listed = (f"{name} {gain:+.3f}" for name, gain in {**mine, **rest}.items())
                told.append(f"{group}, {every[0].bits} bits: {', '.join(listed)}")
        if not held:
            return UNTESTED
        return all(held), f"Mean precision against {of}. {'; '.join(told)}."

    return test


def larger_gain_for_linear(a: str, b: str, share: float = USUALLY) -> Test:
    """Precision gained by a over b is larger with linear than with kernel hash functions."""

    def test(records: Sequence[Record]) -> Outcome:
        gains = {kind: _gains(records, a, b, kind) for kind in ("linear", "rbf")}
        cases = [case for case in gains["linear"] if case in gains["rbf"]]
        if not cases:
            return UNTESTED
        won = sum(gains["linear"][case] > gains["rbf"][case] for case in cases)
        linear, kernel = (np.mean([gains[kind][case] for case in cases]) for kind in gains)
        return enough(won, len(cases), share), (
            f"{a} over {b}: larger for linear in {won} of {len(cases)} cases, k by k"
            f"{_needed(share)}; {linear:+.3f} for linear, {kernel:+.3f} for kernel on average."
        )

    return test


def gain_like_a_kernel(a: str, b: str, share: float = OFTEN) -> Test:
    """Precision that a gains over b, both linear, is at least half of what b gains by a kernel."""

    def test(records: Sequence[Record]) -> Outcome:
        gained = _gains(records, a, b, "linear")
        kernel = _values(records, b, "rbf")
        linear = _values(records, b, "linear")
        cases = [case for case in gained if case in kernel]
        if not cases:
            return UNTESTED
        by_kernel = {case: kernel[case] - linear[case] for case in cases}
        won = sum(gained[case] > 0 and gained[case] >= by_kernel[case] / 2 for case in cases)
        return enough(won, len(cases), share), (
            f"Linear {a} gains at least half of what a kernel gains {b} in {won} of {len(cases)} "
            f"cases, k by k{_needed(share)}; {np.mean([gained[c] for c in cases]):+.3f} "
            f"against {np.mean(list(by_kernel.values())):+.3f} on average."
        )

    return test


SIMILAR = 0.05  # of the loss


def end_up_similar(records: Sequence[Record]) -> Outcome:
    """MACquad and MACcut: nearer to each other than quad and cut were, and within SIMILAR."""
    ends = paired(records, "MACquad", "MACcut", lambda r: r.loss)
    starts = {pair.case: pair for pair in paired(records, "quad", "cut", lambda r: r.loss)}
    ends = [pair for pair in ends if pair.case in starts]
    if not ends:
        return UNTESTED
    after = [abs(pair.a / pair.b - 1) for pair in ends]
    before = [abs(starts[pair.case].a / starts[pair.case].b - 1) for pair in ends]
    nearer = sum(x < y for x, y in zip(after, before, strict=True))
    held = bool(enough(nearer, len(ends), USUALLY) and max(after) <= SIMILAR)
    return held, (
        f"L of the two differs by {np.mean(after):.1%} on average and {max(after):.1%} at most "
        f"(needed: {SIMILAR:.0%}), after {np.mean(before):.1%} between quad and cut; nearer than "
        f"those in {nearer} of {len(ends)} cases{_needed(USUALLY)}."
    )


CLOSE = 0.02  # in precision


def close_precision(a: str, b: str) -> Test:
    """Precision of the two differs by CLOSE at most, on average over cases and k."""

    def test(records: Sequence[Record]) -> Outcome:
        pairs = at_ranks(records, a, b)
        if not pairs:
            return UNTESTED
        apart = [abs(pair.a - pair.b) for pair in pairs]
        return bool(np.mean(apart) <= CLOSE), (
            f"Precision of {a} and {b} differs by {np.mean(apart):.3f} on average (needed: {CLOSE})"
            f", {max(apart):.3f} at most."
        )

    return test


def iterations(low: int, high: int) -> Test:
    """MAC stops by itself after low to high iterations."""

    def test(records: Sequence[Record]) -> Outcome:
        macs = _macs(records)
        if not macs:
            return UNTESTED
        counts = [len(record.history) - 1 for record in macs]
        stopped = sum(record.history[-1]["violations"] == 0 for record in macs)
        held = all(low <= n <= high for n in counts) and stopped == len(macs)
        return held, (
            f"{min(counts)} to {max(counts)} iterations, {np.mean(counts):.1f} on average; "
            f"{stopped} of {len(macs)} runs ended with Z = h(X)."
        )

    return test


def progress_at_the_beginning(records: Sequence[Record]) -> Outcome:
    """Usually, half of the decrease in L(h) is made in the first half of the iterations."""
    paths = [[step["loss"] for step in record.history] for record in _macs(records)]
    paths = [path for path in paths if len(path) > 2 and min(path) < path[0]]
    if not paths:
        return UNTESTED
    early = [
        (path[0] - min(path[: (len(path) + 1) // 2])) / (path[0] - min(path)) for path in paths
    ]
    won = sum(share >= 0.5 for share in early)
    return enough(won, len(early), USUALLY), (
        f"The first half of the iterations makes {np.mean(early):.0%} of the way down on average; "
        f"half of it or more in {won} of {len(early)} runs{_needed(USUALLY)}."
    )


def later_are_faster(records: Sequence[Record]) -> Outcome:
    """The mean iteration after the two-step solution takes less time than that solution."""
    macs = [record for record in _macs(records) if len(record.history) > 1]
    if not macs:
        return UNTESTED
    first = [record.history[0]["seconds"] for record in macs]
    later = [float(np.mean([s["seconds"] for s in record.history[1:]])) for record in macs]
    faster = sum(x < y for x, y in zip(later, first, strict=True))
    return faster == len(macs), (
        f"{np.mean(later):.2f} s per iteration against {np.mean(first):.2f} s for the two-step "
        f"solution, on average; faster in {faster} of {len(macs)} runs."
    )


def free_codes_far_below(records: Sequence[Record]) -> Outcome:
    """E of the free codes below every L(h), by more than MAC gains over cut."""
    macs = [record for record in _macs(records) if record.method == "MACcut"]
    if not macs:
        return UNTESTED
    gaps = [record.loss - record.history[0]["free_loss"] for record in macs]
    gains = [record.history[0]["loss"] - record.loss for record in macs]
    far = sum(gap > gain for gap, gain in zip(gaps, gains, strict=True))
    share = np.mean([record.history[0]["free_loss"] / record.loss for record in macs])
    return far == len(macs), (
        f"E(Z) of the free codes is {100 * share:.0f}% of MACcut's L on average; the gap is larger "
        f"than MACcut's gain over cut in {far} of {len(macs)} runs, "
        f"{np.sum(gaps) / max(np.sum(gains), 1e-300):.1f} times as large in sum."
    )


def kernel_nearer_than_linear(records: Sequence[Record]) -> Outcome:
    """L(h) is lower with kernel than with linear hash functions, for cut and MACcut."""
    linear, kernel = ([r for r in records if r.hash_function == kind] for kind in ("linear", "rbf"))
    told, won, total = [], 0, 0
    for method in ("cut", "MACcut"):
        values = [
            {(r.group, r.bits, r.seed): r.loss for r in part if r.method == method}
            for part in (linear, kernel)
        ]
        common = [case for case in values[0] if case in values[1]]
        total += len(common)
        won += sum(values[1][case] < values[0][case] for case in common)
        if common:
            ratio = np.mean([values[1][case] / values[0][case] for case in common])
            told.append(f"{method} {100 * (1 - ratio):.1f}%")
    if not total:
        return UNTESTED
    return won == total, (
        f"L lower with a kernel in {won} of {total} runs, by {', '.join(told)} on average."
    )


MINUTES = 2  # the paper's time for an iteration, on a laptop of its day
FULL_POINTS, FULL_BITS = 10_000, 48  # what that time is for


def iteration_in_time(records: Sequence[Record]) -> Outcome:
    """An iteration takes no longer than the paper's, at the paper's size."""
    macs = [r for r in _macs(records) if r.points >= FULL_POINTS and r.bits >= FULL_BITS]
    if not macs:
        return None, "Only told of runs at the paper's size."
    means = {
        name: float(np.mean([s["seconds"] for r in macs if r.method == name for s in r.history]))
        for name in dict.fromkeys(r.method for r in macs)
    }
    told = ", ".join(f"{name} {value:.1f} s" for name, value in means.items())
    return max(means.values()) <= 60 * MINUTES, f"An iteration takes {told} on average."


FEW_TIMES = 10


def few_two_steps(records: Sequence[Record]) -> Outcome:
    """All of MAC takes as long as FEW_TIMES two-step runs at most."""
    macs = _macs(records)
    if not macs:
        return UNTESTED
    ratios = [sum(step["seconds"] for step in r.history) / r.history[0]["seconds"] for r in macs]
    return max(ratios) <= FEW_TIMES, (
        f"MAC took {np.mean(ratios):.1f} times as long as its two-step solution on average, "
        f"{max(ratios):.1f} times at most (needed: {FEW_TIMES})."
    )


def largest_effective(method: str, share: float = USUALLY) -> Test:
    """The method has the most effective bits on the base, at this share of the numbers of bits."""

    def test(records: Sequence[Record]) -> Outcome:
        means = _means(records, lambda r: r.effective.get("base", float("nan")))
        means = {bits: of for bits, of in means.items() if method in of and len(of) > 1}
        if not means:
            return UNTESTED
        won = sum(of[method] >= max(of.values()) for of in means.values())
        told = []
        for bits, of in means.items():
            best = max((name for name in of if name != method), key=lambda name: of[name])
            told.append(f"{bits} bits: {of[method]:.2f}, best other {of[best]:.2f} ({best})")
        return enough(won, len(means), share), (
            f"{method} is first in {won} of {len(means)} cases{_needed(share)}; {'; '.join(told)}."
        )

    return test


def low_precision(method: str) -> Test:
    """The method's mean precision is in the lower half of all, at two thirds of numbers of bits."""

    def test(records: Sequence[Record]) -> Outcome:
        means = _means(records, _mean_precision)
        ranks = {
            bits: (sorted(of.values(), reverse=True).index(of[method]) + 1, len(of))
            for bits, of in means.items()
            if method in of and len(of) > 1
        }
        if not ranks:
            return UNTESTED
        low = sum(rank > count / 2 for rank, count in ranks.values())
        told = ", ".join(f"{r} of {n} at {bits} bits" for bits, (r, n) in ranks.items())
        return enough(low, len(ranks), USUALLY), f"{method}'s place in precision: {told}."

    return test


SOME = 0.2  # the least rank correlation that counts


def utilization_goes_with_precision(records: Sequence[Record]) -> Outcome:
    """Rank correlation of effective bits and precision over the methods, on average, >= SOME."""
    effective = _means(records, lambda r: r.effective.get("base", float("nan")))
    precision = _means(records, _mean_precision)
    found = {}
    for bits, of in effective.items():
        names = sorted(of)
        if len(names) > 2:
            ranks = [
                np.argsort(np.argsort([part[bits][n] for n in names])) - (len(names) - 1) / 2
                for part in (effective, precision)
            ]
            found[bits] = float(ranks[0] @ ranks[1] / (ranks[0] @ ranks[0]))
    if not found:
        return UNTESTED
    told = ", ".join(f"{value:+.2f} at {bits} bits" for bits, value in found.items())
    return bool(np.mean(list(found.values())) >= SOME), (
        f"Rank correlation over the methods: {told} (needed: {SOME} on average)."
    )


def _mean_precision(record: Record) -> float:
    return float(np.mean(list(record.precision.values())))


def _means(records: Sequence[Record], value: Value) -> dict[int, dict[str, float]]:
    """The mean of each method over groups and seeds, by number of bits."""
    found: dict[int, dict[str, list[float]]] = {}
    for record in records:
        found.setdefault(record.bits, {}).setdefault(record.method, []).append(value(record))
    return {
        bits: {name: float(np.mean(values)) for name, values in of.items()}
        for bits, of in found.items()
    }


def paired(records: Sequence[Record], a: str, b: str, value: Value) -> list[Pair]:
    """Both methods in every case that both were run in; one of a fixed hash function fits any."""
    found = []
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
                found.append(Pair(case, *means))
    return found


def at_ranks(records: Sequence[Record], a: str, b: str) -> list[Pair]:
    """`paired`, for the precision at every k."""
    found = []
    for k in sorted({k for record in records for k in record.precision}):
        having = [record for record in records if k in record.precision]
        pairs = paired(having, a, b, lambda record: record.precision[k])  # noqa: B023
        found += [Pair(f"{pair.case}, k = {k}", pair.a, pair.b) for pair in pairs]
    return found


def enough(won: int, total: int, share: float) -> bool:
    return won >= share * total - 1e-9


def _needed(share: float) -> str:
    return f" (needed: {WORDS[share]})"


def _macs(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.method in ("MACcut", "MACquad")]


def _most_bits(records: Sequence[Record]) -> list[Record]:
    most = max((record.bits for record in records), default=0)
    return [record for record in records if record.bits == most]


Case = tuple[str, int, int, int]  # group, bits, seed, k


def _values(records: Sequence[Record], method: str, kind: str) -> dict[Case, float]:
    return {
        (r.group, r.bits, r.seed, k): value
        for r in records
        if (r.method, r.hash_function) == (method, kind)
        for k, value in r.precision.items()
    }


def _gains(records: Sequence[Record], a: str, b: str, kind: str) -> dict[Case, float]:
    """Precision of a minus that of b, with one kind of hash function."""
    ours, theirs = (_values(records, method, kind) for method in (a, b))
    return {case: ours[case] - theirs[case] for case in ours if case in theirs}


def _by_case_and_rank(records: Sequence[Record]) -> list[dict[str, float]]:
    """Mean precision of every method over its seeds, for each group, number of bits and k."""
    found: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    for record in records:
        for k, value in record.precision.items():
            case = found.setdefault((record.group, record.bits, k), {})
            case.setdefault(record.method, []).append(value)
    return [{name: float(np.mean(v)) for name, v in case.items()} for case in found.values()]
