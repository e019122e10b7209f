"""Damaged or forged files are refused; unchecked ones never lead outside an array."""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from auxhash import ApproximateIndex, HammingIndex
from auxhash.codes import MAX_BITS
from auxhash.search.index import file

FLIPS = 5000 if os.environ.get("AUXHASH_SOAK") else 300


def make(path, with_ids=True, n=40, n_bits=12):
    rng = np.random.default_rng(0)
    packed = np.packbits(rng.random((n, n_bits)) < 0.5, axis=1, bitorder="little")
    index = HammingIndex(n_bits).add(packed, rng.permutation(25 * n)[:n] if with_ids else None)
    index.save(path)
    return path.read_bytes()


def forge(good, body=None, **fields):
    """A file with other fields or content, and with matching checksums."""
    names = ("magic", "n_bits", "n", "next_id", "has_ids", "sum")
    head = dict(zip(names, file.FIELDS.unpack(good[: file.FIELDS.size]), strict=True))
    body = good[file.HEADER_BYTES :] if body is None else body
    packed = file.FIELDS.pack(*{**head, "sum": zlib.crc32(body), **fields}.values())
    start = packed + struct.pack("<I", zlib.crc32(packed))
    return start.ljust(file.HEADER_BYTES, b"\0") + body


def test_forging_nothing_gives_the_same_file(tmp_path):
    good = make(tmp_path / "i")
    assert forge(good) == good


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("with_ids", [True, False])
def test_every_flipped_bit_is_found(tmp_path, with_ids, mmap):
    path = tmp_path / "i"
    good = make(path, with_ids)
    bits = np.random.default_rng(1).permutation(8 * len(good))[:FLIPS]
    header = np.arange(8 * file.HEADER_BYTES)
    for bit in [*header, *bits]:
        content = bytearray(good)
        content[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"i (is|has)"):
            HammingIndex.load(path, mmap=mmap)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 40, 63, 64, 65, 100, -1])
def test_files_cut_short(tmp_path, size):
    path = tmp_path / "i"
    path.write_bytes(make(path)[:size])
    for check in (True, False):
        with pytest.raises(ValueError, match=r"i (is|has)"):
            HammingIndex.load(path, check=check)


@pytest.mark.parametrize(
    "fields",
    [
        {"n_bits": 0},
        {"n_bits": MAX_BITS + 1},
        {"n_bits": 2**64 - 1},
        {"n_bits": 11},  # padding bits would be set
        {"n": 2**64 - 1},
        {"n": 2**61, "n_bits": 8},
        {"n": 0},
        {"has_ids": 2},
        {"has_ids": 2**63},
        {"has_ids": 0},
        {"next_id": 2**63 + 1},
        {"next_id": 39},
        {"next_id": 500},  # below the largest id
    ],
)
def test_forged_headers(tmp_path, fields):
    path = tmp_path / "i"
    path.write_bytes(forge(make(path), **fields))
    with pytest.raises(ValueError, match=r"i (is|has)"):
        HammingIndex.load(path)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([-1], "it has -1"),
        ([-(2**63)], "it has -9223372036854775808"),
        ([2**62], "it has 4611686018427387904"),
        ([7, 7], "two codes of id 7"),
    ],
)
def test_forged_ids(tmp_path, ids, message):
    path = tmp_path / "i"
    good = make(path)
    body = bytearray(good[file.HEADER_BYTES :])
    body[-8 * len(ids) :] = np.array(ids, "<i8").tobytes()
    path.write_bytes(forge(good, bytes(body)))
    with pytest.raises(ValueError, match=message):
        HammingIndex.load(path)


def test_forged_padding(tmp_path):
    path = tmp_path / "i"
    good = make(path)
    for at, message in [(40, "padding bits beyond n_bits=12"), (80, "between codes and ids")]:
        body = bytearray(good[file.HEADER_BYTES :])
        body[at] |= 0x80
        path.write_bytes(forge(good, bytes(body)))
        with pytest.raises(ValueError, match=message):
            HammingIndex.load(path)


def test_the_largest_next_id(tmp_path):
    index = HammingIndex(8).add(np.ones((1, 1), np.uint8), [2**63 - 1])
    index.save(tmp_path / "i")
    loaded = HammingIndex.load(tmp_path / "i")
    assert loaded.ids.tolist() == [2**63 - 1]
    with pytest.raises(ValueError, match="largest id"):
        loaded.add(np.ones((1, 1), np.uint8))


def test_a_trusted_file_is_not_read_through(tmp_path):
    path = tmp_path / "i"
    good = make(path)
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 64]))
    with pytest.raises(ValueError, match="sum"):
        HammingIndex.load(path)
    with pytest.raises(ValueError, match="sum"):
        HammingIndex.load(path, mmap=False)
    assert len(HammingIndex.load(path, check=False)) == 40
    with pytest.raises(ValueError, match="check must be True or False"):
        HammingIndex.load(path, check="yes")


def test_unchecked_content_stays_inside_the_arrays(tmp_path):
    """Padding bits and ids of any value, in a separate process so that a crash is noticed."""
    path = tmp_path / "i"
    make(path, n=9_000, n_bits=65)
    program = f"""
import numpy as np
from auxhash import ApproximateIndex, HammingIndex
raw = bytearray(open({str(path)!r}, "rb").read())
raw[64:] = np.random.default_rng(0).integers(0, 256, len(raw) - 64, dtype=np.uint8).tobytes()
open({str(path)!r}, "wb").write(raw)
import auxhash.search.index.multiindex as tables
tables.MIN_CODES, tables.SCANS_PER_TABLE = 1, 0
index = HammingIndex.load({str(path)!r}, check=False)
queries = np.zeros((16, 9), np.uint8)
for _ in range(3):
    for k in (1, 700, 9_000):
        distances, ids = index.search(queries, k)
        assert distances.min() >= 0 and distances.max() <= 72
    for r in (3, 40, 65):
        index.radius_search(queries, r)
index.packed, index.ids, index.remove([3]), index.add(queries)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_pipes_and_folders_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for load in (HammingIndex.load, ApproximateIndex.load):
        with pytest.raises(OSError, match="is a pipe, and an index is a regular file"):
            load(tmp_path / "pipe")
        with pytest.raises(IsADirectoryError, match="is a folder"):
            load(tmp_path)
