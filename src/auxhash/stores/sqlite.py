"""SqliteStore: a file of SQLite, searched in memory by our own index.

A table `codes (id INTEGER PRIMARY KEY, code BLOB)` holds the bytes of our order, and another one,
`auxhash_stores`, the number of bits of each such table. Ids that are text are of type TEXT, in all
tables. Python brings SQLite along.

Vectors and payloads are in a table `codes_points`, made when the first is kept, so that the codes
are read without them; `codes_fields` finds payloads by their fields. Triggers empty both where any
program writes a code, so that no vector is ever that of another code.

A table `auxhash_properties` holds the fingerprints of a store, once somebody has said them, and
`codes-again` the codes of another model, while the store is being encoded again.

Triggers also write the id of each code that any program inserts, replaces or deletes into a table
`codes-changes`, which keeps the last MIN_LOGGED: a search takes up what others have changed since.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from auxhash.codes import Packed, n_bytes
from auxhash.compute import checks, context, deadline
from auxhash.compute.arrays import ArrayLike
from auxhash.search.index.hamming import as_queries
from auxhash.search.index.scan import Distances
from auxhash.search.index.tables import TableDistances, as_tables
from auxhash.stores.address import Address
from auxhash.stores.ids import AnyIds, Id, rising
from auxhash.stores.mirror import Mirror
from auxhash.stores.points import MAX_CHARACTERS, Beside, Having, StoredPoints
from auxhash.stores.store import (
    Among,
    Models,
    Near,
    Store,
    StoreError,
    agreed_bits,
    empty,
    file_of,
    no_store,
    store_errors,
)

# Values of a payload that a search can ask for. SQLite takes True and 1 for one number, we do not.
SEARCHED = f"""
    SELECT key, CASE WHEN type IN ('true', 'false') THEN 'flag' WHEN type = 'text' THEN 'text'
        ELSE 'number' END, atom, {{row}}.id
    FROM json_each({{row}}.payload)
    WHERE type IN ('true', 'false', 'integer', 'real')
        OR (type = 'text' AND length(atom) <= {MAX_CHARACTERS})
