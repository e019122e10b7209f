"""The tables of the documentation, measured: python docs/measure.py NAME [--small] [--jobs N].

Writes docs/tables/NAME.md, or prints the table with --small, which only shows that all of it runs.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from auxhash import MACHash, NeighborHash, TwoStepHash, affinity, baselines, datasets, metrics
from auxhash.affinity import neighbors
from auxhash.datasets import Dataset
from auxhash.hasher import Hasher
from auxhash.refine import Refine

TABLES = Path(__file__).parent / "tables"
SEEDS = (0, 1, 2)
PAIRS = {"n_similar": 20, "n_dissimilar": 100}
BRIEF = Refine(n_steps=10, batch=100)
RANKS = (10, 100)

Row = dict[str, str]


def bits(small: bool, jobs: int | None) -> Iterator[Row]:
    for n_bits in (4, 8) if small else (8, 16, 32, 64, 128):
        yield _tried({"bits": str(n_bits)}, {"n_bits": n_bits}, small, jobs)


def seeds(small: bool, jobs: int | None) -> Iterator[Row]:
    for seed in SEEDS[:2] if small else SEEDS:
        yield _tried({"seed": str(seed)}, {}, small, jobs, seeds=(seed,))


def loss(small: bool, jobs: int | None) -> Iterator[Row]:
    for name in ("ksh", "hinge") if small else ("ksh", "hinge", "esplh", "ee", "bre"):
        yield _tried({"loss": name}, {"loss": name}, small, jobs)


def solver(small: bool, jobs: int | None) -> Iterator[Row]:
    for refine in (None, "auto"):
        after = "no" if refine is None else "yes"
        for name in ("descent", "cut") if small else ("descent", "cut", "quad"):
            settings = {"z_step": name, "refine": refine}
            yield _tried({"z_step": name, "refined": after}, settings, small, jobs, lower=True)
            if refine is None:
                told = {"z_step": f"{name}, two-step", "refined": after}
                yield _tried(told, settings, small, jobs, TwoStepHash, lower=True)


def kept(small: bool, jobs: int | None) -> Iterator[Row]:
    """What refinement leaves, and the lower of that and MAC's: few points, and more of them."""
    for n_train in (100,) if small else (200, 500, 1000):
        for kind in ("linear", "rbf"):
            for name, refine in {"the refined": "auto", "the lower L(h)": Refine()}.items():
                told = {"points": str(n_train), "hash function": kind, "kept": name}
                settings = {"hash_function": kind, "refine": refine}
                yield _tried(told, settings, small, jobs, lower=True, n_train=n_train)


def hash_function(small: bool, jobs: int | None) -> Iterator[Row]:
    for name in ("linear", "rbf") if small else ("linear", "rbf", "network", "trees"):
        told, settings = {"hash_function": name}, {"hash_function": name}
        if name != "trees":
            yield _tried(told, settings, small, jobs)
        else:  # 32 x 200 trees an iteration: only the two-step solution is affordable here
            told = {"hash_function": "trees, two-step"}
            yield _tried(told, settings | {"refine": None}, small, jobs, TwoStepHash)


def kappa(small: bool, jobs: int | None) -> Iterator[Row]:
    pairs = ((5, 10), (5, 25)) if small else ((1, 5), (5, 25), (20, 100), (40, 200), (None, None))
    for refine in (None, "auto"):
        for similar, dissimilar in pairs:
            told = {
                "kappa+": "all" if similar is None else str(similar),
                "kappa-": "all" if dissimilar is None else str(dissimilar),
                "refined": "no" if refine is None else "yes",
            }
            settings = {"n_similar": similar, "n_dissimilar": dissimilar, "refine": refine}
            yield _tried(told, settings, small, jobs)


def comparison(small: bool, jobs: int | None) -> Iterator[Row]:
    """Equal bits, all trained on the base; the ground truth is the label, or Euclidean distance."""
    data = datasets.load("digits", n_base=300 if small else None)
    near = neighbors.nearest(data.base.X, data.query.X, 10)[0]
    yield {"bits": "", "method": "no codes: Euclidean distance", **_ranked(near, data, near)}
    yield {"bits": "64", "method": "signs of the centred pixels", **_coded(_Signs(), data, near)}
    for n_bits in (16,) if small else (16, 32, 64):
        for name, ids in _quantised(data, n_bits):
            yield {"bits": str(n_bits), "method": name, **_ranked(ids, data, near)}
        for name, hasher in _hashers(data, n_bits, small, jobs):
            yield {"bits": str(n_bits), "method": name, **_coded(hasher, data, near)}


def _tried(
    told: Row,
    settings: dict[str, Any],
    small: bool,
    jobs: int | None,
    method: type[MACHash] = MACHash,
    lower: bool = False,
    seeds: Sequence[int] = SEEDS,
    n_train: int = 500,
) -> Row:
    """Mean over seeds of both the split and the training; `lower` adds the loss."""
    found = []
    for seed in seeds[:1] if small else seeds:
        data = datasets.load("digits", n_train=100 if small else n_train, seed=seed)
        brief = {"n_bits": 8, "refine": BRIEF, "n_similar": 5, "n_dissimilar": 10} if small else {}
        if settings.get("refine", "auto") is None:
            brief.pop("refine", None)
        hasher = method(**{"n_bits": 32, **PAIRS, **settings, **brief})
        hasher.set_params(random_state=seed, n_jobs=jobs)
        clock = process_time()
        hasher.fit(data.train.X, data.train.y)
        seconds = process_time() - clock
        result = metrics.evaluate(
            hasher.encode(data.query.X),
            hasher.encode(data.base.X),
            data.query.y,
            data.base.y,
            k=RANKS,
            n_jobs=jobs,
        )
        found.append(
            [
                *([hasher.loss_] if lower else []),
                *result.precision,
                result.mean_average_precision,
                result.utilization,
                seconds,
            ]
        )
    names = ["L(h)"] if lower else []
    names += [*(f"precision at {k}" for k in RANKS), "mAP", "effective bits", "CPU s"]
    shapes = [",.0f"] if lower else []
    shapes += [*(".3f" for _ in RANKS), ".3f", ".1f", ".1f"]
    means = np.mean(found, axis=0)
    return told | {n: format(m, shape) for n, m, shape in zip(names, means, shapes, strict=True)}


