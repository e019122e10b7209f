"""HammingIndex beside faiss's exact index, multi-index tables beside the scan, ApproximateIndex
beside HammingIndex.

The same number of threads for both sides, medians of runs that take turns.
"""

from collections.abc import Iterator, Sequence

import faiss
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from auxhash.compute import context
from auxhash.search.index import ApproximateIndex, HammingIndex, scan
from auxhash.search.index.multiindex import MultiIndex
from benchmarks.rows import Row, turns
from benchmarks.timing import in_turn

Packed = NDArray[np.uint8]

BITS, THREADS = 64, 2


def random_codes(n: int, n_bits: int, seed: int) -> Packed:
    return np.random.default_rng(seed).integers(0, 256, (n, n_bits // 8), dtype=np.uint8)


def learned_codes(n: int, n_bits: int, seed: int) -> Packed:
    """Signs of projections of a thousand clusters: many codes are alike, as learned ones are."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    centres, W = fixed.standard_normal((1000, 24)), fixed.standard_normal((24, n_bits))
    X = centres[rng.integers(0, 1000, n)] + 0.6 * rng.standard_normal((n, 24))
    return np.packbits(X @ W > 0, axis=1, bitorder="little")


def row(table: Table, name: str, queries: int, ours: float, theirs: float, *more: str) -> None:
    """Add a row: milliseconds per query, and how many times faster we are."""
    each = (f"{1000 * seconds / queries:.3f}" for seconds in (ours, theirs))
    table.add_row(name, str(queries), *each, f"{theirs / ours:.2f}", *more)


def beside_faiss(n: int, n_bits: int, jobs: int, runs: int) -> Table:
    base = random_codes(n, n_bits, 0)
    index, flat = HammingIndex(n_bits, n_jobs=jobs).add(base), faiss.IndexBinaryFlat(n_bits)
    flat.add(base)
    table = Table(
        "exact search",
        "queries",
        "ours, ms/query",
        "faiss",
        "ratio",
        title=f"{n:,} x {n_bits} bits, {jobs} threads, median of {runs}",
    )
    for k, count in ((10, 200), (100, 200), (10_000, 50), (10, 1), (10_000, 1)):
        if k > n:
            continue
        queries = random_codes(count, n_bits, 1)
        ours, theirs = in_turn(
            lambda q=queries, k=k: index.search(q, k),
            lambda q=queries, k=k: flat.search(q, k),
            runs=runs,
        )
        np.testing.assert_array_equal(index.search(queries, k)[0], flat.search(queries, k)[0])
        row(table, f"k = {k:,}", count, ours, theirs)
    queries, planes, r = random_codes(200, n_bits, 1), scan.to_planes(base), n_bits // 6
    ours, theirs = in_turn(
        lambda: scan.within(planes, n, queries, r),
        lambda: flat.range_search(queries, r + 1),
        runs=runs,
    )
    row(table, f"radius {r}, by scan", 200, ours, theirs)
    return table


def by_scale(sizes: Sequence[int], n_bits: int, jobs: int, runs: int) -> Table:
    table = Table("codes", "queries", "ours, ms/query", "faiss", "ratio", title="by scale, k = 10")
    for n in sizes:
        base = random_codes(n, n_bits, 0)
        index, flat = HammingIndex(n_bits, n_jobs=jobs).add(base), faiss.IndexBinaryFlat(n_bits)
        flat.add(base)
        count = int(min(1000, max(16, 2e8 // n)))
        for q in (random_codes(count, n_bits, 1), random_codes(1, n_bits, 1)):
            sides = (lambda q=q, i=index: i.search(q, 10), lambda q=q, f=flat: f.search(q, 10))
            row(table, f"{n:,}", len(q), *in_turn(*sides, runs=runs))
    return table


def small_radii(n: int, n_bits: int, runs: int) -> Table:
    table = Table(
        "codes, radius", "queries", "tables, ms/query", "scan", "ratio", title="small radii"
    )
    for name, make in (("random", random_codes), ("learned", learned_codes)):
        base = make(n, n_bits, 0)
        planes, queries = scan.to_planes(base), make(256, n_bits, 1)
        multi = MultiIndex(planes, n)
        for r in (0, 2, multi.farthest // 2, multi.farthest):
            ours, theirs = in_turn(
                lambda r=r, m=multi, q=queries: m.within(q, r),
                lambda r=r, p=planes, q=queries: scan.within(p, n, q, r),
                runs=runs,
            )
            row(table, f"{name}, {r}", len(queries), ours, theirs)
        (build,) = in_turn(lambda p=planes: MultiIndex(p, n), runs=3)
        table.add_row(f"{name}, making the tables", "", f"{1000 * build:.0f} ms in all", "", "")
    return table


def approximate(n: int, n_bits: int, jobs: int, runs: int) -> Table:
    base, queries = learned_codes(n, n_bits, 0), learned_codes(500, n_bits, 1)
    exact = HammingIndex(n_bits, n_jobs=jobs).add(base)
    lists = ApproximateIndex.from_exact(exact)
    limit = exact.search(queries, 10)[0][:, -1:]
    table = Table(
        "lists looked into",
        "queries",
        "lists, ms/query",
        "exact",
        "ratio",
        "recall of 10",
        title=f"approximate, {n:,} learned codes",
    )
    for n_probe in (4, 16, 64):
        lists.n_probe = n_probe
        ours, theirs = in_turn(
            lambda: lists.search(queries, 10), lambda: exact.search(queries, 10), runs=runs
        )
        distances = lists.search(queries, 10)[0]
        recall = ((distances >= 0) & (distances <= limit)).mean()
        row(table, str(n_probe), len(queries), ours, theirs, f"{recall:.4f}")
    return table


def rows(n: int, runs: int) -> Iterator[Row]:
    """Exact search beside faiss and plain NumPy, for n codes and for fewer."""
    faiss.omp_set_num_threads(THREADS)
    fewer = (max(1_000, n // 10), max(1_000, n // 100))
    settings = [(n, 10, 200), (n, n // 100, 50), (n, 10, 1)]
    settings += [(size, 10, count) for size in fewer for count in (200, 1)]
    for size, k, count in settings:
        base, queries = random_codes(size, BITS, 0), random_codes(count, BITS, 1)
        index, flat = HammingIndex(BITS, n_jobs=THREADS).add(base), faiss.IndexBinaryFlat(BITS)
        flat.add(base)
        calls = 1 if count * size > 10**6 else 20  # a run of one call would be too short
        ours, theirs = turns(
            lambda q=queries, k=k, i=index, c=calls: [i.search(q, k) for _ in range(c)],
            lambda q=queries, k=k, f=flat, c=calls: [f.search(q, k) for _ in range(c)],
            runs=runs,
        )
        np.testing.assert_array_equal(index.search(queries, k)[0], flat.search(queries, k)[0])
        each = [tuple(seconds / calls / count for seconds in side) for side in (ours, theirs)]
        asked = "one query" if count == 1 else f"{count} queries, per query"
        title = f"{k:,} nearest of {size:,} codes, {asked}"
        yield Row(title, each[0], 1, "faiss IndexBinaryFlat", each[1])
    yield _beside_numpy(n, runs)


def _beside_numpy(n: int, runs: int) -> Row:
    base, query = random_codes(n, BITS, 0), random_codes(1, BITS, 1)
    index = HammingIndex(BITS, n_jobs=THREADS).add(base)
    words = base.view(np.uint64).ravel()

    def plain() -> NDArray[np.intp]:
        distances = np.bitwise_count(words ^ query.view(np.uint64)[0, 0])
        return np.argpartition(distances, 10)[:10]

    ours, theirs = turns(lambda: index.search(query, 10), plain, runs=runs)
    return Row(
        f"10 nearest of {n:,} codes, one query after a pause", ours, 2, "plain NumPy", theirs
    )


@context.using(n_jobs=THREADS)
def main(small: bool = False) -> None:
    n, largest, runs = (20_000, 10_000, 1) if small else (1_000_000, 10_000_000, 7)
    shape = (n, BITS, THREADS, runs)
    faiss.omp_set_num_threads(THREADS)
    console = Console()
    console.print(beside_faiss(*shape))
    sizes = [10**p for p in range(4, 8) if 10**p <= largest]
    console.print(by_scale(sizes, *shape[1:]))
    console.print(small_radii(n, BITS, runs))
    console.print(approximate(*shape))


if __name__ == "__main__":
    main()
