"""Comparisons of all kinds: rows of figures, the protocol, tables, and the loop over jobs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from auxhash.compute.checks import ArgumentError, integer

NONE = "-"  # in a table, where there is no number
WIDE = ("method", "own", "failed")  # columns whose text may take several lines

AnyJob = TypeVar("AnyJob")


@dataclass(frozen=True)
class ComparedRows:
    """Rows of a comparison, and its protocol: facts that a reader must know."""

    rows: list[dict[str, Any]]
    protocol: dict[str, Any]

    def __str__(self) -> str:
        console = Console(width=160, record=True, file=StringIO())
        console.print(self.table())
        protocol = "\n".join(f"{name}: {value}" for name, value in self.protocol.items())
        return f"{protocol}\n{console.export_text()}"

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of text."""
        raise NotImplementedError

    def table(self) -> Table:
        """The rows as a table for the terminal."""
        columns, rows = self.texts()
        table = Table()
        for name in columns:
            table.add_column(name, overflow="fold" if name in WIDE else "ellipsis")
        for texts in rows:
            table.add_row(*map(Text, texts))  # as Text: a bracket in it is no markup
        return table

    def to_frame(self) -> Any:
        """The rows as a pandas frame, the protocol in its `attrs`."""
        import pandas

        frame = pandas.DataFrame(self.rows)
        frame.attrs = dict(self.protocol)
        return frame


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
