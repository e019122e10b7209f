"""HammingIndex: exact search over packed codes."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auxhash.codes import Packed, as_packed
from auxhash.index import file, scan
from auxhash.index.multiindex import MultiIndex

MOST_BITS = 1 << 15

Ids = NDArray[np.int64]


class HammingIndex:
    """Codes of `n_bits` bits with ids, searched exactly by Hamming distance.

    Codes are packed uint8 (n, ceil(n_bits / 8)) or +-1 (n, n_bits), in every method. Results come
    nearest first; codes at equal distance come in the order in which they were added, whatever
    the number of threads.

    >>> index = HammingIndex(n_bits=3).add([[1, 1, 1], [1, 1, -1], [-1, -1, -1]])
    >>> index.search([[1, 1, 1]], k=2)
    (array([[0, 1]], dtype=int32), array([[0, 1]]))
    """

    def __init__(self, n_bits: int, n_jobs: int | None = None) -> None:
        self.n_bits = whole("n_bits", n_bits, 1)
        if self.n_bits > MOST_BITS:
            raise ValueError(f"n_bits must be at most {MOST_BITS}, got {n_bits}")
        self.n_jobs = n_jobs
        self._n = 0
        self._planes = np.empty((-(-self.n_bits // 8), 0), np.uint8)  # (n_bytes, room)
        self._ids: Ids | None = None  # (room,); None: the ids are the positions
        self._next_id = 0
        self._multi: MultiIndex | None = None  # tables for small radii, once they pay
        self._asked = 0  # queries of a small radius since the codes last changed

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"HammingIndex({self._n} codes of {self.n_bits} bits)"

    @property
    def ids(self) -> Ids:
        """The ids (n,), in the order in which they were added."""
        return np.arange(self._n) if self._ids is None else self._ids[: self._n].copy()

    @property
    def packed(self) -> Packed:
        """All codes, packed (n, n_bytes), in the order in which they were added."""
        return np.ascontiguousarray(self._planes[:, : self._n].T)

    def codes(self, ids: ArrayLike) -> Packed:
        """The packed codes (..., n_bytes) of some ids, of any shape."""
        return self._planes[:, self._positions(ids)].transpose(*range(1, np.ndim(ids) + 1), 0)

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Add codes; ids are whole numbers of 0 or more, none twice.

        Without ids, codes are numbered on from the largest id so far (0, 1, 2, ...).
        """
        packed = check_packed(codes, self.n_bits)
        start, stop = self._n, self._n + len(packed)
        numbered = ids is None and self._ids is None and self._next_id == start
        new = self._new_ids(ids, len(packed))
        if stop > self._planes.shape[1]:
            self._grow(max(stop, 2 * start))
        self._planes[:, start:stop] = packed.T
        if not numbered:
            if self._ids is None:
                self._ids = np.arange(self._planes.shape[1])
            self._ids[start:stop] = new
        self._n = stop
        self._next_id = max(self._next_id, int(new.max(initial=-1)) + 1)
        self._multi, self._asked = None, 0
        return self

    def remove(self, ids: ArrayLike) -> int:
        """Remove the codes with these ids, as far as they are here, and return how many were.

        The others keep their ids and their order; an id that is free again may be given again.
        """
        kept = ~np.isin(self.ids, whole_array("ids", ids, 0))
        removed = self._n - int(kept.sum())
        if removed:
            self._ids = self.ids[kept]
            self._planes = np.ascontiguousarray(self._planes[:, : self._n][:, kept])
            self._n -= removed
            self._multi, self._asked = None, 0
        return removed

    def search(self, codes: ArrayLike, k: int) -> tuple[scan.Distances, Ids]:
        """Distances int32 and ids int64, each (n_queries, k), of the k nearest codes.

        Both are -1 where the index holds fewer than k codes.
        """
        queries, k = self._queries(codes), whole("k", k, 1)
        distances, positions = scan.nearest(
            self._planes, self._n, queries, k, self.n_bits, self.n_jobs
        )
        return distances, self._named(positions)

    def radius_search(self, codes: ArrayLike, r: int) -> tuple[list[scan.Distances], list[Ids]]:
        """Distances and ids of all codes at distance r or less: one array of each a query."""
        queries, r = self._queries(codes), min(whole("r", r, 0), self.n_bits)
        self._asked += len(queries)
        if self._multi is None and MultiIndex.pays(self._n, self._asked, r, len(self._planes)):
            self._multi = MultiIndex(self._planes, self._n, self.n_jobs)
        if self._multi is not None and r <= self._multi.farthest:
            distances, positions = self._multi.within(queries, r, self.n_bits, self.n_jobs)
        else:
            distances, positions = scan.within(
                self._planes, self._n, queries, r, self.n_bits, self.n_jobs
            )
        return distances, [self._named(found) for found in positions]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file (`auxhash.index.file` tells its format), all or nothing."""
        planes = self._planes[:, : self._n]
        ids = None if self._ids is None else self.ids
        file.write(path, file.Content(self.n_bits, planes, ids, self._next_id))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], mmap: bool = True, n_jobs: int | None = None
    ) -> "HammingIndex":
        """Read an index from a file.

        With `mmap` codes are read from the disk as they are searched, and processes share them;
        the first `add` or `remove` makes a copy in memory and leaves the file alone. Without,
        all is read and checked against its sum.
        """
        content = file.read(path, mmap)
        index = cls(content.n_bits, n_jobs)
        index._planes, index._ids = content.planes, content.ids
        index._n, index._next_id = content.planes.shape[1], content.next_id
        return index

    def to_faiss(self) -> Any:
        """The same codes and ids as an IndexBinaryIDMap; bits are padded with 0 to whole bytes."""
        faiss = import_faiss()
        flat = faiss.IndexBinaryFlat(8 * len(self._planes))
        index = faiss.IndexBinaryIDMap(flat)
        flat.this.disown()  # the map keeps it
        index.own_fields = True
        index.add_with_ids(self.packed, self.ids)
        return index

    @classmethod
    def from_faiss(
        cls, index: Any, n_bits: int | None = None, n_jobs: int | None = None
    ) -> "HammingIndex":
        """Codes and ids of a binary faiss index that can give its codes back.

        faiss counts whole bytes: `n_bits` tells how many of them are used (all, by default).
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
        if n_bits is None:
            n_bits = index.d
        elif -(-n_bits // 8) != index.code_size:
            raise ValueError(f"n_bits={n_bits} does not fit the index's {index.code_size} bytes")
        return cls(n_bits, n_jobs).add(packed, ids)

    def _grow(self, room: int) -> None:
        planes = np.empty((len(self._planes), room), np.uint8)
        planes[:, : self._n] = self._planes[:, : self._n]
        if self._ids is not None:
            ids = np.empty(room, np.int64)
            ids[: self._n] = self._ids[: self._n]
            self._ids = ids
        self._planes = planes

    def _queries(self, codes: ArrayLike) -> Packed:
        if not self._n:
            raise ValueError("the index is empty: add codes before searching")
        return check_packed(codes, self.n_bits)

    def _named(self, positions: scan.Positions) -> Ids:
        if self._ids is None:
            return positions
        return np.where(positions >= 0, self._ids[positions], -1)

    def _positions(self, ids: ArrayLike) -> NDArray[np.int64]:
        wanted = np.asarray(ids, np.int64)
        if self._ids is None:
            known = (wanted >= 0) & (wanted < self._n)
            found = wanted
        else:
            ids = self._ids[: self._n]
            order = np.argsort(ids)
            place = np.searchsorted(ids, wanted, sorter=order).clip(max=self._n - 1)
            found = order[place]
            known = ids[found] == wanted
        if not known.all():
            raise ValueError(f"ids must be in the index; {wanted[~known].flat[0]} is not")
        return found

    def _new_ids(self, ids: ArrayLike | None, n: int) -> Ids:
        if ids is None:
            return np.arange(self._next_id, self._next_id + n)
        new = whole_array("ids", ids, 0)
        if new.shape != (n,):
            raise ValueError(f"ids must be of shape ({n},), one for each code; got {new.shape}")
        values, times = np.unique(new, return_counts=True)
        if (times > 1).any():
            raise ValueError(f"ids must not name a code twice, {values[times > 1][0]} does")
        # Ids above all others are new, and need no search.
        if n and values[0] < self._next_id:
            taken = np.isin(values, self.ids)
            if taken.any():
                raise ValueError(f"ids must be new, {values[taken][0]} is taken")
        return new


def check_packed(codes: ArrayLike, n_bits: int, name: str = "codes") -> Packed:
    """Packed codes of `n_bits` bits, from packed or +-1 codes."""
    array = np.asarray(codes)
    if array.ndim != 2:
        raise ValueError(f"{name} must be of shape (n, n_bits), got shape {array.shape}")
    width = -(-n_bits // 8)
    plain = array.dtype != np.uint8
    if array.shape[1] != (n_bits if plain else width):
        kind = f"+-1 of shape (n, {n_bits}) or packed uint8 of shape (n, {width})"
        raise ValueError(
            f"{name} of {n_bits} bits must be {kind}; got {array.dtype} of shape {array.shape}"
        )
    packed = as_packed(array, name)
    if n_bits % 8 and (packed[:, -1] >> (n_bits % 8)).any():
        raise ValueError(f"{name} must be 0 in the padding bits beyond n_bits={n_bits}")
    return packed


def whole(name: str, value: Any, least: int) -> int:
    """Check that an argument is a whole number of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of {least} or more, got {value!r}")
    return int(value)


def whole_array(name: str, values: ArrayLike, least: int) -> NDArray[np.int64]:
    """Check that an argument is a list of whole numbers of `least` or more."""
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or not array.size):
        raise ValueError(
            f"{name} must be a list of whole numbers, got {array.dtype} of shape {array.shape}"
        )
    if array.size and array.min() < least:
        raise ValueError(f"{name} must be {least} or more, got {array.min()}")
    return array.astype(np.int64)


def import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("this needs faiss: pip install 'auxhash[faiss]'") from error
    return faiss
