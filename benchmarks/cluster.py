"""Training on a Dask cluster against the plain estimator: quality, traffic, overhead, a cost model.

python -m benchmarks cluster [--subjects NAME ...] [--results FILE] [--tables] [--small]
python -m benchmarks cluster --digits N

partitions  CIFAR's GIST features in 1 to 16 partitions: L(h), precision, seconds
functions   a quarter of them, for kernels, the network and refinement
traffic     bytes against the number of points, and against that of bits
overhead    100,000 points of infinite MNIST: the estimator, and one partition on one worker
processes   one worker process against two, on the same two partitions
separable   images of MNIST, so few that their codes are nearly separable, on two worker processes
rounds      seconds of the client in a round, in which 1 to 32 partitions agree on a sum

What was measured stands in a file of JSON lines, docs/results/cluster.jsonl, and is not measured
again: a run that was stopped goes on. `--digits` learns N points of infinite MNIST. `--tables`
writes docs/tables/cluster-*.md out of the file, among them what a model of the cost (seconds per
point, bytes, latency) says of up to 128 workers.
"""

import argparse
import resource
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray

from auxhash import MACHash
from auxhash.compute import threads
from auxhash.compute.cluster import Cluster
from auxhash.compute.peers import peers
from auxhash.compute.random import generator
from auxhash.compute.words import count
from auxhash.dask import DaskMACHash, infinite_mnist
from auxhash.dask.rounds import Rounds
from auxhash.experiments import datasets
from auxhash.experiments.datasets import infinite_mnist as digits
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.learn.hasher import Hasher
from auxhash.learn.training.run import N_GENERATORS
from auxhash.mac import affinity
from auxhash.mac.zstep import Problem
from benchmarks.records import RESULTS, Record, append, drop_cut_line, markdown, read, write_tables

FILE = RESULTS / "cluster.jsonl"
GIST: Record = {
    "data": "cifar10-gist",
    "points": 58_000,
    "bits": 32,
    "function": "linear",
    "kappa": [100, 500],
}
SUBJECTS = ("partitions", "functions", "traffic", "overhead", "processes", "separable", "rounds")
ITERATIONS = 8
SEEDS = (0, 1, 2)  # of the plain estimator: how much it varies by itself
PARTITIONS = (16, 4, 8, 2, 1)
TRAFFIC_POINTS = (2_000, 4_000, 8_000)
BITS = (8, 16, 64)
FUNCTIONS = (("linear", False), ("linear", True), ("rbf", False), ("network", False))
FEWER, MANY = 14_500, 100_000
IMAGES = (3_000, 6_000)
N_ROUNDS = 60
NUMBERS_PER_MESSAGE = (1, 10_272)  # one sum; and 32 bits of 321 features
ROUND_PARTITIONS = (1, 4, 16, 32)
WORKERS = (1, 4, 16, 64, 128)
POINT_FACTORS = (1, 10, 100, 1000)  # as many points as measured, for the model
NETWORK_BYTES_PER_SECOND = 1.25e9  # of the client's, for the model: ten gigabits
LATENCY_SECONDS = 1e-4  # of a message on it
KEY = (
    *("subject", "data", "points", "bits", "function", "kappa", "refine", "max_iter"),
    *("parts", "processes", "seed", "numbers"),
)


def runs() -> Iterator[Record]:
    """Runs to measure, by their keys; parts = 0 is the plain estimator."""
    common = {**GIST, "max_iter": ITERATIONS, "processes": 0, "seed": 0}
    for refine in (False, True):
        for parts in (0, *PARTITIONS):
            yield common | {"subject": "partitions", "refine": refine, "parts": parts}
    for seed in SEEDS[1:]:
        for refine in (False, True):
            run = {"subject": "partitions", "refine": refine, "parts": 0, "seed": seed}
            yield common | run
    fewer = common | {"points": FEWER}
    for function, refine in FUNCTIONS:
        for parts in (0, 4, 16):
            run = {"subject": "functions", "function": function, "refine": refine, "parts": parts}
            yield fewer | run
    brief = common | {"subject": "traffic", "refine": False, "parts": 2, "max_iter": 8}
    brief["kappa"] = [20, 100]
    for points in TRAFFIC_POINTS:
        yield brief | {"points": points}
    for bits in BITS:
        yield brief | {"points": TRAFFIC_POINTS[0], "bits": bits}
    many = {"data": "infinite-mnist", "points": MANY, "bits": 16, "kappa": [20, 100], "max_iter": 2}
    for parts in (0, 1, 4):
        yield common | many | {"subject": "overhead", "refine": False, "parts": parts}
    for processes in (1, 2):
        run = {"subject": "processes", "refine": False, "max_iter": 2, "parts": 2}
        yield fewer | run | {"processes": processes}
    images = common | {"subject": "separable", "data": "mnist", "bits": 24, "refine": False}
    for points in IMAGES:
        for parts in (0, 1, 2, 4):
            yield images | {"points": points, "parts": parts, "processes": 2 if parts else 0}
    for parts in ROUND_PARTITIONS:
        for numbers in NUMBERS_PER_MESSAGE:
            yield {"subject": "rounds", "parts": parts, "numbers": numbers, "processes": 2}


