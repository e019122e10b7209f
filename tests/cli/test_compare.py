"""compare and bench; the examples run demo."""

import re
from xml.etree import ElementTree

import numpy as np


def test_compare_own_data(here, run):
    arguments = ("compare", "features.npy", "labels.npy", "-m", "ITQ", "-m", "LSH", "--bits", "8")
    told = run(*arguments, "--bits", "4", "-k", "5", "--jobs", "1", "--json")
    assert [(row["method"], row["bits"]) for row in told["rows"]] == [
        ("ITQ", 8),
        ("LSH", 8),
        ("ITQ", 4),
        ("LSH", 4),
    ]
    assert all(0 < row["p@5"] <= 1 for row in told["rows"])
    assert "12 queries" in told["protocol"]["split"]


def test_compare_keeps_runs(here, run):
    arguments = ("compare", "digits", "-m", "LSH", "--bits", "8", "--train", "50", "--json")
    first, second = (run(*arguments, "--folder", "kept")["rows"][0] for _ in range(2))
    assert first == second  # the time included
    assert list((here / "kept").glob("*.npz"))


def test_compare_with_ranks_beyond_the_base(here, run):
    arguments = ("compare", "features.npy", "labels.npy", "-m", "LSH", "--bits", "8", "--jobs", "1")
    told = run(*arguments, "-k", "5", "-k", "500", "--json")
    [row] = told["rows"]
    assert row["p@500"] is None
    assert row["own"] == ""
    assert told["protocol"]["not measured"] == "p@500: the base has 108 points"
    shown = run(*arguments, "-k", "500").output
    assert "not measured: p@500: the base has 108 points" in shown
    [head] = [line for line in shown.splitlines() if "mAP" in line]
    assert "own" not in head  # names bring nothing of their own


def test_compare_where_all_fail(here, run):
    np.save("same.npy", np.zeros(120, int))
    result = run("compare", "features.npy", "same.npy", "-m", "SDH", "--jobs", "1", code=1)
    assert "every method failed" in result.output or "no dissimilar pairs" in result.output


METHODS = ("-m", "ITQ", "-m", "LSH", "-m", "TPCA")


def test_compare_writes_a_page(here, run):
    arguments = ("compare", "features.npy", "labels.npy", *METHODS, "--bits", "8", "--bits", "100")
    arguments = (*arguments, "--seed", "0", "--seed", "1", "-k", "5", "--jobs", "1")
    told = run(*arguments, "--html", "compared.html", "--json")
    plain = run(*arguments, "--json")
    timed = ("train s", "codes/s")
    for row, other in zip(told["rows"], plain["rows"], strict=True):
        assert {n: v for n, v in row.items() if n not in timed} == {
            n: v for n, v in other.items() if n not in timed
        }
    assert told["page"] == "compared.html"
    assert told["protocol"] == plain["protocol"]
    text = (here / "compared.html").read_text("utf-8")
    assert not re.search(r"""https?:|["'(]//|@import|<script|<link""", text)
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    command = "auxhash compare features.npy labels.npy --method ITQ --method LSH --method TPCA"
    assert page.find(".//code").text.startswith(f"{command} --bits 8 --bits 100 --seed 0")
    # The first table is that of the terminal; TPCA has no 100 bits, and its row says so.
    [head, *rows] = page.find(".//table").iter("tr")
    assert [cell.text for cell in head] == [
        *("method", "bits", "L(h)", "p@5", "mAP", "b_eff", "train s", "codes/s", "model bytes"),
        "failed",
    ]
    shown = run(*arguments).output
    for row in rows:
        method, bits, loss, precision = [cell.text for cell in row][:4]
        line = rf"{method} +│ {bits} +│ {re.escape(loss)} +│ {re.escape(precision)} "
        assert re.search(line, shown), (line, shown)
    assert rows[-1][-1].text.startswith("ValueError")
    titles = [svg.get("aria-label") for svg in page.iter("svg") if svg.get("class") == "plot"]
    assert titles == ["8 bits", "100 bits", "k = 5"]
    series = [title.text for title in page.iter("title")][1:]
    assert series == ["ITQ", "LSH", "TPCA", "LSH", "ITQ", "LSH", "TPCA"]


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


def test_bench(run):
    rows = run("bench", "--points", "120", "--codes", "500", "--bits", "12", "--json")["rows"]
    assert [row["job"].split(",")[0] for row in rows] == [
        *("learn", "encode", "search", "search", "evaluate")
    ]
    assert all(row["seconds"] > 0 for row in rows)
