"""Comparisons of all kinds: rows of figures, the protocol, tables, and the loop over jobs."""

import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeVar

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from auxhash.compute.checks import ArgumentError, integer
from auxhash.experiments.figures.figure import Section
from auxhash.experiments.figures.figure import Table as PageTable
from auxhash.experiments.page import fragment
from auxhash.experiments.pyplot import figure_of
from auxhash.experiments.svg import Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

NONE = "-"  # in a table, where there is no number
EXACT = "vectors"  # the row of reference: exact distances
BEST = "★"
LEFT_COLUMNS = ("", "method", "by")  # columns of text
MAX_METHOD_CHARACTERS = 32  # in one line
WIDTH_CHARACTERS = 160  # of text that goes to no terminal

AnyJob = TypeVar("AnyJob")
Row = dict[str, Any]


@dataclass(frozen=True)
class ComparedRows:
    """Rows of a comparison, and its protocol: facts that a reader must know."""

    rows: list[Row]
    protocol: dict[str, Any]

    def __str__(self) -> str:
        width = shutil.get_terminal_size((WIDTH_CHARACTERS, 24)).columns
        console = Console(width=width, record=True, file=StringIO())
        console.print(self.table())
        protocol = "\n".join(f"{name}: {value}" for name, value in self.protocol.items())
        return f"{protocol}\n{console.export_text()}{self.legend}"

    def _repr_html_(self) -> str:
        """The table, curves and protocol, as notebooks show them."""
        columns, rows = self.texts()
        sections = [Section(self.title, table=PageTable(columns, rows), note=self.legend)]
        if plots := self.plots():
            sections.append(Section("Curves", [plots]))
        return fragment(sections, [(name, str(value)) for name, value in self.protocol.items()])

    @property
    def title(self) -> str:
        """Heading of a page or a figure: the data, and that methods are compared."""
        raise NotImplementedError

    @property
    def legend(self) -> str:
        """Explanation of the columns."""
        raise NotImplementedError

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of text: by size, which is the first column, the best first."""
        raise NotImplementedError

    def plots(self) -> list[Plot]:
        """The rows as curves."""
        raise NotImplementedError

    @property
    def spare(self) -> Sequence[str]:
        """Columns that a narrow table does without, the first of them first."""
        raise NotImplementedError

    def plot(self) -> "Figure":
        """Return a matplotlib figure of the curves."""
        return figure_of(self.plots(), self.title)

    def table(self) -> RenderableType:
        """The rows as a table for the terminal."""
        return FittingTable(*self.texts(), self.spare)

    def to_frame(self) -> "DataFrame":
        """The rows as a pandas frame, the protocol in its `attrs`."""
        import pandas

        frame = pandas.DataFrame(self.rows)
        frame.attrs = dict(self.protocol)
        return frame


@dataclass(frozen=True)
class FittingTable:
    """A table for the terminal, without its spare columns as far as there is no room for them."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    spare: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unlimited = options.update(width=10_000)
        left_out: list[str] = []
        table = self._drawn(left_out)
        for name in self.spare:
            if Measurement.get(console, unlimited, table).maximum <= options.max_width:
                break
            left_out.append(name)
            table = self._drawn(left_out)
        yield table
        if left_out:
            yield Text(f"No room here for {', '.join(left_out)}: a wider terminal has them.")

    def _drawn(self, left_out: Sequence[str]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False, show_edge=False)
        at = [i for i, name in enumerate(self.columns) if name not in left_out]
        for name in (self.columns[i] for i in at):
            long = MAX_METHOD_CHARACTERS if name == "method" else None
            side: JustifyMethod = "left" if name in LEFT_COLUMNS else "right"
            table.add_column(name, justify=side, overflow="fold", max_width=long)
        for row, following in zip(self.rows, [*self.rows[1:], [""]], strict=True):
            texts = (Text(row[i]) for i in at)  # as Text: a bracket in it is no markup
            table.add_row(*texts, end_section=row[0] != following[0])
        return table


def share(value: float) -> str:
    """A share as .307, or 1; a dash where there is none."""
    if math.isnan(value):
        return NONE
    return f"{value:.3f}".removeprefix("0")


def size(n_bytes: float) -> str:
    """Bytes in the unit that is short to read; a dash where they are not known."""
    if math.isnan(n_bytes):
        return NONE
    for unit, letters in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {letters}"
    return f"{n_bytes:.0f} B"


def duration(value: float) -> str:
    """Seconds or milliseconds, in two digits or more; a dash where there are none."""
    if math.isnan(value):
        return NONE
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def in_turn(
    jobs: Sequence[AnyJob],
    run: Callable[[AnyJob], None],
    verbose: int,
) -> None:
    """Run the jobs one after the other, with a progress bar that names the current one."""
    description = TextColumn("{task.description}", markup=False)
    columns = SpinnerColumn(), MofNCompleteColumn(), description, TimeElapsedColumn()
    with Progress(*columns, disable=not verbose) as bar:
        task = bar.add_task("", total=len(jobs))
        for job in jobs:
            bar.update(task, description=str(job))
            run(job)
            bar.advance(task)


def several(name: str, values: object, least: int, most: int | None = None) -> tuple[int, ...]:
    """One whole number or several that differ, as a tuple."""
    items = (
        list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    )
    numbers = tuple(integer(name, item, least, most) for item in items)
    if not numbers:
        raise ArgumentError(f"{name} must be a whole number or several, got none")
    if twice := [value for at, value in enumerate(numbers) if value in numbers[:at]]:
        raise ArgumentError(f"{name} must be given once each, got {twice[0]} twice")
    return numbers
