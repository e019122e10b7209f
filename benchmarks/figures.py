"""The paper's figures at its size, run by run in one queue that can be stopped: make figures.

python -m benchmarks figures [--list | --tables] [--figures NAME ...] [--methods NAME ...]
    [--h-steps plain monotone] [--seeds N] [--hours H] [--jobs N] [--results FILE] [--folder FOLDER]

Every run that docs/results has no record of, in both orders of the blocks and both forms of MAC's
h step, each once for all figures that show it: MACquad last, seed by seed, data set by data set,
the shortest first, by the times of runs like it. Its records are appended to
docs/results/figures.jsonl, of which docs/verdicts.py makes columns of their own, and its codes are
kept in FOLDER, where `auxhash reproduce` finds them. `--list` shows the queue and the hours that it
will take; `--tables` writes these, figure by figure, for docs/verdicts.md.
"""

import argparse
import math
import runpy
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from auxhash.compute import clock, context
from auxhash.experiments.cells import Cells
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.groups import PAPERS, TWO_STEP_OF, Group, PlannedRun
from auxhash.experiments.numbers import entries
from auxhash.experiments.scales import PAPER, TINY, Scale
from auxhash.mac.loop import H_STEPS, HStep, Returned
from auxhash.mac.presets import ORDER
from benchmarks.records import DOCS, Record, append, drop_cut_line

ITERATES: dict[HStep, Returned] = {"plain": "last", "monotone": "lowest"}  # which MAC returns
UNKNOWN_SECONDS = 60.0  # of a method that no run is known of: one of the quick ones
TABLE = DOCS / "summary" / "missing.md"
Times = Sequence[tuple[PlannedRun, float]]


