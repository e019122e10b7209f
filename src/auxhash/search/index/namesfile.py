"""Names of an index's codes, at the end of the index's own file.

After the bytes that the index itself writes come

    int64 (n,)    the ids
    n names       a JSON list of text, UTF-8
    64 bytes      b"AUXHNAM1", uint64 size of the index's part, uint64 n, uint32 CRC-32 of ids and
                  names, uint32 CRC-32 of the 28 bytes before it, zeros

All numbers are little-endian. One file cannot lose its names, or get those of another.
"""

import json
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from auxhash.search.index import block

MAGIC = b"AUXHNAM1"
TRAILER_BYTES = block.BLOCK_BYTES
FIELDS = struct.Struct("<8sQQI")


class _Trailer(NamedTuple):
    """Fields of the last 64 bytes."""

    size: int  # of the index's part, in bytes
    n: int
    sum: int


def append(path: Path, names: dict[int, str]) -> None:
    """Write the names behind the index in this file."""
    ids = np.fromiter(names, "<i8", len(names)).tobytes()
    content = ids + json.dumps(list(names.values()), ensure_ascii=False).encode()
    with path.open("ab") as file:
        head = FIELDS.pack(MAGIC, file.tell(), len(names), zlib.crc32(content))
        file.write(content + block.sealed(head))


def has_names(path: str | os.PathLike[str]) -> bool:
    """Return True if there are names at the end of this file."""
    with open(path, "rb") as file:
        return _last(file)[: len(MAGIC)] == MAGIC


def read(path: str | os.PathLike[str]) -> tuple[dict[int, str], int]:
    """Read the names by their ids, and the size of the index's part; ValueError if damaged."""
    with open(path, "rb") as file:
        end = _trailer(path, file)
        file.seek(end.size)
        content = file.read()[:-TRAILER_BYTES]
    if zlib.crc32(content) != end.sum or 8 * end.n > len(content):
        raise ValueError(f"{path} is damaged: its names do not match their checksum")
    ids = np.frombuffer(content[: 8 * end.n], "<i8").tolist()
    try:
        names = json.loads(content[8 * end.n :])
    except ValueError as error:
        raise ValueError(f"{path} is damaged: its names are not JSON") from error
    valid = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not valid or not len(ids) == len(names) == len(set(ids)) == len(set(names)):
        raise ValueError(f"{path} is damaged: it must hold one name for each of {end.n} codes")
    return dict(zip(ids, names, strict=True)), end.size


def _trailer(path: str | os.PathLike[str], file: BinaryIO) -> _Trailer:
    last = _last(file)
    if last[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} holds no index with names")
    content = block.opened(last, FIELDS.size)
    if content is None or content[1] is not None:  # the index's own part states the model
        raise ValueError(f"{path} is damaged: its last bytes do not match their checksum")
    trailer = _Trailer(*FIELDS.unpack(content[0])[1:])
    if trailer.size > file.seek(0, os.SEEK_END) - TRAILER_BYTES:
        raise ValueError(f"{path} is truncated: it should hold an index of {trailer.size} bytes")
    return trailer


def _last(file: BinaryIO) -> bytes:
    """Read the last 64 bytes, or fewer of a shorter file."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - TRAILER_BYTES))
    return file.read()
