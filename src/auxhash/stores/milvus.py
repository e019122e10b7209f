"""MilvusStore: a collection of a Milvus server, or of a file of Milvus Lite.

The collection is `codes (id INT64 primary key, code BINARY_VECTOR)` with the index BIN_FLAT, which
compares all codes; its description holds the number of bits, because Milvus knows whole bytes only.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

import numpy as np

from auxhash.codes import Packed, n_bytes
from auxhash.compute import checks, deadline
from auxhash.compute.checks import ArgumentError
from auxhash.search.index.state import Ids
from auxhash.stores.address import Address, engine
from auxhash.stores.points import Beside, StoredPoints
from auxhash.stores.pool import Pool
from auxhash.stores.store import (
    Near,
    NoStoreError,
    Store,
    StoreError,
    agreed_bits,
    empty,
    no_store,
    ordered,
    store_errors,
)

MAX_RESULTS = 16_384  # that Milvus gives for one query
IDS_PER_CONDITION = 1000
CODES_PER_MESSAGE = 5_000  # a message has a limit of bytes
METRIC = "HAMMING"
LITE = re.compile(r"[A-Za-z0-9._-]+\.db")  # names of files that it takes


class MilvusStore(Store):
    """A collection of Milvus, searched there, exactly: its index compares all codes."""

    def __init__(self, address: Address, n_bits: int | None, n_jobs: int | None) -> None:
        pymilvus: Any = engine("pymilvus", "milvus")
        # What it raises for a wrong file of Milvus Lite is of no class of its own.
        self.errors = (pymilvus.MilvusException, OSError, RuntimeError)
        with store_errors(str(address), self.errors):
            self._client = pymilvus.MilvusClient(**_connection(address, n_bits))
            self._pool: Pool[Any] = Pool(str(address), lambda: self._client)  # of any threads
            try:
                self._prepare(address, n_bits, pymilvus.DataType)
            except BaseException:
                self._client.close()
                raise

    def _prepare(self, address: Address, n_bits: int | None, types: Any) -> None:
        """Make the collection, or check the one that is there."""
        self._name = address.table
        stored_bits = None
        if self._client.has_collection(self._name):
            description = str(self._client.describe_collection(self._name).get("description"))
            bits = re.fullmatch(r"auxhash n_bits=(\d+)", description)
            if bits is None:
                raise no_store(str(address), self._name, "its description names no n_bits")
            stored_bits = int(bits[1])
        super().__init__(address, agreed_bits(str(address), stored_bits, n_bits))
        if stored_bits is None:
            description = f"auxhash n_bits={self.n_bits}"
            schema = self._client.create_schema(
                auto_id=False, enable_dynamic_field=False, description=description
            )
            schema.add_field("id", types.INT64, is_primary=True)
            schema.add_field("code", types.BINARY_VECTOR, dim=8 * n_bytes(self.n_bits))
            index = self._client.prepare_index_params()
            index.add_index("code", index_type="BIN_FLAT", metric_type=METRIC)
            self._client.create_collection(
                self._name, schema=schema, index_params=index, consistency_level="Strong"
            )
        self._client.load_collection(self._name)

    def _session(self, write: bool) -> AbstractContextManager[None]:
        # A search can be several requests, between which no thread of ours may write.
        return self._pool.alone() if write else self._pool.lent()

    def _upsert(self, ids: Ids, packed: Packed, beside: Beside | None) -> None:
        for start in range(0, len(ids), CODES_PER_MESSAGE):
            part = slice(start, start + CODES_PER_MESSAGE)
            pairs = zip(ids[part].tolist(), packed[part], strict=True)
            rows = [{"id": name, "code": code.tobytes()} for name, code in pairs]
            self._client.upsert(self._name, rows)

    def _delete(self, ids: Ids) -> int:
        count = 0
        for start in range(0, len(ids), IDS_PER_CONDITION):
            listed = ", ".join(map(str, ids[start : start + IDS_PER_CONDITION].tolist()))
            rows = self._client.query(self._name, f"id in [{listed}]", output_fields=["id"])
            known = [row["id"] for row in rows]
            if known:
                self._client.delete(self._name, ids=known)
            count += len(known)
        return count

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
            tied: list[int] = []
            for distances, names in self._ranges(query, int(last)):
                tied += names[distances == last].tolist()
                if before + len(tied) >= k:
                    break
            all_near = np.concatenate([near[:before], np.full(len(tied), last, np.int32)])
            return ordered(all_near, np.concatenate([ids[:before], tied]), k)
        return self._collected(query, self.n_bits, k)  # more than Milvus gives at once

    def _within(self, queries: Packed, r: int) -> list[Near]:
        return [self._collected(query, r) for query in queries]

    def _collected(self, query: Packed, r: int, k: int | None = None) -> Near:
        parts = list(self._ranges(query, r))
        near = np.concatenate([distances for distances, _ in parts])
        return ordered(near, np.concatenate([names for _, names in parts]), k)

    def _ranges(self, query: Packed, r: int) -> Iterator[Near]:
        """All within r, in ranges of ids from the smallest up, each no larger than Milvus gives."""
        ranges = [(0, checks.LARGEST_ID)]
        while ranges:
            low, high = ranges.pop()
            near, ids = self._asked(query, MAX_RESULTS, f"id >= {low} and id <= {high}", r)
            if len(ids) < MAX_RESULTS:
                yield near, ids
                continue
            middle = int(np.sort(ids)[MAX_RESULTS // 2])  # some of the ids found are on either side
            ranges += [(middle, high), (low, middle - 1)]

    def _asked(self, query: Packed, limit: int, which: str = "", r: int | None = None) -> Near:
        inner = {} if r is None else {"radius": r + 1}  # exclusive
        [hits] = self._client.search(
            self._name,
            data=[query.tobytes()],
            filter=which,
            limit=limit,
            search_params={"metric_type": METRIC, "params": inner},
        )
        return ordered([hit["distance"] for hit in hits], [hit["id"] for hit in hits])

    def _count(self) -> int:
        [row] = self._client.query(self._name, output_fields=["count(*)"])
        return int(row["count(*)"])

    def batches(self, size: int = MAX_RESULTS) -> Iterator[tuple[Ids, Packed]]:
        """All ids and codes in the order of the ids, at most 16,384 at a time."""
        return super().batches(min(checks.integer("size", size, 1), MAX_RESULTS))

    def _page(self, after: int, size: int) -> tuple[Ids, Packed]:
        if after == checks.LARGEST_ID:
            return empty(self.n_bits)
        rows = self._client.query_iterator(
            self._name, filter=f"id > {after}", batch_size=size, output_fields=["id", "code"]
        )
        try:
            page = rows.next()
        finally:
            rows.close()
        return self._arrays(page)

    def _read(self, ids: Ids, vectors: bool, payloads: bool) -> StoredPoints:
        rows: list[dict[str, Any]] = []
        for start in range(0, len(ids), IDS_PER_CONDITION):
            listed = ", ".join(map(str, ids[start : start + IDS_PER_CONDITION].tolist()))
            fields = ["id", "code"]
            rows += self._client.query(self._name, f"id in [{listed}]", output_fields=fields)
        return StoredPoints(*self._arrays(rows))

    def _arrays(self, rows: list[dict[str, Any]]) -> tuple[Ids, Packed]:
        if not rows:
            return empty(self.n_bits)
        ids = np.array([row["id"] for row in rows], np.int64)
        codes = np.frombuffer(b"".join(_bytes(row["code"]) for row in rows), np.uint8)
        return ids, codes.reshape(len(ids), -1).copy()

    def _close(self) -> None:
        self._pool.close()
        self._client.close()


def _connection(address: Address, n_bits: int | None) -> dict[str, str]:
    """Arguments of MilvusClient for milvus:///file.db or milvus+http://user:password@host:port/db."""
    if address.parts.scheme == "milvus":
        path = address.file()
        if not LITE.fullmatch(path.name):
            raise ArgumentError(
                "a file of Milvus Lite must be named by letters, digits, . - and _, and end in "
                f".db; got {path}"
            )
        if n_bits is None and not path.exists():
            raise NoStoreError(f"{address} holds no store; give n_bits to make one")
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


def _bytes(code: object) -> bytes:
    """A code as Milvus gives it: bytes, or a list of one such."""
    plain = code[0] if isinstance(code, list) else code
    if not isinstance(plain, bytes):
        raise StoreError(f"Milvus gave a code as {type(plain).__name__}")
    return plain
