"""Time, memory and precision of a training as it grows: with points, bits and neighbours.

python -m benchmarks scale --data infinite-mnist --points 10000 30000 100000 300000 1000000
python -m benchmarks scale --data cifar10-gist --points 58000 --bits 8 16 32 64 128 256
python -m benchmarks scale --data cifar10-sift --points 1000000
python -m benchmarks scale --points 30000 --neighbors 10/50 30/150 100/500
                           [--iterations N] [--jobs N] [--results FILE] [--tables]

Each training is one MACHash.fit, pairs and refinement included, in a process of its own, whose peak
memory is the system's count: it includes the part of a memory map that is in memory, and about
0.2 GB of Python and its libraries. The time does not count the compiling of kernels. Points are
the first ones of the base; those of cifar10-sift, which are ordered by picture, are spread over it.
Similar are points of the same class, or, of cifar10-sift, nearest neighbours, which are found
within the time. Precision is that of 2,000 queries among 50,000 base points: the share of the same
class, or of the 100 nearest, among the first 100. What was measured stands in a file of JSON lines,
docs/results/scale.jsonl, and is not measured again: the sizes can be run in pieces. `--tables`
shows what the file has, and writes docs/tables/scale.md; of another file, a table beside it.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash import MACHash
from auxhash.compute import clock
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset, Points, ground_truth
from auxhash.mac import affinity
from auxhash.search import metrics
from benchmarks import peers, speed
from benchmarks.records import RESULTS, TABLES, Record, append, known, markdown, parsed, read

FILE = RESULTS / "scale.jsonl"
POINTS, BITS, NEIGHBORS = (10_000, 30_000, 100_000), (32,), ("100/500",)
SETS = ("infinite-mnist", "cifar10-gist", "cifar10-sift", "made")
BASE, QUERIES, RANK = 50_000, 2_000, 100
SECONDS = ("seconds", "graph_seconds", "z_seconds", "h_seconds", "refine_seconds")
VARYING = ("points", "bits", "neighbors")


@dataclass(frozen=True)
class Cell:
    """One training."""

    data: str
    points: int
    bits: int
    neighbors: str  # kappa+/kappa-
    iterations: int = 50
    seed: int = 0
    jobs: int | None = None

    @property
    def name(self) -> tuple[Any, ...]:
        return tuple(asdict(self).values())


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, and show all that it has."""
    asked = _options(options)
    console = Console(width=130)
    if small:
        cells = [Cell("made", n, 8, "5/15", 2) for n in (150, 300, 600)]
        records = [{**asdict(cell), **measured(cell)} for cell in cells]
    elif asked.one:
        print(json.dumps(measured(Cell(**json.loads(asked.one)))))
        return
    else:
        if not asked.tables:
            measure(asked, console)
        records = read(asked.results)
    series = all_series(records)
    for one in series:
        console.print(one.shown())
    if asked.tables:
        text = "\n".join(one.markdown() for one in series)
        table = asked.results.with_suffix(".md")
        stored = asked.results.resolve().parent == RESULTS.resolve()
        (TABLES / table.name if stored else table).write_text(text, "utf-8")


def measure(asked: argparse.Namespace, console: Console) -> None:
    """Run what is asked for and not yet known, smallest first, each in a process of its own."""
    measured = known(asked.results, lambda record: _cell(record).name)
    for points, bits, neighbors in product(asked.points, asked.bits, asked.neighbors):
        cell = Cell(asked.data, points, bits, neighbors, asked.iterations, asked.seed, asked.jobs)
        if cell.name in measured:
            continue
        text = json.dumps(asdict(cell))
        command = [sys.executable, "-m", "benchmarks", "scale", "--one", text]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the training of {text} failed with exit status {done.returncode}")
        record = {**asdict(cell), **json.loads(done.stdout.splitlines()[-1]), **where()}
        append(asked.results, record)
        console.print(_line(record))


def where() -> Record:
    """The commit and the machine of a measurement."""
    is_ = speed.machine()
    return {"commit": speed.commit(), "machine": speed.slug(is_), "load": is_["load"]}


def measured(cell: Cell) -> Record:
    """Seconds, peak memory and precision of one training, in this process."""
    data = loaded(cell.data, cell.points)
    similar, dissimilar = map(int, cell.neighbors.split("/"))
    model = MACHash(
        cell.bits,
        n_similar=similar,
        n_dissimilar=dissimilar,
        max_iter=cell.iterations,
        random_state=cell.seed,
        n_jobs=cell.jobs,
    )
    began, near = clock.seconds(), None
    if data.train.y is None:
        near = affinity.from_neighbors(data.train.X, similar, dissimilar, random_state=cell.seed)
    pairing = clock.seconds() - began
    model.fit(data.train.X, data.train.y, near)
    seconds = clock.seconds() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mac = [step for step in model.history_ if step.mu < math.inf]
    began = clock.seconds()
    base, query = (model.encode(part.X) for part in (data.base, data.query))
    encoding = clock.seconds() - began
    rank = min(RANK, len(base))
    truth = data.query.y, data.base.y
    precision = metrics.precision_at_k(query, base, *truth, rank, neighbors=data.query.neighbors)
    return {
        "seconds": seconds,
        "graph_seconds": pairing,
        "mac_iterations": len(mac),
        "z_seconds": sum(step.z_seconds for step in mac),
        "h_seconds": sum(step.h_seconds for step in mac),
        "refine_seconds": sum(step.seconds for step in model.history_[len(mac) :]),
        "peak_bytes": peak * (1 if sys.platform == "darwin" else 1024),
        "affinity_bytes": model.affinity_.nbytes,
        "pairs": len(model.affinity_),
        "encoding_us": 1e6 * encoding / (len(base) + len(query)),
        "loss_per_weight": model.loss_ / model.affinity_.total_weight(),
        "precision": precision,
    }


