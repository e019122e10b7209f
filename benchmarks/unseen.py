"""Classes that nobody has labelled yet: do codes learnt from the others find them?

python -m benchmarks unseen [--methods NAME ...] [--seeds 0 1 2] [--bits 32] [--results FILE]
                            [--tables]

CIFAR-10's GIST features, 10,000 training points of which birds, dogs and ships are left out; a base
of all ten classes. Queries of the three classes left out and queries of the seven others are judged
apart. A seed is that of the split and of the training.

What was measured stands in a file of JSON lines, docs/results/unseen.jsonl, and is not measured
again; `--tables` writes docs/tables/unseen.md out of it, and measures nothing.
"""

import argparse
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from auxhash import MACHash, NeighborHash
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset, Points
from auxhash.learn import baselines
from auxhash.learn.hasher import Hasher
from auxhash.learn.smooth import Refine
from auxhash.search import metrics
from benchmarks import peers
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables

FILE = RESULTS / "unseen.jsonl"
LEFT_OUT = (2, 5, 8)  # CIFAR's birds, dogs and ships
RANKS = (100, 1000)
NEIGHBOR_STEP_SHARES = (0.5, 0.8, 0.9)  # of steps for neighbours, the others for classes
LABEL_BIT_SHARES = (0.25, 0.5, 0.75)  # of the bits, learnt from labels
KEY = ("method", "bits", "seed")


