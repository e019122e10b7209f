"""Kinds of files, by their content: no command replaces a file of another kind unasked."""

import zipfile
from pathlib import Path

MODEL = "a model"
INDEX = "an index"
CODES = "an array of codes"
HITS = "the result of a search"
PAGE = "a page in HTML"
GRAPH = "an ONNX graph"
NUMBERS = "the numbers of a figure"

BYTES_READ = 256  # bytes that are looked at
SAFETENSORS_AT = 8  # where the header of such a file begins, after its length
OTHERS = {b"PAR1": "a .parquet file", b"SQLite format 3\0": "a database"}


def kind_of(path: Path) -> str:
    """Describe a file by its content: one of the kinds above, or of those that commands read."""
    from auxhash.files import codefiles
    from auxhash.search.index.named import is_index

    with path.open("rb") as file:
        start = file.read(BYTES_READ)
    if is_index(path):
        return INDEX
    if start[SAFETENSORS_AT:].startswith(b'{"'):
        if f'"{codefiles.KEY}":'.encode() in start:
            return CODES
        ours = start[SAFETENSORS_AT:].startswith(b'{"__metadata__":{"auxhash":')
        return MODEL if ours else "a safetensors file of something else"
    if start.startswith(b"\x93NUMPY"):
        return _array(path)
    if start.startswith(b"PK"):
        return _archive(path)
    if start.lower().startswith((b"<!doctype html", b"<html")):
        return PAGE
    if start.startswith(b'{\n "figure":'):
        return NUMBERS
    if start[:1] == b"\x08" and start[2:3] == b"\x12":  # its version, then its producer
        return GRAPH
    for magic, words in OTHERS.items():
        if start.startswith(magic):
            return words
    return "a file of another kind" if b"\0" in start else "text"


def _array(path: Path) -> str:
    from auxhash.files.npyfiles import map_npy

    try:
        array = map_npy(path)
    except ValueError:
        return "a damaged .npy file"
    if array.ndim == 2 and array.dtype == "uint8":
        return CODES
    return f"an array of {array.dtype} of shape {array.shape}"


def _archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile:
        return "a damaged archive"
    return HITS if {"distances.npy", "ids.npy"} <= names else "an archive"
