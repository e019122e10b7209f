"""A progress bar for MAC and the refinement: one more consumer of their steps."""

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
    steps: Iterable[tuple[Step, State]], last_mu: float, alpha: float, max_iter: int, more: int
) -> Iterator[tuple[Step, State]]:
    """Pass the steps on, and show mu, L(h), violations, precision and time left in a bar.

    `more` steps of refinement come after those of MAC.
    """
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
        task = bar.add_task("mu = 0", total=max_iter + more)
        last = max_iter  # iteration of MAC, as estimated so far
        for step, state in steps:
            if 0 < step.mu < math.inf:
                # The schedule ends, at the latest, past last_mu.
                left = math.ceil(math.log(max(last_mu / step.mu, 1.0)) / math.log(alpha))
                last = min(max_iter, step.iteration + (left if step.violations else 0))
            elif step.mu == math.inf:
                last = min(last, step.iteration - 1)
            bar.update(
                task, completed=step.iteration, total=last + more, description=describe(step)
            )
            yield step, state


def describe(step: Step) -> str:
    """One step in one line of text."""
    where = "refined" if step.mu == math.inf else f"mu {step.mu:.3g}"
    text = f"{where}  L(h) {step.loss:.6g}  violations {step.violations}"
    if not math.isnan(step.score):
        text += f"  precision {step.score:.3f}" + ("" if step.accepted else " (skipped)")
    return text
