"""Hash functions of three kinds on four data sets: linear, kernels, and networks.

python -m benchmarks networks [--data-sets NAME ...] [--methods NAME ...] [--bits N ...] [--seeds N]
                              [--device cpu|cuda] [--results FILE] [--quick] [--tables]

MACHash with its defaults and each hash function; those with ", rank" are refined for the rank of
points of the same class. All have 32 bits and, on CIFAR's GIST features, the networks have 16, 48
and 64 as well; `--bits` asks for others everywhere. Each of the N seeds (3) has a split of its own.

What was measured stands in a file of JSON lines, docs/results/networks.jsonl, and is not measured
again: a run that was stopped goes on. `--quick` takes a tenth of the points and of the steps, into
a file of its own. `--tables` writes docs/tables/networks.md out of the file, and measures nothing.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from auxhash import MACHash, Refine
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.search import metrics
from benchmarks import peers
from benchmarks.records import RESULTS, Record, append, known, markdown, read, write_tables

FILE = RESULTS / "networks.jsonl"
SIZES = {  # training points, base and queries; None: all that are left
    "digits": (700, None, 297),
    "mnist": (4_000, 50_000, 2_000),
    "infinite-mnist": (4_000, 50_000, 2_000),
    "cifar10-gist": (10_000, None, 2_000),
}
METHODS = ("linear", "linear, rank", "rbf", "rbf, rank", "network", "network, rank")
BITS, MORE_BITS, MANY = 32, (16, 48, 64), "cifar10-gist"
RANKS = (100, 500, 1000, 2000)
QUICK_DIVISOR = 10  # a quick run has one of so many points, and of so many steps
KEY = ("data", "method", "bits", "seed", "train", "quick")


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or make a table of what it has."""
    if small:
        _run_small()
        return
    asked = _options(options)
    if asked.tables:
        write_tables({"networks.md": table(read(asked.results))})
        return
    done = known(asked.results, _key)
    for name in asked.data_sets:
        for seed in range(asked.seeds):
            data: Dataset | None = None
            for method, bits in cells(name, asked.methods, asked.bits):
                setup = {"data": name, "method": method, "bits": bits, "seed": seed}
                setup |= {"train": _sizes(name, asked.quick)[0], "quick": asked.quick}
                if _key(setup) in done:
                    continue
                if data is None:
                    data = _load(name, seed, asked.quick)
                model = hasher(method, bits, seed, len(data.train.X), asked.quick, asked.device)
                record = {**setup, "device": asked.device, **measure(data, model)}
                append(asked.results, record)
                print(line(record), flush=True)


def cells(
    name: str, methods: Sequence[str], bits: Sequence[int] | None
) -> Iterator[tuple[str, int]]:
    """Methods and numbers of bits to measure on a data set."""
    for method in methods:
        more = MORE_BITS if name == MANY and method.startswith("network") else ()
        for b in bits or (BITS, *more):
            yield method, b


def hasher(
    method: str, bits: int, seed: int, n: int, quick: bool = False, device: str = "cpu"
) -> MACHash:
    """The estimator of a method, for n training points."""
    kind, _, objective = method.partition(", ")
    settings: dict[str, Any] = {"hash_function": kind, "random_state": seed}
    if device != "cpu":
        settings["device"] = device
    refine = Refine.for_network(n) if kind == "network" else Refine(keep="refined")
    if objective:
        refine = replace(refine, objective=objective)
    if quick:
        refine = replace(refine, n_steps=refine.n_steps // QUICK_DIVISOR)
    if objective or quick:
        settings["refine"] = refine
    return MACHash(bits, **settings)


def measure(data: Dataset, model: MACHash) -> Record:
    """Train, encode, and measure."""
    began = perf_counter()
    model.fit(data.train.X, data.train.y)
    trained = perf_counter()
    base, query = model.encode(data.base.X), model.encode(data.query.X)
    encoded = perf_counter()
    codes = query, base, data.query.y, data.base.y
    ranks = [k for k in RANKS if k <= len(base)]
    return {
        "precision": [metrics.precision_at_k(*codes, k=k) for k in ranks],
        "map": metrics.mean_average_precision(*codes),
        "loss": model.loss_,
        "seconds": trained - began,
        "encode_us": 1e6 * (encoded - trained) / (len(base) + len(query)),
    }


def line(record: Record) -> str:
    precision = "  ".join(f"{value:.3f}" for value in record["precision"])
    text = f"{record['data']:14} {record['method']:13} {record['bits']:2} bits"
    text += f"  seed {record['seed']}  {precision}"
    return f"{text}  mAP {record['map']:.3f}  {record['seconds']:.0f} s"


def table(records: Sequence[Record]) -> str:
    """Markdown: the means over the seeds, one row for each data set, number of bits and method."""
    full = [record for record in records if not record["quick"]]
    heads = ["data", "points", "bits", "hash function", *(f"precision at {k:,}" for k in RANKS)]
    heads += ["mAP", "seconds", "seeds"]
    rows = []
    for name in SIZES:
        for bits in sorted({record["bits"] for record in full}):
            for method in METHODS:
                key = (name, bits, method)
                own = [r for r in full if (r["data"], r["bits"], r["method"]) == key]
                if own:
                    rows.append(_row(own))
    return markdown(heads, rows)


def _row(records: Sequence[Record]) -> list[str]:
    first = records[0]
    precision = np.mean([record["precision"] for record in records], axis=0)
    shown = [f"{value:.3f}" for value in precision] + [""] * (len(RANKS) - len(precision))
    means = [np.mean([record[name] for record in records]) for name in ("map", "seconds")]
    first_cells = [first["data"], f"{first['train']:,}", str(first["bits"]), first["method"]]
    return [*first_cells, *shown, f"{means[0]:.3f}", f"{means[1]:.0f}", str(len(records))]


def _sizes(name: str, quick: bool) -> tuple[int, int | None, int]:
    train, base, query = SIZES[name]
    if not quick or name == "digits":
        return train, base, query
    return train // QUICK_DIVISOR, 5_000, query // QUICK_DIVISOR


def _load(name: str, seed: int, quick: bool) -> Dataset:
    train, base, query = _sizes(name, quick)
    return datasets.load(name, n_train=train, n_base=base, n_query=query, seed=seed)


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in KEY)


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks networks")
    parser.add_argument("--data-sets", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--bits", type=int, nargs="+")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    parser.add_argument("--device", default="cpu", help="where MACHash trains: cpu, cuda")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tables", action="store_true")
    asked = parser.parse_args(options)
    if asked.results is None:
        asked.results = RESULTS / "networks-quick.jsonl" if asked.quick else FILE
    return asked


def _run_small() -> None:
    """Show that all of it runs, on made data."""
    X, y = peers.decaying(260, 12, 0)
    data = datasets.from_arrays(X[:220], X[220:], y=y[:220], query_y=y[220:], n_train=150)
    first = 0.0
    for method in METHODS:
        model = hasher(method, 8, 0, len(data.train.X), quick=True)
        model.set_params(n_similar=5, n_dissimilar=15, max_iter=2)
        setup = {"data": "made", "method": method, "bits": 8, "seed": 0}
        record = {**setup, **measure(data, model)}
        first = first or record["map"]
        print(line(record), f" ratio to linear {record['map'] / first:.2f}")
