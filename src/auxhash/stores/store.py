"""Store: the methods that every store of codes offers, and the checks of their arguments."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np

from auxhash.codes import MAX_BITS, Packed, as_packed, n_bytes
from auxhash.compute import checks
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.fingerprint import OtherModelError, checked, match
from auxhash.search.index import rerank
from auxhash.search.index.hamming import HammingIndex, as_queries
from auxhash.search.index.scan import Distances
from auxhash.search.index.tables import TableDistances, as_tables
from auxhash.stores.address import Address
from auxhash.stores.ids import (
    KINDS,
    AnyIds,
    Id,
    array_of,
    check_different,
    is_text,
    order_of,
    rising,
)
from auxhash.stores.points import (
    Beside,
    Having,
    Payload,
    Point,
    StoredPoints,
    as_payloads,
    as_vectors,
)

CODES_PER_BATCH = 10_000
BYTES_PER_READ = 4 << 20  # of vectors and payloads
MIN_CANDIDATES, CANDIDATES_PER_HIT = 1000, 10  # by code, to be ordered by tables
CHANGED = "the store was changed during the search: search again"

Near = tuple[Distances, AnyIds]  # hits of one query, nearest first
Among = ArrayLike | Having | None  # which codes a search looks at: ids, points by payload, or all


class StoreError(OSError):
    """A store that cannot be reached, read or written."""


class NoStoreError(StoreError):
    """A URL at which there is no store to open."""


class ReencodingError(StoreError):
    """A write, or a query, that cannot be served while codes are replaced by another model's."""


@dataclass(frozen=True)
class Models:
    """Fingerprints of a store: of its codes, and of those that are to replace them, if any."""

    fingerprint: str | None = None
    upcoming: str | None = None


