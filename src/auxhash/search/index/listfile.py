"""The file of an ApproximateIndex: an IndexBinaryIVF as faiss writes it, and 64 bytes after it.

faiss reads such a file as its own and does not look at the 64 bytes:

    0   8 bytes   b"AUXHIVF1"
    8   uint64    n_bits, the bits that are used of the bytes of a code
    16  uint64    next_id, the id of the next code added without one
    24  uint64    size of faiss's part, in bytes
    32  uint32    CRC-32 of faiss's part
    36  uint32    CRC-32 of bytes 0..35
    40  8 zeros
    48  16 bytes  fingerprint of the model that made the codes, or zeros (`block` says how)

A file that faiss wrote, without them, can be read as well. (So can one of ours that was cut just
before them: it has all of its codes, but not n_bits, next_id and the fingerprint.) faiss itself
trusts what it reads, and a damaged file can crash it: here it never reads a file, but gets arrays
that were read and checked by this module. (Of 300 files with a bit flipped and no sum, faiss 1.15
refused 145 and hung on 2, and this module refused 163; a million codes take it 0.2 s, and faiss
0.01 s.)
"""

import os
import struct
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, Packed, n_bytes
from auxhash.compute.checks import LARGEST_ID
from auxhash.files.writing import check_regular, writing
from auxhash.search.index import block, namesfile
from auxhash.search.index.file import BYTES_PER_STEP, check_ids
from auxhash.search.index.state import Ids

MAGIC = b"AUXHIVF1"
KIND = b"IBwF"  # how faiss begins the file
TRAILER_BYTES = block.BLOCK_BYTES
FIELDS = struct.Struct("<8sQQQI")


class ListsContent(NamedTuple):
    """Content of an index: list i has centre `centres[i]` and the codes and ids `lists[i]`."""

    n_bits: int
    centres: Packed
    lists: list[tuple[Packed, Ids]]
    next_id: int
    fingerprint: str | None


def write(
    path: str | os.PathLike[str],
    faiss: ModuleType,
    index: Any,
    n_bits: int,
    next_id: int,
    fingerprint: str | None,
) -> None:
    """Write beside `path` and move into place, so that no half-written file is ever seen."""
    with writing(Path(path)) as temporary:
        try:
            faiss.write_index_binary(index, str(temporary))
        except RuntimeError as error:  # what faiss raises for a full disk
            raise OSError(f"{path} cannot be written: {error}") from error
        with temporary.open("r+b") as file:
            check, size = 0, 0
            while part := file.read(BYTES_PER_STEP):
                check, size = zlib.crc32(part, check), size + len(part)
            head = FIELDS.pack(MAGIC, n_bits, next_id, size, check)
            file.write(block.sealed(head, fingerprint))


def read(path: str | os.PathLike[str], n_bits: int | None, size: int | None = None) -> ListsContent:
    """Read a file and check all of it; ValueError says what is wrong with it.

    `n_bits` is for files written by faiss, which knows only whole bytes; where the file has its
    own n_bits, the two must agree. `size` is the index's part of the file, in bytes, where names
    follow.
    """
    check_regular(path, "an index")
    with open(path, "rb") as file:
        raw = np.fromfile(file, np.uint8)[:size]
    if size is None and namesfile.has_names(path):
        raise ValueError(f"{path} is an index with names: NamedIndex.load reads it")
    used, next_id, own, fingerprint = _trailer(path, raw)
    centres, lists = _lists(_Reader(path, raw[:own]))
    width = 8 * centres.shape[1]
    if used is None:
        used = width if n_bits is None else n_bits
    elif n_bits is not None and n_bits != used:
        raise ValueError(f"n_bits={n_bits} does not fit the file's codes of {used} bits")
    if n_bytes(used) != centres.shape[1]:
        raise ValueError(f"n_bits={used} does not fit the file's {centres.shape[1]} bytes")
    ids = np.concatenate([ids for _, ids in lists])
    if next_id is None:
        next_id = int(ids.max(initial=-1)) + 1
    check_ids(path, ids, next_id)
    if used % 8 and any(codes[:, -1].max(initial=0) >> (used % 8) for codes, _ in lists):
        raise ValueError(f"{path} is damaged: padding bits beyond n_bits={used} are set")
    return ListsContent(used, centres, lists, next_id, fingerprint)


