"""What the paper leaves open or we do in another way, one change at a time: docs/verdicts.md.

python -m benchmarks differs [--names NAME ...] [--results FILE] [--tables]

MACcut as `auxhash.paper` sets it, blocks in one order, 16 bits, linear, seed 0: 10,000 of CIFAR's
GIST features with labels. Whether blocks may overlap is asked of 5,000 SIFT descriptors and their
neighbours, as classes give none that could; there, two-step hashing alone, and quad beside it. What
was measured stands in a file of JSON lines, docs/results/differs.jsonl, and is not measured again.
`--tables` writes docs/tables/differs.md out of it.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from auxhash import affinity, datasets, hashfunctions, metrics, paper
from auxhash.compute import clock
from auxhash.datasets.dataset import Dataset
from auxhash.hasher import Hasher
from auxhash.zstep import Cut
from benchmarks.records import Record, append, known, read

DOCS = Path(__file__).parent.parent / "docs"
TABLE, RESULTS = DOCS / "tables" / "differs.md", DOCS / "results" / "differs.jsonl"
BITS, SEED, RANKS = 16, 0, (100, 2_000)
HEAD = ("change", "two-step", "MAC", "last", "iterations")  # L(h) per pair
HEAD += tuple(f"precision at {k:,}" for k in RANKS)

Make = Callable[[], Hasher]


def _cifar(**changes: Any) -> Make:
    return lambda: paper.maccut(BITS, random_state=SEED, **changes)


def _liblinear() -> Hasher:
    from sklearn.svm import LinearSVC

    return _cifar(hash_function=LinearSVC(C=paper.C, random_state=SEED))()


def _sift(**changes: Any) -> Make:
    return lambda: paper.cut(BITS, random_state=SEED, **changes)


AS_SET, BY_POSITION = "as set", "ties by position in the base"
CIFAR: dict[str, Make] = {
    AS_SET: _cifar(),
    BY_POSITION: _cifar(),
    "no validation": _cifar(validation=None),
    "3 in 10 points held out for validation": _cifar(validation=0.3),
    "1 sweep per Z step": _cifar(max_sweeps=1),
    "5 sweeps per Z step": _cifar(max_sweeps=5),
    "20 sweeps per Z step": _cifar(max_sweeps=20),
    "C = 1": _cifar(C=1.0),
    "C = 10,000": _cifar(C=10_000.0),
    "mu over b², as for eq. (3) unscaled": _cifar(mu=paper.FIRST_MU_CUT / BITS**2),
    "LIBLINEAR in the h step": _liblinear,
}
SIFT: dict[str, Make] = {
    "SIFT: cut, one order, no overlap": _sift(),
    "SIFT: cut, one order, overlap": _sift(z_step=Cut("fixed", overlap=True)),
    "SIFT: cut, random order, no overlap": _sift(order="random"),
    "SIFT: cut, random order, overlap": _sift(z_step=Cut("random", overlap=True)),
    "SIFT: cut, random order, 20 sweeps": _sift(order="random", max_sweeps=20),
    "SIFT: quad": lambda: paper.quad(BITS, random_state=SEED),
}
CHANGES = {**CIFAR, **SIFT}


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks differs")
    parser.add_argument("--names", choices=CHANGES, nargs="+", default=list(CHANGES))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--tables", action="store_true")
    asked = parser.parse_args(list(options))
    if small:
        data = datasets.load("digits", n_train=150, n_base=400, n_query=50)
        print(table([measured(data, AS_SET, (5, 20)), measured(data, "SIFT: quad", (5, 20))]))
    elif asked.tables:
        TABLE.write_text(table(read(asked.results)), "utf-8")
        print(f"wrote {TABLE}")
    else:
        measure(asked)


def measure(asked: argparse.Namespace) -> None:
    done, console = known(asked.results, lambda record: record["change"]), Console(width=150)
    loaded: dict[bool, Dataset] = {}
    for name in asked.names:
        if name in done:
            continue
        if (name in SIFT) not in loaded:
            loaded[name in SIFT] = descriptors() if name in SIFT else images()
        record = measured(loaded[name in SIFT], name)
        append(asked.results, record)
        console.print(" | ".join(_cells(record)))


def images() -> Dataset:
    return datasets.load("cifar10-gist", n_train=10_000)


def descriptors() -> Dataset:
    """With the 2,000 nearest of 100,000 as ground truth."""
    return datasets.load(
        "cifar10-sift", n_train=5_000, n_base=100_000, n_query=1_000, n_neighbors=RANKS[-1]
    )


def measured(data: Dataset, name: str, pairs: tuple[int, int] | None = None) -> Record:
    """Train, and judge both the two-step solution and what MAC made of it."""
    hasher = CHANGES[name]()
    pairs = pairs or (paper.N_SIMILAR, paper.N_DISSIMILAR)
    began = clock.seconds()
    if name in SIFT:
        near = affinity.from_neighbors(data.train.X, *pairs, random_state=SEED)
        hasher.fit(data.train.X, affinity=near)  # type: ignore[call-arg]
    else:
        hasher.set_params(n_similar=pairs[0], n_dissimilar=pairs[1]).fit(data.train.X, data.train.y)
    seconds = clock.seconds() - began
    steps = hasher.history_
    n_pairs = len(hasher.affinity_)  # fewer where points are held out
    accepted = [step.loss / n_pairs for step in steps if step.accepted]
    first = _precision(data, hasher.two_step_, name)
    found = {
        "change": name,
        "points": hasher.n_learnt_,
        "pairs": n_pairs,
        "two_step": {"loss": steps[0].loss / n_pairs, "precision": first},
        "iterations": len(steps) - 1,
        "seconds": round(seconds, 1),
    }
    if name in SIFT:
        return found
    precision = _precision(data, hasher.hash_function_, name)
    mac = {"loss": min(accepted), "precision": precision}
    return found | {"mac": mac, "last": accepted[-1]}


def _precision(data: Dataset, h: Any, name: str) -> list[float]:
    query, base = (hashfunctions.encoded(h, part.X) for part in (data.query, data.base))
    ranks = [rank for rank in RANKS if rank <= len(base)]
    if name in SIFT and data.query.neighbors is not None:
        truth: dict[str, Any] = {"neighbors": data.query.neighbors}
    else:
        truth = {"query_labels": data.query.y, "base_labels": data.base.y}
    ties = "index" if name == BY_POSITION else "expected"
    found = metrics.precision_at_k(query, base, k=ranks, ties=ties, **truth)
    return [round(float(share), 5) for share in found]


def table(records: Sequence[Record]) -> str:
    """Markdown, in the order of the changes."""
    order = list(CHANGES)
    rows = [_cells(r) for r in sorted(records, key=lambda r: order.index(r["change"]))]
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(record: Record) -> list[str]:
    first, last = record["two_step"], record.get("mac")
    cells = [record["change"], f"{first['loss']:.4g}"]
    if last is None:
        shares = [f"{share:.3f}".lstrip("0") for share in first["precision"]]
        return [*cells, "", "", "", *shares]
    both = zip(first["precision"], last["precision"], strict=True)
    shares = [" → ".join(f"{share:.3f}".lstrip("0") for share in pair) for pair in both]
    losses = [f"{last['loss']:.4g}", f"{record['last']:.4g}"]
    return [*cells, *losses, str(record["iterations"]), *shares]
