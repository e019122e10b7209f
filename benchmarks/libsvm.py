"""Kernel SVMs by LIBSVM as hash functions, beside ours: the paper's footnote on hash functions.

Ours, like the paper's, is a linear SVM on 500 radial basis functions, whose centres do not change.
LIBSVM (scikit-learn's SVC) finds support vectors anew whenever the codes of a bit change. Both have
the same width and the same C. Each row is MAC with the cut solver and its two-step solution, from
the same pairs.

python -m benchmarks libsvm
"""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash import MACHash
from auxhash.codes import pack, sign
from auxhash.compute import clock
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.mac import affinity, hashfunctions
from auxhash.search import metrics

C = 100.0
SEED = 0
K = 100


def main(small: bool = False) -> None:
    """Print the table."""
    name, n_train, n_base, n_query, pairs, bits = (
        ("digits", 100, 200, 50, (5, 25), 4)
        if small
        else ("cifar10-gist", 1_000, 3_000, 500, (20, 100), 16)
    )
    data = datasets.load(name, n_train=n_train, n_base=n_base, n_query=n_query)
    table = Table(
        "hash function",
        "seconds",
        "ratio",
        "iterations",
        "kernels per code",
        "L(h), two-step",
        "L(h), MAC",
        f"precision at {K}, two-step",
        "MAC",
        title=f"{data.protocol} {bits} bits, {pairs} pairs per point, seed {SEED}.",
    )
    ours = None
    for label, kind in {"rbf": "rbf", "LIBSVM": _libsvm(data)}.items():
        measured = _measure(data, kind, pairs, bits)
        ours = ours or measured[0]
        numbers = (
            f"{measured[0]:.1f}",
            f"{measured[0] / ours:.1f}",
            *(f"{n:.0f}" for n in measured[1:3]),
        )
        losses = (f"{loss:.4g}" for loss in measured[3:5])
        table.add_row(label, *numbers, *losses, *(f"{p:.3f}" for p in measured[5:]))
    Console(width=160).print(table)


def _libsvm(data: Dataset) -> Any:
    """An SVC with the width that hash_function="rbf" has on these points."""
    from sklearn.svm import SVC

    sigma = hashfunctions.RadialBasis().fit(data.train.X, np.random.default_rng(0)).sigma
    return SVC(kernel="rbf", C=C, gamma=1 / (2 * sigma**2))


def _measure(data: Dataset, kind: Any, pairs: tuple[int, int], bits: int) -> tuple[float, ...]:
    """Seconds, iterations, kernels to compute for a code, losses and precision before and after."""
    drawn = affinity.from_labels(np.asarray(data.train.y), *pairs, random_state=SEED)
    mu = 0.3 * sum(pairs) / 600  # the paper's, for its 100 and 500 pairs per point
    hasher = MACHash(
        bits, z_step="cut", mu=mu, refine=None, hash_function=kind, C=C, random_state=SEED
    )
    began = clock.seconds()
    hasher.fit(data.train.X, data.train.y, affinity=drawn)
    seconds = clock.seconds() - began
    history = hasher.history_
    precisions = []
    for h in (hasher.two_step_, hasher.hash_function_):
        query, base = (
            pack(sign(hashfunctions.outputs(h, part.X))) for part in (data.query, data.base)
        )
        precisions.append(metrics.precision_at_k(query, base, data.query.y, data.base.y, K))
    kernels = _kernels(hasher.hash_function_)
    return seconds, len(history) - 1, kernels, history[0].loss, hasher.loss_, *precisions


def _kernels(h: Any) -> int:
    """Number of points whose kernel with a new point has to be computed for its code."""
    if isinstance(h, hashfunctions.SVMHash):
        return len(h.map.centers)
    support = [one.support_ for one in h.fitted if hasattr(one, "support_")]
    return len(np.unique(np.concatenate(support)))
