"""Queries of their own: what do tables that are learnt from pairs find among codes that are there?

python -m benchmarks queries --study pairs --data debian-wordllama --bits 32 64 128 --seeds 0 1 2
python -m benchmarks queries --study change --data debian-lsa-wordllama --common 2000 5000 20000
python -m benchmarks queries --study relevance --base 20000 --bits 64
python -m benchmarks queries --study first --base 20000 --bits 32 64
                             [--base N] [--steps N] [--asker-steps N] [--device cuda]
                             [--results FILE] [--tables]

`pairs`: short texts ask for long ones; some pairs are learnt from, 2,000 others are asked. Codes
are learnt from the long texts alone. `change`: codes are one model's, queries another's, learnt
from long texts that both have embedded (`--common`), and short texts ask; beside it stands what the
model of the queries reaches with codes of its own, and what its queries find among the old model's
float vectors when a matrix takes them there by least squares. Of GloVe, words ask for the word that
is nearest by the vectors of their own model. Of CIFAR-10, pictures in EfficientNet's features ask
GIST codes for the ten pictures of their class that are nearest by EfficientNet; tables are also
learnt from what is relevant to the common pictures in the same way.

`relevance`: codes that are learnt from pairs, too, beside codes of the long texts alone and tables
for these; and what that costs where a text that is not searched asks for its 10 nearest, which is
measured if `--base` leaves texts out. `first`: what the first place depends on when tables are
learnt from pairs, one thing undone at a time.

What was measured stands in a file of JSON lines, docs/results/queries.jsonl, and is not measured
again; `--tables` writes docs/tables/queries-*.md out of it. Measured is the share of relevant rows,
mostly one per query, that are among the first 1, 10 and 100.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from time import process_time
from typing import Any
from unittest import mock

import numpy as np

from auxhash import HammingIndex, NeighborHash, QueryTables, metrics
from auxhash.compute import neighbors
from auxhash.compute.arrays import AnyArray, Numbers, Single
from auxhash.learn.baselines import ITQ
from auxhash.learn.hasher import Hasher
from auxhash.learn.training.asking import AskerTraining
from auxhash.search.index import tables_from_outputs
from benchmarks import peers
from benchmarks.querydata import DATA, N_TESTED, Asked, nearest_of_class, of_pictures
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

FILE = RESULTS / "queries.jsonl"
RANKS = (1, 10, 100)
N_NEAREST = 10  # rows that a text which is not searched is to find
KEY = ("study", "data", "base", "bits", "seed", "common")
KEY += ("codes", "steps", "asker", "asker_steps")  # methods and gradient steps
KEY += ("device", "quality")  # of the training


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the tables of what it has."""
    asked = _options(options)
    if small:
        _run_small()
    elif asked.tables:
        write_tables(tables(read(asked.results)))
    else:
        measure(DATA[asked.data](asked.base), asked)


def measure(data: Asked, asked: argparse.Namespace) -> None:
    """Append what the file lacks: a record per seed, bits and number of common rows."""
    done = known(asked.results, lambda record: _key(_complete(record)))
    amounts = asked.common if asked.study == "change" else [None]
    for seed in asked.seeds:
        for bits in asked.bits:
            job = {"study": asked.study, "data": asked.data, "base": len(data.codes)}
            job |= {"bits": bits, "seed": seed, "steps": asked.steps}
            job |= {"codes": asked.codes, "asker": asked.asker, "asker_steps": asked.asker_steps}
            jobs = [_complete({**job, "common": n, "device": asked.device}) for n in amounts]
            jobs = [each for each in jobs if _key(each) not in done]
            for record in STUDIES[asked.study](data, jobs) if jobs else ():
                append(asked.results, record)
                for name, shares in record["found"].items():
                    print(f"{asked.data}, {bits} bits, seed {seed}: {name}: {_slashed(shares)}")


def _complete(record: Record) -> Record:
    """With the device, which the first records lack, and the quality of NeighborHash on it."""
    device = record.get("device", "cpu")
    quality = QUALITY[device] if record["codes"] == "NeighborHash" else None
    return {"device": device, "quality": quality, **record}


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[part] for part in KEY)


