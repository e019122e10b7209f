"""Vectors and payloads beside codes, and searches among some of the codes, on each engine."""

import sqlite3

import numpy as np
import pytest

from auxhash import stores
from auxhash.stores import Having, StoreError
from auxhash.stores.points import MAX_CHARACTERS
from tests.stores.test_contract import LARGEST, check, random_codes, random_ids, truth

PAYLOADS = [
    {"colour": "red", "size": 5, "new": True},
    {"colour": "grün", "size": 5.0, "new": False, 'a"b\\c': "x"},
    {"colour": ["red"], "size": "5", "new": 1},
    {"colour": None, "size": 2**63 - 1, "inner": {"colour": "red"}},
    {"size": -3, "new": "true", "colour": "red "},
    {"size": 2**63, "": "empty", "text": "\u2028 \x1f '\"; DROP TABLE codes"},
    {},
    None,
    {"colour": "red", "long": "z" * (MAX_CHARACTERS + 1), "float": 1e22, "deep": [[{"a": [None]}]]},
]
ASKED = [
    Having("colour", ("red",)),
    Having("colour", ("grün", "red", "blue")),
    Having("size", (5,)),
    Having("size", ("5",)),
    Having("size", (2**63 - 1, -3)),
    Having("new", (True,)),
    Having("new", (False, 1)),
    Having('a"b\\c', ("x",)),
    Having("", ("empty",)),
    Having("text", ("\u2028 \x1f '\"; DROP TABLE codes",)),
    Having("nothing", ("x",)),
    Having("inner", ("red",)),
]


@pytest.fixture
def pointed(url):
    """The URL, where the engine keeps points."""
    if not url.startswith(("sqlite", "postgresql")):
        pytest.skip("does not apply: the store holds codes only")
    return url


def test_a_search_among_ids(url):
    rng = np.random.default_rng(0)
    ids, packed = random_ids(rng, 300), random_codes(rng, 300, 20, tied=True)
    queries = random_codes(rng, 3, 20, tied=True)
    with stores.open(url, n_bits=20) as store:
        store.upsert(ids[:200], packed[:200])
        store.upsert(ids[200:], packed[200:])
        store.delete(ids[:5])
        for size in (0, 1, 30, 295):
            some = rng.permutation(300)[:size]
            there = some[some >= 5]
            among = np.concatenate([ids[some], ids[some][:3], [12345678901]])
            expected = [truth(ids[there], packed[there], query) for query in queries]
            near, hits = store.search(queries, 7, among=among)
            np.testing.assert_array_equal(near, [right[:7] for right, _ in expected])
            np.testing.assert_array_equal(hits, [names[:7] for _, names in expected])
            near, hits = store.search_radius(queries, 8, among=among)
            for close, names, (right, ours) in zip(near, hits, expected, strict=True):
                np.testing.assert_array_equal(close, right[right <= 8])
                np.testing.assert_array_equal(names, ours[right <= 8])


def test_codes_are_read(url):
    rng = np.random.default_rng(1)
    packed = random_codes(rng, 1500, 20)
    with stores.open(url, n_bits=20) as store:
        store.upsert(np.arange(1500) * 3, packed)
        points = store.read([9, 3 * 1499, 5, LARGEST, 9])
        assert sorted(points) == [9, 3 * 1499]
        np.testing.assert_array_equal(points[9].code, packed[3])
        assert points[9].vector is None
        assert points[9].payload is None
        assert len(store.read(np.arange(4500), vectors=False)) == 1500
        assert store.read([]) == {}


def test_codes_only(url):
    with stores.open(url, n_bits=8) as store:
        if store.keeps_points:
            pytest.skip("does not apply: the store keeps points")
        for more in ({"vectors": [[1.0]]}, {"payloads": [{"a": 1}]}):
            with pytest.raises(ValueError, match=r"holds codes only; sqlite and postgresql stores"):
                store.upsert([1], [[1] * 8], **more)
        with pytest.raises(ValueError, match="holds codes only"):
            store.search([[1] * 8], 1, among=Having("a", (1,)))
        assert len(store) == 0


