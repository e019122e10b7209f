"""All curves from one histogram pass, beside a faiss search at k = 20,000 followed by NumPy."""

from time import perf_counter

import faiss
import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash import metrics
from benchmarks.search import BITS, THREADS, learned_codes
from benchmarks.timing import in_turn


def main(small: bool = False) -> None:
    n_queries, n_base, deep, runs = (20, 300, 100, 1) if small else (2000, 58_000, 20_000, 7)
    faiss.omp_set_num_threads(THREADS)
    rng = np.random.default_rng(0)
    codes = [learned_codes(n, BITS, seed) for seed, n in enumerate((n_queries, n_base))]
    labels = [rng.integers(0, 10, n) for n in (n_queries, n_base)]
    flat = faiss.IndexBinaryFlat(BITS)
    flat.add(codes[1])

    def ours(k: list[int] | None, ties: str = "expected") -> metrics.Evaluation:
        return metrics.evaluate(*codes, *labels, k=k, ties=ties, n_jobs=THREADS)

    def one_pass() -> object:
        return metrics.distance_histogram(*codes, *labels, n_jobs=THREADS)

    def theirs() -> float:
        ids = flat.search(codes[0], deep)[1]
        hits = np.cumsum(labels[1][ids] == labels[0][:, None], axis=1)
        precision = (hits / np.arange(1, deep + 1)).mean(axis=0)
        return float(precision[99])

    sides = {
        "histogram pass": one_pass,
        "evaluate: all k, all radii, mAP, bits": lambda: ours(None),
        "evaluate, mAP at two k as well": lambda: ours([100, deep]),
        "evaluate, ties in index order": lambda: ours(None, "index"),
    }
    seconds = dict(zip(sides, in_turn(*sides.values(), runs=runs), strict=True))
    clock = perf_counter()
    theirs()  # one run is enough: it takes long
    other = perf_counter() - clock
    table = Table(
        "",
        "seconds",
        "ratio",
        title=f"{n_queries:,} queries, {n_base:,} base points, {BITS} bits, "
        f"{THREADS} threads, median of {runs}",
    )
    for name, taken in seconds.items():
        table.add_row(name, f"{taken:.3f}", f"{other / taken:.1f}")
    table.add_row(f"faiss, k = {deep:,}, then NumPy: precision at k", f"{other:.3f}", "1")
    Console().print(table)


if __name__ == "__main__":
    main()
