"""Loss over iterations, precision over k, precision over recall: does MAC find better optima?"""

from collections.abc import Sequence
from dataclasses import replace

from auxhash.experiments.claims import (
    USUALLY,
    Claim,
    among,
    better_precision,
    both,
    close_precision,
    end_up_similar,
    gain_like_a_kernel,
    iterations,
    larger_gain_for_linear,
    lower_loss,
    progress_at_the_beginning,
)
from auxhash.experiments.figures.figure import (
    NEAREST,
    WITHIN,
    GroupFigure,
    Section,
    arrows,
    curves,
    of,
    precision_plot,
    recall_plot,
)
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.scales import Data, Scale
from auxhash.experiments.svg import Plot

FOUR = ("cut", "MACcut", "quad", "MACquad")
LOSSES = {"ksh": "KSH", "esplh": "eSPLH"}
KERNELS = ("rbf", "linear")
LOSS = (
    "Loss over the iterations of MAC: iteration 0 is the two-step solution, and methods that do "
    "not iterate are level."
)


def nested_group(
    scale: Scale,
    data: Data,
    loss: str,
    bits: tuple[int, ...],
    methods: tuple[str, ...],
    pairs: tuple[int, int],
) -> Group:
    """A group with one loss and both kinds of hash function."""
    return Group(
        LOSSES[loss],
        data,
        loss,
        pairs,
        bits,
        methods,
        scale.mu,
        scale.seeds,
        scale.seeds_quad,
        KERNELS,
    )


def supervised(scale: Scale) -> list[Group]:
    return [
        nested_group(scale, scale.images, "ksh", scale.bits, (*FOUR, "KSH"), scale.pairs),
        nested_group(scale, scale.images, "esplh", scale.bits, ("cut", "MACcut"), scale.pairs),
    ]


def unsupervised(scale: Scale) -> list[Group]:
    data, bits = scale.descriptors, scale.bits_descriptors
    return [
        nested_group(scale, data, "ksh", bits, FOUR, scale.pairs),
        nested_group(scale, data, "esplh", bits, ("cut", "MACcut"), scale.pairs),
    ]


def far_apart(scale: Scale) -> list[Group]:
    """More dissimilar points, and half as many true neighbours."""
    data = replace(scale.descriptors, n_true=scale.descriptors.n_true // 2)
    return [nested_group(scale, data, "ksh", scale.bits_descriptors, FOUR, scale.pairs_far)]


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    found = []
    for group in groups:
        own = {b: of(records, group=group.name, bits=b) for b in group.bits}
        own = {b: some for b, some in own.items() if some}
        rows = [
            [plot(f"b = {b}", some) for b, some in own.items()]
            for plot in (loss_plot, precision_plot, recall_plot)
        ]
        found.append(Section(f"{group.name} loss", rows=rows, note=f"{LOSS} {NEAREST} {WITHIN}"))
    return found


def loss_plot(title: str, records: Sequence[Record]) -> Plot:
    """L(h) over the iterations; a level line for methods without iterations."""
    last = max((len(r.history) for r in records), default=2) - 1

    def path(record: Record) -> list[tuple[float, float]]:
        if record.method in ("MACcut", "MACquad"):
            return [(step["iteration"], step["loss"]) for step in record.history]
        return [(0, record.loss), (last, record.loss)]

    shown = arrows(records, lambda r: r.loss, last)
    return Plot(title, "iteration", "L(h)", curves(records, path), arrows=shown)


BETTER = (
    Claim("MACcut reduces the loss more than cut, in all cases", lower_loss("MACcut", "cut")),
    Claim("MACquad reduces the loss more than quad, in all cases", lower_loss("MACquad", "quad")),
)

SUP_NESTEDERR = GroupFigure(
    "sup-nestederr",
    "MAC finds better optima: KSH and eSPLH losses, supervised",
    "The paper's figure of the loss, precision and precision/recall on CIFAR.",
    supervised,
    sections,
    (
        *BETTER,
        Claim(
            "MACcut and MACquad reduce the loss more than the original KSH, in all cases",
            among("KSH", both(lower_loss("MACcut", "KSH"), lower_loss("MACquad", "KSH"))),
        ),
        Claim(
            "Reducing the loss nearly always translates into better precision and recall",
            both(better_precision("MACcut", "cut"), better_precision("MACquad", "quad")),
        ),
        Claim(
            "The gain is usually larger for linear than for kernel hash functions",
            larger_gain_for_linear("MACcut", "cut"),
        ),
        Claim(
            "The gain of MAC is often comparable to that of going from linear to kernel",
            gain_like_a_kernel("MACcut", "cut"),
        ),
        Claim("cut usually outperforms quad", lower_loss("cut", "quad", USUALLY)),
        Claim("MACcut usually outperforms MACquad", lower_loss("MACcut", "MACquad", USUALLY)),
        Claim("MACquad and MACcut end up very similar", end_up_similar),
        Claim(
            "With eSPLH too, MACcut outperforms cut in loss and precision, linear or kernel",
            among("eSPLH", both(lower_loss("MACcut", "cut"), better_precision("MACcut", "cut"))),
        ),
        Claim("MAC stops after 10 to 20 iterations", iterations(10, 20)),
        Claim(
            "Typically the algorithm makes most progress at the beginning",
            progress_at_the_beginning,
        ),
    ),
)

UNSUP_NESTEDERR = GroupFigure(
    "unsup-nestederr",
    "MAC finds better optima: KSH and eSPLH losses, unsupervised",
    "The paper's figure of the loss, precision and precision/recall on SIFT1M.",
    unsupervised,
    sections,
    (
        *BETTER,
        Claim("MACcut is generally better than MACquad", lower_loss("MACcut", "MACquad", USUALLY)),
        Claim(
            "Better optima mean better precision, as with the supervised sets",
            both(better_precision("MACcut", "cut"), better_precision("MACquad", "quad")),
        ),
    ),
)

UNSUP_NESTEDERR1 = GroupFigure(
    "unsup-nestederr1",
    "A case where quad is better than cut, unsupervised",
    "The paper's figure with fewer similar and more dissimilar points on SIFT1M.",
    far_apart,
    sections,
    (
        *BETTER,
        Claim("Here quad outperforms cut", lower_loss("quad", "cut", USUALLY)),
        Claim("Here MACquad outperforms MACcut", lower_loss("MACquad", "MACcut", USUALLY)),
        Claim("Both MAC results are very close", end_up_similar),
        Claim("... particularly in precision", close_precision("MACquad", "MACcut")),
    ),
)