def few_runs() -> Iterator[Record]:
    """One of each kind, of few points and in this process."""
    few = {"data": "digits", "points": 300, "bits": 8, "kappa": [5, 20], "max_iter": 1}
    few |= {"function": "linear", "refine": False, "processes": 0, "seed": 0}
    for parts in (0, 2):
        yield few | {"subject": "partitions", "parts": parts}
    yield few | {"subject": "traffic", "parts": 2}
    for parts in (1, 2):
        for numbers in NUMBERS_PER_MESSAGE:
            yield {"subject": "rounds", "parts": parts, "numbers": numbers, "processes": 0}


@contextmanager
def cluster_of(processes: int) -> Iterator[Client]:
    """A client of so many processes, or of one worker in this one; each has one thread."""
    with (
        LocalCluster(
            n_workers=max(1, processes),
            threads_per_worker=1,
            processes=processes > 0,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


def points_of(run: Record) -> Dataset:
    """The data, its training points in random order."""
    few = {} if run["data"] == "digits" else {"n_train": None}
    if run["data"] == "infinite-mnist":
        few |= {"n_base": run["points"]}
    data = datasets.load(run["data"], **few)
    order = np.random.default_rng(0).permutation(len(data.train.X))[: run["points"]]
    return Dataset(data.name, data.train.take(order), data.base, data.query, data.protocol)


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
        if run["subject"] == "separable":
            settings["n_jobs"] = None  # as many threads as there are workers, one per core
        MACHash(**settings | {"max_iter": 1}).fit(X[:200], y[:200])  # compiled before it counts
        began = perf_counter(), process_time()
        plain = MACHash(**settings).fit(X, y)
        return {**_since(began), **_quality(run, plain, data)}
    size = -(-len(X) // run["parts"])
    cut = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
    with cluster_of(run["processes"]) as client:
        if run["processes"]:  # what a process imports and compiles belongs to no training
            n_few = 100 * max(run["parts"], run["processes"])  # every worker has some
            few = [part[:n_few].rechunk({0: 100}) for part in cut]
            DaskMACHash(**settings | {"max_iter": 1}).fit(*few)
        before = client.run(process_time)
        began = perf_counter(), process_time()
        model = DaskMACHash(**settings).fit(*cut)
        took = _since(began)
        after = client.run(process_time)
        local = model.to_local()
    steps = [step for step in model.history_ if step.mu < np.inf]
    travelled = model.traffic_[1 : len(steps)]  # without the start
    return {
        **took,
        "worker_cpu": max(after[worker] - before[worker] for worker in before),
        "all_rounds": sum(one.rounds for one in model.traffic_),
        "all_bytes": sum(one.sent + one.received for one in model.traffic_),
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
    rng = generator(run["seed"]).spawn(N_GENERATORS)[0]
    pairs = affinity.from_labels(data.train.y, *run["kappa"], rng, 1)
    return {
        "loss": Problem(pairs, "ksh", run["bits"]).loss(_codes(model, data)),
        "own_loss": model.loss_,
        "precision": model.score(data.query.X, data.query.y),
        "steps": len(steps),
        "z_seconds": float(np.mean([step.z_seconds for step in steps[1:]])),
        "h_seconds": float(np.mean([step.h_seconds for step in steps[1:]])),
    }


def _codes(model: Hasher, data: Dataset) -> Any:
    return model.transform(data.train.X)


def agree(run: Record, client: Client) -> Record:
    """Seconds of the client in a round: so many partitions agree on a sum of so many numbers.

    All messages pass through it. They are processor seconds: others may use this machine.
    """
    requests = [(run["numbers"], N_ROUNDS)] * run["parts"]
    none: list[tuple[Any, ...]] = [()] * run["parts"]
    began = process_time()
    Rounds(Cluster(client, 600.0), _talk, none, requests).run(lambda progress: False)
    return {"seconds": (process_time() - began) / N_ROUNDS}


def _talk(_threads: int | None, numbers: int, n_rounds: int) -> None:
    """The program of a partition that only talks."""
    for _ in range(n_rounds):
        peers().sum(np.ones(numbers))


def million(points: int) -> Record:
    """Infinite MNIST of so many points in 16 partitions, all made on the workers, two processes.

    One iteration of MAC, then refined: more of them hardly matter for what refinement ends at.
    """
    X, y = infinite_mnist(points, rows=-(-points // 16))
    queries = digits.held_out_images(n_jobs=1)
    asked = np.arange(2000)
    with cluster_of(2) as client:
        began = perf_counter()
        model = DaskMACHash(n_bits=32, max_iter=1, random_state=0).fit(X, y)
        seconds = perf_counter() - began
        peak = max(client.run(_peak).values())
        images = queries.images(asked).reshape(len(asked), -1)
        precision = model.score(images, queries.label(asked))
    return {
        "subject": "digits",
        "points": points,
        "seconds": seconds,
        "worker_bytes": peak,
        "travelled": sum(one.sent + one.received for one in model.traffic_),
        "two_step_loss": model.history_[0].loss,
        "loss": model.loss_,
        "precision": precision,
    }


def _peak() -> int:
    """Bytes of memory that a worker had at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks."""
    asked = _options(options)
    if asked.digits:
        append(asked.results, record := million(asked.digits))
        print(record)
        return
    if asked.tables:
        write_tables(tables(read(asked.results)))
        return
    drop_cut_line(asked.results)
    done = [key_of(record) for record in read(asked.results)]
    if small:
        for text in tables(list(measured(list(few_runs())))).values():
            print(text)
        return
    left = [run for run in runs() if run["subject"] in asked.subjects and key_of(run) not in done]
    for record in measured(left):
        append(asked.results, record)
        print(record, flush=True)


@threads.one_blas_thread()
def measured(planned: Sequence[Record]) -> Iterator[Record]:
    """The runs with what was measured."""
    kept: dict[tuple[str, int], Dataset] = {}
    for run in planned:
        if run["subject"] == "rounds":
            continue
        which = run["data"], run["points"]
        if which not in kept:
            kept = {which: points_of(run)}
        yield run | fit(run, kept[which])
    talks = [run for run in planned if run["subject"] == "rounds"]
    if talks:
        with cluster_of(talks[0]["processes"]) as client:
            for run in talks:
                yield run | agree(run, client)


def key_of(record: Record) -> Record:
    """Key of a run: the values that tell it apart."""
    return {name: record[name] for name in KEY if name in record}


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks cluster")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--digits", type=int, help="points of infinite MNIST, made on the workers")
    return parser.parse_args(options)


def tables(records: Sequence[Record]) -> dict[str, str]:
    """The tables of the documentation, by file name."""
    by_subject = {name: [one for one in records if one["subject"] == name] for name in SUBJECTS}
    texts = {
        f"cluster-{name}.md": _compared(by_subject[name])
        for name in ("partitions", "functions", "overhead")
        if by_subject[name]
    }
    texts |= {
        "cluster-traffic.md": _table(
            ("points", "bits", "rounds per iteration", "bytes per round and partition"),
            (
                (f"{one['points']:,}", one["bits"], f"{one['rounds']:.0f}", f"{_message(one):,.0f}")
                for one in sorted(by_subject["traffic"], key=lambda one: _size(one))
            ),
        ),
        "cluster-rounds.md": _table(
            ("partitions", "numbers", "milliseconds of the client"),
            (
                (one["parts"], f"{one['numbers']:,}", f"{1e3 * one['seconds']:.1f}")
                for one in by_subject["rounds"]
            ),
        ),
    }
    if by_subject["separable"]:
        texts["cluster-separable.md"] = _separable(by_subject["separable"])
    largest = [one for one in by_subject["partitions"] if one["parts"] and not one["refine"]]
    if largest and len(by_subject["rounds"]) > 3:
        cost = Cost.of(max(largest, key=lambda one: one["parts"]), by_subject["rounds"])
        texts["cluster-model.md"] = cost.table()
    return texts


def _size(one: Record) -> tuple[int, int]:
    return one["bits"], one["points"]


def _message(one: Record) -> float:
    """Bytes that a partition sends in a round, on average."""
    return float(one["sent"] / one["rounds"] / one["parts"])


def _compared(records: Sequence[Record]) -> str:
    """Runs beside the plain estimator of the same settings and seed."""
    rows = []
    for one in sorted(records, key=lambda one: (*_setting(one), one["seed"], one["parts"])):
        [plain] = [
            other
            for other in records
            if not other["parts"]
            and (*_setting(other), other["seed"]) == (*_setting(one), one["seed"])
        ] or [one]
        travelled = "" if not one["parts"] else f"{(one['sent'] + one['received']) / 1e6:.1f}"
        rows.append(
            (
                one["function"] + (", refined" if one["refine"] else ""),
                f"{one['points']:,}",
                one["parts"] or "one machine" + (f", seed {one['seed']}" if one["seed"] else ""),
                f"{one['loss']:,.0f}",
                f"{one['loss'] / plain['loss']:.4f}" if one is not plain else "",
                f"{one['precision']:.4f}",
                f"{one['cpu']:.0f}",
                f"{one['cpu'] / plain['cpu'] - 1:+.0%}" if one is not plain else "",
                travelled,
            )
        )
    return _table(
        (
            *("hash function", "points", "partitions", "L(h)", "ratio"),
            *("precision at 100", "processor seconds", "overhead", "MB per iteration"),
        ),
        rows,
    )


def _separable(records: Sequence[Record]) -> str:
    """Runs on workers beside one machine with as many threads as there are workers."""
    rows = []
    plain = {one["points"]: one for one in records if not one["parts"]}
    for one in sorted(records, key=lambda one: (one["points"], one["parts"])):
        alone = plain[one["points"]]
        rows.append(
            (
                f"{one['points']:,}",
                one["parts"] or "one machine",
                f"{one['loss']:,.0f}",
                f"{one['seconds']:.1f}",
                f"{one['seconds'] / alone['seconds']:.2f}" if one["parts"] else "",
                f"{one['worker_cpu']:.1f}" if one["parts"] else "",
                one.get("all_rounds", ""),
                f"{one['all_bytes'] / 1e6:.0f}" if one["parts"] else "",
            )
        )
    return _table(
        (
            *("points", "partitions", "L(h)", "seconds", "ratio"),
            *("processor seconds of the busiest worker", "rounds", "MB"),
        ),
        rows,
    )


def _setting(one: Record) -> tuple[Any, ...]:
    return one["points"], one["function"], one["refine"], one["max_iter"], one["bits"]


@dataclass(frozen=True)
class Cost:
    """A model of the seconds of an iteration: N points on W workers, in W partitions.

    point N / W + rounds (once + W (each + size byte)): the Z step and the sums are shared by the
    workers; all messages of a round pass through the client, one after the other. `once` holds the
    latency of the network, there and back, and `byte` its bandwidth.
    """

    points: int  # of the measured run
    point: float  # seconds of an iteration for one point, on one processor
    rounds: float
    size: float  # bytes of a message, one way
    once: float
    each: float
    byte: float

    @classmethod
    def of(cls, run: Record, talks: Sequence[Record]) -> "Cost":
        size = [8.0 * one["numbers"] for one in talks]
        parts = np.array([one["parts"] for one in talks], float)
        columns = np.column_stack([np.ones(len(talks)), parts, parts * size])
        took = np.array([one["seconds"] for one in talks])
        once, each, byte = np.maximum(_weighted(columns, took), 0)
        point = run["cpu"] / run["steps"] / run["points"]
        network = 2 * LATENCY_SECONDS, 2 / NETWORK_BYTES_PER_SECOND
        return cls(
            run["points"], point, run["rounds"], _message(run),
            float(once) + network[0], float(each), float(byte) + network[1],
        )  # fmt: skip

    def seconds(self, points: float, workers: int) -> float:
        round_of = self.once + workers * (self.each + self.size * self.byte)
        return self.point * points / workers + self.rounds * round_of

    def most(self, points: float) -> float:
        """Number of workers that is the fastest: more of them talk longer than they save."""
        talk = self.rounds * (self.each + self.size * self.byte)
        return float(np.sqrt(self.point * points / talk))

    def table(self) -> str:
        rows = []
        for times in POINT_FACTORS:
            n = times * self.points
            alone = self.point * n
            speedups = [f"{alone / self.seconds(n, w):.1f}" for w in WORKERS]
            rows.append((f"{n:,}", f"{alone:,.0f}", *speedups, f"{self.most(n):,.0f}"))
        heads = tuple(count(w, "worker") for w in WORKERS)
        text = _table(("points", "s, one worker", *heads, "fastest with"), rows)
        return text + (
            f"\n{1e6 * self.point:.0f} microseconds per point and iteration; {self.rounds:.0f} "
            f"rounds of {self.size:,.0f} bytes; a round takes {1e3 * self.once:.1f} ms, and "
            f"{1e3 * (self.each + self.size * self.byte):.2f} ms more per partition.\n"
        )


def _weighted(columns: NDArray[Any], took: NDArray[Any]) -> NDArray[Any]:
    """Least squares of relative errors: short rounds count as long ones do."""
    solution: NDArray[Any] = np.linalg.lstsq(
        columns / took[:, None], np.ones(len(took)), rcond=None
    )[0]
    return solution


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    return markdown(heads, rows, ["---", *["---:"] * (len(heads) - 1)])
