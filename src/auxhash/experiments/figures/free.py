"""How far the free codes are from what a hash function can produce."""

from collections.abc import Sequence

from auxhash.experiments.claims import (
    Claim,
    free_codes_far_below,
    kernel_nearer_than_linear,
    lower_loss,
)
from auxhash.experiments.figures.figure import GroupFigure, Section, arrows, of, over_bits
from auxhash.experiments.figures.nested import nested_group
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.scales import Data, Scale
from auxhash.experiments.svg import Plot

TWO = ("cut", "MACcut")
FREE = "free codes"


def free_groups(scale: Scale, data: Data, bits: tuple[int, ...]) -> list[Group]:
    losses = ("ksh", "esplh")
    return [nested_group(scale, data, loss, bits, TWO, scale.pairs) for loss in losses]


def supervised(scale: Scale) -> list[Group]:
    return free_groups(scale, scale.images, scale.bits)


def unsupervised(scale: Scale) -> list[Group]:
    return free_groups(scale, scale.descriptors, scale.bits_descriptors)


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    plots = [_plot(group.name, of(records, group=group.name)) for group in groups]
    return [Section("Loss over the number of bits", [[plot for plot in plots if plot.series]])]


def _plot(title: str, records: Sequence[Record]) -> Plot:
    """One point per number of bits: E(Z) of the free codes, L(h) of cut and MACcut."""
    free = [
        Record(r.group, FREE, "", r.bits, r.seed, r.history[0]["free_loss"])
        for r in of(records, method="MACcut", hash_function="linear")
    ]
    most = max((r.bits for r in records), default=0)
    last = arrows(of(records, bits=most), lambda r: r.loss, most)
    series = over_bits([*free, *records], lambda r: r.loss)
    return Plot(title, "number of bits b", "loss", series, arrows=last)


CLAIMS = (
    Claim(
        "The free codes' loss is far below what a kernel hash function can produce",
        free_codes_far_below,
    ),
    Claim("... and even farther below what a linear one can", kernel_nearer_than_linear),
    Claim(
        "Two-step codes are suboptimal: MAC finds a better hash function of the same kind",
        lower_loss("MACcut", "cut"),
    ),
)

SUP_FREECODES = GroupFigure(
    "sup-nestederr-freecodes",
    "Free codes, two-step codes and MAC's codes, supervised",
    "The paper's figure of the loss of free codes, of cut and of MACcut on CIFAR.",
    supervised,
    sections,
    CLAIMS,
    pictures=False,
)

UNSUP_FREE = GroupFigure(
    "unsup-free",
    "Free codes, two-step codes and MAC's codes, unsupervised",
    "The paper's figure of the loss of free codes, of cut and of MACcut on SIFT1M.",
    unsupervised,
    sections,
    CLAIMS,
    pictures=False,
)
