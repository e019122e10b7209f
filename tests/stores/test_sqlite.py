"""The file of SQLite: what other programs see and do; and the mirror of it in memory."""

import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import numpy as np
import pytest

from auxhash import stores
from auxhash.codes import pack
from auxhash.stores import StoreError
from auxhash.stores.mirror import MAX_CHANGES, Mirror
from auxhash.stores.sqlite import MIN_LOGGED
from tests.stores.test_contract import check, random_codes, truth


def test_a_mirror_follows_before_and_after_folding():
    """Many changes, small and large, against a dictionary."""
    rng = np.random.default_rng(0)
    codes_by_name = {}
    mirror = Mirror.of(20, np.empty(0, np.int64), np.empty((0, 3), np.uint8), None)
    queries = random_codes(rng, 3, 20)
    for turn in range(60):
        size = int(rng.choice([1, 30, MAX_CHANGES + 1], p=[0.5, 0.45, 0.05]))
        ids = np.sort(rng.choice(3 * MAX_CHANGES, size, replace=False))
        if turn % 3 == 2:
            mirror = mirror.changed(ids, ids[:0], np.empty((0, 3), np.uint8))
            codes_by_name = {
                name: code for name, code in codes_by_name.items() if name not in set(ids.tolist())
            }
        else:
            packed = random_codes(rng, size, 20, tied=turn % 2 == 0)
            mirror = mirror.changed(ids, ids, packed)
            codes_by_name |= dict(zip(ids.tolist(), map(bytes, packed), strict=True))
        names = np.array(list(codes_by_name), np.int64)
        codes = np.frombuffer(b"".join(codes_by_name.values()), np.uint8).reshape(-1, 3)
        check_mirror(mirror, names, codes, queries)


def check_mirror(mirror, ids, packed, queries):
    assert len(mirror) == len(ids)
    expected = [truth(ids, packed, query) for query in queries]
    distances, hits = mirror.search(queries, 50)
    np.testing.assert_array_equal(distances, [near[:50] for near, _ in expected])
    np.testing.assert_array_equal(hits, [names[:50] for _, names in expected])
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


