"""All curves from one histogram pass, beside a faiss search at k = 20,000 followed by NumPy."""

from collections.abc import Iterator

import faiss
import numpy as np
from rich.console import Console

from auxhash.search import metrics
from benchmarks.rows import Row, table, timed, turns
from benchmarks.search import BITS, THREADS, learned_codes


def rows(n_codes: int, runs: int) -> Iterator[Row]:
    """A row for each way to measure; the paper's numbers of points at a million codes."""
    n_queries, n_base = max(20, n_codes // 500), max(300, 58 * n_codes // 1000)
    deep = n_base // 3
    faiss.omp_set_num_threads(THREADS)
    rng = np.random.default_rng(0)
    codes = [learned_codes(n, BITS, seed) for seed, n in enumerate((n_queries, n_base))]
    labels = [rng.integers(0, 10, n) for n in (n_queries, n_base)]
    flat = faiss.IndexBinaryFlat(BITS)
    flat.add(codes[1])

    def ours(k: list[int] | None, ties: str = "expected") -> metrics.Evaluation:
        return metrics.evaluate(*codes, *labels, k=k, ties=ties, n_jobs=THREADS)

    def theirs() -> float:
        ids = flat.search(codes[0], deep)[1]
        hits = np.cumsum(labels[1][ids] == labels[0][:, None], axis=1)
        precision = (hits / np.arange(1, deep + 1)).mean(axis=0)
        return float(precision[-1])

    sides = {
        "all k, all radii, mAP, bits": lambda: ours(None),
        "mAP at two k as well": lambda: ours([100, deep]),
        "ties in index order": lambda: ours(None, "index"),
        "histogram pass alone": lambda: metrics.distance_histogram(*codes, *labels, n_jobs=THREADS),
    }
    peer = f"faiss, {deep:,} nearest, then NumPy: precision at k alone"
    taken = turns(*sides.values(), runs=runs)
    _, other = timed(theirs)  # one run is enough: it takes long
    for name, seconds in zip(sides, taken, strict=True):
        title = f"evaluation, {n_queries:,} queries, {n_base:,} codes: {name}"
        yield Row(title, seconds, 10, peer, (other,) * len(seconds))


def main(small: bool = False) -> None:
    measured = list(rows(2_000, 1) if small else rows(1_000_000, 7))
    Console(width=150).print(table(measured))


if __name__ == "__main__":
    main()
