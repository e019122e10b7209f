"""The paper's figures, by the labels they have in its source."""

from auxhash.experiments.figures.figure import Figure
from auxhash.experiments.figures.nested import SUP_NESTEDERR, UNSUP_NESTEDERR, UNSUP_NESTEDERR1
from auxhash.names import unknown

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        SUP_NESTEDERR,
        UNSUP_NESTEDERR,
        UNSUP_NESTEDERR1,
    )
}


def get(name: str) -> Figure:
    """The figure of that name, or a ValueError that suggests the one that was meant."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    return FIGURES[name]
