"""Medians of runs that take turns, so that slow moments of the machine affect both sides."""

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.rows import turns


def in_turn(*sides: Callable[[], object], runs: int = 7) -> Sequence[float]:
    """Median seconds of each side; a first call of each, uncounted, compiles and warms up."""
    return [median(seconds) for seconds in turns(*sides, runs=runs)]
