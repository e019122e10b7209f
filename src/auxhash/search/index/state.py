"""IndexState: codes, ids and tables of a HammingIndex at one moment.

A search works on one `IndexState` from beginning to end. A change of the index replaces it by
another one, so that a search in another thread sees the state before or after, never a mixture.
"""

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute import checks
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.device import CPU, Device
from auxhash.search.index import numpyscan, scan, tablescan
from auxhash.search.index.gpu import DeviceCodes
from auxhash.search.index.multiindex import MultiIndex
from auxhash.search.index.tables import TableDistances, Tables

Ids = NDArray[np.int64]


class IndexState:
    """First n codes of `planes` (n_bytes, capacity) and their ids, which never change.

    Args:
        ids: (capacity,), or None where the ids are the positions.
        next_id: the id of the next code added without one; above all ids there ever were.
        capacity: how many codes may be written into `planes`; all that there is room for.
    """

    def __init__(
        self,
        planes: scan.Planes,
        n: int,
        ids: Ids | None,
        next_id: int,
        capacity: int | None = None,
    ) -> None:
        self.planes, self.n, self._ids, self.next_id = planes, n, ids, next_id
        self.capacity = planes.shape[1] if capacity is None else capacity
        self.tables: MultiIndex | None = None  # for small radii, once they pay
        self.on_device: DeviceCodes | None = None
        self._n_radius_queries = 0
        self._counting = threading.Lock()

    @property
    def packed(self) -> Packed:
        return np.array(self.planes[:, : self.n].T, order="C")

    @property
    def ids(self) -> Ids:
        return np.arange(self.n) if self._ids is None else self._ids[: self.n].copy()

    @property
    def own_ids(self) -> Ids | None:
        """The ids, or None where they are the positions."""
        return None if self._ids is None else self.ids

    def nearest(self, queries: Packed, k: int, device: Device = CPU) -> tuple[scan.Distances, Ids]:
        if device is not CPU:
            distances, positions = self._on(device).nearest(queries, k)
        elif numpyscan.suffices(self.n, len(self.planes), len(queries)):
            distances, positions = numpyscan.nearest(self.planes, self.n, queries, k)
        else:
            distances, positions = scan.nearest(self.planes, self.n, queries, k)
        return distances, self._ids_at(positions)

    def nearest_by_tables(
        self, tables: Tables, k: int, device: Device = CPU
    ) -> tuple[TableDistances, Ids]:
        if not self.n:  # `among` no ids
            return np.empty((len(tables), 0), np.float32), np.empty((len(tables), 0), np.int64)
        if device is not CPU:
            distances, positions = self._on(device).nearest_by_tables(tables, k)
        elif numpyscan.suffices(self.n, len(self.planes), len(tables)):
            distances, positions = numpyscan.nearest_by_tables(self.planes, self.n, tables, k)
        else:
            distances, positions = tablescan.nearest(self.planes, self.n, tables, k)
        return distances, self._ids_at(positions)

    def within(self, queries: Packed, r: int) -> tuple[list[scan.Distances], list[Ids]]:
        tables = self._tables_for(len(queries), r)
        if tables is not None and r <= tables.farthest:
            distances, positions = tables.within(queries, r)
        elif numpyscan.suffices(self.n, len(self.planes), len(queries)):
            distances, positions = numpyscan.within(self.planes, self.n, queries, r)
        else:
            distances, positions = scan.within(self.planes, self.n, queries, r)
        return distances, [self._ids_at(hits) for hits in positions]

    def positions(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the positions of the codes with these ids (...); ValueError if unknown."""
        array = np.asarray(ids)
        wanted = checks.ids("ids", array.ravel()).reshape(array.shape)
        if self._ids is None:
            _check_known(wanted, wanted < self.n)
            return wanted
        return positions_of(self._ids[: self.n], wanted)

    def new_ids(self, ids: ArrayLike | None, n: int) -> Ids:
        """Return ids for n more codes: `ids`, checked, or the next ones from `next_id` on."""
        return new_ids(ids, n, self.next_id, lambda: self.ids)

    def plus(self, packed: Packed, ids: Ids, numbered: bool) -> "IndexState":
        """Return the state with more codes; `numbered` if their ids are the next ones.

        The codes are written behind the first n, where no search of `self` looks. Both states
        can share the array, so only the newest `IndexState` may grow.
        """
        if not len(packed):
            return self
        stop = self.n + len(packed)
        planes, all_ids = self.planes, self._ids
        positional = numbered and all_ids is None and self.next_id == self.n
        if stop > self.capacity:
            capacity = max(stop, 2 * self.n)
            planes = np.empty((len(planes), capacity), np.uint8)
            planes[:, : self.n] = self.planes[:, : self.n]
            all_ids = None if all_ids is None else _enlarged(all_ids[: self.n], capacity)
        planes[:, self.n : stop] = packed.T
        if not positional:
            all_ids = _enlarged(self.ids, planes.shape[1]) if all_ids is None else all_ids
            all_ids[self.n : stop] = ids
        next_id = max(self.next_id, int(ids.max(initial=-1)) + 1)
        return IndexState(planes, stop, all_ids, next_id)

    def without(self, ids: Ids) -> "IndexState":
        """Return the state without these ids, where present; the other codes keep their order."""
        before = self.ids
        kept = ~np.isin(before, ids)
        if kept.all():
            return self
        planes = np.ascontiguousarray(self.planes[:, : self.n][:, kept])
        return IndexState(planes, planes.shape[1], before[kept], self.next_id)

    def prefix(self, n_bytes: int) -> "IndexState":
        """Return the state of the first bytes of all codes, in the same memory."""
        return IndexState(self.planes[:n_bytes], self.n, self._ids, self.next_id, self.n)

    def among(self, ids: ArrayLike) -> "IndexState":
        """Return the state of the codes with these ids, in their order here."""
        at = np.unique(self.positions(ids))
        planes = np.ascontiguousarray(self.planes[:, at])
        return IndexState(planes, len(at), self._ids_at(at), self.next_id)

    def _tables_for(self, n_queries: int, r: int) -> MultiIndex | None:
        """Return the tables for radius search; made once they pay, else None."""
        with self._counting:  # one thread makes the tables; the others wait for them
            self._n_radius_queries += n_queries
            n_queries = self._n_radius_queries
            if self.tables is None and MultiIndex.pays(self.n, n_queries, r, len(self.planes)):
                self.tables = MultiIndex(self.planes, self.n)
            return self.tables

    def _on(self, device: Device) -> DeviceCodes:
        """Return the codes in the memory of a GPU, copied there at the first call."""
        with self._counting:
            if self.on_device is None:
                self.on_device = DeviceCodes(device, self.planes, self.n)
            return self.on_device

    def _ids_at(self, positions: scan.Positions) -> Ids:
        return positions if self._ids is None else self._ids[positions]


def new_ids(ids: ArrayLike | None, n: int, next_id: int, present: Callable[[], Ids]) -> Ids:
    """Return ids for n more codes: `ids`, if they are new, or next_id, next_id + 1, ..."""
    if ids is None:
        if next_id + n - 1 > checks.LARGEST_ID:
            raise ValueError(
                f"{n} codes cannot be numbered on from id {next_id - 1}: the largest id is "
                "2^63 - 1; give ids"
            )
        return np.arange(n) + next_id if n else np.arange(0)
    new = checks.ids("ids", ids)
    if new.shape != (n,):
        raise ValueError(f"ids must be of shape ({n},), one for each code; got {new.shape}")
    twice = first_twice(new)
    if twice is not None:
        raise ValueError(f"ids must not name a code twice, {twice} does")
    # Ids of next_id and above are new for certain.
    if n and new.min() < next_id:
        taken = np.isin(new, present())
        if taken.any():
            raise ValueError(f"ids must be new, {new[taken].min()} is taken")
    return new


def positions_of(ids: Ids, wanted: Ids) -> NDArray[np.int64]:
    """Return the position in `ids` of each of the wanted ids (...); ValueError if unknown."""
    if not len(ids):
        _check_known(wanted, np.zeros(wanted.shape, bool))
        return wanted
    rising = bool((ids[1:] > ids[:-1]).all())  # often, and sorting takes longer than looking
    order = np.arange(len(ids)) if rising else np.argsort(ids)
    at = np.searchsorted(ids, wanted, sorter=None if rising else order).clip(max=len(ids) - 1)
    positions: NDArray[np.int64] = order[at]
    _check_known(wanted, ids[positions] == wanted)
    return positions


def _check_known(wanted: Ids, known: NDArray[np.bool_]) -> None:
    if not known.all():
        raise ValueError(f"ids must be in the index; {wanted[~known].flat[0]} is not")


def first_twice(ids: Ids) -> int | None:
    """Return the smallest id that occurs more than once, or None."""
    if (ids[1:] > ids[:-1]).all():
        return None
    rising = np.sort(ids)
    twice = rising[1:][rising[1:] == rising[:-1]]
    return int(twice[0]) if len(twice) else None


def _enlarged(ids: Ids, capacity: int) -> Ids:
    enlarged = np.empty(capacity, np.int64)
    enlarged[: len(ids)] = ids
    return enlarged
