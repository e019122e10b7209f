"""MilvusStore: a collection of a Milvus server, or of a file of Milvus Lite.

The collection is `codes (id INT64 primary key, code BINARY_VECTOR)` with the index BIN_FLAT, which
compares all codes; ids that are text are of type VARCHAR, with ESCAPES. Its description holds the
number of bits, because Milvus knows whole bytes only.

Fingerprints of models are in a row of the collection `auxhash_stores`, and so are the kind of ids
and the name of the collection that holds the codes: `codes`, or `codes_again` after they were
encoded again. One row is all that Milvus changes at once.
"""

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

import numpy as np

from auxhash.codes import Packed, n_bytes
from auxhash.compute import checks, deadline
from auxhash.compute.checks import ArgumentError
from auxhash.stores.address import Address, engine
from auxhash.stores.ids import AnyIds, Id, is_among, rising
from auxhash.stores.points import Beside, StoredPoints
from auxhash.stores.pool import Pool
from auxhash.stores.store import (
    Models,
    Near,
    Store,
    StoreError,
    agreed_bits,
    empty,
    file_of,
    no_store,
    ordered,
    store_errors,
)

MAX_RESULTS = 16_384  # that Milvus gives for one query
IDS_PER_CONDITION = 1000
CODES_PER_MESSAGE = 5_000  # a message has a limit of bytes
METRIC = "HAMMING"
PROPERTIES = "auxhash_stores"  # a collection: one row per store
MAX_PROPERTY_LENGTH = 512  # of the texts in it
# Signs that an id cannot have in Milvus Lite, whose statements they break, or in an expression. Two
# neighbours each become the first and a digit: the order of ids stays the same.
ESCAPES = {"\t": "\t0", "\n": "\t1", "\f": "\f0", "\r": "\f1", "&": "&0", "'": "&1"}
TRANSLATION = {ord(sign): escape for sign, escape in ESCAPES.items()}
SIGNS = {escape: sign for sign, escape in ESCAPES.items()}
ESCAPED = re.compile("[\t\f&][01]")
LITE = re.compile(r"[A-Za-z0-9._-]+\.db")  # names of files that it takes


