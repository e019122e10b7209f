"""Time and memory of MACMap as the number of points grows, and what the joint map gains.

python -m benchmarks maps [--points N ...] [--mapping NAME] [--loss NAME] [--iterations N]
    [--jobs N] [--results FILE] [--tables]

Pixels of MNIST; each number of points in a process of its own: one fit, affinities included,
without the compiling of kernels. Times are of the processor, so that other programs do not count.
What was measured stands in a file of JSON lines, docs/results/maps.jsonl, and is not measured
again. `--tables` writes docs/tables/maps-points.md of it, and docs/tables/maps.md of the figure's
numbers in docs/results/maps.json.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from time import process_time

from auxhash import MACMap
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.figures.maps import LOSSES, WAYS
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables
from benchmarks.scale import where

FILE, FIGURE = RESULTS / "maps.jsonl", RESULTS / "maps.json"
KEY = ("points", "loss", "mapping", "max_iter", "n_jobs")


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks."""
    parser = argparse.ArgumentParser("python -m benchmarks maps")
    parser.add_argument("--points", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--mapping", default="linear")
    parser.add_argument("--loss", choices=tuple(LOSSES), default="tsne")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a case, measured in this process
    asked = parsed(parser, options, FILE)
    if small:
        data = datasets.load("digits", n_train=100)
        print(_line(measured(data, dict(zip(KEY, (100, "tsne", "linear", 50, 1), strict=True)))))
    elif asked.tables:
        write_tables(tables())
    elif asked.one:
        case = json.loads(asked.one)
        data = datasets.load("mnist", n_train=case["points"], n_query=100)
        warm = datasets.load("digits", n_train=300)
        MACMap(max_iter=0, loss=case["loss"], mapping=case["mapping"]).fit(warm.train.X)  # compiles
        print(json.dumps(measured(data, case)))
    else:
        done = known(asked.results, lambda record: tuple(record[name] for name in KEY))
        for points in asked.points:
            values = points, asked.loss, asked.mapping, asked.iterations, asked.jobs
            if values not in done:
                case = json.dumps(dict(zip(KEY, values, strict=True)))
                command = [sys.executable, "-m", "benchmarks", "maps", "--one", case]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                record = json.loads(run.stdout.splitlines()[-1]) | where()
                append(asked.results, record)
                print(_line(record), flush=True)


def measured(data: Dataset, case: Record) -> Record:
    """Processor time and peak memory of one fit, and E."""
    settings = {name: case[name] for name in KEY[1:]}
    began = process_time()
    learner = MACMap(random_state=0, **settings).fit(data.train.X)
    seconds = process_time() - began
    first = learner.history_[0]
    return case | {
        "seconds": seconds,
        "iterations": learner.n_iter_ - 1,
        "E_free": first.free_loss,
        "E_direct": first.loss,
        "E_joint": learner.loss_,
        "distance": learner.history_[-1].distance,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _line(record: Record) -> str:
    return (
        f"{record['points']:,} points: {record['seconds'] / 60:.1f} minutes of a processor, "
        f"{record['peak_bytes'] / 1e9:.1f} GB, {record['iterations']} iterations; "
        f"E(F(X)) {record['E_joint']:.3f}, fitted afterwards {record['E_direct']:.3f} "
        f"(ratio {record['E_joint'] / record['E_direct']:.2f})"
    )


def tables() -> dict[str, str]:
    """Markdown by file name: E and the share of the same class, and what a fit takes."""
    results = json.loads(FIGURE.read_text("utf-8"))["results"]
    return {"maps.md": _of_figure(results), "maps-points.md": _of_points(read(FILE))}


def _of_figure(results: Sequence[Record]) -> str:
    kinds = ("E", "same class")
    head = ["energy", "mapping", *(f"{kind}: {words}" for kind in kinds for words in WAYS.values())]
    rows = [
        [LOSSES[one["loss"]], one["mapping"]]
        + [f"{one[kind][way]:.3f}" for kind in kinds for way in WAYS]
        for one in results
    ]
    return markdown(head, rows)


def _of_points(records: Sequence[Record]) -> str:
    head = ["points", "energy", "mapping", "minutes of a processor", "GB", "iterations", "distance"]
    head += [f"E: {WAYS[way]}" for way in ("free", "direct", "joint")]
    rows = [
        [f"{one['points']:,}", LOSSES[one["loss"]], one["mapping"], f"{one['seconds'] / 60:.1f}"]
        + [f"{one['peak_bytes'] / 1e9:.1f}", one["iterations"], f"{one['distance']:.3f}"]
        + [f"{one[f'E_{way}']:.3f}" for way in ("free", "direct", "joint")]
        for one in records
    ]
    return markdown(head, rows)
