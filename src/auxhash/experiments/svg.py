"""Line plots as SVG that takes its colours from the page, so that one plot fits light and dark.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; the page defines
them as CSS variables, next to the rules of `look`. matplotlib writes fixed colours, and 29 KB in
0.35 s for six lines of 50 points (and 2 s to import), where this is 5 KB in 0.01 s.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files

WIDTH, HEIGHT = 320, 250
WIDER = {1: 560, 2: 400}  # of plots that are alone in their row, or two
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 24, 36  # margins
ARROW_HEAD = 5  # pixels of an arrow's head
MARKER_RADIUS = 3.2
MAX_TICKS = 6  # of an axis
MAX_OWN_TICKS, MIN_APART = 10, 18  # values of x that are ticks, and pixels between them
MAX_MARKS = 14  # along a line; more would hide it


@dataclass(frozen=True)
class Style:
    """Look of a method in every plot."""

    colour: str  # name of a CSS variable of the page
    marker: str = ""
    dashes: str = ""
    joined: bool = True  # by a line; else only markers


@dataclass(frozen=True)
class Series:
    """Points (x, y) and, if several seeds were run, the lowest and highest y at each."""

    label: str
    style: Style
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    keyed: bool = True  # whether the legend has it


@dataclass(frozen=True)
class Arrow:
    """An arrow from one value to a better one, at x."""

    x: float
    start: float
    end: float
    colour: str


@dataclass(frozen=True)
class Plot:
    """One panel; its table is made of the same series."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    arrows: Sequence[Arrow] = ()
    note: str = ""
    listed: bool = True  # whether a page lists its numbers


