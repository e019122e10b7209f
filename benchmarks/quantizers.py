"""Quantisers of faiss: product quantisation, with and without OPQ's rotation, and RaBitQ.

Each is a function of data, bits, ranks and a seed. Parts of fewer bits than 8, for few training
points, are ranked by faiss alone, without regard to ties.
"""

from collections.abc import Sequence
from time import process_time
from typing import Any, NamedTuple

import faiss
import numpy as np

from auxhash.experiments import coders
from auxhash.experiments.datasets import Dataset
from auxhash.search.metrics.ranks import by_positions
from benchmarks import recall
from benchmarks.recall import Shares

FACTOR_BITS = 8 * coders.RABITQ_BYTES  # bits per vector that RaBitQ holds beside the signs


class Measured(NamedTuple):
    """Recall at the ranks, bytes per vector, and CPU seconds of the training."""

    shares: Shares
    bytes: int
    seconds: float


def product(
    data: Dataset, bits: int, ranks: Sequence[int], seed: int, part_bits: int = 8
) -> Measured:
    """Product quantisation; features are padded with zeros to parts of equal size."""
    if part_bits != 8:
        return _by_faiss(data, f"PQ{bits // part_bits}x{part_bits}", ranks)
    return _coded(coders.PQ(bits // 8, seed), data, ranks)


def rotated(
    data: Dataset, bits: int, ranks: Sequence[int], seed: int, part_bits: int = 8
) -> Measured:
    """Product quantisation after the rotation of optimised product quantisation (OPQ)."""
    if part_bits != 8:
        parts = bits // part_bits
        return _by_faiss(data, f"OPQ{parts},PQ{parts}x{part_bits}", ranks)
    return _coded(coders.OPQ(bits // 8, seed), data, ranks)


def rabitq(data: Dataset, bits: int, ranks: Sequence[int], seed: int) -> Measured:
    """RaBitQ in `bits` in all: signs of all features, rotated at random, or of fewer after PCA."""
    return _coded(coders.RaBitQ(-(-bits // 8), seed), data, ranks)


def _coded(coder: Any, data: Dataset, ranks: Sequence[int]) -> Measured:
    began = process_time()
    coder.fit(data.train.X)
    seconds = process_time() - began
    codes = coder.encode(data.base.X)
    [ranking] = coder.rankings(data.query.X, codes)
    return Measured(recall.at(ranking.ranks(data.query.neighbors), ranks), codes.shape[1], seconds)


def _by_faiss(data: Dataset, factory: str, ranks: Sequence[int]) -> Measured:
    train, base, query = (
        np.ascontiguousarray(part.X, np.float32) for part in (data.train, data.base, data.query)
    )
    index = faiss.index_factory(train.shape[1], factory)
    began = process_time()
    index.train(train)
    seconds = process_time() - began
    index.add(base)
    positions = index.search(query, min(max(ranks), len(base)))[1]
    assert data.query.neighbors is not None
    shares = recall.at(by_positions(positions, data.query.neighbors), ranks)
    return Measured(shares, int(index.sa_code_size()), seconds)
