"""Detect queries that have nothing to do with the codes that they are searched among.

Codes of two models, or of columns in another order, are of the same size: a search compares them
without an error, and its results are arbitrary. But then no query has codes near it, except by
chance, and chance can be measured: by the same queries with their bits shuffled. How near the
queries of the right model would be is estimated from the codes of the index, by their distances to
each other.
"""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, pack, unpack
from auxhash.compute.arrays import ArrayLike, Numbers
from auxhash.search.index.hamming import HammingIndex

Scalar = TypeVar("Scalar", bound=np.generic)

MIN_QUERIES, MAX_QUERIES = 20, 100  # used of a search
MIN_CODES, MAX_CODES = 200, 50_000  # used of an index
# Distances to the nearest code, as shares of the distance by chance:
NEAR_CODES_SHARE = 0.85  # codes of an index up to it are near each other
NEAR_QUERIES_SHARE = 0.85  # queries up to it are not near by chance
MIN_CHANCE_BITS = 1.0  # where the distance by chance is less, nothing can be concluded


class Searchable(Protocol):
    """An index that gives its codes back."""

    n_bits: int

    @property
    def ids(self) -> Numbers: ...

    def codes(self, ids: ArrayLike) -> Packed: ...


def by_chance(index: Searchable, queries: Packed) -> bool:
    """Return True if the nearest codes are about as far away as from queries with shuffled bits.

    False where this cannot be decided: for few queries or codes, where codes are so short, or so
    many, that every query has one nearby, and where codes are hardly nearer to each other.
    """
    sample, ids = _sample(queries, MAX_QUERIES), _sample(index.ids, MAX_CODES)
    if len(sample) < MIN_QUERIES or len(ids) < MIN_CODES:
        return False
    codes = index.codes(ids)
    base = HammingIndex(index.n_bits).add(codes)
    among = _share_of_chance(base, _sample(codes, MAX_QUERIES), 1)  # the first is the code itself
    if among > NEAR_CODES_SHARE:
        return False
    return _share_of_chance(base, sample, 0) > max(NEAR_QUERIES_SHARE, (1 + among) / 2)


def _share_of_chance(index: HammingIndex, queries: Packed, rank: int) -> float:
    """Mean distance to the code of this rank, as a share of the nearest distance by chance."""
    bits = unpack(queries, index.n_bits)
    shuffled = pack(bits[:, np.random.default_rng(0).permutation(index.n_bits)])
    chance = float(index.search(shuffled, 1)[0].mean())
    distance = float(index.search(queries, rank + 1)[0][:, rank].mean())
    return distance / chance if chance >= MIN_CHANCE_BITS else 0.0


def _sample(rows: NDArray[Scalar], max_rows: int) -> NDArray[Scalar]:
    """Return up to `max_rows` rows, evenly spaced."""
    return rows[:: -(-len(rows) // max_rows) or 1]
