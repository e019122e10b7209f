"""Distance of the free codes from those that a hash function can produce."""

from collections.abc import Sequence
from dataclasses import replace

from auxhash.experiments.claims import Claim, among, lower_loss, of_the_lowest
from auxhash.experiments.figures.figure import GroupFigure, Section, arrows, of, over_bits
from auxhash.experiments.figures.nested import LOSSES as NAMES
from auxhash.experiments.figures.nested import nested_group
from auxhash.experiments.groups import MANY_CENTRES, Group, Record
from auxhash.experiments.kinds import (
    free_codes_far_below,
    generalises_worse,
    harder_for_linear,
    kernel_nearer_than_linear,
    nearer_the_free_codes,
)
from auxhash.experiments.scales import Data, Scale
from auxhash.experiments.svg import Plot

LOSSES = tuple(NAMES.values())
TWO = ("cut", "MACcut")
FREE = "free codes"
FLEXIBLE = "KSH, more centres"


def free_groups(scale: Scale, data: Data, bits: tuple[int, ...]) -> list[Group]:
    return [nested_group(scale, data, loss, bits, TWO, scale.pairs) for loss in NAMES]


def supervised(scale: Scale) -> list[Group]:
    """Both losses; and at the middle number of bits, kernels with many centres."""
    groups = free_groups(scale, scale.images, scale.bits)
    bits = scale.bits[len(scale.bits) // 2]
    flexible = replace(
        groups[0], name=FLEXIBLE, bits=(bits,), hash_functions=("rbf", MANY_CENTRES), seeds=1
    )
    return [*groups, flexible]


def unsupervised(scale: Scale) -> list[Group]:
    return free_groups(scale, scale.descriptors, scale.bits_descriptors)


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    plots = [_plot(group.name, of(records, group=group.name)) for group in groups]
    return [Section("Loss over the number of bits", [[plot for plot in plots if plot.series]])]


def _plot(title: str, records: Sequence[Record]) -> Plot:
    """One point per number of bits: E(Z) of the free codes, L(h) of cut and MACcut."""
    kind = next((r.hash_function for r in records), "")  # the free codes are those of any kind
    free = [
        Record(r.group, FREE, "", r.bits, r.seed, r.history[0]["free_loss"])
        for r in of(records, method="MACcut", hash_function=kind)
    ]
    most = max((r.bits for r in records), default=0)
    last = arrows(of(records, bits=most), lambda r: r.loss, most)
    series = over_bits([*free, *records], lambda r: r.loss)
    return Plot(title, "number of bits b", "loss", series, arrows=last)


CLAIMS = (
    Claim(
        "The free codes' loss is far below what a kernel hash function can produce",
        among(LOSSES, free_codes_far_below),
    ),
    Claim(
        "... and even farther below what a linear one can",
        among(LOSSES, kernel_nearer_than_linear),
    ),
    Claim(
        "Two-step codes are suboptimal: MAC finds a better hash function of the same kind",
        among(LOSSES, of_the_lowest(lower_loss("MACcut", "cut"))),
    ),
    Claim(
        "A linear hash function has a harder time than a kernel one at learning the free codes",
        among(LOSSES, harder_for_linear),
    ),
)
MORE_CENTRES = (
    Claim(
        "With many centres, a kernel function better approximates the free codes",
        among(FLEXIBLE, nearer_the_free_codes(MANY_CENTRES)),
    ),
    Claim(
        "... but would likely not generalise well",
        among(FLEXIBLE, generalises_worse(MANY_CENTRES)),
    ),
)

SUP_FREECODES = GroupFigure(
    "sup-nestederr-freecodes",
    "Fig. 3",
    "Free codes, two-step codes and MAC's codes, supervised",
    "The paper's figure of the loss of free codes, of cut and of MACcut on CIFAR.",
    supervised,
    sections,
    (*CLAIMS, *MORE_CENTRES),
    pictures=False,
)

UNSUP_FREE = GroupFigure(
    "unsup-free",
    "Fig. 9",
    "Free codes, two-step codes and MAC's codes, unsupervised",
    "The paper's figure of the loss of free codes, of cut and of MACcut on SIFT1M.",
    unsupervised,
    sections,
    [claim.as_ours for claim in CLAIMS],
    pictures=False,
)
