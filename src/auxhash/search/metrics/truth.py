"""Relevance: the base points that a query should find, by label or as lists of neighbours."""

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, ArrayLike

Counts = NDArray[np.int64]

QUERIES_PER_CHECK = 512  # whose lists of neighbours are sorted at once

# Kinds of labels, by NumPy's letter for a type; labels of the same kind can be compared.
_KINDS = {
    **dict.fromkeys("biuf", "numbers"),
    "U": "text",
    "S": "bytes",
    "M": "dates",
}


class Truth:
    """Base points relevant to each query: by label, or as lists of neighbours."""

    def __init__(
        self,
        query_labels: ArrayLike | None,
        base_labels: ArrayLike | None,
        neighbors: ArrayLike | None,
        n_queries: int,
        n_base: int,
    ) -> None:
        self.n_base = n_base
        labels = query_labels is not None, base_labels is not None
        if labels != ((neighbors is None,) * 2):
            raise ValueError("give query_labels and base_labels, or neighbors, and not both")
        self.neighbors = None if neighbors is None else _neighbors(neighbors, n_base)
        if self.neighbors is not None:
            self.rule = f"{self.neighbors.shape[1]} nearest neighbours"
            _same_length("query_codes", n_queries, "neighbors", len(self.neighbors))
            return
        query = checks.labels("query_labels", query_labels)
        base = checks.labels("base_labels", base_labels)
        _same_length("query_codes", n_queries, "query_labels", len(query))
        _same_length("base_codes", n_base, "base_labels", len(base))
        if query.ndim != base.ndim:
            raise ValueError("query_labels and base_labels must both be (n,) or both (n, n_labels)")
        if query.ndim == 1:
            self.rule = "same label"
            number = _numbered(query, base)
            # In a type as small as possible: bytes are compared sixteen and more at once.
            number = number.astype(np.min_scalar_type(int(number.max(initial=0))))
            self.query, self.base = number[:n_queries], number[n_queries:]
        else:
            self.rule = "a shared label"
            if query.shape[1] != base.shape[1]:
                raise ValueError(
                    f"query_labels have {query.shape[1]} columns, base_labels {base.shape[1]}"
                )
            self.query, self.base = _label_sets(query), _label_sets(base)

    def relevant(self, rows: slice) -> NDArray[np.uint8]:
        """Return 1 where a base point is relevant to a query, else 0: (rows, n_base)."""
        if self.neighbors is not None:
            listed = np.asarray(self.neighbors[rows], np.int64)
            mask = np.zeros((len(listed), self.n_base), np.uint8)
            np.put_along_axis(mask, listed, 1, axis=1)
            return mask
        query = self.query[rows]
        if query.ndim == 1:
            same: NDArray[np.bool_] = query[:, None] == self.base
            return same.view(np.uint8)
        shared = np.zeros((len(query), self.n_base), bool)
        for w in range(query.shape[1]):
            shared |= (query[:, w, None] & self.base[:, w]) != 0
        return shared.view(np.uint8)


def _neighbors(neighbors: ArrayLike, n_base: int) -> AnyArray:
    """Check the lists of neighbours, and return them without a copy: they may be large."""
    array = np.asarray(neighbors)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError("neighbors must be positions in the base, of shape (n_queries, K)")
    if array.size and not (array.min() >= 0 and array.max() < n_base):
        raise ValueError(f"neighbors must lie in 0..{n_base - 1}")
    for rows in threads.chunks(len(array), QUERIES_PER_CHECK):
        rising = np.sort(array[rows], axis=1)
        twice = (rising[:, 1:] == rising[:, :-1]).any(axis=1)
        if twice.any():
            row = rows.start + int(np.flatnonzero(twice)[0])
            raise ValueError(f"neighbors must not name a point twice in one row, row {row} does")
    return array


def _numbered(query: AnyArray, base: AnyArray) -> Counts:
    """Return labels of queries, then base, as numbers 0, 1, ...: equal where the labels are."""
    kinds = [_KINDS[labels.dtype.kind] for labels in (query, base)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"query_labels are {kinds[0]} and base_labels {kinds[1]}: none are alike")
    common = np.result_type(query, base)
    wide = [a.dtype.kind in "iu" and a.dtype.itemsize == 8 for a in (query, base)]
    if common.kind != "f" or not any(wide):
        joined = np.concatenate([query, base])
        return np.asarray(np.unique(joined, return_inverse=True)[1])
    # As a common float type, 64-bit whole numbers would be rounded; Python compares exactly.
    number: dict[object, int] = {}
    parts = []
    for labels in (query, base):
        values, inverse = np.unique(labels, return_inverse=True)
        numbers = [number.setdefault(value, len(number)) for value in values.tolist()]
        parts.append(np.array(numbers, np.int64)[inverse])
    return np.concatenate(parts)


def _label_sets(labels: AnyArray) -> AnyArray:
    """Return sets of labels as bits, in words as narrow as possible: (n, n_words)."""
    packed = np.packbits(labels.astype(bool), axis=1)
    width = min(8, 1 << max(0, packed.shape[1] - 1).bit_length())  # bytes per word
    padded = np.zeros((len(packed), -(-packed.shape[1] // width) * width), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(f"u{width}")


def _same_length(name: str, n: int, other: str, m: int) -> None:
    if n != m:
        raise ValueError(f"{n} {name} do not fit {m} {other}")
