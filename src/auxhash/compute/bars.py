"""Progress bars; without a terminal or a notebook, plain lines on stderr, for a log."""

import math
import sys
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from auxhash.compute.context import Listener

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn

LINE_SECONDS = 10.0  # from one plain line to the next; shorter work writes none


def new_bar(disable: bool = False, listener: Listener | None = None) -> "Progress":
    """A bar that shows a task's `stage`, how far it is, its description, and the time left.

    Below it, the progress of the loop under way, as `listener` hears of it; a task's `stride` is
    what such a loop adds to its progress, 1 unless it is set.
    """
    from rich.progress import (  # here: nothing else in training needs it
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("[bold]{task.fields[stage]}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return bar_of(listener, *columns, disable=disable)


def bar_of(
    listener: Listener | None,
    *columns: "ProgressColumn",
    transient: bool = False,
    disable: bool = False,
) -> "Progress":
    """A bar of these columns; below it, the progress that the listener hears of.

    Without a terminal, the same in a line every LINE_SECONDS.
    """
    from rich import get_console
    from rich.progress import Progress
    from rich.text import Text

    class Bar(Progress):
        def get_renderables(self) -> "Iterable[RenderableType]":
            yield from super().get_renderables()
            if listener is not None and not self.finished:
                yield Text(listener.describe(), style="dim")

    class Lines(Bar):
        def start(self) -> None:
            self.began, self.ended = time.monotonic(), threading.Event()
            self.writing = threading.Thread(target=self.write_lines, daemon=True)
            self.writing.start()

        def stop(self) -> None:
            self.ended.set()
            self.writing.join()

        def write_lines(self) -> None:
            written = False
            while not self.ended.wait(LINE_SECONDS):
                written = self.write_line()
            if written:  # of long work the end as well
                self.write_line()

        def write_line(self) -> bool:
            task, taken = self.tasks[0], time.monotonic() - self.began
            of = "" if task.total is None else f"{task.completed:,.0f} of {task.total:,.0f}"
            parts = task.fields.get("stage", ""), of, task.description
            heard = Listener() if listener is None else listener
            within = heard.share() * task.fields.get("stride", 1)
            share = (task.completed + within) / (task.total or math.inf)
            line = ", ".join(filter(None, [" ".join(filter(None, parts)), heard.describe()]))
            print(f"{line}; {_times(taken, share)}", file=sys.stderr, flush=True)
            return True

    console = get_console()
    if disable or console.is_terminal or console.is_jupyter:
        return Bar(*columns, transient=transient, disable=disable)
    return Lines(*columns, disable=True)


def _times(taken: float, share: float) -> str:
    """Describe the time taken, and that left in all if it goes on like this."""
    taken_in_words = f"{timedelta(seconds=round(taken))} taken"
    if not 0 < share < 1:
        return taken_in_words
    left = timedelta(seconds=round(taken * (1 - share) / share))
    return f"{taken_in_words}, about {left} left in all"
