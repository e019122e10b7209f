"""NamedIndex: names in place of numbers, and their file."""

import copy
import json
import pickle
import re
import stat
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.compute.checks import ArgumentError
from auxhash.search.index import ApproximateIndex, HammingIndex, NamedIndex, load, namesfile

CODES = np.random.default_rng(0).integers(0, 256, (60, 2), np.uint8)
NAMES = [f"photo {i}.png" for i in range(60)]
KINDS = [HammingIndex, ApproximateIndex]


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 30), max_size=8)), max_size=8))
def test_names_stay_with_their_codes(changes):
    index, codes_by_name = NamedIndex(HammingIndex(16)), {}
    for adding, picked in changes:
        if adding:
            new = [i for i in picked if f"n{i}" not in codes_by_name]
            index.add(CODES[new].reshape(-1, 2), [f"n{i}" for i in new])
            codes_by_name |= {f"n{i}": CODES[i] for i in new}
        else:
            gone = [f"n{i}" for i in picked]
            assert index.remove(gone) == sum(name in codes_by_name for name in gone)
            codes_by_name = {name: code for name, code in codes_by_name.items() if name not in gone}
        assert set(index.names) == set(codes_by_name)
        assert len(index) == len(codes_by_name)
    if codes_by_name:
        distances, names = index.search(CODES[:3], 40)
        for query in range(3):
            assert set(names[query]) == set(codes_by_name)
            apart = [np.bitwise_count(codes_by_name[n] ^ CODES[query]).sum() for n in names[query]]
            assert distances[query].tolist() == apart


@pytest.mark.parametrize("kind", KINDS)
def test_one_file(kind, tmp_path):
    path = tmp_path / "named.index"
    index = NamedIndex(kind(16)).add(CODES, NAMES)
    index.remove(NAMES[5:9])
    index.save(path)
    back = load(path)
    assert isinstance(back, NamedIndex)
    assert isinstance(back.index, kind)
    assert "photo 9.png" in back
    assert "photo 5.png" not in back
    assert set(back.names) == {*NAMES[:5], *NAMES[9:]}
    back.add(CODES[5:6], ["new"])
    assert back.radius_search(CODES[5], 0)[1] == [["new"]]
    back.save(path)
    assert len(load(path)) == 57
    assert [file.name for file in tmp_path.iterdir()] == ["named.index"]


def test_a_new_file_has_the_permissions_of_others(tmp_path):
    (tmp_path / "other").touch()
    NamedIndex(HammingIndex(16)).add(CODES, NAMES).save(tmp_path / "named")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_load_knows_the_kinds(tmp_path):
    for kind in KINDS:
        kind(16).add(CODES).save(tmp_path / kind.__name__)
        assert isinstance(load(tmp_path / kind.__name__), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_not_lost_unseen(kind, tmp_path):
    """Names would be left behind by who reads the codes only, and saves them again."""
    NamedIndex(kind(16)).add(CODES, NAMES).save(tmp_path / "named")
    with pytest.raises(ValueError, match=r"an index with names: NamedIndex\.load reads it"):
        kind.load(tmp_path / "named")


@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_is_told(kind, tmp_path):
    path = tmp_path / "named"
    NamedIndex(kind(16)).add(CODES[:20], NAMES[:20]).save(path)
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at])
        with pytest.raises(ValueError, match="named"):
            NamedIndex.load(path)
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(ValueError, match="named"):
            NamedIndex.load(path)


