"""Random draws of similar and dissimilar points, for each point of a set."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.kernels import kernel
from auxhash.compute.random import sample

DrawnTable = NDArray[np.int32]  # (n, k): the points that each point drew, padded with -1

POINTS_PER_TASK = 1024  # points per task of a thread
MAX_PAIRS = 2**31 - 1


@kernel
def without_itself(
    point: int, stream: int, listed: AnyArray, out: AnyArray, seed: int, taken: AnyArray
) -> None:
    """Put distinct points of a rising list, but for the point itself, into `out`."""
    own = np.searchsorted(listed, point)
    inside = own < len(listed) and listed[own] == point
    n_drawn = sample(len(listed) - inside, len(out), seed, stream, taken, out)
    for t in range(n_drawn):
        out[t] = listed[out[t] + (inside and out[t] >= own)]


@kernel
def by_class(
    start: int,
    stop: int,
    similar: AnyArray,
    dissimilar: AnyArray,
    order: AnyArray,
    groups: AnyArray,
    ends: AnyArray,
    seed: int,
) -> None:
    """Draw similar points from the same class, dissimilar ones from the others.

    `order` lists the points class by class; class c ends at ends[c].
    """
    n = len(order)
    taken = np.zeros(n, np.bool_)
    for point in range(start, stop):
        end = ends[groups[point]]
        begin = ends[groups[point] - 1] if groups[point] > 0 else 0
        near, far = similar[point], dissimilar[point]
        # Drawn from all but the last of the class, which replaces the point itself if drawn.
        n_drawn = sample(end - begin - 1, len(near), seed, 2 * point, taken, near)
        for t in range(n_drawn):
            other = order[begin + near[t]]
            near[t] = order[end - 1] if other == point else other
        n_drawn = sample(n - (end - begin), len(far), seed, 2 * point + 1, taken, far)
        for t in range(n_drawn):
            place = far[t]
            far[t] = order[place if place < begin else place + end - begin]


@kernel
def by_shared_label(
    start: int,
    stop: int,
    similar: AnyArray,
    dissimilar: AnyArray,
    bits: AnyArray,
    order: AnyArray,
    sets: AnyArray,
    seed: int,
) -> None:
    """Draw similar points that share a label, dissimilar ones that share none.

    `bits` holds each point's labels, packed; `order` lists the points by their set of labels, and
    sets[p] numbers that of point p. All points are looked through once for each set, not once for
    each point: start..stop are places in `order`.
    """
    n = len(bits)
    taken = np.zeros(n, np.bool_)
    sharing, others = np.empty(n, np.int32), np.empty(n, np.int32)
    n_sharing = n_others = 0
    known = -1
    for at in range(start, stop):
        point = order[at]
        if sets[point] != known:
            known = sets[point]
            n_sharing = n_others = 0
            for m in range(n):
                shared = False
                for w in range(bits.shape[1]):
                    shared |= (bits[point, w] & bits[m, w]) != 0
                if shared:
                    sharing[n_sharing] = m
                    n_sharing += 1
                else:
                    others[n_others] = m
                    n_others += 1
        without_itself(point, 2 * point, sharing[:n_sharing], similar[point], seed, taken)
        without_itself(point, 2 * point + 1, others[:n_others], dissimilar[point], seed, taken)


@kernel
def by_rank(
    start: int, stop: int, similar: AnyArray, dissimilar: AnyArray, near: AnyArray, seed: int
) -> None:
    """Take the nearest neighbours as similar, and draw dissimilar points from the others.

    `near` lists each point's nearest neighbours in rising order of index.
    """
    n, k = near.shape
    taken = np.zeros(n, np.bool_)
    below = np.empty(k + 1, np.int64)  # how many others come before each point that is left out
    for point in range(start, stop):
        for t in range(k):  # a whole row would take Numba seconds more to compile
            similar[point, t] = near[point, t]
        own = np.searchsorted(near[point], point)
        for q in range(k + 1):
            out = near[point, q - (q > own)] if q != own else point
            below[q] = out - q
        far = dissimilar[point]
        n_drawn = sample(n - k - 1, len(far), seed, 2 * point + 1, taken, far)
        for t in range(n_drawn):
            far[t] += np.searchsorted(below, far[t], "right")


def draw(
    n: int, widths: tuple[int, int], kernel: Callable[..., None], *args: object
) -> tuple[DrawnTable, DrawnTable]:
    """Run a drawing kernel over all points: the similar table, then the dissimilar one.

    What a point draws takes time in proportion to what it draws, whatever the number of points.
    """
    if n * sum(widths) > MAX_PAIRS:
        raise ValueError(
            f"{n} points x {' + '.join(map(str, widths))} draws is more than {MAX_PAIRS} pairs; "
            "lower n_similar and n_dissimilar"
        )
    similar, dissimilar = (np.full((n, width), -1, np.int32) for width in widths)

    def part(rows: slice) -> None:
        kernel(rows.start, rows.stop, similar, dissimilar, *args)

    with threads.pool() as run:
        run(part, threads.chunks(n, POINTS_PER_TASK))
    return similar, dissimilar


def drawn(table: DrawnTable) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the draws n -> m of a table: all n, and all m."""
    n, k = table.shape
    source = np.repeat(np.arange(n, dtype=np.int32), k)
    target = table.ravel()
    full = target >= 0
    return (source, target) if full.all() else (source[full], target[full])
