import base64
import io
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from auxhash.experiments.cells import Cells
from auxhash.experiments.claims import Verdict
from auxhash.experiments.entries import BY_NAME, METHODS, WITH_LABELS
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import FigureContent, Section, Table, arrows, average
from auxhash.experiments.figures.nested import SUP_NESTEDERR
from auxhash.experiments.figures.styles import COLOURS, STYLES, looks, style
from auxhash.experiments.gallery import N_RETRIEVED, Gallery, Strip, differing, gallery
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.page import page
from auxhash.experiments.scales import PAPER, Data
from auxhash.experiments.svg import WIDER, WIDTH, Plot, Series, Style
from auxhash.files.images import read_image

LOOK = Style("blue", "circle")


def shown(**parts):
    content = FigureContent(
        **{"verdicts": [], "sections": [], "protocol": [], "numbers": [], **parts}
    )
    figure = SUP_NESTEDERR
    text = page(figure.name, figure.title, figure.about, content, "auxhash <x>")
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n")), text


def test_verdicts_are_told_by_word_and_not_by_colour_alone():
    verdicts = [
        Verdict("a < b", False, True, "1 of 1."),
        Verdict("b & c", True, False, "0 of 1."),
        Verdict("d", False, None, ""),
        Verdict("e", False, False, "0 of 1.", judged=False),
        Verdict("f", False, None, "", judged=False),
    ]
    root, text = shown(verdicts=verdicts)
    rows = root.findall(".//table[@class='verdicts']/tbody/tr")
    assert [row.get("class") for row in rows] == ["held", "failed", *["untested"] * 3]
    words = ["".join(row.find("td").itertext()).split(maxsplit=1)[1] for row in rows]
    assert words == ["held", "not held", "not tested", "not judged", "not tested"]
    assert "asked by us" in "".join(rows[1].itertext())
    assert "auxhash &lt;x&gt;" in text


def test_the_table_behind_a_plot_has_its_values():
    same = Plot(
        "b = 8",
        "k",
        "precision",
        [Series("a", LOOK, [10, 20], [0.5, 0.25], [0.4, 0.2], [0.6, 0.3])],
    )
    root, _ = shown(sections=[Section("s", [[same]], note="n")])
    cells = [cell.text for cell in root.findall(".//details//tbody/tr/td")]
    assert cells == ["a", "0.5 (0.4 to 0.6)", "0.25 (0.2 to 0.3)"]
    mixed = Plot("t", "x", "y", [Series("a", LOOK, [1], [2]), Series("b", LOOK, [3, 4], [5, 6])])
    root, _ = shown(sections=[Section("s", [[mixed]], Table(["one"], [["two"]]))])
    assert "3, 5; 4, 6" in [cell.text for cell in root.findall(".//details//td")]
    assert len(root.findall(".//ul[@class='legend']/li")) == 2


def test_numbers_have_no_exponents():
    values = Series("a", LOOK, [10, 20], [689_704.4, math.nan], [1e6, 2], [1.5e6, 3])
    rows = [["cut", "689,704"], ["ITQ", "-"]]
    table = Table(["method", "L(h)"], rows)
    root, text = shown(sections=[Section("s", [[Plot("p", "k", "L(h)", [values])]], table)])
    cells = [cell.text for cell in root.findall(".//details//td")]
    assert cells == ["a", "689,704 (1,000,000 to 1,500,000)", "- (2 to 3)"]
    right = [cell.text for cell in root.iter() if cell.get("class") == "number"]
    assert right[:3] == ["L(h)", "689,704", "-"]
    assert "e+0" not in text


def plots(root):
    [grid] = root.findall(".//div[@class='plots']")
    return grid.get("style"), {svg.get("viewBox").split()[2] for svg in grid.iter("svg")}


def test_rows_of_plots_have_one_legend_and_fill_the_page():
    one = Plot("p", "x", "y", [Series("a", LOOK, [1, 2], [3, 4])])
    root, _ = shown(sections=[Section("s", [[one, one, one], [one, one, one]])])
    assert len(root.findall(".//ul[@class='legend']/li")) == 1
    assert plots(root) == ("--columns:3", {str(WIDTH)})
    root, _ = shown(sections=[Section("s", [[one], [one]])])
    assert plots(root) == ("--columns:2", {str(WIDER[2])})  # in one row
    root, _ = shown(sections=[Section("s", [[one]])])
    assert plots(root) == ("--columns:1", {str(WIDER[1])})
    assert root.find(".//div[@class='drawn alone']/ul[@class='legend']") is not None


@pytest.mark.parametrize("name", FIGURES)
def test_methods_of_a_panel_have_colours_of_their_own(name):
    for group in getattr(FIGURES[name], "groups", lambda _: [])(PAPER):
        colours = [style(method).colour for method in group.methods]
        assert len(set(colours)) == len(colours), group.name


def test_looks_can_be_told_apart():
    assert len(set(STYLES.values())) == len(STYLES)
    assert {*METHODS, *BY_NAME} <= set(STYLES)
    assert {"MACrefined, network", "MACrefined, kernels"} <= set(WITH_LABELS) <= set(STYLES)
    for theme in zip(*COLOURS.values(), strict=True):
        places = np.array([oklab(colour) for colour in theme])
        apart = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(len(places))
        assert apart.min() > 0.1


