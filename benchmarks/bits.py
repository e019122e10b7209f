"""What N bits cost: `auxhash.compare` without labels on real data sets.

python -m benchmarks bits --data debian-minilm [wordnet-minilm ...] [--bytes 4 8 16 32]
                          [--methods ITQ OPQ ...] [--train N] [--base N] [--seed N]
                          [--device cuda] [--results FILE] [--tables]

Data sets are taken from the cache (AUXHASH_DATA, or `auxhash data where`) and fetched if they are
not there. Methods learn from all points that are searched, at most 100,000, unless --train says
fewer. Records stand in a file of JSON lines, docs/results/bits.jsonl, one per data set, method and
number of bytes: what is there is not measured again, so that a stopped run goes on. `--tables`
writes docs/tables/bits-cost.md out of that file, and measures nothing.
"""

import argparse
import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from auxhash.compute.device import DeviceName
from auxhash.compute.neighbors import Metric
from auxhash.experiments import datasets
from auxhash.experiments.compareneighbors import (
    DEFAULT_METHODS,
    EXACT,
    MAX_BASE,
    MEASURES,
    N_BYTES,
    SIGNS,
    NeighborComparison,
    compare_neighbors,
    share,
    size,
)
from auxhash.experiments.datasets import Dataset
from benchmarks import peers
from benchmarks.records import RESULTS, Record, append, known, markdown, read, write_tables

FILE, TABLE = RESULTS / "bits.jsonl", "bits-cost.md"
EUCLIDEAN = ("cifar10-gist", "cifar10-sift", "siftsmall", "sift1m")  # others: cosine
KEY = ("data", "train", "base", "seed", "method", "bytes")
OF_METHOD = ("code bytes", "model bytes", "learn s", "encode 1M s")  # the same by any distance
DIGITS = 4


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the tables of what it has."""
    asked = _options(options)
    if small:
        _run_small()
    elif asked.tables:
        write_tables({TABLE: tables(read(asked.results))})
    else:
        for name in asked.data:
            measure(_load(name), asked)


def measure(data: Dataset, asked: argparse.Namespace) -> None:
    """Append what the file lacks of a data set, one record per method and number of bytes."""
    console = Console(width=130, highlight=False)
    n_base = min(len(data.base), asked.base or MAX_BASE)
    n_train = min(n_base, asked.train or n_base)
    setup = {"data": data.name, "train": n_train, "base": n_base, "seed": asked.seed}
    done = known(asked.results, lambda record: tuple(record[part] for part in KEY))
    one_per_feature = [-(-data.base.X.shape[1] // 8)]
    for method in asked.methods:
        for n_bytes in one_per_feature if method == SIGNS else asked.bytes:
            job = {**setup, "method": method, "bytes": n_bytes}
            if tuple(job[part] for part in KEY) in done:
                continue
            try:
                record = job | _measured(data, job, asked.device)
            except ValueError as error:  # such as more parts than features
                console.print(f"{data.name}: {error}")
                continue
            append(asked.results, record)
            for row in flat([record]):
                console.print(_line(row))


def _measured(data: Dataset, job: Record, device: DeviceName) -> Record:
    """Facts of the method, and figures by each of its distances."""
    metric: Metric = "euclidean" if data.name in EUCLIDEAN else "cosine"
    compared = compare_neighbors(
        data,
        [job["method"]],
        job["bytes"],
        metric=metric,
        n_train=job["train"],
        n_base=job["base"],
        seed=job["seed"],
        device=device,
        verbose=0,
    )
    return _record(compared, compared.rows)


def _record(compared: NeighborComparison, rows: Sequence[Record]) -> Record:
    own = [row for row in rows if row["method"] != EXACT]
    figures = (*MEASURES, "error", "ms per query")
    search = compared.search
    return {
        "metric": search.metric,
        "points": search.n_points,
        "queries": len(search.data.query),
        **{name: _rounded(own[0][name]) for name in OF_METHOD},
        "by": {row["distance"]: {name: _rounded(row[name]) for name in figures} for row in own},
    }


def _rounded(value: float) -> float | None:
    """Few digits of a number; None of NaN, which JSON does not know."""
    return None if math.isnan(value) else round(value, DIGITS)


def flat(records: Iterable[Record]) -> Iterator[Record]:
    """One row per distance of each record, with NaN for None."""
    for record in records:
        for distance, figures in record["by"].items():
            row = {**record, "distance": distance, **figures}
            yield {name: math.nan if value is None else value for name, value in row.items()}


def _load(name: str) -> Dataset:
    """The data set without neighbours of its own, where it can be: they are found among a part."""
    known_options = inspect.signature(datasets.entry(name).load).parameters
    return datasets.load(name, **({"n_neighbors": 0} if "n_neighbors" in known_options else {}))


def tables(records: Sequence[Record]) -> str:
    """Markdown: one table per data set, below its protocol."""
    return "\n".join(
        _table([record for record in records if record["data"] == name])
        for name in sorted({record["data"] for record in records})
    )


def _table(records: Sequence[Record]) -> str:
    """Rows by size, the best first."""
    head = ["bytes", "method", "by", *MEASURES, "±", "codes", "model", "learn s"]
    ordered = sorted(flat(records), key=lambda r: (r["bytes"], -r[MEASURES[0]], -r[MEASURES[1]]))
    rows = [
        [
            row["bytes"],
            row["method"],
            row["distance"],
            *(share(row[measure]) for measure in (*MEASURES, "error")),
            size(row["code bytes"]),
            size(row["model bytes"]),
            f"{row['learn s']:.1f}",
        ]
        for row in ordered
    ]
    one = records[0]
    protocol = (
        f"**{one['data']}**: {one['points']:,} points, {one['base']:,} of them searched for "
        f"{one['queries']:,} queries, by {one['metric']} distance; methods learn from "
        f"{one['train']:,}; seed {one['seed']}.\n\n"
    )
    return protocol + markdown(head, rows)


def _line(row: Record) -> str:
    recall = " / ".join(share(row[measure]) for measure in MEASURES[:3])
    return (
        f"{row['data']}: {row['method']} by {row['distance']}, {row['bytes']} bytes: {recall} "
        f"({row['learn s']:.1f} s)"
    )


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks bits")
    parser.add_argument("--data", nargs="+", choices=datasets.REGISTRY, default=["debian-minilm"])
    parser.add_argument("--bytes", type=int, nargs="+", default=list(N_BYTES))
    parser.add_argument("--methods", nargs="+", default=list(DEFAULT_METHODS))
    parser.add_argument("--train", type=int, help="points to learn from, a part of the base")
    parser.add_argument("--base", type=int, help=f"points to search; {MAX_BASE:,} by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of NeighborHash")
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--tables", action="store_true")
    return parser.parse_args(options)


def _run_small() -> None:
    """Show that all of it runs, on made data; print the ratio to ITQ's recall."""
    X = np.asarray(peers.decaying(400, 24, 0)[0], np.float32)
    made = datasets.from_arrays(X[:360], X[360:], name="made")
    with TemporaryDirectory() as folder:
        results = Path(folder) / "bits.jsonl"
        words = ["--bytes", "3", "--methods", "signs", "ITQ", "PQ", "--results", str(results)]
        measure(made, _options(words))
        records = read(results)
    print(tables(records))
    recall = {row["method"]: row[MEASURES[0]] for row in flat(records)}
    print(f"ratio to ITQ of PQ: {recall['PQ'] / recall['ITQ']:.2f}")
