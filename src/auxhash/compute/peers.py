"""Processes that train together, each on its own part of the points.

All of them run the same program at the same time. Each works on its own points, and what they have
to agree on they get from the methods of `context.Peers`: a sum over all parts, the rows of all
parts. Such a call returns the same, to the last bit, in every process, so that all take the same
decisions.

`peers()` are those of the `context`. Outside of a cluster there are none (`ALONE`): then
every method returns what it was given, and the program is the one for a single machine.
"""

import numpy as np

from auxhash.compute import context
from auxhash.compute.arrays import Array, Numbers
from auxhash.compute.context import ALONE, Peers

N_DIGITS, BASE = 6, 1 << 11  # of the numbers that order positive doubles: 66 bits


def peers() -> Peers:
    """Return the peers of the training that the caller is part of."""
    return context.current().peers or ALONE


def share(k: int, n: int) -> int:
    """Return how many of the n points here to take, so that all parts together take k or all.

    Each part takes its share, rounded so that the shares add up.
    """
    sizes = peers().join(np.array([n]))
    before = np.concatenate([[0], np.cumsum(sizes)])
    place, total = peers().place, int(before[-1])
    k = min(k, total)
    return int(k * int(before[place + 1]) // total - k * int(before[place]) // total)


def quantile(values: Array, q: float) -> float:
    """Return the q-quantile of the positive values of all parts, as `np.quantile` has it.

    What travels does not depend on how many values there are: the two that it lies between are
    found digit by digit, most significant first. Positive doubles rise as the whole numbers do that
    their bits stand for.
    """
    if peers().n == 1:
        return float(np.quantile(values, q))
    rising = np.sort(values).view(np.int64)
    place = q * (int(peers().sum(len(values))) - 1)
    low = _of_rank(rising, int(place))
    high = _of_rank(rising, int(np.ceil(place)))
    return float(np.quantile(np.array([low, high]), place - int(place)))


def _of_rank(rising: Numbers, rank: int) -> float:
    """Return the value of this rank, from 0, in all parts; `rising` are the bits of those here."""
    known = 0  # the digits found so far
    for digit in reversed(range(N_DIGITS)):
        unit = BASE**digit
        edges = known + unit * np.arange(BASE + 1, dtype=object)
        bounds = np.minimum(edges, np.iinfo(np.int64).max).astype(np.int64)
        counts = peers().sum(np.diff(np.searchsorted(rising, bounds)))
        chosen = int(np.searchsorted(np.cumsum(counts), rank, side="right"))
        rank -= int(counts[:chosen].sum())
        known += unit * chosen
    return float(np.array([known], np.int64).view(np.float64)[0])