class _Signs:
    """One bit per feature: is it above its mean?"""

    def fit(self, X: Any) -> "_Signs":
        self.mean = X.mean(axis=0)
        return self

    def encode(self, X: Any) -> Any:
        return np.packbits(X >= self.mean, axis=1, bitorder="little")


def _hashers(
    data: Dataset, n_bits: int, small: bool, jobs: int | None
) -> Iterator[tuple[str, Hasher]]:
    settings = {"n_bits": n_bits, "random_state": 0}
    yield "random hyperplanes (LSH)", baselines.LSH(**settings)
    yield "PCA, random rotation (PCARR)", baselines.PCARR(**settings)
    yield "PCA, learnt rotation (ITQ)", baselines.ITQ(**settings)
    X, y = data.train.X, data.train.y
    steps = 10 if small else None
    for kind in ("linear", "network"):
        learnt = NeighborHash(n_bits, "euclidean", kind, n_steps=steps, random_state=0, n_jobs=jobs)
        yield f"NeighborHash, {kind}", learnt.fit(X)
    near = affinity.from_neighbors(X, **PAIRS, random_state=0)
    refine = BRIEF if small else "auto"
    mac = MACHash(**settings, **PAIRS, refine=refine, n_jobs=jobs)
    yield "MACHash, from Euclidean neighbours, linear", mac.fit(X, affinity=near)
    for kind in ("linear", "rbf"):
        settings |= {"hash_function": kind}
        mac = MACHash(**settings, **PAIRS, refine=refine, n_jobs=jobs)
        yield f"MACHash, from labels, {kind}", mac.fit(X, y)


def _coded(hasher: Any, data: Dataset, near: Any) -> Row:
    if isinstance(hasher, (_Signs, baselines.LSH, baselines.PCARR, baselines.ITQ)):
        hasher.fit(data.train.X)
    query, base = hasher.encode(data.query.X), hasher.encode(data.base.X)
    right = metrics.precision_at_k(query, base, data.query.y, data.base.y, k=RANKS)
    found = metrics.recall_at_k(query, base, neighbors=near, k=RANKS)
    return _shown(right, found)


def _quantised(data: Dataset, n_bits: int) -> Iterator[tuple[str, Any]]:
    """Product quantisation: the distance of the query itself to the quantised points."""
    import faiss

    for each in (4, 8):  # bits per part of the vector; 2^bits centres for it
        index = faiss.IndexPQ(data.base.X.shape[1], n_bits // each, each)
        index.pq.cp.min_points_per_centroid = 1
        index.train(data.train.X.astype(np.float32))
        index.add(data.base.X.astype(np.float32))
        ids = index.search(data.query.X.astype(np.float32), max(RANKS))[1]
        yield f"product quantisation, {n_bits // each} parts of {each} bits", ids


def _ranked(ids: Any, data: Dataset, near: Any) -> Row:
    if ids.shape[1] < max(RANKS):
        ids = neighbors.nearest(data.base.X, data.query.X, max(RANKS))[0]
    same = data.base.y[ids] == data.query.y[:, None]
    found = (ids[:, :, None] == near[:, None, :]).any(axis=2)
    return _shown(
        [same[:, :k].mean() for k in RANKS],
        [found[:, :k].sum(axis=1).mean() / near.shape[1] for k in RANKS],
    )


def _shown(right: Any, found: Any) -> Row:
    row = {f"same digit, at {k}": f"{v:.3f}" for k, v in zip(RANKS, right, strict=True)}
    return row | {
        f"of the 10 nearest, in {k}": f"{v:.3f}" for k, v in zip(RANKS, found, strict=True)
    }


MEASURES: dict[str, Callable[[bool, int | None], Iterator[Row]]] = {
    "seeds": seeds,
    "bits": bits,
    "loss": loss,
    "solver": solver,
    "hash-function": hash_function,
    "kappa": kappa,
    "kept": kept,
    "comparison": comparison,
}


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    lines = ["| " + " | ".join(rows[0]) + " |"]
    lines += ["|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure a table of the documentation.")
    parser.add_argument("name", choices=MEASURES)
    parser.add_argument("--small", action="store_true", help="only show that it runs")
    parser.add_argument("--jobs", type=int, help="threads")
    asked = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "of .* points have fewer than n_")
        _tried({}, {}, small=True, jobs=asked.jobs)  # so that no time is a compiler's
        table = markdown(list(MEASURES[asked.name](asked.small, asked.jobs)))
    if asked.small:
        print(table)
    else:
        (TABLES / f"{asked.name}.md").write_text(table, "utf-8")


if __name__ == "__main__":
    main()