def loaded(name: str, n: int) -> Dataset:
    """The data set, with n base points to learn from; no copy of them is made."""
    if name == "made":
        X, y = peers.decaying(n + 200, 12, 0)
        base, query = Points(X[:n], y[:n]), Points(X[n:], y[n:])
        return Dataset("made", base, base, query, "made data")
    if name == "cifar10-sift":
        full = datasets.load(name, n_train=1_000, n_query=QUERIES, n_neighbors=0)
        train, base = (Points(full.base.X[:: len(full.base) // k][:k]) for k in (n, BASE))
        near = ground_truth(base.X, full.query.X, RANK)
        return Dataset(name, train, base, Points(full.query.X, neighbors=near), full.protocol)
    sizes = {"n_base": max(n, 1_000_000)} if name == "infinite-mnist" else {}
    full = datasets.load(name, n_train=1_000, n_query=QUERIES, **sizes)
    if n > len(full.base):
        raise SystemExit(f"{name} has {len(full.base)} points to learn from, not {n}")
    assert full.base.y is not None
    train = Points(full.base.X[:n], full.base.y[:n])
    base = Points(full.base.X[:BASE], full.base.y[:BASE])
    return Dataset(name, train, base, full.query, full.protocol)


class Series(NamedTuple):
    """Trainings that differ in one respect, as a table."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    caption: str

    def shown(self) -> Table:
        table = Table(*self.heads, title=self.title, caption=self.caption)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        text = markdown(self.heads, self.rows, ["---:"] * len(self.heads))
        return f"{self.title}:\n\n{text}\n{self.caption}\n"


def all_series(records: Sequence[Record]) -> list[Series]:
    """One for each set of records that differ in one respect, with its exponents.

    A record that differs from no other has one of its own.
    """
    every: list[Series] = []
    alone: dict[str, Record] = {_line(record): record for record in records}
    for varied in VARYING:
        fixed = [name for name in asdict(Cell("", 0, 0, "")) if name != varied]

        def key(record: Record, fixed: Sequence[str] = fixed) -> str:
            values = ((name, record[name]) for name in fixed if record[name] is not None)
            return ", ".join(f"{name} {value}" for name, value in values)

        for title, own in groupby(sorted(records, key=key), key):
            rows = sorted(own, key=lambda record: _size(record, varied))
            if len(rows) > 1:
                every.append(_series(title, varied, rows))
                for row in rows:
                    alone.pop(_line(row), None)
    for record in alone.values():
        every.append(_series(record["data"], VARYING[0], [record]))
    return every


def _series(title: str, varied: str, rows: Sequence[Record]) -> Series:
    first = rows[0]
    cells = []
    for row in rows:
        grown = _size(row, varied) / _size(first, varied)
        cells.append(
            (
                f"{row[varied]:,}" if isinstance(row[varied], int) else row[varied],
                *(f"{row.get(name, 0.0):.1f}" for name in SECONDS),
                f"{row['seconds'] / first['seconds'] / grown:.2f}",  # of the time to linear growth
                f"{row['peak_bytes'] / 1e9:.2f}",
                f"{row['affinity_bytes'] / row['pairs']:.1f}",
                f"{row['encoding_us']:.2f}",
                f"{row['precision']:.3f}",
            )
        )
    heads = varied, "s", "neighbours", "Z step", "h step", "refining", "ratio", "peak GB"
    heads = *heads, "bytes/pair", "us to encode", f"precision at {RANK}"
    caption = ""
    if len(rows) > 1:
        exponents = (exponent(rows, varied, name) for name in ("seconds", "peak_bytes"))
        time, memory = (f"{value:.2f}" for value in exponents)
        caption = f"fitted exponents: time {time}, memory {memory}"
    return Series(title, heads, cells, caption)


def exponent(rows: Sequence[Record], varied: str, name: str) -> float:
    """p of the fit name ~ size^p, by least squares of the logarithms."""
    size = np.log([_size(row, varied) for row in rows])
    return float(np.polyfit(size, np.log([row[name] for row in rows]), 1)[0])


def _size(record: Record, varied: str) -> int:
    """The varied value as a number: of neighbours, all that a point draws."""
    value = record[varied]
    return sum(map(int, value.split("/"))) if isinstance(value, str) else int(value)


def _cell(record: Record) -> Cell:
    return Cell(**{name: record[name] for name in asdict(Cell("", 0, 0, ""))})


def _line(record: Record) -> str:
    return (
        f"{record['data']}, {record['points']:,} points, {record['bits']} bits, "
        f"{record['neighbors']}: {record['seconds']:.1f} s, {record['peak_bytes'] / 1e9:.2f} GB, "
        f"precision {record['precision']:.3f}"
    )


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks scale")
    parser.add_argument("--data", choices=SETS, default=SETS[0])
    parser.add_argument("--points", type=int, nargs="+", default=list(POINTS))
    parser.add_argument("--bits", type=int, nargs="+", default=list(BITS))
    parser.add_argument("--neighbors", nargs="+", default=list(NEIGHBORS), metavar="K+/K-")
    parser.add_argument("--iterations", type=int, default=50, help="the most, of MAC")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parsed(parser, options, FILE)
