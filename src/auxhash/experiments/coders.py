"""Methods that make a few bytes of each vector, behind one face: hashers, faiss's quantisers.

A coder learns, encodes, and offers one `Ranking` per distance in which its codes can be searched.
Another distance of hashers is one more ranking in `rankings_of`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from auxhash.codes import Packed, pack, sign
from auxhash.compute import deadline, threads
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.compute.faiss import import_faiss
from auxhash.experiments import runs
from auxhash.learn.hasher import Hasher
from auxhash.search.index import HammingIndex, tables_from_outputs
from auxhash.search.metrics import ranks
from auxhash.search.metrics.ranks import NeighborRanks

FIRST_SEED = 1234  # faiss's own, for seed 0
N_CENTROIDS = 256  # of a quantiser of one byte, each from one point at least
OPQ_ITERATIONS = 50  # faiss's own number
RABITQ_BYTES = 8  # of factors, per vector
BYTES_PER_NUMBER = 4  # in single precision
MAX_POSITIONS = 1000  # of a ranking that faiss makes


@dataclass(frozen=True)
class Ranking:
    """Base points ranked for some queries, by one distance."""

    distance: str
    ranks: Callable[[AnyArray], NeighborRanks]  # of these neighbours (n_queries, K)
    search: Callable[[int, int], Numbers]  # (n, k): positions of the first k, of n queries


class Hashed(Protocol):
    """A fitted hasher, as far as its codes are ranked."""

    @property
    def n_bits(self) -> int: ...

    def encode(self, X: AnyArray) -> Packed: ...

    def decision_function(self, X: AnyArray) -> Array: ...


class Coder(Protocol):
    """A method at a number of bytes."""

    def fit(self, X: AnyArray) -> object: ...

    def encode(self, X: AnyArray) -> Packed: ...

    def rankings(self, queries: AnyArray, codes: Packed) -> list[Ranking]: ...

    def model_bytes(self) -> float:
        """Bytes of what encoding and searching need beside the codes; NaN if it is not known."""
        ...


def rankings_of(hasher: Hashed, queries: AnyArray, codes: Packed) -> list[Ranking]:
    """Rankings by Hamming distance, by the real outputs of the queries, and by learnt tables."""
    real = hasher.decision_function(queries)
    rankings = [
        by_hamming(hasher.encode(queries), codes, hasher.n_bits),
        _by_tables("outputs", lambda rows: tables_from_outputs(real[rows]), codes),
    ]
    model: Any = getattr(hasher, "model_", hasher)
    if getattr(model, "table_function", None) is not None:
        rankings.append(_by_tables("tables", lambda rows: model.tables(queries[rows]), codes))
    return rankings


def by_hamming(query_codes: Packed, codes: Packed, n_bits: int) -> Ranking:
    """Rank packed codes by their Hamming distance."""
    index = HammingIndex(n_bits).add(codes)
    return Ranking(
        "Hamming",
        lambda near: ranks.by_hamming(query_codes, codes, near, n_bits),
        lambda n, k: index.search(query_codes[:n], min(k, len(codes)))[1],
    )


def _by_tables(name: str, tables: ranks.TablesOf, codes: Packed) -> Ranking:
    index = HammingIndex(8 * codes.shape[1]).add(codes)
    return Ranking(
        name,
        lambda near: ranks.by_tables(tables, codes, near),
        lambda n, k: index.search_tables(tables(slice(n)), min(k, len(codes)))[1],
    )


class HasherCoder:
    """A hasher of the package."""

    def __init__(self, hasher: Hasher) -> None:
        self.hasher = hasher

    def fit(self, X: AnyArray) -> None:
        runs.fit(self.hasher, X)

    def encode(self, X: AnyArray) -> Packed:
        return self.hasher.encode(X)

    def rankings(self, queries: AnyArray, codes: Packed) -> list[Ranking]:
        return rankings_of(self.hasher, queries, codes)

    def model_bytes(self) -> float:
        return runs.model_bytes(self.hasher)


class SignBits:
    """One bit per feature: its sign."""

    def __init__(self, n_features: int) -> None:
        self.n_bits = n_features

    def fit(self, X: AnyArray) -> None:
        pass

    def encode(self, X: AnyArray) -> Packed:
        return pack(sign(X))

    def decision_function(self, X: AnyArray) -> Array:
        return np.asarray(X, np.float64)

    def rankings(self, queries: AnyArray, codes: Packed) -> list[Ranking]:
        return rankings_of(self, queries, codes)

    def model_bytes(self) -> float:
        return 0


class PQ:
    """Product quantisation by faiss, one byte per part; zeros fill up the last part."""

    def __init__(self, n_bytes: int, seed: int = 0) -> None:
        self.n_bytes, self.seed = n_bytes, seed

    def fit(self, X: AnyArray) -> None:
        _check_centroids(X)
        if X.shape[1] < self.n_bytes:
            raise ValueError(f"{X.shape[1]} features have no {self.n_bytes} parts")
        with _faiss_threads():
            self._learn(self._padded(X))

    def _learn(self, X: Single) -> None:
        self.quantizer = self._quantizer(X.shape[1])
        iterations, self.quantizer.cp.niter = self.quantizer.cp.niter, 1
        for _ in deadline.each(range(iterations)):  # one by one, so that a limit is kept
            self.quantizer.train(X)
            self.quantizer.train_type = import_faiss().ProductQuantizer.Train_hot_start

    def _quantizer(self, n_features: int) -> Any:
        quantizer = import_faiss().ProductQuantizer(n_features, self.n_bytes, 8)
        quantizer.cp.seed = FIRST_SEED + self.seed
        quantizer.cp.min_points_per_centroid = 1  # fewer are no reason to print a warning
        return quantizer

    def _padded(self, X: AnyArray) -> Single:
        missing = -X.shape[1] % self.n_bytes
        return np.ascontiguousarray(np.pad(np.asarray(X, np.float32), ((0, 0), (0, missing))))

    def _rotated(self, X: AnyArray) -> Single:
        return self._padded(X)

    def encode(self, X: AnyArray) -> Packed:
        with _faiss_threads():
            codes: Packed = self.quantizer.compute_codes(self._rotated(X))
        return codes

    def rankings(self, queries: AnyArray, codes: Packed) -> list[Ranking]:
        rotated = self._rotated(queries)
        return [_by_tables("own", lambda rows: self._tables(rotated[rows]), codes)]

    def _tables(self, queries: Single) -> Single:
        """Squared distances (n, n_bytes, 256) of each part to its centroids."""
        pointer = import_faiss().swig_ptr
        tables = np.empty((len(queries), self.n_bytes, N_CENTROIDS), np.float32)
        for query, table in zip(queries, tables, strict=True):
            self.quantizer.compute_distance_table(pointer(query), pointer(table))
        return tables

    def model_bytes(self) -> float:
        return BYTES_PER_NUMBER * int(self.quantizer.centroids.size())


class OPQ(PQ):
    """Product quantisation after a learnt rotation (optimised product quantisation), by faiss."""

    def _learn(self, X: Single) -> None:
        faiss = import_faiss()
        self.rotation = faiss.OPQMatrix(X.shape[1], self.n_bytes)
        self.rotation.pq = inner = self._quantizer(X.shape[1])
        self.rotation.niter = 1
        for _ in deadline.each(range(OPQ_ITERATIONS)):
            self.rotation.train(X)
            inner.train_type = faiss.ProductQuantizer.Train_hot_start
            self.rotation.niter_pq_0 = self.rotation.niter_pq
        super()._learn(self.rotation.apply(X))

    def _rotated(self, X: AnyArray) -> Single:
        rotated: Single = self.rotation.apply(self._padded(X))
        return rotated

    def model_bytes(self) -> float:
        return super().model_bytes() + BYTES_PER_NUMBER * int(self.rotation.A.size())


class SearchedByFaiss:
    """A quantiser whose codes an index of faiss searches."""

    index: Any
    file_bytes: int

    def __init__(self, n_bytes: int, seed: int = 0) -> None:
        self.n_bytes, self.seed = n_bytes, seed

    def _learn(self, index: Any, X: AnyArray) -> None:
        with _faiss_threads():
            index.train(np.ascontiguousarray(X, np.float32))
        self.index = index
        self.file_bytes = len(import_faiss().serialize_index(index))  # while it has no codes

    def encode(self, X: AnyArray) -> Packed:
        with _faiss_threads():
            codes: Packed = self.index.sa_encode(np.ascontiguousarray(X, np.float32))
        return codes

    def rankings(self, queries: AnyArray, codes: Packed) -> list[Ranking]:
        single = np.ascontiguousarray(queries, np.float32)
        holding = import_faiss().downcast_index(getattr(self.index, "index", self.index))
        holding.reset()
        holding.add_sa_codes(codes)

        def search(n: int, k: int) -> Numbers:
            with _faiss_threads():
                positions: Numbers = self.index.search(single[:n], min(k, len(codes)))[1]
            return positions

        def ranked(near: AnyArray) -> NeighborRanks:
            return ranks.by_positions(search(len(single), MAX_POSITIONS), near)

        return [Ranking("own", ranked, search)]

    def model_bytes(self) -> float:
        return self.file_bytes


class RaBitQ(SearchedByFaiss):
    """RaBitQ by faiss: signs of all features, rotated at random, or of fewer after PCA."""

    def fit(self, X: AnyArray) -> None:
        n_features, kept = X.shape[1], 8 * (self.n_bytes - RABITQ_BYTES)
        if kept <= 0:
            raise ValueError(f"its factors alone take {RABITQ_BYTES} bytes")
        if kept > n_features + 7:
            raise ValueError(f"{n_features} features take {RABITQ_BYTES} bytes and one bit each")
        rotation = f"RR{n_features}" if kept >= n_features else f"PCAR{kept}"
        self._learn(import_faiss().index_factory(n_features, f"{rotation},RaBitQ"), X)


class RQ(SearchedByFaiss):
    """Residual quantisation by faiss, with a beam of 5, its own number.

    Codes are decoded in the search: no norms are kept beside them, as faster search would need.
    """

    def fit(self, X: AnyArray) -> None:
        _check_centroids(X)
        index = import_faiss().IndexResidualQuantizer(X.shape[1], self.n_bytes, 8)
        index.rq.cp.seed = FIRST_SEED + self.seed
        index.rq.cp.min_points_per_centroid = 1  # fewer are no reason to print a warning
        self._learn(index, X)


class LSQ(SearchedByFaiss):
    """Local search quantisation (LSQ++) by faiss, with its own 25 rounds and 16 tries per code.

    Codes are decoded in the search, as those of `RQ` are.
    """

    def fit(self, X: AnyArray) -> None:
        _check_centroids(X)
        index = import_faiss().IndexLocalSearchQuantizer(X.shape[1], self.n_bytes, 8)
        index.lsq.random_seed = FIRST_SEED + self.seed
        self._learn(index, X)


def _check_centroids(X: AnyArray) -> None:
    if len(X) < N_CENTROIDS:
        raise ValueError(f"it learns {N_CENTROIDS} centroids, from {len(X)} points")


@contextmanager
def _faiss_threads() -> Iterator[None]:
    """Let faiss use the threads of the context."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads.count())
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
