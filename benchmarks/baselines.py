"""Training time and precision of all baselines, on synthetic data.

python -m benchmarks baselines
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from auxhash.learn import baselines
from auxhash.learn.hasher import Hasher
from auxhash.search import metrics

N_CLASSES = 10
N_QUERIES = 1000
SEED = 0
ALLOWED = 600  # seconds, for all of them
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in baselines.__all__},
    "AGH, two layers": ("AGH", {"layers": 2}),
    "BRE, supervised": ("BRE", {"supervised": True}),
    "FastHash, two-step": ("FastHash", {"stagewise": False}),
    "STH, supervised": ("STH", {"supervised": True}),
    "TSH, two-step": ("TSH", {"stagewise": False}),
}


def make_data(n: int, dim: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Overlapping classes, each of three clusters; the spectrum falls as that of real features."""
    lumps = rng.standard_normal((N_CLASSES, 3, dim))
    y, lump = rng.integers(0, N_CLASSES, n), rng.integers(0, 3, n)
    X = (lumps[y, lump] + 2 * rng.standard_normal((n, dim))) / np.sqrt(np.arange(1, dim + 1))
    return X, y


def hashers(n_bits: int) -> Iterator[tuple[str, Hasher]]:
    for label, (name, params) in VARIANTS.items():
        method = getattr(baselines, name)
        seed = {"random_state": SEED} if "random_state" in method().get_params() else {}
        yield label, method(n_bits=n_bits, **seed, **params)


def measure(n: int, dim: int, n_bits: int) -> Iterator[tuple[str, float, float, float]]:
    """Each method's name, seconds to train, points encoded per second, precision at 100."""
    X, y = make_data(n + N_QUERIES, dim, np.random.default_rng(SEED))
    train, labels, queries, wanted = X[:n], y[:n], X[n:], y[n:]
    for label, hasher in hashers(n_bits):
        clock = perf_counter()
        hasher.fit(train, labels)
        seconds = perf_counter() - clock
        clock = perf_counter()
        base = hasher.encode(train)
        speed = n / (perf_counter() - clock)
        k = min(100, n)
        precision = metrics.precision_at_k(hasher.encode(queries), base, wanted, labels, k)
        yield label, seconds, speed, precision


def main(small: bool = False) -> None:
    n, dim, n_bits = (150, 12, 8) if small else (10_000, 320, 32)
    console = Console()
    console.print(
        f"Made data: {n} training points, which are the base as well, {N_QUERIES} queries, {dim} "
        f"features, {N_CLASSES} classes; {n_bits} bits, seed {SEED}; ties by their expected value."
    )
    table = Table("method", "seconds", "share", "points encoded per second", "precision at 100")
    total = 0.0
    for label, seconds, speed, precision in measure(n, dim, n_bits):
        total += seconds
        share = f"{seconds / ALLOWED:.1%}"
        table.add_row(label, f"{seconds:.1f}", share, f"{speed:,.0f}", f"{precision:.3f}")
    console.print(table)
    console.print(
        f"All together: {total:.0f} seconds; ratio to the {ALLOWED} allowed {total / ALLOWED:.2f}."
    )
