"""PostgresqlStore: a table of a PostgreSQL server, from version 14 on.

The table is `codes (id bigint PRIMARY KEY, code bit(n))`, where bit 0 of a code comes first in the
bit string. Any table with such columns will do, if others may be null: the vectors themselves,
for instance, can stand beside the codes.

Distances are `bit_count(code # query)`. pgvector's `<~>` gives the same ones, and no sooner (see
docs/stores.md); but if the column has one of pgvector's indexes, PostgreSQL uses it even for
`ORDER BY code <~> query, id`, and the answer is no longer exact.
"""

import re
from functools import partial
from typing import Any

import numpy as np

from auxhash.checks import LARGEST_ID
from auxhash.codes import Packed
from auxhash.index.held import Ids
from auxhash.stores.address import Address, engine
from auxhash.stores.store import (
    BATCH,
    Near,
    Store,
    StoreError,
    agreed_bits,
    empty,
    no_store,
    told,
)

OLDEST = 14  # has bit_count


class PostgresqlStore(Store):
    """A table of a PostgreSQL server, searched there, exactly: the server compares all codes."""

    def __init__(self, address: Address, n_bits: int | None, n_jobs: int | None) -> None:
        psycopg: Any = engine("psycopg", "postgresql")
        self.errors = (psycopg.Error,)
        self._connect = partial(psycopg.connect, address.for_server, autocommit=True)
        with told(str(address), self.errors):
            self._connection = self._connect()
            try:
                self._prepare(address, n_bits)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, address: Address, n_bits: int | None) -> None:
        """Make the table, or check the one that is there."""
        version = self._connection.info.server_version
        if version < OLDEST * 10_000:
            raise StoreError(f"{address}: PostgreSQL {OLDEST} or later is needed, not {version}")
        self._table = f'"{address.table}"'
        with self._connection.transaction():
            # One process at a time, so that two do not make the table at once.
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('auxhash.stores'))")
            found = self._found_bits(address)
            super().__init__(address, agreed_bits(str(address), found, n_bits))
            if found is None:
                self._connection.execute(
                    f"CREATE TABLE {self._table} (id bigint PRIMARY KEY CHECK (id >= 0), "
                    f"code bit({self.n_bits}) NOT NULL)"
                )
        self._distance = f"bit_count(code # %s::bit({self.n_bits}))::integer"

    def _found_bits(self, address: Address) -> int | None:
        rows = self._connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0",
            [self._table],
        ).fetchall()
        if not rows:
            return None
        kinds = dict(rows)
        bits = re.fullmatch(r"bit\((\d+)\)", kinds.get("code", ""))
        if kinds.get("id") != "bigint" or bits is None:
            raise no_store(str(address), address.table, "it needs columns id bigint, code bit(n)")
        return int(bits[1])

    def _ready(self) -> None:
        if self._connection.closed:  # by the server; who was talking then has got an error
            self._connection = self._connect()

    def _upsert(self, ids: Ids, packed: Packed) -> None:
        order = np.argsort(ids)  # two that write the same ids do not wait for each other forever
        statement = (
            f"INSERT INTO {self._table} (id, code) "
            f"SELECT * FROM unnest(%s::bigint[], %s::bit({self.n_bits})[]) "
            "ON CONFLICT (id) DO UPDATE SET code = excluded.code"
        )
        with self._connection.transaction():
            for start in range(0, len(ids), BATCH):
                some = order[start : start + BATCH]
                given = [ids[some].tolist(), bit_strings(packed[some], self.n_bits)]
                self._connection.execute(statement, given)

    def _delete(self, ids: Ids) -> int:
        gone = f"DELETE FROM {self._table} WHERE id = ANY(%s::bigint[])"
        return int(self._connection.execute(gone, [ids.tolist()]).rowcount)

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        statement = (
            f"SELECT {self._distance} AS distance, id FROM {self._table} WHERE code IS NOT NULL "
            f"ORDER BY distance, id LIMIT {min(k, LARGEST_ID)}"
        )
        return self._found(queries, statement)

    def _within(self, queries: Packed, r: int) -> list[Near]:
        statement = (
            f"SELECT distance, id FROM (SELECT {self._distance} AS distance, id "
            f"FROM {self._table}) AS all_of_them WHERE distance <= {r} ORDER BY distance, id"
        )
        return self._found(queries, statement)

    def _found(self, queries: Packed, statement: str) -> list[Near]:
        found = []
        with self._connection.transaction():
            # All queries see the table at one moment.
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            for text in bit_strings(queries, self.n_bits):
                rows = self._connection.execute(statement, [text]).fetchall()
                near = np.array([distance for distance, _ in rows], np.int32)
                found.append((near, np.array([name for _, name in rows], np.int64)))
        return found

    def _count(self) -> int:
        counted = f"SELECT count(*) FROM {self._table} WHERE code IS NOT NULL"
        return int(self._connection.execute(counted).fetchone()[0])

    def _page(self, after: int, size: int) -> tuple[Ids, Packed]:
        some = (
            f"SELECT id, code::text FROM {self._table} "
            "WHERE id > %s AND code IS NOT NULL ORDER BY id LIMIT %s"
        )
        rows = self._connection.execute(some, [after, size]).fetchall()
        if not rows:
            return empty(self.n_bits)
        ids = np.array([name for name, _ in rows], np.int64)
        return ids, from_bit_strings([text for _, text in rows], self.n_bits)

    def _close(self) -> None:
        self._connection.close()


def bit_strings(packed: Packed, n_bits: int) -> list[str]:
    """Codes as text of the type bit(n): bit 0 comes first."""
    bits = np.unpackbits(packed, axis=1, count=n_bits, bitorder="little") + ord("0")
    return [row.tobytes().decode() for row in bits.astype(np.uint8)]


def from_bit_strings(texts: list[str], n_bits: int) -> Packed:
    """The reverse of `bit_strings`."""
    bits = np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), n_bits) - ord("0")
    return np.packbits(bits, axis=1, bitorder="little")
