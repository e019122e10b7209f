"""index and search."""

import numpy as np
import pytest

import auxhash
from auxhash import HammingIndex


@pytest.fixture
def codes(here, run, model):
    run("encode", model, "features.npy", "-o", "c.npy")
    run("index", "c.npy", "-o", "c.index", "--bits", "12")
    return here


def test_search_is_the_library_s(codes, run, model):
    told = run("search", "c.index", "queries.npy", "--model", model, "-k", "3", "--json")
    hasher = auxhash.load(model)
    index = HammingIndex(12).add(hasher.encode(np.load("features.npy")))
    distances, ids = index.search(hasher.encode(np.load("queries.npy")), 3)
    assert told["distances"] == distances.tolist()
    assert told["ids"] == ids.tolist()
    run("search", "c.index", "queries.npy", "--model", model, "-k", "3", "-o", "f.npz")
    with np.load("f.npz") as found:
        np.testing.assert_array_equal(found["ids"], ids)
        np.testing.assert_array_equal(found["distances"], distances)


def test_codes_as_queries(codes, run):
    told = run("search", "c.index", "c.npy", "-k", "1", "--json")
    assert np.ravel(told["distances"]).tolist() == [0] * 120


def test_ids_and_names(codes, run):
    run("index", "c.npy", "-o", "i.index", "--bits", "12", "--ids", "ids.npy")
    told = run("search", "i.index", "c.npy", "-k", "200", "--json")
    assert np.shape(told["ids"]) == (120, 120)  # all there are
    assert set(np.ravel(told["ids"])) == {*range(0, 1200, 10)}
    (codes / "names.txt").write_text("\n".join(f"n{i}" for i in range(120)))
    shown = run("search", "c.index", "c.npy", "-k", "2", "--names", "names.txt").output
    assert "n0 (0)" in shown
    assert "At most 10 are shown of each" in shown
    result = run("search", "i.index", "c.npy", "--names", "names.txt", code=1)
    assert "120 names, and the index has an id 1190" in result.output


def test_pictures_by_name(here, run):
    run("fit", "photos", "-o", "n.safetensors", "--bits", "8", "--jobs", "1")
    run("encode", "n.safetensors", "photos", "-o", "n.npy")
    run("index", "n.npy", "-o", "n.index")
    ask = ("search", "n.index", "photos", "--model", "n.safetensors", "--names", "photos")
    told = run(*ask, "-k", "1", "--json")
    assert told["query_names"][0] == "across/01.png"
    assert told["names"][0] == ["across/01.png"]
    assert "across/01.png (0)" in run(*ask, "-k", "1").output


def test_plus_minus_one(here, run, model):
    np.save("pm.npy", auxhash.load(model).transform(np.load("features.npy")))
    assert run("index", "pm.npy", "-o", "pm.index", "--json")["bits"] == 12


def test_names_are_shown_as_they_stand(codes, run):
    names = [f"{i:03}" for i in range(120)]
    names[0] = "first"
    (codes / "numbered.txt").write_text("\n".join(names))
    ask = ("search", "c.index", "c.npy", "-k", "1", "--names", "numbered.txt")
    told = run(*ask, "--json")
    assert told["names"][0] == ["first"]
    assert [row[0] for row in told["names"]] == [names[row[0]] for row in told["ids"]]
    assert told["read"] == ["numbered.txt: 120 names: first, 001, ..."]
    result = run(*ask, "--header", code=1)
    assert "119 names, and the index has an id 119" in result.output


def test_ids_from_text(codes, run):
    (codes / "ids.csv").write_text("id,name\n" + "".join(f"{i * 7},n\n" for i in range(120)))
    told = run("index", "c.npy", "-o", "t.index", "--bits", "12", "--ids", "ids.csv", "--json")
    assert told["read"] == ["ids.csv: 120 ids, int64; column id; line 1 names the columns"]
    assert HammingIndex.load("t.index").ids.tolist() == list(range(0, 840, 7))
    (codes / "ids.csv").write_text("".join(f"{i:03}\n" for i in range(120)))
    assert run("index", "c.npy", "-o", "t.index", "--bits", "12", "--ids", "ids.csv", code=1)


def test_a_line_of_names_shifts_none(codes, run):
    (codes / "titled.txt").write_text("title\n" + "\n".join(f"n{i}" for i in range(120)))
    ask = ("search", "c.index", "c.npy", "-k", "1", "--names", "titled.txt")
    assert "holds 121 names for the ids 0..119: does line 1" in run(*ask, code=1).output
    for option, first in (("--header", "n0"), ("--no-header", "title")):
        told = run(*ask, option, "--json")
        assert told["names"][told["ids"].index([0])] == [first]


def test_names_that_are_no_text(codes, run):
    np.save("bytes.npy", np.array([b"a\xff"] * 120))
    result = run("search", "c.index", "c.npy", "--names", "bytes.npy", code=1)
    assert "bytes.npy holds names that are no text" in result.output
