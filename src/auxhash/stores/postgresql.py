"""PostgresqlStore: a table of a PostgreSQL server, from version 14 on.

The table is `codes (id bigint PRIMARY KEY, code bit(n))`, where bit 0 of a code comes first in the
bit string. Any table with such columns will do, if others may be null: the vectors themselves,
for instance, can stand beside the codes. What `upsert` is given beside codes is in a table
`codes_points (id, vector bytea, payload json)`, made when the first is kept. Fingerprints of models
are in `auxhash_properties`, and codes that are to replace others in `codes-again`.

Distances are `bit_count(code # query)`. pgvector's `<~>` gives the same ones, and no sooner (see
docs/stores.md); but if the column has one of pgvector's indexes, PostgreSQL uses it even for
`ORDER BY code <~> query, id`, and the answer is no longer exact.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from auxhash.codes import Packed
from auxhash.compute.checks import LARGEST_ID
from auxhash.search.index.state import Ids
from auxhash.stores.address import Address
from auxhash.stores.connection import Connection
from auxhash.stores.points import Beside, Having, StoredPoints
from auxhash.stores.pool import Pool
from auxhash.stores.store import (
    CODES_PER_BATCH,
    Models,
    Near,
    Store,
    StoreError,
    agreed_bits,
    empty,
    no_store,
)

MIN_VERSION = 14  # of PostgreSQL: it has bit_count
# One process at a time, until the transaction ends: it makes tables, or sets fingerprints.
OWN = "hashtext('auxhash.stores'), hashtext(:name)"  # key of a lock for one store
LOCK = "SELECT pg_advisory_xact_lock(hashtext('auxhash.stores'))"


class PostgresqlStore(Store):
    """A table of a PostgreSQL server, searched there, exactly: the server compares all codes."""

    keeps_points = True

    def __init__(self, address: Address, n_bits: int | None, n_jobs: int | None) -> None:
        self._pool = Pool(
            str(address), lambda: Connection(address), Connection.close, lambda link: link.lost
        )
        try:
            with self._pool.lent():
                self._prepare(address, n_bits)
        except BaseException:
            self._pool.close()
            raise

    @property
    def _connection(self) -> Connection:
        return self._pool.mine

    def _session(self, write: bool) -> AbstractContextManager[None]:
        return self._pool.lent()

    def _prepare(self, address: Address, n_bits: int | None) -> None:
        """Make the table, or check the one that is there."""
        [[version]] = self._connection.run("SHOW server_version_num")
        if int(version) < MIN_VERSION * 10_000:
            raise StoreError(
                f"{address}: PostgreSQL {MIN_VERSION} or later is needed, not {version}"
            )
        self._name, self._has_properties = address.table, False
        self._table, self._points = f'"{address.table}"', f'"{address.table}_points"'
        self._again = f'"{address.table}-again"'
        with self._connection.transaction():
            self._connection.run(LOCK)
            stored_bits = self._stored_bits(address)
            super().__init__(address, agreed_bits(str(address), stored_bits, n_bits))
            if stored_bits is None:
                self._connection.run(
                    f"CREATE TABLE {self._table} (id bigint PRIMARY KEY CHECK (id >= 0), "
                    f"code bit({self.n_bits}) NOT NULL)"
                )
                if self._models() != Models():  # of a table that was dropped
                    self._set_models(Models())
        self._distance = f"bit_count(code # :query::bit({self.n_bits}))::integer"

    def _stored_bits(self, address: Address) -> int | None:
        rows = self._connection.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(:name) AND attnum > 0",
            name=self._table,
        )
        if not rows:
            return None
        kinds = dict(rows)
        bits = re.fullmatch(r"bit\((\d+)\)", kinds.get("code", ""))
        if kinds.get("id") != "bigint" or bits is None:
            raise no_store(str(address), address.table, "it needs columns id bigint, code bit(n)")
        return int(bits[1])

    def _upsert(
        self, ids: Ids, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        order = np.argsort(ids)  # two that write the same ids do not wait for each other forever
        statement = (
            f"INSERT INTO {self._table} (id, code) "
            f"SELECT * FROM unnest(:ids::bigint[], :codes::bit({self.n_bits})[]) "
            "ON CONFLICT (id) DO UPDATE SET code = excluded.code"
        )
        with self._connection.transaction():
            # Many write at once, but none while a batch is encoded again.
            self._connection.run(f"SELECT pg_advisory_xact_lock_shared({OWN})", name=self._name)
            admit()
            if beside is not None and not self._has_points():
                self._make_points()
            has_points = self._has_points()
            for start in range(0, len(ids), CODES_PER_BATCH):
                rows = order[start : start + CODES_PER_BATCH]
                names = array(ids[rows].tolist())
                codes = array(bit_strings(packed[rows], self.n_bits))
                self._connection.run(statement, ids=names, codes=codes)
                if has_points:
                    gone = f"DELETE FROM {self._points} WHERE id = ANY(:ids::bigint[])"
                    self._connection.run(gone, ids=names)
                if beside is not None:
                    self._connection.run(
                        f"INSERT INTO {self._points} SELECT id, decode(vector, 'base64'), payload "
                        "FROM json_to_recordset(:rows::json) "
                        "AS rows (id bigint, vector text, payload json)",
                        rows=_records(ids, beside, rows.tolist()),
                    )

    def _has_points(self) -> bool:
        ours = (  # a table of something else may be called so
            "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(:name) "
            "AND attname = 'payload' AND atttypid = 'json'::regtype"
        )
        return bool(self._connection.run(ours, name=self._points)[0][0])

    def _make_points(self) -> None:
        self._connection.run(LOCK)
        if self._has_points():  # another process was quicker
            return
        self._connection.run(
            f"CREATE TABLE {self._points} (id bigint PRIMARY KEY "
            f"REFERENCES {self._table} (id) ON DELETE CASCADE, vector bytea, payload json)"
        )
        self._connection.run(
            f"CREATE INDEX ON {self._points} USING gin ((payload::jsonb) jsonb_path_ops)"
        )

    def _read(self, ids: Ids, vectors: bool, payloads: bool) -> StoredPoints:
        which = "WHERE codes.id = ANY(:ids::bigint[]) AND code IS NOT NULL"
        more, joined = "NULL, NULL", ""
        if self._has_points():
            more = f"{'vector' if vectors else 'NULL'}, {'payload::text' if payloads else 'NULL'}"
            joined = f"LEFT JOIN {self._points} AS points ON points.id = codes.id"
        rows = self._connection.run(
            f"SELECT codes.id, code::text, {more} FROM {self._table} AS codes {joined} {which}",
            ids=array(ids.tolist()),
        )
        beside = Beside([row[2] for row in rows], [row[3] for row in rows])
        return StoredPoints(*self._arrays([row[:2] for row in rows]), beside)

    def _sizes(self, ids: Ids, vectors: bool, payloads: bool) -> dict[int, int]:
        if not self._has_points():
            return {}
        columns = ["octet_length(vector)"] * vectors + ["octet_length(payload::text)"] * payloads
        size = " + ".join(f"coalesce({column}, 0)" for column in columns)
        return dict(
            self._connection.run(
                f"SELECT id, {size or 0} FROM {self._points} WHERE id = ANY(:ids::bigint[])",
                ids=array(ids.tolist()),
            )
        )

    def _delete(self, ids: Ids) -> int:
        gone = f"DELETE FROM {self._table} WHERE id = ANY(:ids::bigint[])"
        self._connection.run(gone, ids=array(ids.tolist()))
        return self._connection.row_count

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        return self._first(queries, k, "true", {})

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return self._all_within(queries, r, "true", {})

    def _nearest_among(self, queries: Packed, k: int, among: Ids | Having) -> list[Near]:
        return self._first(queries, k, *self._condition(among))

    def _within_among(self, queries: Packed, r: int, among: Ids | Having) -> list[Near]:
        return self._all_within(queries, r, *self._condition(among))

    def _condition(self, among: Ids | Having) -> tuple[str, dict[str, str]]:
        """Condition on the rows to search, and its parameters."""
        if not isinstance(among, Having):
            return "id = ANY(:among::bigint[])", {"among": array(among.tolist())}
        if not self._has_points():
            return "false", {}
        parameters, parts = {"field": among.field}, []
        for i, value in enumerate(among.values):
            parameters |= {
                f"part{i}": json.dumps({among.field: value}),
                f"value{i}": json.dumps(value),
            }
            # The first is answered from the index; in it, lists contain their elements.
            parts.append(
                f"(payload::jsonb @> :part{i}::jsonb "
                f"AND payload::jsonb -> :field::text = :value{i}::jsonb)"
            )
        return f"id IN (SELECT id FROM {self._points} WHERE {' OR '.join(parts)})", parameters

    def _first(self, queries: Packed, k: int, which: str, parameters: dict[str, str]) -> list[Near]:
        statement = (
            f"SELECT {self._distance} AS distance, id FROM {self._table} "
            f"WHERE code IS NOT NULL AND {which} ORDER BY distance, id LIMIT {min(k, LARGEST_ID)}"
        )
        return self._search_each(queries, statement, parameters)

    def _all_within(
        self, queries: Packed, r: int, which: str, parameters: dict[str, str]
    ) -> list[Near]:
        statement = (
            f"SELECT distance, id FROM (SELECT {self._distance} AS distance, id "
            f"FROM {self._table} WHERE {which}) AS all_of_them "
            f"WHERE distance <= {r} ORDER BY distance, id"
        )
        return self._search_each(queries, statement, parameters)

    def _search_each(self, queries: Packed, statement: str, more: dict[str, str]) -> list[Near]:
        results = []
        parameters = [{"query": text, **more} for text in bit_strings(queries, self.n_bits)]
        # All queries see the table at one moment.
        with self._connection.transaction("ISOLATION LEVEL REPEATABLE READ, READ ONLY"):
            answers = self._connection.run_each(statement, parameters)
        for rows in answers:
            near = np.array([distance for distance, _ in rows], np.int32)
            results.append((near, np.array([name for _, name in rows], np.int64)))
        return results

    def _count(self) -> int:
        counted = f"SELECT count(*) FROM {self._table} WHERE code IS NOT NULL"
        return int(self._connection.run(counted)[0][0])

    def _page(self, after: int, size: int) -> tuple[Ids, Packed]:
        statement = (
            f"SELECT id, code::text FROM {self._table} "
            "WHERE id > :after AND code IS NOT NULL ORDER BY id LIMIT :size"
        )
        return self._arrays(
            self._connection.run(statement, after=after, size=min(size, LARGEST_ID))
        )

    def _arrays(self, rows: list[Any]) -> tuple[Ids, Packed]:
        if not rows:
            return empty(self.n_bits)
        ids = np.array([name for name, _ in rows], np.int64)
        return ids, from_bit_strings([text for _, text in rows], self.n_bits)

    def _models(self, locked: bool = False) -> Models:
        if locked:
            self._connection.run(LOCK)
        if not self._has_properties:
            there = "SELECT to_regclass('auxhash_properties') IS NOT NULL"
            self._has_properties = bool(self._connection.run(there)[0][0])
        if not self._has_properties:
            return Models()
        rows = self._connection.run(
            "SELECT fingerprint, upcoming FROM auxhash_properties WHERE name = :name",
            name=self._name,
        )
        return Models(*rows[0]) if rows else Models()

    def _set_models(self, models: Models) -> None:
        self._connection.run(LOCK)
        self._connection.run(
            "CREATE TABLE IF NOT EXISTS auxhash_properties "
            "(name text PRIMARY KEY, fingerprint text, upcoming text)"
        )
        self._connection.run(
            "INSERT INTO auxhash_properties VALUES (:name, :fingerprint, :upcoming) "
            "ON CONFLICT (name) DO UPDATE "
            "SET fingerprint = excluded.fingerprint, upcoming = excluded.upcoming",
            name=self._name,
            fingerprint=models.fingerprint,
            upcoming=models.upcoming,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.run(f"SELECT pg_advisory_xact_lock({OWN})", name=self._name)
            yield

    def _clear_staged(self) -> None:
        self._connection.run(f"DROP TABLE IF EXISTS {self._again}")
        self._connection.run(
            f"CREATE TABLE {self._again} (id bigint PRIMARY KEY, code bit({self.n_bits}) NOT NULL)"
        )

    def _stage(self, ids: Ids, packed: Packed) -> None:
        self._connection.run(
            f"INSERT INTO {self._again} "
            f"SELECT * FROM unnest(:ids::bigint[], :codes::bit({self.n_bits})[])",
            ids=array(ids.tolist()),
            codes=array(bit_strings(packed, self.n_bits)),
        )

    def _unstage(self, ids: Ids) -> None:
        gone = f"DELETE FROM {self._again} WHERE id = ANY(:ids::bigint[])"
        self._connection.run(gone, ids=array(ids.tolist()))

    def _unstaged(self, after: int, size: int) -> Ids:
        rows = self._connection.run(
            f"SELECT id FROM {self._table} AS codes WHERE id > :after AND code IS NOT NULL "
            f"AND NOT EXISTS (SELECT 1 FROM {self._again} AS again WHERE again.id = codes.id) "
            "ORDER BY id LIMIT :size",
            after=after,
            size=size,
        )
        return np.array([name for (name,) in rows], np.int64)

    def _switch(self, models: Models) -> None:
        self._connection.run(
            f"UPDATE {self._table} AS codes SET code = again.code FROM {self._again} AS again "
            "WHERE again.id = codes.id AND codes.code IS NOT NULL"
        )
        self._connection.run(f"DROP TABLE {self._again}")
        self._set_models(models)

    def _close(self) -> None:
        self._pool.close()


def array(values: Sequence[object]) -> str:
    """Numbers or bit strings as an array's text, which pg8000 would make one sign at a time."""
    return f"{{{','.join(map(str, values))}}}"


def _records(ids: Ids, beside: Beside, which: list[int]) -> str:
    """Vectors and payloads of these rows as a list of JSON objects; payloads stay as they are."""
    records = []
    for i in which:
        vector, payload = beside.vectors[i], beside.payloads[i]
        if vector is None and payload is None:
            continue
        parts = [f'"id": {ids[i]}']
        if vector is not None:
            parts.append(f'"vector": "{base64.b64encode(vector).decode()}"')
        if payload is not None:
            parts.append(f'"payload": {payload}')
        records.append(f"{{{', '.join(parts)}}}")
    return f"[{', '.join(records)}]"


def bit_strings(packed: Packed, n_bits: int) -> list[str]:
    """Codes as text of the type bit(n): bit 0 comes first."""
    bits = np.unpackbits(packed, axis=1, count=n_bits, bitorder="little") + ord("0")
    return [row.tobytes().decode() for row in bits.astype(np.uint8)]


def from_bit_strings(texts: list[str], n_bits: int) -> Packed:
    """The reverse of `bit_strings`."""
    bits = np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), n_bits) - ord("0")
    return np.packbits(bits, axis=1, bitorder="little")
