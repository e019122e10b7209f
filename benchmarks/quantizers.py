"""Quantisers of faiss: product quantisation, with and without OPQ's rotation, and RaBitQ.

Each is a function of data, bits, ranks and a seed.
"""

from collections.abc import Sequence
from time import process_time
from typing import Any, NamedTuple

import faiss
import numpy as np

from auxhash.experiments.datasets import Dataset
from benchmarks import recall
from benchmarks.recall import Shares

OPQ_POINTS = 65_536  # training points of OPQ, faiss's own limit
FACTORS = 64  # bits per vector that RaBitQ holds beside the signs


class Measured(NamedTuple):
    """Recall at the ranks, bytes per vector, and CPU seconds of the training."""

    shares: Shares
    bytes: int
    seconds: float


def product(
    data: Dataset, bits: int, ranks: Sequence[int], seed: int, part_bits: int = 8
) -> Measured:
    """Product quantisation; features are padded with zeros to parts of equal size."""
    m = bits // part_bits
    parts = [_padded(part.X, m) for part in _parts(data)]
    clock = process_time()
    pq = _quantizer(parts[0], m, part_bits, seed)
    return _searched(pq, parts, data, ranks, process_time() - clock)


def rotated(
    data: Dataset, bits: int, ranks: Sequence[int], seed: int, part_bits: int = 8
) -> Measured:
    """Product quantisation after the rotation of optimised product quantisation (OPQ)."""
    m = bits // part_bits
    parts = [_padded(part.X, m) for part in _parts(data)]
    clock = process_time()
    opq = faiss.OPQMatrix(parts[0].shape[1], m)
    inner = _quantizer(parts[0], m, part_bits, seed, trained=False)
    opq.pq, opq.max_train_points = inner, OPQ_POINTS
    opq.train(parts[0])
    parts = [opq.apply(part) for part in parts]
    pq = _quantizer(parts[0], m, part_bits, seed)
    return _searched(pq, parts, data, ranks, process_time() - clock)


def rabitq(data: Dataset, bits: int, ranks: Sequence[int], seed: int) -> Measured:
    """RaBitQ in `bits` in all: signs of all features, rotated at random, or of fewer after PCA."""
    train, base, query = (np.ascontiguousarray(part.X, np.float32) for part in _parts(data))
    d, kept = train.shape[1], bits - FACTORS
    index = faiss.index_factory(d, f"RR{d},RaBitQ" if kept == d else f"PCAR{kept},RaBitQ")
    clock = process_time()
    index.train(train)
    seconds = process_time() - clock
    index.add(base)
    ids = index.search(query, min(max(ranks), len(base)))[1]
    return Measured(recall.by_ids(ids, _near(data), ranks), int(index.sa_code_size()), seconds)


def _quantizer(train: Any, m: int, part_bits: int, seed: int, trained: bool = True) -> Any:
    pq = faiss.ProductQuantizer(train.shape[1], m, part_bits)
    pq.cp.seed = 1234 + seed  # faiss's own, for seed 0
    if trained:
        pq.train(train)
    return pq


def _searched(
    pq: Any, parts: Sequence[Any], data: Dataset, ranks: Sequence[int], seconds: float
) -> Measured:
    _, base, query = parts
    shares = recall.by_distance(query, pq.compute_codes(base), pq.decode, _near(data), ranks)
    return Measured(shares, int(pq.code_size), seconds)


def _parts(data: Dataset) -> tuple[Any, Any, Any]:
    return data.train, data.base, data.query


def _near(data: Dataset) -> Any:
    assert data.query.neighbors is not None
    return data.query.neighbors


def _padded(X: Any, m: int) -> Any:
    """X in float32, with columns of zeros up to a multiple of m."""
    missing = -X.shape[1] % m
    return np.ascontiguousarray(np.pad(np.asarray(X, np.float32), ((0, 0), (0, missing))))
