"""Choose a hash function for points without labels, by the neighbours of points held out of them.

Of candidates that are about equally good the cheapest is taken. The number of bits is not chosen:
more of them are always better here, and what they cost is for the user to weigh.
"""

import warnings
from typing import Any

import numpy as np

from auxhash.compute import checks, clock, context
from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.compute.neighbors import nearest
from auxhash.learn.choose import Choice, Parameters, checked
from auxhash.learn.hasher import OutweighingRow
from auxhash.learn.neighborhash import NAMES, NeighborHash
from auxhash.learn.training.progress import new_bar
from auxhash.search import metrics

CANDIDATES = ("linear", "rbf", "network")  # from cheap to expensive
MAX_POINTS = 20_000  # training points of a trial
MAX_QUERIES = 1_000  # points held out
HELD_OUT_SHARE = 0.2  # of all points, up to MAX_QUERIES
NEAREST, AMONG = 10, 100
RECALL_TOLERANCE = 0.01  # below the best, within which the cheapest is taken


def choose_neighbors(
    X: AnyArray,
    fixed: Parameters | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    seconds: float | None = None,
    verbose: int = 0,
) -> Choice:
    """Choose the hash function of NeighborHash for X (n, D).

    Args:
        fixed: values of parameters that are not to be varied.
        seconds: no candidate is begun when so much time has passed, except the first.
        verbose: 1 shows a progress bar.
    """
    settings = checked(fixed, NeighborHash())
    random_state = checks.integer("random_state", random_state, 0)
    if seconds is not None:
        checks.number("seconds", seconds, 0, strict=True)
    train, held_out = _split(np.asarray(X), random_state)
    wanted = [{**settings, "hash_function": name} for name in CANDIDATES]
    candidates = [settings] if "hash_function" in settings else wanted
    metric = settings.get("metric", "cosine")
    with context.using(n_jobs=n_jobs):
        truth = nearest(train, held_out, min(NEAREST, len(train)), metric)[0]
    rows: list[dict[str, Any]] = []
    began = clock.seconds()
    with new_bar(disable=not verbose) as bar:
        task = bar.add_task("", total=len(candidates), stage="choosing")
        for candidate in candidates:
            if rows and seconds is not None and clock.seconds() - began >= seconds:
                break
            hasher = NeighborHash(**candidate, random_state=random_state, n_jobs=n_jobs)
            rows.append(_measured(hasher, train, held_out, truth, first=not rows))
            bar.update(task, advance=1, description=_best_so_far(rows))
    enough = max(row["recall"] for row in rows) - RECALL_TOLERANCE
    best = next(row for row in rows if row["recall"] >= enough)
    chosen = {} if "hash_function" in settings else {"hash_function": best["hash_function"]}
    protocol = (
        f"share of the {truth.shape[1]} nearest of {len(held_out)} held-out points among the first "
        f"{min(AMONG, len(train))} of {len(train)}, ties by their expected value, seed "
        f"{random_state}; the cheapest within {RECALL_TOLERANCE} of the best"
    )
    if len(rows) < len(candidates):
        protocol += f". The {seconds:g} s for it were spent after {len(rows)} of {len(candidates)}"
    return Choice(chosen, rows, protocol)


def _split(X: AnyArray, seed: int) -> tuple[AnyArray, AnyArray]:
    """Points to learn from, and points held out."""
    n_held_out = min(MAX_QUERIES, round(HELD_OUT_SHARE * len(X)))
    if not 1 <= n_held_out <= len(X) - 3:
        raise ValueError(f"{len(X)} points are too few to hold some out and choose by them")
    order = np.random.default_rng(seed).permutation(len(X))
    return X[np.sort(order[n_held_out:][:MAX_POINTS])], X[np.sort(order[:n_held_out])]


def _measured(
    hasher: NeighborHash, train: AnyArray, held_out: AnyArray, truth: Numbers, first: bool
) -> dict[str, Any]:
    began = clock.seconds()
    with warnings.catch_warnings():  # of what is odd about the points, once
        warnings.simplefilter("ignore", OutweighingRow)  # a row of the trial's; fit tells which
        if not first:
            warnings.simplefilter("ignore", UserWarning)
        hasher.fit(train)
    seconds = clock.seconds() - began
    among = min(AMONG, len(train))
    recall = metrics.recall_at_k(
        hasher.encode(held_out), hasher.codes_, neighbors=truth, k=among, n_jobs=hasher.n_jobs
    )
    return {
        "n_bits": hasher.n_bits,
        "metric": hasher.metric,
        "hash_function": hasher.hash_function,
        "points": len(train),
        "recall": float(recall),
        "seconds": seconds,
    }


def _best_so_far(rows: list[dict[str, Any]]) -> str:
    best = max(rows, key=lambda row: row["recall"])
    name = best["hash_function"] if best["hash_function"] in NAMES else "your own"
    return f"best {best['recall']:.3f}: {name}"