class Store(ABC):
    """Codes of `n_bits` bits with ids, kept in a database and searched exactly.

    Codes are packed uint8 (n, ceil(n_bits / 8)) or +-1 (n, n_bits). Ids are whole numbers from 0
    to 2^63 - 1, or text, UUIDs too, of up to 1,024 bytes: the first ones decide which, and results
    have them as int64 or as text in arrays of objects. Results come nearest first, and codes at
    equal distance by their ids, smallest first, text by its code points: they depend on what the
    store holds, and not on how it came there.

    When `upsert` or `delete` returns, the database has committed the change. Any thread may call
    any method at any time: reads run at the same time, writes take turns. A store is a context
    manager, which closes it.
    """

    errors: tuple[type[Exception], ...] = ()  # of the engine
    keeps_points = False  # whether vectors and payloads can stand beside the codes
    scans_tables = False  # whether `search_tables` looks at all codes, not at a shortlist

    def __init__(self, address: Address, n_bits: int) -> None:
        self.n_bits = n_bits
        self.url = str(address)
        self._writing = threading.RLock()
        self._closed = False

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # an empty store is a store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, n_bits={self.n_bits})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def upsert(
        self,
        ids: ArrayLike,
        codes: ArrayLike,
        vectors: ArrayLike | Sequence[ArrayLike | None] | None = None,
        payloads: Sequence[Payload | None] | None = None,
        fingerprint: str | None = None,
        force: bool = False,
    ) -> None:
        """Put codes in under their ids; what an id had before is replaced, vector and payload too.

        All of them or, if it fails, none (Milvus: perhaps some, and it may be tried again).

        Args:
            vectors: (n, D), or a list of vectors and None: kept as float64, to be read again.
            payloads: dictionaries of what JSON knows, or None; a search can choose by them.
            fingerprint: of the model that made the codes. OtherModelError if the store's codes
                are another model's; a store without a fingerprint takes this one.
            force: do not compare the two fingerprints.
        """
        fingerprint = checked("fingerprint", fingerprint)
        packed = as_packed(codes, n_bits=self.n_bits)
        names = checks.any_ids("ids", ids)
        if names.shape != (len(packed),):
            raise ArgumentError(
                f"ids must be of shape ({len(packed)},), one for each code; got {names.shape}"
            )
        check_different(names)
        beside = None
        if vectors is not None or payloads is not None:
            self.check_keeps("vectors" if vectors is not None else "payloads", self.url)
            beside = Beside(as_vectors(vectors, len(names)), as_payloads(payloads, len(names)))
        with self._writing, self._talking(write=True):
            if len(names):
                self._upsert(
                    names, packed, beside, lambda: self._admit(names, beside, fingerprint, force)
                )

    @property
    def id_type(self) -> Literal["number", "text"] | None:
        """Kind of the ids; None while there are none, and the first ones may be of either."""
        with self._talking():
            if self._is_empty():
                return None
            return "text" if self._has_text_ids() else "number"

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the model that made the codes; None if nobody has said."""
        with self._talking():
            return self._models().fingerprint

    def check_model(self, name: str, fingerprint: str | None, force: bool = False) -> None:
        """Raise OtherModelError if `name`, made by this model, cannot be compared with the codes.

        A warning says so where one of the two does not say its model; `force` compares nothing.
        """
        with self._talking():
            made_by = self._models().fingerprint
            if made_by is None and self._is_empty():
                return
        match(self.url, made_by, name, fingerprint, force)

    @contextmanager
    def of_one_model(self) -> Iterator[str | None]:
        """Yield the fingerprint of the codes; ReencodingError if it has changed at the end.

        Within, a query that the model of this fingerprint encodes is compared with its codes only.
        """
        before = self.fingerprint
        yield before
        if self.fingerprint != before:
            raise ReencodingError(f"the codes in {self.url} are another model's now: ask again")

    def delete(self, ids: ArrayLike) -> int:
        """Delete the codes of these ids and return their number; unknown ids are ignored.

        All of them or, if it fails, none (LanceDB and Milvus: perhaps some thousands).
        """
        names = rising(checks.any_ids("ids", ids))
        with self._writing, self._talking(write=True):
            names = self._of_kind("ids", names)
            return self._delete(names) if len(names) else 0

    def search(self, queries: ArrayLike, k: int, among: Among = None) -> Near:
        """Distances int32 and ids of the k nearest codes of each query.

        Each is of shape (n_queries, k), or (n_queries, n) where the store holds n < k codes.
        `among` are the ids of the codes to look at, those that are there, or a `Having`.
        """
        asked, k = as_queries(queries, self.n_bits), checks.integer("k", k, 1)
        with self._talking():
            chosen = self._chosen(among)
            if chosen is None:
                return _stacked(self._nearest(asked, k))
            return _stacked(self._nearest_among(asked, k, chosen))

    def search_tables(
        self,
        tables: ArrayLike,
        k: int,
        among: Among = None,
        codes: ArrayLike | None = None,
        candidates: int | None = None,
    ) -> tuple[TableDistances, AnyIds]:
        """Distances float32 and ids of the k codes nearest by tables, as of `HammingIndex`.

        A SQLite store looks at all of its codes. The others know Hamming distances alone: they
        order a shortlist, the `candidates` nearest by the `codes` of the queries.

        Args:
            codes: of the queries, packed or +-1; a SQLite store does without.
            candidates: `n_candidates(k)` by default.
        """
        checked, k = as_tables(tables, self.n_bits), checks.integer("k", k, 1)
        n = n_candidates(k) if candidates is None else checks.integer("candidates", candidates, k)
        if codes is None:
            raise ArgumentError(
                f"codes must be those of the queries, got None: {self.url} orders the codes "
                "nearest to them by tables"
            )
        ids = self.search(codes, n, among)[1]
        if len(ids) != len(checked):
            raise ArgumentError(
                f"tables must be of {len(ids)} queries, as codes; got {len(checked)}"
            )
        if not ids.size:
            return ids.astype(np.float32), ids
        hits = rising(ids.ravel())
        with self._talking():
            index, _ = self._index_of(hits)  # whose rows are those of hits
        if len(index) < len(hits):
            raise StoreError(CHANGED)
        # In the order of the ids, which equal distances keep.
        rows = np.sort(np.searchsorted(hits, ids), axis=1)
        distances, rows = rerank.by_tables(rows, checked, index, k)
        return distances.astype(np.float32), hits[rows]

    def search_radius(
        self, queries: ArrayLike, r: int, among: Among = None
    ) -> tuple[list[Distances], list[AnyIds]]:
        """Distances and ids of all codes at distance r or less: one array of each per query."""
        asked, r = as_queries(queries, self.n_bits), min(checks.integer("r", r, 0), self.n_bits)
        with self._talking():
            chosen = self._chosen(among)
            if chosen is None:
                hits = self._within(asked, r)
            else:
                hits = self._within_among(asked, r, chosen)
        return [near for near, _ in hits], [ids for _, ids in hits]

    def read(self, ids: ArrayLike, vectors: bool = True, payloads: bool = True) -> dict[Id, Point]:
        """Points stored under these ids, by id; unknown ids are left out.

        `vectors` and `payloads` say whether they are wanted; a store of codes only has none.
        """
        names = rising(checks.any_ids("ids", ids))
        flags = checks.flag("vectors", vectors), checks.flag("payloads", payloads)
        with self._talking():
            names = self._of_kind("ids", names)
            if not len(names):
                return {}
            rows = self._read(names, *flags)
        try:
            return rows.points()
        except ValueError as error:
            raise StoreError(f"{self.url} holds points that are damaged: {error}") from error

    def parts(
        self,
        ids: ArrayLike,
        vectors: bool = True,
        payloads: bool = True,
        room: int = BYTES_PER_READ,
    ) -> list[AnyIds]:
        """Cut ids, rising and none twice, into parts that `read` takes `room` bytes for, or one id.

        The bytes are those of vectors and payloads in the database; as objects of Python they may
        take thirty times as many.
        """
        names = rising(checks.any_ids("ids", ids))
        flags = checks.flag("vectors", vectors), checks.flag("payloads", payloads)
        with self._talking():
            names = self._of_kind("ids", names)
            sizes = self._sizes(names, *flags) if len(names) else {}
        stops, n_bytes_read = [], 0
        for i, name in enumerate(names.tolist()):
            size = sizes.get(name, 0)
            if n_bytes_read and n_bytes_read + size > room:
                stops.append(i)
                n_bytes_read = 0
            n_bytes_read += size
        return [part for part in np.split(names, stops) if len(part)]

    def count(self) -> int:
        """Number of codes, as `len` gives it."""
        with self._talking():
            return self._count()

    def batches(self, size: int = CODES_PER_BATCH) -> Iterator[tuple[AnyIds, Packed]]:
        """All ids and codes in the order of the ids, at most `size` at a time.

        What other threads and programs change meanwhile is seen from the next batch on.
        """
        size = checks.integer("size", size, 1)
        last: Id | None = None
        while last != checks.LARGEST_ID:
            with self._talking():
                after = self._lowest() if last is None else last
                ids, packed = self._page(after, size)
            if not len(ids):
                return
            self._check_read(ids, packed, after)
            yield ids, packed
            last = ids.tolist()[-1]

    def close(self) -> None:
        """Let go of the database, after calls that have begun; closing twice is no error."""
        with self._writing:
            if not self._closed:
                self._closed = True
                self._close()

    @contextmanager
    def _talking(self, write: bool = False) -> Iterator[None]:
        """Talk to the engine, whose errors become StoreErrors."""
        with self._session(write), store_errors(self.url, self.errors):
            yield

    @contextmanager
    def still(self) -> Iterator[None]:
        """Let no other thread write here, so that several calls see the same codes."""
        with self._writing:
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let no other thread or program put codes in; for `stores.reencoding`."""
        with self._writing, self._talking(write=True), self._alone():
            yield

    def _admit(
        self, ids: AnyIds, beside: Beside | None, fingerprint: str | None, force: bool
    ) -> None:
        """Check, within a write, that these codes may be put in, and note their model."""
        models = self._models()
        if not self._has_kind_of(ids):
            if not self._is_empty():
                raise self._other_kind("ids", ids)
            self._make_anew(is_text(ids))
            if models.upcoming is not None:
                self._clear_staged()
        if models.upcoming is not None:
            if beside is None or None in beside.vectors:
                raise ReencodingError(
                    f"{self.url} is being encoded again by model {models.upcoming}: until then, "
                    "only points with vectors, in a store that keeps them, can be put in"
                )
            self._unstage(ids)
        if fingerprint == models.fingerprint:
            return
        if models.fingerprint is None:
            models = self._models(locked=True)
        agreed = fingerprint
        if models.fingerprint is not None or not self._is_empty():
            agreed = match(self.url, models.fingerprint, "the new codes", fingerprint, force)
        if agreed != models.fingerprint:
            self._set_models(replace(models, fingerprint=agreed))

    def _is_empty(self) -> bool:
        return not len(self._page(self._lowest(), 1)[0])

    def _lowest(self) -> Id:
        """An id below all that there can be."""
        return "" if self._has_text_ids(now=True) else -1

    def _of_kind(self, name: str, ids: AnyIds) -> AnyIds:
        """Return the ids; ArgumentError if those of the store are of the other kind."""
        if not len(ids) or self._has_kind_of(ids):
            return ids
        if not self._is_empty():
            raise self._other_kind(name, ids)
        return ids[:0]  # there are none

    def _has_kind_of(self, ids: AnyIds) -> bool:
        return any(is_text(ids) == self._has_text_ids(now) for now in (False, True))

    def _other_kind(self, name: str, ids: AnyIds) -> ArgumentError:
        return ArgumentError(
            f"{name} must be {KINDS[not is_text(ids)]}, as those in the store; got "
            f"{ids.tolist()[0]!r}"
        )

    def _id_array(self, values: Sequence[Id]) -> AnyIds:
        """Ids as the database gives them, as an array."""
        return array_of(values, bool(values) or self._has_text_ids())

    @classmethod
    def check_keeps(cls, name: str, url: str) -> None:
        """Raise ArgumentError if `name`, vectors or payloads, cannot be put into such a store."""
        if not cls.keeps_points:
            raise ArgumentError(
                f"{name} cannot be kept: {url} holds codes only; sqlite and postgresql stores hold "
                "vectors and payloads"
            )

    def _chosen(self, among: Among) -> AnyIds | Having | None:
        """Normalise `among`, in a session: rising ids, none twice, or a condition on payloads."""
        if isinstance(among, Having):
            self.check_keeps("payloads", self.url)
            return among
        if among is None:
            return None
        return self._of_kind("among", rising(checks.any_ids("among", among)))

    def _nearest_among(self, queries: Packed, k: int, among: AnyIds | Having) -> list[Near]:
        """The k nearest among some codes, searched here unless the engine can."""
        index, ids = self._index_of(among)
        if not len(index):
            return _nothing(queries, ids)
        return [(near, ids[rows]) for near, rows in zip(*index.search(queries, k), strict=True)]

    def _within_among(self, queries: Packed, r: int, among: AnyIds | Having) -> list[Near]:
        index, ids = self._index_of(among)
        if not len(index):
            return _nothing(queries, ids)
        hits = zip(*index.radius_search(queries, r), strict=True)
        return [(near, ids[rows]) for near, rows in hits]

    def _index_of(self, among: AnyIds | Having) -> tuple[HammingIndex, AnyIds]:
        """An index of the codes of these ids, and the ids, rising: equal distances come by id."""
        assert not isinstance(among, Having)  # stores that keep payloads choose by themselves
        index = HammingIndex(self.n_bits)
        if not len(among):
            return index, among
        rows = self._read(among, vectors=False, payloads=False)
        order = order_of(rows.ids)
        return index.add(rows.packed[order]), rows.ids[order]

    def _check_read(self, ids: AnyIds, packed: Packed, last: Id) -> None:
        """Raise StoreError where the database holds what no `upsert` puts there."""
        try:
            as_packed(packed, n_bits=self.n_bits)
        except ValueError as error:
            raise StoreError(f"{self.url} holds codes that are damaged: {error}") from error
        if ids[0] <= last or (ids[1:] <= ids[:-1]).any():
            raise StoreError(
                f"{self.url} holds ids that are negative or empty, or gave them in disorder"
            )

    @abstractmethod
    def _session(self, write: bool) -> AbstractContextManager[None]:
        """The lock or connection with which a thread talks to the engine; ValueError if closed."""

    @abstractmethod
    def _has_text_ids(self, now: bool = False) -> bool:
        """Return True if ids are text. `now` asks the database, if asking takes time."""

    @abstractmethod
    def _make_anew(self, text: bool) -> None:
        """Replace the tables, which are empty, by some for ids of this kind, within a write."""

    @abstractmethod
    def _upsert(
        self, ids: AnyIds, packed: Packed, beside: Beside | None, admit: Callable[[], None]
    ) -> None:
        """Commit at least one code; no id comes twice. `beside` is None if codes are all.

        `admit` is called within the transaction, or under the lock, before anything is written.
        """

    @abstractmethod
    def _read(self, ids: AnyIds, vectors: bool, payloads: bool) -> StoredPoints:
        """Points of those ids that are there; there is at least one id, and none comes twice."""

    def _sizes(self, ids: AnyIds, vectors: bool, payloads: bool) -> dict[Id, int]:
        """Bytes of what stands beside the codes, by id; ids without any may be left out."""
        return {}

    @abstractmethod
    def _delete(self, ids: AnyIds) -> int:
        """Commit at least one deletion, and say how many ids were there; none comes twice."""

    @abstractmethod
    def _nearest(self, queries: Packed, k: int) -> list[Near]:
        """The k nearest of each query, by distance and then id; fewer where there are fewer."""

    @abstractmethod
    def _within(self, queries: Packed, r: int) -> list[Near]:
        """All at distance r <= n_bits or less of each query, by distance and then id."""

    @abstractmethod
    def _count(self) -> int: ...

    @abstractmethod
    def _page(self, after: Id, size: int) -> tuple[AnyIds, Packed]:
        """The first `size` codes with ids above `after`, in the order of the ids."""

    @abstractmethod
    def _models(self, locked: bool = False) -> Models:
        """Read the fingerprints; `locked` lets nobody else set them before this write has ended."""

    @abstractmethod
    def _set_models(self, models: Models) -> None:
        """Set the fingerprints, within a write."""

    @abstractmethod
    def _alone(self) -> AbstractContextManager[None]:
        """A transaction, or a lock, in which no other program puts codes in."""

    @abstractmethod
    def _clear_staged(self) -> None:
        """Make the place of new codes beside the old ones anew, and empty."""

    @abstractmethod
    def _stage(self, ids: AnyIds, packed: Packed) -> None:
        """Put new codes beside the old ones, where no search finds them."""

    def _unstage(self, ids: AnyIds) -> None:
        """Forget the new codes of these ids; for stores that keep vectors."""
        raise NotImplementedError

    @abstractmethod
    def _unstaged(self, after: Id, size: int) -> AnyIds:
        """The first `size` ids above `after` of codes without a new one, rising."""

    @abstractmethod
    def _switch(self, models: Models) -> None:
        """Let the new codes, which are complete, replace the old ones, and set the fingerprints.

        All at once: no search sees anything between the two.
        """

    @abstractmethod
    def _close(self) -> None: ...