def test_no_two_methods_of_a_page_share_a_colour():
    every = ["MACrefined", *METHODS, "a method", "another method", "MACrefined"]
    shown = looks(every)
    assert len({look.colour for look in shown.values()}) == len(shown) == len(METHODS) + 2
    assert shown["MACcut"] == style("MACcut")  # as on any other page
    assert shown["a method"].marker != shown["another method"].marker
    two = looks(["OneHot", "LSH"])  # both are grey where they are alone
    assert two["OneHot"] == style("OneHot") != style("LSH")
    assert two["LSH"].colour != two["OneHot"].colour
    assert len(looks(map(str, range(100)))) == 100  # more than there are colours


def oklab(colour):
    """A colour as Ottosson's Oklab has it: equal distances look equally far apart."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]
    axes = [
        [0.21045, 0.79362, -0.00407],
        [1.97800, -2.42859, 0.45059],
        [0.02590, 0.78277, -0.80868],
    ]
    return np.array(axes) @ np.cbrt(np.array(cones) @ rgb)


def test_the_documentation_has_the_same_colours():
    text = (Path(__file__).parents[2] / "docs" / "_static" / "plots.css").read_text("utf-8")
    for name, (light, dark) in COLOURS.items():
        assert f"--{name}: light-dark({light}, {dark});" in text


def test_both_themes_know_every_colour():
    _, text = shown()
    light, dark = re.findall(r":root\{(--vermillion[^}]*)\}", text)
    for part in (light, dark):
        assert all(f"--{name}:" in part for name in COLOURS)
    assert all(style(method).colour in COLOURS for method in STYLES)
    assert style("a method of tomorrow").colour in COLOURS


def test_pictures_are_inside_the_page():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 12)
    strip = Strip("MACcut", pixels, [True, False, True])
    root, _ = shown(galleries=[Gallery("g", [(strip, [strip])]), Gallery("h", why_none="none")])
    source = root.find(".//td/div/img").get("src")
    data = base64.b64decode(source.removeprefix("data:image/png;base64,"))
    result = read_image(io.BytesIO(data))
    np.testing.assert_array_equal(result[:, :, 0], pixels)
    assert [mark.get("class") for mark in root.findall(".//td//i")] == ["right", "wrong", "right"]
    assert "2 of 3" in "".join(root.itertext())


def test_a_gallery_shows_the_nearest_of_the_base(tmp_path):
    data = Data("digits", 60, 200, 20)
    group = Group("KSH", data, "ksh", (5, 25), (6,), ("ITQ", "KSH"), 0.1, 1, 1)
    cells = Cells(tmp_path)
    assert gallery(group, cells) is None
    for training in group.trainings()[:1]:
        cells.write(training.configuration(), *training.run())
    result = gallery(group, cells)
    loaded = data.load()
    codes = group.codes("ITQ", 6, cells)
    for picture, strips in result.queries:
        assert [strip.label for strip in strips] == ["ITQ"]
        assert len(strips[0].right) == N_RETRIEVED
        scaled = loaded.query.images.astype(int) * 255 // 16
        (query,) = np.flatnonzero((scaled == picture.pixels).all(axis=(1, 2)))
        apart = np.bitwise_count(codes["base"] ^ codes["query"][query]).sum(axis=1)
        nearest = np.argsort(apart, kind="stable")[:N_RETRIEVED]
        assert strips[0].right == (loaded.base.y[nearest] == loaded.query.y[query]).tolist()
    unlabelled = Data("digits", 60, 200, 20, labelled=False, n_true=5)
    without = Group("KSH", unlabelled, "ksh", (5, 25), (6,), ("ITQ",), 0.1, 1, 1)
    for training in without.trainings():
        cells.write(training.configuration(), *training.run())
    assert "descriptors" in gallery(without, cells).why_none


def test_queries_are_shown_where_methods_differ():
    right = np.array([[10, 10, 10], [0, 10, 10], [10, 0, 0], [0, 5, 10], [9, 10, 10], [10, 2, 2]])
    assert differing(right) == [1, 2, 3, 5]
    labels = np.array(["a", "b", "b", "b", "c", "a"])
    assert differing(right, labels) == [1, 5, 4]  # one of each class
    assert differing(np.full((3, 1), 10)) == [0, 1, 2]  # the first, where all are equal


def test_seeds_are_averaged_place_by_place():
    curve = average("a", LOOK, [[(0, 4.0), (1, 2.0), (2, 1.0)], [(0, 2.0), (1, 2.0)]])
    assert curve.x == [0, 1, 2]
    assert curve.y == [3.0, 2.0, 1.5]  # the one that stopped stays at 2
    assert (curve.low, curve.high) == ([2.0, 2.0, 1.0], [4.0, 2.0, 2.0])
    assert average("a", LOOK, [[(0, 1.0)]]).low == ()


def test_arrows_go_from_the_two_step_method_to_mac():
    records = [
        Record("g", method, kind, 8, 0, loss)
        for method, kind, loss in (
            ("cut", "linear", 3.0),
            ("MACcut", "linear", 2.0),
            ("cut", "rbf", 1.0),
            ("KSH", "", 5.0),
        )
    ]
    (arrow,) = arrows(records, lambda r: r.loss, 10.0)
    assert (arrow.start, arrow.end) == (3.0, 2.0)
    assert arrow.x == pytest.approx(10.0)
