"""The paragraph on run time, as a table."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from auxhash.experiments.claims import Claim, among
from auxhash.experiments.figures.figure import GroupFigure, Section, Table, curves, of
from auxhash.experiments.figures.nested import FOUR, LOSSES, nested_group
from auxhash.experiments.figures.styles import KINDS
from auxhash.experiments.groups import LIBSVM, SEARCHED_MU, Group, Record
from auxhash.experiments.iterates import (
    cheaper_on_average,
    equally_long,
    few_two_steps,
    iterations,
    iterations_like_a_two_step,
    later_are_faster,
    mu_in_a_few_iterations,
    z_step_dominates,
)
from auxhash.experiments.kinds import similar_but_slower
from auxhash.experiments.scales import Scale
from auxhash.experiments.svg import Plot

COLUMNS = (
    "method",
    "hash function",
    "points",
    "bits",
    "iterations",
    "two-step solution, s",
    "a later iteration, s",
    "Z steps, s",
    "h steps, s",
    "all, s",
)


KSH = LOSSES["ksh"]
TWO_STEP_OF_MAC = {"MACcut": "cut", "MACquad": "quad"}
MU_GROUP, LIBSVM_GROUP = "KSH, mu found", "KSH, LIBSVM"


def groups(scale: Scale) -> list[Group]:
    """The longest codes of sup-nestederr; mu_1 by search; and, for fewer points, LIBSVM."""
    longest = nested_group(scale, scale.images, "ksh", scale.bits[-1:], FOUR, scale.pairs)
    few = replace(scale.images, n_train=scale.n_train_libsvm)
    return [
        longest,
        replace(
            longest, name=MU_GROUP, seeds=1, methods=(SEARCHED_MU,), hash_functions=("linear",)
        ),
        replace(
            longest,
            name=LIBSVM_GROUP,
            seeds=1,
            data=few,
            bits=scale.bits[:1],
            methods=("cut", "MACcut"),
            hash_functions=("rbf", LIBSVM),
        ),
    ]


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    macs = [r for r in records if r.method.startswith("MAC")]
    rows = [
        _row(of(macs, group=group, method=method, hash_function=kind))
        for group, method, kind in dict.fromkeys((r.group, r.method, r.hash_function) for r in macs)
    ]
    plot = Plot(
        "Seconds per iteration",
        "iteration",
        "seconds",
        curves(of(macs, group=KSH), lambda r: [(s["iteration"], s["seconds"]) for s in r.history]),
    )
    return [Section("Run time", [[plot]] if plot.series else [], Table(COLUMNS, rows))]


def _row(records: Sequence[Record]) -> list[str]:
    """Means over the seeds."""
    first = np.mean([r.history[0]["seconds"] for r in records])
    later = np.mean([s["seconds"] for r in records for s in r.history[1:]])
    every = np.mean([r.seconds for r in records])
    count = np.mean([len(r.history) - 1 for r in records])
    one = records[0]
    of_steps = [
        f"{np.mean([sum(s.get(name, np.nan) for s in r.history) for r in records]):.1f}"
        for name in ("z_seconds", "h_seconds")
    ]
    numbers = [f"{count:.1f}", f"{first:.2f}", f"{later:.2f}", *of_steps, f"{every:.1f}"]
    columns = [one.method, KINDS[one.hash_function], f"{one.points:,}", str(one.bits)]
    return [*columns, *numbers]


RUN_TIME = GroupFigure(
    "run-time",
    "Sec. 4.3",
    "Run time of MAC and of the two-step methods",
    "The paper's paragraph on run time, with 48 bits on CIFAR.",
    groups,
    sections,
    (
        Claim(  # whose minutes are those of a laptop that we do not have
            "An iteration takes as long with MACcut as with MACquad (2 minutes on a laptop)",
            among(KSH, equally_long("MACcut", "MACquad")),
        ),
        Claim("With 48 bits MAC stops after 10 to 20 iterations", among(KSH, iterations(10, 20))),
        *(
            Claim(
                f"Each iteration of {mac} is comparable to a single {two_step} run",
                among(KSH, iterations_like_a_two_step(mac)),
            )
            for mac, two_step in TWO_STEP_OF_MAC.items()
        ),
        Claim("The Z step dominates the computation", among(KSH, z_step_dominates)),
        Claim("The iterations after the first are faster", among(KSH, later_are_faster)),
        Claim(
            "The average cost of an iteration is lower than that of the two-step approach",
            among(KSH, cheaper_on_average),
        ),
        Claim(
            "MAC is comparable to iterating the two-step method a few times",
            among(KSH, few_two_steps),
        ),
        Claim(
            "To find mu_1 takes about as long as a few extra iterations",
            among(MU_GROUP, mu_in_a_few_iterations(SEARCHED_MU)),
        ),
        Claim(
            "Kernel SVMs by LIBSVM give similar results, but are much slower",
            among(LIBSVM_GROUP, similar_but_slower(LIBSVM, "rbf")),
        ),
    ),
    pictures=False,
)
