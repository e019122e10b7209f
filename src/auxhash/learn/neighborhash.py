"""NeighborHash: codes from points alone, which rank a point's nearest neighbours first."""

import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auxhash.codes import MOST_BITS, Packed
from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import Numbers
from auxhash.compute.neighbors import METRICS, Metric
from auxhash.compute.random import RandomState, generator
from auxhash.learn.estimators import PARAMETERS_WITHOUT_EFFECT, WARN_BITS
from auxhash.learn.hasher import Hasher, check_points, fingerprint, kept_labels, learning
from auxhash.learn.smooth.rank import BATCH_SIZE
from auxhash.learn.training import checkpoint as checkpoints
from auxhash.learn.training import interrupt
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.learn.training.ranking import N_GENERATORS, RankSettings, RankStep, RankTraining
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction, NetworkHash, RadialBasis, Scaled, SVMHash, Unit
from auxhash.model.fitted import check_stored
from auxhash.model.identity import in_words

NAMES = ("network", "linear", "rbf")
N_HIDDEN = 1024  # units of a network
NETWORK_STEPS, OTHER_STEPS = 5000, 2000  # gradient steps; others learn faster
MAX_EPOCHS, MIN_STEPS = 400, 500  # rounds over all points at most, but steps at least
MAX_POINTS_REGULARIZED = 30_000  # up to which a network overfits without dropout and noise
DROPOUT, NOISE = 0.3, 0.2


