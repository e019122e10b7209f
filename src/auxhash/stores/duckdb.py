"""DuckdbStore: a file of DuckDB.

A table `codes (id BIGINT PRIMARY KEY, w0 UBIGINT, w1 UBIGINT, ...)` holds each code as 64-bit
words, bit k in bit k % 64 of word k // 64, and another one, `auxhash_stores`, the number of bits.
Ids that are text are of type VARCHAR.
`auxhash_properties` holds fingerprints of models, `codes-again` codes that are to replace others.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from auxhash.codes import Packed, n_bytes, to_words
from auxhash.compute import deadline
from auxhash.compute.arrays import AnyArray
from auxhash.compute.checks import LARGEST_ID
from auxhash.stores.address import Address, engine
from auxhash.stores.ids import AnyIds, Id
from auxhash.stores.points import Beside, StoredPoints
from auxhash.stores.pool import Pool
from auxhash.stores.store import (
    Models,
    Near,
    Store,
    agreed_bits,
    file_of,
    no_store,
    store_errors,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Writers of a file, all of this process: DuckDB would lose what one inserts while another replaces
# the empty table by one for other ids.
WRITERS: WeakValueDictionary[str, RLock] = WeakValueDictionary()
NUMBER = "id BIGINT PRIMARY KEY CHECK (id >= 0)"
NEW = "auxhash_new"  # arrays of ours, as a table


class DuckdbStore(Store):
    """A table of a DuckDB file, searched by DuckDB. One process at a time may open the file."""

    def __init__(self, address: Address, n_bits: int | None) -> None:
        duckdb = engine("duckdb", "duckdb")
        self.errors = (duckdb.Error,)
        path = file_of(address, n_bits)
        with store_errors(str(address), self.errors):
            self._database = duckdb.connect(str(path))
            # A cursor is a connection of its own to the same database.
            self._pool = Pool(str(address), self._database.cursor, lambda cursor: cursor.close())
            try:
                with self._pool.lent(), self._transaction():
                    self._prepare(address, n_bits)
            except BaseException:
                self._close()
                raise

    @property
    def _connection(self) -> "DuckDBPyConnection":
        return self._pool.mine

    def _session(self, write: bool) -> AbstractContextManager[None]:
        return self._pool.lent()

    def _prepare(self, address: Address, n_bits: int | None) -> None:
        """Make the table, or check the one that is there."""
        run = self._connection.execute
        table = address.table
        there = {name for (name,) in run("SELECT table_name FROM duckdb_tables()").fetchall()}
        row = None
        if "auxhash_stores" in there:
            rows = run("SELECT n_bits FROM auxhash_stores WHERE name = ?", [table]).fetchall()
            row = rows[0] if rows else None
        if (row is None) != (table not in there):
            raise no_store(str(address), table, "auxhash_stores does not agree")
        super().__init__(
            address, agreed_bits(str(address), None if row is None else int(row[0]), n_bits)
        )
        self._writing = WRITERS.setdefault(str(address.file().resolve()), self._writing)
        self._table, self._again = f'"{table}"', f'"{table}-again"'
        self._name = table
        self._words = [f"w{i}" for i in range(-(-n_bytes(self.n_bits) // 8))]
        # A sum of 8-bit numbers would be one of 8 bits.
        self._distance = " + ".join(
            f"bit_count(xor({w}, ?::UBIGINT))::INTEGER" for w in self._words
        )
        if row is None:
            run(
                "CREATE TABLE IF NOT EXISTS auxhash_stores "
                "(name VARCHAR PRIMARY KEY, n_bits INTEGER NOT NULL)"
            )
            self._make_anew(text=False)
            run("INSERT INTO auxhash_stores VALUES (?, ?)", [table, self.n_bits])

    def _make_anew(self, text: bool) -> None:
        columns = ", ".join(f"{w} UBIGINT NOT NULL" for w in self._words)
        name = "id VARCHAR PRIMARY KEY CHECK (id <> '')" if text else NUMBER
        self._connection.execute(f"CREATE OR REPLACE TABLE {self._table} ({name}, {columns})")

    def _has_text_ids(self, now: bool = False) -> bool:
        rows = self._connection.execute(f"SELECT id FROM {self._table} LIMIT 0")
        [(_, kind, *_)] = rows.description
        rows.fetchall()
        return str(kind) in ("VARCHAR", "STRING")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing; what is read is of one moment."""
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(*self.errors):  # some errors have ended it already
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _registered(self, **columns: AnyArray) -> Iterator[None]:
        """Register arrays as the table NEW."""
        self._connection.register(NEW, columns)
        try:
            yield
        finally:
            self._connection.unregister(NEW)

    def _columns(self, packed: Packed) -> dict[str, AnyArray]:
        words = to_words(packed)
        return {w: np.ascontiguousarray(words[:, i]) for i, w in enumerate(self._words)}

    def _upsert(
        self, ids: AnyIds, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        replaced = ", ".join(f"{w} = excluded.{w}" for w in self._words)
        names = ", ".join(["id", *self._words])
        with self._registered(id=ids, **self._columns(packed)), self._transaction():
            admit()
            self._connection.execute(
                f"INSERT INTO {self._table} ({names}) SELECT {names} FROM {NEW} "
                f"ON CONFLICT (id) DO UPDATE SET {replaced}"
            )

    def _delete(self, ids: AnyIds) -> int:
        with self._registered(id=ids), self._transaction():
            gone = f"DELETE FROM {self._table} WHERE id IN (SELECT id FROM {NEW})"
            return self._number(gone)

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        return self._search_each(queries, f"ORDER BY distance, id LIMIT {min(k, LARGEST_ID)}")

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return self._search_each(queries, f"WHERE distance <= {r} ORDER BY distance, id")

    def _search_each(self, queries: Packed, which: str) -> list[Near]:
        statement = (
            f"SELECT distance, id FROM (SELECT id, {self._distance} AS distance "
            f"FROM {self._table}) {which}"
        )
        with self._transaction():
            every = deadline.each(to_words(queries).tolist())
            return [self._answer(statement, words) for words in every]

    def _answer(self, statement: str, words: list[int]) -> Near:
        columns = self._connection.execute(statement, words).fetchnumpy()
        return np.asarray(columns["distance"], np.int32), np.asarray(columns["id"])

    def _count(self) -> int:
        return self._number(f"SELECT count(*) FROM {self._table}")

    def _number(self, statement: str) -> int:
        # All rows are fetched, or the connection would wait for the next.
        [(number,)] = self._connection.execute(statement).fetchall()
        return int(number)

    def _page(self, after: Id, size: int) -> tuple[AnyIds, Packed]:
        statement = f"SELECT * FROM {self._table} WHERE id > ? ORDER BY id LIMIT ?"
        return self._arrays(self._connection.execute(statement, [after, size]).fetchnumpy())

    def _read(self, ids: AnyIds, vectors: bool, payloads: bool) -> StoredPoints:
        statement = f"SELECT * FROM {self._table} WHERE id IN (SELECT id FROM {NEW})"
        with self._registered(id=ids), self._transaction():
            return StoredPoints(*self._arrays(self._connection.execute(statement).fetchnumpy()))

    def _arrays(self, columns: dict[str, AnyArray]) -> tuple[AnyIds, Packed]:
        ids = np.asarray(columns["id"])
        words = np.stack([np.asarray(columns[w], "<u8") for w in self._words], axis=1)
        return ids, words.view(np.uint8)[:, : n_bytes(self.n_bits)].copy()

    def _models(self, locked: bool = False) -> Models:
        run = self._connection.execute
        there = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'auxhash_properties'"
        if not run(there).fetchall():
            return Models()
        which = "FROM auxhash_properties WHERE name = ?"
        rows = run(f"SELECT fingerprint, upcoming {which}", [self._name]).fetchall()
        return Models(*rows[0]) if rows else Models()

    def _set_models(self, models: Models) -> None:
        run = self._connection.execute
        run(
            "CREATE TABLE IF NOT EXISTS auxhash_properties "
            "(name VARCHAR PRIMARY KEY, fingerprint VARCHAR, upcoming VARCHAR)"
        )
        row = [self._name, models.fingerprint, models.upcoming]
        run("INSERT OR REPLACE INTO auxhash_properties VALUES (?, ?, ?)", row)

    def _alone(self) -> AbstractContextManager[None]:
        return self._transaction()

    def _clear_staged(self) -> None:
        run = self._connection.execute
        run(f"CREATE OR REPLACE TABLE {self._again} AS SELECT * FROM {self._table} LIMIT 0")

    def _stage(self, ids: AnyIds, packed: Packed) -> None:
        with self._registered(id=ids, **self._columns(packed)):
            self._connection.execute(f"INSERT INTO {self._again} BY NAME SELECT * FROM {NEW}")

    def _unstaged(self, after: Id, size: int) -> AnyIds:
        statement = (
            f"SELECT id FROM {self._table} ANTI JOIN {self._again} USING (id) WHERE id > ? "
            "ORDER BY id LIMIT ?"
        )
        columns = self._connection.execute(statement, [after, size]).fetchnumpy()
        return np.asarray(columns["id"])

    def _switch(self, models: Models) -> None:
        replaced = ", ".join(f"{w} = again.{w}" for w in self._words)
        self._connection.execute(
            f"UPDATE {self._table} AS codes SET {replaced} FROM {self._again} AS again "
            "WHERE again.id = codes.id"
        )
        self._connection.execute(f"DROP TABLE {self._again}")
        self._set_models(models)

    def _close(self) -> None:
        self._pool.close()
        self._database.close()
