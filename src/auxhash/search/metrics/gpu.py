"""Counts of `tally`, computed on a GPU."""

from pathlib import Path

import numpy as np

from auxhash.codes import Packed, to_words
from auxhash.compute.arrays import AnyArray
from auxhash.compute.device import Device
from auxhash.search.metrics.truth import Counts, Truth

KERNELS = str(Path(__file__).with_name("tally.cu"))
MAX_GPU_BITS = 511  # as in tally.cu
QUERIES_PER_CALL = 4096
BLOCKS_PER_QUERY = 16


def refusal(n_bits: int, ties: str) -> str:
    """Return the reason why these codes cannot be counted on a GPU, or "" if they can."""
    if ties == "index":
        return 'ties="index" is for device="cpu": a GPU counts ties by expectation'
    if n_bits <= MAX_GPU_BITS:
        return ""
    return f'on a GPU codes have at most {MAX_GPU_BITS} bits, got {n_bits}: count on device="cpu"'


def bytes_of(base: Packed) -> int:
    """Return about how many bytes of a GPU's memory it takes to count among these codes."""
    return 2 * 8 * len(base) * -(-int(base.shape[1]) // 8)


def counts(
    device: Device, query: Packed, base: Packed, truth: Truth, n_bits: int
) -> tuple[Counts, Counts]:
    """Return points and relevant points (n_queries, n_bits + 1) at each distance of a query."""
    words = to_words(base)
    device.check_room(bytes_of(base), f"counting {len(base):,} codes")
    base_words, kernels = device.put(words), device.kernels(KERNELS)
    has_labels = truth.neighbors is None
    labels = device.put(_words(truth.base)) if has_labels else device.zeros(len(base), np.uint64)
    n_sets = labels.shape[1] if labels.ndim == 2 else 0
    parts = []
    for start in range(0, len(query), QUERIES_PER_CALL):
        rows = slice(start, min(start + QUERIES_PER_CALL, len(query)))
        queries = device.put(to_words(query[rows]))
        n, codes = len(queries), (base_words, len(base), queries, words.shape[1])
        points, hits = (device.zeros((n, n_bits + 1), np.uint64) for _ in range(2))
        # Where relevant points are listed, these labels match none.
        own = device.put(_words(truth.query[rows]) if has_labels else np.ones(n, np.uint64))
        by_label = BLOCKS_PER_QUERY, labels, own, n_sets, points, hits, n_bits + 1
        kernels("by_label", n * BLOCKS_PER_QUERY, *codes, *by_label)
        if truth.neighbors is not None:
            listed = device.put(np.ascontiguousarray(truth.neighbors[rows], np.int64))
            by_list = listed, listed.shape[1], hits, n_bits + 1
            kernels("by_list", n, *codes, *by_list)
        parts.append([device.fetch(each).astype(np.int64) for each in (points, hits)])
    points, hits = (np.concatenate(part) for part in zip(*parts, strict=True))
    return points, hits


def _words(labels: AnyArray) -> AnyArray:
    """Return labels (n,), or sets of labels (n, words), as 64-bit words."""
    return labels.astype(np.uint64)
