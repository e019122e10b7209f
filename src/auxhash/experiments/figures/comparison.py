"""Our methods among others: precision over k and over recall."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from auxhash.experiments.claims import (
    ALWAYS,
    USUALLY,
    Claim,
    among,
    beats_all,
    better_curve,
    better_precision,
    better_retrieval,
    every,
    large_margin,
    lower_loss,
    only_ones_ahead,
    trains_faster,
)
from auxhash.experiments.entries import OURS
from auxhash.experiments.figures.figure import (
    NEAREST,
    WITHIN,
    GroupFigure,
    Section,
    of,
    precision_plot,
    recall_plot,
)
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.scales import Data, Scale

MACS = ("MACcut", "MACquad")
OTHERS = ("cut", "quad", "KSH", "BRE", "STH")  # the paper's, except ITQ
BESIDE = ("ITQ", "CCAITQ", "OneHot")
ADDED = tuple(name for name in OURS if name not in (*MACS, "cut", "quad"))
METHODS_THAT_ROUND = ("STH", "KSH")  # sec. 1: of those that round at zero, the two of this figure
WITHOUT_LABELS = ("TPCA", "ITQ", "BinaryAutoencoder", "SH", "AGH", "SPH")
PSEUDOLABELS, NO_LABELS = "pseudolabels", "no labels"


def supervised_group(scale: Scale, name: str, data: Data) -> Group:
    methods = tuple(dict.fromkeys((*MACS, *OURS, *OTHERS, *BESIDE)))
    return _group(scale, name, data, scale.bits_compared, methods)


def supervised(scale: Scale) -> list[Group]:
    return [
        supervised_group(scale, scale.images.in_place_of("CIFAR"), scale.images),
        supervised_group(scale, scale.deformed.in_place_of("Infinite MNIST"), scale.deformed),
    ]


def cosine(scale: Scale) -> list[Group]:
    name = f"{scale.images.in_place_of('CIFAR')}, cosine"
    return [supervised_group(scale, name, replace(scale.images, cosine=True))]


def unsupervised(scale: Scale) -> list[Group]:
    data = replace(scale.descriptors, n_train=scale.n_train_compared)
    return _unsupervised(scale, data)


def unsupervised_cosine(scale: Scale) -> list[Group]:
    data = replace(scale.descriptors, n_train=scale.n_train_compared, cosine=True)
    return _unsupervised(scale, data)


def _unsupervised(scale: Scale, data: Data) -> list[Group]:
    learning = tuple(dict.fromkeys((*MACS, *OURS, "cut", "quad", "KSH", "BRE", "STH")))
    bits = scale.bits_descriptors
    return [
        _group(scale, PSEUDOLABELS, data, bits, learning),
        _group(scale, NO_LABELS, data, bits, (*MACS, *WITHOUT_LABELS)),
    ]


def _group(
    scale: Scale, name: str, data: Data, bits: tuple[int, ...], methods: tuple[str, ...]
) -> Group:
    return Group(
        name, data, "ksh", scale.pairs, bits, methods, scale.mu, scale.seeds, scale.seeds_quad
    )


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    sections = []
    for group in groups:
        own = {b: of(records, group=group.name, bits=b) for b in group.bits}
        own = {b: panel for b, panel in own.items() if panel}
        nearest = [precision_plot(f"b = {b}", panel, kinds=False) for b, panel in own.items()]
        within = [recall_plot(f"b = {b}", panel, kinds=False) for b, panel in own.items()]
        sections.append(
            Section(
                group.name,
                rows=[nearest, within],
                note=f"{NEAREST} {WITHIN} Our methods and KSH have linear hash functions here.",
            )
        )
    return sections


SUPERVISED_CLAIMS = (
    Claim(
        "MACcut and MACquad generally outperform all other methods, in nearly all situations",
        beats_all(MACS, (*OTHERS, "ITQ")),
    ),
    Claim(
        "... by precision over recall as well", beats_all(MACS, (*OTHERS, "ITQ"), by_recall=True)
    ),
    Claim("MACcut outperforms cut", better_precision("MACcut", "cut")),
    Claim("... in precision over recall, too", better_curve("MACcut", "cut")),
    Claim("MACquad outperforms quad", better_precision("MACquad", "quad")),
    Claim("... by precision over recall, too", better_curve("MACquad", "quad")),
    Claim("MACcut beats MACquad most of the time", better_retrieval("MACcut", "MACquad", USUALLY)),
    Claim(
        "MACcut and MACquad outperform the others often by a large margin",
        large_margin(MACS, (*OTHERS, "ITQ")),
    ),
    Claim(
        "With sufficiently many bits, MACcut and MACquad beat ITQ, and are the only ones to",
        only_ones_ahead(MACS, OTHERS, "ITQ"),
    ),
    Claim(
        "The same against ITQ in its supervised form, with CCA for PCA",
        only_ones_ahead(MACS, OTHERS, "CCAITQ"),
        ours=True,
    ),
    Claim(
        "MACcut and MACquad beat the predicted class, as a one-hot code",
        beats_all(MACS, ("OneHot",)),
        ours=True,
    ),
    Claim(
        f"What we add ({', '.join(ADDED)}) beats MACcut and MACquad",
        beats_all(ADDED, MACS),
        ours=True,
    ),
    *(
        Claim(
            f"The loss of {mac} is consistently lower than with rounding (STH, KSH)",
            every(*(lower_loss(mac, other) for other in METHODS_THAT_ROUND)),
        )
        for mac in MACS
    ),
    Claim(
        "Relaxing and rounding (STH, KSH) is worse than optimising the codes (cut, quad)",
        every(*(better_precision(*both) for both in product(("cut", "quad"), METHODS_THAT_ROUND))),
    ),
)

UNSUPERVISED_CLAIMS = (
    Claim(
        "With pseudolabels, MACcut and MACquad outperform the other methods in nearly all cases",
        among(PSEUDOLABELS, beats_all(MACS, OTHERS)),
    ),
    Claim(
        "... by precision over recall as well",
        among(PSEUDOLABELS, beats_all(MACS, OTHERS, by_recall=True)),
        ours=True,
    ),
    Claim(
        "They outperform the purely unsupervised methods in nearly all cases",
        among(NO_LABELS, beats_all(MACS, WITHOUT_LABELS)),
        ours=True,
    ),
    Claim(
        "With sufficiently many bits they beat ITQ",
        among(NO_LABELS, beats_all(MACS, ("ITQ",), ALWAYS, most_bits=True)),
        ours=True,
    ),
    Claim(
        "MACcut outperforms cut",
        among(PSEUDOLABELS, better_retrieval("MACcut", "cut")),
        ours=True,
    ),
    Claim(
        "MACquad outperforms quad",
        among(PSEUDOLABELS, better_retrieval("MACquad", "quad")),
        ours=True,
    ),
    Claim(
        "The binary autoencoder, whose codes decouple over the points, trains faster than MACcut",
        among(NO_LABELS, trains_faster("BinaryAutoencoder", "MACcut")),
    ),
)

SUP_COMPARISON = GroupFigure(
    "sup-comparison",
    "Fig. 5",
    "Comparison with binary hashing methods, supervised",
    "The paper's comparison on CIFAR and Infinite MNIST.",
    supervised,
    sections,
    SUPERVISED_CLAIMS,
)

SUP_COSINE = GroupFigure(
    "sup-cosine",
    "Fig. 6",
    "The same comparison with the cosine similarity",
    "The paper's comparison on CIFAR, all points centred and normalised.",
    cosine,
    sections,
    [claim.as_ours for claim in SUPERVISED_CLAIMS],  # the paper shows this figure without a word
)

UNSUP_COMPARISON = GroupFigure(
    "unsup-comparison",
    "Fig. 10",
    "Comparison with binary hashing methods, unsupervised",
    "The paper's comparison on SIFT1M, with pseudolabels and without any labels.",
    unsupervised,
    sections,
    UNSUPERVISED_CLAIMS,
)

UNSUP_COSINE = GroupFigure(
    "unsup-cosine",
    "Fig. 11",
    "The same comparison, unsupervised, with the cosine similarity",
    "The paper's comparison on SIFT1M, all points centred and normalised.",
    unsupervised_cosine,
    sections,
    [claim.as_ours for claim in UNSUPERVISED_CLAIMS],  # as for sup-cosine
)