class MilvusStore(Store):
    """A collection of Milvus, searched there, exactly: its index compares all codes."""

    def __init__(self, address: Address, n_bits: int | None) -> None:
        pymilvus = engine("pymilvus", "milvus")
        # What it raises for a wrong file of Milvus Lite is of no class of its own.
        self.errors = (pymilvus.MilvusException, OSError, RuntimeError)
        with store_errors(str(address), self.errors):
            self._client = pymilvus.MilvusClient(**_connection(address, n_bits))
            self._pool = Pool(str(address), lambda: self._client)  # of any threads
            try:
                self._prepare(address, n_bits, pymilvus.DataType)
            except BaseException:
                self._client.close()
                raise

    def _prepare(self, address: Address, n_bits: int | None, types: Any) -> None:
        """Make the collection, or check the one that is there."""
        self._table, self._types, self._own = address.table, types, threading.local()
        if self._client.has_collection(PROPERTIES):
            self._client.load_collection(PROPERTIES)
        self._refresh()
        stored_bits = None
        if self._client.has_collection(self._name):
            stored_bits = self._bits_of(self._name)
            if stored_bits is None:
                raise no_store(str(address), self._name, "its description names no n_bits")
        super().__init__(address, agreed_bits(str(address), stored_bits, n_bits))
        if stored_bits is None:
            if self._own.row != {"collection": self._table}:  # of a collection that was dropped
                self._set_row(Models(), self._name, text=False)
            self._make(self._name, text=False)
        self._client.load_collection(self._name)

    def _bits_of(self, name: str) -> int | None:
        description = str(self._client.describe_collection(name).get("description"))
        bits = re.fullmatch(rf"auxhash n_bits=(\d+)( of {self._table})?", description)
        return None if bits is None else int(bits[1])

    def _make(self, name: str, text: bool) -> None:
        description = f"auxhash n_bits={self.n_bits}"
        if name != self._table:
            description += f" of {self._table}"
        kind: tuple[Any, dict[str, int]] = self._types.INT64, {}
        if text:
            # Each byte may be two.
            kind = self._types.VARCHAR, {"max_length": 2 * checks.MAX_ID_BYTES}
        self._create(name, description, "code", 8 * n_bytes(self.n_bits), id=kind)

    def _make_anew(self, text: bool) -> None:
        old = self._name
        self._clear_staged(text)
        self._set_row(self._models(), self._other, text)
        self._client.drop_collection(old)
        self._client.load_collection(self._name)

    def _has_text_ids(self, now: bool = False) -> bool:
        return bool(self._own.row.get("ids") == "text")

    def _create(self, of: str, description: str, vector: str, dim: int, **fields: Any) -> None:
        """Make a collection of a vector and other fields, the first of which is the key."""
        schema = self._client.create_schema(
            auto_id=False, enable_dynamic_field=False, description=description
        )
        for i, (field, (kind, options)) in enumerate(fields.items()):
            schema.add_field(field, kind, is_primary=i == 0, **options)
        schema.add_field(vector, self._types.BINARY_VECTOR, dim=dim)
        index = self._client.prepare_index_params()
        index.add_index(vector, index_type="BIN_FLAT", metric_type=METRIC)
        self._client.create_collection(
            of, schema=schema, index_params=index, consistency_level="Strong"
        )

    @property
    def _name(self) -> str:
        """The collection of codes, as it was when this thread began to talk."""
        name: str = self._own.row["collection"]
        return name

    def _refresh(self) -> None:
        """Read the store's row, for this thread."""
        row: dict[str, str | None] = {"collection": self._table}
        if self._client.has_collection(PROPERTIES):
            which = f'name == "{self._table}"'
            for stored in self._client.query(PROPERTIES, which, output_fields=["properties"]):
                row = json.loads(stored["properties"])
        self._own.row = row

    @contextmanager
    def _session(self, write: bool) -> Iterator[None]:
        # A search can be several requests, between which no thread of ours may write.
        with self._pool.alone() if write else self._pool.lent():
            self._refresh()
            yield

    def _upsert(
        self, ids: AnyIds, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        admit()
        self._put(self._name, ids, packed)

    def _put(self, collection: str, ids: AnyIds, packed: Packed) -> None:
        for start in range(0, len(ids), CODES_PER_MESSAGE):
            part = slice(start, start + CODES_PER_MESSAGE)
            pairs = zip(ids[part].tolist(), packed[part], strict=True)
            rows = [{"id": _escaped(name), "code": code.tobytes()} for name, code in pairs]
            self._client.upsert(collection, rows)

    def _delete(self, ids: AnyIds) -> int:
        known = self._names(self._rows_of(self._name, ids, ["id"]))
        self._drop(self._name, known)
        return len(known)

    def _drop(self, collection: str, ids: AnyIds) -> None:
        for which in _conditions(ids):
            self._client.delete(collection, filter=which)

    def _names(self, rows: list[Any]) -> AnyIds:
        """Ids of rows or hits."""
        ids = [row["id"] for row in rows]
        if ids and isinstance(ids[0], str):
            ids = [ESCAPED.sub(lambda escape: SIGNS[escape[0]], name) for name in ids]
        return self._id_array(ids)

    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        return [self._first(query, k) for query in deadline.each(queries)]

    def _first(self, query: Packed, k: int) -> Near:
        """The k nearest. Of those at the same distance Milvus returns any, not the first."""
        near, ids = self._asked(query, min(k + 1, MAX_RESULTS))
        if len(near) <= k and len(near) < MAX_RESULTS:
            return near, ids  # all there are
        if len(near) > k and near[k] > near[k - 1]:
            return near[:k], ids[:k]
        if len(near) > k:  # ties at the end: those before are known, the rest is by id
            last = near[k - 1]
            before = int((near < last).sum())
            tied: list[Id] = []
            for distances, names in self._ranges(query, int(last)):
                tied += names[distances == last].tolist()
                if before + len(tied) >= k:
                    break
            all_near = np.concatenate([near[:before], np.full(len(tied), last, np.int32)])
            return ordered(all_near, self._id_array(ids[:before].tolist() + tied), k)
        return self._collected(query, self.n_bits, k)  # more than Milvus gives at once

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return [self._collected(query, r) for query in queries]

    def _collected(self, query: Packed, r: int, k: int | None = None) -> Near:
        parts = list(self._ranges(query, r))
        near = np.concatenate([distances for distances, _ in parts])
        return ordered(near, np.concatenate([names for _, names in parts]), k)

    def _ranges(self, query: Packed, r: int) -> Iterator[Near]:
        """All within r, in ranges of ids from the smallest up, each no larger than Milvus gives."""
        ranges: list[tuple[Id, Id | None]] = [("" if self._has_text_ids() else 0, None)]
        while ranges:
            low, high = ranges.pop()
            which = f"id >= {_literal(low)}"
            which += "" if high is None else f" and id < {_literal(high)}"
            near, ids = self._asked(query, MAX_RESULTS, which, r)
            if len(ids) < MAX_RESULTS:
                yield near, ids
                continue
            middle = rising(ids).tolist()[MAX_RESULTS // 2]  # some of the ids are on either side
            ranges += [(middle, high), (low, middle)]

    def _asked(self, query: Packed, limit: int, which: str = "", r: int | None = None) -> Near:
        inner = {} if r is None else {"radius": r + 1}  # exclusive
        [hits] = self._client.search(
            self._name,
            data=[query.tobytes()],
            filter=which,
            limit=limit,
            search_params={"metric_type": METRIC, "params": inner},
        )
        return ordered([hit["distance"] for hit in hits], self._names(hits))

    def _count(self) -> int:
        [row] = self._client.query(self._name, output_fields=["count(*)"])
        return int(row["count(*)"])

    def batches(self, size: int = MAX_RESULTS) -> Iterator[tuple[AnyIds, Packed]]:
        """All ids and codes in the order of the ids, at most 16,384 at a time."""
        return super().batches(min(checks.integer("size", size, 1), MAX_RESULTS))

    def _page(self, after: Id, size: int) -> tuple[AnyIds, Packed]:
        return self._page_of(self._name, after, size)

    def _page_of(self, collection: str, after: Id, size: int) -> tuple[AnyIds, Packed]:
        if after == checks.LARGEST_ID:
            return empty(self.n_bits)
        rows = self._client.query_iterator(
            collection,
            filter=f"id > {_literal(after)}",
            batch_size=size,
            output_fields=["id", "code"],
        )
        try:
            page = rows.next()
        finally:
            rows.close()
        return self._arrays(page)

    def _read(self, ids: AnyIds, vectors: bool, payloads: bool) -> StoredPoints:
        return StoredPoints(*self._arrays(self._rows_of(self._name, ids, ["id", "code"])))

    def _rows_of(self, collection: str, ids: AnyIds, fields: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for which in _conditions(ids):
            rows += self._client.query(collection, which, output_fields=fields)
        return rows

    def _arrays(self, rows: list[dict[str, Any]]) -> tuple[AnyIds, Packed]:
        if not rows:
            return empty(self.n_bits, self._has_text_ids())
        ids = self._names(rows)
        codes = np.frombuffer(b"".join(_bytes(row["code"]) for row in rows), np.uint8)
        return ids, codes.reshape(len(ids), -1).copy()

    def _models(self, locked: bool = False) -> Models:
        row = self._own.row
        return Models(row.get("fingerprint"), row.get("upcoming"))

    def _set_models(self, models: Models) -> None:
        self._set_row(models, self._name, self._has_text_ids())

    def _set_row(self, models: Models, collection: str, text: bool) -> None:
        if not self._client.has_collection(PROPERTIES):
            kind = self._types.VARCHAR, {"max_length": MAX_PROPERTY_LENGTH}
            self._create(PROPERTIES, "auxhash", "unused", 8, name=kind, properties=kind)
        ids = {"ids": "text"} if text else {}
        row = json.dumps({"collection": collection, **asdict(models), **ids})
        self._client.upsert(PROPERTIES, [{"name": self._table, "properties": row, "unused": b"\0"}])
        self._refresh()

    def _alone(self) -> AbstractContextManager[None]:
        return nullcontext()  # other programs are not kept from writing: Milvus has no locks

    @property
    def _other(self) -> str:
        """The collection beside that of the codes."""
        return self._table if self._name != self._table else f"{self._table}_again"

    def _clear_staged(self, text: bool | None = None) -> None:
        if self._client.has_collection(self._other):
            if self._bits_of(self._other) is None:
                raise no_store(self.url, self._other, "and a place for new codes is needed")
            self._client.drop_collection(self._other)
        self._make(self._other, self._has_text_ids() if text is None else text)

    def _stage(self, ids: AnyIds, packed: Packed) -> None:
        self._put(self._other, ids, packed)

    def _unstaged(self, after: Id, size: int) -> AnyIds:
        self._client.load_collection(self._other)
        missing: list[Id] = []
        for ids in self._pages_without(self._name, self._other, after):
            missing += ids.tolist()
            if len(missing) >= size:
                break
        return self._id_array(missing[:size])

    def _pages_without(self, collection: str, other: str, after: Id) -> Iterator[AnyIds]:
        """Ids above `after` in a collection that another does not hold, rising."""
        while len(ids := self._page_of(collection, after, MAX_RESULTS)[0]):
            known = self._names(self._rows_of(other, ids, ["id"]))
            yield ids[~is_among(ids, rising(known))]
            after = ids.tolist()[-1]

    def _switch(self, models: Models) -> None:
        old, new = self._name, self._other
        for ids in self._pages_without(new, old, self._lowest()):  # deleted since they were encoded
            self._drop(new, ids)
        self._set_row(models, new, self._has_text_ids())
        self._client.drop_collection(old)

    def _close(self) -> None:
        self._pool.close()
        self._client.close()


def _connection(address: Address, n_bits: int | None) -> dict[str, str]:
    """Arguments of MilvusClient for milvus:///file.db or milvus+http://user:password@host:port/db."""
    if address.parts.scheme == "milvus":
        path = file_of(address, n_bits)
        if not LITE.fullmatch(path.name):
            raise ArgumentError(
                "a file of Milvus Lite must be named by letters, digits, . - and _, and end in "
                f".db; got {path}"
            )
        with warnings.catch_warnings():
            # That pkg_resources, which it uses, will be gone one day: nothing a user can mend.
            warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
            engine("milvus_lite", "milvus")
        return {"uri": str(path)}
    address.no_options()
    parts = address.parts
    if parts.hostname is None:
        raise ArgumentError(f"url must be {parts.scheme}://host:port; got {address}")
    place = parts.netloc.rpartition("@")[2]
    arguments = {"uri": f"{parts.scheme.removeprefix('milvus+')}://{place}"}
    if parts.username is not None:
        arguments |= {"user": unquote(parts.username), "password": unquote(parts.password or "")}
    if parts.path.strip("/"):
        arguments["db_name"] = unquote(parts.path.strip("/"))
    return arguments


def _conditions(ids: AnyIds) -> list[str]:
    """Conditions that an id is one of these, in parts that are not too long."""
    starts = range(0, len(ids), IDS_PER_CONDITION)
    parts = (map(_literal, ids[i : i + IDS_PER_CONDITION].tolist()) for i in starts)
    return [f"id in [{', '.join(part)}]" for part in parts]


def _literal(name: Id) -> str:
    """An id in an expression of Milvus."""
    if isinstance(name, int):
        return str(name)
    plain = str(_escaped(name)).replace("\\", r"\\").replace('"', r"\"")
    return f'"{plain}"'


def _escaped(name: Id) -> Id:
    return name if isinstance(name, int) else name.translate(TRANSLATION)


def _bytes(code: object) -> bytes:
    """A code as Milvus gives it: bytes, or a list of one such."""
    plain = code[0] if isinstance(code, list) else code
    if not isinstance(plain, bytes):
        raise StoreError(f"Milvus gave a code as {type(plain).__name__}")
    return plain