def _split(data: Asked, seed: int) -> tuple[Numbers, Numbers]:
    """Queries to learn from, and queries to ask."""
    order = np.random.default_rng(seed).permutation(len(data.Q))
    n = min(N_TESTED, len(order) // 4)
    return np.sort(order[n:]), np.sort(order[:n])


def _pairs(data: Asked, jobs: Sequence[Record]) -> Iterator[Record]:
    """Codes from the rows alone, and tables from pairs, started by ridge or by the codes' model."""
    [job] = jobs
    learnt, tested = _split(data, job["seed"])
    Q, rows = data.Q[tested], data.rows[tested]
    hasher, index, seconds = _codes(data.codes, job)
    recalls = {"vectors": _by_vectors(data.codes, Q, rows)}
    recalls |= _by_hasher("codes of documents", hasher, index, Q, rows)
    used = {"codes": seconds}
    for name, start in (("pairs", None), ("pairs and the codes' model", hasher)):
        asker, used[name] = _asker(job, data.Q[learnt], data.rows[learnt], index, start)
        recalls[f"{name}: tables"] = _by_tables(index, asker.tables(Q), rows)
        recalls[f"{name}: codes"] = _by_hamming(asker.encode(Q), index, rows)
    yield {**job, "pairs": len(learnt), "queries": len(tested), "found": recalls, "cpu_s": used}


def _change(data: Asked, jobs: Sequence[Record]) -> Iterator[Record]:
    """Codes of one model asked by another, learnt from rows that both have."""
    seed, (_, tested) = jobs[0]["seed"], _split(data, jobs[0]["seed"])
    Q, rows = data.Q[tested], data.rows[tested]
    _, index, seconds = _codes(data.codes, jobs[0])
    own, own_index, _ = _codes(data.same, jobs[0])
    known_before = {"new model: vectors": _by_vectors(data.same, Q, rows)}
    known_before |= _by_hasher("new model's own codes", own, own_index, Q, rows)
    order = np.random.default_rng(seed).permutation(len(data.same))
    for job in jobs:
        common = np.sort(order[: min(job["common"], len(order))])
        asker, used = _asker(job, data.same[common], common, index, None)
        recalls = {
            **known_before,
            "old vectors: least squares": _by_least_squares(data, common, Q, rows),
            "old codes: tables": _by_tables(index, asker.tables(Q), rows),
            "old codes: codes": _by_hamming(asker.encode(Q), index, rows),
        }
        if data.classes is not None:
            alike = nearest_of_class(data.same[common], data.classes[common])
            of_class, _ = _asker(job, data.same[common], common[alike], index, None)
            recalls["old codes: tables from classes"] = _by_tables(index, of_class.tables(Q), rows)
        changed = index.packed.copy()  # documents that came after the change: all others
        late = np.setdiff1d(np.arange(len(changed)), common)
        if len(late):
            changed[late] = asker.encode(data.same[late])
            mixed = HammingIndex(job["bits"]).add(changed)
            recalls["new documents among old: tables"] = _by_tables(mixed, asker.tables(Q), rows)
        used_by = {"codes": seconds, "asker": used}
        about = {"queries": len(tested), "relevant": rows[0].size}
        yield {**job, **about, "found": recalls, "cpu_s": used_by}


def _relevance(data: Asked, jobs: Sequence[Record]) -> Iterator[Record]:
    """Codes and tables from pairs and neighbours together, beside codes from neighbours alone."""
    [job] = jobs
    learnt, tested = _split(data, job["seed"])
    Q, rows = data.Q[tested], data.rows[tested]
    pairs = {"queries": data.Q[learnt], "relevant": data.rows[learnt]}
    recalls, used = {"vectors": _by_vectors(data.codes, Q, rows)}, {}
    near: dict[str, float] = {}
    for name, relevance in (("documents", {}), ("documents and pairs", pairs)):
        name = f"codes of {name}"
        hasher, index, used[name] = _codes(data.codes, job, "network", relevance)
        recalls |= _by_hasher(name, hasher, index, Q, rows)
        near |= _neighbor_recalls(name, hasher, index, data)
        if not relevance:
            asker, used["tables"] = _asker(job, data.Q[learnt], data.rows[learnt], index, hasher)
            recalls[f"{name}: tables from pairs"] = _by_tables(index, asker.tables(Q), rows)
    sizes = {"pairs": len(learnt), "queries": len(tested)}
    yield {**job, **sizes, "found": recalls, "neighbors": near, "cpu_s": used}


def _neighbor_recalls(
    name: str, hasher: Hasher, index: HammingIndex, data: Asked
) -> dict[str, float]:
    """Return the share of the nearest rows of texts that are not searched, by each way to search.

    It is counted among as many first hits.
    """
    if data.outside is None:
        return {}
    nearest = neighbors.nearest(data.codes, data.outside, N_NEAREST, "cosine")[0]
    codes = hasher.encode(data.outside)
    by_hamming = metrics.recall_at_k(codes, index.packed, neighbors=nearest, k=N_NEAREST)
    recalls = {f"{name}: Hamming": round(float(by_hamming), 4)}
    for way, tables in _tables_of(hasher, data.outside).items():
        hits = index.search_tables(tables, N_NEAREST)[1]
        near = (hits[:, :, None] == nearest[:, None]).any(axis=1)
        recalls[f"{name}: {way}"] = round(float(near.mean()), 4)
    return recalls


class LastKept(AskerTraining):
    """A training whose last parameters are kept, not those that found most."""

    def _note(self, *report: Any) -> None:
        super()._note(*report)
        self.best = []


UNWEIGHTED = "start not weighted"  # by the covariance of its errors
UNDONE: dict[str, tuple[str, object]] = {
    "steps of .005": ("auxhash.learn.training.asking.RATE", 0.005),
    "no rivals": ("auxhash.learn.smooth.tables.RIVAL_SHARE", 0.0),
    UNWEIGHTED: ("auxhash.learn.querytables._weighted", lambda W, errors: W),
    "last kept": ("auxhash.learn.querytables.AskerTraining", LastKept),
}


def _first(data: Asked, jobs: Sequence[Record]) -> Iterator[Record]:
    """Tables from pairs for the same codes, with one part of the training undone, and with all."""
    [job] = jobs
    learnt, tested = _split(data, job["seed"])
    Q, rows = data.Q[tested], data.rows[tested]
    hasher, index, seconds = _codes(data.codes, job)
    recalls, used = _by_hasher("codes of documents", hasher, index, Q, rows), {"codes": seconds}
    for begun, start in (("pairs", None), ("pairs and the codes' model", hasher)):
        own = [name for name in UNDONE if start is None or name != UNWEIGHTED]
        for undone in ([], *([name] for name in own), own):
            name = ", ".join([begun, *undone]) if undone != own else f"{begun}, all of these"
            with ExitStack() as changes:
                for each in undone:
                    target, value = UNDONE[each]
                    changes.enter_context(mock.patch(target, value))
                asker, used[name] = _asker(job, data.Q[learnt], data.rows[learnt], index, start)
            recalls[name] = _by_tables(index, asker.tables(Q), rows)
    yield {**job, "pairs": len(learnt), "queries": len(tested), "found": recalls, "cpu_s": used}


STUDIES: dict[str, Callable[[Asked, Sequence[Record]], Iterator[Record]]] = {
    "pairs": _pairs,
    "change": _change,
    "relevance": _relevance,
    "first": _first,
}


def _codes(
    X: AnyArray,
    job: Record,
    query_function: str | None = None,
    relevance: dict[str, AnyArray] | None = None,
) -> tuple[Hasher, HammingIndex, float]:
    began = process_time()
    bits, seed = job["bits"], job["seed"]
    hasher: Hasher
    if job["codes"] == "ITQ":
        hasher = ITQ(bits, random_state=seed).fit(X)
    else:
        settings: dict[str, Any] = {"n_steps": job["steps"], "query_function": query_function}
        settings |= {"random_state": seed, "device": job["device"]}
        hasher = NeighborHash(bits, **settings).fit(X, **relevance or {})
    index = HammingIndex(bits, fingerprint=hasher.fingerprint_).add(hasher.codes_)
    return hasher, index, round(process_time() - began, 1)


def _asker(
    job: Record, Q: AnyArray, rows: Numbers, index: HammingIndex, start: Hasher | None
) -> tuple[QueryTables, float]:
    began = process_time()
    settings = {"n_steps": job["asker_steps"], "random_state": job["seed"]}
    settings["device"] = job["device"]
    asker = QueryTables(job["bits"], job["asker"], **settings)
    asker.fit(Q, rows, index, start=start)
    return asker, round(process_time() - began, 1)


def _by_hasher(
    name: str, hasher: Hasher, index: HammingIndex, Q: AnyArray, rows: Numbers
) -> dict[str, list[float]]:
    by = {f"{name}: Hamming": _by_hamming(hasher.encode(Q), index, rows)}
    ways = _tables_of(hasher, Q).items()
    return by | {f"{name}: {way}": _by_tables(index, tables, rows) for way, tables in ways}


def _tables_of(hasher: Hasher, Q: AnyArray) -> dict[str, Single]:
    """Return tables of queries: their outputs, and those that were learnt and kept, if any."""
    tables = {"outputs": tables_from_outputs(hasher.decision_function(Q))}
    if isinstance(hasher, NeighborHash) and hasher.tables_ is not None:
        tables["tables"] = hasher.tables(Q)
    return tables


def _by_vectors(X: AnyArray, Q: AnyArray, rows: Numbers) -> list[float]:
    hits = neighbors.nearest(X, Q, min(RANKS[-1], len(X)), "cosine")[0]
    return _shares(hits, rows)


def _by_least_squares(data: Asked, common: Numbers, Q: AnyArray, rows: Numbers) -> list[float]:
    """By the float vectors of the old model, to which a matrix takes the queries.

    Codes of that model, which hold less, can hardly be expected to find more.
    """
    W = np.linalg.lstsq(data.same[common], data.codes[common], rcond=None)[0]
    return _by_vectors(data.codes, Q @ W, rows)


def _by_tables(index: HammingIndex, tables: Single, rows: Numbers) -> list[float]:
    return _shares(index.search_tables(tables, min(RANKS[-1], len(index)))[1], rows)


def _by_hamming(codes: AnyArray, index: HammingIndex, rows: Numbers) -> list[float]:
    """With ties by their exact expectation."""
    true = rows.reshape(len(rows), -1)
    recalls = (metrics.recall_at_k(codes, index.packed, neighbors=true, k=k) for k in RANKS)
    return [round(float(share), 4) for share in recalls]


def _shares(hits: Numbers, rows: Numbers) -> list[float]:
    is_relevant = hits[:, :, None] == rows.reshape(len(rows), 1, -1)  # (m, first hits, K)
    return [round(float(is_relevant[:, :k].any(axis=1).mean()), 4) for k in RANKS]


def tables(records: Sequence[Record]) -> dict[str, str]:
    """Markdown by file name: one table per study and data set, means over the seeds."""
    made: dict[str, list[str]] = {}
    settings = ("study", "data", "base", "codes", "steps", "asker", "asker_steps", "device")
    records = [_complete(record) for record in records]
    for setting in sorted({tuple(r[part] for part in settings) for r in records}, key=str):
        own = [r for r in records if tuple(r[part] for part in settings) == setting]
        made.setdefault(f"queries-{setting[0]}.md", []).append(_table(own))
    return {name: "\n".join(parts) for name, parts in made.items()}


def _table(records: Sequence[Record]) -> str:
    one = records[0]
    rows = []
    near = any(r.get("neighbors") for r in records)
    for bits, common in sorted({(r["bits"], r["common"] or 0) for r in records}):
        own = [r for r in records if (r["bits"], r["common"] or 0) == (bits, common)]
        for name in dict.fromkeys(name for r in own for name in r["found"]):
            having = [r for r in own if name in r["found"]]
            shares = np.mean([r["found"][name] for r in having], axis=0)
            cells = [bits, *([f"{common:,}"] if common else []), name, _slashed(shares)]
            if near:
                recalls = [r["neighbors"][name] for r in having if name in r["neighbors"]]
                cells.append(_slashed([np.mean(recalls)]) if recalls else "")
            rows.append([*cells, len(having)])
    head = ["bits", *(["common"] if one["common"] else []), "by", "R@1 / 10 / 100"]
    head += [*(["neighbours, 10@10"] if near else []), "seeds"]
    pairs = f", {one['pairs']:,} pairs learnt from" if "pairs" in one else ""
    relevant = f", each with {one['relevant']} relevant rows" if one.get("relevant", 1) > 1 else ""
    on = " on a GPU" if one["device"] == "cuda" else ""
    of_codes = "ITQ" if one["codes"] == "ITQ" else f"NeighborHash in {one['steps']} steps"
    return (
        f"**{one['data']}**: {one['base']:,} rows searched, {one['queries']:,} queries{relevant}"
        f"{pairs}; codes by {of_codes}, tables by a {one['asker']} function in at most "
        f"{one['asker_steps']} steps{on}.\n\n" + markdown(head, rows)
    )


def _slashed(shares: Sequence[float]) -> str:
    return " / ".join(f"{share:.3f}".lstrip("0") for share in shares)


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks queries")
    parser.add_argument("--study", choices=STUDIES, default="pairs")
    parser.add_argument("--data", choices=DATA, default="debian-wordllama")
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64, 128, 256])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--common", type=int, nargs="+", default=[2_000, 5_000, 20_000])
    parser.add_argument("--base", type=int, help="rows to search; all by default")
    parser.add_argument("--codes", choices=("NeighborHash", "ITQ"), default="NeighborHash")
    parser.add_argument("--asker", choices=("network", "linear"), default="network")
    parser.add_argument("--steps", type=int, default=1500, help="of the codes")
    parser.add_argument("--asker-steps", type=int, default=2000, help="of the tables, at most")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of the training")
    asked = parsed(parser, options, FILE)
    if asked.study == "relevance" and asked.codes != "NeighborHash":
        parser.error("--study relevance is for codes by NeighborHash, which learns from pairs")
    return asked