@dataclass(frozen=True)
class Axis:
    """Values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        low, high = (math.log(v) if self.log else v for v in (self.low, self.high))
        at = (math.log(value) if self.log else value) - low
        return self.start + (self.end - self.start) * at / ((high - low) or 1.0)


def draw(plot: Plot, width: int = WIDTH) -> str:
    """The plot as an <svg> element; solid lines below dashed ones, which leave them visible."""
    across, up = axes(plot, width)
    parts = [_frame(plot, across, up)]
    parts += [_band(series, across, up) for series in plot.series if len(series.low)]
    lines = sorted(plot.series, key=lambda series: bool(series.style.dashes))
    parts += [_line(series, across, up) for series in lines]
    parts += [_arrow(arrow, across, up) for arrow in plot.arrows]
    return (
        f'<svg class="plot" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="{escape(plot.title)}">{"".join(parts)}</svg>'
    )


def look() -> str:
    """The CSS that plots and legends need."""
    return files("auxhash.experiments").joinpath("svg.css").read_text("utf-8")


def key(style: Style) -> str:
    """A short piece of the line, for the legend, where a dot is as large as other markers."""
    style = replace(style, marker="circle") if style.marker == "dot" else style
    series = Series("", style, [0, 1, 2], [0, 0, 0])
    line = _line(series, Axis(0, 2, 2, 34), Axis(0, 1, 7, 0), only=1)
    return f'<svg class="key" viewBox="0 0 36 14" aria-hidden="true">{line}</svg>'


def axes(plot: Plot, width: int = WIDTH) -> tuple[Axis, Axis]:
    """Axes that hold every point of the plot, its spread and its arrows."""
    x = [v for series in plot.series for v in series.x]
    y = [v for series in plot.series for v in (*series.y, *series.low, *series.high)]
    y = [v for v in y if math.isfinite(v)] or [0.0, 1.0]
    room = 0.06 * ((max(y) - min(y)) or abs(max(y)) or 1.0)
    bottom = min(y) - room if min(y) < 0 or min(y) > room else 0.0
    if any(not series.style.joined for series in plot.series):  # markers keep off the edge
        side = 0.04 * ((max(x) - min(x)) or 1.0)
        x = [min(x) - side, max(x) + side]
    if x and min(x) == max(x):  # one place only: in the middle, not on the axis
        x = [x[0] / 2, x[0] * 2] if plot.x_log else [x[0] - 0.5, x[0] + 0.5]
    across = Axis(min(x, default=1), max(x, default=2), LEFT, width - RIGHT, plot.x_log)
    return across, Axis(bottom, max(y) + room, HEIGHT - BOTTOM, TOP)


def ticks(low: float, high: float, log: bool = False) -> list[float]:
    """Round numbers between low and high, MAX_TICKS at most."""
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        every = [m * 10.0**p for p in powers for m in (1, 2, 5) if low <= m * 10.0**p <= high]
        few = [v for v in every if math.log10(v).is_integer()]
        return every if len(every) <= MAX_TICKS else few
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / MAX_TICKS))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= MAX_TICKS)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number as an axis shows it: 0.35, 12, 5.8M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


def _frame(plot: Plot, across: Axis, up: Axis) -> str:
    bottom, right = HEIGHT - BOTTOM, round(across.end)
    parts = []
    for value in ticks(up.low, up.high):
        y = up.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(_text(LEFT - 5, y + 3.5, short(value), "end"))
    for value in across_ticks(plot, across):
        x = across.place(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(_text(x, bottom + 13, short(value), "middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    parts.append(_text((LEFT + right) / 2, HEIGHT - 5, plot.x_label, "middle"))
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.y_label)}</text>"
    )
    parts.append(_text((LEFT + right) / 2, 14, plot.title, "middle", "title"))
    return "".join(parts)


def across_ticks(plot: Plot, across: Axis) -> list[float]:
    """The values of x themselves where they are few whole numbers, else round numbers."""
    places = sorted({x for series in plot.series for x in series.x})
    if not 1 <= len(places) <= MAX_OWN_TICKS or any(x != round(x) for x in places):
        return ticks(across.low, across.high, across.log)
    kept = places[-1:]  # the largest, and others as far as there is room for their numbers
    for x in places[-2::-1]:
        if across.place(kept[0]) - across.place(x) >= MIN_APART:
            kept.insert(0, x)
    return kept


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(series: Series, across: Axis, up: Axis, only: int | None = None) -> str:
    places = _places(series.x, series.y, across, up)
    dashes = f' stroke-dasharray="{series.style.dashes}"' if series.style.dashes else ""
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    apart = math.ceil(len(places) / MAX_MARKS) if series.style.joined else 1
    marked = places[::apart] if only is None else places[only : only + 1]
    marks = "".join(_marker(series.style.marker, x, y) for x, y in marked)
    name = f"<title>{escape(series.label)}</title>" if series.label else ""
    line = f'<path d="{d}"{dashes}/>' if series.style.joined and places else ""
    return f'<g class="line" style="color:var(--{series.style.colour})">{name}{line}{marks}</g>'


def _band(series: Series, across: Axis, up: Axis) -> str:
    edge = _places(series.x, series.high, across, up)
    edge += _places(series.x, series.low, across, up)[::-1]
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in edge) + "Z"
    return f'<path class="band" style="color:var(--{series.style.colour})" d="{d}"/>'


def _places(
    x: Iterable[float], y: Iterable[float], across: Axis, up: Axis
) -> list[tuple[float, float]]:
    pairs = zip(x, y, strict=True)
    return [(across.place(a), up.place(b)) for a, b in pairs if math.isfinite(b)]


def _marker(shape: str, x: float, y: float) -> str:
    """An SVG marker; all shapes have about the same area; open ones end in "-open"."""
    r, kind = MARKER_RADIUS, "open" if shape.endswith("-open") else "solid"
    corners = {
        "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
        "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
        "up": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
        "down": ((0, 1.2), (1.15, -0.9), (-1.15, -0.9)),
    }
    name = shape.removesuffix("-open")
    if not name:
        return ""
    if name == "circle":
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
    if name == "dot":
        return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="1.2"/>'
    if name == "cross":
        return f'<path d="M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}"/>'
    d = "L".join(f"{x + r * a:.1f} {y + r * b:.1f}" for a, b in corners[name])
    return f'<path class="{kind}" d="M{d}Z"/>'


def _arrow(arrow: Arrow, across: Axis, up: Axis) -> str:
    x, start, end = across.place(arrow.x), up.place(arrow.start), up.place(arrow.end)
    if abs(end - start) < ARROW_HEAD:  # only its head would be left
        return ""
    back = ARROW_HEAD if end < start else -ARROW_HEAD
    return (
        f'<g class="arrow" style="color:var(--{arrow.colour})">'
        f'<path d="M{x:.1f} {start:.1f}V{end + back:.1f}"/>'
        f'<path class="solid" d="M{x:.1f} {end:.1f}l{-ARROW_HEAD / 2} {back}h{ARROW_HEAD}Z"/></g>'
    )
