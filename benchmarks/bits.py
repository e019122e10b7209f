"""Cost of N bits: `auxhash.compare` without labels on real data sets.

python -m benchmarks bits --data debian-minilm [wordnet-minilm ...] [--bytes 4 8 16 32]
                          [--methods ITQ OPQ ...] [--train N] [--base N] [--seeds 0 1 2]
                          [--device cuda] [--results FILE] [--tables]

Data sets are taken from the cache (AUXHASH_DATA, or `auxhash data where`) and fetched if they are
not there. Methods learn from all points that are searched, at most 100,000, unless --train says
fewer. A seed is that of the split and of the training. Records stand in a file of JSON lines,
docs/results/bits.jsonl, one per data set, seed, method, number of bytes, device and quality of the
training: what is there is not measured again, so that a stopped run goes on. `--tables` writes
docs/tables/bits-cost.md, means over the seeds, bits-equal.md and bits-ahead.md, NeighborHash beside
quantisers at equal bytes, bits-hamming.md, its codes beside those learnt without tables, and
bits-unseen.md, what learns from a part of the points beside what learns from all, and measures
nothing.
"""

import argparse
import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

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
from auxhash.search.metrics.recall import RECALL_RANKS
from benchmarks import neighbors, peers
from benchmarks.records import (
    QUALITY,
    RESULTS,
    Record,
    append,
    known,
    markdown,
    parsed,
    read,
    write_tables,
)

FILE, TABLE, EQUAL = RESULTS / "bits.jsonl", "bits-cost.md", "bits-equal.md"
AHEAD, HAMMING, UNSEEN = "bits-ahead.md", "bits-hamming.md", "bits-unseen.md"
WITHOUT_TABLES = ("data", "method", "bytes", "train", "base")  # by which two records are alike
OURS, QUANTIZERS = "NeighborHash, network", ("PQ", "OPQ", "RQ", "LSQ")
EUCLIDEAN = ("cifar10-gist", "cifar10-sift", "siftsmall", "sift1m")  # others: cosine
KEY = ("data", "train", "base", "seed", "method", "bytes", "device", "quality")
OF_METHOD = ("code bytes", "model bytes", "learn s", "encode 1M s")  # the same by any distance
DIGITS = 4


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the tables of what it has."""
    asked = _options(options)
    if small:
        _run_small()
    elif asked.tables:
        write_tables(pages(read(asked.results), read(neighbors.FILE)))
    else:
        for name in asked.data:
            for seed in asked.seeds:
                measure(_load(name, seed), asked, seed)


def measure(data: Dataset, asked: argparse.Namespace, seed: int = 0) -> None:
    """Append what the file lacks of a data set, one record per method and number of bytes."""
    console = Console(width=130, highlight=False)
    n_base = min(len(data.base), asked.base or MAX_BASE)
    n_train = min(n_base, asked.train or n_base)
    setup = {"data": data.name, "train": n_train, "base": n_base, "seed": seed}
    done = known(asked.results, _key)
    one_per_feature = [-(-data.base.X.shape[1] // 8)]
    for method in asked.methods:
        for n_bytes in one_per_feature if method == SIGNS else asked.bytes:
            job = {**setup, "method": method, "bytes": n_bytes, **_trained(method, asked.device)}
            if _key(job) in done:
                continue
            try:
                record = job | _measured(data, job)
            except ValueError as error:  # such as more parts than features
                console.print(f"{data.name}: {error}")
                continue
            append(asked.results, record)
            for row in flat([record]):
                console.print(_line(row))


def _trained(method: str, device: DeviceName) -> Record:
    """Device and quality of a training: all methods but NeighborHash learn on the processor."""
    if not method.startswith("NeighborHash"):
        return {"device": "cpu", "quality": None}
    return {"device": device, "quality": QUALITY[device]}


def _complete(record: Record) -> Record:
    """With device and quality, which the first records lack: their NeighborHash was of a GPU."""
    return {**_trained(record["method"], "cuda"), **record}


def _key(record: Record) -> tuple[Any, ...]:
    complete = _complete(record)
    return tuple(complete[part] for part in KEY)


def _measured(data: Dataset, job: Record) -> Record:
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
        device=job["device"],
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


def _load(name: str, seed: int) -> Dataset:
    """The data set without neighbours of its own, where it can be: they are found among a part."""
    known_options = inspect.signature(datasets.entry(name).load).parameters
    unneeded = {"n_neighbors": 0} if "n_neighbors" in known_options else {}
    return datasets.load(name, seed=seed, **unneeded)


def means(records: Iterable[Record]) -> list[Record]:
    """One record per data set, method, bytes, device and quality: means over seeds."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in map(_complete, records):
        setup = tuple(record[part] for part in KEY if part != "seed")
        groups.setdefault(setup, []).append(record)
    return [_mean(own) for own in groups.values()]


