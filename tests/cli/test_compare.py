"""compare and bench; the examples run demo."""

import base64
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas
import pyarrow as arrow
import pytest
from PIL import Image
from pyarrow import parquet

from auxhash.experiments import datasets
from auxhash.experiments.datasets import Points
from auxhash.files.images import read_image
from auxhash.learn.baselines import LSH

KINDS = ("names", "texts")  # of what a data set of texts says of its points


def test_compare_own_data(here, run):
    arguments = ("compare", "features.npy", "labels.npy", "-m", "ITQ", "-m", "LSH", "--bits", "8")
    result = run(*arguments, "--bits", "4", "-k", "5", "--jobs", "1", "--json")
    assert [(row["method"], row["bits"]) for row in result["rows"]] == [
        ("ITQ", 8),
        ("LSH", 8),
        ("ITQ", 4),
        ("LSH", 4),
        ("vectors", 2048),
    ]
    assert all(0 < row["p@5"] <= 1 for row in result["rows"])
    assert "12 queries" in result["protocol"]["split"]


def test_compare_keeps_runs(here, run):
    arguments = ("compare", "digits", "-m", "LSH", "--bits", "8", "--train", "50", "--json")
    first, second = (run(*arguments, "--folder", "kept")["rows"][0] for _ in range(2))
    assert first == second  # the time included
    assert list((here / "kept").glob("*.npz"))


def test_compare_with_ranks_beyond_the_base(here, run):
    arguments = ("compare", "features.npy", "labels.npy", "-m", "LSH", "--bits", "8", "--jobs", "1")
    result = run(*arguments, "-k", "5", "-k", "500", "--json")
    [row, _] = result["rows"]
    assert row["p@500"] is None
    assert row["own"] == ""
    assert result["protocol"]["not measured"] == "p@500: the base has 108 points"
    shown = run(*arguments, "-k", "500").output
    assert "not measured: p@500: the base has 108 points" in shown
    [head] = [line for line in shown.splitlines() if line.lstrip().startswith("bits ")]
    assert "own" not in head  # names bring nothing of their own


def test_compare_where_all_fail(here, run):
    np.save("same.npy", np.zeros(120, int))
    result = run("compare", "features.npy", "same.npy", "-m", "SDH", "--jobs", "1", code=1)
    assert "every method failed" in result.output or "no dissimilar pairs" in result.output


METHODS = ("-m", "ITQ", "-m", "LSH", "-m", "TPCA")


def test_compare_writes_a_page(here, run):
    arguments = ("compare", "features.npy", "labels.npy", *METHODS, "--bits", "8", "--bits", "100")
    arguments = (*arguments, "--seed", "0", "--seed", "1", "-k", "5", "--jobs", "1")
    result = run(*arguments, "--html", "compared.html", "--json")
    plain = run(*arguments, "--json")
    timed = ("train s", "codes/s")
    for row, other in zip(result["rows"], plain["rows"], strict=True):
        assert {n: v for n, v in row.items() if n not in timed} == {
            n: v for n, v in other.items() if n not in timed
        }
    assert result["page"] == "compared.html"
    assert result["protocol"] == plain["protocol"]
    text = (here / "compared.html").read_text("utf-8")
    assert not re.search(r"""https?:|["'(]//|@import|<script|<link""", text)
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    command = "auxhash compare features.npy labels.npy --method ITQ --method LSH --method TPCA"
    assert page.find(".//code").text.startswith(f"{command} --bits 8 --bits 100 --seed 0")
    # The first table is that of the terminal; TPCA has no 100 bits, and its row says so.
    [head, *rows] = page.find(".//table").iter("tr")
    assert [cell.text for cell in head] == [
        *("bits", None, "method", "L(h)", "p@5", "mAP", "b_eff", "train s", "codes/s", "model"),
    ]
    shown = run(*arguments).output
    for row in rows:
        bits, _, method, loss, precision = [cell.text for cell in row][:5]
        line = rf"{bits} (★| ) {method} +{re.escape(loss)} +{re.escape(precision)} "
        assert re.search(line, shown), (line, shown)
    for place in (shown, text):
        assert "Failed: TPCA, 100 bits: ValueError" in place
        assert "p@k: share of" in place
    titles = [svg.get("aria-label") for svg in page.iter("svg") if svg.get("class") == "plot"]
    *titles, points, queries = titles
    assert titles == ["8 bits", "100 bits", "k = 5"]
    assert re.fullmatch(r"\d+ points", points)
    assert re.fullmatch(r"\d+ queries among them", queries)  # on the map
    series = [sorted(t.text for t in svg.iter("title")) for svg in page.iter("svg")]
    every = ["ITQ", "LSH", "TPCA", "vectors"]
    assert [names for names in series if names][:3] == [every, ["LSH", "vectors"], every]


