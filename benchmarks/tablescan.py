"""Search by tables beside faiss's IndexPQ of as many bytes, and beside its 4-bit FastScan.

python -m benchmarks tablescan

IndexPQ searches the same codes by tables of the same shape, exactly, as `search_tables` does;
FastScan rounds tables of 16 values to bytes. Tables of outputs are sums over bits, which bounds of
half a byte suit; "any tables" are IndexPQ's own, which no sum over bits is close to.
Writes docs/tables/tablescan.md.
"""

from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np
from rich.console import Console

from auxhash.search.index import HammingIndex, cascade, tables_from_outputs
from benchmarks.records import markdown, write_tables
from benchmarks.rows import HEADINGS, Row, table, turns
from benchmarks.search import BITS, THREADS, random_codes

K, QUERIES, FEATURES = 10, 50, 32
BYTES = BITS // 8


def rows(n: int, runs: int) -> Iterator[Row]:
    """Exact search of n codes by tables, for one query and for many, on one thread and on two."""
    rng = np.random.default_rng(0)
    base, train = random_codes(n, BITS, 0), rng.standard_normal((10_000, FEATURES), np.float32)
    pq, fast = faiss.IndexPQ(FEATURES, BYTES, 8), faiss.IndexPQFastScan(FEATURES, 2 * BYTES, 4)
    for index in (pq, fast):
        index.train(train)
    pq.add_sa_codes(base)
    fast.add(rng.standard_normal((n, FEATURES), np.float32))
    for jobs in (1, THREADS):
        faiss.omp_set_num_threads(jobs)
        ours = HammingIndex(BITS, n_jobs=jobs).add(base)
        for count in (QUERIES, 1):
            vectors = rng.standard_normal((count, FEATURES), np.float32)
            outputs = rng.standard_normal((count, BITS))
            asked = {
                "outputs' tables": tables_from_outputs(outputs),
                "any tables": own(pq, vectors),
            }
            for name, tables in asked.items():
                seconds = turns(
                    lambda i=ours, t=tables: i.search_tables(t, K),
                    lambda v=vectors: pq.search(v, K),
                    lambda v=vectors: fast.search(v, K),
                    runs=runs if count > 1 else 5 * runs,
                )
                us, exact, rounded = (tuple(s / count for s in each) for each in seconds)
                what = f"{K} nearest of {n:,} codes by {name}, {described(count, jobs)}"
                yield Row(what, us, 2 if name[0] == "o" else 1, "faiss IndexPQ 8x8", exact)
                if name[0] == "o":
                    yield Row(what, us, 0, "faiss IndexPQFastScan 16x4, 4-bit tables", rounded)
            np.testing.assert_allclose(
                ours.search_tables(asked["any tables"], K)[0], pq.search(vectors, K)[0], rtol=1e-4
            )
    yield _cascade(ours, own(pq, rng.standard_normal((QUERIES, FEATURES), np.float32)), n, runs)


def described(count: int, jobs: int) -> str:
    asked = "one query" if count == 1 else f"{count} queries, per query"
    return f"{asked}, {jobs} thread{'s' * (jobs > 1)}"


def own(pq: Any, vectors: Any) -> Any:
    """IndexPQ's tables: squared distances of the vectors' parts to its centroids."""
    centroids = faiss.vector_to_array(pq.pq.centroids).reshape(BYTES, 256, -1)
    parts = vectors.reshape(len(vectors), BYTES, 1, -1)
    return ((parts - centroids) ** 2).sum(axis=3).astype(np.float32)


def _cascade(index: HammingIndex, tables: Any, n: int, runs: int) -> Row:
    codes = random_codes(QUERIES, BITS, 1)
    ours, theirs = turns(
        lambda: cascade(index, codes, tables, K, n_bits=BITS // 2),
        lambda: index.search_tables(tables, K),
        runs=runs,
    )
    each = [tuple(seconds / QUERIES for seconds in side) for side in (ours, theirs)]
    what = f"cascade, 1,000 of {n:,} codes by {BITS // 2} bits, then by any tables, per query"
    return Row(what, each[0], 0, "search_tables", each[1])


def main(small: bool = False) -> None:
    """Measure, print the table, and write it unless it is a small one."""
    measured = list(rows(*((2_000, 1) if small else (1_000_000, 7))))
    Console(width=170).print(table(measured, title="search by tables"))
    if not small:
        write_tables({"tablescan.md": markdown(HEADINGS, [row.cells() for row in measured])})


if __name__ == "__main__":
    main()
