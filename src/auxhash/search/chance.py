"""Whether queries have anything to do with the codes that they are searched among.

Codes of two models, or of columns in another order, are of the same size, and a search compares
them without a word: what it finds is arbitrary. But then no query has codes near it, except by
chance, and chance can be measured: by the same queries with their bits shuffled. How near a query
of the right model would be, the codes tell that are there: they are near each other.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auxhash.codes import Packed, pack, unpack
from auxhash.search.index.hamming import HammingIndex

LEAST, MOST = 20, 100  # queries that are looked at
FEWEST, SEARCHED = 200, 50_000  # codes of the index, as well
ALIKE = 0.85  # of the distance by chance, at which codes of an index are near each other
NEAR = 0.85  # queries that are nearer than this are not there by chance
ROOM = 1.0  # bits; where chance is as near as this, nothing can be told


class Searchable(Protocol):
    """An index that gives its codes back."""

    n_bits: int

    @property
    def ids(self) -> NDArray[np.int64]: ...

    def codes(self, ids: ArrayLike) -> Packed: ...


def by_chance(index: Searchable, queries: Packed) -> bool:
    """Whether the nearest codes are about as far from the queries as if their bits were shuffled.

    False where it cannot be told: for few queries or codes, where codes are so short, or so many,
    that every query has one nearby, and where codes are hardly nearer to each other than that.
    """
    some, ids = _some(queries, MOST), _some(index.ids, SEARCHED)
    if len(some) < LEAST or len(ids) < FEWEST:
        return False
    codes = index.codes(ids)
    there = HammingIndex(index.n_bits).add(codes)
    alike = _share_of_chance(there, _some(codes, MOST), 1)  # the first is the code itself
    return alike <= ALIKE and _share_of_chance(there, some, 0) > max(NEAR, (1 + alike) / 2)


def _share_of_chance(index: HammingIndex, queries: Packed, rank: int) -> float:
    """The mean distance of the code of this rank, as a share of that by chance."""
    bits = unpack(queries, index.n_bits)
    shuffled = pack(bits[:, np.random.default_rng(0).permutation(index.n_bits)])
    chance = float(index.search(shuffled, 1)[0].mean())
    found = float(index.search(queries, rank + 1)[0][:, rank].mean())
    return found / chance if chance >= ROOM else 0.0


def _some(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """Up to so many rows, of all places."""
    return rows[:: -(-len(rows) // most) or 1]
