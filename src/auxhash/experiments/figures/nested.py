"""Loss over iterations, precision over k, precision over recall: does MAC find better optima?"""

from collections.abc import Sequence
from dataclasses import replace

from auxhash.experiments.claims import (
    ALWAYS,
    CUTS_EXACT,
    STEPS_REFUSED,
    USUALLY,
    Claim,
    among,
    better_curve,
    better_precision,
    better_retrieval,
    by_construction,
    close_curve,
    close_precision,
    drops_at_both_ends,
    end_up_similar,
    every,
    lower_loss,
    much_lower_loss,
    of_the_lowest,
    start_apart,
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
from auxhash.experiments.iterates import (
    iterations,
    last_below_first,
    losses,
    never_below_the_start,
    never_raises,
    next_mu_works,
    progress_at_the_beginning,
    raises_near_the_end,
    skips_the_rest,
)
from auxhash.experiments.kinds import gain_like_a_kernel, larger_gain_for_linear
from auxhash.experiments.scales import Data, Scale
from auxhash.experiments.svg import Plot

FOUR = ("cut", "MACcut", "quad", "MACquad")
LOSSES = {"ksh": "KSH", "esplh": "eSPLH"}
KERNELS = ("rbf", "linear")
LOSS = (
    "Loss over the iterations of MAC: iteration 0 is the two-step solution, a step that validation "
    "ignored leaves it as it was, and methods that do not iterate are level."
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
        hash_functions=KERNELS,
    )


def supervised(scale: Scale) -> list[Group]:
    """Both losses on labelled images: the truth is the same label, as sec. 4 says.

    The panels of fig. 2 are marked K = 20 000, a number of nearest neighbours, all the same.
    """
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
    sections = []
    for group in groups:
        own = {b: of(records, group=group.name, bits=b) for b in group.bits}
        own = {b: panel for b, panel in own.items() if panel}
        rows = [
            [plot(f"b = {b}", panel) for b, panel in own.items()]
            for plot in (loss_plot, precision_plot, recall_plot)
        ]
        sections.append(Section(f"{group.name} loss", rows=rows, note=f"{LOSS} {NEAREST} {WITHIN}"))
    return sections


def loss_plot(title: str, records: Sequence[Record]) -> Plot:
    """L(h) over the iterations; a level line for methods without iterations."""
    last = max((len(r.history) for r in records), default=2) - 1

    def path(record: Record) -> list[tuple[float, float]]:
        if record.method in ("MACcut", "MACquad"):
            return list(enumerate(losses(record)))
        return [(0, record.loss), (last, record.loss)]

    shown = arrows(records, lambda r: r.loss, last)
    return Plot(title, "iteration", "L(h)", curves(records, path), arrows=shown)


def _lower(mac: str, two_step: str) -> tuple[Claim, Claim]:
    """Claims that MAC is below its start: its best iterate, and its last, which can be above."""
    words = f"{mac} reduces the loss more than {two_step}, in all cases"
    return (
        Claim(words, of_the_lowest(lower_loss(mac, two_step))),
        Claim(
            f"... and so does the last iterate of {mac}", last_below_first(mac, two_step), ours=True
        ),
    )


BETTER = (*_lower("MACcut", "cut"), *_lower("MACquad", "quad"))
CUT, QUAD = ("MACcut", "cut"), ("MACquad", "quad")
VALIDATED = (
    Claim(
        "Validation: precision on the validation set is never below that of the start",
        by_construction(never_below_the_start, STEPS_REFUSED),
    ),
    Claim("Validation: the mu after a skipped one will likely work", next_mu_works),
    Claim("Validation: in the end it skips all remaining mu", skips_the_rest),
)
STEPS_OF_SOLVERS = (
    Claim(
        "quad's update of a bit can raise L_P and is then skipped, likely near the end",
        raises_near_the_end("MACquad"),
    ),
    Claim("cut's never does", by_construction(never_raises("MACcut"), CUTS_EXACT)),
)

SUP_NESTEDERR = GroupFigure(
    "sup-nestederr",
    "Fig. 2",
    "MAC finds better optima: KSH and eSPLH losses, supervised",
    "The paper's figure of the loss, precision and precision/recall on CIFAR.",
    supervised,
    sections,
    (
        *BETTER,
        Claim(
            "The loss is significantly and consistently lower with MACcut than with cut",
            much_lower_loss(*CUT),
        ),
        Claim("... and with MACquad than with quad", much_lower_loss(*QUAD)),
        Claim(
            "MACcut reduces the loss more than the original KSH, in all cases",
            among("KSH", lower_loss("MACcut", "KSH")),
        ),
        Claim("... and so does MACquad", among("KSH", lower_loss("MACquad", "KSH"))),
        Claim(
            "In all cases MACcut is better than cut, in the loss and in precision and recall",
            every(lower_loss(*CUT), better_retrieval(*CUT, ALWAYS)),
        ),
        Claim(
            "... and MACquad better than quad",
            every(lower_loss(*QUAD), better_retrieval(*QUAD, ALWAYS)),
        ),
        Claim(
            "Reducing the loss nearly always translates into better precision (MACcut)",
            better_precision(*CUT),
        ),
        Claim("... and recall: the precision/recall curve lies above", better_curve(*CUT)),
        Claim(
            "Reducing the loss nearly always translates into better precision (MACquad)",
            better_precision(*QUAD),
        ),
        Claim("... and recall, too", better_curve(*QUAD)),
        Claim(
            "The gain is usually larger for linear than for kernel hash functions",
            larger_gain_for_linear(*CUT),
        ),
        Claim(
            "The gain of MACquad, too, is usually larger for linear", larger_gain_for_linear(*QUAD)
        ),
        Claim(
            "The gain of MAC is often comparable to that of going from linear to kernel",
            gain_like_a_kernel(*CUT),
        ),
        Claim(
            "The gain of MACquad, too, is often comparable to that of a kernel",
            gain_like_a_kernel(*QUAD),
        ),
        Claim("cut usually outperforms quad", lower_loss("cut", "quad", USUALLY)),
        Claim(
            "cut usually outperforms quad in precision and recall, too",
            better_retrieval("cut", "quad", USUALLY),
        ),
        Claim("MACcut usually outperforms MACquad", lower_loss("MACcut", "MACquad", USUALLY)),
        Claim(
            "... in precision and recall as well", better_retrieval("MACcut", "MACquad", USUALLY)
        ),
        Claim("MACquad and MACcut end up very similar", end_up_similar),
        Claim("... even though they started very differently", start_apart),
        Claim("... in precision, too", close_precision("MACquad", "MACcut")),
        Claim(
            "With eSPLH too, MACcut outperforms cut in loss and precision, linear or kernel",
            among("eSPLH", every(lower_loss(*CUT), better_precision(*CUT))),
        ),
        Claim("... and in precision over recall", among("eSPLH", better_curve(*CUT))),
        Claim("MAC stops after 10 to 20 iterations", iterations(10, 20)),
        Claim(
            "Typically the algorithm makes most progress at the beginning",
            progress_at_the_beginning,
        ),
        *VALIDATED,
        *STEPS_OF_SOLVERS,
        Claim(
            "In most precision/recall curves, precision drops for very small and very large r",
            drops_at_both_ends,
        ),
    ),
)

UNSUP_NESTEDERR = GroupFigure(
    "unsup-nestederr",
    "Fig. 7",
    "MAC finds better optima: KSH and eSPLH losses, unsupervised",
    "The paper's figure of the loss, precision and precision/recall on SIFT1M.",
    unsupervised,
    sections,
    (
        *BETTER,
        Claim("MACcut is generally better than MACquad", lower_loss("MACcut", "MACquad", USUALLY)),
        Claim("... in precision and recall, too", better_retrieval("MACcut", "MACquad", USUALLY)),
        Claim(
            "Better optima mean better precision, as with the supervised sets (MACcut)",
            better_precision(*CUT),
            ours=True,
        ),
        Claim("... and recall", better_curve(*CUT), ours=True),
        Claim(
            "Better optima mean better precision, as with the supervised sets (MACquad)",
            better_precision(*QUAD),
            ours=True,
        ),
        Claim("... and recall, too", better_curve(*QUAD), ours=True),
        *(claim.as_ours for claim in VALIDATED),
    ),
)

UNSUP_NESTEDERR1 = GroupFigure(
    "unsup-nestederr1",
    "Fig. 8",
    "A case where quad is better than cut, unsupervised",
    "The paper's figure with fewer similar and more dissimilar points on SIFT1M.",
    far_apart,
    sections,
    (
        *(claim.as_ours for claim in BETTER),
        Claim("Here quad outperforms cut", lower_loss("quad", "cut", USUALLY)),
        Claim("... in precision and recall, too", better_retrieval("quad", "cut", USUALLY)),
        Claim("Here MACquad outperforms MACcut", lower_loss("MACquad", "MACcut", USUALLY)),
        Claim(
            "... in precision and recall as well", better_retrieval("MACquad", "MACcut", USUALLY)
        ),
        Claim("Both MAC results are very close", end_up_similar),
        Claim("... particularly in precision", close_precision("MACquad", "MACcut")),
        Claim("... and recall", close_curve("MACquad", "MACcut")),
    ),
)