def test_compare_shows_pictures_where_there_are_any(here, run):
    arguments = (
        "compare",
        "digits",
        "-m",
        "LSH",
        "--bits",
        "8",
        "--train",
        "50",
        "--html",
        "d.html",
    )
    assert "The same with curves: d.html" in run(*arguments, "--jobs", "1").output
    assert "data:image/png" in (here / "d.html").read_text("utf-8")


@pytest.fixture
def photos(here):
    """Pictures of four classes, each of one colour."""
    rng = np.random.default_rng(0)
    for name, colour in {"red": 0, "green": 1, "blue": 2, "grey": slice(None)}.items():
        (here / "photos" / name).mkdir(parents=True)
        for at in range(15):
            pixels = rng.integers(0, 60, (40, 50, 3), np.uint8)
            pixels[10 : 20 + at, 5 * at % 30 :, colour] = 230
            Image.fromarray(pixels).save(here / "photos" / name / f"{at:02}.png")
    return here / "photos"


def strips(page):
    """Sizes of the pictures of a page, and their labels."""
    text = page.read_text("utf-8")
    tree = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    sources = [image.get("src").split(",")[1] for image in tree.iter("img")]
    pictures = [read_image(io.BytesIO(base64.b64decode(source))) for source in sources]
    rows = [row for query in tree.findall(".//div[@class='query']") for row in query.iter("tr")]
    return {picture.shape for picture in pictures}, [row.find("th").text for row in rows]


def test_pictures_of_a_folder_are_shown(photos, here, run):
    run("compare", "photos", "-m", "LSH", "-m", "ITQ", "--bits", "8", "--html", "l.html")
    sizes, labels = strips(here / "l.html")
    assert sizes == {(64, 640, 3), (64, 64, 3)}
    assert len(labels) % 2 == 0
    assert set(labels) == {"LSH", "ITQ"}
    run("compare", "photos", "-m", "LSH", "-m", "ITQ", "--bytes", "1", "--html", "n.html")
    sizes, labels = strips(here / "n.html")
    assert sizes == {(64, 640, 3), (64, 64, 3)}
    assert set(labels) == {"true", "ITQ by outputs, 1 byte", "LSH by outputs, 1 byte"}
    run("compare", "digits", "-m", "LSH", "--bytes", "2", "--base", "90", "--html", "d.html")
    assert 'class="sharp"' in (here / "d.html").read_text("utf-8")
    assert 'class="sharp"' not in (here / "n.html").read_text("utf-8")
    sizes, labels = strips(here / "d.html")
    assert sizes == {(8, 80, 3), (8, 8, 3)}
    assert len(labels) == 2 * 4


NEIGHBOURS = ("compare", "features.npy", "-m", "signs", "-m", "ITQ", "--bytes", "2", "--jobs", "1")


def test_compare_without_labels(here, run):
    result = run(*NEIGHBOURS, "--bytes", "4", "--json")
    keys = [(row["bytes"], row["method"]) for row in result["rows"]]
    assert sorted(set(keys)) == [(2, "ITQ"), (4, "ITQ"), (8, "signs"), (256, "vectors")]
    assert "12 queries" in result["protocol"]["data"]
    shown = run(*NEIGHBOURS).output
    assert "10@100 is also what 10 results have once the first 100 are re-ranked" in shown
    assert "★" in shown


def test_compare_for_queries_of_one_s_own(here, run):
    result = run(*NEIGHBOURS, "--queries", "queries.npy", "--metric", "euclidean", "--json")
    assert "120 are searched for 40 queries (of 40 given)" in result["protocol"]["data"]
    assert result["rows"][-1]["distance"] == "euclidean"


def test_labels_are_not_used_where_bytes_are_asked_for(here, run):
    result = run("compare", "table.csv", "-m", "ITQ", "--bytes", "2", "--jobs", "1", "--json")
    assert "10@10" in result["rows"][0]
    digits = run("compare", "digits", "-m", "LSH", "--bytes", "2", "--base", "90", "--json")
    assert "90 are searched for" in digits["protocol"]["data"]


