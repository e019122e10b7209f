"""A measured row: our runs, the peer's runs taken in turn with them, the ratio, and the aim."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, sleep
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Row:
    """A measurement, run by run.

    With a peer, run i of ours stands beside run i of theirs, and the aim is the least ratio
    theirs / ours. Without one, the aim is the most that ours may be; 0 is no aim.
    """

    what: str
    ours: tuple[float, ...]
    aim: float = 0.0
    peer: str = ""
    theirs: tuple[float, ...] = ()
    unit: str = "s"
    note: str = ""

    @property
    def ratios(self) -> list[float]:
        return [b / a for a, b in zip(self.ours, self.theirs, strict=True)] if self.theirs else []

    @property
    def met(self) -> bool | None:
        """True if the aim is met, by the median; None without an aim."""
        if not self.aim:
            return None
        return median(self.ratios) >= self.aim if self.theirs else median(self.ours) <= self.aim

    @property
    def spread(self) -> str:
        """The median ratio and, of several runs, the lowest and the highest."""
        if not self.theirs:
            return ""
        ratios = sorted(self.ratios)
        ends = f" ({short(ratios[0])} to {short(ratios[-1])})" if len(ratios) > 1 else ""
        return short(median(ratios)) + ends

    @property
    def aimed(self) -> str:
        if not self.aim:
            return ""
        return f"{short(self.aim)} or {'more' if self.theirs else f'less, {self.unit}'}"

    @property
    def verdict(self) -> str:
        return {True: "held", False: "missed", None: ""}[self.met]

    def amount(self, values: Sequence[float]) -> str:
        """The median of some runs, with its unit."""
        if not values:
            return ""
        value, unit = median(values), self.unit
        if unit == "s" and value < 0.1:
            value, unit = 1000 * value, "ms"
        return f"{short(value)} {unit}".strip()

    def cells(self) -> tuple[str, ...]:
        """Cells of the row: what, ours, theirs, ratio, aim, verdict."""
        theirs = f"{self.amount(self.theirs)}, {self.peer}" if self.theirs else self.peer
        what = f"{self.what}; {self.note}" if self.note else self.what
        return what, self.amount(self.ours), theirs, self.spread, self.aimed, self.verdict


PAUSE_SECONDS = 0.05  # before every run: the threads of a library spin for a while after a call
HEADINGS = ("measured", "auxhash", "the other side", "ratio", "aim", "verdict")


def short(value: float) -> str:
    """Three digits, and no exponent for what is not large."""
    return f"{value:.4g}" if value >= 1e5 else f"{float(f'{value:.3g}'):,g}"


def table(rows: Sequence[Row], **options: Any) -> Table:
    drawn = Table(*HEADINGS, **options)
    for row in rows:
        drawn.add_row(*row.cells())
    return drawn


def turns(*sides: Callable[[], Any], runs: int, first: bool = True) -> list[tuple[float, ...]]:
    """Seconds of every run of each side; the sides take turns, so that slow moments of the machine
    affect all of them. A first call of each, which compiles and warms up, does not count."""
    if first:
        for side in sides:
            side()
    seconds: list[list[float]] = [[] for _ in sides]
    for _ in range(runs):
        for side, taken in zip(sides, seconds, strict=True):
            sleep(PAUSE_SECONDS)
            taken.append(timed(side)[1])
    return [tuple(taken) for taken in seconds]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    clock = perf_counter()
    result = function()
    return result, perf_counter() - clock
