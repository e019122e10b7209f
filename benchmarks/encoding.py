"""Encoding beside the bare matrix product that it cannot do without, in the precision of X.

python -m benchmarks encoding [--small]: 100,000 points of 128, 320 and 784 features, with 32 and 64
bits, in single and double precision and as bytes, which the product takes in single precision.
"""

from collections.abc import Iterator

import numpy as np
from rich.console import Console

from auxhash import MACHash
from auxhash.compute import threads
from benchmarks import peers
from benchmarks.rows import Row, table, turns

BITS, FEATURES, TYPES = (32, 64), (128, 320, 784), ("float32", "float64", "uint8")
POINTS_PER_TASK = 4096  # of the peer
AIM_RATIO = 1 / 1.3


def rows(n: int, runs: int) -> Iterator[Row]:
    """The row that is stated."""
    yield row(n, 320, 64, "float32", runs)


def row(n: int, n_features: int, n_bits: int, dtype: str, runs: int) -> Row:
    """`encode` of n points beside X @ W, both on all cores."""
    X, y = peers.decaying(max(n, 400), n_features, 0)
    if dtype == "uint8":
        X = 255 * (X - X.min()) / (X.max() - X.min())
    X = X.astype(dtype)
    hasher = MACHash(n_bits, max_iter=1, refine=None, n_similar=10, n_dissimilar=10, random_state=0)
    hasher.fit(X[:400], y[:400])
    W = hasher.hash_function_.W[:-1].astype("float64" if dtype == "float64" else "float32")

    outputs = np.empty((len(X), n_bits), W.dtype)  # once: new memory would take it longer

    def multiply(at: slice) -> None:
        np.matmul(X[at].astype(W.dtype, copy=False), W, out=outputs[at])

    def product() -> None:
        with threads.pool() as run:
            run(multiply, threads.chunks(len(X), POINTS_PER_TASK))

    ours, theirs = turns(lambda: hasher.encode(X), product, runs=runs)
    title = f"encoding {len(X):,} points of {n_features} features, {n_bits} bits, {dtype}"
    return Row(title, ours, AIM_RATIO, "the bare matrix product", theirs)


def main(small: bool = False) -> None:
    n, runs = (500, 1) if small else (100_000, 7)
    kinds = [(D, b, dtype) for dtype in TYPES for D in FEATURES for b in BITS]
    rows = [row(n, *kind, runs) for kind in (kinds[:2] if small else kinds)]
    Console(width=150).print(table(rows))
