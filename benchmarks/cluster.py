"""Training on a Dask cluster against the plain estimator: quality, traffic, overhead, a cost model.

python -m benchmarks cluster [--subjects NAME ...] [--results FILE] [--tables] [--small]

partitions  CIFAR's GIST features in 1 to 16 partitions: L(h), precision, seconds
functions   a quarter of them, for kernels, the network and refinement
traffic     bytes against the number of points, and against that of bits
overhead    100,000 points of infinite MNIST: the estimator, and one partition on one worker
processes   one worker process against two, on the same two partitions
rounds      seconds of a round: what 1 to 32 partitions take to agree on a sum of so many bytes

What was measured stands in a file of JSON lines, docs/results/cluster.jsonl, and is not measured
again: a run that was stopped goes on. `--tables` writes docs/tables/cluster-*.md out of it, among
them what a model of the cost (seconds per point, bytes, latency) says of 16, 64 and 128 workers.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from auxhash import MACHash, affinity, datasets
from auxhash.affinity.draws import generator
from auxhash.compute import threads
from auxhash.compute.peers import peers
from auxhash.dask import DaskMACHash
from auxhash.dask.cluster import Cluster
from auxhash.dask.rounds import Rounds
from auxhash.datasets.dataset import Dataset
from auxhash.hasher import Hasher
from auxhash.training.run import PARTS
from auxhash.zstep import Problem
from benchmarks.records import Record, append, drop_cut_line, read

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "results" / "cluster.jsonl"
TABLES = DOCS / "tables"
GIST: Record = {
    "data": "cifar10-gist",
    "points": 58_000,
    "bits": 32,
    "function": "linear",
    "kappa": [100, 500],
}
ITERATIONS = 8
SEEDS = (0, 1, 2)  # of the plain estimator: how much it varies by itself
PARTITIONS = (16, 4, 8, 2, 1)
SHARES = (7_250, 14_500, 29_000)
BITS = (8, 16, 64)
FUNCTIONS = (("linear", False), ("linear", True), ("rbf", False), ("network", False))
FEWER, MANY = 14_500, 100_000
TRIALS = 3  # of the rounds, of which the fastest counts
ROUNDS = 200
NUMBERS = (1, 10_272)  # of a message: one sum; and 32 bits of 321 features
WIDE = (1, 2, 4, 8, 16, 32)  # partitions of the rounds
WORKERS = (1, 4, 16, 64, 128)
TIMES = (1, 10, 100, 1000)  # as many points as measured, for the model
GIGABIT = 1.25e8  # bytes per second
KEY = (
    *("subject", "data", "points", "bits", "function", "kappa", "refine", "max_iter"),
    *("parts", "processes", "seed", "trial", "numbers"),
)


def runs(small: bool) -> Iterator[Record]:
    """All that is measured, by what tells it apart; parts = 0 is the plain estimator."""
    common = {**GIST, "max_iter": ITERATIONS, "processes": 1, "seed": 0, "trial": 0}
    partitions: Sequence[int] = PARTITIONS
    shares: Sequence[int] = SHARES
    many = {"data": "infinite-mnist", "points": MANY, "bits": 16, "kappa": [20, 100], "max_iter": 2}
    if small:
        common |= {"data": "digits", "points": 600, "bits": 8, "max_iter": 2, "kappa": [5, 20]}
        partitions, shares, many = (1, 2), (300, 600), {}
    for refine in (False, True):
        for parts in (0, *partitions):
            yield common | {"subject": "partitions", "refine": refine, "parts": parts}
    for seed in SEEDS[1:]:
        for refine in (False, True):
            told = {"subject": "partitions", "refine": refine, "parts": 0, "seed": seed}
            yield common | told
    for function, refine in FUNCTIONS:
        for parts in (0, *partitions[:2]):
            told = {"subject": "functions", "function": function, "refine": refine, "parts": parts}
            yield common | told | {"points": min(common["points"], FEWER)}
    brief = common | {"subject": "traffic", "refine": False, "parts": 2, "max_iter": 2}
    for points in shares:
        yield brief | {"points": points}
    for bits in BITS:
        yield brief | {"points": shares[0], "bits": bits}
    for parts in (0, 1, 4):
        yield common | many | {"subject": "overhead", "refine": False, "parts": parts}
    told = common | {"subject": "processes", "refine": False, "max_iter": 2, "parts": 2}
    for processes in (1, 2):
        yield told | {"processes": processes, "points": min(common["points"], FEWER)}
    for parts in WIDE[:2] if small else WIDE:
        for numbers in NUMBERS:
            yield {"subject": "rounds", "parts": parts, "numbers": numbers, "processes": 2}


@contextmanager
def cluster_of(processes: int, apart: bool) -> Iterator[Client]:
    """A client of so many workers of one thread; `apart` from this process or in it."""
    with (
        LocalCluster(
            n_workers=processes, threads_per_worker=1, processes=apart, dashboard_address=":0"
        ) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


def points_of(run: Record) -> Dataset:
    """The data, its training points in random order."""
    few = {} if run["data"] == "digits" else {"n_train": None}
    if run["data"] == "infinite-mnist":
        few |= {"n_base": run["points"]}
    found = datasets.load(run["data"], **few)
    order = np.random.default_rng(0).permutation(len(found.train.X))[: run["points"]]
    return Dataset(found.name, found.train.take(order), found.base, found.query, found.protocol)


def fit(run: Record, data: Dataset) -> Record:
    """Train as the run says; what it led to, and what it took."""
    X, y = data.train.X, data.train.y
    settings: dict[str, Any] = {
        "n_bits": run["bits"],
        "hash_function": run["function"],
        "max_iter": run["max_iter"],
        "refine": "auto" if run["refine"] else None,
        "n_similar": run["kappa"][0],
        "n_dissimilar": run["kappa"][1],
        "random_state": run["seed"],
        "n_jobs": 1,
    }
    if not run["parts"]:
        began = perf_counter(), process_time()
        plain = MACHash(**settings).fit(X, y)
        return {**_since(began), **_quality(run, plain, data)}
    size = -(-len(X) // run["parts"])
    cut = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
    with cluster_of(run["processes"], apart=run["subject"] == "processes"):
        began = perf_counter(), process_time()
        model = DaskMACHash(**settings).fit(*cut)
        took = _since(began)
        local = model.to_local()
    steps = [step for step in model.history_ if step.mu < np.inf]
    travelled = model.traffic_[1 : len(steps)]  # without the start
    return {
        **took,
        "rounds": sum(one.rounds for one in travelled) / len(travelled),
        "sent": sum(one.sent for one in travelled) / len(travelled),
        "received": sum(one.received for one in travelled) / len(travelled),
        **_quality(run, local, data),
    }


def _since(began: tuple[float, float]) -> Record:
    """Seconds by the clock, and of processors: others may use them as well."""
    return {"seconds": perf_counter() - began[0], "cpu": process_time() - began[1]}


def _quality(run: Record, model: Any, data: Dataset) -> Record:
    """L(h) on the pairs that one machine draws, precision, and seconds of a step of MAC."""
    steps = [step for step in model.history_ if step.mu < np.inf]
    rng = generator(run["seed"]).spawn(PARTS)[0]
    pairs = affinity.from_labels(data.train.y, *run["kappa"], rng, 1)
    return {
        "loss": Problem(pairs, "ksh", run["bits"], 1).loss(_codes(model, data)),
        "own_loss": model.loss_,
        "precision": model.score(data.query.X, data.query.y),
        "steps": len(steps),
        "z_seconds": float(np.mean([step.z_seconds for step in steps[1:]])),
        "h_seconds": float(np.mean([step.h_seconds for step in steps[1:]])),
    }


def _codes(model: Hasher, data: Dataset) -> Any:
    return model.transform(data.train.X)


def agree(run: Record) -> Record:
    """Seconds of a round in which so many partitions agree on a sum of so many numbers."""
    with cluster_of(run["processes"], apart=True) as client:
        given = [(run["numbers"], ROUNDS)] * run["parts"]
        none: list[tuple[Any, ...]] = [()] * run["parts"]
        rounds = Rounds(Cluster(client, 600.0), _talk, none, given)
        took = min(rounds.run(lambda said: False)[0] for _ in range(TRIALS))
    return {"seconds": took / ROUNDS}


def _talk(_threads: int | None, numbers: int, n_rounds: int) -> float:
    """The program of a partition that only talks; seconds that its rounds take."""
    told = np.ones(numbers)
    peers().sum(told)
    began = perf_counter()
    for _ in range(n_rounds):
        peers().sum(told)
    return perf_counter() - began


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks."""
    asked = _options(options)
    if asked.tables:
        for name, text in tables(read(asked.results)).items():
            (TABLES / name).write_text(text, "utf-8")
            print(f"wrote {TABLES / name}")
        return
    if small and asked.results == RESULTS:
        for run in runs(small):
            print(measured(run, {}))
        return
    drop_cut_line(asked.results)
    done = [told(record) for record in read(asked.results)]
    data: dict[tuple[str, int], Dataset] = {}
    for run in runs(small):
        if run["subject"] in asked.subjects and told(run) not in done:
            append(asked.results, record := measured(run, data))
            print(record, flush=True)


@threads.one_blas_thread()
def measured(run: Record, kept: dict[tuple[str, int], Dataset]) -> Record:
    """The run with what was measured; `kept` are the data of earlier ones."""
    if run["subject"] == "rounds":
        return run | agree(run)
    which = run["data"], run["points"]
    if which not in kept:
        kept.clear()
        kept[which] = points_of(run)
    return run | fit(run, kept[which])


def told(record: Record) -> Record:
    """What tells a run apart."""
    return {name: record[name] for name in KEY if name in record}


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks cluster")
    subjects = ("partitions", "functions", "traffic", "overhead", "processes", "rounds")
    parser.add_argument("--subjects", nargs="+", choices=subjects, default=list(subjects))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--tables", action="store_true")
    return parser.parse_args(options)


def tables(records: Sequence[Record]) -> dict[str, str]:
    return {}
