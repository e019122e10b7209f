"""One training run, what is kept of it and what is measured: shared by compare and the figures.

A run keeps codes, the model and facts, never features: all measures are computed from the codes.
"""

import os
import platform
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from auxhash.codes import pack, sign, unpack
from auxhash.compute import clock, context, threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.device import DeviceName
from auxhash.compute.version import __version__
from auxhash.experiments.cells import Configuration, Facts
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.learn.estimators import PARAMETERS_WITHOUT_EFFECT, AffinityHash
from auxhash.learn.hasher import Hasher
from auxhash.learn.training.interrupt import TrainingInterrupted
from auxhash.mac import affinity, hashfunctions, losses
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions.step import POINTS_PER_CHUNK
from auxhash.model import modelfile
from auxhash.model.encoding import Arrays
from auxhash.model.fitted import stored
from auxhash.model.identity import in_words
from auxhash.model.model import Model
from auxhash.search import metrics
from auxhash.search.metrics import Evaluation
from auxhash.search.metrics.truth import Truth

PairNumbers = tuple[int | None, int | None]  # n_similar and n_dissimilar; None takes all

PARTS = ("train", "base", "query")
TWO_STEP = "two-step "  # before a part's name: the codes of the two-step solution MAC started from

MAX_EXACT_DISTANCES = 2 * 10**8  # between vectors that are ranked: ten seconds
QUERIES_PER_TASK = 16

# Parameters of MACHash that older runs, without them, had at these values.
ADDED_SINCE = {"h_step": "monotone", "iterate": "lowest"}


def data_identity(data: Dataset) -> str:
    """A digest of what the data set holds: every point and every label."""
    parts = data.train, data.base, data.query
    return in_words([data.name, *((part.X, part.y) for part in parts)])


def prepared(hasher: Hasher, n_bits: int, **settings: object) -> Hasher:
    """A fresh copy with n_bits, and with those of the settings that it has parameters for."""
    fresh: Hasher = clone(hasher)
    own = fresh.get_params(deep=False)
    fresh.set_params(n_bits=n_bits)  # raises where it has none
    fresh.set_params(**{name: value for name, value in settings.items() if name in own})
    return fresh


def on_device(hasher: Hasher, device: DeviceName) -> Hasher:
    """The hasher itself, set to be trained on that device if it can be: others stay here."""
    if "device" not in hasher.get_params(deep=False):
        return hasher
    hasher.set_params(device=device)
    try:
        hasher._check_parameters()
    except ValueError:  # a solver or a hash function that is for the processor
        hasher.set_params(device="cpu")
    return hasher


def learns_from_pairs(hasher: Hasher) -> bool:
    """Return True if the hasher can be given the pairs to learn from."""
    return bool(has_fit_parameter(hasher, "affinity"))


def configuration(mark: str, hasher: Hasher, pairs: PairNumbers, seed: int) -> Configuration:
    """Everything that a run's result depends on, so neither threads nor progress bars."""
    every = hasher.get_params(deep=False)
    elsewhere = every.get("device", "cpu") != "cpu"  # which gives other codes
    return {
        "data": mark,
        "method": in_words(type(hasher)),
        "parameters": {
            name: in_words(value)
            for name, value in every.items()
            if (name not in PARAMETERS_WITHOUT_EFFECT or (name == "device" and elsewhere))
            and not (name in ADDED_SINCE and value == ADDED_SINCE[name])
        },
        "pairs": in_words([*pairs, seed]),
        "version": __version__,
    }


def draw_pairs(data: Dataset, pairs: PairNumbers, seed: int) -> Affinity:
    """The pairs that every method of a seed learns from: by label, else by nearest neighbours."""
    n_similar, n_dissimilar = pairs
    if data.train.y is not None:
        return affinity.from_labels(data.train.y, n_similar, n_dissimilar, seed)
    return affinity.from_neighbors(data.train.X, n_similar, n_dissimilar, random_state=seed)