def check_file(store, path, queries):
    """The store finds what a plain reading of the file gives."""
    with closing(sqlite3.connect(path)) as other:
        rows = other.execute("SELECT id, code FROM codes").fetchall()
    codes = np.frombuffer(b"".join(code for _, code in rows), np.uint8)
    ids = np.array([name for name, _ in rows], np.int64)
    check(store, ids, codes.reshape(len(rows), store.n_bits // 8), queries, (1, 40), (3, 16))


@contextmanager
def reading_all(store, wanted):
    """Tell whether the store reads all of its codes meanwhile."""
    asked = []
    store._connection.set_trace_callback(asked.append)
    yield
    store._connection.set_trace_callback(None)
    assert ("SELECT id, code FROM codes ORDER BY id" in asked) is wanted


def test_what_others_write_is_followed(tmp_path):
    """Any change by any program, between writes of our own; all codes are read only once."""
    path, rng = tmp_path / "a.db", np.random.default_rng(0)
    url, queries = stores.file_url("sqlite", path), random_codes(rng, 2, 16, tied=True)

    def some():
        return rng.choice(300, int(rng.integers(1, 40)), replace=False)

    def codes(n):
        return random_codes(rng, n, 16, tied=True)

    def upsert(store):
        ids = some()
        store.upsert(ids, codes(len(ids)))

    def renew(store):
        ids = some()
        store.delete(ids)
        store.upsert(ids, codes(len(ids)))

    def raw(statement):
        with closing(sqlite3.connect(path)) as other, other:
            values = [
                (int(name), bytes(code)) for name, code in zip(some(), codes(40), strict=False)
            ]
            other.executemany(statement, values)

    def undone():
        with closing(sqlite3.connect(path)) as other:
            other.execute("DELETE FROM codes WHERE id % 2 = 0")
            other.execute("INSERT OR REPLACE INTO codes VALUES (1, x'0102'), (9999, x'0304')")
            other.rollback()

    with stores.open(url, n_bits=16) as store, stores.open(url) as second:
        changes = [
            lambda: upsert(second),
            lambda: second.delete(some()),
            lambda: renew(second),
            lambda: upsert(store),
            lambda: store.delete(some()),
            lambda: raw("INSERT OR REPLACE INTO codes VALUES (?, ?)"),
            lambda: raw("DELETE FROM codes WHERE id = ? AND code <> ?"),
            lambda: raw(
                "WITH new (name, code) AS (VALUES (?, ?)) UPDATE OR REPLACE codes "
                "SET id = id + 1, code = (SELECT code FROM new) WHERE id = (SELECT name FROM new)"
            ),
            lambda: raw("DELETE FROM codes WHERE id < 200 AND ? < ?"),
            undone,
        ]
        store.upsert(np.arange(300), codes(300))
        second.count()
        with reading_all(store, False), reading_all(second, False):
            for turn in range(150):
                for change in rng.choice(changes, int(rng.integers(1, 4))):
                    change()
                check_file(store if turn % 2 else second, path, queries)
            check_file(store, path, queries)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM codes")  # all at once
        check_file(store, path, queries)


OTHER = """
import sys
import numpy as np
from auxhash import stores

with stores.open(sys.argv[1]) as store:
    for line in sys.stdin:
        kind, *numbers = line.split()
        ids = np.array(numbers, np.int64)
        if kind != "delete":
            store.upsert(ids, np.stack([ids % 7, ids % 5], axis=1).astype(np.uint8))
        if kind != "upsert":
            store.delete(ids[::2])
        print("done", flush=True)
"""


def test_another_process_is_followed(tmp_path):
    path, queries = tmp_path / "a.db", np.zeros((1, 2), np.uint8)
    with stores.open(stores.file_url("sqlite", path), n_bits=16) as store:
        store.upsert(np.arange(50), np.full((50, 2), 9, np.uint8))
        command = [sys.executable, "-c", OTHER, store.url]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as other, reading_all(store, False):
            for line in ("upsert 3 60 7", "delete 3 1 2 99", "both 60 4 70", "upsert 3"):
                other.stdin.write(f"{line}\n")
                other.stdin.flush()
                assert other.stdout.readline() == "done\n"
                check_file(store, path, queries)
            other.stdin.close()
        assert other.returncode == 0


def test_who_is_too_far_behind_reads_all(tmp_path):
    """The log is bounded, whoever writes."""
    path, queries = tmp_path / "a.db", np.zeros((1, 2), np.uint8)
    with stores.open(stores.file_url("sqlite", path), n_bits=16) as store:
        store.upsert([3, 999_999], np.zeros((2, 2), np.uint8))
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM codes WHERE id = 3")
            many = ((name, bytes([name % 256, 1])) for name in range(10, MIN_LOGGED + 2000))
            other.executemany("INSERT INTO codes VALUES (?, ?)", many)
            (logged,) = other.execute('SELECT count(*) FROM "codes-changes"').fetchone()
            assert MIN_LOGGED <= logged < MIN_LOGGED + 1024
        with reading_all(store, True):
            check_file(store, path, queries)


BEFORE_THE_LOG = """
PRAGMA journal_mode = WAL;
CREATE TABLE auxhash_stores (name TEXT PRIMARY KEY, n_bits INTEGER NOT NULL);
CREATE TABLE codes (
    id INTEGER PRIMARY KEY CHECK (id >= 0), code BLOB NOT NULL CHECK (length(code) = 2));
INSERT INTO auxhash_stores VALUES ('codes', 16);
INSERT INTO codes VALUES (7, x'0102'), (5, x'0304'), (6, x'0102');
"""
WRITES = ("INSERT INTO codes VALUES (1, x'0000')", "DELETE FROM codes WHERE id = 6")


@pytest.fixture
def earlier(tmp_path):
    """The path of a file that was made before there was a log of changes."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as other:
        other.executescript(BEFORE_THE_LOG)
    return tmp_path / "a.db"


def test_an_earlier_file_is_brought_up_to_date(earlier):
    queries = np.zeros((1, 2), np.uint8)
    with stores.open(stores.file_url("sqlite", earlier)) as store:
        check_file(store, earlier, queries)
        with closing(sqlite3.connect(earlier)) as other, reading_all(store, False):
            for write in (
                "INSERT INTO codes VALUES (1, x'0000')",
                "DELETE FROM codes WHERE id = 6",
            ):
                with other:
                    other.execute(write)
                check_file(store, earlier, queries)
            store.upsert([2], queries, payloads=[{"a": 1}])
            check_file(store, earlier, queries)


def test_an_earlier_file_that_cannot_be_written(earlier, monkeypatch):
    """It has no log, and is read anew when others have written."""
    connect = sqlite3.connect

    def readonly(path, **options):
        return connect(f"file:{path}?mode=ro", uri=True, **options)

    with closing(connect(earlier)) as other:
        monkeypatch.setattr(sqlite3, "connect", readonly)
        store = stores.open(stores.file_url("sqlite", earlier))
        monkeypatch.undo()
        with store:
            for write in (
                "INSERT INTO codes VALUES (1, x'0000')",
                "DELETE FROM codes WHERE id = 6",
            ):
                with other, reading_all(store, True):
                    other.execute(write)
                    other.commit()
                    check_file(store, earlier, np.zeros((1, 2), np.uint8))
            with pytest.raises(StoreError, match="attempt to write a readonly database"):
                store.delete([1])


@pytest.mark.parametrize(
    "meddled",
    [
        "DROP TABLE codes; CREATE TABLE codes (id INTEGER PRIMARY KEY, code BLOB);",
        "DROP TRIGGER \"codes-replaced\"; UPDATE codes SET code = x'0909';",
        'DROP TABLE "codes-changes"; DROP TRIGGER "codes-deleted"; DELETE FROM codes;',
        'DELETE FROM codes WHERE id = 3; DELETE FROM "codes-changes";',
        "backup",
    ],
)
def test_a_log_that_was_meddled_with(tmp_path, meddled):
    """Nothing is missed, and the next write of ours makes the log anew."""
    path, queries = tmp_path / "a.db", np.zeros((1, 2), np.uint8)
    with stores.open(stores.file_url("sqlite", path), n_bits=16) as store:
        store.upsert([1, 2, 3], np.full((3, 2), 5, np.uint8))
        with closing(sqlite3.connect(path)) as other, closing(sqlite3.connect(":memory:")) as kept:
            other.backup(kept)
            store.upsert([1, 4], np.full((2, 2), 6, np.uint8))
            if meddled == "backup":  # with as many changes, and others
                kept.execute("INSERT INTO codes VALUES (8, x'0000'), (9, x'0000')")
                kept.commit()
                kept.backup(other)
            else:
                other.executescript(meddled)
            check_file(store, path, queries)
            store.upsert([6], queries)
            check_file(store, path, queries)
        with closing(sqlite3.connect(path)) as other, reading_all(store, False):
            other.execute("INSERT INTO codes VALUES (10, x'0000')")
            other.commit()
            check_file(store, path, queries)


def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch):
    with stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=8) as store:
        store.upsert([1], np.zeros((1, 1), np.uint8))

        def fail(*arguments):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Mirror, "changed", fail)
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
