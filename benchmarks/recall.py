"""Recall of given neighbours in a ranking of all base points, ties by their exact expectation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import unpack
from auxhash.learn.hasher import Hasher
from auxhash.search import metrics

QUERIES_PER_CHUNK = 64  # ranked at once

Shares = NDArray[np.float64]


def by_hamming(query: Any, base: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank, by the Hamming distance of packed codes."""
    return np.asarray(metrics.recall_at_k(query, base, neighbors=near, k=list(ranks)))


def by_outputs(hasher: Hasher, queries: Any, base: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank, by the query's real outputs against the packed codes of the base.

    The score is the sum over the bits of output times code, which orders the points as
    `auxhash.index.rerank.by_outputs` does.
    """
    outputs = hasher.decision_function(queries)

    def decoded(codes: Any) -> Any:
        return unpack(codes, hasher.n_bits)

    return by_scores(outputs, base, decoded, near, ranks)


def by_distance(queries: Any, codes: Any, decoded: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank, by the distance of queries (q, D) to the vectors that codes stand for.

    |q - x|^2 = |q|^2 - 2 (q'x - |x|^2 / 2), so one more column makes it a score.
    """
    wider = np.hstack([queries, np.ones((len(queries), 1))])

    def columns(part: Any) -> Any:
        x = decoded(part)
        return np.hstack([x, -np.square(x).sum(axis=1, keepdims=True) / 2])

    return by_scores(wider, codes, columns, near, ranks)


def by_scores(queries: Any, codes: Any, decoded: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank, by the scores q'decoded(code), highest first.

    Each code is scored once, so that points of equal codes tie exactly. Of a neighbour with m
    points above it and t at its own score, a share (k - m) / t is expected among the first k.
    """
    single = np.ascontiguousarray(codes).view(f"V{codes.shape[1]}").ravel()
    _, first, inverse, counts = np.unique(
        single, return_index=True, return_inverse=True, return_counts=True
    )
    columns = np.asarray(decoded(codes[first]), np.float32).T
    weight = counts.astype(np.float32)  # sums stay exact below 2^24
    real = np.asarray(queries, np.float32)
    cuts = np.asarray(ranks)
    total = np.zeros(len(cuts))
    for start in range(0, len(real), QUERIES_PER_CHUNK):
        scores = real[start : start + QUERIES_PER_CHUNK] @ columns
        for row, own in zip(scores, near[start : start + QUERIES_PER_CHUNK], strict=True):
            mine = row[inverse[own]]
            above = np.array([(row > score).astype(np.float32) @ weight for score in mine])
            tied = np.array([(row == score).astype(np.float32) @ weight for score in mine])
            total += np.clip((cuts[:, None] - above) / tied, 0, 1).mean(axis=1)
    return total / len(real)


def by_ids(ids: Any, near: Any, ranks: Sequence[int]) -> Shares:
    """Recall at each rank of a ranking given as ids (q, k), nearest first."""
    hits = (ids[:, :, None] == near[:, None, :]).any(axis=2)
    return np.array([hits[:, :k].sum() / near.size for k in ranks])