@contextmanager
def store_errors(url: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Turn an engine's errors into StoreErrors of one line."""
    try:
        yield
    except (StoreError, ArgumentError, OtherModelError):
        raise
    except errors as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise StoreError(f"{url}: {lines[0]}") from error


def agreed_bits(url: str, stored: int | None, wanted: int | None) -> int:
    """Number of bits of a store: those stored, or those wanted for a new one."""
    if wanted is not None:
        wanted = checks.integer("n_bits", wanted, 1, MAX_BITS)
    if stored is None:
        if wanted is None:
            raise _missing(url)
        return wanted
    if wanted not in (None, stored):
        raise ArgumentError(f"n_bits must be {stored}, as of the codes in {url}; got {wanted}")
    return stored


def file_of(address: Address, n_bits: int | None) -> Path:
    """Path of a store's file or folder; NoStoreError if it is missing and not to be made."""
    path = address.file()
    if n_bits is None and not path.exists():
        raise _missing(str(address))
    return path


def _missing(url: str) -> NoStoreError:
    return NoStoreError(
        f"there is no store at {url}; `auxhash store push`, or open with n_bits, makes one"
    )


def no_store(url: str, table: str, why: str) -> StoreError:
    """An error, to be raised, about a table that was made by something else."""
    return StoreError(f"{url}: the table {table} is no store: {why}; ?table=NAME names another")


def ordered(distances: ArrayLike, ids: AnyIds, k: int | None = None) -> Near:
    """Distances and ids by distance and then id, the first k of them."""
    near, order = np.asarray(distances, np.int32), order_of(ids)
    order = order[np.argsort(near[order], kind="stable")][:k]
    return near[order], ids[order]


def n_candidates(k: int) -> int:
    """Codes of a shortlist from which tables take the k nearest, by default."""
    return max(MIN_CANDIDATES, CANDIDATES_PER_HIT * k)


def empty(n_bits: int, text: bool = False) -> tuple[AnyIds, Packed]:
    """Empty arrays of ids and codes."""
    return array_of([], text), np.empty((0, n_bytes(n_bits)), np.uint8)


def _nothing(queries: Packed, ids: AnyIds) -> list[Near]:
    return [(np.empty(0, np.int32), ids[:0]) for _ in queries]


def _stacked(hits: list[Near]) -> Near:
    width = {len(ids) for _, ids in hits} or {0}
    if len(width) > 1:
        raise StoreError(CHANGED)
    shape = len(hits), width.pop()
    distances = np.array([near for near, _ in hits], np.int32).reshape(shape)
    names = [ids for _, ids in hits]
    return distances, np.array(names, names[0].dtype if names else np.int64).reshape(shape)
