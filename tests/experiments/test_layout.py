"""Pages of comparisons and figures in a real browser: nothing is cut off, at any width."""

import numpy as np
import pytest

from auxhash.experiments.figures.figure import (
    FigureContent,
    HitList,
    QueryExample,
    Section,
    Table,
)
from auxhash.experiments.gallery import N_RETRIEVED, Gallery, Strip
from auxhash.experiments.page import page
from auxhash.experiments.svg import Plot, Series, Style
from tests.browser import browser as browser

WIDTHS = (1280, 1200, 1000, 400)
NAMES = ("MACrefined, kernels", "MACHash(loss=mine)", "a_method_with_a_long_name_without_spaces")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    ten = np.zeros((8, 8 * N_RETRIEVED), np.uint8)
    strips = [Strip(name, ten, [True] * N_RETRIEVED) for name in NAMES]
    query = Strip("query", ten[:, :8], [True])
    hits = [("words " * 40, True), ("a-name-without-spaces-" * 9, False)] * (N_RETRIEVED // 2)
    lists = [HitList(f"{name}, 16 bytes: 5 of 10", hits) for name in NAMES]
    bits = Plot("k = 100", "bits", "precision", [Series("a", Style("blue"), [8, 16], [0, 1])])
    columns = ["method", *(f"a column {at}" for at in range(12))]
    content = FigureContent(
        [],
        [Section("plots", [[bits] * 5]), Section("t", table=Table(columns, [["0.123"] * 13] * 2))],
        [("data", "word " * 100)],
        [],
        [Gallery("g", [(query, strips)] * 4)],
        examples=[QueryExample("a title " * 30, lists)] * 2,
        shown="Each at one size.",
    )
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page("n", "A title", "about", content, "auxhash " + "x" * 200), "utf-8")
    return path.as_uri()


CUT_OFF = """[...document.querySelectorAll(
        "h1, p, dd, .query *, .example > *, .lists h3, figure, svg.plot")]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth
                 || e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName + " " + e.textContent)"""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(browser, address, width):
    opened = browser.new_page(viewport={"width": width, "height": 900})
    opened.goto(address)
    assert opened.evaluate(CUT_OFF) == []
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    counts = opened.locator(".query td:last-child").all()
    assert {count.inner_text() for count in counts} == {"10 of 10"}
    assert all(count.bounding_box()["height"] < 40 for count in counts)  # in one line
    sizes = [box.bounding_box()["width"] for box in opened.locator(".asked-for img").all()]
    assert sizes == [64] * 4
    opened.close()
