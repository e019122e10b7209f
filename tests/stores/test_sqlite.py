"""The file of SQLite: what other programs see and do; and the mirror of it in memory."""

import sqlite3

import numpy as np
import pytest

from auxhash import stores
from auxhash.codes import pack
from auxhash.stores import StoreError
from auxhash.stores.mirror import FOLD, Mirror
from tests.stores.test_contract import check, random_codes, truth


def test_a_mirror_follows_before_and_after_folding():
    """Many changes, small and large, against a dictionary."""
    rng = np.random.default_rng(0)
    held = {}
    mirror = Mirror.of(20, np.empty(0, np.int64), np.empty((0, 3), np.uint8), None)
    queries = random_codes(rng, 3, 20)
    for turn in range(60):
        size = int(rng.choice([1, 30, FOLD + 1], p=[0.5, 0.45, 0.05]))
        ids = np.sort(rng.choice(3 * FOLD, size, replace=False))
        if turn % 3 == 2:
            mirror = mirror.minus(ids)
            held = {name: code for name, code in held.items() if name not in set(ids.tolist())}
        else:
            packed = random_codes(rng, size, 20, tied=turn % 2 == 0)
            mirror = mirror.plus(ids, packed)
            held |= dict(zip(ids.tolist(), map(bytes, packed), strict=True))
        names = np.array(list(held), np.int64)
        codes = np.frombuffer(b"".join(held.values()), np.uint8).reshape(-1, 3)
        check_mirror(mirror, names, codes, queries)


def check_mirror(mirror, ids, packed, queries):
    assert len(mirror) == len(ids)
    expected = [truth(ids, packed, query) for query in queries]
    distances, found = mirror.search(queries, 50)
    np.testing.assert_array_equal(distances, [near[:50] for near, _ in expected])
    np.testing.assert_array_equal(found, [names[:50] for _, names in expected])
    for near, names, (right, ours) in zip(*mirror.search_radius(queries, 6), expected, strict=True):
        np.testing.assert_array_equal(near, right[right <= 6])
        np.testing.assert_array_equal(names, ours[right <= 6])


def test_the_table_is_plain(tmp_path):
    path = tmp_path / "codes.db"
    with stores.open(f"sqlite:///{path}", n_bits=12) as store:
        store.upsert([5, 3], pack([[1] * 12, [-1] * 11 + [1]]))
        other = sqlite3.connect(path)
        assert other.execute("SELECT id, hex(code) FROM codes ORDER BY id").fetchall() == [
            (3, "0008"),
            (5, "FF0F"),
        ]
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        with other:
            other.execute("INSERT INTO codes VALUES (4, x'0000')")
        assert store.search([[-1] * 12], 1)[1].tolist() == [[4]]
        with other:
            other.execute("UPDATE codes SET code = x'00F0' WHERE id = 4")
        with pytest.raises(StoreError, match="damaged: codes must be 0 in the padding bits"):
            store.search([[-1] * 12], 1)
        with pytest.raises(sqlite3.IntegrityError):
            other.execute("INSERT INTO codes VALUES (9, x'00')")
        with pytest.raises(sqlite3.IntegrityError):
            other.execute("INSERT INTO codes VALUES (-9, x'0000')")
        other.close()


def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch):
    with stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=8) as store:
        store.upsert([1], np.zeros((1, 1), np.uint8))

        def fail(*arguments):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Mirror, "plus", fail)
            with pytest.raises(KeyboardInterrupt):  # after the commit
                store.upsert([2], np.zeros((1, 1), np.uint8))
        check(store, np.array([1, 2]), np.zeros((2, 1), np.uint8), np.zeros((1, 1), np.uint8))
        locker = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        store._connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(StoreError, match=r"a\.db: database is locked"):
            store.upsert([3], np.zeros((1, 1), np.uint8))
        locker.execute("ROLLBACK")
        locker.close()
        check(store, np.array([1, 2]), np.zeros((2, 1), np.uint8), np.zeros((1, 1), np.uint8))


@pytest.mark.parametrize(
    ("content", "says"),
    [("no database, " * 100, "file is not a database"), (None, "unable to open database file")],
)
def test_no_file_of_sqlite(tmp_path, content, says):
    path = tmp_path / "a.db"
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises(StoreError, match=says):
        stores.open(f"sqlite:///{path}", n_bits=8)


def test_a_table_of_something_else(tmp_path):
    other = sqlite3.connect(tmp_path / "a.db")
    other.execute("CREATE TABLE codes (country TEXT)")
    other.close()
    with pytest.raises(StoreError, match=r"the table codes is no store: .*another"):
        stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=8)
    with stores.open(f"sqlite:///{tmp_path}/a.db?table=bits", n_bits=8) as store:
        assert len(store) == 0
