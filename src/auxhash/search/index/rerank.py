"""Re-rank the candidates of a search by distances finer than Hamming distances.

All but `cascade`, which searches first, take the ids of a search (n_queries, n_candidates), -1 for
none, and return (distances, ids), nearest first; equal distances keep the order of the search, and
ids of -1 come last, at distance infinity.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import n_bytes, unpack
from auxhash.compute import checks, threads
from auxhash.compute.arrays import ArrayLike
from auxhash.search.index import numpyscan, tablescan
from auxhash.search.index.hamming import HammingIndex, as_queries
from auxhash.search.index.state import Ids
from auxhash.search.index.tables import as_tables

QUERIES_PER_STEP = 64

Floats = NDArray[np.float64]
Distance = Callable[[slice, Ids], Floats]  # of these rows of queries to the candidates (n, k)


class Coded(Protocol):
    """An index that can return its codes."""

    n_bits: int

    def codes(self, ids: ArrayLike) -> NDArray[np.uint8]: ...


def by_vectors(
    ids: ArrayLike,
    queries: ArrayLike,
    vectors: Any,
    k: int | None = None,
    metric: Literal["euclidean", "cosine"] = "euclidean",
) -> tuple[Floats, Ids]:
    """Re-rank by the distances of the original vectors: vectors[id] is the point of that id.

    Args:
        queries: (n_queries, D).
        vectors: (n, D), or anything indexed by an array of ids, such as a memory map.
        k: how many to keep; all, by default.
    """
    candidates = _candidates(ids)
    points = _one_or_more(_finite("queries", queries))
    if points.ndim != 2 or len(points) != len(candidates):
        raise ValueError(f"queries must be ({len(candidates)}, D), got shape {points.shape}")
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f'metric must be "euclidean" or "cosine", got {metric!r}')
    from auxhash.compute.neighbors import normalized, scale  # here: most searches do without

    cosine = metric == "cosine"
    if cosine:
        points = normalized(points)
    if isinstance(vectors, (list, tuple)) or hasattr(vectors, "columns"):  # a frame's are names
        vectors = np.asarray(vectors)
    n = len(vectors) if hasattr(vectors, "__len__") else None
    if n is not None and candidates.max() >= n:
        raise ValueError(f"ids must have vectors: there are {n}, and an id is {candidates.max()}")

    def distance(rows: slice, wanted: Ids) -> Floats:
        flat = _finite("vectors", vectors[wanted.ravel()])
        if flat.ndim != 2 or flat.shape[1] != points.shape[1]:
            raise ValueError(f"vectors must be (n, {points.shape[1]}), as queries are")
        if cosine:
            base = normalized(flat).reshape(*wanted.shape, -1)
            return np.asarray(1 - np.einsum("qkd,qd->qk", base, points[rows])).clip(0)
        unit = scale(flat, points[rows])  # or squares could leave the double range
        base = (flat / unit).reshape(*wanted.shape, -1)
        return np.asarray(np.linalg.norm(base - points[rows, None] / unit, axis=2) * unit)

    return _reorder(candidates, distance, k)


def by_outputs(
    ids: ArrayLike, outputs: ArrayLike, index: Coded, k: int | None = None
) -> tuple[Floats, Ids]:
    """Re-rank by the asymmetric distance of the query's real-valued outputs to the codes.

    The query's code is the sign of its `outputs` (n_queries, n_bits). A bit in which a code
    differs from it costs |output|, so that bits of which the query is unsure cost little.
    """
    candidates = _candidates(ids)
    real = _one_or_more(_finite("outputs", outputs))
    if real.shape != (len(candidates), index.n_bits):
        raise ValueError(
            f"outputs must be ({len(candidates)}, {index.n_bits}), got shape {real.shape}"
        )

    known = np.unique(candidates[candidates >= 0])
    packed = index.codes(known)  # in one call: an index has to look ids up

    def distance(rows: slice, wanted: Ids) -> Floats:
        chosen = packed[np.searchsorted(known, wanted.ravel())]
        codes = unpack(chosen, index.n_bits).reshape(*wanted.shape, -1)
        agreement = np.einsum("qkb,qb->qk", codes.astype(np.float64), real[rows])
        size = np.abs(real[rows]).sum(axis=1, keepdims=True)
        return np.asarray((size - agreement) / 2).clip(0)  # below zero by rounding alone

    return _reorder(candidates, distance, k)


def by_tables(
    ids: ArrayLike, tables: ArrayLike, index: Coded, k: int | None = None
) -> tuple[Floats, Ids]:
    """Re-rank by tables of distances (n_queries, n_bytes, 256), as `search_tables` does."""
    candidates = _candidates(ids)
    checked = as_tables(tables, index.n_bits, len(candidates))
    present, kept = candidates >= 0, _n_kept(candidates, k)
    last = candidates.max()  # in place of -1
    if last < 0:
        return np.full((len(candidates), kept), np.inf), candidates[:, :kept]
    packed = index.codes(np.where(present, candidates, last))
    m, n, width = packed.shape
    scan = numpyscan if numpyscan.suffices(n, width, m) else tablescan
    near, places = scan.nearest_own(packed, checked, present, kept)
    nearest = np.take_along_axis(candidates, places, axis=1)
    return near.astype(np.float64), np.where(places < 0, -1, nearest)


def cascade(
    index: HammingIndex,
    codes: ArrayLike,
    tables: ArrayLike,
    k: int,
    n_bits: int = 32,
    candidates: tuple[int, int] = (1000, 100),
    queries: ArrayLike | None = None,
    vectors: Any = None,
    metric: Literal["euclidean", "cosine"] = "euclidean",
) -> tuple[Floats, Ids]:
    """Return distances and ids of the k best of a search in two or three passes.

    The first pass takes candidates[0] codes by the Hamming distance of their first `n_bits` (whole
    bytes); the second orders them by `tables`, over all bits. With `vectors`, the candidates[1]
    best of these are ordered by the distance of the vectors to those of the `queries`, in a third.

    Args:
        codes: of the queries, all of their bits, packed or +-1.
        tables: (n_queries, n_bytes, 256), as for `search_tables`.
        queries, vectors, metric: as for `by_vectors`.
    """
    k = checks.integer("k", k, 1)
    first, second = (checks.integer("candidates", each, k) for each in candidates)
    asked, prefix = as_queries(codes, index.n_bits), index.prefix(n_bits)
    _, ids = prefix.search(asked[:, : n_bytes(prefix.n_bits)], first)
    if vectors is None:
        return by_tables(ids, tables, index, k)
    if queries is None:
        raise checks.ArgumentError(
            "queries must be the vectors to compare `vectors` with, got None"
        )
    _, ids = by_tables(ids, tables, index, second)
    return by_vectors(ids, queries, vectors, k, metric)


def _candidates(ids: ArrayLike) -> Ids:
    array = np.asarray(ids)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer) or not array.size:
        raise ValueError("ids must be (n_queries, n_candidates), as a search returns them")
    if array.min() < -1 or array.max() > checks.LARGEST_ID:
        wrong = array.min() if array.min() < -1 else array.max()
        raise ValueError(f"ids must be those of a search, or -1 for none; got {wrong}")
    return array.astype(np.int64)


def _finite(name: str, values: ArrayLike) -> Floats:
    """Return `values` as floats; ValueError if any is not finite."""
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but hold NaN or infinity")
    return array


def _one_or_more(rows: Floats) -> Floats:
    """Return the rows of queries; a single row, of one axis, is one query, as in a search."""
    return rows[None] if rows.ndim == 1 else rows


def _n_kept(ids: Ids, k: int | None) -> int:
    n = len(ids[0])
    return n if k is None else min(checks.integer("k", k, 1), n)


def _reorder(ids: Ids, distance: Distance, k: int | None) -> tuple[Floats, Ids]:
    """Return distances and ids of the k nearest candidates, nearest first."""
    kept = _n_kept(ids, k)
    near, nearest = np.full((len(ids), kept), np.inf), np.full((len(ids), kept), -1, np.int64)
    for rows in threads.chunks(len(ids), QUERIES_PER_STEP):
        candidates = ids[rows]
        real = candidates >= 0
        if not real.any():
            continue
        # Missing ids are replaced by another id, so that all candidates are in one array.
        filled = np.where(real, candidates, candidates[real][0])
        measured = np.where(real, distance(rows, filled), np.inf)
        # Missing ids come last, even after a distance that overflows to infinity.
        order = np.lexsort((measured, ~real), axis=1)[:, :kept]
        near[rows] = np.take_along_axis(measured, order, axis=1)
        nearest[rows] = np.take_along_axis(candidates, order, axis=1)
    return near, nearest
