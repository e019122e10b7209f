"""A progress bar for MAC: one more consumer of its steps."""

import math
from collections.abc import Iterable, Iterator

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from auxhash.mac import State, Step


def show(
    steps: Iterable[tuple[Step, State]], last_mu: float, alpha: float, max_iter: int
) -> Iterator[tuple[Step, State]]:
    """Pass the steps on, with a bar that tells mu, L(h), violations, precision and time left."""
    bar = Progress(
        TextColumn("[bold]MAC"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with bar:
        task = bar.add_task("mu = 0", total=max_iter)
        for step, state in steps:
            total = max_iter
            if step.mu > 0:
                # The schedule ends, at the latest, past last_mu.
                left = math.ceil(math.log(max(last_mu / step.mu, 1.0)) / math.log(alpha))
                total = min(max_iter, step.iteration + left)
            if step.violations == 0:
                total = step.iteration
            bar.update(task, completed=step.iteration, total=total, description=describe(step))
            yield step, state


def describe(step: Step) -> str:
    """One step in a line."""
    text = f"mu {step.mu:.3g}  L(h) {step.loss:.6g}  violations {step.violations}"
    if not math.isnan(step.score):
        text += f"  precision {step.score:.3f}" + ("" if step.accepted else " (skipped)")
    return text