@dataclass(frozen=True)
class Queued:
    """A run to make, in the group of the first figure that shows it."""

    figure: str
    group: Group
    run: PlannedRun
    seconds: float  # estimated

    def __str__(self) -> str:
        first = f"{self.figure}: {self.run}"
        if self.run.method not in PAPERS:
            return first
        order = "" if self.run.method == "MACquad" else f", {self.run.order} order"
        return f"{first}{order}, {self.run.h_step} h step"

    def rows(self, cells: Cells) -> list[Record]:
        """The lines of the file: of the method, and of the two-step method where MAC started."""
        records = [r for r in self.group.records(cells) if r.seed == self.run.seed]
        about: Record = {"figure": self.figure, "order": None, "h_step": None, "iterate": None}
        if self.run.method in PAPERS:
            about |= {"h_step": self.run.h_step, "iterate": self.run.iterate}
            about["order"] = self.run.order if self.run.method != "MACquad" else None
        return [about | entry for entry in entries(records)]


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Make the runs that are missing, or list them."""
    parser = argparse.ArgumentParser("python -m benchmarks figures")
    figures = [name for name, one in FIGURES.items() if isinstance(one, GroupFigure)]
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--figures", choices=figures, nargs="+", default=figures)
    methods = {run.method for name in figures for _, _, run in _members(name, PAPER)}
    parser.add_argument("--methods", choices=sorted(methods), nargs="+", metavar="NAME")
    parser.add_argument("--h-steps", choices=H_STEPS, nargs="+", default=["plain", "monotone"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--hours", type=float, default=math.inf, help="start none after that")
    parser.add_argument("--jobs", type=int, help="threads; by default, all cores")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--folder", default="results")
    asked = parser.parse_args(list(options))
    if small:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "figures.jsonl"
            few = queue(["sup-nestederr"], ["plain"], 1, TINY, results)[:2]
            make(few, Cells(folder), results, math.inf)
        return
    made = _verdicts()
    results = asked.results or made["FIGURES_FILE"]
    scale = made["SCALE"]
    runs = queue(asked.figures, asked.h_steps, asked.seeds, scale, results)
    runs = [one for one in runs if one.run.method in (asked.methods or [one.run.method])]
    if asked.tables:
        TABLE.write_text(table(runs), "utf-8")
    elif asked.list:
        for one in runs:
            print(f"{one.seconds / 3600:6.2f} h  {one}")
        hours = sum(one.seconds for one in runs) / 3600
        print(f"{len(runs)} runs, about {hours:.0f} hours by the times of runs like them")
    else:
        with context.using(n_jobs=asked.jobs):
            make(runs, Cells(asked.folder), results, asked.hours)


def table(runs: Sequence[Queued]) -> str:
    """The runs without a record and the hours that they take, by figure, method and h step."""
    groups: dict[tuple[str, str, str], list[Queued]] = {}
    for one in sorted(runs, key=lambda one: (one.run.n_bits, one.run.hash_function)):
        groups.setdefault((one.figure, one.run.method, one.run.h_step), []).append(one)
    lines = ["| figure | method | h step | missing | runs | hours |", "|---" * 6 + "|"]
    for names in sorted(groups, key=lambda names: (list(FIGURES).index(names[0]), *names[1:])):
        own = groups[names]
        cells = dict.fromkeys(f"{one.run.hash_function} {one.run.n_bits}" for one in own)
        hours = sum(one.seconds for one in own) / 3600
        row = *names, ", ".join(cells), str(len(own)), f"{hours:.1f}"
        lines.append(f"| {' | '.join(row)} |")
    hours = sum(one.seconds for one in runs) / 3600
    return "\n".join([*lines, f"| all | | | | {len(runs)} | {hours:.0f} |"]) + "\n"


def make(runs: Sequence[Queued], cells: Cells, results: Path, hours: float) -> None:
    """Make one run after the other and append its records; one that fails stops nothing."""
    drop_cut_line(results)
    began = clock.seconds()
    for one in runs:
        started = clock.seconds()
        if started - began > 3600 * hours:
            return
        try:
            configuration = one.run.configuration()
            if configuration not in cells:
                cells.write(configuration, *one.run.run())
            for row in one.rows(cells):
                append(results, row)
        except Exception as error:
            print(f"failed: {one}: {traceback.format_exception_only(error)[-1].strip()}")
            continue
        took = clock.seconds() - started
        print(f"{one}: {took:.0f} s, ratio to the estimate {took / one.seconds:.2f}", flush=True)


def queue(
    figures: Sequence[str],
    h_steps: Sequence[HStep],
    seeds: int,
    scale: Scale,
    results: Path,
) -> list[Queued]:
    """The runs without a record, each once, in the order in which they are made."""
    stored = _verdicts()["stored"]
    scale = replace(scale, seeds=seeds, seeds_quad=seeds)
    times = _times(stored)
    queued: dict[PlannedRun, Queued] = {}
    for name, order, h_step in product(figures, ("fixed", "random"), h_steps):
        known = stored(order, h_step, scale, results)
        for group, method, run in _members(name, scale):
            wanted = _settled(replace(run, order=order, h_step=h_step, iterate=ITERATES[h_step]))
            if (method, run) not in known and wanted not in queued:
                queued[wanted] = Queued(name, _alone(group, wanted), wanted, _guess(wanted, times))
    return sorted(queued.values(), key=_place)


def _place(one: Queued) -> tuple[Any, ...]:
    """One data set after the other, as loading takes minutes; MACquad, which takes days, last."""
    run, data = one.run, one.run.data
    return run.method == "MACquad", run.seed, data.name, data.cosine, one.seconds


def _verdicts() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "verdicts.py"))


def _members(figure: str, scale: Scale) -> Iterator[tuple[Group, str, PlannedRun]]:
    one = FIGURES[figure]
    assert isinstance(one, GroupFigure)
    for group in one.groups(scale):
        for method, run in group.members():
            yield group, method, run


def _settled(run: PlannedRun) -> PlannedRun:
    """The run with one value of all that has no effect on it: quad has no blocks."""
    if run.method not in PAPERS:
        return replace(run, order=ORDER, h_step="plain", iterate="last")
    return replace(run, order=ORDER) if run.method == "MACquad" else run


def _alone(group: Group, run: PlannedRun) -> Group:
    """The group with this run alone, and the methods whose codes it has."""
    return replace(
        group,
        methods=tuple(m for m in group.methods if TWO_STEP_OF.get(m, m) == run.method),
        hash_functions=(run.hash_function,),
        bits=(run.n_bits,),
        **{name: getattr(run, name) for name in ("order", "h_step", "iterate")},
    )


def _times(stored: Any) -> Times:
    """Runs of which the seconds are known."""
    return [
        (replace(run, h_step=h_step), record.seconds)
        for order, h_step in product(("fixed", "random"), H_STEPS)
        for (method, run), record in stored(order, h_step).items()
        if method == run.method and record.seconds > 0
    ]


def _guess(run: PlannedRun, times: Times) -> float:
    """Seconds of a run: those of the one most like it, in proportion to points and bits."""

    def unlike(other: PlannedRun) -> tuple[float, ...]:
        names = ("data", "loss", "hash_function")
        others = sum(getattr(other, name) != getattr(run, name) for name in names)
        return others, other.h_step != run.h_step, abs(math.log(run.n_bits / other.n_bits))

    same = [(other, seconds) for other, seconds in times if other.method == run.method]
    if not same:
        return UNKNOWN_SECONDS
    nearest, seconds = min(same, key=lambda pair: unlike(pair[0]))
    points = run.data.n_train / nearest.data.n_train
    return seconds * points * run.n_bits / nearest.n_bits
