"""Ids that are text: whatever a store of numbers does, one of text does as well, on each engine."""

import contextlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import numpy as np
import pytest

from auxhash import stores
from auxhash.compute.fingerprint import OtherModelError
from auxhash.stores import Having
from auxhash.stores.address import Address
from auxhash.stores.connection import Connection
from auxhash.stores.ids import first_twice, is_among, order_of, rising
from tests.stores.test_contract import random_codes, random_ids, truth
from tests.stores.test_models import FEATURES, NEW, NEW_MODEL, OLD, OLD_MODEL

# Text that databases, statements and expressions have been known to stumble over.
ODD = [
    *(
        "a'b",
        'a"b',
        "back\\slash",
        "\\",
        "\\'",
        '\\"',
        "\\n",
        "%",
        "_",
        "a,b",
        "{",
        "}",
        "[1]",
        "*",
    ),
    *("NULL", "null", "0", "7", "007", "-1", "1e3", " ", "  a ", "\n", "\t", "\r", "\f"),
    *(
        "\x01",
        "\x7f",
        "ü",
        "u\u0308",
        "日本",
        "🎉",
        "\uffff",
        "\U0010ffff",
        "a/b.png",
        ":ids",
        "$1",
        "?",
        "&",
    ),
    *("&0", "&1", "\t0", "'; DROP TABLE codes; --", "x" * 1024, "ü" * 512, "'" * 1024),
    str(UUID(int=2**127 + 5)),
]


def text_of(ids):
    """Text for numbers, in the same order, with signs that need quotes."""
    return np.array([f"it's \\ {name:019d}" for name in np.asarray(ids).tolist()], object)


def number_of(ids):
    """The numbers of `text_of`."""
    return [int(name[-19:]) for name in ids]


def both_kinds(url):
    """A store of numbers and one of text, in one database."""
    other = f"{url}{'&' if '?' in url else '?'}table=named"
    return stores.open(url, 16), stores.open(other, 16)


def same(numbers, texts):
    """Distances are equal, and ids those of `text_of`."""
    for near, theirs in zip(numbers[0], texts[0], strict=True):
        np.testing.assert_array_equal(near, theirs)
    for ids, names in zip(numbers[1], texts[1], strict=True):
        assert names.dtype == object
        assert ids.tolist() == number_of(names)


