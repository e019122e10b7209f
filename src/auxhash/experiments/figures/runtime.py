"""The paragraph on run time, as a table."""

from collections.abc import Sequence

import numpy as np

from auxhash.experiments.claims import (
    Claim,
    few_two_steps,
    iteration_in_time,
    iterations,
    later_are_faster,
)
from auxhash.experiments.figures.figure import GroupFigure, Section, Table, curves, of
from auxhash.experiments.figures.nested import FOUR, nested_group
from auxhash.experiments.figures.styles import KINDS
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.scales import Scale
from auxhash.experiments.svg import Plot

COLUMNS = (
    "method",
    "hash function",
    "bits",
    "iterations",
    "two-step solution, s",
    "a later iteration, s",
    "all, s",
)


def groups(scale: Scale) -> list[Group]:
    """The longest codes of sup-nestederr."""
    return [nested_group(scale, scale.images, "ksh", scale.bits[-1:], FOUR, scale.pairs)]


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    macs = [r for r in records if r.method.startswith("MAC")]
    rows = [
        _row(of(macs, method=method, hash_function=kind))
        for method, kind in dict.fromkeys((r.method, r.hash_function) for r in macs)
    ]
    plot = Plot(
        "Seconds per iteration",
        "iteration",
        "seconds",
        curves(macs, lambda r: [(s["iteration"], s["seconds"]) for s in r.history]),
    )
    return [Section("Run time", [[plot]] if macs else [], Table(COLUMNS, rows))]


def _row(records: Sequence[Record]) -> list[str]:
    """Means over the seeds."""
    first = np.mean([r.history[0]["seconds"] for r in records])
    later = np.mean([s["seconds"] for r in records for s in r.history[1:]])
    every = np.mean([r.seconds for r in records])
    count = np.mean([len(r.history) - 1 for r in records])
    one = records[0]
    numbers = [f"{count:.1f}", f"{first:.2f}", f"{later:.2f}", f"{every:.1f}"]
    return [one.method, KINDS[one.hash_function], str(one.bits), *numbers]


RUN_TIME = GroupFigure(
    "run-time",
    "Run time of MAC and of the two-step methods",
    "The paper's paragraph on run time, with 48 bits on CIFAR.",
    groups,
    sections,
    (
        Claim("An iteration takes 2 minutes on a laptop", iteration_in_time),
        Claim("MAC stops after 10 to 20 iterations", iterations(10, 20)),
        Claim("The iterations after the first are faster", later_are_faster),
        Claim("MAC is comparable to iterating the two-step method a few times", few_two_steps),
    ),
    pictures=False,
)
