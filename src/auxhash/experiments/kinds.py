"""Claims about kinds of hash functions: linear or kernel, with many centres, or by LIBSVM.

Tests of records, as in `claims`.
"""

import numpy as np

from auxhash.experiments.claims import (
    ALWAYS,
    MAX_LOSS_APART,
    MAX_PRECISION_APART,
    OFTEN,
    UNTESTED,
    USUALLY,
    Outcome,
    Records,
    Value,
    counted,
    mac_runs,
    parametrized,
)
from auxhash.experiments.iterates import losses

Case = tuple[str, int, int, int]  # group, bits, seed, k


@parametrized
def larger_gain_for_linear(records: Records, a: str, b: str) -> Outcome:
    """Precision gained by a over b is usually larger with linear than with kernel functions."""
    gains = {kind: _gains(records, a, b, kind) for kind in ("linear", "rbf")}
    cases = [case for case in gains["linear"] if case in gains["rbf"]]
    if not cases:
        return UNTESTED
    larger = [gains["linear"][case] > gains["rbf"][case] for case in cases]
    holds, won = counted(larger, USUALLY, "cases, k by k")
    linear, kernel = (np.mean([gains[kind][case] for case in cases]) for kind in gains)
    return holds, (
        f"{a} over {b}: larger for linear in {won}; {linear:+.3f} for linear, {kernel:+.3f} for "
        "kernel on average."
    )


@parametrized
def gain_like_a_kernel(records: Records, a: str, b: str) -> Outcome:
    """Precision that a gains over b, both linear, is often half of what b gains by a kernel."""
    gained = _gains(records, a, b, "linear")
    kernel = _values(records, b, "rbf")
    linear = _values(records, b, "linear")
    cases = [case for case in gained if case in kernel]
    if not cases:
        return UNTESTED
    by_kernel = {case: kernel[case] - linear[case] for case in cases}
    alike = [gained[case] > 0 and gained[case] >= by_kernel[case] / 2 for case in cases]
    holds, won = counted(alike, OFTEN, "cases, k by k")
    return holds, (
        f"Linear {a} gains at least half of what a kernel gains {b} in {won}; "
        f"{np.mean([gained[c] for c in cases]):+.3f} against "
        f"{np.mean(list(by_kernel.values())):+.3f} on average."
    )


MIN_SHARE_BELOW_ALL = 0.1  # of L(h): ten times what counts as significant


def free_codes_far_below(records: Records) -> Outcome:
    """E of the free codes is below every L(h) by MIN_SHARE_BELOW_ALL of it, whatever MAC gains."""
    macs = [record for record in mac_runs(records) if record.method == "MACcut"]
    if not macs:
        return UNTESTED
    # All over the pairs that MAC learnt from: the free codes have no others.
    lowest = [min(losses(record)) for record in macs]
    free = [record.history[0]["free_loss"] for record in macs]
    shares = np.divide(free, lowest)
    holds, far = counted((shares <= 1 - MIN_SHARE_BELOW_ALL).tolist(), ALWAYS, "runs")
    return holds, (
        f"E(Z) of the free codes is {shares.mean():.0%} of MACcut's L on average, "
        f"{shares.max():.0%} at most; {MIN_SHARE_BELOW_ALL:.0%} below it in {far}."
    )


def kernel_nearer_than_linear(records: Records) -> Outcome:
    """L(h) is lower with kernel than with linear hash functions, for cut and MACcut."""
    linear, kernel = ([r for r in records if r.hash_function == kind] for kind in ("linear", "rbf"))
    lines, lower = [], list[bool]()
    for method in ("cut", "MACcut"):
        values = [
            {(r.group, r.bits, r.seed): r.loss for r in part if r.method == method}
            for part in (linear, kernel)
        ]
        common = [case for case in values[0] if case in values[1]]
        lower += [values[1][case] < values[0][case] for case in common]
        if common:
            ratio = np.mean([values[1][case] / values[0][case] for case in common])
            lines.append(f"{method} {100 * (1 - ratio):.1f}%")
    if not lower:
        return UNTESTED
    holds, won = counted(lower, ALWAYS, "runs")
    return holds, f"L lower with a kernel in {won}, by {', '.join(lines)} on average."