def check_agree(numbered, named, queries, among, even):
    assert len(numbered) == len(named)
    pages = [list(store.batches(30)) for store in (numbered, named)]
    for (ids, packed), (names, theirs) in zip(*pages, strict=True):
        assert ids.tolist() == number_of(names)
        np.testing.assert_array_equal(packed, theirs)
    filters = [(None, None), (among, text_of(among))]
    bytes_apart = queries[:, :, None] ^ np.arange(256, dtype=np.uint8)
    tables = np.bitwise_count(bytes_apart).astype(np.float32)  # of Hamming distances
    if numbered.keeps_points:
        filters.append((even, even))
    for ours, theirs in filters:
        for k in (1, 7, 1000):
            hits = numbered.search(queries, k, ours)
            same(hits, named.search(queries, k, theirs))
            same(hits, named.search_tables(tables, k, theirs, queries))
        for r in (0, 5, 16):
            same(numbered.search_radius(queries, r, ours), named.search_radius(queries, r, theirs))
    read, there = numbered.read(among), named.read(text_of(among))
    assert set(read) == set(number_of(there))
    for name, point in there.items():
        own = read[number_of([name])[0]]
        assert bytes(own.code) == bytes(point.code)
        assert own.payload == point.payload
        assert np.array_equal(own.vector, point.vector)
    assert [part.tolist() for part in numbered.parts(among, room=90)] == [
        number_of(part) for part in named.parts(text_of(among), room=90)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_numbers_and_text_agree(url, seed):
    """Random upserts, deletes and models, in turns; ties, filters, pages and reads are compared."""
    rng = np.random.default_rng(seed)
    known = random_ids(rng, 150)
    numbered, named = both_kinds(url)
    with numbered, named:
        for turn in range(4):
            ids = rng.choice(known, 60, replace=False)
            X = rng.normal(size=(60, FEATURES))
            packed = (OLD_MODEL if turn < 3 else NEW_MODEL).encode(X)
            fingerprint = OLD if turn < 3 else NEW
            beside = ()
            if numbered.keeps_points:
                beside = X, [{"even": bool(name % 2 == 0)} for name in ids.tolist()]
            numbered.upsert(ids, packed, *beside, fingerprint=fingerprint)
            named.upsert(text_of(ids).tolist(), packed, *beside, fingerprint=fingerprint)
            gone = rng.choice(known, 20, replace=False)
            assert numbered.delete(gone) == named.delete(text_of(gone))
            queries = random_codes(rng, 3, 16)
            among = rng.choice(known, 50)
            check_agree(numbered, named, queries, among, Having("even", (True,)))
            if turn == 2:
                vectors = rng.normal(size=(len(known), FEATURES))
                more = ({"ids": known, "vectors": vectors}, {"ids": text_of(known)})
                both = more[0], more[0] | more[1]
                both = ({}, {}) if numbered.keeps_points else both
                for store, extra in zip((numbered, named), both, strict=True):
                    stores.encode_again(store, NEW_MODEL, **extra, batch=17)
                check_agree(numbered, named, queries, among, Having("even", (True,)))
        assert (numbered.id_type, named.id_type) == ("number", "text")
    numbered, named = both_kinds(url)
    with numbered, named:
        check_agree(numbered, named, queries, among, Having("even", (True,)))


def test_any_text_is_an_id(url):
    rng = np.random.default_rng(0)
    packed = random_codes(rng, len(ODD), 16, tied=True)
    with stores.open(url, 16) as store:
        store.upsert(ODD[:9], packed[1:10])
        store.upsert(ODD, packed)  # which replaces the first
        assert len(store) == len(ODD)
        assert [name for ids, _ in store.batches(7) for name in ids] == sorted(ODD)
        near, ids = store.search(packed[:1], len(ODD))
        expected = truth(np.array(ODD, object), packed, packed[0])
        np.testing.assert_array_equal(near[0], expected[0])
        assert ids[0].tolist() == expected[1].tolist()
        for i, name in enumerate(ODD):
            [(only, point)] = store.read([name]).items()
            assert (only, bytes(point.code)) == (name, bytes(packed[i]))
            assert store.search(packed[:1], 5, among=[name])[1].tolist() == [[name]]
        assert set(store.read(ODD)) == set(ODD)
        if store.keeps_points:
            store.upsert(ODD, packed, payloads=[{"i": i} for i in range(len(ODD))])
            assert store.search(packed[:1], 5, Having("i", (3,)))[1].tolist() == [[ODD[3]]]
            assert {name: point.payload["i"] for name, point in store.read(ODD).items()} == {
                name: i for i, name in enumerate(ODD)
            }
        for name in ODD[::2]:
            assert store.delete([name, "unknown"]) == 1
        assert [name for ids, _ in store.batches() for name in ids] == sorted(ODD[1::2])


def test_uuids_are_text(url):
    known = [UUID(int=i << 96) for i in range(4)]
    packed = random_codes(np.random.default_rng(0), 4, 16)
    with stores.open(url, 16) as store:
        store.upsert(known, packed)
        assert store.id_type == "text"
        assert set(store.read([known[1], str(known[2])])) == {str(known[1]), str(known[2])}
        assert store.search(packed[:1], 1, among=known[:1])[1].tolist() == [[str(known[0])]]
        assert store.delete(known) == 4


WRONG = [
    ([""], "must be a list of whole numbers or of text, none of it empty, got ''"),
    (["a", "a\0"], "must not hold the character 0"),
    (["x" * 1025], "must be of at most 1,024 bytes in UTF-8; row 0 has 1,025: 'xxx"),
    (["a", "ü" * 513], "must be of at most 1,024 bytes in UTF-8; row 1 has 1,026"),
    (["a", "\ud800"], "must be text that UTF-8 can write"),
    (["a", 1], "must be all whole numbers or all text, and are mixed: 1 is a number"),
    ([1, "a"], "must be all whole numbers or all text, and are mixed: 1 is a number"),
    ([b"a"], "must be a list of whole numbers or of text, none of it empty, got b'a'"),
    (["a", None], "must be a list of whole numbers or of text, none of it empty, got None"),
    ([1.5], "must be a list of whole numbers or of text, got float64"),
    ("ab", "must be a list of whole numbers or of text, got <U2"),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_wrong_ids(tmp_path, wrong, says):
    """Checked before an engine is asked: it is the same for all."""
    packed = random_codes(np.random.default_rng(0), 2, 16)
    with stores.open(f"sqlite:///{tmp_path}/a.db", 16) as store:
        calls = (
            lambda: store.upsert(wrong, packed[: len(wrong)]),
            lambda: store.delete(wrong),
            lambda: store.read(wrong),
            lambda: store.search(packed[:1], 1, among=wrong),
        )
        for call in calls:
            with pytest.raises(ValueError, match=rf"^(ids|among) {says}"):
                call()
        assert len(store) == 0


def test_one_kind_per_store(url):
    packed = random_codes(np.random.default_rng(0), 3, 16)
    with stores.open(url, 16) as store:
        assert store.id_type is None
        for ids, others, says in (
            (["7", "b"], [7, 8], r"must be text, as those in the store; got 7$"),
            ([7, 8], ["7", "b"], r"must be whole numbers, as those in the store; got '7'$"),
        ):
            assert store.delete(others) == 0  # there are none of any kind
            assert store.read(others) == {}
            assert store.search(packed, 3, among=others)[1].shape == (3, 0)
            with pytest.raises(ValueError, match=rf"ids must not name a code twice, {ids[0]!r} d"):
                store.upsert([ids[0], ids[0]], packed[:2])
            store.upsert(ids, packed[:2], fingerprint=OLD)
            for call in (
                lambda others=others: store.upsert(others, packed[1:], fingerprint=OLD),
                lambda others=others: store.delete(others),
                lambda others=others: store.read(others),
                lambda others=others: store.parts(others),
                lambda others=others: store.search(packed, 3, among=others),
                lambda others=others: store.search_radius(packed, 3, among=others),
            ):
                with pytest.raises(ValueError, match=says):
                    call()
            assert store.search_radius(packed[:1], 16)[1][0].tolist() != others
            assert store.delete(ids) == 2  # and an empty store takes either kind again
            assert store.id_type is None
            assert store.fingerprint == OLD


def test_a_first_push_that_fails_decides_nothing(url):
    packed = random_codes(np.random.default_rng(0), 2, 16)
    with stores.open(url, 16) as store:
        store.upsert([1], packed[:1], fingerprint=OLD)
        store.delete([1])
        with pytest.raises(OtherModelError):
            store.upsert(["a"], packed[:1], fingerprint=NEW)
        assert store.search(packed, 3)[1].shape == (2, 0)
        store.upsert([2, 3], packed, fingerprint=OLD)
        assert store.search(packed[:1], 1)[1].tolist() == [[2]]


def test_another_connection_has_put_in_the_first_ids(url):
    """It was opened when the store was empty, and knows no kind."""
    if url.startswith("milvus:"):
        pytest.skip("does not apply: one process, one connection")
    packed = random_codes(np.random.default_rng(0), 4, 16)
    beside = () if url.startswith(("duckdb", "lancedb")) else (np.eye(4), [{"a": 1}] * 4)
    for ids in (["a", "b", "c", "d"], [1, 2, 3, 4], ["x", "1", "2", "3"]):
        with stores.open(url, 16) as one, stores.open(url) as two:
            assert two.id_type is None
            one.upsert(ids, packed, *beside)
            assert two.search(packed[:1], 1)[1].tolist() == [[ids[0]]]
            assert two.search(packed[:1], 9, among=ids[:2])[1].shape == (1, 2)
            with pytest.raises(ValueError, match="ids must be"):
                two.upsert([9] if ids[0] in ("a", "x") else ["9"], packed[:1])
            assert set(two.read(ids)) == set(ids)
            assert [name for names, _ in two.batches() for name in names] == sorted(ids)
            two.upsert(ids[:2], packed[2:], *(part[2:] for part in beside))
            assert two.delete(ids) == 4


def test_a_connection_that_knows_the_other_kind_puts_in_nothing(url):
    """The table was made anew by another since: numbers do not become text in silence."""
    if url.startswith("milvus:"):
        pytest.skip("does not apply: one process, one connection")
    packed = random_codes(np.random.default_rng(0), 1, 16)
    for known, others in ((["1"], [2]), ([1], ["2"])):
        with stores.open(url, 16) as one, stores.open(url) as two:
            one.upsert(known, packed)
            assert set(one.read(known)) == set(known)  # it has seen the kind
            two.delete(known)
            two.upsert(others, packed)
            for _ in range(2):
                with pytest.raises((ValueError, OSError)):
                    one.upsert(known, packed)
            with pytest.raises(ValueError, match="ids must be"):
                one.upsert(known, packed)
            assert one.search(packed, 9)[1].tolist() == [others]
            two.delete(others)


def test_first_ids_of_two_kinds_at_once(url):
    """One of the two is refused, and nothing is lost."""
    if url.startswith("milvus:"):
        pytest.skip("does not apply: one process, one connection")
    packed = random_codes(np.random.default_rng(0), 40, 16)
    kinds = {"text": [f"n{i}" for i in range(40)], "number": list(range(40))}
    for _ in range(3):
        with stores.open(url, 16) as one, stores.open(url) as two:
            barrier = threading.Barrier(2)

            def push(store, ids, barrier=barrier):
                barrier.wait(30)
                try:
                    store.upsert(ids, packed)
                except (ValueError, OSError):
                    return False
                return True

            with ThreadPoolExecutor(2) as threads:
                both = zip((one, two), kinds.values(), strict=True)
                done = [threads.submit(push, store, ids) for store, ids in both]
                done = [each.result() for each in done]
            assert sum(done) == 1
            [ids] = [ids for ids, was in zip(kinds.values(), done, strict=True) if was]
            for store in (one, two):
                assert [name for names, _ in store.batches() for name in names] == sorted(ids)
            one.delete(ids)


def test_numbers_have_the_schema_they_had(tmp_path):
    """Also after text was there: who has numbers pays for nothing."""
    packed = random_codes(np.random.default_rng(0), 2, 16)
    plain, changed = tmp_path / "plain.db", tmp_path / "changed.db"
    with stores.open(f"sqlite:///{changed}", 16) as store:
        store.upsert(["a", "b"], packed, payloads=[{}, {}])
        store.delete(["a", "b"])
    for path in (plain, changed):
        with stores.open(f"sqlite:///{path}", 16) as store:
            store.upsert([1, 2], packed, payloads=[{}, {}])
    schemas = []
    for path in (plain, changed):
        with contextlib.closing(sqlite3.connect(path)) as file:
            schemas.append(set(file.execute("SELECT name, sql FROM sqlite_master").fetchall()))
    assert schemas[0] == schemas[1]
    assert (
        "codes",
        "CREATE TABLE codes (id INTEGER PRIMARY KEY CHECK (id >= 0), code BLOB NOT NULL CHECK "
        "(length(code) = 2))",
    ) in schemas[0]


@pytest.mark.parametrize("kind", ["uuid", "text", "varchar(36)"])
def test_tables_of_others_in_postgresql(postgresql, kind):
    """A table with ids of its own, whose codes are filled in; it is never replaced."""
    known = [str(UUID(int=i << 90)) for i in (3, 1, 2)]
    packed = random_codes(np.random.default_rng(0), 3, 16, tied=True)
    with Connection(Address.of(postgresql)) as connection:
        connection.run(f"CREATE TABLE items (id {kind} PRIMARY KEY, title text, code bit(16))")
        with stores.open(f"{postgresql}&table=items") as store:
            with pytest.raises(ValueError, match="ids must be text, as the column id of the table"):
                store.upsert([1], packed[:1])
            connection.run(
                f"INSERT INTO items (id, title) SELECT unnest(:ids::text[])::{kind}, 'a'", ids=known
            )
            store.upsert(known, packed, np.eye(3), [{"i": i} for i in range(3)])
            assert [name for names, _ in store.batches(2) for name in names] == sorted(known)
            near, ids = store.search(packed[:1], 3)
            expected = truth(np.array(known, object), packed, packed[0])
            assert [near[0].tolist(), ids[0].tolist()] == [part.tolist() for part in expected]
            assert store.search(packed[:1], 3, Having("i", (1,)))[1].tolist() == [[known[1]]]
            assert store.parts(known, room=1)[0].tolist() == [sorted(known)[0]]
            assert set(store.read(known[1:])) == set(known[1:])
        [[n]] = connection.run("SELECT count(*) FROM items WHERE title = 'a'")
        assert n == 3


@pytest.mark.parametrize("kind", [np.int64, object])
def test_arrays_of_ids(kind):
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 40, 60)
    ids = numbers if kind is np.int64 else text_of(numbers)
    plain = ids.tolist()
    assert ids[order_of(ids)].tolist() == sorted(plain)
    assert rising(ids).tolist() == sorted(set(plain))
    some = rising(ids[:20])
    assert is_among(ids, some).tolist() == [name in set(plain[:20]) for name in plain]
    assert not is_among(ids, ids[:0]).any()
    assert first_twice(ids) == min(name for name in plain if plain.count(name) > 1)
    assert first_twice(rising(ids)[::-1]) is None