class NeighborHash(Hasher):
    """Learn codes from points alone, so that the nearest points in feature space rank first.

    For a point and one of its nearest neighbours, the soft rank of the neighbour among a sample of
    all points is minimised by gradient steps (see `auxhash.refine.rank`). This is no method of the
    paper; MACHash with `affinity.from_neighbors` is what the paper has for points without labels.

    Args:
        n_bits: length b of the codes; there can be more bits than features.
        metric: "cosine" or "euclidean": how near points are to each other.
        hash_function: "network" (1,024 hidden units beside a linear part; up to 30,000 points, with
            dropout and noise), "linear", "rbf", one that `auxhash.hashfunctions` offers, with
            settings of your own, or an `auxhash.torch.ModuleHash`. X of any shape (pictures) is for
            the last alone; neighbours are then those of the pixels, unless they are given.
        n_neighbors: nearest points, of each point, that are to rank first.
        n_steps: gradient steps; None takes 5,000 for a network and 2,000 for others; fewer, but at
            least 500, where they would go over the points more than 400 times.
        max_points: at most so many of the points, drawn at random, are learnt from; None takes all.
            Their exact neighbours take a time that grows with the square of their number. Beyond
            300,000 points they are approximate: most of them are the nearest.
        device: "cpu"; "cuda", a GPU by way of CuPy; or "auto", a GPU where there is one. It is
            where the gradient steps are made.
        random_state: seed, Generator or RandomState. The same seed gives the same codes on any
            number of threads.
        n_jobs: threads; None takes every core that this process may use, not 1.
        verbose: 1 shows a progress bar.

    Attributes:
        hash_function_: the learnt hash function.
        history_: list of `training.ranking.RankStep`: the rank that a neighbour typically has.
        n_learnt_: points learnt from.
        codes_: packed codes of the points that `fit` was given, in their order.
        device_: where the gradient steps were made, "cpu" or "cuda".
        interrupted_: whether Ctrl-C stopped the training.
    """

    hash_function_: HashFunction
    history_: list[RankStep]
    n_learnt_: int
    device_: str
    interrupted_: bool

    def __init__(
        self,
        n_bits: int = 64,
        metric: Metric = "cosine",
        hash_function: Any = "network",
        n_neighbors: int = 10,
        n_steps: int | None = None,
        max_points: int | None = 100_000,
        device: devices.DeviceName = "cpu",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_bits = n_bits
        self.metric = metric
        self.hash_function = hash_function
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.max_points = max_points
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @learning
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        neighbors: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from features X (n, D); y is not learnt from, only kept for `score`.

        Args:
            neighbors: (n, k), row numbers of the points that are near to each point, where you know
                them already; then all points are learnt from, and n_neighbors has no effect.
            checkpoint: a folder to keep the state of the training in, as in `MACHash.fit`: the same
                call with the same data and parameters goes on where it stopped.

        Ctrl-C stops after the current steps with what was learnt so far, and a
        `TrainingInterrupted` warning; a second one stops at once.
        """
        self._check_parameters()
        points = check_points(self, X, least=3)
        labels = kept_labels(points, y)
        _warn_of_cost(int(self.n_bits))
        table = None if neighbors is None else _checked_neighbors(neighbors, len(points))
        if checkpoint is None:
            return self._train(points, labels, table, None)
        run = self._in_words(points, table)
        unstored = hashfunctions.with_defaults(self._hash_function(len(points))).unstored()
        with checkpoints.opened(checkpoint, run, unstored) as run_checkpoint:
            return self._train(points, labels, table, run_checkpoint)

    def _train(
        self,
        points: NDArray[Any],
        labels: NDArray[Any] | None,
        nearest: Numbers | None,
        run_checkpoint: Checkpoint | None,
    ) -> Self:
        # One generator per part, so that no part's draws depend on another's.
        generators = generator(self.random_state).spawn(N_GENERATORS)
        settings = self._settings(len(points))
        max_points = len(points) if settings.max_points is None else settings.max_points
        needed = 8 * points.shape[1] * min(len(points), max_points)
        with devices.telling(settings.device, needed, "learn from fewer points (max_points)"):
            result = RankTraining(settings, points, nearest, generators, run_checkpoint).run()
        self.device_ = settings.device.name
        self.hash_function_ = result.h
        self.history_ = result.history
        self.n_learnt_ = result.n_learnt
        self.labels_ = labels
        self.fingerprint_ = fingerprint(points, labels)
        with interrupt.watching() as watch:  # what was learnt is not to be lost now
            self.codes_ = self._encode(points)
        self.interrupted_ = result.interrupted or watch.pressed
        if self.interrupted_:
            interrupt.warn(f"step {result.history[-1].step}", "what was learnt", run_checkpoint)
        return self

    def _settings(self, n: int) -> RankSettings:
        """Return the settings of a run on n points."""
        if self.max_points is not None:
            n = min(n, int(self.max_points))
        h = self._hash_function(n)
        n_steps = self.n_steps
        if n_steps is None:
            max_steps = NETWORK_STEPS if isinstance(h, NetworkHash) else OTHER_STEPS
            n_steps = max(MIN_STEPS, min(max_steps, MAX_EPOCHS * n // BATCH_SIZE))
        return RankSettings(
            n_bits=int(self.n_bits),
            hash_function=h,
            metric=self.metric,
            n_neighbors=int(self.n_neighbors),
            n_steps=int(n_steps),
            max_points=None if self.max_points is None else int(self.max_points),
            device=devices.get(self.device, refusal=self._gpu_refusal()),
            verbose=self.verbose,
        )

    def _gpu_refusal(self) -> str:
        """Return the reason why no GPU of `device` can do this training; "" where one can."""
        if not hashfunctions.is_shared(self.hash_function):
            return ""
        return (
            "device is for hash functions of NumPy: a PyTorch module computes where it is; leave "
            f'it at "cpu", got {self.device!r}'
        )

    def _hash_function(self, n: int) -> Any:
        """Return the hash function to be learnt from n points."""
        if not isinstance(self.hash_function, str):
            return self.hash_function
        scaled = Unit() if self.metric == "cosine" else Scaled()
        if self.hash_function == "linear":
            return SVMHash(scaled)
        if self.hash_function == "rbf":
            return SVMHash(RadialBasis(scaled=scaled))
        regularized = n <= MAX_POINTS_REGULARIZED
        dropout, noise = (DROPOUT, NOISE) if regularized else (0.0, 0.0)
        return NetworkHash(N_HIDDEN, decay=0.0, map=scaled, dropout=dropout, noise=noise)

    def _in_words(self, points: NDArray[Any], nearest: Numbers | None) -> checkpoints.RunIdentity:
        """Describe everything that the result depends on, each by its name and as a text."""
        parts = {"method": type(self).__name__, "X": points, "neighbors": nearest}
        parts |= self.get_params(deep=False)
        return {
            name: in_words(value)
            for name, value in parts.items()
            if name not in PARAMETERS_WITHOUT_EFFECT
        }

    def _outputs(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return hashfunctions.outputs(self.hash_function_, X)

    def _encode(self, points: NDArray[Any], finite: bool = True) -> Packed:
        return hashfunctions.encoded(self.hash_function_, points, finite)

    def _check_parameters(self) -> None:
        check_stored(self)
        checks.integer("n_bits", self.n_bits, 1, MOST_BITS)
        checks.integer("n_neighbors", self.n_neighbors, 1)
        if self.n_steps is not None:
            checks.integer("n_steps", self.n_steps, 1)
        if self.max_points is not None:
            checks.integer("max_points", self.max_points, 3)
        if self.device not in devices.NAMES:
            raise checks.unknown("device", self.device, devices.NAMES)
        if self.device == "cuda" and (refusal := self._gpu_refusal()):
            raise ValueError(refusal)
        if self.metric not in METRICS:
            raise checks.unknown("metric", self.metric, METRICS)
        if isinstance(self.hash_function, str):
            if self.hash_function not in NAMES:
                raise checks.unknown("hash_function", self.hash_function, NAMES)
        elif not (
            hashfunctions.is_shared(self.hash_function)
            or hashfunctions.is_started_linearly(self.hash_function)
        ):
            raise TypeError(
                f"hash_function must be one of {', '.join(NAMES)}, or have gradients and a linear "
                f"start as auxhash.hashfunctions.network() has; got "
                f"{type(self.hash_function).__name__}"
            )


def _checked_neighbors(neighbors: ArrayLike, n: int) -> Numbers:
    table = np.asarray(neighbors)
    if table.ndim != 2 or len(table) != n or not table.shape[1]:
        raise ValueError(
            f"neighbors must be of shape ({n}, k), row numbers for each point, got {table.shape}"
        )
    if table.dtype.kind not in "iu" or table.min() < 0 or table.max() >= n:
        raise ValueError(f"neighbors must hold row numbers of X, from 0 to {n - 1}")
    if (table == np.arange(n)[:, None]).any():
        raise ValueError("neighbors must not hold a point's own row number")
    return table.astype(np.int64)


def _warn_of_cost(b: int) -> None:
    if b > WARN_BITS:
        warnings.warn(
            f"{b:,} bits: training takes about {b // 64:,} times as long as for 64 bits",
            stacklevel=4,
        )
