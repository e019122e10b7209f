"""Approximate search over very large sets, with the face of HammingIndex and faiss inside.

Codes are filed under the nearest of `n_lists` centres (IndexBinaryIVF), and a query looks into
`n_probe` of the lists. Of faiss's structures it won: HNSW takes many times longer to build and is
no quicker at equal recall, MultiHash is slower where the neighbours are not very near.
"""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from auxhash import threads
from auxhash.files import writing
from auxhash.index import scan
from auxhash.index.hamming import HammingIndex, Ids, check_packed, import_faiss, whole, whole_array

TRAINING = 64  # points a list is learned from
ROUNDS = 8  # of k-means


class ApproximateIndex:
    """Codes of `n_bits` bits with ids, searched in the lists nearest to a query.

    Args:
        n_lists: number of lists, learned from the first codes added (so add many, in random
            order); by default the power of 2 nearest to the root of their number.
        n_probe: lists a query looks into; more is slower and finds more. May be changed any time.

    Distances are exact, but some of the nearest codes may be missing, and ties come in any order.
    """

    def __init__(
        self,
        n_bits: int,
        n_lists: int | None = None,
        n_probe: int = 16,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = whole("n_bits", n_bits, 1)
        self.n_lists = None if n_lists is None else whole("n_lists", n_lists, 1)
        self.n_probe = whole("n_probe", n_probe, 1)
        self.n_jobs = n_jobs
        self._index: Any = None
        self._next_id = 0

    def __len__(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def __repr__(self) -> str:
        return f"ApproximateIndex({len(self)} codes of {self.n_bits} bits)"

    @classmethod
    def from_exact(
        cls, index: HammingIndex, n_lists: int | None = None, n_probe: int = 16
    ) -> "ApproximateIndex":
        """The codes and ids of a HammingIndex."""
        return cls(index.n_bits, n_lists, n_probe, index.n_jobs).add(index.packed, index.ids)

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Add codes; without ids they are numbered on from the largest id so far."""
        packed = check_packed(codes, self.n_bits)
        if ids is None:
            new = np.arange(self._next_id, self._next_id + len(packed))
        else:
            new = whole_array("ids", ids, 0)
            if new.shape != (len(packed),):
                raise ValueError(f"ids must be of shape ({len(packed)},), got {new.shape}")
        if len(packed):
            faiss = import_faiss()
            faiss.omp_set_num_threads(threads.count(self.n_jobs))
            if self._index is None:
                self._index = self._learn(packed)
            self._index.add_with_ids(packed, new)
            self._next_id = max(self._next_id, int(new.max()) + 1)
        return self

    def remove(self, ids: ArrayLike) -> int:
        """Remove the codes with these ids, as far as they are here, and return how many were."""
        gone = whole_array("ids", ids, 0)
        return 0 if self._index is None else int(self._index.remove_ids(gone))

    def search(self, codes: ArrayLike, k: int) -> tuple[scan.Distances, Ids]:
        """Distances int32 and ids int64, each (n_queries, k), -1 where the lists held fewer."""
        queries, k = self._queries(codes), whole("k", k, 1)
        distances, ids = self._index.search(queries, k)
        return np.where(ids >= 0, distances, -1).astype(np.int32), ids

    def radius_search(self, codes: ArrayLike, r: int) -> tuple[list[scan.Distances], list[Ids]]:
        """Distances and ids of codes at distance r or less, nearest first: an array a query."""
        queries, r = self._queries(codes), min(whole("r", r, 0), self.n_bits)
        stops, distances, ids = self._index.range_search(queries, r + 1)  # faiss's is strict
        parts = [slice(a, z) for a, z in pairwise(stops)]
        orders = [np.argsort(distances[part], kind="stable") for part in parts]
        near = [distances[p].astype(np.int32)[o] for p, o in zip(parts, orders, strict=True)]
        return near, [ids[p][o] for p, o in zip(parts, orders, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index as a faiss file, all or nothing."""
        if self._index is None:
            raise ValueError("the index is empty: add codes before saving")
        with writing(Path(path)) as temporary:
            import_faiss().write_index_binary(self._index, str(temporary))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        n_bits: int | None = None,
        n_probe: int = 16,
        n_jobs: int | None = None,
    ) -> "ApproximateIndex":
        """Read a faiss file; it counts whole bytes, so `n_bits` tells how many bits are used."""
        faiss = import_faiss()
        try:
            inner = faiss.read_index_binary(os.fspath(path))
        except RuntimeError as error:
            raise ValueError(f"{path} is damaged, or no binary faiss index") from error
        if not isinstance(inner, faiss.IndexBinaryIVF):
            raise ValueError(f"{path} holds a {type(inner).__name__}, not an IndexBinaryIVF")
        index = cls(inner.d if n_bits is None else n_bits, inner.nlist, n_probe, n_jobs)
        if -(-index.n_bits // 8) != inner.code_size:
            raise ValueError(f"n_bits={n_bits} does not fit the file's {inner.code_size} bytes")
        lists = (inner.invlists.list_size(i) for i in range(inner.nlist))
        largest = [
            faiss.rev_swig_ptr(inner.invlists.get_ids(i), size).max()
            for i, size in enumerate(lists)
            if size
        ]
        index._index, index._next_id = inner, int(max(largest, default=-1)) + 1
        return index

    def _learn(self, packed: Any) -> Any:
        """An empty faiss index whose centres are learned from a spread of the codes."""
        faiss = import_faiss()
        n_lists = self.n_lists or 1 << round(np.log2(len(packed)) / 2)
        if n_lists > len(packed):
            raise ValueError(
                f"n_lists={n_lists} needs as many codes in the first batch, got {len(packed)}"
            )
        d = 8 * packed.shape[1]
        quantizer = faiss.IndexBinaryFlat(d)
        index = faiss.IndexBinaryIVF(quantizer, d, n_lists)
        quantizer.this.disown()  # the index keeps it
        index.own_fields = True
        index.cp.niter, index.cp.min_points_per_centroid = ROUNDS, 1
        spread = np.linspace(0, len(packed) - 1, min(len(packed), TRAINING * n_lists))
        index.train(np.ascontiguousarray(packed[spread.astype(np.int64)]))
        return index

    def _queries(self, codes: ArrayLike) -> Any:
        if not len(self):
            raise ValueError("the index is empty: add codes before searching")
        import_faiss().omp_set_num_threads(threads.count(self.n_jobs))
        self._index.nprobe = min(self.n_probe, self._index.nlist)
        return check_packed(codes, self.n_bits)
