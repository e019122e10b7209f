"""Partitions, traffic and overhead of training on a Dask cluster, on this machine.

python -m benchmarks cluster [--small]

CIFAR's GIST features in 1, 2, 4, 8 and 16 partitions against the plain estimator (L(h), precision,
seconds, bytes per iteration), bytes against N and against b, one process against two, and from the
measured seconds per point, bytes and latency per round a model of 16, 64 and 128 workers.
"""

from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from auxhash import MACHash, datasets
from auxhash.dask import DaskMACHash

PARTITIONS = (1, 2, 4, 8, 16)
WORKERS = (1, 16, 64, 128)
BANDWIDTH = 1e9  # bytes per second of the client's network, for the model: ten gigabits
LATENCY = 1e-3  # seconds of a message on a network, for the model


def cut(X: NDArray[Any], y: NDArray[Any], n: int) -> tuple[Any, Any]:
    size = -(-len(X) // n)
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)


def table(title: str, *columns: str) -> Table:
    made = Table(title=title)
    for column in columns:
        made.add_column(column, justify="right")
    return made


def fitted(model: Any, *data: Any) -> tuple[Any, float]:
    began = perf_counter()
    return model.fit(*data), perf_counter() - began


def per_iteration(model: DaskMACHash) -> tuple[float, float]:
    """Rounds and bytes, both ways, of an iteration of MAC."""
    own = [
        one for one, step in zip(model.traffic_, model.history_, strict=True) if step.mu < np.inf
    ]
    rounds = float(np.mean([one.rounds for one in own]))
    return rounds, float(np.mean([one.sent + one.received for one in own]))


def predicted(seconds: float, rounds: float, n_bytes: float, n_parts: int) -> list[list[str]]:
    """Seconds of an iteration on so many workers, for the points of this run and for 1,000 times.

    The Z step and the sums are shared by the workers; a round costs a message each way, and the
    client takes and gives one message per worker.
    """
    rows = []
    for workers in WORKERS:
        travel = rounds * 2 * LATENCY + n_bytes / n_parts * workers / BANDWIDTH
        cells = [str(workers)]
        for times in (1, 1000):
            took = times * seconds / workers + travel
            alone = times * seconds + rounds * 2 * LATENCY + n_bytes / n_parts / BANDWIDTH
            cells += [f"{took:,.2f}", f"{alone / took:,.1f}"]
        rows.append(cells)
    return rows


def main(small: bool = False) -> None:
    console = Console()
    data = datasets.load("digits" if small else "cifar10-gist")
    X, y = data.train.X, data.train.y
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    kept: dict[str, Any] = {"n_bits": 16 if small else 32, "random_state": 0}
    if small:
        X, y = X[:600], y[:600]
        kept |= {"n_similar": 5, "n_dissimilar": 20, "max_iter": 3, "refine": None}
    partitions = (1, 2) if small else PARTITIONS
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        plain, seconds = fitted(MACHash(**kept, n_jobs=1), X, y)
        shown = table(
            f"{len(X):,} points, one worker of one thread",
            *("partitions", "L(h)", "ratio", "precision", "seconds", "overhead"),
            *("rounds per iteration", "bytes per iteration"),
        )
        score = plain.score(data.query.X, data.query.y)
        shown.add_row("MACHash", f"{plain.loss_:,.0f}", "", f"{score:.4f}", f"{seconds:.1f}")
        last: tuple[float, float, float] = (0.0, 0.0, 0.0)
        for n in partitions:
            model, took = fitted(DaskMACHash(**kept), *cut(X, y, n))
            rounds, n_bytes = per_iteration(model)
            score = model.score(data.query.X, data.query.y)
            shown.add_row(
                *(str(n), f"{model.loss_:,.0f}", f"{model.loss_ / plain.loss_:.4f}"),
                *(f"{score:.4f}", f"{took:.1f}", f"{took / seconds - 1:+.0%}"),
                *(f"{rounds:.0f}", f"{n_bytes:,.0f}"),
            )
            last = (took / len(model.history_), rounds, n_bytes)
        console.print(shown)
        grown = table("Bytes per round, two partitions", "points", "bits", "bytes")
        for share in (4, 2, 1):
            n = len(X) // share
            model, _ = fitted(DaskMACHash(**{**kept, "refine": None}), *cut(X[:n], y[:n], 2))
            rounds, n_bytes = per_iteration(model)
            grown.add_row(f"{n:,}", str(kept["n_bits"]), f"{n_bytes / rounds:,.0f}")
        for bits in (8, 32):
            few = {**kept, "refine": None, "n_bits": bits}
            model, _ = fitted(DaskMACHash(**few), *cut(X[:n], y[:n], 2))
            rounds, n_bytes = per_iteration(model)
            grown.add_row(f"{n:,}", str(bits), f"{n_bytes / rounds:,.0f}")
        console.print(grown)
    both = table("Processes of one thread each", "processes", "seconds")
    for processes in (1, 2):
        with (
            LocalCluster(
                n_workers=processes,
                threads_per_worker=1,
                processes=not small,
                dashboard_address=":0",
            ) as cluster,
            Client(cluster, direct_to_workers=True),
        ):
            _, took = fitted(DaskMACHash(**kept), *cut(X, y, 2))
            both.add_row(str(processes), f"{took:.1f}")
    console.print(both)
    model_of = table(
        "An iteration, as predicted",
        *("workers", f"s, {len(X):,} points", "speed-up", f"s, {1000 * len(X):,} points"),
        "speed-up",
    )
    for row in predicted(*last, partitions[-1]):
        model_of.add_row(*row)
    console.print(model_of)
