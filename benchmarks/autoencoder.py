"""Training time of the binary autoencoder as the points grow in number: docs/verdicts.md.

python -m benchmarks autoencoder [--points N ...] [--results FILE]

5,000 to 40,000 of CIFAR's GIST features, 16 bits, one thread, seconds of the processor, so that
other programs on the machine count little. What was measured stands in a file of JSON lines,
docs/results/autoencoder.jsonl, and is not measured again.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from auxhash.compute.arrays import Array
from auxhash.experiments import datasets
from auxhash.learn import baselines
from benchmarks import peers
from benchmarks.records import RESULTS, Record, append, known, read

FILE = RESULTS / "autoencoder.jsonl"
BITS = 16
WARM_UP_POINTS = 200


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks."""
    parser = argparse.ArgumentParser("python -m benchmarks autoencoder")
    parser.add_argument("--points", type=int, nargs="+", default=[5_000, 10_000, 20_000, 40_000])
    parser.add_argument("--results", type=Path, default=FILE)
    asked = parser.parse_args(list(options))
    if small:
        X = peers.decaying(400, 24, 0)[0]
        show([measured(X[:n]) for n in (200, 400)])
        return
    done = known(asked.results, lambda record: record["points"])
    for n in asked.points:
        if n not in done:
            X = datasets.load("cifar10-gist", n_train=n).train.X
            append(asked.results, measured(X))
    show(read(asked.results))


def measured(X: Array) -> Record:
    """Iterations, and seconds of the processor, of one training, after a short one to compile."""
    hasher = baselines.BinaryAutoencoder(BITS, random_state=0, n_jobs=1)
    hasher.fit(X[:WARM_UP_POINTS])
    began = time.process_time()
    hasher.fit(X)
    seconds = round(time.process_time() - began, 3)
    return {"points": len(X), "bits": BITS, "iterations": hasher.n_iter_, "seconds": seconds}


def show(records: Sequence[Record]) -> None:
    """Print seconds per iteration, and their ratio to those of the fewest points."""
    each = {r["points"]: r["seconds"] / r["iterations"] for r in records}
    first = each[min(each)]
    for n, seconds in sorted(each.items()):
        print(f"{n:,} points: {seconds:.3f} s per iteration, ratio {seconds / first:.2f}")
