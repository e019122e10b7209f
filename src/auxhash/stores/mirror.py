"""Mirror: the codes of a store in memory, searched by our own index, and following its writes."""

from collections.abc import Callable

import numpy as np

from auxhash.codes import Packed
from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.search.index.hamming import HammingIndex
from auxhash.search.index.scan import Distances
from auxhash.search.index.tables import TableDistances, Tables
from auxhash.stores.ids import AnyIds, is_among, order_of, rising
from auxhash.stores.store import Near

MAX_CHANGES = 1024  # beside the large index, before it is made anew
FARTHEST = np.iinfo(np.int32).max  # distance of codes that were deleted or replaced

SearchOf = Callable[[HammingIndex, int], tuple[AnyArray, Numbers]]  # to distances and rows


class Mirror:
    """Codes in the order of their ids, so that equal distances come by id. It never changes.

    A change gives another Mirror. Both share the large index, in which codes that are deleted or
    replaced stay as `gone`; new ones are in a small index, and after MAX_CHANGES the two become
    one. A single change of a million codes so costs next to nothing. Indexes number the codes by
    rows; the ids of rows are beside them.
    """

    def __init__(
        self,
        main: HammingIndex,
        ids: AnyIds,
        recent: HammingIndex,
        recent_ids: AnyIds,
        gone: Numbers,
    ) -> None:
        self._main, self._ids = main, ids
        self._recent, self._recent_ids = recent, recent_ids
        self._gone = gone  # rows of _main; all ids and rows are rising
        # Where a recent code stands among those of _main, whose row i stands at 2 i + 1.
        self._recent_places = 2 * np.searchsorted(ids, recent_ids)

    @classmethod
    def of(cls, n_bits: int, ids: AnyIds, packed: Packed, n_jobs: int | None) -> "Mirror":
        """A mirror of codes in the order of their ids."""
        main = HammingIndex(n_bits, n_jobs).add(packed)
        return cls(main, ids, HammingIndex(n_bits, n_jobs), ids[:0], np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self._main) - len(self._gone) + len(self._recent)

    def changed(self, old: AnyIds, ids: AnyIds, packed: Packed) -> "Mirror":
        """A mirror without the codes of the ids `old`, and with these, whose ids are among them."""
        old = rising(old)
        kept = ~is_among(self._recent_ids, old)
        recent = np.concatenate([self._recent_ids[kept], ids])
        order = order_of(recent)
        recent = recent[order]
        codes = np.concatenate([self._recent.packed[kept], packed])[order]
        gone = np.union1d(self._gone, self._rows_of(old))
        n_bits, n_jobs = self._main.n_bits, self._main.n_jobs
        if len(recent) + len(gone) <= MAX_CHANGES:
            small = HammingIndex(n_bits, n_jobs).add(codes)
            return Mirror(self._main, self._ids, small, recent, gone)
        left = np.ones(len(self._ids), bool)
        left[gone] = False
        names = np.concatenate([self._ids[left], recent])
        codes = np.concatenate([self._main.packed[left], codes])
        order = order_of(names)
        return Mirror.of(n_bits, names[order], codes[order], n_jobs)

    def only(self, ids: AnyIds) -> "Mirror":
        """A mirror of the codes of these ids, which are rising, as far as they are there."""
        main = np.setdiff1d(self._rows_of(ids), self._gone)
        recent = np.flatnonzero(is_among(self._recent_ids, ids))
        names = np.concatenate([self._ids[main], self._recent_ids[recent]])
        codes = np.concatenate([self._main.codes(main), self._recent.codes(recent)])
        order = order_of(names)
        return Mirror.of(self._main.n_bits, names[order], codes[order], self._main.n_jobs)

    def search(self, queries: Packed, k: int) -> Near:
        """Distances and ids of the k nearest codes; see `Store.search`."""
        nothing = np.empty((len(queries), 0), np.int32)
        return self._nearest(lambda index, k: index.search(queries, k), k, nothing)

    def search_tables(self, tables: Tables, k: int) -> tuple[TableDistances, AnyIds]:
        """Distances and ids of the k nearest of all codes; see `Store.search_tables`."""
        nothing = np.empty((len(tables), 0), np.float32)
        return self._nearest(lambda index, k: index.search_tables(tables, k), k, nothing)

    def _nearest(self, search: SearchOf, k: int, nothing: AnyArray) -> tuple[AnyArray, AnyIds]:
        """Search both indexes; `nothing` are the distances (n_queries, 0) in one that is empty."""
        k, no_rows = min(k, len(self)), nothing.astype(np.int64)
        if not k:
            return nothing, self._ids[no_rows]
        distances, rows = (
            search(self._main, k + len(self._gone)) if len(self._main) else (nothing, no_rows)
        )
        if not len(self._gone) and not len(self._recent):
            return distances, self._ids[rows]
        farthest = np.inf if distances.dtype == np.float32 else FARTHEST
        distances = np.where(np.isin(rows, self._gone), farthest, distances)
        near, recent = search(self._recent, k) if len(self._recent) else (nothing, no_rows)
        distances = np.concatenate([distances, near], axis=1)
        places = np.concatenate([2 * rows + 1, self._recent_places[recent]], axis=1)
        ids = np.concatenate([self._ids[rows], self._recent_ids[recent]], axis=1)
        order = np.lexsort((places, distances), axis=1)[:, :k]
        return np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1)

    def search_radius(self, queries: Packed, r: int) -> tuple[list[Distances], list[AnyIds]]:
        """Distances and ids of all codes within r; see `Store.search_radius`."""
        main, recent = _within(self._main, queries, r), _within(self._recent, queries, r)
        all_near, all_ids = [], []
        for (distances, rows), (near, new) in zip(main, recent, strict=True):
            kept = ~np.isin(rows, self._gone)
            distances = np.concatenate([distances[kept], near])
            places = np.concatenate([2 * rows[kept] + 1, self._recent_places[new]])
            ids = np.concatenate([self._ids[rows[kept]], self._recent_ids[new]])
            order = np.lexsort((places, distances))
            all_near.append(distances[order])
            all_ids.append(ids[order])
        return all_near, all_ids

    def _rows_of(self, ids: AnyIds) -> Numbers:
        """Rows of the large index that have these ids, which rise."""
        rows: Numbers = np.searchsorted(self._ids, ids)
        rows, ids = rows[rows < len(self._ids)], ids[rows < len(self._ids)]
        known: Numbers = rows[self._ids[rows] == ids]
        return known


def _within(index: HammingIndex, queries: Packed, r: int) -> list[tuple[Distances, Numbers]]:
    if not len(index):
        return [(np.empty(0, np.int32), np.empty(0, np.int64)) for _ in queries]
    return list(zip(*index.radius_search(queries, r), strict=True))
