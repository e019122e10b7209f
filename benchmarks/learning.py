"""Training times of NeighborHash, beside ITQ and beside the matrix products of its steps.

python -m benchmarks learning [--small] [--data glove-100]
python -m benchmarks learning --defaults

100,000 points, 64 bits, all cores, wall time. The floor of gradient steps are their products, made
here of numbers that mean nothing, on all threads of BLAS: of the points with the weights, of codes
with codes, and both ways back. Writes docs/tables/learning.md.

`--defaults` is the fit by default, with tables, by the number of features: a fifth of its steps is
made, and counted five times. Writes docs/tables/learning-defaults.md.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from auxhash import NeighborHash
from auxhash.learn import baselines
from auxhash.learn.neighborhash import PLANS
from auxhash.learn.smooth.rank import BATCH_SIZE, SAMPLE_SIZE
from benchmarks import peers
from benchmarks.neighbors import DATA, load
from benchmarks.records import markdown, write_tables
from benchmarks.rows import HEADINGS, Row, table, timed

N_BITS = 64
AIM_SECONDS = {"linear": 180.0, "network": 600.0}
N_STEPS = 20  # whose products are made, to say how long those of all take
N_POINTS = 100_000
AIM_SECONDS_BY_FEATURES = {100: 600.0, 768: 900.0, 1536: 900.0}  # of a fit by default
ONE_STEP_IN = 5  # one in so many of its steps is made

Products = Callable[[], object]


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure, print the table, and write it unless it is a small one."""
    parser = argparse.ArgumentParser("python -m benchmarks learning")
    parser.add_argument("--data", choices=DATA, default="glove-100")
    parser.add_argument("--defaults", action="store_true")
    asked = parser.parse_args(list(options))
    if asked.defaults:
        fits = list(defaults(small))
        Console(width=150).print(table(fits))
        if not small:
            write_tables(
                {"learning-defaults.md": markdown(HEADINGS, [row.cells() for row in fits])}
            )
        return
    if small:
        X, _ = peers.decaying(400, 24, 0)
        X, metric, name = X.astype(np.float32), DATA[asked.data].metric, "made data"
    else:
        X, metric, name = (
            load(asked.data, None, None, 0).train.X,
            DATA[asked.data].metric,
            asked.data,
        )
    measured = list(rows(X, metric, name, n_steps=20 if small else None))
    Console(width=150).print(table(measured))
    if not small:
        write_tables({"learning.md": markdown(HEADINGS, [row.cells() for row in measured])})


def rows(X: Any, metric: Any, name: str, n_steps: int | None) -> Iterator[Row]:
    """ITQ, and each hash function: in all, its neighbours, and its steps beside their products."""
    n, n_features = X.shape
    n_bits = min(N_BITS, n_features)
    problem = f"{n:,} x {n_features} ({name}), {n_bits} bits"
    yield Row(f"ITQ, {problem}", (timed(lambda: baselines.ITQ(n_bits, random_state=0).fit(X))[1],))
    for hash_function, aim in AIM_SECONDS.items():
        hasher = NeighborHash(n_bits, metric, hash_function, n_steps=n_steps, random_state=0)
        _, seconds = timed(lambda hasher=hasher: hasher.fit(X))
        yield Row(f"NeighborHash, {hash_function}, {problem}", (seconds,), aim)
        learnt = hasher.history_
        steps = sum(step.seconds for step in learnt)
        n_hidden = PLANS["default"].n_hidden if hash_function == "network" else 0
        floor = seconds_of_products(n, n_features, n_bits, n_hidden) * learnt[-1].step
        rest = f"the rest, {seconds - steps:.0f} s, is mainly neighbours"
        title = f"its {learnt[-1].step:,} steps; {rest}"
        yield Row(title, (steps,), peer="their matrix products alone", theirs=(floor,))


def defaults(small: bool = False) -> Iterator[Row]:
    """The fit by default for each number of features: as a whole, and its parts in words."""
    for n_features, aim in AIM_SECONDS_BY_FEATURES.items():
        X = peers.decaying(400 if small else N_POINTS, n_features, 0)[0].astype(np.float32)
        every = NeighborHash()._settings(N_POINTS, n_features).n_steps
        n_steps = 10 if small else every // ONE_STEP_IN
        hasher = NeighborHash(n_steps=n_steps, query_function="network", random_state=0)
        _, seconds = timed(lambda hasher=hasher, X=X: hasher.fit(X))
        steps = sum(step.seconds for step in hasher.history_)
        rest = seconds - steps
        made = f"{hasher.history_[-1].step:,} of {ONE_STEP_IN * hasher.history_[-1].step:,} steps"
        what = f"NeighborHash by default, {len(X):,} x {n_features} (made data), {N_BITS} bits"
        note = f"{made} took {steps:.0f} s, the rest {rest:.0f} s"
        yield Row(what, (rest + ONE_STEP_IN * steps,), aim, note=note)


def seconds_of_products(n: int, n_features: int, n_bits: int, n_hidden: int) -> float:
    """Seconds of the products of a step: forward, gradients of the weights and of the codes."""
    rng = np.random.default_rng(0)
    batch, sample = min(BATCH_SIZE, n), min(SAMPLE_SIZE, n)
    n_rows = 2 * batch + sample

    def random(*shape: int) -> Any:
        return rng.standard_normal(shape, np.float32)

    X, W, U = random(n_rows, n_features), random(n_features, n_bits), random(n_rows, n_bits)
    into, out = random(n_features, max(n_hidden, 1)), random(max(n_hidden, 1), n_bits)
    hidden = random(n_rows, max(n_hidden, 1))

    def once() -> None:
        X @ W, X.T @ U
        S = U[:batch] @ U[-sample:].T
        S @ U[-sample:], S.T @ U[:batch]
        if n_hidden:
            X @ into, hidden @ out
            hidden.T @ U, X.T @ (U @ out.T)

    once()
    began = perf_counter()
    for _ in range(N_STEPS):
        once()
    return (perf_counter() - began) / N_STEPS
