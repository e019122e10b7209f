import math
import re
from xml.etree import ElementTree

import pytest

from auxhash.experiments.svg import (
    LEFT,
    MAX_MARKS,
    RIGHT,
    WIDTH,
    Arrow,
    Axis,
    Plot,
    Series,
    Style,
    axes,
    draw,
    short,
    ticks,
)

LOOK = Style("blue", "circle")


def plotted(plot):
    return ElementTree.fromstring(draw(plot))


def places(plot):
    """Centres of the markers, in pixels."""
    return [(float(c.get("cx")), float(c.get("cy"))) for c in plotted(plot).iter("circle")]


def test_points_are_where_their_values_say():
    plot = Plot("t", "x", "y", [Series("a", LOOK, [0, 1, 2], [10, 30, 20])])
    across, up = axes(plot)
    assert places(plot) == [
        pytest.approx((across.place(x), up.place(y)), abs=0.06)
        for x, y in ((0, 10), (1, 30), (2, 20))
    ]
    x = [at for at, _ in places(plot)]
    y = [at for _, at in places(plot)]
    assert x[1] == pytest.approx((x[0] + x[2]) / 2, abs=0.1)
    assert y[2] == pytest.approx((y[0] + y[1]) / 2, abs=0.1)
    assert y[1] < y[2] < y[0]  # larger values are higher up


def test_the_line_goes_through_the_points():
    plot = Plot("t", "x", "y", [Series("a", LOOK, [0, 1, 2], [10, 30, 20])])
    (line,) = [g.find("path") for g in plotted(plot).iter("g")]
    numbers = [float(n) for n in re.findall(r"[\d.]+", line.get("d"))]
    assert list(zip(numbers[::2], numbers[1::2], strict=True)) == places(plot)


def test_a_logarithmic_axis():
    axis = Axis(1, 100, 0, 200, log=True)
    assert [axis.place(v) for v in (1, 10, 100)] == pytest.approx([0, 100, 200])
    plot = Plot("t", "k", "y", [Series("a", LOOK, [10, 100, 1000], [1, 2, 3])], x_log=True)
    x = [at for at, _ in places(plot)]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)


def test_an_arrow_points_from_worse_to_better():
    plot = Plot(
        "t", "x", "y", [Series("a", LOOK, [0, 1], [0, 10])], arrows=[Arrow(1, 2, 8, "blue")]
    )
    across, up = axes(plot)
    (arrow,) = [g for g in plotted(plot).iter("g") if g.get("class") == "arrow"]
    shaft, head = (part.get("d") for part in arrow.findall("path"))
    assert shaft.startswith(f"M{across.place(1):.1f} {up.place(2):.1f}V")
    assert head.startswith(f"M{across.place(1):.1f} {up.place(8):.1f}l")
    short_one = Plot("t", "x", "y", plot.series, arrows=[Arrow(1, 2, 2.01, "blue")])
    assert "arrow" not in draw(short_one)


def test_the_spread_is_a_band_around_the_line():
    plot = Plot("t", "x", "y", [Series("a", LOOK, [0, 1], [5, 5], [4, 3], [6, 9])])
    _, up = axes(plot)
    (band,) = [p for p in plotted(plot).iter("path") if p.get("class") == "band"]
    heights = [float(n) for n in re.findall(r"[\d.]+", band.get("d"))][1::2]
    assert heights == pytest.approx([up.place(v) for v in (6, 9, 3, 4)], abs=0.06)


def test_what_is_not_a_number_is_left_out():
    plot = Plot("t", "x", "y", [Series("a", LOOK, [0, 1, 2], [1, math.nan, 3])])
    assert len(places(plot)) == 2
    draw(Plot("empty", "x", "y", []))


def test_dashed_lines_are_above_solid_ones():
    dashed, solid = (
        Series("d", Style("blue", dashes="5 3"), [0, 1], [1, 2]),
        Series("s", LOOK, [0], [1]),
    )
    drawn = plotted(Plot("t", "x", "y", [dashed, solid, dashed]))
    assert [group.find("title").text for group in drawn.iter("g")] == ["s", "d", "d"]


def test_a_wider_plot_is_wide():
    plot = Plot("t", "x", "y", [Series("a", LOOK, [0, 1], [1, 2])])
    wide = ElementTree.fromstring(draw(plot, 500))
    assert wide.get("viewBox").split()[2] == "500"
    [left, right] = [float(circle.get("cx")) for circle in wide.iter("circle")]
    assert right - left == pytest.approx(places(plot)[1][0] - left + 500 - WIDTH)


@pytest.mark.parametrize("log", [False, True])
def test_a_single_place_is_in_the_middle(log):
    plot = Plot("t", "x", "y", [Series("a", LOOK, [6], [y]) for y in (1, 2)], x_log=log)
    middle = (LEFT + WIDTH - RIGHT) / 2
    assert [x for x, _ in places(plot)] == [middle, middle]
    messages = [text.text for text in plotted(plot).iter("text") if text.get("x") == str(middle)]
    assert messages == ["6", "x", "t"]


def test_a_long_line_has_few_markers_and_a_cloud_all():
    x = list(range(100))
    assert 5 < len(places(Plot("t", "x", "y", [Series("a", LOOK, x, x)]))) <= MAX_MARKS
    cloud = Style("blue", "circle", joined=False)
    assert len(places(Plot("t", "x", "y", [Series("a", cloud, x, x)]))) == 100


def test_text_is_escaped_and_markers_differ():
    looks = [Style("blue", shape) for shape in ("square", "diamond-open", "up", "down", "cross")]
    series = [Series(f"<{i}> & co", look, [0, 1], [i, i]) for i, look in enumerate(looks)]
    text = draw(Plot("a < b", "x", "y", series))
    ElementTree.fromstring(text)
    assert "&lt;0&gt; &amp; co" in text
    marks = re.findall(r'<path d="M[^"]*"/>(<path[^>]*>)', text)
    assert len(set(marks)) == 5


def test_ticks():
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(5.62e6, 6.1e6) == pytest.approx([5.7e6, 5.8e6, 5.9e6, 6.0e6, 6.1e6])
    assert ticks(10, 100, log=True) == [10, 20, 50, 100]
    assert ticks(10, 20_000, log=True) == [10, 100, 1000, 10_000]
    assert ticks(3, 3) == [3]
    assert [short(v) for v in (0.25, 12, 5.8e6, 20_000)] == ["0.25", "12", "5.8M", "20k"]


def test_few_values_of_x_are_the_ticks():
    def ticked(*x):
        text = draw(Plot("", "bits", "", [Series("a", Style("blue"), x, [0.5] * len(x))], True))
        return re.findall(r'text-anchor="middle">([\d.]+k?)<', text)

    assert ticked(8, 16, 32) == ["8", "16", "32"]
    assert ticked(100, 101, 800) == ["101", "800"]  # two of them would overlap
    assert ticked(4, 8, 12, 16, 24, 32, 48, 64)[-5:] == ["16", "24", "32", "48", "64"]
    assert ticked(0.25, 0.5, 0.8) == ["0.5"]  # round numbers of what is not whole
    assert "3" not in ticked(*range(1, 12))
