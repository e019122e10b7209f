"""Points that come in chunks, put into one file that need not be read whole to be learnt from."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import unmasked
from auxhash.files.npyfiles import map_npy
from auxhash.files.writing import destination, writing


def from_chunks(chunks: Iterable[ArrayLike], path: str | os.PathLike[str]) -> AnyArray:
    """Write all chunks, one below the other, to the .npy file `path`; return its memory map.

    Chunks are arrays (n, D) of features, or (n,) of labels, in any number, and all of one kind of
    numbers; one of them is held at a time. An iterator over a database, or over files, will do. The
    file is there whole or not at all.
    """
    if Path(path).suffix != ".npy":
        raise ValueError(f"path must end in .npy, got {os.fspath(path)!r}")
    if isinstance(chunks, np.ndarray) and chunks.ndim < 3:  # its rows would count as chunks
        raise ValueError("chunks must be several arrays, got one: put it into a list")
    target = destination(Path(path))
    with writing(target) as temporary, temporary.open("wb") as file:
        _write(file, chunks)
    return map_npy(target)


def _write(file: IO[bytes], chunks: Iterable[ArrayLike]) -> None:
    n, first = 0, np.empty(0)
    for number, chunk in enumerate(chunks):
        rows = np.asarray(unmasked(f"chunk {number}", chunk))
        if not number:
            if rows.ndim not in (1, 2) or rows.dtype.hasobject:
                raise ValueError(
                    "chunks must be arrays of numbers of one axis or two, got one of "
                    f"{rows.dtype} and shape {rows.shape}"
                )
            first = rows[:0]
            _write_header(file, first, 0)
        if (rows.dtype, rows.shape[1:]) != (first.dtype, first.shape[1:]):
            like = "".join(map(str, first.shape[1:])) or "no"
            raise ValueError(
                f"chunk {number} is of {rows.dtype} and shape {rows.shape}, which does not go "
                f"below the first one, of {first.dtype} and {like} columns"
            )
        file.write(np.ascontiguousarray(rows).data)
        n += len(rows)
    if not n:
        raise ValueError("chunks must hold at least one point")
    file.seek(0)
    _write_header(file, first, n)


def _write_header(file: IO[bytes], like: AnyArray, n: int) -> None:
    """Write the header for n rows: as long for any n, since NumPy leaves room for the number."""
    header = np.lib.format.header_data_from_array_1_0(like) | {
        "shape": (n, *like.shape[1:]),
        "fortran_order": False,
    }
    np.lib.format.write_array_header_1_0(file, header)
