import base64
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from auxhash.datasets.files.png import read_png
from auxhash.experiments.cells import Cells
from auxhash.experiments.claims import Verdict
from auxhash.experiments.figures.figure import FigureContent, Section, Table, arrows, average
from auxhash.experiments.figures.nested import SUP_NESTEDERR
from auxhash.experiments.figures.styles import COLOURS, STYLES, style
from auxhash.experiments.gallery import FIRST, Gallery, Strip, gallery
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.page import page
from auxhash.experiments.scales import Data
from auxhash.experiments.svg import Plot, Series, Style

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
    ]
    root, text = shown(verdicts=verdicts)
    rows = root.findall(".//table[@class='verdicts']/tbody/tr")
    assert [row.get("class") for row in rows] == ["held", "failed", "untested"]
    words = ["".join(row.find("td").itertext()).split(maxsplit=1)[1] for row in rows]
    assert words == ["held", "not held", "not tested"]
    assert "asked by us" in "".join(rows[1].itertext())
    assert "auxhash &lt;x&gt;" in text


def test_the_table_behind_a_plot_has_its_values():
    same = Plot(
        "b = 8",
        "k",
        "precision",
        [Series("a", LOOK, [10, 20], [0.5, 0.25], [0.4, 0.2], [0.6, 0.3])],
    )
    root, _ = shown(sections=[Section("s", [same], note="n")])
    cells = [cell.text for cell in root.findall(".//details//tbody/tr/td")]
    assert cells == ["a", "0.5 (0.4 to 0.6)", "0.25 (0.2 to 0.3)"]
    mixed = Plot("t", "x", "y", [Series("a", LOOK, [1], [2]), Series("b", LOOK, [3, 4], [5, 6])])
    root, _ = shown(sections=[Section("s", [mixed], Table(["one"], [["two"]]))])
    assert "3, 5; 4, 6" in [cell.text for cell in root.findall(".//details//td")]
    assert len(root.findall(".//ul[@class='legend']/li")) == 2


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
    found = read_png(base64.b64decode(source.removeprefix("data:image/png;base64,")))
    np.testing.assert_array_equal(found[:, :, 0], pixels)
    assert [mark.get("class") for mark in root.findall(".//td//i")] == ["right", "wrong", "right"]
    assert "2 of 3" in "".join(root.itertext())


def test_a_gallery_shows_the_nearest_of_the_base(tmp_path):
    data = Data("digits", 60, 200, 20)
    group = Group("KSH", data, "ksh", (5, 25), (6,), ("ITQ", "KSH"), 0.1, 1, 1, n_jobs=1)
    cells = Cells(tmp_path)
    assert gallery(group, cells) is None
    for training in group.trainings()[:1]:
        cells.write(training.configuration(), *training.run())
    found = gallery(group, cells)
    loaded = data.load()
    codes = group.codes("ITQ", 6, cells)
    for picture, strips in found.queries:
        assert [strip.label for strip in strips] == ["ITQ"]
        assert len(strips[0].right) == FIRST
        scaled = loaded.query.images.astype(int) * 255 // 16
        (query,) = np.flatnonzero((scaled == picture.pixels).all(axis=(1, 2)))
        apart = np.bitwise_count(codes["base"] ^ codes["query"][query]).sum(axis=1)
        nearest = np.argsort(apart, kind="stable")[:FIRST]
        assert strips[0].right == (loaded.base.y[nearest] == loaded.query.y[query]).tolist()
    unlabelled = Data("digits", 60, 200, 20, labelled=False, n_true=5)
    without = Group("KSH", unlabelled, "ksh", (5, 25), (6,), ("ITQ",), 0.1, 1, 1, n_jobs=1)
    for training in without.trainings():
        cells.write(training.configuration(), *training.run())
    assert "descriptors" in gallery(without, cells).why_none


def test_seeds_are_averaged_place_by_place():
    found = average("a", LOOK, [[(0, 4.0), (1, 2.0), (2, 1.0)], [(0, 2.0), (1, 2.0)]])
    assert found.x == [0, 1, 2]
    assert found.y == [3.0, 2.0, 1.5]  # the one that stopped stays at 2
    assert (found.low, found.high) == ([2.0, 2.0, 1.0], [4.0, 2.0, 2.0])
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
