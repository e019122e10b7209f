"""Files of ApproximateIndex: faiss reads them, and damaged ones never reach it."""

import os
import struct
import subprocess
import sys
import zlib

import faiss
import numpy as np
import pytest

from auxhash.search.index import ApproximateIndex, HammingIndex, listfile

FLIPS = 5000 if os.environ.get("AUXHASH_SOAK") else 300
RNG = np.random.default_rng(0)
CODES = np.packbits(RNG.random((60, 12)) < 0.5, axis=1, bitorder="little")


def make(path, n_lists=4):
    index = ApproximateIndex(12, n_lists=n_lists, n_probe=n_lists)
    index.add(CODES, RNG.permutation(1000)[:60]).save(path)
    return path.read_bytes()


def plain(good):
    """The part that faiss wrote."""
    return good[: -listfile.TRAILER_BYTES]


def forge(inner, **fields):
    """A file with a trailer whose checksums are right."""
    values = {"magic": listfile.MAGIC, "n_bits": 12, "next_id": 1000, "size": len(inner)}
    values |= {"sum": zlib.crc32(inner), **fields}
    head = listfile.FIELDS.pack(*values.values())
    return inner + (head + struct.pack("<I", zlib.crc32(head))).ljust(listfile.TRAILER_BYTES, b"\0")


def same_answers(a, b):
    for x, y in zip(a.search(CODES, 9), b.search(CODES, 9), strict=True):
        np.testing.assert_array_equal(x, y)


def test_faiss_reads_our_files_and_we_read_its(tmp_path):
    index = ApproximateIndex(12, n_lists=4, n_probe=4).add(CODES)
    index.save(tmp_path / "ours")
    theirs = faiss.read_index_binary(str(tmp_path / "ours"))
    theirs.nprobe = 4
    np.testing.assert_array_equal(theirs.search(CODES, 9)[0], index.search(CODES, 9)[0])
    faiss.write_index_binary(theirs, str(tmp_path / "theirs"))
    same_answers(ApproximateIndex.load(tmp_path / "theirs", 12, n_probe=4), index)
    same_answers(ApproximateIndex.load(tmp_path / "ours", n_probe=4), index)
    assert ApproximateIndex.load(tmp_path / "theirs").n_bits == 16
    assert ApproximateIndex.load(tmp_path / "ours").n_bits == 12
    with pytest.raises(ValueError, match="n_bits=11 does not fit the file's codes of 12"):
        ApproximateIndex.load(tmp_path / "ours", n_bits=11)
    for n_bits, message in [(8, "does not fit the file's 2 bytes"), (11, "padding bits")]:
        with pytest.raises(ValueError, match=message):
            ApproximateIndex.load(tmp_path / "theirs", n_bits=n_bits)


@pytest.mark.parametrize("kind", [faiss.DirectMap.Array, faiss.DirectMap.Hashtable])
def test_files_with_a_direct_map_or_few_full_lists(tmp_path, kind):
    inner = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(16), 16, 40)
    inner.cp.min_points_per_centroid = 1
    inner.train(CODES)
    inner.add(CODES[:5])
    inner.set_direct_map_type(kind)
    faiss.write_index_binary(inner, str(tmp_path / "i"))
    loaded = ApproximateIndex.load(tmp_path / "i", n_bits=12, n_probe=40)
    exact = HammingIndex(12).add(CODES[:5])
    np.testing.assert_array_equal(loaded.search(CODES, 5)[0], exact.search(CODES, 5)[0])
    assert set(loaded.add(CODES[5:6]).search(CODES[:1], 6)[1][0]) == {0, 1, 2, 3, 4, 5}


def test_a_removed_id_is_not_given_again(tmp_path):
    index = ApproximateIndex(12, n_lists=2, n_probe=2).add(CODES)
    assert index.remove([58, 59]) == 2
    index.save(tmp_path / "i")
    loaded = ApproximateIndex.load(tmp_path / "i", n_probe=2).add(CODES[:1])
    ids = loaded.search(CODES[:1], 60)[1][0]
    assert 60 in ids
    assert 59 not in ids
    exact = HammingIndex(12).add(CODES)
    exact.remove([59])
    assert 60 in ApproximateIndex.from_exact(exact, 2, 2).add(CODES[:1]).search(CODES[:1], 60)[1]


def test_an_emptied_index_can_be_saved(tmp_path):
    index = ApproximateIndex(12, n_lists=2).add(CODES)
    assert index.remove(np.arange(60)) == 60
    index.save(tmp_path / "i")
    loaded = ApproximateIndex.load(tmp_path / "i")
    assert len(loaded) == 0
    with pytest.raises(ValueError, match="index is empty"):
        loaded.search(CODES, 1)
    assert loaded.add(CODES[:1]).search(CODES[:1], 1)[1].tolist() == [[60]]


