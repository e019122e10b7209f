"""Recall of given neighbours at several ranks, of any ranking that the package measures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.learn.hasher import Hasher
from auxhash.search.index import tables_from_outputs
from auxhash.search.metrics import ranks as ranking
from auxhash.search.metrics.ranks import NeighborRanks

Shares = NDArray[np.float64]


def by_hamming(query: Any, base: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank, by the Hamming distance of packed codes."""
    return at(ranking.by_hamming(query, base, near, 8 * base.shape[1]), ranks)


def by_outputs(hasher: Hasher, queries: Any, base: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank, by the query's real outputs against the packed codes of the base."""
    real = hasher.decision_function(queries)
    ranks_of_nearest = ranking.by_tables(lambda rows: tables_from_outputs(real[rows]), base, near)
    return at(ranks_of_nearest, ranks)


def at(ranks_of_nearest: NeighborRanks, ranks: Sequence[int]) -> Shares:
    """Mean over the queries at each rank."""
    return np.array([ranks_of_nearest.within(k).mean() for k in ranks])
