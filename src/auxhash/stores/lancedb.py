"""LancedbStore: a table in a folder of LanceDB.

The table is `codes (id int64, code fixed_size_list<uint8>)`, the bytes of our order; ids that are
text are of type string. The number of bits is in the metadata of its schema, and so are
fingerprints of models: LanceDB changes them only with all rows, in one version. Codes that are to
replace others are in a table `codes-again`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, n_bytes
from auxhash.compute import deadline
from auxhash.files.writing import locked
from auxhash.stores.address import Address, engine
from auxhash.stores.ids import AnyIds, Id, is_among, is_text, order_of, rising
from auxhash.stores.points import Beside, StoredPoints
from auxhash.stores.pool import Pool
from auxhash.stores.store import (
    Models,
    Near,
    Store,
    agreed_bits,
    empty,
    file_of,
    no_store,
    ordered,
    store_errors,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table

PREFIX = "auxhash."  # of our keys in the metadata of the schema
BITS = f"{PREFIX}n_bits".encode()
IDS_PER_CONDITION = 1000
NO_MODELS = Models()


class LancedbStore(Store):
    """A table of a LanceDB folder, searched by LanceDB without an index of its own, exactly."""

    errors = (OSError, RuntimeError, ValueError)

    def __init__(self, address: Address, n_bits: int | None) -> None:
        lancedb = engine("lancedb", "lancedb")
        folder = file_of(address, n_bits)
        with store_errors(str(address), self.errors):
            self._database = database = lancedb.connect(folder)
            stored_bits = None
            if address.table in database.list_tables().tables:
                table = database.open_table(address.table)
                stored_bits = _bits_of(table, address)
        super().__init__(address, agreed_bits(str(address), stored_bits, n_bits))
        with store_errors(str(address), self.errors):
            if stored_bits is None:
                schema = self._schema(text=False)
                table = database.create_table(address.table, schema=schema, exist_ok=True)
        # Each is at a version of its own: what one thread reads does not change under it.
        self._pool = Pool(str(address), lambda: self._opened(database, address))
        self._listed: tuple[int, AnyIds, NDArray[np.uint64]] | None = None
        self._lock = folder / f".{address.table}.lock"
        self._again = f"{address.table}-again"
        if stored_bits is None:  # another process may have been quicker
            agreed_bits(str(address), _bits_of(table, address), n_bits)

    def _opened(self, database: "DBConnection", address: Address) -> "Table":
        with store_errors(self.url, self.errors):
            return database.open_table(address.table)

    def _session(self, write: bool) -> AbstractContextManager[None]:
        return self._pool.lent()

    def _schema(self, text: bool, models: Models = NO_MODELS) -> "pa.Schema":
        import pyarrow as pa

        code = pa.list_(pa.field("item", pa.uint8()), n_bytes(self.n_bits))
        kind = pa.string() if text else pa.int64()
        fields = [pa.field("id", kind, nullable=False), pa.field("code", code)]
        values = {"n_bits": str(self.n_bits), **asdict(models)}
        metadata = {PREFIX + key: value for key, value in values.items() if value is not None}
        return pa.schema(fields, metadata=metadata)

    def _rows(self, ids: AnyIds, packed: Packed, models: Models = NO_MODELS) -> "pa.Table":
        import pyarrow as pa

        schema = self._schema(is_text(ids), models)
        codes = pa.FixedSizeListArray.from_arrays(pa.array(packed.ravel()), packed.shape[1])
        return pa.Table.from_arrays(
            [pa.array(ids, schema.field("id").type), codes.cast(schema.field("code").type)],
            schema=schema,
        )

    def _make_anew(self, text: bool) -> None:
        rows = self._rows(*empty(self.n_bits, text), self._models())
        self._newest().add(rows, mode="overwrite")

    def _has_text_ids(self, now: bool = False) -> bool:
        return str(self._newest().schema.field("id").type) == "string"

    def _upsert(
        self, ids: AnyIds, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        # Without it, two processes that insert the same new id would both insert it.
        with locked(self._lock, wait=True):
            admit()
            merge = self._newest().merge_insert("id")
            new = self._rows(ids, packed)
            merge.when_matched_update_all().when_not_matched_insert_all().execute(new)

    def _delete(self, ids: AnyIds) -> int:
        count = 0
        with locked(self._lock, wait=True):
            table = self._newest()
            for which in _conditions(ids):
                there = table.count_rows(which)
                if there:
                    table.delete(which)
                count += there
        return count

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        table = self._newest()
        n = table.count_rows()
        return [self._first(table, query, min(k, n), n) for query in deadline.each(queries)]

    def _first(self, table: "Table", query: Packed, k: int, n: int) -> Near:
        """The k nearest of n. Of those at the same distance LanceDB returns any, not the first."""
        if not k:
            return ordered([], self._id_array([]))
        near, ids = self._asked(table, query, min(k + 1, n))
        if len(near) > k and near[k] == near[k - 1]:
            return self._all_within(table, query, int(near[k]), n, k)
        return near[:k], ids[:k]

    def _within(self, queries: Packed, r: int) -> list[Near]:
        table = self._newest()
        n = table.count_rows()
        return [self._all_within(table, query, r, n) for query in queries]

    def _all_within(
        self, table: "Table", query: Packed, r: int, n: int, k: int | None = None
    ) -> Near:
        return self._asked(table, query, n, r, k) if n else ordered([], self._id_array([]))

    def _asked(
        self, table: "Table", query: Packed, limit: int, r: int | None = None, k: int | None = None
    ) -> Near:
        search = table.search(query, vector_column_name="code").distance_type("hamming")
        search = search.bypass_vector_index()  # which others may have made, and is not exact
        if r is not None:
            search = search.distance_range(upper_bound=r + 1)  # exclusive
        hits = search.select(["id", "_distance"]).limit(limit).to_arrow()
        return ordered(hits["_distance"].to_numpy(), hits["id"].to_numpy(), k)

    def _count(self) -> int:
        return int(self._newest().count_rows())

    def _page(self, after: Id, size: int) -> tuple[AnyIds, Packed]:
        table = self._newest()
        ids, rows = self._listing(table)
        start = np.searchsorted(ids, after, "right")
        if start == len(ids):
            self._listed = None  # all were read
            return empty(self.n_bits, is_text(ids))
        names, codes = self._arrays(table.take_row_ids(rows[start : start + size].tolist()))
        order = order_of(names)
        return names[order], codes[order]

    def _listing(self, table: "Table") -> tuple[AnyIds, NDArray[np.uint64]]:
        """All ids, rising, and their rows; read once for the pages of a version."""
        listed = self._listed
        if listed is None or listed[0] != table.version:
            columns = table.search().select(["id"]).with_row_id(True).limit(None).to_arrow()
            order = order_of(columns["id"].to_numpy())
            ids, rows = (columns[name].to_numpy()[order] for name in ("id", "_rowid"))
            self._listed = listed = table.version, ids, rows
        return listed[1:]

    def _read(self, ids: AnyIds, vectors: bool, payloads: bool) -> StoredPoints:
        table = self._newest()
        parts = [self._where(table, which) for which in _conditions(ids)]
        names, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return StoredPoints(names, codes)

    def _where(self, table: "Table", which: str) -> tuple[AnyIds, Packed]:
        return self._arrays(table.search().where(which).limit(None))

    def _arrays(self, query: Any) -> tuple[AnyIds, Packed]:
        columns = query.to_arrow()
        codes = columns["code"].combine_chunks().flatten().to_numpy()
        return columns["id"].to_numpy(), codes.reshape(len(columns), n_bytes(self.n_bits))

    def _newest(self) -> "Table":
        """The table with what other processes have written."""
        table = self._pool.mine
        table.checkout_latest()
        return table

    def _models(self, locked: bool = False) -> Models:
        metadata = self._newest().schema.metadata
        keys = ("fingerprint", "upcoming")
        values = [metadata.get(f"{PREFIX}{key}".encode(), b"").decode() for key in keys]
        return Models(*(value or None for value in values))

    def _set_models(self, models: Models) -> None:
        table = self._newest()
        rows = self._arrays(table.search().limit(None))
        table.add(self._rows(*rows, models), mode="overwrite")

    def _alone(self) -> AbstractContextManager[None]:
        return locked(self._lock, wait=True)

    def _clear_staged(self) -> None:
        self._database.drop_table(self._again, ignore_missing=True)
        self._database.create_table(self._again, schema=self._schema(self._has_text_ids()))

    def _stage(self, ids: AnyIds, packed: Packed) -> None:
        self._database.open_table(self._again).add(self._rows(ids, packed))

    def _unstaged(self, after: Id, size: int) -> AnyIds:
        there, again = self._newest(), self._database.open_table(self._again)
        ids, staged = (
            table.search().select(["id"]).limit(None).to_arrow()["id"].to_numpy()
            for table in (there, again)
        )
        missing = rising(ids[~is_among(ids, rising(staged))])
        return missing[missing > after][:size]

    def _switch(self, models: Models) -> None:
        table, again = self._newest(), self._database.open_table(self._again)
        ids = self._arrays(table.search().limit(None))[0]
        names, packed = self._arrays(again.search().limit(None))
        kept = is_among(names, rising(ids))  # others were deleted meanwhile
        table.add(self._rows(names[kept], packed[kept], models), mode="overwrite")
        self._database.drop_table(self._again)

    def _close(self) -> None:
        self._pool.close()


def _conditions(ids: AnyIds) -> list[str]:
    """Conditions that an id is one of these, in parts that are not too long."""
    parts = (
        ids[start : start + IDS_PER_CONDITION].tolist()
        for start in range(0, len(ids), IDS_PER_CONDITION)
    )
    return [f"id IN ({', '.join(map(_literal, part))})" for part in parts]


def _literal(name: Id) -> str:
    return str(name) if isinstance(name, int) else "'{}'".format(name.replace("'", "''"))


def _bits_of(table: "Table", address: Address) -> int:
    bits = (table.schema.metadata or {}).get(BITS)
    if bits is None:
        raise no_store(str(address), address.table, "its schema does not say auxhash.n_bits")
    return int(bits)
