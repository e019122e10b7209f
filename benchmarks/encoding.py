"""Encoding beside the bare matrix product that it cannot do without."""

from collections.abc import Iterator

import numpy as np
from rich.console import Console

from auxhash import MACHash
from auxhash.compute import threads
from benchmarks import peers
from benchmarks.rows import Row, table, turns

BITS, FEATURES = 64, 320
CHUNK = 4096  # points that a task of the peer multiplies
AIM = 1 / 1.3


def rows(n: int, runs: int) -> Iterator[Row]:
    """`encode` of n points of single precision, beside X @ W in double precision on all cores."""
    X, y = peers.decaying(max(n, 400), FEATURES, 0)
    hasher = MACHash(BITS, max_iter=1, refine=None, n_similar=10, n_dissimilar=10, random_state=0)
    hasher.fit(X[:400], y[:400])
    X32, W = X.astype(np.float32), np.random.default_rng(0).normal(size=(FEATURES, BITS))
    X64 = X32.astype(np.float64)

    def product() -> None:
        with threads.pool(None) as run:
            run(lambda at: X64[at] @ W, threads.chunks(len(X64), CHUNK))

    ours, theirs = turns(lambda: hasher.encode(X32), product, runs=runs)
    what = f"encoding {len(X):,} points of {FEATURES} features, {BITS} bits"
    yield Row(what, ours, AIM, "the bare matrix product", theirs)


def main(small: bool = False) -> None:
    found = list(rows(500, 1) if small else rows(100_000, 7))
    Console(width=150).print(table(found))
