"""Mirror: the codes of a store in memory, searched by our own index, and following its writes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute.arrays import AnyArray
from auxhash.search.index.hamming import HammingIndex
from auxhash.search.index.scan import Distances
from auxhash.search.index.state import Ids
from auxhash.search.index.tables import TableDistances, Tables
from auxhash.stores.store import Near, ordered

MAX_CHANGES = 1024  # beside the large index, before it is made anew
FARTHEST = np.iinfo(np.int32).max  # distance of codes that were deleted or replaced

AnyNear = tuple[AnyArray, Ids]  # distances and ids (n_queries, k)
SearchOf = Callable[[HammingIndex, int], AnyNear]


class Mirror:
    """Codes in the order of their ids, so that equal distances come by id. It never changes.

    A change gives another Mirror. Both share the large index, in which codes that are deleted or
    replaced stay as `gone`; new ones are in a small index, and after MAX_CHANGES the two become
    one. A single change of a million codes so costs next to nothing.
    """

    def __init__(self, main: HammingIndex, ids: Ids, recent: HammingIndex, gone: Ids) -> None:
        self._main, self._ids = main, ids  # the index would copy its ids at each change
        self._recent = recent
        self._gone = gone  # ids of _main; all ids are rising

    @classmethod
    def of(cls, n_bits: int, ids: Ids, packed: Packed, n_jobs: int | None) -> "Mirror":
        """A mirror of codes in the order of their ids."""
        main = HammingIndex(n_bits, n_jobs).add(packed, ids)
        return cls(main, ids, HammingIndex(n_bits, n_jobs), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self._main) - len(self._gone) + len(self._recent)

    def changed(self, old: Ids, ids: Ids, packed: Packed) -> "Mirror":
        """A mirror without the codes of the ids `old`, and with these, whose ids are among them."""
        kept = ~np.isin(self._recent.ids, old)
        recent = np.concatenate([self._recent.ids[kept], ids])
        order = np.argsort(recent)
        recent = recent[order]
        codes = np.concatenate([self._recent.packed[kept], packed])[order]
        gone = np.union1d(self._gone, old[_among(old, self._ids)])
        n_bits, n_jobs = self._main.n_bits, self._main.n_jobs
        if len(recent) + len(gone) <= MAX_CHANGES:
            small = HammingIndex(n_bits, n_jobs).add(codes, recent)
            return Mirror(self._main, self._ids, small, gone)
        left = ~_among(self._ids, gone)
        names = np.concatenate([self._ids[left], recent])
        codes = np.concatenate([self._main.packed[left], codes])
        order = np.argsort(names, kind="stable")  # two rising runs, merged
        return Mirror.of(n_bits, names[order], codes[order], n_jobs)

    def only(self, ids: Ids) -> "Mirror":
        """A mirror of the codes of these ids, which are rising, as far as they are there."""
        main = ids[_among(ids, self._ids) & ~_among(ids, self._gone)]
        recent = ids[_among(ids, self._recent.ids)]
        names = np.concatenate([main, recent])
        codes = np.concatenate([self._main.codes(main), self._recent.codes(recent)])
        order = np.argsort(names)
        return Mirror.of(self._main.n_bits, names[order], codes[order], self._main.n_jobs)

    def search(self, queries: Packed, k: int) -> Near:
        """Distances and ids of the k nearest codes; see `Store.search`."""
        nothing = np.empty((len(queries), 0), np.int32), np.empty((len(queries), 0), np.int64)
        return self._nearest(lambda index, k: index.search(queries, k), k, nothing)

    def search_tables(self, tables: Tables, k: int) -> tuple[TableDistances, Ids]:
        """Distances and ids of the k nearest of all codes; see `Store.search_tables`."""
        nothing = np.empty((len(tables), 0), np.float32), np.empty((len(tables), 0), np.int64)
        return self._nearest(lambda index, k: index.search_tables(tables, k), k, nothing)

    def _nearest(self, search: SearchOf, k: int, nothing: AnyNear) -> AnyNear:
        """Search both indexes; `nothing` is the result of one that is empty."""
        k = min(k, len(self))
        if not k:
            return nothing
        distances, ids = search(self._main, k + len(self._gone)) if len(self._main) else nothing
        if len(self._gone):
            farthest = np.inf if distances.dtype == np.float32 else FARTHEST
            distances = np.where(np.isin(ids, self._gone), farthest, distances)
        if not len(self._gone) and not len(self._recent):
            return distances, ids
        more = search(self._recent, k) if len(self._recent) else nothing
        distances = np.concatenate([distances, more[0]], axis=1)
        ids = np.concatenate([ids, more[1]], axis=1)
        order = np.lexsort((ids, distances), axis=1)[:, :k]
        return np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1)

    def search_radius(self, queries: Packed, r: int) -> tuple[list[Distances], list[Ids]]:
        """Distances and ids of all codes within r; see `Store.search_radius`."""
        parts = [index for index in (self._main, self._recent) if len(index)]
        by_part = [index.radius_search(queries, r) for index in parts]
        all_near, all_ids = [], []
        for q in range(len(queries)):
            near = np.concatenate([[], *(distances[q] for distances, _ in by_part)])
            ids = np.concatenate([np.empty(0, np.int64), *(names[q] for _, names in by_part)])
            # What was replaced is gone from the large index only.
            stop = len(by_part[0][1][q]) if len(self._main) else 0
            kept = np.ones(len(ids), bool)
            kept[:stop] = ~np.isin(ids[:stop], self._gone)
            near, ids = ordered(near[kept], ids[kept])
            all_near.append(near)
            all_ids.append(ids)
        return all_near, all_ids


def _among(ids: Ids, rising: Ids) -> NDArray[np.bool_]:
    """Mark the ids that are in an array of rising ids."""
    if not len(rising):
        return np.zeros(len(ids), bool)
    marked: NDArray[np.bool_] = (
        rising[np.searchsorted(rising, ids).clip(max=len(rising) - 1)] == ids
    )
    return marked
