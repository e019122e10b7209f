"""ApproximateIndex: approximate search over very large sets by faiss, used like HammingIndex.

An IndexBinaryIVF puts each code into the list of the nearest of `n_lists` centres; a query looks
into `n_probe` lists. It was the best of faiss's structures: HNSW takes many times longer to build
and is no quicker at equal recall, MultiHash is slower where the neighbours are not very near.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, Packed, as_packed, n_bytes
from auxhash.compute import checks, context, threads
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.faiss import import_faiss
from auxhash.compute.fingerprint import checked
from auxhash.compute.words import count
from auxhash.search.index import listfile, scan, tablescan
from auxhash.search.index.hamming import HammingIndex, as_queries, matched
from auxhash.search.index.state import Ids, new_ids, positions_of
from auxhash.search.index.tables import TableDistances, as_tables

Stored = TypeVar("Stored", bound=np.generic)

CODES_PER_CENTRE = 64  # that centres are learnt from
KMEANS_ROUNDS = 8


class ApproximateIndex:
    """Codes of `n_bits` bits with ids, searched in the lists nearest to a query.

    Args:
        n_lists: number of lists, learned from the first codes added (so add many, in random
            order); by default the power of 2 nearest to the root of their number.
        n_probe: lists searched per query; more is slower and finds more. May be changed any time.
        fingerprint: of the model that makes the codes, as of a HammingIndex.

    Distances are exact, but some of the nearest codes may be missing, and ties come in any order.
    Any thread may call any method at any time; calls wait for each other.
    """

    fingerprint: str | None = None  # of indexes that were pickled before there was one

    def __init__(
        self,
        n_bits: int,
        n_lists: int | None = None,
        n_probe: int = 16,
        n_jobs: int | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.n_bits = checks.integer("n_bits", n_bits, 1, MAX_BITS)
        self.n_lists = None if n_lists is None else checks.integer("n_lists", n_lists, 1)
        self.n_probe = checks.integer("n_probe", n_probe, 1)
        self.n_jobs = n_jobs
        self.fingerprint = checked("fingerprint", fingerprint)
        self._index: Any = None
        self._next_id = 0
        self._using = threading.Lock()

    def __len__(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def __repr__(self) -> str:
        return f"ApproximateIndex({count(len(self), 'code')} of {count(self.n_bits, 'bit')})"

    def __getstate__(self) -> dict[str, object]:
        with self._using:
            state = {name: value for name, value in vars(self).items() if name != "_using"}
            if self._index is not None:
                state["_index"] = import_faiss().serialize_index_binary(self._index)
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        if self._index is not None:
            self._index = import_faiss().deserialize_index_binary(self._index)
        self._using = threading.Lock()

    @classmethod
    def from_exact(
        cls, index: HammingIndex, n_lists: int | None = None, n_probe: int = 16
    ) -> "ApproximateIndex":
        """Make an ApproximateIndex of the codes and ids of a HammingIndex."""
        state = index._state
        ours = cls(index.n_bits, n_lists, n_probe, index.n_jobs, index.fingerprint)
        ours.add(state.packed, state.ids)
        ours._next_id = state.next_id
        return ours

    @property
    def ids(self) -> Ids:
        """All ids, list by list."""
        with self._using:
            return self._ids()

    @property
    def next_id(self) -> int:
        """Id of the next code that is added without one."""
        return self._next_id

    def codes(self, ids: ArrayLike) -> Packed:
        """Return the packed codes (..., n_bytes) of ids (...), an array of any shape."""
        array = np.asarray(ids)
        wanted = checks.ids("ids", array.ravel()).reshape(array.shape)
        with self._using:
            at = positions_of(self._ids(), wanted)
            width = n_bytes(self.n_bits)
            flat = self._joined(np.uint8, width, lambda lists, i: lists.get_codes(i))
            return flat.reshape(-1, width)[at]

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Add codes; ids are whole numbers from 0 to 2^63 - 1, none twice.

        Without ids, the numbering of codes goes on from the largest id so far.
        """
        packed = as_packed(codes, n_bits=self.n_bits)
        with self._using:
            new = new_ids(ids, len(packed), self._next_id, self._ids)
            if len(packed):
                with self._faiss():
                    index = self._learn(packed) if self._index is None else self._index
                    index.add_with_ids(packed, new)
                self._index = index
                self._next_id = max(self._next_id, int(new.max()) + 1)
        return self

    def remove(self, ids: ArrayLike) -> int:
        """Remove the codes with these ids and return their number; unknown ids are ignored."""
        gone = checks.ids("ids", ids)
        with self._using, self._faiss():
            return 0 if self._index is None else int(self._index.remove_ids(gone))

    def search(self, codes: ArrayLike, k: int) -> tuple[scan.Distances, Ids]:
        """Return distances int32 and ids int64 of near codes, both (n_queries, k).

        Both are -1 where the lists searched held fewer codes. With n < k codes in the index, both
        are (n_queries, n). A single code, of one axis, is one query.
        """
        k = checks.integer("k", k, 1)
        with self._searching(codes) as queries:
            distances, ids = self._index.search(queries, min(k, len(self)))
        return np.where(ids >= 0, distances, -1).astype(np.int32), ids

    def search_tables(self, tables: ArrayLike, k: int) -> tuple[TableDistances, Ids]:
        """Return distances float32 and ids int64 of codes near by tables, both (n_queries, k).

        Both the lists to look into and the codes in them are ranked by the tables, as
        `HammingIndex.search_tables` ranks codes. Ids are -1, at infinity, where the lists held
        fewer codes. With n < k codes in the index, both are (n_queries, n).
        """
        k, checked = checks.integer("k", k, 1), as_tables(tables, self.n_bits)
        with self._probing() as index, context.using(n_jobs=self.n_jobs):
            width, k = n_bytes(self.n_bits), min(k, len(self))
            xb = import_faiss().downcast_IndexBinary(index.quantizer).xb
            centres = import_faiss().vector_to_array(xb).reshape(-1, width)
            _, probed = tablescan.nearest(
                scan.to_planes(centres), len(centres), checked, index.nprobe
            )
            near = np.full((len(checked), k), np.inf, np.float32)
            ids = np.full((len(checked), k), -1, np.int64)

            def search(q: int) -> None:
                lists = probed[q].tolist()
                codes = self._joined(np.uint8, width, lambda all_, i: all_.get_codes(i), lists)
                planes = scan.to_planes(codes.reshape(-1, width))
                if not planes.size:
                    return
                distances, at = tablescan.nearest(planes, planes.shape[1], checked[q : q + 1], k)
                own = self._joined(np.int64, 1, lambda all_, i: all_.get_ids(i), lists)
                near[q, : at.shape[1]], ids[q, : at.shape[1]] = distances, own[at]

            threads.run_kernels(search, range(len(checked)))
        return near, ids

    def radius_search(self, codes: ArrayLike, r: int) -> tuple[list[scan.Distances], list[Ids]]:
        """Return distances and ids of codes at distance r or less, nearest first, per query."""
        r = min(checks.integer("r", r, 0), self.n_bits)
        with self._searching(codes) as queries:
            stops, distances, ids = self._index.range_search(queries, r + 1)  # faiss's is strict
        parts = [slice(a, z) for a, z in pairwise(stops)]
        orders = [np.argsort(distances[part], kind="stable") for part in parts]
        near = [distances[p].astype(np.int32)[o] for p, o in zip(parts, orders, strict=True)]
        return near, [ids[p][o] for p, o in zip(parts, orders, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file, all or nothing; faiss can read it as its own.

        `auxhash.index.listfile` describes the format.
        """
        with self._using:
            if self._index is None:
                raise ValueError("the index is empty: add codes before saving")
            state = self.n_bits, self._next_id, self.fingerprint
            listfile.write(path, import_faiss(), self._index, *state)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        n_bits: int | None = None,
        n_probe: int = 16,
        n_jobs: int | None = None,
        fingerprint: str | None = None,
    ) -> "ApproximateIndex":
        """Read a file of `save`, or an IndexBinaryIVF of faiss, and check all of it.

        A file written by faiss knows only whole bytes: `n_bits` says how many bits are used, and
        the numbering of codes added without ids goes on from the largest id in it. Its centres
        must be in an IndexBinaryFlat. `fingerprint` is that of the queries' model, as in
        `HammingIndex.load`; faiss's files state none.
        """
        if n_bits is not None:
            n_bits = checks.integer("n_bits", n_bits, 1, MAX_BITS)
        content = listfile.read(path, n_bits)
        stated = matched(path, content.fingerprint, fingerprint)
        index = cls._of(content._replace(fingerprint=stated), n_probe)
        index.n_jobs = n_jobs
        return index

    @classmethod
    def _of(cls, content: listfile.ListsContent, n_probe: int) -> "ApproximateIndex":
        faiss = import_faiss()
        index = cls(content.n_bits, len(content.centres), n_probe, None, content.fingerprint)
        inner = _empty(8 * content.centres.shape[1], len(content.centres))
        inner.quantizer.add(content.centres)
        inner.is_trained = True
        for i, (codes, ids) in enumerate(content.lists):
            if len(ids):
                pointers = faiss.swig_ptr(ids), faiss.swig_ptr(codes)
                inner.invlists.add_entries(i, len(ids), *pointers)
        inner.ntotal = sum(len(ids) for _, ids in content.lists)
        index._index, index._next_id = inner, content.next_id
        return index

    def _ids(self) -> Ids:
        return self._joined(np.int64, 1, lambda lists, i: lists.get_ids(i))

    def _joined(
        self,
        dtype: type[Stored],
        width: int,
        pointer: Callable[[Any, int], Any],
        which: Sequence[int] | None = None,
    ) -> NDArray[Stored]:
        """Return numbers that faiss keeps, `width` of each code, list by list in one array."""
        if self._index is None:
            return np.empty(0, dtype)
        faiss, lists = import_faiss(), self._index.invlists
        sizes = {i: lists.list_size(i) for i in (range(lists.nlist) if which is None else which)}
        full = [i for i, size in sizes.items() if size]
        views = [faiss.rev_swig_ptr(pointer(lists, i), width * sizes[i]) for i in full]
        return np.concatenate([np.empty(0, dtype), *views])

    def _learn(self, packed: Packed) -> Any:
        """Return an empty faiss index whose centres are learned from evenly spaced codes."""
        n_lists = self.n_lists or 1 << round(np.log2(len(packed)) / 2)
        if n_lists > len(packed):
            raise ValueError(
                f"n_lists={n_lists} needs as many codes in the first batch, got {len(packed)}"
            )
        index = _empty(8 * packed.shape[1], n_lists)
        index.cp.niter, index.cp.min_points_per_centroid = KMEANS_ROUNDS, 1
        spread = np.linspace(0, len(packed) - 1, min(len(packed), CODES_PER_CENTRE * n_lists))
        index.train(np.ascontiguousarray(packed[spread.astype(np.int64)]))
        return index

    @contextmanager
    def _searching(self, codes: ArrayLike) -> Iterator[Packed]:
        """Lock the index, set it up for a search, and give the packed queries."""
        queries = as_queries(codes, self.n_bits)
        with self._probing(), self._faiss():
            yield queries

    @contextmanager
    def _probing(self) -> Iterator[Any]:
        """Lock the index, and give faiss's with its number of lists to look into."""
        with self._using:
            if not len(self):
                raise ValueError("the index is empty: add codes before searching")
            n_probe = checks.integer("n_probe", self.n_probe, 1)
            self._index.nprobe = min(n_probe, self._index.nlist)
            yield self._index

    @contextmanager
    def _faiss(self) -> Iterator[None]:
        """Run faiss on n_jobs threads, and restore its number of threads afterwards."""
        faiss = import_faiss()
        with context.using(n_jobs=self.n_jobs):
            count = threads.count()
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(count)
        try:
            yield
        finally:
            faiss.omp_set_num_threads(before)


def _empty(d: int, n_lists: int) -> Any:
    """Return an IndexBinaryIVF without centres and codes."""
    faiss = import_faiss()
    quantizer = faiss.IndexBinaryFlat(d)
    index = faiss.IndexBinaryIVF(quantizer, d, n_lists)
    quantizer.this.disown()  # the index owns it
    index.own_fields = True
    return index
