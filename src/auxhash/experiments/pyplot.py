"""Plots as a matplotlib figure, with the looks that they have on pages."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from auxhash.compute.extras import install
from auxhash.experiments.figures.styles import COLOURS
from auxhash.experiments.svg import Plot, across_ticks, axes, short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = {"circle": "o", "square": "s", "diamond": "D", "up": "^", "down": "v", "cross": "x"}
MAX_COLUMNS = 3
PLOT_INCHES = 4.5, 3.6  # of one plot


def figure_of(plots: Sequence[Plot], title: str) -> "Figure":
    """The plots side by side, with one legend. Raises ImportError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plot needs matplotlib: {install('plot')}") from error
    columns = max(1, min(len(plots), MAX_COLUMNS))
    rows = max(1, math.ceil(len(plots) / columns))
    inches = PLOT_INCHES[0] * columns + 2.2, PLOT_INCHES[1] * rows + 0.4
    figure = Figure(figsize=inches, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for plot, panel in zip(plots, panels, strict=False):
        _draw(plot, panel)
    for empty in panels[len(plots) :]:
        empty.remove()
    keyed: dict[str, Artist] = {}
    for panel in figure.axes:
        handles, labels = panel.get_legend_handles_labels()
        keyed |= dict(zip(labels, handles, strict=True))
    figure.legend(keyed.values(), keyed, loc="outside right upper", frameon=False)
    figure.suptitle(title)
    return figure


def _draw(plot: Plot, panel: "Axes") -> None:
    for series in plot.series:
        look = series.style
        colour = COLOURS[look.colour][0]
        panel.plot(
            series.x,
            series.y,
            color=colour,
            marker=MARKERS.get(look.marker.removesuffix("-open"), ""),
            markerfacecolor="none" if look.marker.endswith("-open") else colour,
            linestyle="--" if look.dashes else "-",
            label=series.label if series.keyed else None,
        )
        if len(series.low):
            panel.fill_between(series.x, series.low, series.high, color=colour, alpha=0.14)
    panel.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    if plot.x_log:
        panel.set_xscale("log")
    at = across_ticks(plot, axes(plot)[0])
    panel.set_xticks(at, [short(value) for value in at])
    panel.minorticks_off()
    panel.grid(alpha=0.3)
