"""Progress of MAC and the refinement: one more consumer of their steps."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from auxhash.compute import underway
from auxhash.compute.bars import bar_of, new_bar
from auxhash.compute.context import Listener, using
from auxhash.learn.training import interrupt
from auxhash.mac.loop import State, Step


class Numbered(Protocol):
    """A report after so many gradient steps."""

    @property
    def step(self) -> int: ...


AnyReport = TypeVar("AnyReport", bound="Numbered")
N_LIKELY_ITERATIONS = 5  # of MAC, where it ends as soon as it gains little


@contextmanager
def getting_ready(shown: bool) -> Iterator[Callable[[str], None]]:
    """Show progress before the first step: the part being made, how far it is, and time left.

    With millions of points this takes minutes. The lines vanish when the steps begin.
    """
    if not shown:
        yield lambda what: None
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("[bold]{task.description}"), TimeElapsedColumn()
    with underway.listening() as listener, bar_of(listener, *columns, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what: bar.update(task, description=what)


def drive(
    steps: Iterable[AnyReport],
    total: int,
    reports: int,
    describe: Callable[[AnyReport], str],
    verbose: int,
) -> bool:
    """Make `total` gradient steps, or those until Ctrl-C; return True for the latter."""
    listener = Listener() if verbose else None
    with interrupt.watching() as watch, using(listener=listener):
        if verbose:
            steps = _shown(steps, total, reports, describe, listener)
        for _ in watch.until_pressed(steps):
            pass
    return watch.pressed


def _shown(
    steps: Iterable[AnyReport],
    total: int,
    reports: int,
    describe: Callable[[AnyReport], str],
    listener: Listener | None,
) -> Iterator[AnyReport]:
    """Pass reports of gradient steps on, and show them in a bar; `total` steps are to come."""
    with new_bar(listener=listener) as bar:
        task = bar.add_task("", total=total, stage="learning", stride=total / reports)
        for step in steps:
            bar.update(task, completed=step.step, description=describe(step))
            yield step


def show(
    steps: Iterable[tuple[Step, State]],
    last_mu: float,
    alpha: float,
    max_iter: int,
    more: int,
    listener: Listener | None = None,
    ends_early: bool = False,
) -> Iterator[tuple[Step, State]]:
    """Pass the steps on, and show in a bar what is being done, how far it is, and time left.

    After the two-step solution come at most `max_iter` steps of MAC, then `more` of refinement.
    `listener` hears of the loops inside a step. Where MAC `ends_early`, as soon as it gains little,
    the time left is that of a few of its steps.
    """
    likely = min(N_LIKELY_ITERATIONS, max_iter) if ends_early else max_iter
    with new_bar(listener=listener) as bar:
        total = 1 + max_iter + more
        task = bar.add_task("", total=total, stage="two-step", likely=1 + likely + more)
        last = max_iter  # iteration of MAC, at most
        refined = 0
        for step, state in steps:
            last = min(last, last_iteration(step, state, last_mu, alpha, last))
            refined += step.mu == math.inf
            done = step.iteration if state.position else min(step.iteration, last + refined)
            likely = min(last, max(likely, done - refined + 1))
            bar.update(
                task,
                completed=1 + done,
                total=1 + last + more,
                likely=1 + likely + more,
                description=describe(step),
                stage="refining" if more and done >= last else "MAC" if max_iter else "two-step",
            )
            yield step, state


def last_iteration(step: Step, state: State, last_mu: float, alpha: float, most: int) -> int:
    """Number of the last iteration that MAC can make, judged by this step; at mu = 0, `most`."""
    if step.mu == math.inf:
        return step.iteration - (state.position.reports if state.position else 1)
    if state.ended:
        return step.iteration
    if not step.mu:
        return most
    # Past last_mu nothing can change; the iteration after finds that Z = h(X).
    left = math.ceil(math.log(max(last_mu / step.mu, 1.0)) / math.log(alpha))
    return step.iteration + left + 1


def describe(step: Step) -> str:
    """One step in one line of text."""
    text = f"L(h) {step.loss:.6g}"
    if step.mu < math.inf:
        text = f"mu {step.mu:.3g}  {text}  {step.violations:,} bits of Z differ from h(X)"
    if not math.isnan(step.score):
        text += f"  precision {step.score:.3f}" + ("" if step.accepted else " (skipped)")
    return text
