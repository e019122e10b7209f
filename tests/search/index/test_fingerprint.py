"""The fingerprint of the model in every kind of index: kept, written, read, compared."""

import copy
import pickle
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash import ApproximateIndex, HammingIndex, NamedIndex
from auxhash.compute.fingerprint import OtherModelError, UnknownModelWarning, digest
from auxhash.search.index import block, file, listfile, load

ONE, TWO = digest([b"one"]), digest([b"two"])
CODES = np.random.default_rng(0).integers(0, 256, (40, 2), np.uint8)
FINGERPRINTS = st.none() | st.binary(min_size=8, max_size=8).map(bytes.hex)


def exact(fingerprint=None):
    return HammingIndex(16, fingerprint=fingerprint).add(CODES)


def approximate(fingerprint=None):
    return ApproximateIndex(16, fingerprint=fingerprint).add(CODES)


def named(fingerprint=None):
    names = [f"n{i}" for i in range(len(CODES))]
    return NamedIndex(HammingIndex(16, fingerprint=fingerprint)).add(CODES, names)


def named_approximate(fingerprint=None):
    names = [f"n{i}" for i in range(len(CODES))]
    return NamedIndex(ApproximateIndex(16, fingerprint=fingerprint)).add(CODES, names)


KINDS = (exact, approximate, named, named_approximate)


@given(st.binary(max_size=44), FINGERPRINTS)
def test_fields_and_fingerprint_come_back(fields, fingerprint):
    sealed = block.sealed(fields, fingerprint)
    assert len(sealed) == 64
    assert block.opened(sealed, len(fields)) == (fields, fingerprint)


@given(st.binary(max_size=44), FINGERPRINTS, st.integers(0, 511))
def test_every_flipped_bit_of_a_block_is_found(fields, fingerprint, bit):
    damaged = bytearray(block.sealed(fields, fingerprint))
    damaged[bit // 8] ^= 1 << (bit % 8)
    assert block.opened(bytes(damaged), len(fields)) is None


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("fingerprint", [None, ONE, "0" * 16])
def test_it_is_kept_through_files_pickles_and_copies(tmp_path, make, fingerprint):
    index = make(fingerprint)
    assert index.fingerprint == fingerprint
    index.save(tmp_path / "i")
    for other in (
        load(tmp_path / "i"),
        type(index).load(tmp_path / "i"),
        pickle.loads(pickle.dumps(index)),
        copy.copy(index),
        copy.deepcopy(index),
    ):
        assert (other.fingerprint, len(other)) == (fingerprint, 40)


@pytest.mark.parametrize("make", KINDS)
def test_load_compares_it_with_that_of_the_queries(tmp_path, make):
    make(ONE).save(tmp_path / "one")
    make().save(tmp_path / "none")
    for read in (load, type(make()).load):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read(tmp_path / "one", fingerprint=ONE).fingerprint == ONE
        with pytest.raises(OtherModelError, match=f"one was made by model {ONE} and the queries"):
            read(tmp_path / "one", fingerprint=TWO)
        with pytest.warns(UnknownModelWarning, match="none does not say which model"):
            assert read(tmp_path / "none", fingerprint=TWO).fingerprint == TWO
        with pytest.raises(ValueError, match="fingerprint must be"):
            read(tmp_path / "one", fingerprint="one")


def test_what_is_no_fingerprint_is_refused(tmp_path):
    for kind in (HammingIndex, ApproximateIndex):
        with pytest.raises(ValueError, match="fingerprint must be"):
            kind(16, fingerprint="one")
    index = exact()
    index.fingerprint = "one"
    with pytest.raises(ValueError, match="fingerprint must be"):
        index.save(tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_it_comes_with_the_codes_of_another_index_but_not_from_faiss():
    assert ApproximateIndex.from_exact(exact(ONE)).fingerprint == ONE
    assert HammingIndex.from_faiss(exact(ONE).to_faiss()).fingerprint is None


def test_pickles_from_before_there_were_fingerprints():
    for index in (exact(), approximate()):
        state = index.__getstate__()
        del state["fingerprint"]
        old = type(index).__new__(type(index))
        old.__setstate__(state)
        assert old.fingerprint is None
        np.testing.assert_array_equal(old.search(CODES, 3)[0], index.search(CODES, 3)[0])


def old_header(fields):
    """64 bytes as the documents have them, and as they were before there were fingerprints."""
    return (fields + struct.pack("<I", zlib.crc32(fields))).ljust(64, b"\0")


def test_exact_files_without_one_are_what_they_were(tmp_path):
    body = CODES.T.tobytes().ljust(128, b"\0")
    fields = struct.pack("<8sQQQQI", b"AUXHIDX1", 16, 40, 40, 0, zlib.crc32(body))
    (tmp_path / "old").write_bytes(old_header(fields) + body)
    old = HammingIndex.load(tmp_path / "old")
    assert old.fingerprint is None
    np.testing.assert_array_equal(old.packed, CODES)
    exact().save(tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == (tmp_path / "old").read_bytes()
    exact(ONE).save(tmp_path / "marked")
    marked = (tmp_path / "marked").read_bytes()
    assert marked[:48] == old_header(fields)[:48]
    assert marked[48:60] == bytes.fromhex(ONE) + struct.pack("<I", 1)
    assert marked[60:64] == struct.pack("<I", zlib.crc32(marked[:60]))
    assert marked[file.HEADER_BYTES :] == body


def test_approximate_files_without_one_are_what_they_were(tmp_path):
    approximate().save(tmp_path / "new")
    inner = (tmp_path / "new").read_bytes()[:-64]
    fields = struct.pack("<8sQQQI", listfile.MAGIC, 16, 40, len(inner), zlib.crc32(inner))
    assert (tmp_path / "new").read_bytes() == inner + old_header(fields)
    assert ApproximateIndex.load(tmp_path / "new").fingerprint is None
    approximate(ONE).save(tmp_path / "marked")
    assert (tmp_path / "marked").read_bytes()[-16:-8].hex() == ONE


def test_named_files_state_it_once(tmp_path):
    named().save(tmp_path / "none")
    named(ONE).save(tmp_path / "one")
    none, one = ((tmp_path / name).read_bytes() for name in ("none", "one"))
    assert none[:48] + none[64:] == one[:48] + one[64:]
    (tmp_path / "forged").write_bytes(one[:-64] + block.sealed(one[-64:-36], ONE))
    with pytest.raises(ValueError, match="its last bytes do not match their checksum"):
        NamedIndex.load(tmp_path / "forged")
