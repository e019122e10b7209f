"""Claims about MAC's iterations: how many, how far down, how long each takes, what validation does.

Tests of records, as in `claims`. The iterates are the accepted steps: a step that lowers the
precision of the validation set is ignored, and MAC goes on from the one before.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from auxhash.compute.words import count
from auxhash.experiments.cells import Facts
from auxhash.experiments.claims import (
    ALWAYS,
    UNTESTED,
    USUALLY,
    Outcome,
    Records,
    counted,
    mac_runs,
    paired,
    parametrized,
)
from auxhash.experiments.groups import Record


def losses(record: Record) -> list[float]:
    """L(h) of the iterates, one for each step: an ignored step leaves it as it was."""
    values: list[float] = []
    for step in record.history:
        values.append(step["loss"] if step.get("accepted", True) or not values else values[-1])
    return values


def changes(record: Record) -> list[Facts]:
    """The steps that changed h: whose L(h) or validation precision is not that of the iterate.

    Z can differ from h(X) after a step that left h as it was: `violations` say nothing about h.
    """
    changed, iterate = [], record.history[0]
    for step in record.history[1:]:
        scores = [each.get("score", np.nan) for each in (step, iterate)]
        if step["loss"] != iterate["loss"] or abs(scores[0] - scores[1]) > 0:
            changed.append(step)
        if step.get("accepted", True):
            iterate = step
    return changed


@parametrized
def iterations(records: Records, low: int, high: int) -> Outcome:
    """MAC stops by itself after low to high iterations."""
    macs = mac_runs(records)
    if not macs:
        return UNTESTED
    counts = [len(record.history) - 1 for record in macs]
    stopped = sum(record.history[-1]["violations"] == 0 for record in macs)
    holds = all(low <= n <= high for n in counts) and stopped == len(macs)
    return holds, (
        f"{min(counts)} to {max(counts)} iterations (needed: {low} to {high}), "
        f"{np.mean(counts):.1f} on average; {stopped} of {len(macs)} runs ended with Z = h(X) "
        "(needed: all)."
    )


@parametrized
def last_below_first(records: Records, mac: str, two_step: str) -> Outcome:
    """L(h) of MAC's last iterate is below that of its two-step start, in all runs.

    Unlike `lower_loss`, it can fail where MAC returns the lowest L(h), never above the start.
    """
    paths = [losses(r) for r in mac_runs(records) if r.method == mac]
    if not paths:
        return UNTESTED
    gains = [(1 - path[-1] / path[0]) * 100 for path in paths]
    holds, won = counted([gain > 0 for gain in gains], ALWAYS, "runs")
    return holds, (
        f"L of the last iterate of {mac} below {two_step} in {won}; by {np.mean(gains):.1f}% on "
        f"average, {min(gains):.1f}% at worst."
    )


def progress(path: Sequence[float], part: int, parts: int) -> float:
    """Share of the way down that is made in the first `part` of `parts` of the iterations."""
    early = path[: 1 + part * (len(path) - 1) // parts]
    return (path[0] - min(early)) / (path[0] - min(path))


def progress_at_the_beginning(records: Records) -> Outcome:
    """Usually, half of the decrease in L(h) is made in the first half of the iterations."""
    paths = [losses(record) for record in mac_runs(records)]
    paths = [path for path in paths if len(path) > 2 and min(path) < path[0]]
    if not paths:
        return UNTESTED
    early = [progress(path, 1, 2) for path in paths]
    holds, won = counted([share >= 0.5 for share in early], USUALLY, "runs")
    return holds, (
        f"The first half of the iterations makes {np.mean(early):.0%} of the way down on average; "
        f"half of it or more in {won}."
    )


def _validated(records: Records) -> list[Record]:
    scores = [(r, [step.get("score", np.nan) for step in r.history]) for r in mac_runs(records)]
    return [record for record, values in scores if values and np.isfinite(values).all()]


def never_below_the_start(records: Records) -> Outcome:
    """Precision of the validation set: that of the last iterate is no lower than at the start."""
    runs = _validated(records)
    if not runs:
        return UNTESTED
    ends = [[s["score"] for s in r.history if s["accepted"]] for r in runs]
    gains = [scores[-1] - scores[0] for scores in ends]
    holds, won = counted([gain >= 0 for gain in gains], ALWAYS, "runs")
    ignored = sum(not s["accepted"] for r in runs for s in r.history)
    return holds, (
        f"Not below in {won}; by {np.mean(gains):+.3f} on average, {min(gains):+.3f} at worst; "
        f"{ignored} of {sum(len(r.history) - 1 for r in runs)} steps were ignored."
    )


def next_mu_works(records: Records) -> Outcome:
    """Usually, a step that was ignored is followed by one that is not, with h changed."""
    runs = _validated(records)
    after = []
    for record in runs:
        steps = pairwise(changes(record))
        after += [later["accepted"] for step, later in steps if not step["accepted"]]
    if not after:
        return UNTESTED
    holds, taken = counted(after, USUALLY)
    return holds, f"After an ignored step, the next that changed h was taken in {taken}."


LAST_STEPS = 2  # that have to be ignored: a single one is no end that is skipped


def skips_the_rest(records: Records) -> Outcome:
    """Usually, the last steps before MAC stops are ignored, LAST_STEPS or more.

    A run says something about this if all of them changed h: validation judges no other. With the
    step at which MAC stops, Z = h(X), and that fit need not change h.
    """
    tested, unmoved = list[bool](), list[float]()
    for record in _validated(records):
        n, changed = len(record.history), [id(step) for step in changes(record)]
        steps = record.history[1:] if id(record.history[-1]) in changed else record.history[1:-1]
        last = steps[-LAST_STEPS:]
        if len(last) == LAST_STEPS and all(id(step) in changed for step in last):
            tested.append(not any(step["accepted"] for step in last))
        elif n > 1:
            moved = [at for at, step in enumerate(record.history) if id(step) in changed]
            unmoved.append(1 - max(moved, default=0) / (n - 1))
    if not tested and not unmoved:
        return UNTESTED
    silent = (
        f"It cannot be told in {count(len(unmoved), 'run')}: near the end h stays as it is (after "
        f"its last change for {np.mean(unmoved):.0%} of the iterations on average), and validation "
        "has nothing to judge."
        if unmoved
        else ""
    )
    if not tested:
        return None, silent
    holds, ignored = counted(tested, USUALLY, "runs")
    words = f"The last {LAST_STEPS} steps before the end, or more, were ignored in {ignored}."
    return holds, f"{words} {silent}".rstrip()


def _halves(history: Sequence[Facts], name: str) -> tuple[float, float]:
    """Sums over the first and the second half of the iterations."""
    values = [step[name] for step in history[1:]]
    middle = (len(values) + 1) // 2
    return float(sum(values[:middle])), float(sum(values[middle:]))


@parametrized
def raises_near_the_end(records: Records, method: str) -> Outcome:
    """Updates not taken since they would raise L_P: some, and most in the second half."""
    runs = [r for r in mac_runs(records) if r.method == method and len(r.history) > 2]
    runs = [r for r in runs if "skipped" in r.history[0]]
    if not runs:
        return UNTESTED
    halves = [_halves(record.history, "skipped") for record in runs]
    holds, won = counted([late > early for early, late in halves], USUALLY, "runs")
    early, late = np.mean(halves, axis=0)
    return holds, (
        f"More in the second half of the iterations than in the first in {won}; {early:.1f} and "
        f"{late:.1f} bit updates on average."
    )


@parametrized
def never_raises(records: Records, method: str) -> Outcome:
    """Test that no bit update of the method had to be skipped because it would raise L_P."""
    runs = [r for r in mac_runs(records) if r.method == method]
    runs = [r for r in runs if "skipped" in r.history[0]]
    if not runs:
        return UNTESTED
    counts = [sum(step["skipped"] for step in record.history) for record in runs]
    return not any(counts), (
        f"{sum(counts)} bit updates of {method} would have raised L_P (needed: none), in "
        f"{sum(one > 0 for one in counts)} of {len(runs)} runs."
    )


def later_are_faster(records: Records) -> Outcome:
    """The mean iteration after the two-step solution takes less time than that solution."""
    times = _first_and_later(records)
    if not times:
        return UNTESTED
    holds, faster = counted([later < first for first, later in times], ALWAYS, "runs")
    first, later = np.mean(times, axis=0)
    return holds, (
        f"Faster in {faster}; {later:.2f} s per iteration against {first:.2f} s for the two-step "
        "solution, on average."
    )


def cheaper_on_average(records: Records) -> Outcome:
    """Over all runs, the mean iteration takes less time than the mean two-step solution."""
    times = _first_and_later(records)
    if not times:
        return UNTESTED
    first, later = np.mean(times, axis=0)
    return bool(later < first), (
        f"{later:.2f} s per iteration against {first:.2f} s for the two-step solution (needed: "
        f"less), on average over {count(len(times), 'run')}."
    )


MAX_TIME_RATIO = 3  # of the longer to the shorter


@parametrized
def iterations_like_a_two_step(records: Records, method: str) -> Outcome:
    """The mean iteration and a two-step run: neither takes MAX_TIME_RATIO times the other."""
    times = _first_and_later([record for record in records if record.method == method])
    if not times:
        return UNTESTED
    ratios = [later / first for first, later in times]
    return all(1 / MAX_TIME_RATIO <= ratio <= MAX_TIME_RATIO for ratio in ratios), (
        f"An iteration of {method} takes {min(ratios):.2f} to {max(ratios):.2f} times as long "
        f"as its two-step solution, {np.mean(ratios):.2f} on average (needed: 1/{MAX_TIME_RATIO} "
        f"to {MAX_TIME_RATIO})."
    )


def _first_and_later(records: Records) -> list[tuple[float, float]]:
    """Seconds of the two-step solution and of the mean iteration after it, of each run."""
    runs = [record.history for record in mac_runs(records) if len(record.history) > 1]
    return [(h[0]["seconds"], float(np.mean([s["seconds"] for s in h[1:]]))) for h in runs]


def z_step_dominates(records: Records) -> Outcome:
    """Test that the Z step takes more than half of the time of Z and h steps, in every run."""
    runs = [r for r in mac_runs(records) if np.isfinite(r.history[0].get("z_seconds", np.nan))]
    if not runs:
        return UNTESTED
    shares: dict[tuple[str, str], list[float]] = {}
    for record in runs:
        z, h = (sum(s[name] for s in record.history) for name in ("z_seconds", "h_seconds"))
        shares.setdefault((record.method, record.hash_function), []).append(z / (z + h))
    every = [share for own in shares.values() for share in own]
    listed = ", ".join(
        f"{method} {kind} {np.mean(own):.0%}" for (method, kind), own in shares.items()
    )
    return min(every) > 0.5, (
        f"The Z step takes {min(every):.0%} of the time in the run where it takes the least "
        f"(needed: above 50%); on average: {listed}."
    )


@parametrized
def equally_long(records: Records, a: str, b: str) -> Outcome:
    """An iteration of a and one of b: neither takes MAX_TIME_RATIO times the other."""
    runs = [record for record in mac_runs(records) if len(record.history) > 1]
    pairs = paired(runs, a, b, lambda r: float(np.mean([s["seconds"] for s in r.history[1:]])))
    if not pairs:
        return UNTESTED
    ratios = [pair.a / pair.b for pair in pairs]
    one, other = (float(np.mean([getattr(pair, name) for pair in pairs])) for name in "ab")
    return all(1 / MAX_TIME_RATIO <= ratio <= MAX_TIME_RATIO for ratio in ratios), (
        f"An iteration of {a} takes {min(ratios):.2f} to {max(ratios):.2f} times as long as "
        f"one of {b} (needed: 1/{MAX_TIME_RATIO} to {MAX_TIME_RATIO}); {one:.1f} s and "
        f"{other:.1f} s on average."
    )


MAX_TWO_STEP_RUNS = 10


def few_two_steps(records: Records) -> Outcome:
    """All of MAC takes as long as MAX_TWO_STEP_RUNS two-step runs at most."""
    macs = mac_runs(records)
    if not macs:
        return UNTESTED
    ratios = [sum(step["seconds"] for step in r.history) / r.history[0]["seconds"] for r in macs]
    return max(ratios) <= MAX_TWO_STEP_RUNS, (
        f"MAC took {np.mean(ratios):.1f} times as long as its two-step solution on average, "
        f"{max(ratios):.1f} times at most (needed: {MAX_TWO_STEP_RUNS})."
    )


MAX_SEARCH_ITERATIONS = 5  # that finding mu_1 may take


@parametrized
def mu_in_a_few_iterations(records: Records, method: str) -> Outcome:
    """Finding mu_1 takes MAX_SEARCH_ITERATIONS at most, in all runs of a method that does so."""
    runs = [r.history for r in records if r.method == method and len(r.history) > 2]
    runs = [history for history in runs if "z_seconds" in history[0]]
    if not runs:
        return UNTESTED
    ratios = []
    for history in runs:
        rest = [s["seconds"] - s["z_seconds"] - s["h_seconds"] for s in history[1:]]
        # The first step has the search beside what each of the others has.
        search = max(0.0, rest[0] - float(np.mean(rest[1:])))
        ratios.append(search / float(np.mean([s["seconds"] for s in history[2:]])))
    return max(ratios) <= MAX_SEARCH_ITERATIONS, (
        f"The search for mu_1 took as long as {np.mean(ratios):.1f} iterations on average, "
        f"{max(ratios):.1f} at most (needed: {MAX_SEARCH_ITERATIONS})."
    )
