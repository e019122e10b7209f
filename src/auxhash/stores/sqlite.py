"""SqliteStore: a file of SQLite, searched in memory by our own index.

A table `codes (id INTEGER PRIMARY KEY, code BLOB)` holds the bytes of our order, and another one,
`auxhash_stores`, the number of bits of each such table. Python brings SQLite along.
"""

import sqlite3
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auxhash import checks
from auxhash.codes import Packed, n_bytes
from auxhash.index.hamming import as_queries
from auxhash.index.held import Ids
from auxhash.index.scan import Distances
from auxhash.stores.address import Address
from auxhash.stores.mirror import Mirror
from auxhash.stores.store import (
    Near,
    NoStoreError,
    Store,
    StoreError,
    agreed_bits,
    empty,
    no_store,
    told,
)

WAIT = 30.0  # seconds for another process to finish its write
UNKNOWN = -1  # no data_version of SQLite's


class SqliteStore(Store):
    """A table of a SQLite file, in memory as well, which a search reads.

    Other programs may write to the file at the same time: a search reads it anew if they did.
    """

    errors = (sqlite3.Error,)

    def __init__(self, address: Address, n_bits: int | None, n_jobs: int | None) -> None:
        path = address.file()
        if n_bits is None and not path.exists():
            raise NoStoreError(f"{address} holds no store; give n_bits to make one")
        with told(str(address), self.errors):
            self._connection = sqlite3.connect(
                path, timeout=WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(address, n_bits)
            except BaseException:
                self._connection.close()
                raise
        self._n_jobs = n_jobs
        self._version = UNKNOWN
        self._mirror = Mirror.of(self.n_bits, *empty(self.n_bits), n_jobs)
        try:
            self._current()
        except BaseException:
            self.close()
            raise

    def _prepare(self, address: Address, n_bits: int | None) -> None:
        """Make the table, or check the one that is there."""
        run = self._connection.execute
        run("PRAGMA synchronous = FULL")  # a commit is on the disk, even if the power fails
        found = self._found_bits(address)
        super().__init__(address, agreed_bits(str(address), found, n_bits))
        self._table = address.table
        if found is not None:
            return
        run("PRAGMA journal_mode = WAL")
        run("BEGIN IMMEDIATE")
        try:
            # Another process may have been quicker.
            if self._found_bits(address) is None:
                run(
                    "CREATE TABLE IF NOT EXISTS auxhash_stores "
                    "(name TEXT PRIMARY KEY, n_bits INTEGER NOT NULL)"
                )
                run(
                    f"CREATE TABLE {self._table} (id INTEGER PRIMARY KEY CHECK (id >= 0), code "
                    f"BLOB NOT NULL CHECK (length(code) = {n_bytes(self.n_bits)}))"
                )
                run("INSERT INTO auxhash_stores VALUES (?, ?)", (self._table, self.n_bits))
            agreed_bits(str(address), self._found_bits(address), self.n_bits)
            run("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _found_bits(self, address: Address) -> int | None:
        names = "SELECT name FROM sqlite_master WHERE name IN ('auxhash_stores', ?)"
        there = {name for (name,) in self._connection.execute(names, (address.table,))}
        row = None
        if "auxhash_stores" in there:
            bits = "SELECT n_bits FROM auxhash_stores WHERE name = ?"
            row = self._connection.execute(bits, (address.table,)).fetchone()
        if (row is None) != (address.table not in there):
            raise no_store(str(address), address.table, "auxhash_stores does not agree")
        return None if row is None else int(row[0])

    def search(self, queries: ArrayLike, k: int) -> Near:
        asked, k = as_queries(queries, self.n_bits), checks.whole("k", k, 1)
        return self._current().search(asked, k)

    def search_radius(self, queries: ArrayLike, r: int) -> tuple[list[Distances], list[Ids]]:
        asked, r = as_queries(queries, self.n_bits), checks.whole("r", r, 0)
        return self._current().search_radius(asked, min(r, self.n_bits))

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        return list(zip(*self._current().search(queries, k), strict=True))

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return list(zip(*self._current().search_radius(queries, r), strict=True))

    def _current(self) -> Mirror:
        """What the file holds; it does not change, so that a search needs no lock."""
        with self._talking():
            # It changes when another connection has committed; our own writes are in the mirror.
            # Taken before the file is read: what is committed in between is read again, not missed.
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                rows = self._connection.execute(f"SELECT id, code FROM {self._table} ORDER BY id")
                ids, packed = self._arrays(rows.fetchall())
                if len(ids):
                    self._check_read(ids, packed)
                self._mirror = Mirror.of(self.n_bits, ids, packed, self._n_jobs)
                self._version = version
            return self._mirror

    def _upsert(self, ids: Ids, packed: Packed) -> None:
        statement = (
            f"INSERT INTO {self._table} (id, code) VALUES (?, ?) "
            "ON CONFLICT (id) DO UPDATE SET code = excluded.code"
        )
        version = self._unsure()
        self._commit(statement, zip(ids.tolist(), map(bytes, packed), strict=True))
        self._mirror, self._version = self._mirror.plus(ids, packed), version

    def _delete(self, ids: Ids) -> int:
        one_each = ((name,) for name in ids.tolist())
        version = self._unsure()
        deleted = self._commit(f"DELETE FROM {self._table} WHERE id = ?", one_each)
        self._mirror, self._version = self._mirror.minus(ids), version
        return deleted

    def _unsure(self) -> int:
        """Say that the mirror may be behind the file, until it is known that it is not.

        A write that is interrupted after its commit leaves it so, and the next search reads anew.
        """
        version, self._version = self._version, UNKNOWN
        return version

    def _commit(self, statement: str, rows: Any) -> int:
        """Run the statement for all rows, or for none; how many rows of the table it changed."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            changed = self._connection.executemany(statement, rows).rowcount
            self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        return int(changed)

    def _undo(self) -> None:
        if self._connection.in_transaction:  # some errors have ended it already
            self._connection.execute("ROLLBACK")

    def _count(self) -> int:
        return len(self._current())

    def _page(self, after: int, size: int) -> tuple[Ids, Packed]:
        some = f"SELECT id, code FROM {self._table} WHERE id > ? ORDER BY id LIMIT ?"
        return self._arrays(self._connection.execute(some, (after, size)).fetchall())

    def _arrays(self, rows: list[tuple[int, bytes]]) -> tuple[Ids, Packed]:
        ids = np.array([name for name, _ in rows], np.int64)
        try:
            packed = np.frombuffer(b"".join([code for _, code in rows]), np.uint8)
            return ids, packed.reshape(len(rows), n_bytes(self.n_bits)).copy()
        except (TypeError, ValueError) as error:
            raise StoreError(f"{self.url} holds codes that are damaged: {error}") from error

    def _close(self) -> None:
        self._connection.close()
