"""The file of a HammingIndex: one header and raw arrays, ready to be mapped into memory.

    0   8 bytes   b"AUXHIDX1"
    8   uint64    n_bits
    16  uint64    n, number of codes
    24  uint64    next_id, the id of the next code added without one
    32  uint64    1 where ids follow, 0 where the ids are 0..n-1
    40  uint32    CRC-32 of everything after the header
    44  uint32    CRC-32 of bytes 0..43
    48  16 bytes  fingerprint of the model that made the codes, or zeros (`block` says how)
    64  uint8     (n_bytes, n): byte p of every code, then byte p + 1; n_bytes = ceil(n_bits / 8)
    ..  zeros up to a multiple of 64, then int64 (n,): the ids

All numbers are little-endian. Nothing in the file is executed. Ids are unique, at least 0 and below
next_id; the bits that pad a code to whole bytes are 0. Versions before there were fingerprints take
a file that states one for damaged.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, n_bytes
from auxhash.compute.checks import LARGEST_ID
from auxhash.files.writing import check_regular, writing
from auxhash.search.index import block, namesfile
from auxhash.search.index.state import first_twice

MAGIC = b"AUXHIDX1"
FIELDS = struct.Struct("<8sQQQQI")
HEADER_BYTES = block.BLOCK_BYTES
BYTES_PER_STEP = 1 << 24  # bytes checked or written per step


class IndexContent(NamedTuple):
    """Content of an index file."""

    n_bits: int
    planes: NDArray[np.uint8]  # (n_bytes, n)
    ids: NDArray[np.int64] | None
    next_id: int
    fingerprint: str | None = None


def write(path: str | os.PathLike[str], content: IndexContent) -> None:
    """Write beside `path` and move into place, so that no half-written file is ever seen."""
    n = content.planes.shape[1]
    with writing(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(bytes(HEADER_BYTES))
        check = 0
        for part in _parts(content):
            check = zlib.crc32(part, check)
            file.write(part)
        has_ids = content.ids is not None
        head = FIELDS.pack(MAGIC, content.n_bits, n, content.next_id, has_ids, check)
        file.seek(0)
        file.write(block.sealed(head, content.fingerprint))


class IndexHeader(NamedTuple):
    """Fields of the header; `sum` is the CRC-32 of all that follows it."""

    n_bits: int
    n: int
    next_id: int
    has_ids: int
    sum: int
    fingerprint: str | None

    @property
    def codes_end(self) -> int:
        return HEADER_BYTES + n_bytes(self.n_bits) * self.n

    @property
    def ids_start(self) -> int:
        return HEADER_BYTES + _padded(n_bytes(self.n_bits) * self.n)

    @property
    def size(self) -> int:
        """Size of the index's part of the file, in bytes."""
        return self.ids_start + 8 * self.n * self.has_ids


def read(
    path: str | os.PathLike[str], mmap: bool, check: bool = True, size: int | None = None
) -> IndexContent:
    """Read a file; with `mmap` its arrays stay on disk until they are used.

    `size` is the index's part of the file, in bytes, where names follow.

    Raises ValueError for a file that is foreign, damaged or truncated, or whose content is invalid
    although its checksums are right. Without `check` only the header and the size of the file are
    checked, and the arrays may hold anything.
    """
    check_regular(path, "an index")
    with open(path, "rb") as file:
        header = _header(path, file, size)
        raw: NDArray[np.uint8]
        if mmap:
            # Copy on write, which never reaches the file: for read-only arrays, kernels would be
            # compiled again.
            raw = np.asarray(np.memmap(file, np.uint8, "c"))[: header.size]
        else:
            file.seek(0)
            raw = np.fromfile(file, np.uint8, header.size)
    if len(raw) != header.size:
        raise ValueError(f"{path} changed while it was read")
    planes = raw[HEADER_BYTES : header.codes_end].reshape(n_bytes(header.n_bits), header.n)
    ids = None
    if header.has_ids:
        ids = raw[header.ids_start :].view("<i8").astype(np.int64, copy=False)
    if check:
        if _sum(raw[HEADER_BYTES:]) != header.sum:
            raise ValueError(f"{path} is damaged: its codes and ids do not match their checksum")
        _check_codes(path, planes, header.n_bits)
        if raw[header.codes_end : header.ids_start].any():
            raise ValueError(f"{path} is damaged: the bytes between codes and ids are not 0")
        if ids is not None:
            check_ids(path, ids, header.next_id)
    return IndexContent(header.n_bits, planes, ids, header.next_id, header.fingerprint)


def check_ids(path: str | os.PathLike[str], ids: NDArray[np.int64], next_id: int) -> None:
    """Raise ValueError unless ids are unique, at least 0 and below next_id."""
    if not len(ids):
        return
    if ids.min() < 0 or ids.max() >= next_id:
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"{path} is damaged: ids must lie in 0..{next_id - 1}, it has {wrong}")
    twice = first_twice(ids)
    if twice is not None:
        raise ValueError(f"{path} is damaged: it has two codes of id {twice}")


def _header(path: str | os.PathLike[str], file: BinaryIO, size: int | None) -> IndexHeader:
    """Read the header; ValueError unless it is complete, valid and fits the size of the file."""
    start = file.read(HEADER_BYTES)
    if start[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} is not an index saved by auxhash")
    content = block.opened(start, FIELDS.size)
    if content is None:
        raise ValueError(f"{path} has a damaged or truncated header")
    header = IndexHeader._make([*FIELDS.unpack(content[0])[1:], content[1]])
    if not 1 <= header.n_bits <= MAX_BITS:
        raise ValueError(f"{path} has codes of {header.n_bits} bits, not of 1 to {MAX_BITS}")
    if header.has_ids > 1 or not header.n <= header.next_id <= LARGEST_ID + 1:
        raise ValueError(
            f"{path} has a damaged header: {header.n} codes, has_ids {header.has_ids}, "
            f"next_id {header.next_id}"
        )
    actual = os.fstat(file.fileno()).st_size if size is None else size
    if actual != header.size:
        if size is None and namesfile.has_names(path):
            raise ValueError(f"{path} is an index with names: NamedIndex.load reads it")
        raise ValueError(
            f"{path} is truncated or damaged: {header.n} codes of {header.n_bits} bits need "
            f"{header.size} bytes, it has {actual}"
        )
    return header


def _check_codes(path: str | os.PathLike[str], planes: NDArray[np.uint8], n_bits: int) -> None:
    if n_bits % 8 and planes[-1].max(initial=0) >> (n_bits % 8):
        raise ValueError(f"{path} is damaged: padding bits beyond n_bits={n_bits} are set")


def _sum(raw: NDArray[np.uint8]) -> int:
    """Return the CRC-32, computed some bytes at a time so that Ctrl-C works in between."""
    check = 0
    for i in range(0, len(raw), BYTES_PER_STEP):
        check = zlib.crc32(raw[i : i + BYTES_PER_STEP].data, check)
    return check


def _parts(content: IndexContent) -> list[memoryview]:
    planes = np.ascontiguousarray(content.planes).reshape(-1)
    parts = [planes.data, memoryview(bytes(_padded(planes.size) - planes.size))]
    if content.ids is not None:
        parts.append(content.ids.astype("<i8").view(np.uint8).data)
    step = BYTES_PER_STEP
    return [part[i : i + step] for part in parts for i in range(0, len(part), step)]


def _padded(size: int) -> int:
    return -(-size // HEADER_BYTES) * HEADER_BYTES
