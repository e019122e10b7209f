"""No command replaces a file of another kind unless it is told to."""

import shutil

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from auxhash.cli import kinds
from tests.cli.conftest import FEW_PAIRS

FIT = ("fit", "features.npy", "labels.npy", "--bits", "8", *FEW_PAIRS)
WRITERS = {  # the kind, the ending, and the command without the name of its output
    "fit": (kinds.MODEL, "", (*FIT, "-o")),
    "encode": (kinds.CODES, ".npy", ("encode", "small.safetensors", "features.npy", "-o")),
    "codes": (kinds.CODES, ".safetensors", ("encode", "small.safetensors", "features.npy", "-o")),
    "export": (kinds.GRAPH, "", ("export", "small.safetensors", "--onnx")),
    "index": (kinds.INDEX, "", ("index", "k.npy", "-o")),
    "approximate": (kinds.INDEX, "", ("index", "k.npy", "--approximate", "-o")),
    "add": (kinds.INDEX, "", ("add", "k.index", "k.npy", "-o")),
    "remove": (kinds.INDEX, "", ("remove", "k.index", "1", "-o")),
    "search": (kinds.HITS, ".npz", ("search", "k.index", "k.npy", "-k", "2", "-o")),
    "store": (kinds.HITS, ".npz", ("store", "search", "sqlite:///k.db", "k.npy", "-o")),
    "compare": (kinds.PAGE, "", ("compare", "digits", "-m", "LSH", "--train", "50", "--html")),
    "demo": (kinds.PAGE, "", ("demo", "--bits", "4", "-o")),
    "reproduce": (
        kinds.NUMBERS,
        "",
        ("reproduce", "free-codes", "--scale", "tiny", "--report-only", "--numbers"),
    ),
    "page": (
        kinds.PAGE,
        "",
        ("reproduce", "free-codes", "--scale", "tiny", "--report-only", "--output"),
    ),
}


@pytest.fixture
def others(here, run, model):
    """One file of each kind, by the words for it."""
    run("encode", model, "features.npy", "-o", "k.npy")
    run("index", "k.npy", "-o", "k.index")
    run("search", "k.index", "k.npy", "-o", "k.npz")
    run("export", model, "--onnx", "k.onnx")
    if not (here / "k.db").exists():
        run("store", "push", "sqlite:///k.db", "k.npy")
    (here / "k.html").write_text("<!DOCTYPE html>\n<html></html>")
    (here / "k.json").write_text('{\n "figure": "free-codes"\n}')
    (here / "k.txt").write_text("the notes of a year")
    return {
        kinds.MODEL: model,
        kinds.INDEX: here / "k.index",
        kinds.CODES: here / "k.npy",
        kinds.HITS: here / "k.npz",
        kinds.PAGE: here / "k.html",
        kinds.GRAPH: here / "k.onnx",
        kinds.NUMBERS: here / "k.json",
        "an array of float64 of shape (120, 64)": here / "features.npy",
        "an archive": here / "features.npz",
        "a .parquet file": here / "parts" / "0.parquet",
        "a database": here / "k.db",
        "a file of another kind": here / "features.fvecs",
        "text": here / "k.txt",
    }


def test_every_kind_is_known(others):
    assert {words: kinds.kind_of(path) for words, path in others.items()} == {
        words: words for words in others
    }


def test_codes_that_say_their_model_are_codes_and_no_model(here, run, model):
    run("encode", model, "features.npy", "-o", "k.safetensors")
    assert kinds.kind_of(here / "k.safetensors") == kinds.CODES
    with safe_open("k.safetensors", "numpy") as file:
        metadata, codes = file.metadata(), file.get_tensor("codes")
    save_file({"codes": codes}, "own.safetensors", metadata)
    assert kinds.kind_of(here / "own.safetensors") == kinds.CODES
    expected = "k.safetensors is an array of codes, and a model would take its place"
    assert expected in run(*FIT, "-o", "k.safetensors", code=1).output


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_of_another_kind_is_kept(others, here, run, writer):
    kind, ending, command = WRITERS[writer]
    target = here / f"target{ending}"
    for words, path in others.items():
        if words == kind:
            continue
        shutil.copy(path, target)
        output = run(*command, target.name, code=1).output
        expected = f"{target.name} is {words}, and {kind} would take its place: give another name"
        assert f"Error: {expected}, or --force" in output
        assert target.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("writer", [name for name in WRITERS if name != "demo"])
def test_the_same_kind_is_replaced_and_others_by_force(others, here, run, writer):
    kind, ending, command = WRITERS[writer]
    target = here / f"replaced{ending}"
    for content in (b"", others[kind].read_bytes()):
        target.write_bytes(content)
        run(*command, target.name)
        assert kinds.kind_of(target) == kind
    target.write_text("any text")
    run(*command, target.name, "--force")
    assert kinds.kind_of(target) == kind


def test_damaged_files_are_of_no_kind_that_is_written(tmp_path):
    np.save(tmp_path / "a", np.zeros((4, 4), np.uint8))
    content = (tmp_path / "a.npy").read_bytes()
    for start, words in (
        (content[:-1], "a damaged .npy file"),
        (b"PK\3\4", "a damaged archive"),
        (b"\x08", "text"),
        (bytes(8) + b'{"weight":', "a safetensors file of something else"),
    ):
        (tmp_path / "b").write_bytes(start)
        assert kinds.kind_of(tmp_path / "b") == words
