"""Progress bars; without a terminal or a notebook, plain lines on stderr, for a log."""

import math
import sys
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from auxhash.compute import context
from auxhash.compute.context import Listener

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn, Task

LINE_SECONDS = 10.0  # from one plain line to the next at least; shorter work writes none
LINE_SHARE = 0.05  # of the time taken, that passes before the next line: of hours, not thousands


def new_bar(disable: bool = False, listener: Listener | None = None) -> "Progress":
    """A bar that shows a task's `stage`, how far it is, its description, and the time left.

    Below it, the progress of the loop under way, as `listener` hears of it; a task's `stride` is
    what such a loop adds to its progress, 1 unless it is set. Its `likely` total, where its total
    is only a bound, is what the time left is judged by.
    """
    from rich.progress import (  # here: nothing else in training needs it
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        def render(self, task: "Task") -> Text:
            left = _left(task.elapsed or 0.0, _share(task, listener))
            return Text("-:--:--" if left is None else _clock(left), style="progress.remaining")

    columns = (
        TextColumn("[bold]{task.fields[stage]}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
    )
    return bar_of(listener, *columns, disable=disable)


def bar_of(
    listener: Listener | None,
    *columns: "ProgressColumn",
    transient: bool = False,
    disable: bool = False,
) -> "Progress":
    """A bar of these columns; below it, the progress that the listener hears of.

    Without a terminal, the same in a line every LINE_SECONDS, of long work more rarely.
    """
    from rich import get_console
    from rich.progress import Progress
    from rich.text import Text

    class Bar(Progress):
        share = 0.0  # of what comes before the first step, that is done

        def get_renderables(self) -> "Iterable[RenderableType]":
            yield from super().get_renderables()
            if listener is not None and not self.finished:
                line = listener.describe()
                if self.tasks and (left := self.left_in_all(self.tasks[0].elapsed or 0.0)):
                    line = f"{line}; about {_clock(left)} left in all"
                yield Text(line, style="dim")

        def left_in_all(self, taken: float) -> float | None:
            """Seconds left, of a task whose steps are still to come as well."""
            if expected is None or listener is None or self.tasks[0].total is not None:
                return None
            self.share = max(self.share, listener.share())  # after its loop there is none
            return expected.left(taken, self.share)

    class Lines(Bar):
        def start(self) -> None:
            self.began, self.ended = time.monotonic(), threading.Event()
            self.writing = threading.Thread(target=self.write_lines, daemon=True)
            self.writing.start()

        def stop(self) -> None:
            self.ended.set()
            self.writing.join()

        @property
        def taken(self) -> float:
            return time.monotonic() - self.began

        def write_lines(self) -> None:
            written = False
            while not self.ended.wait(max(LINE_SECONDS, LINE_SHARE * self.taken)):
                written = self.write_line()
            if written:  # of long work the end as well
                self.write_line()

        def write_line(self) -> bool:
            if not self.tasks:  # it has only begun
                return False
            task, taken = self.tasks[0], self.taken
            of = "" if task.total is None else f"{task.completed:,.0f} of {task.total:,.0f}"
            parts = task.fields.get("stage", ""), of, task.description
            heard = "" if listener is None else listener.describe()
            line = ", ".join(filter(None, [" ".join(filter(None, parts)), heard]))
            left = self.left_in_all(taken) or _left(taken, _share(task, listener))
            print(f"{line}; {_times(taken, left)}", file=sys.stderr, flush=True)
            return True

    expected = context.current().expected
    console = get_console()
    if disable or console.is_terminal or console.is_jupyter:
        return Bar(*columns, transient=transient, disable=disable)
    return Lines(*columns, disable=True)


def _share(task: "Task", listener: Listener | None) -> float:
    """Return the share of a task that is done, with that of the loop under way."""
    within = 0.0 if listener is None else listener.share() * task.fields.get("stride", 1)
    return float((task.completed + within) / (task.fields.get("likely") or task.total or math.inf))


def _left(taken: float, share: float) -> float | None:
    """Return the seconds left if it goes on like this; None if nobody knows."""
    return taken * (1 - share) / share if 0 < share < 1 else None


def _times(taken: float, left: float | None) -> str:
    """Describe the time taken, and that left in all."""
    taken_in_words = f"{_clock(taken)} taken"
    return taken_in_words if left is None else f"{taken_in_words}, about {_clock(left)} left in all"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
