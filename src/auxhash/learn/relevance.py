"""Relevance: which rows of a set of codes are relevant to each query, and by what weight."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from auxhash.codes import Packed, as_packed
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.search.index import ApproximateIndex, NamedIndex


class Relevance(NamedTuple):
    """Rows relevant to queries: those of query i are rows[starts[i]:starts[i + 1]]."""

    starts: Numbers
    rows: Numbers
    weights: Array | None = None  # of the rows, positive; None are all the same

    def only(self, queries: Numbers) -> Self:
        """Return the relevance of these queries; all others have no relevant row."""
        kept = np.zeros(len(self.starts) - 1, bool)
        kept[queries] = True
        size = np.where(kept, np.diff(self.starts), 0)
        which = np.repeat(kept, np.diff(self.starts))
        weights = None if self.weights is None else self.weights[which]
        starts = np.concatenate([[0], np.cumsum(size)])
        return self._replace(starts=starts, rows=self.rows[which], weights=weights)

    def means(self, values: AnyArray) -> tuple[Numbers, Array]:
        """Return the queries with a relevant row, and the means (queries, b) over their rows.

        `values` (n_codes, b) are those of all codes.
        """
        used = np.flatnonzero(np.diff(self.starts))
        starts, weights = self.starts[used], self.weights
        weights = np.ones(len(self.rows)) if weights is None else weights
        sums = np.add.reduceat(values[self.rows] * weights[:, None], starts)
        return used, sums / np.add.reduceat(weights, starts)[:, None]

    def recall(self, queries: Numbers, hits: Numbers, ranks: Sequence[int]) -> list[float]:
        """Return the share of the relevant rows among each query's first hits, by their number.

        It is the mean over the queries; a row counts by its weight.
        """
        shares = []
        for i, near in zip(queries.tolist(), hits, strict=True):
            own = slice(self.starts[i], self.starts[i + 1])
            weights = None if self.weights is None else self.weights[own]
            rows = self.rows[own]
            shares.append([np.average(np.isin(rows, near[:k]), weights=weights) for k in ranks])
        return [float(share) for share in np.mean(shares, axis=0)]


def checked_relevance(
    rows: Any, n_queries: int, n_codes: int, name: str = "rows", of: str = "the codes"
) -> Relevance:
    """Check the rows that are relevant to each query, by their numbers from 0 to n_codes - 1.

    Errors call the argument `name`, and what has these rows `of`. `rows` are a number or a list of
    numbers per query, or a sparse matrix (n_queries, n_codes) of weights. A number that is listed
    twice counts as one of weight 2, as the entries of a matrix add up. Every query must have a
    relevant row.
    """
    if hasattr(rows, "tocsr"):
        return _of_matrix(rows, n_queries, n_codes, name, of)
    if isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__len__"):
        raise checks.ArgumentError(
            f"{name} must be row numbers, a list of them per query, or a sparse matrix of weights, "
            f"got {type(rows).__name__}"
        )
    if len(rows) != n_queries:
        raise ValueError(
            f"{name} must say for each of {n_queries} queries which are relevant, got {len(rows)}"
        )
    lists: Sequence[AnyArray] = [np.atleast_1d(np.asarray(each)) for each in rows]
    if any(each.ndim > 1 for each in lists):
        raise checks.ArgumentError(f"{name} must hold a row number or a list of them per query")
    size = np.array([len(each) for each in lists])
    _check_none_empty(name, size)
    flat = np.concatenate(lists)
    if flat.dtype.kind not in "iu" or flat.ndim != 1:
        raise checks.ArgumentError(
            f"{name} must be row numbers of {of}, not ids or names, got {flat.dtype}"
        )
    if flat.min() < 0 or flat.max() >= n_codes:
        wrong = flat.min() if flat.min() < 0 else flat.max()
        raise ValueError(
            f"{name} must lie in 0..{n_codes - 1}, got {wrong}: they are row numbers of {of}, "
            "in their order, not ids"
        )
    return Relevance(np.concatenate([[0], np.cumsum(size)]), flat.astype(np.int64))


def _of_matrix(matrix: Any, n_queries: int, n_codes: int, name: str, of: str) -> Relevance:
    """Return the entries of a sparse matrix as weights."""
    if matrix.shape != (n_queries, n_codes):
        raise ValueError(
            f"{name} must be a matrix of shape ({n_queries}, {n_codes}), a row per query and a "
            f"column per row of {of}, got {matrix.shape}"
        )
    entries = matrix.tocsr(copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    _check_none_empty(name, np.diff(entries.indptr))
    weights = checks.numbers(f"the weights of {name}", entries.data.astype(np.float64), 1)
    if (weights < 0).any():
        raise ValueError(f"the weights of {name} must not be negative, got {weights.min():g}")
    indptr, indices = entries.indptr.astype(np.int64), entries.indices.astype(np.int64)
    return Relevance(indptr, indices, weights)


def _check_none_empty(name: str, size: Numbers) -> None:
    if not size.all():
        raise ValueError(f"{name} must not be empty: query {int(np.argmin(size))} has none")


def codes_of(codes: Any, n_bits: int) -> Packed:
    """Return packed codes: they themselves, or those of an index, named or not, or of a store.

    Those of an approximate index and of a store come by rising id.
    """
    index: Any = codes.index if isinstance(codes, NamedIndex) else codes
    if isinstance(index, ApproximateIndex):
        _check_bits(index, n_bits)
        index = index.codes(np.sort(index.ids))
    elif hasattr(index, "batches"):  # a store
        _check_bits(index, n_bits)
        parts = [packed for _, packed in index.batches()]
        index = np.concatenate(parts) if parts else np.empty((0, -(-n_bits // 8)), np.uint8)
    elif hasattr(index, "packed"):
        _check_bits(index, n_bits)
        index = index.packed
    elif not hasattr(index, "__len__") or isinstance(index, str):
        raise checks.ArgumentError(
            f"codes must be packed codes, an index or a store, got {type(codes).__name__}"
        )
    packed = as_packed(index, "codes", n_bits)
    if not len(packed):
        raise ValueError("codes must hold at least one code, got none")
    return packed


def _check_bits(codes: Any, n_bits: int) -> None:
    if codes.n_bits != n_bits:
        raise ValueError(
            f"codes must be of n_bits={n_bits}, and those of {codes} have {codes.n_bits}"
        )
