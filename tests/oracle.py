"""Plain definitions, straight from the formulas, for the fast code to be held against."""

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from auxhash.mac import affinity, losses
from auxhash.mac.affinity import Affinity


def similar_or_not(d: Any, y: Any, b: int) -> Any:
    """A user's own loss, of no special form."""
    return np.where(y > 0, np.sqrt(d / b), np.cos(3 * d / b) * np.abs(y))


ALL_LOSSES = {**losses.LOSSES, "own": similar_or_not}


def loss(Z: NDArray[Any], A: Affinity, name: str) -> float:
    """L(Z), one pair after another."""
    function = ALL_LOSSES[name]
    y = A.read_as(losses.reads(function))
    b = Z.shape[1]
    total = 0.0
    for p in range(len(A)):
        d = float((Z[A.i[p]] != Z[A.j[p]]).sum())
        total += A.weight[p] * float(function(np.array(d), np.array(y[p]), b))
    return total


# The losses as the paper writes them: of two codes z and w of -1 and +1, and y.
PAPER = {
    "ee": lambda z, w, y, lam: (  # eq. (2); y+ and y- are the positive and the negative part of y
        max(y, 0) * ((z - w) ** 2).sum() + lam * max(-y, 0) * np.exp(-((z - w) ** 2).sum())
    ),
    "ksh": lambda z, w, y: (z @ w - len(z) * y) ** 2,  # eq. (3)
    "bre": lambda z, w, y: (((z - w) ** 2).sum() / len(z) - y) ** 2,  # y = |x - x'|^2 / 2
    "esplh": lambda z, w, y: np.exp(-y * (z @ w) / len(z)),  # which has z'z for z'w, a slip
}


def penalized(
    Z: NDArray[Any], A: Affinity, name: str, H: NDArray[Any], mu: float, multipliers: Any = None
) -> float:
    """L_P(Z)."""
    gap = Z.astype(float) - H
    extra = 0.0 if multipliers is None else float((multipliers * gap).sum())
    return loss(Z, A, name) + mu * float((gap**2).sum()) + extra


def all_codes(n: int) -> NDArray[np.int8]:
    """Every vector of {-1,+1}^n, (2^n, n)."""
    return np.array(list(itertools.product([-1, 1], repeat=n)), np.int8)


def codes(rng: np.random.Generator, n: int, b: int) -> NDArray[np.int8]:
    return (2 * rng.integers(0, 2, (n, b)) - 1).astype(np.int8)


@st.composite
def affinities(draw: Any, most_points: int = 12) -> Affinity:
    """Small affinities of every kind: labels, signs, real similarities, distances."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, most_points))
    kind = draw(st.sampled_from(["labels", "signs", "real", "distance"]))
    if kind == "labels":
        y = rng.permutation(np.arange(n) % draw(st.integers(2, 3)))
        return affinity.from_labels(y, 2, 3, random_state=rng)
    count = draw(st.integers(1, 3 * n))
    i = rng.integers(0, n, count)
    j = (i + rng.integers(1, n, count)) % n
    if kind == "signs":
        values = rng.choice([-1.0, 1.0], count)
    elif kind == "real":
        values = rng.uniform(-1, 1, count)
    else:
        values = rng.uniform(0, 3, count)
    return affinity.from_pairs(i, j, values, n, "distance" if kind == "distance" else "similarity")


def uneven_pairs(n: int, count: int, real: bool, seed: int) -> Affinity:
    """Points with no partners to many; some pairs come several times, with a y each time."""
    rng = np.random.default_rng(seed)
    i, j = rng.geometric(3 / n, (2, count))
    i, j = (np.append(ends, ends[: count // 4]) for ends in (i, j))
    kept = (i != j) & (i < n) & (j < n)
    y: NDArray[Any] = rng.uniform(-1, 1, len(i)) if real else rng.choice([-1.0, 1.0], len(i))
    return affinity.from_pairs(i[kept], j[kept], y[kept], n)


def distances(queries: NDArray[np.uint8], base: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Hamming distances (n_queries, n_base) of packed codes, bit by bit."""
    a, b = (np.unpackbits(codes, axis=1).astype(int) for codes in (queries, base))
    return np.array([[(x != y).sum() for y in b] for x in a], np.int64).reshape(len(a), len(b))


def nearest(
    queries: NDArray[np.uint8], base: NDArray[np.uint8], k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distances and positions of the k nearest, equal distances by position."""
    every = distances(queries, base)
    order = np.argsort(every, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(every, order, axis=1), order


def precision(
    queries: NDArray[np.uint8], base: NDArray[np.uint8], relevant: NDArray[np.bool_], k: int
) -> float:
    """Precision at k: the mean over the queries, ties by their expected value."""
    shares = []
    for distance, good in zip(distances(queries, base), relevant, strict=True):
        last = np.sort(distance)[k - 1]
        nearer, tied = distance < last, distance == last
        shares.append((good[nearer].sum() + (k - nearer.sum()) * good[tied].mean()) / k)
    return float(np.mean(shares))
