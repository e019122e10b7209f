"""Choices that the paper leaves open or that we make otherwise, one at a time: docs/verdicts.md.

python -m benchmarks differs [--names NAME ...] [--seeds N ...] [--results FILE] [--tables]

MACcut as `auxhash.paper` sets it, but with MAC's own h step and the iterate of lowest L(h), which
the runs of the figures had; blocks in one order, 16 bits, linear: 10,000 of CIFAR's GIST features
with labels. Whether blocks may overlap is asked of 5,000 SIFT descriptors and their
neighbours, as classes give none that could; there, two-step hashing alone, and quad beside it. What
was measured stands in a file of JSON lines, docs/results/differs.jsonl, and is not measured again.
`--tables` writes docs/tables/differs.md out of it.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from auxhash import Validation
from auxhash.compute import clock
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.learn import paper
from auxhash.learn.hasher import Hasher
from auxhash.mac import affinity, hashfunctions, presets
from auxhash.mac.zstep import Cut
from auxhash.search import metrics
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables

FILE = RESULTS / "differs.jsonl"
BITS, RANKS = 16, (100, 2_000)
HEAD = ("change", "seeds", "two-step", "MAC", "last", "iterations")  # L(h) per pair
HEAD += (*(f"precision at {k:,}" for k in RANKS), f"more at {RANKS[0]}")

Make = Callable[[int], Hasher]  # of the seed


def _cifar(**changes: Any) -> Make:
    settings = {"order": "fixed", "h_step": "monotone", "iterate": "lowest", **changes}
    return lambda seed: paper.maccut(BITS, random_state=seed, **settings)


def _liblinear(seed: int) -> Hasher:
    from sklearn.svm import LinearSVC

    return _cifar(hash_function=LinearSVC(C=presets.C, random_state=seed))(seed)


def _sift(**changes: Any) -> Make:
    return lambda seed: paper.cut(BITS, random_state=seed, **{"order": "fixed", **changes})


AS_SET, BY_POSITION = "as set", "ties by position in the base"
DRAWN_ANEW = "other images to learn from and as queries"
CIFAR: dict[str, Make] = {
    AS_SET: _cifar(),
    BY_POSITION: _cifar(),
    "no validation": _cifar(validation=None),
    "3 in 10 points held out for validation": _cifar(validation=0.3),
    "validation by the first 10": _cifar(validation=Validation(presets.VALIDATION, k=10)),
    "validation by the first 1,000": _cifar(validation=Validation(presets.VALIDATION, k=1_000)),
    "1 sweep per Z step": _cifar(max_sweeps=1),
    "5 sweeps per Z step": _cifar(max_sweeps=5),
    "20 sweeps per Z step": _cifar(max_sweeps=20),
    "C = 1": _cifar(C=1.0),
    "C = 10,000": _cifar(C=10_000.0),
    "mu over b², as for eq. (3) unscaled": _cifar(mu=presets.FIRST_MU_CUT / BITS**2),
    "plain h step": _cifar(h_step="plain"),
    "plain h step, no validation": _cifar(h_step="plain", validation=None),
    "plain h step, mu over b²": _cifar(h_step="plain", mu=presets.FIRST_MU_CUT / BITS**2),
    "blocks in random order": _cifar(order="random"),
    "plain h step, blocks in random order": _cifar(h_step="plain", order="random"),
    "LIBLINEAR in the h step": _liblinear,
    DRAWN_ANEW: _cifar(),
}
SIFT: dict[str, Make] = {
    "SIFT: cut, one order, no overlap": _sift(),
    "SIFT: cut, one order, overlap": _sift(z_step=Cut("fixed", overlap=True)),
    "SIFT: cut, random order, no overlap": _sift(order="random"),
    "SIFT: cut, random order, overlap": _sift(z_step=Cut("random", overlap=True)),
    "SIFT: cut, random order, 20 sweeps": _sift(order="random", max_sweeps=20),
    "SIFT: quad": lambda seed: paper.quad(BITS, random_state=seed),
}
CHANGES = {**CIFAR, **SIFT}
FIRST = next(iter(SIFT))  # what the others on SIFT are set beside


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks differs")
    parser.add_argument("--names", choices=CHANGES, nargs="+", default=list(CHANGES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    asked = parsed(parser, options, FILE)
    if small:
        data = datasets.load("digits", n_train=150, n_base=400, n_query=50)
        names, pairs = (AS_SET, FIRST, "SIFT: quad"), (5, 20)
        print(table([measured(data, name, seed, pairs) for name in names for seed in (0, 1)]))
    elif asked.tables:
        write_tables({"differs.md": table(read(asked.results))})
    else:
        measure(asked)


def measure(asked: argparse.Namespace) -> None:
    done = known(asked.results, lambda record: (record["change"], record["seed"]))
    for name, seed in product(asked.names, asked.seeds):
        if (name, seed) not in done:
            record = measured(loaded(name), name, seed)
            append(asked.results, record)
            print(record)


def loaded(name: str) -> Dataset:
    """Data of a change; of SIFT, with the 2,000 nearest of 100,000 as ground truth."""
    if name not in SIFT:
        return datasets.load("cifar10-gist", n_train=10_000, seed=int(name == DRAWN_ANEW))
    return datasets.load(
        "cifar10-sift", n_train=5_000, n_base=100_000, n_query=1_000, n_neighbors=RANKS[-1]
    )


def measured(data: Dataset, name: str, seed: int, pairs: tuple[int, int] | None = None) -> Record:
    """Train, and judge both the two-step solution and what MAC made of it."""
    hasher = CHANGES[name](seed)
    pairs = pairs or (presets.N_SIMILAR, presets.N_DISSIMILAR)
    began = clock.seconds()
    if name in SIFT:
        near = affinity.from_neighbors(data.train.X, *pairs, random_state=seed)
        hasher.fit(data.train.X, affinity=near)  # type: ignore[call-arg]
    else:
        hasher.set_params(n_similar=pairs[0], n_dissimilar=pairs[1]).fit(data.train.X, data.train.y)
    seconds = clock.seconds() - began
    steps = hasher.history_
    n_pairs = len(hasher.affinity_)  # fewer where points are held out
    accepted = [step.loss / n_pairs for step in steps if step.accepted]
    first = _precision(data, hasher.two_step_, name)
    record = {
        "change": name,
        "seed": seed,
        "points": hasher.n_learnt_,
        "pairs": n_pairs,
        "two_step": {"loss": steps[0].loss / n_pairs, "precision": first},
        "iterations": len(steps) - 1,
        "seconds": round(seconds, 1),
    }
    if name in SIFT:
        return record
    precision = _precision(data, hasher.hash_function_, name)
    mac = {"loss": min(accepted), "precision": precision}
    return record | {"mac": mac, "last": accepted[-1]}


def _precision(data: Dataset, h: Any, name: str) -> list[float]:
    query, base = (hashfunctions.encoded(h, part.X) for part in (data.query, data.base))
    ranks = [rank for rank in RANKS if rank <= len(base)]
    if name in SIFT and data.query.neighbors is not None:
        truth: dict[str, Any] = {"neighbors": data.query.neighbors}
    else:
        truth = {"query_labels": data.query.y, "base_labels": data.base.y}
    ties = "index" if name == BY_POSITION else "expected"
    shares = metrics.precision_at_k(query, base, k=ranks, ties=ties, **truth)
    return [round(float(share), 5) for share in shares]


def table(records: Sequence[Record]) -> str:
    """Markdown, in the order of the changes: means over the seeds.

    The last column is precision at the first rank beyond that without the change, seed by seed:
    the mean, and the lowest and the highest of several.
    """
    by_name = {name: [r for r in records if r["change"] == name] for name in CHANGES}
    rows = []
    for name, own in by_name.items():
        if own:
            without = {r["seed"]: r for r in by_name[FIRST if name in SIFT else AS_SET]}
            rows.append([*_cells(own), _more(own, without)])
    return markdown(HEAD, rows)


def _cells(records: Sequence[Record]) -> list[str]:
    def mean(*names: str) -> Any:
        values = records
        for name in names:
            values = [value[name] for value in values]
        return np.mean(values, axis=0)

    cells = [records[0]["change"], str(len(records)), f"{mean('two_step', 'loss'):.4g}"]
    first = mean("two_step", "precision")
    if "mac" not in records[0]:
        return [*cells, "", "", "", *map(_share, first)]
    both = zip(first, mean("mac", "precision"), strict=True)
    shares = [" → ".join(map(_share, pair)) for pair in both]
    losses = [f"{mean('mac', 'loss'):.4g}", f"{mean('last'):.4g}"]
    return [*cells, *losses, f"{mean('iterations'):.0f}", *shares]


def _more(records: Sequence[Record], without: dict[int, Record]) -> str:
    gains = sorted(
        _last(record) - _last(without[record["seed"]])
        for record in records
        if record["seed"] in without and without[record["seed"]] is not record
    )
    if not gains:
        return ""
    ends = f" ({_share(gains[0], '+')} to {_share(gains[-1], '+')})" if len(gains) > 1 else ""
    return _share(float(np.mean(gains)), "+") + ends


def _last(record: Record) -> float:
    """Precision at the first rank, of MAC where it was run."""
    return float(record.get("mac", record["two_step"])["precision"][0])


def _share(value: float, sign: str = "") -> str:
    """A share without the zero before the point."""
    return f"{value:{sign}.3f}".replace("0.", ".", 1)
