"""PostgresqlStore: a table of a PostgreSQL server, from version 14 on.

The table is `codes (id bigint PRIMARY KEY, code bit(n))`, where bit 0 of a code comes first in the
bit string; ids that are text are of type text. Any table with such columns will do, also one with
ids of type uuid, if others may be null: the vectors themselves, for instance, can stand beside the
codes. What `upsert` is given beside codes is in a table
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
from contextlib import contextmanager
from typing import Any

import numpy as np

from auxhash.codes import Packed
from auxhash.compute.checks import LARGEST_ID, ArgumentError
from auxhash.stores.address import Address
from auxhash.stores.connection import Connection
from auxhash.stores.ids import KINDS, AnyIds, Id, is_text, order_of
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
QUOTED, BACKSLASHED = re.compile(r'["\\]'), r"\\\g<0>"  # in a text of an array
# Types of ids, and what is true of all: PostgreSQL refuses it if the type is no longer that.
ID_TYPES = {"bigint": "codes.id >= 0", "text": "codes.id <> ''", "uuid": "true"}
LOCK = "SELECT pg_advisory_xact_lock(hashtext('auxhash.stores'))"


class PostgresqlStore(Store):
    """A table of a PostgreSQL server, searched there, exactly: the server compares all codes."""

    keeps_points = True

    def __init__(self, address: Address, n_bits: int | None) -> None:
        self._known_type: str | None = None
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

    @contextmanager
    def _session(self, write: bool) -> Iterator[None]:
        with self._pool.lent():
            try:
                yield
            except BaseException:
                self._known_type = None  # a new table may have been undone, or another's be there
                raise

    def _prepare(self, address: Address, n_bits: int | None) -> None:
        """Make the table, or check the one that is there."""
        [[version]] = self._connection.run("SHOW server_version_num")
        if int(version) < MIN_VERSION * 10_000:
            raise StoreError(
                f"{address}: PostgreSQL {MIN_VERSION} or later is needed, not {version}"
            )
        self._name, self._has_properties, self._order = address.table, False, "id"
        self._table, self._points = f'"{address.table}"', f'"{address.table}_points"'
        self._again = f'"{address.table}-again"'
        with self._connection.transaction():
            self._connection.run(LOCK)
            stored_bits = self._stored_bits(address)
            super().__init__(address, agreed_bits(str(address), stored_bits, n_bits))
            if stored_bits is None:
                self._make(text=False)
                if self._models() != Models():  # of a table that was dropped
                    self._set_models(Models())
        self._distance = f"bit_count(code # :query::bit({self.n_bits}))::integer"

    def _make(self, text: bool) -> None:
        self._known_type = "text" if text else "bigint"
        check = "id <> ''" if text else "id >= 0"
        self._connection.run(
            f"CREATE TABLE {self._table} (id {self._column} PRIMARY KEY CHECK ({check}), "
            f"code bit({self.n_bits}) NOT NULL)"
        )

    def _make_anew(self, text: bool) -> None:
        self._connection.run(f"SELECT pg_advisory_xact_lock({OWN})", name=self._name)
        # A table that others have made, or whose rows are to get codes, is not ours to replace.
        rows = self._connection.run(f"SELECT 1 FROM {self._table} LIMIT 1")
        if rows or set(self._columns()) != {"id", "code"}:
            raise ArgumentError(
                f"ids must be {KINDS[not text]}, as the column id of the table {self._name} is"
            )
        had_points = self._has_points()
        if had_points:
            self._connection.run(f"DROP TABLE {self._points}")
        self._connection.run(f"DROP TABLE {self._table}")
        self._make(text)
        if had_points:
            self._make_points()

    def _has_text_ids(self, now: bool = False) -> bool:
        if now:
            self._known_type = None
        return self._id_type != "bigint"

    @property
    def _id_type(self) -> str:
        """Type of ids in statements."""
        if self._known_type is None:
            kind = self._columns().get("id", "")
            self._known_type = "text" if kind.startswith("character varying") else kind
        return self._known_type

    @property
    def _column(self) -> str:
        """Type of a column of ids."""
        return 'text COLLATE "C"' if self._id_type == "text" else self._id_type

    def _columns(self) -> dict[str, str]:
        """Types of the columns of the table."""
        return dict(
            self._connection.run(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(:name) AND attnum > 0",
                name=self._table,
            )
        )

    def _stored_bits(self, address: Address) -> int | None:
        kinds = self._columns()
        if not kinds:
            return None
        bits = re.fullmatch(r"bit\((\d+)\)", kinds.get("code", ""))
        if self._id_type not in ID_TYPES or bits is None:
            why = f"it needs columns id {', '.join(ID_TYPES)} and code bit(n)"
            raise no_store(str(address), address.table, why)
        if self._id_type == "text":  # a table of others may order it by the rules of a language
            [[collation]] = self._connection.run(
                "SELECT collname FROM pg_attribute JOIN pg_collation AS c ON c.oid = attcollation "
                "WHERE attrelid = to_regclass(:name) AND attname = 'id'",
                name=self._table,
            )
            self._order = "id" if collation == "C" else 'id COLLATE "C"'
        return int(bits[1])

    @property
    def _array(self) -> str:
        """Type of arrays of ids."""
        return f"{self._id_type}[]"

    def _upsert(
        self, ids: AnyIds, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        order = order_of(ids)  # two that write the same ids do not wait for each other forever
        with self._connection.transaction():
            # Many write at once, but none while a batch is encoded again, or the table made anew.
            shared = "_shared" if is_text(ids) == self._has_text_ids() else ""
            self._connection.run(f"SELECT pg_advisory_xact_lock{shared}({OWN})", name=self._name)
            admit()
            statement = (
                f"INSERT INTO {self._table} AS codes (id, code) "
                f"SELECT * FROM unnest(:ids::{self._array}, :codes::bit({self.n_bits})[]) "
                "ON CONFLICT (id) DO UPDATE SET code = excluded.code "
                f"WHERE {ID_TYPES[self._id_type]}"
            )
            has_points = self._has_points()
            if beside is not None and not has_points:
                self._make_points()
            for start in range(0, len(ids), CODES_PER_BATCH):
                rows = order[start : start + CODES_PER_BATCH]
                names = _listed(ids[rows])
                codes = array(bit_strings(packed[rows], self.n_bits))
                self._connection.run(statement, ids=names, codes=codes)
                if has_points:
                    gone = f"DELETE FROM {self._points} WHERE id = ANY(:ids::{self._array})"
                    self._connection.run(gone, ids=names)
                if beside is not None:
                    self._connection.run(
                        f"INSERT INTO {self._points} SELECT id, decode(vector, 'base64'), payload "
                        "FROM json_to_recordset(:rows::json) "
                        f"AS rows (id {self._id_type}, vector text, payload json)",
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
            f"CREATE TABLE {self._points} (id {self._column} PRIMARY KEY "
            f"REFERENCES {self._table} (id) ON DELETE CASCADE, vector bytea, payload json)"
        )
        self._connection.run(
            f"CREATE INDEX ON {self._points} USING gin ((payload::jsonb) jsonb_path_ops)"
        )

    def _read(self, ids: AnyIds, vectors: bool, payloads: bool) -> StoredPoints:
        which = f"WHERE codes.id = ANY(:ids::{self._array}) AND code IS NOT NULL"
        more, joined = "NULL, NULL", ""
        if self._has_points():
            more = f"{'vector' if vectors else 'NULL'}, {'payload::text' if payloads else 'NULL'}"
            joined = f"LEFT JOIN {self._points} AS points ON points.id = codes.id"
        rows = self._connection.run(
            f"SELECT codes.id, code::text, {more} FROM {self._table} AS codes {joined} {which}",
            ids=_listed(ids),
        )
        beside = Beside([row[2] for row in rows], [row[3] for row in rows])
        return StoredPoints(*self._arrays([row[:2] for row in rows]), beside)

    def _sizes(self, ids: AnyIds, vectors: bool, payloads: bool) -> dict[Id, int]:
        if not self._has_points():
            return {}
        columns = ["octet_length(vector)"] * vectors + ["octet_length(payload::text)"] * payloads
        size = " + ".join(f"coalesce({column}, 0)" for column in columns)
        rows = self._connection.run(
            f"SELECT id, {size or 0} FROM {self._points} WHERE id = ANY(:ids::{self._array})",
            ids=_listed(ids),
        )
        return {_plain(name): n_bytes for name, n_bytes in rows}

    def _delete(self, ids: AnyIds) -> int:
        gone = f"DELETE FROM {self._table} WHERE id = ANY(:ids::{self._array})"
        self._connection.run(gone, ids=_listed(ids))
        return self._connection.row_count

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        return self._first(queries, k, "true", {})

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return self._all_within(queries, r, "true", {})

    def _nearest_among(self, queries: Packed, k: int, among: AnyIds | Having) -> list[Near]:
        return self._first(queries, k, *self._condition(among))

    def _within_among(self, queries: Packed, r: int, among: AnyIds | Having) -> list[Near]:
        return self._all_within(queries, r, *self._condition(among))

    def _condition(self, among: AnyIds | Having) -> tuple[str, dict[str, str]]:
        """Condition on the rows to search, and its parameters."""
        if not isinstance(among, Having):
            return f"id = ANY(:among::{self._array})", {"among": _listed(among)}
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
            f"WHERE code IS NOT NULL AND {which} "
            f"ORDER BY distance, {self._order} LIMIT {min(k, LARGEST_ID)}"
        )
        return self._search_each(queries, statement, parameters)

    def _all_within(
        self, queries: Packed, r: int, which: str, parameters: dict[str, str]
    ) -> list[Near]:
        statement = (
            f"SELECT distance, id FROM (SELECT {self._distance} AS distance, id "
            f"FROM {self._table} WHERE {which}) AS all_of_them "
            f"WHERE distance <= {r} ORDER BY distance, {self._order}"
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
            results.append((near, self._names([name for _, name in rows])))
        return results

    def _count(self) -> int:
        counted = f"SELECT count(*) FROM {self._table} WHERE code IS NOT NULL"
        return int(self._connection.run(counted)[0][0])

    def _page(self, after: Id, size: int) -> tuple[AnyIds, Packed]:
        statement = (
            f"SELECT id, code::text FROM {self._table} WHERE {self._above(after)} "
            f"AND code IS NOT NULL ORDER BY {self._order} LIMIT :size"
        )
        return self._arrays(
            self._connection.run(statement, after=after, size=min(size, LARGEST_ID))
        )

    def _above(self, after: Id) -> str:
        """Condition that an id is above another."""
        if after == "":  # which is no UUID
            return ":after::text = ''"
        return f"{self._order} > :after::{self._id_type}"

    def _arrays(self, rows: list[Any]) -> tuple[AnyIds, Packed]:
        if not rows:
            return empty(self.n_bits, self._has_text_ids())
        ids = self._names([name for name, _ in rows])
        return ids, from_bit_strings([text for _, text in rows], self.n_bits)

    def _names(self, values: list[Any]) -> AnyIds:
        return self._id_array(list(map(_plain, values)) if self._id_type == "uuid" else values)

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
            f"CREATE TABLE {self._again} "
            f"(id {self._column} PRIMARY KEY, code bit({self.n_bits}) NOT NULL)"
        )

    def _stage(self, ids: AnyIds, packed: Packed) -> None:
        self._connection.run(
            f"INSERT INTO {self._again} "
            f"SELECT * FROM unnest(:ids::{self._array}, :codes::bit({self.n_bits})[])",
            ids=_listed(ids),
            codes=array(bit_strings(packed, self.n_bits)),
        )

    def _unstage(self, ids: AnyIds) -> None:
        gone = f"DELETE FROM {self._again} WHERE id = ANY(:ids::{self._array})"
        self._connection.run(gone, ids=_listed(ids))

    def _unstaged(self, after: Id, size: int) -> AnyIds:
        rows = self._connection.run(
            f"SELECT id FROM {self._table} AS codes WHERE {self._above(after)} "
            "AND code IS NOT NULL AND NOT EXISTS "
            f"(SELECT 1 FROM {self._again} AS again WHERE again.id = codes.id) "
            f"ORDER BY {self._order} LIMIT :size",
            after=after,
            size=size,
        )
        return self._names([name for (name,) in rows])

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


def _listed(ids: AnyIds) -> str:
    """Ids as an array's text."""
    if not is_text(ids):
        return array(ids.tolist())
    return array([f'"{QUOTED.sub(BACKSLASHED, name)}"' for name in ids.tolist()])


def _plain(name: object) -> Id:
    """An id as the server gives it: a number, text or a UUID."""
    return name if isinstance(name, int) else str(name)


def _records(ids: AnyIds, beside: Beside, which: list[int]) -> str:
    """Vectors and payloads of these rows as a list of JSON objects; payloads stay as they are."""
    records = []
    for i in which:
        vector, payload = beside.vectors[i], beside.payloads[i]
        if vector is None and payload is None:
            continue
        parts = [f'"id": {json.dumps(ids[i]) if is_text(ids) else ids[i]}']
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