def _mean(records: Sequence[Record]) -> Record:
    """Means over records of several seeds; each distance is over the `seeds` that have it.

    Tables are missing where a training found that they are no better than outputs.
    """
    timed = {name: _mean_of([record[name] for record in records]) for name in OF_METHOD}
    by = {}
    for distance in dict.fromkeys(name for record in records for name in record["by"]):
        own = [record["by"][distance] for record in records if distance in record["by"]]
        figures = {name: _mean_of([each[name] for each in own]) for name in own[0]}
        figures["error"] = math.hypot(*(each["error"] for each in own)) / len(own)
        by[distance] = {**figures, "seeds": len(own)}
    return {**records[0], **timed, "by": by}


def _mean_of(values: Sequence[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return fmean(known_values) if known_values else None


def pages(records: Sequence[Record], without: Sequence[Record]) -> dict[str, str]:
    """All tables by their files; those `without` tables are records of `benchmarks.neighbors`."""
    beside = {EQUAL: equal(records), AHEAD: ahead(records), HAMMING: hamming(records, without)}
    return {TABLE: tables(learnt_from_all(records)), **beside, UNSEEN: unseen(records)}


def learnt_from_all(records: Iterable[Record]) -> list[Record]:
    """Return records that learnt from all points searched: the largest base of each data set."""
    own = [record for record in records if record["train"] == record["base"]]
    largest = {record["data"]: 0 for record in own}
    for record in own:
        largest[record["data"]] = max(largest[record["data"]], record["base"])
    return [record for record in own if record["base"] == largest[record["data"]]]


def _setting(record: Record) -> tuple[str, int, int]:
    return record["data"], record["base"], record["train"]


def tables(records: Sequence[Record]) -> str:
    """Markdown: one table per data set, base and points learnt from, below its protocol."""
    return "\n".join(
        _table([record for record in records if _setting(record) == setting])
        for setting in sorted(set(map(_setting, records)))
    )


def _table(records: Sequence[Record]) -> str:
    """Rows by size, the best first."""
    facts = "±", "codes", "model", "learnt on", "learn s", "seeds"
    head = ["bytes", "method", "by", *MEASURES, *facts]
    ordered = sorted(
        flat(means(records)), key=lambda r: (r["bytes"], -r[MEASURES[0]], -r[MEASURES[1]])
    )
    rows = [
        [
            row["bytes"],
            row["method"],
            row["distance"],
            *(share(row[measure]) for measure in (*MEASURES, "error")),
            size(row["code bytes"]),
            size(row["model bytes"]),
            _learnt_on(row),
            f"{row['learn s']:.1f}",
            row["seeds"],
        ]
        for row in ordered
    ]
    one = records[0]
    protocol = (
        f"**{one['data']}**: {one['points']:,} points, {one['base']:,} of them searched for "
        f"{one['queries']:,} queries, by {one['metric']} distance; methods learn from "
        f"{one['train']:,}; means over seeds of split and training, as many as the last column "
        "says; NeighborHash has learnt on a GPU (cuda) or a processor (cpu), with the quality that "
        "follows.\n\n"
    )
    return protocol + markdown(head, rows)


def _learnt_on(row: Record) -> str:
    """The device, and the quality of the training where a method knows several."""
    return ", ".join(part for part in (row["device"], row["quality"]) if isinstance(part, str))


def equal(records: Sequence[Record]) -> str:
    """Markdown: NeighborHash by each distance beside quantisers of as many bytes.

    Means over as many seeds as follow a figure, if these are several.
    """
    cells = {
        (row["bytes"], row["data"], row["method"], row["distance"]): _shown(row)
        for row in flat(means(of_best_quality(learnt_from_all(records))))
    }
    distances = "Hamming", "outputs", "tables"
    columns = [*((OURS, distance) for distance in distances), *((q, "own") for q in QUANTIZERS)]
    rows = [
        [n_bytes, data, *(cells.get((n_bytes, data, *column), "") for column in columns)]
        for n_bytes, data in sorted({key[:2] for key in cells if key[2] == OURS})
    ]
    return markdown(["bytes", "data", *distances, *QUANTIZERS], rows)


def ahead(records: Sequence[Record]) -> str:
    """Markdown: by how much NeighborHash finds more than quantisers of as many bytes, or less.

    Means over the seeds that both have; by tables, or by outputs where a training kept none.
    """
    runs: dict[tuple[int, str, str], dict[int, Record]] = {}
    for record in of_best_quality(learnt_from_all(records)):
        by = record["by"]
        figures = by.get("tables") or by.get("own") or by["outputs"]
        key = record["bytes"], record["data"], record["method"]
        runs.setdefault(key, {})[record["seed"]] = figures
    rows = [
        [*cell, *(_difference(runs[*cell, OURS], runs.get((*cell, q), {})) for q in QUANTIZERS)]
        for cell in sorted(key[:2] for key in runs if key[2] == OURS)
    ]
    return markdown(["bytes", "data", *QUANTIZERS], [row for row in rows if any(row[2:])])


def _difference(ours: dict[int, Record], theirs: dict[int, Record]) -> str:
    seeds = ours.keys() & theirs.keys()
    more = [[ours[s][m] - theirs[s][m] for s in seeds] for m in MEASURES[:2]]
    return _signed(map(fmean, more)) + _counted(len(seeds)) if seeds else ""


def of_best_quality(records: Iterable[Record]) -> list[Record]:
    """Return records without trainings of less than the best quality, which a GPU takes."""
    best = ("cpu", None), ("cuda", QUALITY["cuda"])
    return [r for r in map(_complete, records) if (r["device"], r["quality"]) in best]


def _signed(values: Iterable[float]) -> str:
    return " / ".join(f"{value:+.3f}".replace("0.", ".") for value in values)


def _counted(seeds: int) -> str:
    return f" ({seeds})" if seeds > 1 else ""


def hamming(records: Sequence[Record], without: Sequence[Record]) -> str:
    """Markdown: the Hamming distance of codes learnt with tables, and of those learnt without.

    The latter are records of `benchmarks.neighbors`, of as many points, but other queries.
    """
    rows = []
    records = of_best_quality(learnt_from_all(records))
    for own in flat(means(r for r in records if r["method"] == OURS)):
        others = [r for r in without if all(r[key] == own[key] for key in WITHOUT_TABLES)]
        if own["distance"] != "Hamming" or not others:
            continue
        before = [np.mean([r["hamming"][str(k)] for r in others]) for k in RECALL_RANKS[:2]]
        more = [own[measure] - b for measure, b in zip(MEASURES[:2], before, strict=True)]
        pairs = [own[measure] for measure in MEASURES[:2]], before
        shown = [" / ".join(map(share, pair)) for pair in pairs]
        seeds = f"{own['seeds']}, {len(others)}"
        rows.append([own["bytes"], own["data"], *shown, _signed(more), seeds])
    return markdown(
        ["bytes", "data", "with tables", "without", "difference", "seeds"], sorted(rows)
    )


def unseen(records: Sequence[Record]) -> str:
    """Markdown: what has learnt from a part of the points searched, beside what has from all.

    The latter of the same device and quality, by the same distance; means over the seeds that both
    have.
    """
    complete = list(map(_complete, records))
    of_all = {_key({**r, "train": 0}): r for r in complete if r["train"] == r["base"]}
    pairs: dict[tuple[Any, ...], list[tuple[Record, Record | None]]] = {}
    for record in complete:
        if record["train"] == record["base"]:
            continue
        beside = of_all.get(_key({**record, "train": 0}), {"by": {}})["by"]
        points = f"{record['train']:,} of {record['base']:,}"
        what = record["data"], points, record["bytes"], record["method"], _learnt_on(record)
        for distance, figures in record["by"].items():
            pairs.setdefault((*what, distance), []).append((figures, beside.get(distance)))
    rows = []
    for key, own in sorted(pairs.items()):
        both = [pair for pair in own if pair[1]]
        sides = [side for side in zip(*(both or own), strict=True) if side[0]]
        recalls = [[fmean(r[m] for r in side) for m in MEASURES[:2]] for side in sides]
        shown = [" / ".join(map(share, recall)) + _counted(len(both or own)) for recall in recalls]
        more = _signed(a - b for a, b in zip(*recalls, strict=True)) if both else ""
        rows.append([*key, *shown, *([""] * (2 - len(shown))), more])
    head = ["data", "learnt from", "bytes", "method", "learnt on", "by", "of these", "of all"]
    return markdown([*head, "difference"], rows)


def _shown(row: Record) -> str:
    return " / ".join(share(row[measure]) for measure in MEASURES[:2]) + _counted(row["seeds"])


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
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of NeighborHash")
    return parsed(parser, options, FILE)


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
