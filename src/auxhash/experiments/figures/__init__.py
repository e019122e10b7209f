"""The paper's figures, by the labels they have in its source."""

from auxhash.compute.checks import one_of
from auxhash.experiments.figures.comparison import (
    SUP_COMPARISON,
    SUP_COSINE,
    UNSUP_COMPARISON,
    UNSUP_COSINE,
)
from auxhash.experiments.figures.entropy import UNSUP_ENTROPY
from auxhash.experiments.figures.figure import Figure
from auxhash.experiments.figures.free import SUP_FREECODES, UNSUP_FREE
from auxhash.experiments.figures.maps import MAPS
from auxhash.experiments.figures.nested import SUP_NESTEDERR, UNSUP_NESTEDERR, UNSUP_NESTEDERR1
from auxhash.experiments.figures.runtime import RUN_TIME
from auxhash.experiments.figures.sketch import FREE_CODES

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        SUP_NESTEDERR,
        SUP_FREECODES,
        FREE_CODES,
        RUN_TIME,
        SUP_COMPARISON,
        SUP_COSINE,
        UNSUP_NESTEDERR,
        UNSUP_NESTEDERR1,
        UNSUP_FREE,
        UNSUP_COMPARISON,
        UNSUP_COSINE,
        UNSUP_ENTROPY,
    )
}


EVERY: dict[str, Figure] = FIGURES | {MAPS.name: MAPS}  # with what the paper only remarks on


def get(name: str) -> Figure:
    """The figure of that name, or a ValueError that suggests the one that was meant."""
    return EVERY[one_of("figure", name, EVERY)]
