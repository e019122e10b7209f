"""The file of a HammingIndex: one header and raw arrays, ready to be mapped into memory.

    0   8 bytes   b"AUXHIDX1"
    8   uint64    n_bits
    16  uint64    n, number of codes
    24  uint64    next_id, the id that a code added without one gets
    32  uint64    1 where ids follow, 0 where the ids are 0..n-1
    40  uint32    CRC-32 of everything after the header
    44  uint32    CRC-32 of bytes 0..43
    64  uint8     (n_bytes, n): byte p of every code, then byte p + 1; n_bytes = ceil(n_bits / 8)
    ..  zeros up to a multiple of 64, then int64 (n,): the ids

All numbers are little-endian. Nothing in the file is ever run.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.files import writing

MAGIC = b"AUXHIDX1"
FIELDS = struct.Struct("<8sQQQQI")
HEADER = 64
STEP = 1 << 24  # bytes checked or written at once


class Content(NamedTuple):
    n_bits: int
    planes: NDArray[np.uint8]  # (n_bytes, n)
    ids: NDArray[np.int64] | None
    next_id: int


def write(path: str | os.PathLike[str], content: Content) -> None:
    """Write beside `path` and move into place, so that no half-written file is ever seen."""
    n = content.planes.shape[1]
    with writing(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(bytes(HEADER))
        check = 0
        for part in _parts(content):
            check = zlib.crc32(part, check)
            file.write(part)
        has_ids = content.ids is not None
        head = FIELDS.pack(MAGIC, content.n_bits, n, content.next_id, has_ids, check)
        file.seek(0)
        file.write(head + struct.pack("<I", zlib.crc32(head)))


def read(path: str | os.PathLike[str], mmap: bool) -> Content:
    """Read a file; with `mmap` its arrays stay on disk until they are used.

    Raises ValueError for a file that is foreign, damaged or truncated. The sum over the arrays
    is checked only where they are read (`mmap=False`).
    """
    with open(path, "rb") as file:
        start = file.read(HEADER)
    if start[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} is not an index saved by auxhash")
    head, rest = start[: FIELDS.size], start[FIELDS.size : FIELDS.size + 4]
    if len(start) < HEADER or struct.unpack("<I", rest)[0] != zlib.crc32(head):
        raise ValueError(f"{path} has a damaged or truncated header")
    _, n_bits, n, next_id, has_ids, check = FIELDS.unpack(head)
    n_bytes = -(-n_bits // 8)
    ids_at = HEADER + _padded(n_bytes * n)
    size = ids_at + 8 * n * has_ids
    found = os.path.getsize(path)
    if found != size:
        raise ValueError(
            f"{path} is truncated or damaged: {n} codes of {n_bits} bits need {size} bytes, "
            f"it has {found}"
        )
    raw: NDArray[np.uint8]
    if mmap:
        # Copy on write, which never reaches the file: read-only arrays would be compiled for anew.
        raw = np.asarray(np.memmap(path, np.uint8, "c"))
    else:
        raw = np.fromfile(path, np.uint8)
        if zlib.crc32(raw[HEADER:].data) != check:
            raise ValueError(f"{path} is damaged: its codes do not match their sum")
    planes = raw[HEADER : HEADER + n_bytes * n].reshape(n_bytes, n)
    ids = raw[ids_at:].view("<i8").astype(np.int64, copy=False) if has_ids else None
    return Content(n_bits, planes, ids, next_id)


def _parts(content: Content) -> list[memoryview]:
    planes = np.ascontiguousarray(content.planes).reshape(-1)
    parts = [planes.data, memoryview(bytes(_padded(planes.size) - planes.size))]
    if content.ids is not None:
        parts.append(content.ids.astype("<i8").view(np.uint8).data)
    return [part[i : i + STEP] for part in parts for i in range(0, len(part), STEP)]


def _padded(size: int) -> int:
    return -(-size // HEADER) * HEADER
