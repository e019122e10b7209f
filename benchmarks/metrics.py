"""All curves from one histogram pass, beside a faiss search at k = 20,000 followed by NumPy."""

import argparse
from collections.abc import Sequence
from time import perf_counter

import faiss
import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash import metrics
from benchmarks.search import learned_codes
from benchmarks.timing import in_turn


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="metrics", description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--base", type=int, default=58_000)
    parser.add_argument("--k", type=int, default=20_000, help="of the other side")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args(arguments)
    faiss.omp_set_num_threads(given.jobs)
    rng = np.random.default_rng(0)
    codes = [learned_codes(n, given.bits, s) for s, n in enumerate((given.queries, given.base))]
    labels = [rng.integers(0, 10, n) for n in (given.queries, given.base)]
    flat = faiss.IndexBinaryFlat(given.bits)
    flat.add(codes[1])

    def ours(k: list[int] | None, ties: str = "expected") -> metrics.Evaluation:
        return metrics.evaluate(*codes, *labels, k=k, ties=ties, n_jobs=given.jobs)

    def one_pass() -> object:
        return metrics.distance_histogram(*codes, *labels, n_jobs=given.jobs)

    def theirs() -> float:
        ids = flat.search(codes[0], given.k)[1]
        hits = np.cumsum(labels[1][ids] == labels[0][:, None], axis=1)
        precision = (hits / np.arange(1, given.k + 1)).mean(axis=0)
        return float(precision[99])

    sides = {
        "histogram pass": one_pass,
        "evaluate: all k, all radii, mAP, bits": lambda: ours(None),
        "evaluate, mAP at two k as well": lambda: ours([100, given.k]),
        "evaluate, ties in index order": lambda: ours(None, "index"),
    }
    seconds = dict(zip(sides, in_turn(*sides.values(), runs=given.runs), strict=True))
    clock = perf_counter()
    theirs()  # once: it takes long enough
    other = perf_counter() - clock
    table = Table(
        "",
        "seconds",
        "times faster",
        title=f"{given.queries:,} queries, {given.base:,} base points, {given.bits} bits, "
        f"{given.jobs} threads, median of {given.runs}",
    )
    for name, taken in seconds.items():
        table.add_row(name, f"{taken:.3f}", f"{other / taken:.1f}")
    table.add_row(f"faiss, k = {given.k:,}, then NumPy: precision at k", f"{other:.3f}", "1")
    Console().print(table)


if __name__ == "__main__":
    main()
