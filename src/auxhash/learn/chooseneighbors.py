"""Choose a hash function for points without labels, by the neighbours of points held out of them.

The number of bits is not chosen: more of them are always better here, and what they cost is for
the user to weigh.
"""

from operator import itemgetter
from typing import Any

import numpy as np

from auxhash.compute import checks, deadline
from auxhash.compute.arrays import AnyArray
from auxhash.compute.bars import new_bar
from auxhash.compute.neighbors import nearest
from auxhash.learn.choose import Choice, Parameters, checked, timed_fit, untried_in_words, within
from auxhash.learn.neighborhash import NAMES, NeighborHash
from auxhash.search import metrics

CANDIDATES = ("linear", "rbf", "network")  # from cheap to expensive
MAX_POINTS = 20_000  # training points of a trial
MAX_QUERIES = 1_000  # points held out
HELD_OUT_SHARE = 0.2  # of all points, up to MAX_QUERIES
N_NEAREST, N_FIRST = 10, 100


def choose_neighbors(
    X: AnyArray,
    fixed: Parameters | None = None,
    random_state: int = 0,
    seconds: float | None = None,
    verbose: int = 0,
) -> Choice:
    """Choose the hash function of NeighborHash for X (n, D).

    Args:
        fixed: values of parameters that are not to be varied.
        seconds: the time for it; a trial that is under way then is given up, and without any that
            ended nothing is chosen.
        verbose: 1 shows a progress bar.
    """
    settings = checked(fixed, NeighborHash())
    random_state = checks.integer("random_state", random_state, 0)
    train, held_out = _split(np.asarray(X), random_state)
    wanted = [{**settings, "hash_function": name} for name in CANDIDATES]
    candidates = [settings] if "hash_function" in settings else wanted
    rows: list[dict[str, Any]] = []
    untried: list[Parameters] = []
    with within(seconds), new_bar(disable=not verbose) as bar:
        task = bar.add_task("", total=len(candidates), stage="choosing")
        for candidate in candidates:
            hasher = NeighborHash(**candidate, random_state=random_state)
            try:
                rows.append(_measured(hasher, train, held_out, first=not rows))
            except deadline.DeadlineError:
                untried.append({"hash_function": hasher.hash_function})
                continue
            bar.update(task, advance=1, description=_best_so_far(rows))
    chosen = {}
    if rows and "hash_function" not in settings:
        chosen["hash_function"] = max(rows, key=itemgetter("recall"))["hash_function"]
    protocol = (
        f"share of the {min(N_NEAREST, len(train))} nearest of {len(held_out)} held-out points "
        f"among the first {min(N_FIRST, len(train))} of {len(train)}, ties by their expected "
        f"value, seed {random_state}"
    )
    return Choice(chosen, rows, protocol + untried_in_words(untried, seconds))


def _split(X: AnyArray, seed: int) -> tuple[AnyArray, AnyArray]:
    """Points to learn from, and points held out."""
    n_held_out = min(MAX_QUERIES, round(HELD_OUT_SHARE * len(X)))
    if not 1 <= n_held_out <= len(X) - 3:
        raise ValueError(f"{len(X)} points are too few to hold some out and choose by them")
    order = np.random.default_rng(seed).permutation(len(X))
    return X[np.sort(order[n_held_out:][:MAX_POINTS])], X[np.sort(order[:n_held_out])]


def _measured(
    hasher: NeighborHash, train: AnyArray, held_out: AnyArray, first: bool
) -> dict[str, Any]:
    seconds = timed_fit(hasher, first, train)
    truth = nearest(train, held_out, min(N_NEAREST, len(train)), hasher.metric)[0]
    among = min(N_FIRST, len(train))
    codes = hasher.encode(held_out)
    recall = metrics.recall_at_k(codes, hasher.codes_, neighbors=truth, k=among)
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