@pytest.mark.parametrize(
    ("ids", "names", "why"),
    [
        ([0, 1], ["a", "a"], "one name for each of 2 codes"),
        ([0, 0], ["a", "b"], "one name for each of 2 codes"),
        ([0, 1], ["a"], "one name for each of 2 codes"),
        ([0, 1], ["a", 3], "one name for each of 2 codes"),
        ([0, 1], {"a": 1}, "one name for each of 2 codes"),
        ([0, 7], ["a", "b"], "its names are not those of its codes"),
        ([0], ["a"], "its names are not those of its codes"),
    ],
)
def test_a_forged_file_is_refused(ids, names, why, tmp_path):
    path = tmp_path / "forged"
    HammingIndex(16).add(CODES[:2]).save(path)
    size = path.stat().st_size
    content = np.array(ids, "<i8").tobytes() + json.dumps(names).encode()
    head = namesfile.FIELDS.pack(namesfile.MAGIC, size, len(ids), zlib.crc32(content))
    head += struct.pack("<I", zlib.crc32(head))
    path.write_bytes(path.read_bytes() + content + head.ljust(64, b"\0"))
    with pytest.raises(ValueError, match=why):
        load(path)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (NAMES[:59], "one for each of 60 codes, got 59"),
        (NAMES[:59] + NAMES[:1], r"must not name a code twice, 'photo 0\.png' does"),
        ([*NAMES[:59], "taken"], "must be new, 'taken' is taken"),
        ([*NAMES[:59], ""], "none of it empty, got ''"),
        ([*NAMES[:59], 7], "must be a list of text, none of it empty, got 7"),
        ([*NAMES[:59], "x" * 1025], r"at most 1,024 bytes in UTF-8; row 59 has 1,025: 'xxx"),
        ([[name] for name in NAMES], r"got shape \(60, 1\)"),
        ("abc", "got the text 'abc'"),
        ([*NAMES[:59], "\udc80.png"], r"text that UTF-8 can write, got '\\udc80\.png'"),
    ],
)
def test_wrong_names(names, why):
    index = NamedIndex(HammingIndex(16)).add(CODES[:1], ["taken"])
    with pytest.raises(ValueError, match=why):
        index.add(CODES, names)
    assert len(index) == 1
    assert index.names == ["taken"]


def test_an_index_with_codes_gets_no_names():
    with pytest.raises(ValueError, match="must be empty"):
        NamedIndex(HammingIndex(16).add(CODES))


@pytest.mark.parametrize("index", [8, None, "16", [], HammingIndex, NamedIndex(HammingIndex(16))])
def test_what_is_no_index_gets_no_names(index):
    why = rf"index must be a HammingIndex or an ApproximateIndex, got {re.escape(repr(index))}"
    with pytest.raises(ArgumentError, match=why):
        NamedIndex(index)


@pytest.mark.parametrize("names", [8, None, b"ab", {"a", "b"}, ["a", None]])
def test_names_to_remove_are_checked_as_those_to_add(names):
    index = NamedIndex(HammingIndex(16)).add(CODES[:2], ["a", "b"])
    for call in (index.remove, lambda names: index.add(CODES[2:4], names)):
        with pytest.raises(ArgumentError, match="names must be a list of text, none of it empty"):
            call(names)
    assert index.names == ["a", "b"]
    assert index.remove(["a", "unknown", "a"]) == 1


@pytest.mark.parametrize(
    ("codes", "number", "why"),
    [
        (CODES, -1, "must be a whole number of at least .*, got -1"),
        (CODES, "2", "must be a whole number of at least .*, got '2'"),
        (8, 1, r"codes must be of shape \(n, n_bits\), got shape \(\)"),
        (None, 1, r"codes must be of shape \(n, n_bits\), got shape \(\)"),
        (CODES[:, :1], 1, "codes of 16 bits must be"),
    ],
)
def test_wrong_searches(codes, number, why):
    index = NamedIndex(HammingIndex(16)).add(CODES, NAMES)
    for search in (index.search, index.radius_search):
        with pytest.raises(ValueError, match=why):
            search(codes, number)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda i: pickle.loads(pickle.dumps(i))]
)
def test_a_copy_is_an_index_of_its_own(kind, copied):
    index = NamedIndex(kind(16)).add(CODES[:50], NAMES[:50])
    twin = copied(index)
    index.add(CODES[50:], NAMES[50:])
    assert twin.remove(NAMES[:3]) == 3
    assert (index.names, twin.names) == (NAMES, NAMES[3:50])
    twin.add(CODES[:1], ["another"])
    assert "another" in twin.search(CODES[:1], 5)[1][0]
    assert len(index) == 60
