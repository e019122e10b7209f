"""HammingIndex: exact search over packed codes."""

import os
import threading
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, Packed, as_packed, n_bytes
from auxhash.compute import checks, context
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.faiss import import_faiss
from auxhash.compute.fingerprint import checked, match
from auxhash.compute.words import count
from auxhash.search.index import file, scan
from auxhash.search.index.gpu import refusal
from auxhash.search.index.state import Ids, IndexState
from auxhash.search.index.tables import VALUES_PER_BYTE, TableDistances, as_tables

Ranked = TypeVar("Ranked", scan.Distances, TableDistances)


class HammingIndex:
    """Codes of `n_bits` bits with ids, searched exactly by Hamming distance.

    Codes are packed uint8 (n, ceil(n_bits / 8)) or +-1 (n, n_bits), in every method; a single code,
    of one axis, is one query, and its results are those of (1, ...). Results come
    nearest first; codes at equal distance come in the order in which they were added, whatever
    the number of threads. Any thread may call any method at any time: a search sees the index
    either before or after an `add` or `remove` of another thread, never in between.

    `device="cuda"` keeps the codes in the memory of a GPU as well, from the first search on, and
    finds the k nearest there; `radius_search` is the processor's. "auto" decides once, when the
    index is made or loaded, and takes the processor where there is no GPU, no room on it, or codes
    are too long for it. Codes of CuPy or PyTorch on a GPU are taken by every method, and `search`
    answers on the same device.

    `fingerprint=hasher.fingerprint` says which model makes the codes. The index keeps it, in its
    file as well, and is then searched with no other model unawares: `load` compares it, and so does
    the command line.

    >>> index = HammingIndex(n_bits=3).add([[1, 1, 1], [1, 1, -1], [-1, -1, -1]])
    >>> index.search([[1, 1, 1]], k=2)
    (array([[0, 1]], dtype=int32), array([[0, 1]]))
    """

    def __init__(
        self,
        n_bits: int,
        n_jobs: int | None = None,
        device: devices.DeviceName = "cpu",
        fingerprint: str | None = None,
    ) -> None:
        self.n_bits = checks.integer("n_bits", n_bits, 1, MAX_BITS)
        self.n_jobs = n_jobs
        self.device = device
        _ = self._device  # or raise
        self.fingerprint = checked("fingerprint", fingerprint)
        self._state = IndexState(np.empty((n_bytes(self.n_bits), 0), np.uint8), 0, None, 0)
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return self._state.n

    def __repr__(self) -> str:
        return f"HammingIndex({count(len(self), 'code')} of {count(self.n_bits, 'bit')})"

    def __getstate__(self) -> dict[str, object]:
        now = self._state
        names = ("n_bits", "n_jobs", "device", "fingerprint")
        parts = now.planes[:, : now.n], now.own_ids, now.next_id
        return {**{name: getattr(self, name) for name in names}, "held": parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.n_bits, self.n_jobs = state["n_bits"], state["n_jobs"]
        self.device, self.fingerprint = state.get("device", "cpu"), state.get("fingerprint")
        planes, ids, next_id = state["held"]
        # Copied, because two indexes must not grow into the same array.
        self._state = IndexState(np.array(planes, order="C"), planes.shape[1], ids, next_id)
        self._changing = threading.Lock()

    @cached_property
    def _device(self) -> devices.Device:
        """Device of the search, found late: an index pickled with a GPU may be read without."""
        return devices.get(self.device, refusal=refusal(self.n_bits))

    @property
    def ids(self) -> Ids:
        """Ids (n,), in the order in which they were added."""
        return self._state.ids

    @property
    def next_id(self) -> int:
        """Id of the next code that is added without one."""
        return self._state.next_id

    @property
    def packed(self) -> Packed:
        """All codes, packed (n, n_bytes), in the order in which they were added."""
        return self._state.packed

    def codes(self, ids: ArrayLike) -> Packed:
        """Return the packed codes (..., n_bytes) of ids (...), an array of any shape."""
        now = self._state
        return np.moveaxis(now.planes[:, now.positions(ids)], 0, -1)

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Add codes; ids are whole numbers from 0 to 2^63 - 1, none twice.

        Without ids, codes are numbered 0, 1, 2, ..., or on from the largest id so far.
        """
        packed = as_packed(devices.fetched(codes), n_bits=self.n_bits)
        with self._changing:
            new = self._state.new_ids(ids, len(packed))
            self._state = self._state.plus(packed, new, numbered=ids is None)
        return self

    def remove(self, ids: ArrayLike) -> int:
        """Remove the codes with these ids and return their number; unknown ids are ignored.

        The other codes keep their ids and order; a removed id may be given again in `add`.
        """
        gone = checks.ids("ids", ids)
        with self._changing:
            before = self._state
            self._state = before.without(gone)
            return before.n - self._state.n

    def search(self, codes: ArrayLike, k: int) -> tuple[scan.Distances, Ids]:
        """Return distances int32 and ids int64 of the k nearest codes.

        Each is of shape (n_queries, k), or (n_queries, n) where the index holds n < k codes.
        """
        state, queries = self._start_search(), as_queries(codes, self.n_bits)
        return self._nearest(state.nearest, queries, k, codes)

    def search_tables(
        self, tables: ArrayLike, k: int, among: ArrayLike | None = None
    ) -> tuple[TableDistances, Ids]:
        """Return distances float32 and ids int64 of the k codes nearest by tables of distances.

        A code's distance from query i is tables[i, g, code[g]] summed over the bytes g, in float32
        and byte 0 first; smaller is nearer, and it may be negative.

        Args:
            tables: float32 (n_queries, ceil(n_bits / 8), 256), as `tables_from_outputs` makes them.
            among: ids of the codes to look at; all, by default.

        >>> index = HammingIndex(n_bits=2).add([[1, 1], [1, -1], [-1, -1]])
        >>> index.search_tables(tables_from_outputs([[0.5, -2.0]]), k=2)
        (array([[0. , 0.5]], dtype=float32), array([[1, 2]]))
        """
        state, checked = self._start_search(), as_tables(tables, self.n_bits)
        if among is not None:
            state = state.among(among)
        return self._nearest(state.nearest_by_tables, checked, k, tables)

    def prefix(self, n_bits: int) -> "HammingIndex":
        """Return an index of the first bits of all codes that are here now, in the same memory.

        The bits must fill whole bytes. What is added to either index later is not in the other.
        """
        n_bits = checks.integer("n_bits", n_bits, 1, self.n_bits)
        if n_bits % 8 and n_bits != self.n_bits:
            raise checks.ArgumentError(f"n_bits must be a multiple of 8, got {n_bits}")
        index = HammingIndex(n_bits, self.n_jobs, self.device, self.fingerprint)
        index._state = self._state.prefix(n_bytes(n_bits))
        return index

    def radius_search(self, codes: ArrayLike, r: int) -> tuple[list[scan.Distances], list[Ids]]:
        """Return distances and ids of all codes at distance r or less, an array each per query."""
        state, queries = self._start_search(), as_queries(codes, self.n_bits)
        with context.using(n_jobs=self.n_jobs):
            return state.within(queries, min(checks.integer("r", r, 0), self.n_bits))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file (`auxhash.index.file` has the format), all or nothing."""
        now = self._state
        planes = now.planes[:, : now.n]
        state = self.n_bits, planes, now.own_ids, now.next_id, self.fingerprint
        file.write(path, file.IndexContent(*state))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = True,
        n_jobs: int | None = None,
        check: bool = True,
        device: devices.DeviceName = "cpu",
        fingerprint: str | None = None,
    ) -> "HammingIndex":
        """Read an index from a file, and check it: a damaged file raises ValueError.

        Args:
            mmap: leave the codes on the disk, where processes can share them; the first `add` or
                `remove` makes a copy in memory and leaves the file alone. The file must not be
                written to or truncated while it is mapped (`save` does neither: it replaces the
                old file by a new one).
            check: False skips all checks that read the whole file (its checksum above all), so
                that a large file opens at once. Results from a damaged file may then be wrong:
                use it only for files that you trust.
            device: where it searches.
            fingerprint: of the model that will make the queries. OtherModelError if the file states
                another; if it states none, a warning, and the index takes this one.
        """
        devices.get(device)  # or raise, before a large file is read
        content = file.read(path, checks.flag("mmap", mmap), checks.flag("check", check))
        stated = matched(path, content.fingerprint, fingerprint)
        index = cls._of(content._replace(fingerprint=stated), device)
        index.n_jobs = n_jobs
        return index

    @classmethod
    def _of(cls, content: file.IndexContent, device: devices.DeviceName = "cpu") -> "HammingIndex":
        index = cls(content.n_bits, None, device, content.fingerprint)
        n = content.planes.shape[1]
        index._state = IndexState(content.planes, n, content.ids, content.next_id)
        return index

    def to_faiss(self, codebook: ArrayLike | None = None) -> Any:
        """Return codes and ids as an IndexBinaryIDMap; bits are padded with 0 to whole bytes.

        With the codebook (n_bytes, 256, n_dims) of learnt tables, `model.table_function.codebook`,
        it is an IndexIDMap of an additive quantiser: searched with the vectors of queries that
        `model.table_function.vectors` returns, it ranks codes as `search_tables` does, by inner
        products, the distances with the other sign. faiss has no place for a fingerprint.
        """
        faiss = import_faiss()
        now = self._state
        if codebook is not None:
            return _additive(faiss, now, np.asarray(codebook, np.float32))
        flat = faiss.IndexBinaryFlat(8 * len(now.planes))
        index = faiss.IndexBinaryIDMap(flat)
        flat.this.disown()  # the map owns it
        index.own_fields = True
        index.add_with_ids(now.packed, now.ids)
        return index

    @classmethod
    def from_faiss(
        cls, index: Any, n_bits: int | None = None, n_jobs: int | None = None
    ) -> "HammingIndex":
        """Make a HammingIndex of an IndexBinaryFlat of faiss, or of an IndexBinaryIDMap of one.

        faiss knows only whole bytes: `n_bits` says how many bits are used (all, by default).
        """
        faiss = import_faiss()
        index = faiss.downcast_IndexBinary(index)
        ids = None
        if isinstance(index, faiss.IndexBinaryIDMap):
            ids = faiss.vector_to_array(index.id_map)
            index = faiss.downcast_IndexBinary(index.index)
        if not isinstance(index, faiss.IndexBinaryFlat):
            raise ValueError(
                "index must be an IndexBinaryFlat, or one inside an IndexBinaryIDMap; "
                f"got {type(index).__name__}"
            )
        packed = faiss.vector_to_array(index.xb).reshape(index.ntotal, index.code_size)
        ours = cls(index.d if n_bits is None else n_bits, n_jobs)
        if n_bytes(ours.n_bits) != index.code_size:
            raise ValueError(f"n_bits={n_bits} does not fit the index's {index.code_size} bytes")
        return ours.add(packed, ids)

    def _start_search(self) -> IndexState:
        """Return the state to search, which does not change meanwhile."""
        state = self._state
        if not state.n:
            raise ValueError("the index is empty: add codes before searching")
        return state

    def _nearest(
        self, search: Callable[..., tuple[Ranked, Ids]], queries: AnyArray, k: int, asked: ArrayLike
    ) -> tuple[Ranked, Ids]:
        """Search on the device, and answer on that of `asked`, the queries as they came."""
        k = checks.integer("k", k, 1)
        with context.using(n_jobs=self.n_jobs):
            try:
                distances, ids = search(queries, k, self._device)
            except MemoryError:
                if self.device != "auto" or self._device is devices.CPU:
                    raise
                self._device = devices.CPU
                distances, ids = search(queries, k)
        return devices.like(asked, distances), devices.like(asked, ids)