"""
REPLACED = (
    "CREATE TRIGGER {t}_replaced AFTER UPDATE ON {t} BEGIN "
    "DELETE FROM {t}_points WHERE id IN (old.id, new.id); END"
)
BESIDE = (
    "CREATE TABLE {t}_points (id {type} PRIMARY KEY, vector BLOB, payload TEXT)",
    "CREATE TABLE {t}_fields (field TEXT NOT NULL, kind TEXT NOT NULL, value NOT NULL, "
    "id {type} NOT NULL, PRIMARY KEY (field, kind, value, id)) WITHOUT ROWID",
    "CREATE TRIGGER {t}_added AFTER INSERT ON {t} BEGIN "
    "DELETE FROM {t}_points WHERE id = new.id; END",
    REPLACED,
    "CREATE TRIGGER {t}_deleted AFTER DELETE ON {t} BEGIN "
    "DELETE FROM {t}_points WHERE id = old.id; END",
    "CREATE TRIGGER {t}_points_added AFTER INSERT ON {t}_points BEGIN "
    f"INSERT INTO {{t}}_fields {SEARCHED.format(row='new')}; END",
    "CREATE TRIGGER {t}_points_deleted AFTER DELETE ON {t}_points BEGIN "
    "DELETE FROM {t}_fields WHERE (field, kind, value, id) IN "
    f"({SEARCHED.format(row='old')}); END",
    "CREATE TRIGGER {t}_points_changed BEFORE UPDATE ON {t}_points BEGIN "
    "SELECT RAISE(ABORT, 'points are replaced, not changed: delete and insert them'); END",
)

# Types of ids that are numbers and text, and the checks of them.
ID_TYPES = {False: ("INTEGER", "id >= 0"), True: ("TEXT", "typeof(id) = 'text' AND id <> ''")}

MIN_LOGGED = 65_536  # changes in the log, at least; who is further behind reads all codes
LOGGED = 'BEGIN INSERT INTO "{t}-changes" (id) VALUES '
LOG = (  # no table of a store can have such names
    ("TABLE", '"{t}-changes"', "(number INTEGER PRIMARY KEY, id {type} NOT NULL)"),
    ("TRIGGER", '"{t}-inserted"', f"AFTER INSERT ON {{t}} {LOGGED} (new.id); END"),
    ("TRIGGER", '"{t}-replaced"', f"AFTER UPDATE ON {{t}} {LOGGED} (new.id); END"),
    (
        "TRIGGER",
        '"{t}-moved"',
        f"AFTER UPDATE OF id ON {{t}} WHEN old.id <> new.id {LOGGED} (old.id); END",
    ),
    ("TRIGGER", '"{t}-deleted"', f"AFTER DELETE ON {{t}} {LOGGED} (old.id); END"),
    (
        "TRIGGER",
        '"{t}-trimmed"',
        'AFTER INSERT ON "{t}-changes" WHEN new.number % 1024 = 0 '
        f'BEGIN DELETE FROM "{{t}}-changes" WHERE number <= new.number - {MIN_LOGGED}; END',
    ),
)

LOCK_TIMEOUT_SECONDS = 30.0  # for another process to finish its write
UNKNOWN = -1  # sentinel: no data_version of SQLite is negative


class SqliteStore(Store):
    """A table of a SQLite file, in memory as well, which a search reads.

    Other programs may write to the file at the same time: a search reads first what they changed.
    """

    errors = (sqlite3.Error,)
    keeps_points = scans_tables = True

    def __init__(self, address: Address, n_bits: int | None) -> None:
        self._using = threading.RLock()  # one connection: one thread at a time
        path = file_of(address, n_bits)
        with store_errors(str(address), self.errors):
            self._connection = sqlite3.connect(
                path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(address, n_bits)
            except BaseException:
                self._connection.close()
                raise
        self._n_jobs = context.current().n_jobs  # of whoever opens it, for all who search
        self._version = self._schema = self._seen = UNKNOWN
        self._mirror = Mirror.of(self.n_bits, *empty(self.n_bits), self._n_jobs)
        try:
            with self._talking():
                self._current()  # read now: a damaged file is refused at once
        except BaseException:
            self.close()
            raise

    def _prepare(self, address: Address, n_bits: int | None) -> None:
        """Make the table, or check the one that is there."""
        run = self._connection.execute
        run("PRAGMA synchronous = FULL")  # a commit is on the disk, even if the power fails
        stored_bits = self._stored_bits(address)
        super().__init__(address, agreed_bits(str(address), stored_bits, n_bits))
        self._table, self._beside = address.table, False
        self._again = f'"{address.table}-again"'
        if stored_bits is not None:
            if not self._has_log():  # made by an earlier version of this package
                with _where_possible(), self._transaction():
                    self._make_log()
            return
        run("PRAGMA journal_mode = WAL")
        with self._transaction():
            # Another process may have been quicker.
            if self._stored_bits(address) is None:
                run(
                    "CREATE TABLE IF NOT EXISTS auxhash_stores "
                    "(name TEXT PRIMARY KEY, n_bits INTEGER NOT NULL)"
                )
                self._make(text=False)
                run("INSERT INTO auxhash_stores VALUES (?, ?)", (self._table, self.n_bits))
            agreed_bits(str(address), self._stored_bits(address), self.n_bits)

    def _make(self, text: bool) -> None:
        kind, check = ID_TYPES[text]
        self._connection.execute(
            f"CREATE TABLE {self._table} (id {kind} PRIMARY KEY CHECK ({check}), code BLOB "
            f"NOT NULL CHECK (length(code) = {n_bytes(self.n_bits)})){' WITHOUT ROWID' * text}"
        )
        self._make_log()

    def _make_anew(self, text: bool) -> None:
        had_points = self._has_points()
        for name in ("", "-changes", *(("_points", "_fields") if had_points else ())):
            self._connection.execute(f'DROP TABLE "{self._table}{name}"')
        self._make(text)
        if had_points:  # whoever has seen them takes them for granted
            self._make_points()
        self._seen = UNKNOWN  # all codes are to be read again

    def _has_text_ids(self, now: bool = False) -> bool:
        kind = "SELECT type FROM pragma_table_info(?) WHERE name = 'id'"
        return bool(self._connection.execute(kind, (self._table,)).fetchone() == ("TEXT",))

    @property
    def _id_type(self) -> str:
        return ID_TYPES[self._has_text_ids()][0]

    def _stored_bits(self, address: Address) -> int | None:
        names = "SELECT name FROM sqlite_master WHERE name IN ('auxhash_stores', ?)"
        there = {name for (name,) in self._connection.execute(names, (address.table,))}
        row = None
        if "auxhash_stores" in there:
            bits = "SELECT n_bits FROM auxhash_stores WHERE name = ?"
            row = self._connection.execute(bits, (address.table,)).fetchone()
        if (row is None) != (address.table not in there):
            raise no_store(str(address), address.table, "auxhash_stores does not agree")
        return None if row is None else int(row[0])

    @contextmanager
    def _session(self, write: bool) -> Iterator[None]:
        with self._using:
            if self._closed:
                raise ValueError(f"{self.url} is closed")
            yield

    def search(self, queries: ArrayLike, k: int, among: Among = None) -> Near:
        asked, k = as_queries(queries, self.n_bits), checks.integer("k", k, 1)
        return self._view(among).search(asked, k)

    def search_tables(
        self,
        tables: ArrayLike,
        k: int,
        among: Among = None,
        codes: ArrayLike | None = None,
        candidates: int | None = None,
    ) -> tuple[TableDistances, AnyIds]:
        checked, k = as_tables(tables, self.n_bits), checks.integer("k", k, 1)
        return self._view(among).search_tables(checked, k)

    def search_radius(
        self, queries: ArrayLike, r: int, among: Among = None
    ) -> tuple[list[Distances], list[AnyIds]]:
        asked, r = as_queries(queries, self.n_bits), checks.integer("r", r, 0)
        return self._view(among).search_radius(asked, min(r, self.n_bits))

    def _view(self, among: Among) -> Mirror:
        """The codes that a search looks at; they do not change, so that a search needs no lock."""
        with self._talking():
            mirror, chosen = self._current(), self._chosen(among)
            ids = self._having(chosen) if isinstance(chosen, Having) else chosen
        return mirror if ids is None else mirror.only(ids)

    def _having(self, chosen: Having) -> AnyIds:
        if not self._has_points():
            return self._id_array([])
        statement = (
            f"SELECT id FROM {self._table}_fields WHERE field = ? AND kind = ? AND value = ?"
        )
        ids: list[Id] = []
        wanted = {(_kind(value), value) for value in chosen.values}  # a value may come twice
        for kind, value in deadline.each(wanted):
            rows = self._connection.execute(statement, (chosen.field, kind, value))
            ids += [name for (name,) in rows]
        return rising(self._id_array(ids))

    def _has_points(self) -> bool:
        """Return True if anything stands beside the codes; once made, the table stays."""
        if not self._beside:
            there = "SELECT count(*) FROM sqlite_master WHERE name = ?"  # no table of others has it
            [number] = self._connection.execute(there, (f"{self._table}_points_added",)).fetchone()
            self._beside = bool(number)
        return self._beside

    def _read(self, ids: AnyIds, vectors: bool, payloads: bool) -> StoredPoints:
        which = "WHERE codes.id IN (SELECT value FROM json_each(?))"
        wanted = [json.dumps(ids.tolist())]
        if not self._has_points():
            statement = f"SELECT id, code FROM {self._table} AS codes {which}"
            return StoredPoints(
                *self._arrays(self._connection.execute(statement, wanted).fetchall())
            )
        more = f"{'vector' if vectors else 'NULL'}, {'payload' if payloads else 'NULL'}"
        rows = self._connection.execute(
            f"SELECT codes.id, code, {more} FROM {self._table} AS codes "
            f"LEFT JOIN {self._table}_points AS points ON points.id = codes.id {which}",
            wanted,
        ).fetchall()
        beside = Beside([row[2] for row in rows], [row[3] for row in rows])
        return StoredPoints(*self._arrays([row[:2] for row in rows]), beside)

    def _sizes(self, ids: AnyIds, vectors: bool, payloads: bool) -> dict[Id, int]:
        if not self._has_points():
            return {}
        columns = [name for name, flag in (("vector", vectors), ("payload", payloads)) if flag]
        size = " + ".join(f"coalesce(length(CAST({name} AS BLOB)), 0)" for name in columns)
        rows = self._connection.execute(
            f"SELECT id, {size or 0} FROM {self._table}_points "
            "WHERE id IN (SELECT value FROM json_each(?))",
            [json.dumps(ids.tolist())],
        )
        return dict(rows.fetchall())

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        return list(zip(*self._current().search(queries, k), strict=True))

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return list(zip(*self._current().search_radius(queries, r), strict=True))

    def _current(self) -> Mirror:
        """Mirror of the codes that the file holds now."""
        # It changes when another connection has committed; our own writes are in the mirror.
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            with self._transaction("DEFERRED"):  # what is read is of one moment
                self._follow()
        return self._mirror

    def _follow(self) -> None:
        """Bring the mirror up to date: by what the log has since, or by all codes."""
        run = self._connection.execute
        (version,) = run("PRAGMA data_version").fetchone()
        (schema,) = run("PRAGMA schema_version").fetchone()
        # Another schema may be another log: its table was made anew, or a backup put in place.
        oldest, newest = self._logged() if self._has_log() else (None, UNKNOWN)
        if schema == self._schema and oldest is not None and oldest - 1 <= self._seen <= newest:
            since, seen = f'FROM "{self._table}-changes" WHERE number > ?', (self._seen,)
            old = run(f"SELECT DISTINCT id {since}", seen).fetchall()
            codes = f"SELECT id, code FROM {self._table} WHERE id IN (SELECT id {since})"
            changed = self._id_array([name for (name,) in old])
            self._mirror = self._mirror.changed(changed, *self._checked(codes, seen))
        else:
            all_codes = self._checked(f"SELECT id, code FROM {self._table}")
            self._mirror = Mirror.of(self.n_bits, *all_codes, self._n_jobs)
        self._schema, self._seen, self._version = schema, newest, version

    def _checked(self, codes: str, parameters: tuple[int, ...] = ()) -> tuple[AnyIds, Packed]:
        rows = self._connection.execute(f"{codes} ORDER BY id", parameters).fetchall()
        ids, packed = self._arrays(rows)
        if len(ids):
            self._check_read(ids, packed, self._lowest())
        return ids, packed

    def _logged(self) -> tuple[int, int]:
        """The numbers of the oldest and the newest change in the log."""
        extreme = f'(SELECT {{}}(number) FROM "{self._table}-changes")'
        both = f"SELECT ifnull({extreme.format('min')}, 1), ifnull({extreme.format('max')}, 0)"
        oldest, newest = self._connection.execute(both).fetchone()
        return oldest, newest

    def _has_log(self) -> bool:
        names = [name.format(t=self._table).strip('"') for _, name, _ in LOG]
        there = "SELECT count(*) FROM sqlite_master WHERE name IN (SELECT value FROM json_each(?))"
        [number] = self._connection.execute(there, (json.dumps(names),)).fetchone()
        return bool(number == len(names))

    def _make_log(self) -> None:
        if self._has_log():
            return
        for kind, name, rest in LOG:
            self._connection.execute(f"DROP {kind} IF EXISTS {name}".format(t=self._table))
            create = f"CREATE {kind} {name} {rest}".format(t=self._table, type=self._id_type)
            self._connection.execute(create)

    @contextmanager
    def _writing_codes(self, ids: AnyIds, packed: Packed) -> Iterator[None]:
        """A transaction after which these codes are all that the ids have, in the mirror too.

        A write that is interrupted after its commit leaves the version unknown, and the next search
        looks into the log.
        """
        version, self._version = self._version, UNKNOWN
        with self._transaction():
            self._make_log()
            _, before = self._logged()
            yield
            _, after = self._logged()
        if before == self._seen:  # otherwise others have written too, and the log has it all
            self._mirror = self._mirror.changed(ids, ids[: len(packed)], packed)
            self._seen, self._version = after, version

    def _upsert(
        self, ids: AnyIds, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        with self._writing_codes(ids, packed):
            admit()
            self._connection.executemany(
                f"INSERT INTO {self._table} (id, code) VALUES (?, ?) "
                "ON CONFLICT (id) DO UPDATE SET code = excluded.code",
                zip(ids.tolist(), map(bytes, packed), strict=True),
            )
            if beside is not None:
                self._put_beside(ids, beside)

    def _put_beside(self, ids: AnyIds, beside: Beside) -> None:
        if not self._has_points():
            self._make_points()
        rows = zip(ids.tolist(), beside.vectors, beside.payloads, strict=True)
        self._connection.executemany(
            f"INSERT INTO {self._table}_points VALUES (?, ?, ?)",
            (row for row in rows if row[1:] != (None, None)),
        )

    def _make_points(self) -> None:
        for statement in BESIDE:
            self._connection.execute(statement.format(t=self._table, type=self._id_type))

    def _delete(self, ids: AnyIds) -> int:
        with self._writing_codes(ids, empty(self.n_bits)[1]):
            gone = f"DELETE FROM {self._table} WHERE id = ?"
            one_each = ((name,) for name in ids.tolist())
            deleted = self._connection.executemany(gone, one_each).rowcount
        return int(deleted)

    def _models(self, locked: bool = False) -> Models:
        run = self._connection.execute
        if not run("SELECT 1 FROM sqlite_master WHERE name = 'auxhash_properties'").fetchone():
            return Models()
        which = "FROM auxhash_properties WHERE name = ?"
        row = run(f"SELECT fingerprint, upcoming {which}", (self._table,)).fetchone()
        return Models(*(row or ()))

    def _set_models(self, models: Models) -> None:
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS auxhash_properties "
            "(name TEXT PRIMARY KEY, fingerprint TEXT, upcoming TEXT)"
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO auxhash_properties VALUES (?, ?, ?)",
            (self._table, models.fingerprint, models.upcoming),
        )

    def _alone(self) -> AbstractContextManager[None]:
        return self._transaction()

    def _clear_staged(self) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {self._again}")
        self._connection.execute(
            f"CREATE TABLE {self._again} (id {self._id_type} PRIMARY KEY, code BLOB NOT NULL)"
        )

    def _stage(self, ids: AnyIds, packed: Packed) -> None:
        rows = zip(ids.tolist(), map(bytes, packed), strict=True)
        self._connection.executemany(f"INSERT INTO {self._again} VALUES (?, ?)", rows)

    def _unstage(self, ids: AnyIds) -> None:
        gone = f"DELETE FROM {self._again} WHERE id IN (SELECT value FROM json_each(?))"
        self._connection.execute(gone, [json.dumps(ids.tolist())])

    def _unstaged(self, after: Id, size: int) -> AnyIds:
        rows = self._connection.execute(
            f"SELECT id FROM {self._table} AS codes WHERE id > ? AND NOT EXISTS "
            f"(SELECT 1 FROM {self._again} AS again WHERE again.id = codes.id) ORDER BY id LIMIT ?",
            (after, size),
        )
        return self._id_array([name for (name,) in rows])

    def _switch(self, models: Models) -> None:
        run = self._connection.execute
        self._version = UNKNOWN  # all codes are to be read again
        has_points = self._has_points()
        if has_points:  # the vectors are those of the new codes, too
            run(f"DROP TRIGGER {self._table}_replaced")
        new = f"SELECT code FROM {self._again} AS again WHERE again.id = {self._table}.id"
        run(f"UPDATE {self._table} SET code = ({new})")
        if has_points:
            run(REPLACED.format(t=self._table))
        run(f"DROP TABLE {self._again}")
        self._set_models(models)

    @contextmanager
    def _transaction(self, how: str = "IMMEDIATE") -> Iterator[None]:
        """Commit all of it, or nothing."""
        self._connection.execute(f"BEGIN {how}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        if self._connection.in_transaction:  # some errors have ended it already
            self._connection.execute("ROLLBACK")

    def _count(self) -> int:
        return len(self._current())

    def _page(self, after: Id, size: int) -> tuple[AnyIds, Packed]:
        statement = f"SELECT id, code FROM {self._table} WHERE id > ? ORDER BY id LIMIT ?"
        return self._arrays(self._connection.execute(statement, (after, size)).fetchall())

    def _arrays(self, rows: list[tuple[Id, bytes]]) -> tuple[AnyIds, Packed]:
        ids = self._id_array([name for name, _ in rows])
        try:
            packed = np.frombuffer(b"".join([code for _, code in rows]), np.uint8)
            return ids, packed.reshape(len(rows), n_bytes(self.n_bits)).copy()
        except (TypeError, ValueError) as error:
            raise StoreError(f"{self.url} holds codes that are damaged: {error}") from error

    def _close(self) -> None:
        with self._using:
            self._connection.close()


@contextmanager
def _where_possible() -> Iterator[None]:
    """Pass over a file that cannot be written, or not now."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY):
            raise


def _kind(value: str | int | bool) -> str:
    """The kind of a value in the table of fields."""
    if isinstance(value, bool):
        return "flag"
    return "text" if isinstance(value, str) else "number"
