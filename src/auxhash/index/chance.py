"""Whether queries have anything to do with the codes that they are searched among.

Codes of two models, or of columns in another order, are of the same size, and a search compares
them without a word: what it finds is arbitrary. But then no query has codes near it, except by
chance, and chance can be measured: by the same queries with their bits shuffled.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, pack, unpack

LEAST, MOST = 20, 100  # queries that are looked at
SHUFFLES = 2
NEAR = 0.85  # of the distance by chance: a model's own queries are at .65 of it, or nearer
ROOM = 1.0  # bits; where even shuffled queries are as near as this, nothing can be told


class Nearest(Protocol):
    """An index."""

    n_bits: int

    def __len__(self) -> int: ...

    def search(self, queries: Packed, k: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...


def by_chance(index: Nearest, queries: Packed) -> bool:
    """Whether the nearest codes are about as far from the queries as if their bits were shuffled.

    False where it cannot be told: for few queries, and where codes are so short, or so many, that
    every query has one nearby.
    """
    some = queries[:: max(1, len(queries) // MOST)][:MOST]
    if len(some) < LEAST or not len(index):
        return False
    bits, rng = unpack(some, index.n_bits), np.random.default_rng(0)
    shuffled = [pack(bits[:, rng.permutation(index.n_bits)]) for _ in range(SHUFFLES)]
    chance = float(np.mean([_nearest(index, codes) for codes in shuffled]))
    return chance >= ROOM and _nearest(index, some) > NEAR * chance


def _nearest(index: Nearest, queries: Packed) -> float:
    """The mean distance of the nearest code."""
    distances, ids = index.search(queries, 1)
    there = ids >= 0  # an approximate index may find none
    return float(distances[there].mean()) if there.any() else 0.0
