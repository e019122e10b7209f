"""A search in several passes beside a flat one: what it finds, and what it takes.

python -m benchmarks cascade

One training of 128 bits whose first 32 and 64 are codes of their own (quality "fast"), on word
vectors. Beside it codes of 32 and 64 bits that were learnt alone, and the same codes with a linear
query function. 1,000 queries at once, all cores; of each search, the share of the 10 nearest among
its 10 first, and the median time per query of several runs in turn. Writes docs/tables/cascade.md.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash import HammingIndex, NeighborHash
from auxhash.compute.neighbors import nearest
from auxhash.experiments.datasets import load
from auxhash.search.index import cascade
from auxhash.search.index.rerank import by_vectors
from benchmarks.records import markdown, write_tables
from benchmarks.rows import short, turns

BITS, PREFIXES, K, QUERIES = 128, (32, 64), 10, 1_000
CANDIDATES = (1_000, 10_000)  # of the first pass
N_BY_VECTORS = 100  # points whose vectors are looked at
HEADINGS = ("search", "10@10", "ms per query", "ratio to 128 bits by tables")

Search = Callable[[], Any]


def main(small: bool = False) -> None:
    """Measure, print the table, and write it unless it is a small one."""
    if small:
        X = np.random.default_rng(0).standard_normal((1_500, 20)).astype(np.float32)
        base, queries, steps, runs = X[:1_400], X[1_400:], 20, 1
    else:
        data = load("glove-100", n_neighbors=0)
        base, queries, steps, runs = data.base.X, data.query.X[:QUERIES], None, 5

    def learnt(n_bits: int, query_function: str, prefixes: tuple[int, ...] = ()) -> NeighborHash:
        kinds = {"query_function": query_function, "prefixes": prefixes, "quality": "fast"}
        return NeighborHash(
            *(n_bits, "cosine", "network"), n_steps=steps, random_state=0, **kinds
        ).fit(base)

    hasher = learnt(BITS, "network", PREFIXES)
    alone = [learnt(n_bits, "network") for n_bits in PREFIXES]
    linear = learnt(BITS, "linear", PREFIXES)
    listed = [
        *flat_searches(hasher, queries, f"{BITS} bits"),
        *by_own_tables(linear, queries, f"{BITS} bits by tables, linear query function"),
        *prefix_searches(hasher, alone, queries),
        *searches(hasher, base, queries),
    ]
    truth = nearest(base, queries, K)[0]
    taken = turns(*(search for _, search in listed), runs=runs)
    flat = median(taken[1])
    rows = [
        (
            what,
            share(search()[1], truth),
            short(1000 * median(seconds) / len(queries)),
            short(median(seconds) / flat),
        )
        for (what, search), seconds in zip(listed, taken, strict=True)
    ]
    shown = Table(*HEADINGS)
    for row in rows:
        shown.add_row(*row)
    Console(width=120).print(shown)
    if not small:
        write_tables({"cascade.md": markdown(HEADINGS, rows)})


def flat_searches(hasher: Any, queries: Any, what: str) -> Iterator[tuple[str, Search]]:
    """Searches of whole codes."""
    index = HammingIndex(int(hasher.n_bits)).add(hasher.codes_)
    yield f"{what} by Hamming distance", partial(index.search, hasher.encode(queries), K)
    yield from by_own_tables(hasher, queries, f"{what} by tables")


def by_own_tables(hasher: Any, queries: Any, what: str) -> Iterator[tuple[str, Search]]:
    """The search by learnt tables, if the training has kept any."""
    if hasher.tables_ is not None:
        index = HammingIndex(int(hasher.n_bits)).add(hasher.codes_)
        yield what, partial(index.search_tables, hasher.tables(queries), K)


def prefix_searches(hasher: Any, alone: Any, queries: Any) -> Iterator[tuple[str, Search]]:
    """Searches of prefixes, each beside codes of as many bits that were learnt alone."""
    index = HammingIndex(BITS).add(hasher.codes_)
    codes, tables = hasher.encode(queries), hasher.tables(queries)
    for n_bits, own in zip(PREFIXES, alone, strict=True):
        first, n_bytes = index.prefix(n_bits), n_bits // 8
        what = f"first {n_bits} bits"
        yield f"{what} by Hamming distance", partial(first.search, codes[:, :n_bytes], K)
        yield f"{what} by tables", partial(first.search_tables, tables[:, :n_bytes], K)
        yield from flat_searches(own, queries, f"{n_bits} bits learnt alone,")


def searches(hasher: Any, base: Any, queries: Any) -> Iterator[tuple[str, Search]]:
    """Searches in passes, the longest last."""
    index = HammingIndex(BITS).add(hasher.codes_)
    codes, tables = hasher.encode(queries), hasher.tables(queries)
    flat = partial(index.search_tables, tables)
    third = f", then {N_BY_VECTORS} vectors"
    yield (
        f"{BITS} bits by tables{third}",
        lambda: by_vectors(flat(N_BY_VECTORS)[1], queries, base, K, "cosine"),
    )
    for text, own in (("", {}), (third, {"queries": queries, "vectors": base})):
        for n_bits in PREFIXES:
            for first in CANDIDATES:
                yield (
                    f"{n_bits} bits by Hamming distance, then {first:,} by tables{text}",
                    partial(
                        cascade,
                        *(index, codes, tables, K, n_bits, (first, N_BY_VECTORS)),
                        metric="cosine",
                        **own,
                    ),
                )


def share(ids: Any, truth: Any) -> str:
    """Return the share of the nearest that were found."""
    hits = (ids[:, :, None] == truth[:, None, :]).any(axis=2)
    return f"{hits.mean() * ids.shape[1] / truth.shape[1]:.3f}".removeprefix("0")


if __name__ == "__main__":
    main()