def test_a_page_of_neighbours(here, run):
    words = [f"point {row}, <b>" for row in range(120)]
    (here / "words.txt").write_text("\n".join(words))
    page = ("--html", "n.html", "--text", "words.txt")
    result = run(*NEIGHBOURS, "--bytes", "4", *page, "--json")
    assert result["page"] == "n.html"
    text = (here / "n.html").read_text("utf-8")
    assert not re.search(r"""https?:|["'(]//|@import|<script|<link""", text)
    tree = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    [share, _, *of_map] = [svg for svg in tree.iter("svg") if svg.get("class") == "plot"]
    assert len(of_map) == 2
    ticks = [part.text for part in share.iter("text")]
    assert {"2", "4", "8"} <= set(ticks)  # the bytes themselves
    assert {"ITQ", "ITQ, Hamming"} <= {cell.text for cell in tree.iter("td")}  # of the curves
    examples = [part for part in tree.iter("details") if part.get("class") == "example"]
    assert len(examples) == 10
    true, *methods = examples[0].findall(".//ol")
    assert len(true) == 10
    right = {item.text for item in true}
    assert len(methods) == 2  # ITQ at its best size, and signs
    for method in methods:
        for item in method:
            assert (item.get("class") == "right") == (item.text in right)
    assert examples[0].find("summary").text in words
    rows = run(*NEIGHBOURS, "--html", "r.html")
    assert "what queries find: r.html" in rows.output
    assert "query: row " in (here / "r.html").read_text("utf-8")


def test_texts_of_a_column(here, run):
    X = np.load("features.npy")
    columns = {"title": [f"title {row}" for row in range(120)], "vector": list(X)}
    parquet.write_table(arrow.table(columns), "titles.parquet")
    arguments = ("compare", "titles.parquet", "-m", "signs", "--html", "t.html", "--text")
    run(*arguments, "title")
    assert "title 11" in (here / "t.html").read_text("utf-8")
    refused = run(*arguments, "name", code=1).output
    assert "holds nothing called 'name', but title, vector" in refused
    named = pandas.DataFrame(X).add_prefix("f").assign(title=columns["title"])
    named.to_csv("titles.csv", index=False)
    named[:5].replace("title", "query", regex=True).to_csv("asked.csv", index=False)
    refused = run("compare", "titles.csv", "-m", "signs", code=1).output
    assert "column 'title': 'title 0' is no number" in refused
    own = ("titles.csv", "-m", "signs", "--queries", "asked.csv", "--html", "c.html", "--text")
    run("compare", *own, "title")  # a column of text is no feature, of points or of queries
    page = (here / "c.html").read_text("utf-8")
    assert "title 11" in page
    assert "<summary>query 4" in page


def test_texts_of_a_data_set(here, run, monkeypatch):
    """Names are shown without being asked for, texts if they are, and rows if there are none."""
    X = np.load("features.npy")

    def points(rows, first):
        texts = {kind: np.array([f"{first} {kind} {row}" for row in rows]) for kind in KINDS}
        return Points(X[rows], **texts)

    base, query = points(np.arange(100), "base"), points(np.arange(100, 120), "query")
    made = datasets.Dataset("made", base, base, query, "made")
    monkeypatch.setattr(datasets, "load", lambda name: made)
    arguments = ("compare", "debian", "-m", "signs", "--html", "t.html", "--force")
    for kind, other, asked in (("names", "texts", ()), ("texts", "names", ("--text", "texts"))):
        run(*arguments, *asked)
        page = (here / "t.html").read_text("utf-8")
        assert f"base {kind} " in page
        assert f"query {kind} 100" in page
        assert f"base {other} " not in page
    run(*arguments, "--queries", "queries.npy")
    page = (here / "t.html").read_text("utf-8")
    assert "base names " in page
    assert "query: row " in page
    (here / "lines.txt").write_text("a line\n" * 100)
    run(*arguments, "--text", "lines.txt")
    assert "a line" in (here / "t.html").read_text("utf-8")
    wrong = run(*arguments, "--text", "title", code=1).output
    assert "--text title: made has names and texts, and there is no file title" in wrong
    bare = Points(base.X)
    monkeypatch.setattr(datasets, "load", lambda name: replace(made, base=bare, query=bare))
    run(*arguments)
    assert "query: row " in (here / "t.html").read_text("utf-8")
    assert "made has no texts" in run(*arguments, "--text", "names", code=1).output


@pytest.mark.parametrize("labels", [(), ("labels.npy",)])
def test_an_interrupted_comparison_shows_nothing(here, run, monkeypatch, labels):
    fit = LSH.fit

    def stopped(self, X, y=None):
        self.interrupted_ = True
        return fit(self, X, y)

    monkeypatch.setattr(LSH, "fit", stopped)
    arguments = ("compare", "features.npy", *labels, "-m", "LSH", "--folder", "kept")
    result = run(*arguments, "--html", "p.html", "--jobs", "1", code=130)
    assert result.stdout == ""
    assert "Interrupted" in result.stderr
    assert not list(here.glob("kept/*.npz"))
    assert not (here / "p.html").exists()


def test_bench(run):
    rows = run("bench", "--points", "120", "--codes", "500", "--bits", "12", "--json")["rows"]
    assert [row["job"].split(",")[0] for row in rows] == [
        *("learn", "encode", "search", "search", "evaluate")
    ]
    assert all(row["seconds"] > 0 for row in rows)