def test_points_are_read_as_they_were_given(pointed):
    rng = np.random.default_rng(2)
    n = len(PAYLOADS)
    packed, vectors = (
        random_codes(rng, n, 16),
        rng.normal(size=(n, 5)) * 10.0 ** rng.integers(-9, 9),
    )
    some = [None if i == 4 else vector for i, vector in enumerate(vectors)]
    ids = [LARGEST - i for i in range(n)]
    with stores.open(pointed, n_bits=16) as store:
        store.upsert(ids, packed, vectors=some, payloads=PAYLOADS)
    with stores.open(pointed) as store:
        check(store, np.array(ids), packed, packed[:2])
        points = store.read(ids)
        for i, name in enumerate(ids):
            np.testing.assert_array_equal(points[name].code, packed[i])
            assert repr(points[name].payload) == repr(PAYLOADS[i])
            if some[i] is None:
                assert points[name].vector is None
            else:
                np.testing.assert_array_equal(points[name].vector, some[i])
        assert store.read(ids[:1], vectors=False)[ids[0]].vector is None
        assert store.read(ids[:1], payloads=False)[ids[0]].payload is None


def test_points_in_parts_of_some_bytes(pointed):
    with stores.open(pointed, n_bits=16) as store:
        vectors = [[1.0] * 10, [1.0] * 10, None, [1.0], [1.0] * 100]  # 80, 80, 0, 8, 800 bytes
        payloads = [None, None, {"a": "é" * 40}, None, None]  # two bytes for each sign
        store.upsert([5, 1, 2, 3, 4], np.zeros((5, 2), np.uint8), vectors, payloads)

        def parts(*more):
            return [part.tolist() for part in store.parts([5, 4, 3, 2, 1, 5, 99], *more)]

        assert parts() == [[1, 2, 3, 4, 5, 99]]
        assert parts(True, False, 100) == [[1, 2, 3], [4], [5, 99]]
        assert parts(False, True, 60) == [[1, 2], [3, 4, 5, 99]]  # 2 alone takes more
        assert parts(True, True, 100) == [[1], [2, 3], [4], [5, 99]]
        assert store.parts([]) == []


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.field)
def test_a_search_by_payload(pointed, asked):
    rng = np.random.default_rng(3)
    n = len(PAYLOADS)
    packed, query = random_codes(rng, n, 16, tied=True), random_codes(rng, 1, 16)
    with stores.open(pointed, n_bits=16) as store:
        assert store.search(query, 3, among=asked)[1].shape == (1, 0)  # nothing is kept yet
        store.upsert(np.arange(n), packed, payloads=PAYLOADS)
        which = np.array([i for i, p in enumerate(PAYLOADS) if asked.holds(p)], np.int64)
        near, names = truth(which, packed[which], query[0])
        hits = store.search(query, 99, among=asked)
        assert [part.tolist() for part in hits] == [[near.tolist()], [names.tolist()]]
        hits = store.search_radius(query, 7, among=asked)
        assert hits[1][0].tolist() == names[near <= 7].tolist()
        store.upsert([0], packed[:1])  # without a payload, which so is gone
        store.delete([1])
        left = [i for i in names.tolist() if i > 1]
        assert store.search(query, 99, among=asked)[1].tolist() == [left]


def test_what_having_says():
    places = [[asked.holds(payload) for payload in PAYLOADS].index(True) for asked in ASKED[:10]]
    assert places == [0, 0, 0, 2, 3, 0, 1, 1, 5, 5]
    assert not any(asked.holds(payload) for asked in ASKED[10:] for payload in PAYLOADS)


def test_a_point_is_replaced_as_a_whole(pointed):
    code = np.zeros((1, 2), np.uint8)
    with stores.open(pointed, n_bits=16) as store:
        store.upsert([7], code, vectors=[[1.0, 2.0]], payloads=[{"a": 1}])
        store.upsert([7], code, payloads=[{"a": 2}])
        assert store.read([7])[7].vector is None
        assert store.search(code, 1, among=Having("a", (1,)))[1].size == 0
        assert store.search(code, 1, among=Having("a", (2,)))[1].tolist() == [[7]]
        store.upsert([7], code)
        assert store.read([7])[7].payload is None
        store.upsert([7], code, vectors=[[3.0]])
        store.delete([7])
        store.upsert([7], code)
        assert store.read([7])[7].vector is None