def train(hasher: Hasher, data: Dataset, pairs: Affinity) -> tuple[Facts, Arrays]:
    """Fit; return facts, packed codes of train, base and query, and the bytes of a model file.

    The two-step codes that MAC started from are kept, too: the two-step method needs no run.
    Raises KeyboardInterrupt where Ctrl-C stopped the training.
    """
    options = {"affinity": pairs} if learns_from_pairs(hasher) else {}
    began = clock.seconds()
    fit(hasher, data.train.X, data.train.y, **options)
    trained = clock.seconds() - began
    points = {name: getattr(data, name).X for name in PARTS}
    began = clock.seconds()
    codes: Arrays = {name: hasher.encode(X) for name, X in points.items()}
    seconds = clock.seconds() - began
    history = [asdict(step) for step in hasher.history_] if isinstance(hasher, AffinityHash) else []
    if len(history) > 1:
        codes |= {TWO_STEP + name: _two_step(hasher, X) for name, X in points.items()}
    kept = _file(hasher)
    if kept is not None:
        codes["model"] = np.frombuffer(kept, np.uint8)
    facts = {
        "seconds": trained,
        "codes_per_second": sum(len(X) for X in points.values()) / seconds,
        "bytes": model_bytes(hasher),
        "history": history,
        "machine": machine(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return facts, codes


def fit(hasher: Hasher, *points: Any, **options: Any) -> None:
    """Fit; raise KeyboardInterrupt after Ctrl-C: what was learnt until then is no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingInterrupted)
        hasher.fit(*points, **options)
    if getattr(hasher, "interrupted_", False):
        raise KeyboardInterrupt


def measure(
    codes: Arrays,
    n_bits: int,
    data: Dataset,
    k: Sequence[int],
    device: DeviceName = "cpu",
) -> Evaluation:
    """All measures of retrieval, of searching the base's codes for those of the queries."""
    labels = (data.query.y, data.base.y) if data.query.neighbors is None else (None, None)
    return metrics.evaluate(
        codes["query"],
        codes["base"],
        *labels,
        neighbors=data.query.neighbors,
        k=k,
        n_bits=n_bits,
        device=device,
    )


def exact(data: Dataset, k: Sequence[int]) -> tuple[list[float], float]:
    """Precision at each k (NaN beyond the base) and mAP of the base ranked by exact distances.

    Of a large data set, the first queries count: MAX_EXACT_DISTANCES distances at most.
    """
    base, query = np.asarray(data.base.X, np.float32), np.asarray(data.query.X, np.float32)
    query = query[: max(1, MAX_EXACT_DISTANCES // len(base))]
    # Of what is far from zero, digits would be lost; whole numbers stay whole, so that ties do.
    center = np.rint(base.mean(axis=0))
    base, query = base - center, query - center
    near, n = data.query.neighbors, len(query)
    if near is None:
        truth = Truth(np.asarray(data.query.y)[:n], data.base.y, None, n, len(base))
    else:
        truth = Truth(None, None, near[:n], n, len(base))
    norms = (base * base).sum(axis=1)
    ranks = np.arange(1, len(base) + 1)
    within = [rank for rank in k if rank <= len(base)]

    def measured(rows: slice) -> AnyArray:
        order = np.argsort(norms - 2 * query[rows] @ base.T, axis=1, kind="stable")
        right = np.take_along_axis(truth.relevant(rows), order, axis=1)
        precision = right.cumsum(axis=1) / ranks
        average = (precision * right).sum(axis=1) / np.maximum(right.sum(axis=1), 1)
        return np.column_stack([*(precision[:, rank - 1] for rank in within), average])

    with threads.pool() as run:
        every = np.concatenate(list(run(measured, threads.chunks(n, QUERIES_PER_TASK))))
    *precisions, average = every.mean(axis=0).tolist()
    at = dict(zip(within, precisions, strict=True))
    return [at.get(rank, float("nan")) for rank in k], average


def training_loss(codes: Arrays, n_bits: int, pairs: Affinity, loss: losses.LossLike) -> float:
    """L(h) on the training pairs."""
    return losses.total(unpack(codes["train"], n_bits), pairs, loss)


def machine() -> str:
    """The machine of a run, as far as its times depend on it."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, auxhash {__version__}"
    )


def _two_step(hasher: AffinityHash, X: AnyArray) -> NDArray[np.uint8]:
    h = hasher.two_step_
    chunks = [X[at : at + POINTS_PER_CHUNK] for at in range(0, len(X), POINTS_PER_CHUNK)]
    with context.using(n_jobs=hasher.n_jobs):
        return np.concatenate([pack(sign(hashfunctions.outputs(h, x))) for x in chunks])


def _file(hasher: Hasher) -> bytes | None:
    """Bytes of a file of the hasher; None if it cannot be saved."""
    try:
        return modelfile.to_bytes(stored(hasher))
    except (TypeError, ImportError):  # a hasher of the user's own; no skops
        return None


def model_bytes(hasher: Hasher | Model) -> float:
    """Size of a file of the model alone; NaN if it cannot be saved."""
    try:
        model = hasher if isinstance(hasher, Model) else hasher.model_
        return len(modelfile.to_bytes(model.stored()))
    except (AttributeError, TypeError, ImportError):  # as above
        return float("nan")