def harder_for_linear(records: Records) -> Outcome:
    """The free codes differ from h(X) in more entries with linear than with kernel functions."""
    pairs = _kinds_compared(
        mac_runs(records), "MACcut", "linear", "rbf", lambda r: r.history[0]["violations"]
    )
    if not pairs:
        return UNTESTED
    holds, won = counted([linear > kernel for linear, kernel in pairs], ALWAYS, "runs")
    linear, kernel = np.mean(pairs, axis=0)
    return holds, (
        f"More entries of the free codes are missed by linear functions in {won}; {linear:,.0f} "
        f"against {kernel:,.0f} on average."
    )


@parametrized
def nearer_the_free_codes(records: Records, flexible: str) -> Outcome:
    """L(h) of cut is lower with the flexible hash function: nearer to that of the free codes."""
    pairs = _kinds_compared(records, "cut", flexible, "rbf", lambda r: r.loss)
    if not pairs:
        return UNTESTED
    holds, won = counted([more < less for more, less in pairs], ALWAYS, "runs")
    ratio = np.mean([more / less for more, less in pairs])
    return holds, (
        f"L of cut lower with many centres in {won}, by {100 * (1 - ratio):.1f}% on average."
    )


@parametrized
def generalises_worse(records: Records, flexible: str) -> Outcome:
    """Precision of cut is usually lower with the flexible hash function than with a kernel."""
    gained = _gains_by_kind(records, "cut", flexible, "rbf")
    if not gained:
        return UNTESTED
    holds, worse = counted([gain < 0 for gain in gained], USUALLY, "cases, k by k")
    return holds, (
        f"Precision of cut lower with many centres in {worse}; by {np.mean(gained):+.3f} on "
        "average."
    )


MIN_TIMES_AS_LONG = 2


@parametrized
def similar_but_slower(records: Records, one: str, other: str) -> Outcome:
    """MACcut with two kinds is about as good, but takes far longer with the first.

    Precision is within MAX_PRECISION_APART, L within MAX_LOSS_APART; the first takes
    MIN_TIMES_AS_LONG times the time of the other.
    """
    gained = _gains_by_kind(records, "MACcut", one, other)
    times = _kinds_compared(records, "MACcut", one, other, lambda r: r.seconds)
    ends = _kinds_compared(records, "MACcut", one, other, lambda r: r.loss)
    if not gained or not times:
        return UNTESTED
    apart, ratio = np.mean(np.abs(gained)), np.mean([x / y for x, y in times])
    loss = np.mean([x / y - 1 for x, y in ends])
    return bool(
        apart <= MAX_PRECISION_APART and abs(loss) <= MAX_LOSS_APART and ratio >= MIN_TIMES_AS_LONG
    ), (
        f"Precision with {one} differs by {apart:.3f} on average (needed: {MAX_PRECISION_APART}), "
        f"by {np.mean(gained):+.3f} with its sign; L by {loss:+.1%} (needed: {MAX_LOSS_APART:.0%} "
        f"at most); it takes {ratio:.1f} times as long (needed: {MIN_TIMES_AS_LONG}), "
        f"{times[0][0]:.1f} s against {times[0][1]:.1f} s."
    )


def _kinds_compared(
    records: Records, method: str, one: str, other: str, value: Value
) -> list[tuple[float, float]]:
    """A method's values with two kinds of hash function, for every group, bits and seed."""
    values = [
        {
            (r.group, r.bits, r.seed): value(r)
            for r in records
            if (r.method, r.hash_function) == (method, kind)
        }
        for kind in (one, other)
    ]
    return [(values[0][case], values[1][case]) for case in values[0] if case in values[1]]


def _values(records: Records, method: str, kind: str) -> dict[Case, float]:
    return {
        (r.group, r.bits, r.seed, k): value
        for r in records
        if (r.method, r.hash_function) == (method, kind)
        for k, value in r.precision.items()
    }


def _gains(records: Records, a: str, b: str, kind: str) -> dict[Case, float]:
    """Precision of a minus that of b, with one kind of hash function."""
    ours, theirs = (_values(records, method, kind) for method in (a, b))
    return {case: ours[case] - theirs[case] for case in ours if case in theirs}


def _gains_by_kind(records: Records, method: str, one: str, other: str) -> list[float]:
    """Precision of a method with one kind of hash function minus that with another, k by k."""
    first, second = (_values(records, method, kind) for kind in (one, other))
    return [first[case] - second[case] for case in first if case in second]