def _trailer(
    path: str | os.PathLike[str], raw: NDArray[np.uint8]
) -> tuple[int | None, int | None, int, str | None]:
    """n_bits, next_id, size of faiss's part, fingerprint; all but the size None if by faiss."""
    last = raw[-TRAILER_BYTES:].tobytes()
    if last[: len(MAGIC)] != MAGIC:
        return None, None, len(raw), None
    content = block.opened(last, FIELDS.size)
    if content is None:
        raise ValueError(f"{path} is damaged: its last bytes do not match their sum")
    fields, fingerprint = content
    _, n_bits, next_id, size, check = FIELDS.unpack(fields)
    if size != len(raw) - TRAILER_BYTES or zlib.crc32(raw[:-TRAILER_BYTES].data) != check:
        raise ValueError(f"{path} is damaged: its lists do not match their sum")
    if not 1 <= n_bits <= MAX_BITS or next_id > LARGEST_ID + 1:
        raise ValueError(f"{path} is damaged: it says n_bits={n_bits}, next_id={next_id}")
    return n_bits, next_id, size, fingerprint


class _Reader:
    """Reads numbers and arrays of a file in order, never beyond its end."""

    def __init__(self, path: str | os.PathLike[str], raw: NDArray[np.uint8]) -> None:
        self.path, self.raw, self.at = path, raw, 0

    def take(self, count: int) -> NDArray[np.uint8]:
        if not 0 <= count <= len(self.raw) - self.at:
            raise self.wrong(f"it ends at byte {len(self.raw)}, and should go on")
        self.at += count
        return self.raw[self.at - count : self.at]

    def fields(self, form: str) -> tuple[Any, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)).tobytes())

    def name(self) -> str:
        """The four letters with which faiss begins each part."""
        return self.take(4).tobytes().decode("latin-1")

    def count(self) -> int:
        return int(self.fields("Q")[0])

    def numbers(self, count: int) -> Ids:
        return self.take(8 * count).view("<i8").astype(np.int64)

    def expect(self, right: object, what: str, value: object) -> None:
        if value != right:
            raise self.wrong(f"{what} is {value!r}, and must be {right!r}")

    def wrong(self, why: str) -> ValueError:
        return ValueError(f"{self.path} is damaged, or no IndexBinaryIVF of faiss: {why}")


def _lists(file: _Reader) -> tuple[Packed, list[tuple[Packed, Ids]]]:
    """The centres (n_lists, n_bytes), and codes and ids of each list."""
    file.expect(KIND.decode(), "its kind", file.name())
    width, n = _head(file)
    n_lists, _ = file.fields("QQ")  # and n_probe
    if not n_lists:
        raise file.wrong("it has no lists")
    centres = _flat(file)
    file.expect((n_lists, width), "the shape of its centres", centres.shape)
    _skip_direct_map(file, n)
    file.expect("ilar", "the kind of its lists", file.name())
    file.expect((n_lists, width), "the shape of its lists", file.fields("QQ"))
    sizes = _sizes(file, n_lists)
    lists = []
    for size in sizes:
        codes = file.take(size * width).reshape(size, width)
        lists.append((codes, file.numbers(size)))
    file.expect(n, "the number of its codes", sum(sizes))
    file.expect(file.at, "its size", len(file.raw))
    return centres, lists


def _head(file: _Reader) -> tuple[int, int]:
    """Bytes per code and number of codes, from the head of a binary index of faiss."""
    d, width, n, trained, _ = file.fields("iiqBi")  # and the metric
    if not (1 <= width <= n_bytes(MAX_BITS) and n >= 0):
        raise file.wrong(f"it says {n} codes of {width} bytes")
    file.expect(8 * width, "its number of bits", d)
    file.expect(1, "its mark of being trained", trained)
    return width, n


def _flat(file: _Reader) -> Packed:
    """The codes (n, n_bytes) of an IndexBinaryFlat."""
    file.expect("IBxF", "the kind of its centres", file.name())
    width, n = _head(file)
    file.expect(n * width, "the size of its centres", file.count())
    return file.take(n * width).reshape(n, width)


def _skip_direct_map(file: _Reader, n: int) -> None:
    """Skip the map from ids to places, which some files have: n numbers, or n pairs."""
    kind, count = file.fields("BQ")
    if kind > 2:
        raise file.wrong(f"it has a map of an unknown kind, {kind}")
    file.expect(n if kind == 1 else 0, "the size of its map", count)
    file.take(8 * count)
    if kind == 2:
        file.expect(n, "the number of pairs in its map", file.count())
        file.take(16 * n)


def _sizes(file: _Reader, n_lists: int) -> list[int]:
    """Number of codes per list; the file has all, or pairs (list, size) of nonempty lists."""
    kind, count = file.name(), file.count()
    if kind == "full":
        file.expect(n_lists, "the number of its lists", count)
        return [int(size) for size in file.numbers(count)]
    file.expect("sprs", "the kind of its sizes", kind)
    pairs = [int(number) for number in file.numbers(count)]
    which, some = pairs[::2], pairs[1::2]
    known = set(which) <= set(range(n_lists))
    if not known or len(set(which)) < len(which) or len(which) != len(some):
        raise file.wrong("its sizes name a list twice, or one that it does not have")
    sizes = [0] * n_lists
    for i, size in zip(which, some, strict=True):
        sizes[i] = size
    return sizes
