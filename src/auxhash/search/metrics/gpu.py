"""The counts of `tally`, made on a GPU."""

from pathlib import Path

import numpy as np

from auxhash.codes import Packed, to_words
from auxhash.compute.arrays import AnyArray
from auxhash.compute.device import Device
from auxhash.search.metrics.truth import Counts, Truth

KERNELS = str(Path(__file__).with_name("tally.cu"))
MOST_COUNTED = 511  # as in tally.cu
QUERIES = 4096  # at a time
PARTS = 16  # blocks per query


def refusal(n_bits: int, ties: str) -> str:
    """Why these codes cannot be counted on a GPU; empty where they can."""
    if ties == "index":
        return 'ties="index" is for device="cpu": a GPU counts ties by expectation'
    if n_bits <= MOST_COUNTED:
        return ""
    return f'on a GPU codes have at most {MOST_COUNTED} bits, got {n_bits}: count on device="cpu"'


def bytes_of(base: Packed) -> int:
    """About what counting among these codes takes of a GPU's memory."""
    return 2 * 8 * len(base) * -(-int(base.shape[1]) // 8)


def counts(
    device: Device, query: Packed, base: Packed, truth: Truth, n_bits: int
) -> tuple[Counts, Counts]:
    """Points and relevant points (queries, n_bits + 1) at each distance from each query."""
    words = to_words(base)
    device.check_room(bytes_of(base), f"counting {len(base):,} codes")
    on_base, kernels = device.put(words), device.kernels(KERNELS)
    plain = truth.neighbors is None
    labels = device.put(_words(truth.base)) if plain else device.zeros(len(base), np.uint64)
    n_sets = labels.shape[1] if labels.ndim == 2 else 0
    parts = []
    for start in range(0, len(query), QUERIES):
        rows = slice(start, min(start + QUERIES, len(query)))
        asked = device.put(to_words(query[rows]))
        given = on_base, len(base), asked, words.shape[1]
        found, hits = (device.zeros((len(asked), n_bits + 1), np.uint64) for _ in range(2))
        # Where relevant points are listed, the labels here fit none.
        own = device.put(_words(truth.query[rows]) if plain else np.ones(len(asked), np.uint64))
        by_label = PARTS, labels, own, n_sets, found, hits, n_bits + 1
        kernels("by_label", len(asked) * PARTS, *given, *by_label)
        if truth.neighbors is not None:
            listed = device.put(np.ascontiguousarray(truth.neighbors[rows], np.int64))
            by_list = listed, listed.shape[1], hits, n_bits + 1
            kernels("by_list", len(asked), *given, *by_list)
        parts.append([device.fetch(each).astype(np.int64) for each in (found, hits)])
    found, hits = (np.concatenate(part) for part in zip(*parts, strict=True))
    return found, hits


def _words(labels: AnyArray) -> AnyArray:
    """Labels (n,), or sets of labels (n, words), as 64-bit words."""
    return labels.astype(np.uint64)