@pytest.mark.parametrize("n_lists", [4, 30])
def test_every_flipped_bit_is_found(tmp_path, n_lists):
    path = tmp_path / "i"
    good = make(path, n_lists)
    bits = np.random.default_rng(1).permutation(8 * len(good))[:FLIPS]
    trailer = np.arange(8 * (len(good) - listfile.TRAILER_BYTES), 8 * len(good))
    for bit in [*bits, *trailer, *range(8 * 40)]:
        content = bytearray(good)
        content[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(content)
        with pytest.raises(ValueError, match="i is damaged"):
            ApproximateIndex.load(path)


def test_files_cut_short(tmp_path):
    path = tmp_path / "i"
    good = make(path)
    for size in [*range(0, len(good), 7), len(good) - 1]:
        if size == len(plain(good)):
            continue
        path.write_bytes(good[:size])
        with pytest.raises(ValueError, match="i is damaged"):
            ApproximateIndex.load(path)


def test_forged_trailers(tmp_path):
    path = tmp_path / "i"
    inner = plain(make(path))
    path.write_bytes(forge(inner))
    assert len(ApproximateIndex.load(path)) == 60
    wrong = [
        {"n_bits": 0},
        {"n_bits": 11},
        {"n_bits": 2**40},
        {"n_bits": 17},
        {"next_id": 2**63 + 1},
        {"next_id": 5},
        {"size": 2**60},
        {"size": 10},
    ]
    for fields in wrong:
        path.write_bytes(forge(inner, **fields))
        with pytest.raises(ValueError, match=r"is damaged|does not fit"):
            ApproximateIndex.load(path)


def places(inner):
    """Offset and struct format of each field of faiss's part, for an index of 4 lists."""
    centres = 41
    lists = inner.index(b"ilar")
    return {
        "d": (4, "i"),
        "code_size": (8, "i"),
        "ntotal": (12, "q"),
        "is_trained": (20, "B"),
        "nlist": (25, "Q"),
        "centres' d": (centres + 4, "i"),
        "centres' code_size": (centres + 8, "i"),
        "centres' ntotal": (centres + 12, "q"),
        "centres' bytes": (centres + 25, "Q"),
        "direct map": (lists - 9, "B"),
        "direct map's size": (lists - 8, "Q"),
        "lists": (lists + 4, "Q"),
        "lists' code_size": (lists + 12, "Q"),
        "sizes": (lists + 24, "Q"),
        "size 0": (lists + 32, "Q"),
        "size 3": (lists + 56, "Q"),
    }


VALUES = (0, 1, 2, 3, 5, 2**31 - 1, 2**40, 2**61, 2**63 - 1, 2**63, 2**64 - 1)


def test_forged_lists_never_reach_faiss(tmp_path):
    """In a separate process, so that a crash is noticed."""
    inner = plain(make(tmp_path / "i"))
    made = 0
    for at, form in places(inner).values():
        right = struct.unpack_from("<" + form, inner, at)[0]
        for value in VALUES:
            value %= 1 << (8 * struct.calcsize("<" + form))
            if form in "iq" and value >= 1 << (8 * struct.calcsize("<" + form) - 1):
                value -= 1 << (8 * struct.calcsize("<" + form))
            if value == right:
                continue
            forged = bytearray(inner)
            struct.pack_into("<" + form, forged, at, value)
            (tmp_path / f"{made}.plain").write_bytes(forged)
            (tmp_path / f"{made}.ours").write_bytes(forge(bytes(forged)))
            made += 1
    program = f"""
from pathlib import Path
from auxhash.search.index import ApproximateIndex
loaded = []
for path in sorted(Path({str(tmp_path)!r}).glob("*.*")):
    try:
        ApproximateIndex.load(path, n_bits=12)
        loaded.append(path.name)
    except ValueError as error:
        assert "is damaged" in str(error), error
print(loaded)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr
    assert made > 100


@pytest.mark.parametrize(
    ("ids", "message"), [([-1], "it has -1"), ([2**62], "it has 461168"), ([7, 7], "of id 7")]
)
def test_forged_ids(tmp_path, ids, message):
    path = tmp_path / "i"
    inner = bytearray(plain(make(path)))
    inner[-8 * len(ids) :] = np.array(ids, "<i8").tobytes()
    path.write_bytes(forge(bytes(inner)))
    with pytest.raises(ValueError, match=message):
        ApproximateIndex.load(path)


def test_lists_named_wrongly(tmp_path):
    """In a file that gives the sizes of nonempty lists only."""
    inner = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(16), 16, 40)
    inner.cp.min_points_per_centroid = 1
    inner.train(CODES)
    inner.add(CODES[:5])
    good = bytes(faiss.serialize_index_binary(inner))
    at = good.index(b"sprs") + 12
    second = struct.unpack_from("<Q", good, at + 16)[0]
    for which in (40, 2**63, second):
        forged = bytearray(good)
        struct.pack_into("<Q", forged, at, which)
        (tmp_path / "i").write_bytes(forged)
        with pytest.raises(ValueError, match="name a list twice, or one that it does not have"):
            ApproximateIndex.load(tmp_path / "i")


def test_other_kinds_of_index_are_refused(tmp_path):
    graph = faiss.IndexBinaryHNSW(16, 4)
    over = faiss.IndexBinaryIVF(graph, 16, 4)
    over.cp.min_points_per_centroid = 1
    over.train(CODES)
    for other, message in [(graph, "its kind is"), (over, "the kind of its centres is")]:
        faiss.write_index_binary(other, str(tmp_path / "i"))
        with pytest.raises(ValueError, match=message):
            ApproximateIndex.load(tmp_path / "i")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "i"
    good = make(path)

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ApproximateIndex(12, n_lists=1).add(CODES).save(path)
    assert path.read_bytes() == good
    assert os.listdir(tmp_path) == ["i"]


def test_the_number_of_threads_comes_back():
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(3)
        index = ApproximateIndex(12, n_lists=2, n_jobs=1).add(CODES)
        index.search(CODES, 3)
        index.radius_search(CODES, 3)
        index.remove([1])
        with pytest.raises(ValueError, match="n_lists"):
            ApproximateIndex(12, n_lists=99, n_jobs=1).add(CODES)
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


def test_n_probe_may_change_but_not_to_anything():
    index = ApproximateIndex(12, n_lists=2).add(CODES)
    index.n_probe = -1
    with pytest.raises(ValueError, match="n_probe must be"):
        index.search(CODES, 1)
