"""bench: how fast learning, encoding, searching and measuring are on this machine."""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from auxhash.compute import checks
from auxhash.compute.words import count
from auxhash.learn.estimators import MACHash
from auxhash.search import metrics
from auxhash.search.index import HammingIndex

N_CLASSES = 10
N_FEATURES = 128
N_RUNS = 3
N_QUERIES = 200


def bench(n_points: int, n_codes: int, n_bits: int) -> list[dict[str, Any]]:
    """One row per job: what it is, how much, seconds (median of three runs), and a rate.

    The row on learning is the last step of one fit. Points are drawn around ten centres, codes at
    random. Compilation is not counted.
    """
    checks.integer("points", n_points, 10 * N_CLASSES)
    checks.integer("codes", n_codes, 1)
    checks.integer("bits", n_bits, 1)
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, n_points)
    X = rng.normal(size=(N_CLASSES, N_FEATURES))[y] + 2 * rng.normal(size=(n_points, N_FEATURES))
    # Without refinement, whose steps would be the last of the history.
    hasher = MACHash(n_bits=n_bits, max_iter=2, refine=None, random_state=0)
    few = clone(hasher).set_params(n_similar=1, n_dissimilar=1)
    few.fit(X[: 10 * N_CLASSES], y[: 10 * N_CLASSES])  # compiles
    hasher.fit(X, y)
    rows = [_row("learn, an iteration", count(n_points, "point"), hasher.history_[-1].seconds)]
    seconds = _median(lambda: hasher.encode(X))
    rows.append(_row("encode", count(n_points, "point"), seconds, n_points, "points"))
    base = rng.integers(0, 256, (n_codes, -(-n_bits // 8)), np.uint8)
    if n_bits % 8:
        base[:, -1] &= (1 << n_bits % 8) - 1
    queries = base[rng.integers(0, n_codes, N_QUERIES)]
    index = HammingIndex(n_bits).add(base)
    much = f"{count(N_QUERIES, 'query')}, {count(n_codes, 'code')} of {count(n_bits, 'bit')}"
    for k in (10, 1000):
        seconds = _median(partial(index.search, queries, k))
        rows.append(_row(f"search, {k} nearest", much, seconds, N_QUERIES, "queries"))
    labels = rng.integers(0, N_CLASSES, N_QUERIES), rng.integers(0, N_CLASSES, n_codes)
    seconds = _median(lambda: metrics.evaluate(queries, base, *labels, k=10))
    rows.append(_row("evaluate", much, seconds, N_QUERIES, "queries"))
    return rows


def _median(job: Callable[[], object]) -> float:
    job()  # compiles
    taken = []
    for _ in range(N_RUNS):
        clock = perf_counter()
        job()
        taken.append(perf_counter() - clock)
    return float(np.median(taken))


def _row(job: str, much: str, seconds: float, n: int = 1, unit: str = "") -> dict[str, Any]:
    rate = {"rate": n / seconds, "unit": f"{unit}/s"} if unit else {"rate": None, "unit": ""}
    return {"job": job, "of": much, "seconds": seconds, **rate}