def test_a_point_that_cannot_be_kept_leaves_all_as_it_was(pointed):
    code = np.zeros((2, 2), np.uint8)
    with stores.open(pointed, n_bits=16) as store:
        store.upsert([1], code[:1], payloads=[{"a": 1}])
        for vectors, payloads, says in [
            ([[1.0], [np.nan]], None, r"vectors\[1\] must be finite"),
            ([[1.0], [[1.0]]], None, r"vectors\[1\] must be of shape \(D,\)"),
            ([[1.0], ["a"]], None, r"vectors\[1\] must be numbers"),
            ([[1.0], []], None, r"vectors\[1\] must be of shape"),
            ([[1.0]], None, "vectors must be one for each of 2"),
            (None, [{}], "payloads must be a list, one for each of 2"),
            (None, {"a": 1, "b": 2}, "payloads must be a list"),
            (None, [{}, [1]], r"payloads\[1\] must be a dictionary"),
            (None, [{}, {1: 2}], r"payloads\[1\] must have fields named by text"),
            (None, [{}, {"a": np.inf}], r"payloads\[1\] must be JSON"),
            (None, [{}, {"a": {1, 2}}], r"payloads\[1\] must be JSON"),
            (None, [{}, {"a": ["\0"]}], r"payloads\[1\] must not hold the character 0"),
            (None, [{}, {"a": "\ud800"}], r"payloads\[1\] must be Unicode"),
            (None, [{}, nested(40)], r"payloads\[1\] must be of at most 32 levels"),
        ]:
            with pytest.raises(ValueError, match=says):
                store.upsert([1, 2], code, vectors, payloads)
        assert len(store) == 1
        assert store.read([1])[1].payload == {"a": 1}


def nested(depth):
    inner = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("field", "values", "says"),
    [
        (1, ("a",), "field must be text"),
        ("a", ["a"], "values must be a tuple of at least one"),
        ("a", (), "values must be a tuple of at least one"),
        ("a", (1.5,), "values must be text, whole numbers, True or False"),
        ("a", (None,), "values must be text, whole numbers, True or False"),
        ("a", ("x" * 257,), "at most 256 characters, got 257"),
        ("a", (2**63,), "values must lie within 2"),
        ("a\0", ("x",), "field must not hold the character 0"),
        ("a", ("\udfff",), "values must be Unicode"),
    ],
)
def test_wrong_choices(field, values, says):
    with pytest.raises(ValueError, match=says):
        Having(field, values)


def test_other_programs_leave_no_wrong_vector_behind(tmp_path):
    """Whoever writes a code of a SQLite file, its old vector and payload are gone."""
    code = np.zeros((1, 1), np.uint8)
    with stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=8) as store:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        for write in (
            "INSERT OR REPLACE INTO codes VALUES (1, x'07')",
            "UPDATE codes SET code = x'07' WHERE id = 1",
            "DELETE FROM codes; INSERT INTO codes VALUES (1, x'07')",
            "UPDATE codes SET id = 2; UPDATE codes SET id = 1",
        ):
            store.upsert([1], code, vectors=[[1.0]], payloads=[{"a": 1}])
            other.executescript(write)
            point = store.read([1])[1]
            assert (point.vector, point.payload) == (None, None), write
            assert store.search(code, 1, among=Having("a", (1,)))[1].size == 0
        store.upsert([1], code, payloads=[{"a": 1}])
        with pytest.raises(sqlite3.IntegrityError, match="points are replaced, not changed"):
            other.execute("UPDATE codes_points SET payload = '{}'")
        other.execute("DELETE FROM codes_points")
        other.execute("INSERT INTO codes_points VALUES (1, NULL, '[1, 2]')")
        with pytest.raises(StoreError, match="damaged: a payload is no JSON object"):
            store.read([1])
        other.close()


def test_a_store_called_as_the_points_would_be(pointed):
    code = np.zeros((1, 1), np.uint8)
    with stores.open(pointed, n_bits=8) as store:
        second = f"{pointed}{'&' if '?' in pointed else '?'}table=codes_points"
        with stores.open(second, n_bits=8) as other:
            other.upsert([5], code)
            store.upsert([1], code)
            with pytest.raises(StoreError, match=r"codes_points|payload"):
                store.upsert([2], code, payloads=[{"a": 1}])
            assert list(store.read([1, 2])) == [1]
            assert len(store) == len(other) == 1
