"""Medians of runs that take turns, so that slow moments of the machine affect both sides."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter


def in_turn(*sides: Callable[[], object], runs: int = 7) -> Sequence[float]:
    """Median seconds of each side; a first call of each, uncounted, compiles and warms up."""
    for side in sides:
        side()
    seconds: list[list[float]] = [[] for _ in sides]
    for _ in range(runs):
        for side, taken in zip(sides, seconds, strict=True):
            clock = perf_counter()
            side()
            taken.append(perf_counter() - clock)
    return [median(taken) for taken in seconds]