def _run_small() -> None:
    """Show that all of it runs, on made data; print the ratio of tables to outputs."""
    X = np.asarray(peers.decaying(300, 12, 0)[0], np.float32)
    rng = np.random.default_rng(0)
    other = np.tanh(X @ rng.normal(size=(12, 9)) / 4).astype(np.float32)
    rows = rng.permutation(300)[:200]
    short = {"bits": 16, "seed": 0, "steps": 5, "asker_steps": 5, "data": "made", "base": 300}
    short |= {"codes": "NeighborHash", "asker": "linear", "device": "cpu"}
    noisy = (X + 0.1 * rng.normal(size=X.shape)).astype(np.float32)
    records: list[dict[str, Any]] = []
    records += _pairs(Asked(X, X, noisy[rows], rows), [{**short, "study": "pairs", "common": None}])
    of_change = [{**short, "study": "change", "common": common} for common in (100, 300)]
    records += _change(Asked(X, other, other[rows], rows), of_change)
    of_change = [{**short, "data": "made pictures", "study": "change", "common": 100}]
    records += _change(of_pictures(X, other, np.arange(300) % 3), of_change)
    searched, others = np.split(X, [250])
    asked = Asked(searched, searched, noisy[rows[rows < 250]], rows[rows < 250], outside=others)
    for name, study in (("relevance", _relevance), ("first", _first)):
        records += study(asked, [{**short, "base": 250, "study": name, "common": None}])
    for text in tables(records).values():
        print(text)
    recalls = records[0]["found"]
    ratio = recalls["pairs: tables"][1] / max(recalls["codes of documents: outputs"][1], 0.01)
    print(f"ratio to outputs of tables from pairs: {ratio:.2f}")