class SideBySide(Hasher):
    """Codes of two methods as one: the bytes of the first, then those of the second.

    `share` is that of the first, which learns from labels, in the bits.
    """

    def __init__(
        self, first: Hasher, second: Hasher, share: float, n_bits: int = 32, random_state: int = 0
    ) -> None:
        self.first, self.second, self.share = first, second, share
        self.n_bits, self.random_state = n_bits, random_state

    def fit(self, X: Any, y: Any) -> "SideBySide":
        own = max(8, int(self.share * self.n_bits) // 8 * 8)
        settings = {"random_state": self.random_state}
        self.fitted_ = [
            clone(self.first).set_params(n_bits=own, **settings).fit(X, y),
            clone(self.second).set_params(n_bits=self.n_bits - own, **settings).fit(X),
        ]
        return self

    def encode(self, X: Any) -> Any:
        return np.hstack([hasher.encode(X) for hasher in self.fitted_])


def mixed(share: float, **settings: Any) -> Hasher:
    refine = Refine(objective="rank", neighbors=share, keep="refined")
    return MACHash(refine=refine, **settings)


def methods() -> Mapping[str, Hasher]:
    euclidean = {"metric": "euclidean"}
    network = MACHash(hash_function="network")
    return {
        "MACcut": MACHash(z_step="cut", mu=0.3, refine=None),
        "MACrefined": MACHash(),
        "rank of the classes": MACHash(refine=Refine(objective="rank", keep="refined")),
        **{f"rank, neighbors={share}": mixed(share) for share in NEIGHBOR_STEP_SHARES},
        "NeighborHash, linear": NeighborHash(hash_function="linear", **euclidean),
        "ITQ": baselines.ITQ(),
        "PCARR": baselines.PCARR(),
        **{
            f"MACrefined beside PCARR, {share}": SideBySide(MACHash(), baselines.PCARR(), share)
            for share in LABEL_BIT_SHARES
        },
        "network, ksh": network,
        **{
            f"network, ksh, beside PCARR, {share}": SideBySide(network, baselines.PCARR(), share)
            for share in LABEL_BIT_SHARES
        },
        "network, rank, neighbors=0.8": mixed(0.8, hash_function="network"),
        "NeighborHash, network": NeighborHash(hash_function="network", **euclidean),
    }


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or make a table of what it has."""
    if small:
        _run_small()
        return
    asked = _options(options)
    if asked.tables:
        write_tables({"unseen.md": table(read(asked.results))})
        return
    done = known(asked.results, lambda record: tuple(record[name] for name in KEY))
    for seed in asked.seeds:
        data = datasets.load("cifar10-gist", n_train=10_000, seed=seed)
        for name in asked.methods:
            if (name, asked.bits, seed) in done:
                continue
            setup = {"method": name, "bits": asked.bits, "seed": seed}
            record = setup | measured(methods()[name], data, asked.bits, seed)
            append(asked.results, record)
            print(_line(record), flush=True)


def measured(hasher: Hasher, data: Dataset, bits: int, seed: int) -> Record:
    """Train without the classes left out; precision of their queries and of the others."""
    assert data.train.y is not None
    train = data.train.take(~np.isin(data.train.y, LEFT_OUT))
    hasher.set_params(n_bits=bits)
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=seed)
    began = perf_counter()
    hasher.fit(train.X, train.y)
    seconds = perf_counter() - began
    base = hasher.encode(data.base.X)
    left_out = np.isin(data.query.y, LEFT_OUT)
    return {
        "unseen": _precision(hasher, data.query.take(left_out), base, data.base.y),
        "seen": _precision(hasher, data.query.take(~left_out), base, data.base.y),
        "seconds": seconds,
    }


def _precision(hasher: Hasher, queries: Points, base: Any, labels: Any) -> dict[str, float]:
    codes, k = hasher.encode(queries.X), [min(k, len(base)) for k in RANKS]
    shares = metrics.precision_at_k(codes, base, queries.y, labels, k)
    mean = metrics.mean_average_precision(codes, base, queries.y, labels)
    named = zip(map(str, RANKS), np.asarray(shares).tolist(), strict=True)
    return {**dict(named), "mAP": float(mean)}


def table(records: Sequence[Record]) -> str:
    """Markdown: means over the seeds."""
    kinds = [f"{part}, {column}" for part in ("unseen", "seen") for column in _columns()]
    rows = []
    for name in methods():
        for bits in sorted({r["bits"] for r in records}):
            own = [r for r in records if (r["method"], r["bits"]) == (name, bits)]
            if own:
                means = [
                    f"{np.mean([r[part][key] for r in own]):.3f}"
                    for part in ("unseen", "seen")
                    for key in _columns().values()
                ]
                seconds = f"{np.mean([r['seconds'] for r in own]):.0f}"
                rows.append([name, str(bits), *means, seconds, str(len(own))])
    return markdown(("method", "bits", *kinds, "s", "seeds"), rows)


def _columns() -> dict[str, str]:
    """Heads of columns, and the keys of what they hold."""
    return {f"at {k:,}": str(k) for k in RANKS} | {"mAP": "mAP"}


def _line(record: Record) -> str:
    parts = (
        f"{part} " + " / ".join(f"{record[part][key]:.3f}" for key in _columns().values())
        for part in ("unseen", "seen")
    )
    return (
        f"{record['method']}, seed {record['seed']}: {', '.join(parts)}, {record['seconds']:.0f} s"
    )


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks unseen")
    parser.add_argument("--methods", nargs="+", choices=[*methods()], default=[*methods()])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--bits", type=int, default=32)
    asked = parsed(parser, options, FILE)
    if asked.bits < 16:
        parser.error("--bits must be 16 at least: codes side by side are whole bytes")
    return asked


BOTH = "MACrefined beside PCARR, 0.5"


def _run_small() -> None:
    """Show that all of it runs, on made data."""
    X, y = peers.decaying(700, 20, 0)
    data = datasets.from_arrays(X[:600], X[600:], y=y[:600], query_y=y[600:], n_train=300)
    records: list[Record] = []
    for name in ("MACrefined", "rank, neighbors=0.8", "NeighborHash, linear", "ITQ", BOTH):
        hasher = methods()[name]
        if isinstance(hasher, NeighborHash):
            hasher.set_params(n_steps=20)
        elif isinstance(hasher, MACHash):
            refine = hasher.refine if isinstance(hasher.refine, Refine) else Refine()
            few = Refine(20, objective=refine.objective, neighbors=refine.neighbors)
            hasher.set_params(refine=few, max_iter=2, n_similar=10, n_dissimilar=30)
        elif isinstance(hasher, SideBySide):
            hasher.set_params(first__refine=Refine(20), first__max_iter=2)
            hasher.set_params(first__n_similar=10, first__n_dissimilar=30)
        records.append({"method": name, "bits": 16, "seed": 0} | measured(hasher, data, 16, 0))
    first = records[0]["unseen"]["mAP"]
    for record in records:
        print(_line(record), f"ratio to MACrefined {record['unseen']['mAP'] / first:.2f}")
    print(table(records))