def _additive(faiss: ModuleType, state: IndexState, codebook: NDArray[np.float32]) -> Any:
    """Return an index of faiss in which a code is the sum of the rows of a codebook."""
    width = len(state.planes)
    if codebook.ndim != 3 or codebook.shape[:2] != (width, VALUES_PER_BYTE):
        raise checks.ArgumentError(
            f"codebook must be of shape ({width}, {VALUES_PER_BYTE}, n_dims), got {codebook.shape}"
        )
    by_tables = faiss.AdditiveQuantizer.ST_LUT_nonorm
    sums = faiss.IndexLocalSearchQuantizer(
        codebook.shape[2], width, 8, faiss.METRIC_INNER_PRODUCT, by_tables
    )
    faiss.copy_array_to_vector(codebook.ravel(), sums.lsq.codebooks)
    sums.is_trained = sums.lsq.is_trained = True
    index = faiss.IndexIDMap(sums)
    sums.this.disown()  # the map owns it
    index.own_fields = True
    sums.add_sa_codes(state.packed)
    faiss.copy_array_to_vector(state.ids, index.id_map)
    index.ntotal = state.n
    return index


def matched(
    path: str | os.PathLike[str], stated: str | None, fingerprint: str | None
) -> str | None:
    """Return the fingerprint of an index read from `path`, if it is that of the queries' model."""
    if fingerprint is None:
        return stated
    return match(os.fspath(path), stated, "the queries", checked("fingerprint", fingerprint))


def as_queries(codes: ArrayLike, n_bits: int) -> Packed:
    """Return packed queries (n, n_bytes); a single code, of one axis, is one query."""
    array = np.asarray(devices.fetched(codes))
    return as_packed(array[None] if array.ndim == 1 else array, n_bits=n_bits)
