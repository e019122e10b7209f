"""DaskNeighborHash: `NeighborHash` on points that are in many partitions, on many machines."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from auxhash.codes import Packed, n_bytes, pack
from auxhash.compute import checks, context, threads
from auxhash.compute import device as devices
from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.neighbors import Metric
from auxhash.compute.random import RandomState, generator
from auxhash.dask import blocks, lazy
from auxhash.dask.distribution import OWN, Distributed
from auxhash.dask.part import n_threads
from auxhash.learn.hasher import check_points, fingerprint
from auxhash.learn.neighborhash import NeighborHash
from auxhash.learn.training.ranking import PARTS, RankResult, RankSettings, RankTraining
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction

# What a NeighborHash learns, in the order in which it does: equal models are equal files.
LEARNT = (
    *("feature_names_in_", "n_features_in_", "device_", "hash_function_", "history_"),
    *("n_learnt_", "interrupted_", "labels_", "fingerprint_", "codes_"),
)
LEAST = 3  # points


class DaskNeighborHash(Distributed, NeighborHash):
    """`NeighborHash` on a Dask cluster: a sample of all points is learnt from, on one worker.

    Each partition gives its share of `max_points`, in proportion to its points; the sample moves to
    one worker, which trains as a single machine does. One partition gives `NeighborHash`'s codes,
    to the last bit, and several the same codes on any number of workers and threads. What is
    lost with a worker is computed again.

    Args:
        n_bits, metric, ..., verbose: as for `NeighborHash`; max_points must be a number. n_jobs are
            threads: None takes as many as the worker has. verbose has no effect.
        client: a `distributed.Client`; None takes the current one.
        timeout: the most seconds that the training, or the loading of a partition, may take.

    Attributes:
        hash_function_, history_, ...: as in `NeighborHash`.
        codes_: of the points that `fit` was given, lazily: a dask array in their order.
    """

    def __init__(
        self,
        n_bits: int = 64,
        metric: Metric = "cosine",
        hash_function: Any = "network",
        n_neighbors: int = 10,
        n_steps: int | None = None,
        max_points: int = 100_000,
        device: devices.DeviceName = "cpu",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        timeout: float = 3600.0,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", *OWN)}
        given.pop("__class__", None)
        super().__init__(**given)
        self.client = client
        self.timeout = timeout

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Learn from X (n, D), a dask array cut along the rows or a dataframe; y must be None.

        Empty partitions are passed over. Raises ValueError for what cannot be learnt from,
        `ClusterError` if scheduler or workers are gone for good, and TimeoutError.
        """
        self._check_parameters()
        if y is not None:
            raise ArgumentError("y must be None: labels are not learnt from")
        cluster = Cluster(self.client, float(self.timeout))
        parts = blocks.check_points(X)
        looks = cluster.results(_look, [(block,) for block in parts.X])
        sizes = [one.n for one in looks]
        for place, one in enumerate(looks):
            if one.n and one.n_features != parts.n_features:
                raise ArgumentError(
                    f"partition {place} has {one.n_features} features, and X is said to have "
                    f"{parts.n_features}"
                )
        if sum(sizes) < LEAST:
            raise ArgumentError(f"X must hold {LEAST} points or more, got {sum(sizes)}")
        self._take_names(parts)
        self._trained_on = [(block, n) for block, n in zip(parts.X, sizes, strict=True) if n]
        found = self._trained(cluster)
        self.device_ = "cpu"
        self.hash_function_, self.history_ = found.h, found.history
        self.n_learnt_, self.interrupted_, self.labels_ = found.n_learnt, found.interrupted, None
        marks = [one.fingerprint for one in looks if one.n]
        joined = hashlib.sha256("".join(marks).encode()).hexdigest()
        self.fingerprint_ = marks[0] if len(marks) == 1 else joined
        return self

    def _trained(self, cluster: Cluster) -> RankResult:
        """The training, on one worker: the sample is moved to it by Dask, not by the client."""
        parts, sizes = zip(*self._trained_on, strict=True)
        generators = generator(self.random_state).spawn(PARTS)
        drawing = [generators[0]] if len(parts) == 1 else generators[0].spawn(len(parts))
        shares = _shares(checks.whole("max_points", self.max_points, LEAST), sizes)
        sample = [
            lazy.single(_sample)(block, share, own)
            for block, share, own in zip(parts, shares, drawing, strict=True)
            if share
        ]
        settings = self._settings(sum(sizes))
        training = lazy.single(_train)(settings, self.n_jobs, sample, generators)
        result: RankResult = cluster.result(cluster.client.compute(training), "the training")
        return result

    @property
    def codes_(self) -> Any:  # type: ignore[override]
        """Packed codes of all points: a dask array, computed when it is asked for."""
        if not hasattr(self, "_trained_on"):
            raise AttributeError("codes_ are there once it is fitted")
        width, make = n_bytes(int(self.n_bits)), lazy.single(_codes)
        made = [(make(block, self.hash_function_), (n, width)) for block, n in self._trained_on]
        return lazy.joined(made, np.dtype(np.uint8))

    def to_local(self, codes: bool = True) -> NeighborHash:
        """An ordinary `NeighborHash`, which saves, exports and searches as ever.

        It holds the codes of all points, n_bits / 8 bytes of each, which are computed on the
        cluster and brought here; with codes=False none, and encodes the same.
        """
        check_is_fitted(self)
        model = self._light()
        if checks.flag("codes", codes):
            cluster = Cluster(self.client, float(self.timeout))
            given = [(block, self.hash_function_) for block, _ in self._trained_on]
            model.codes_ = np.concatenate(cluster.results(_codes, given))
        return model

    def _light(self) -> NeighborHash:
        """A NeighborHash that encodes as this one does, without codes of the training points."""
        parameters = {name: v for name, v in self.get_params(deep=False).items() if name not in OWN}
        model = NeighborHash(**parameters)
        none = {"codes_": np.empty((0, n_bytes(int(self.n_bits))), np.uint8)}
        learnt = {**vars(self), **none}
        for name in LEARNT:
            if name in learnt:
                setattr(model, name, learnt[name])
        return model

    def _gpu_refusal(self) -> str:
        return f'device must be "cpu" here: workers train on processors, got {self.device!r}'

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("timeout", self.timeout, 0, strict=True)
        checks.whole("max_points", self.max_points, LEAST)
        if hashfunctions.is_shared(self.hash_function):
            raise ArgumentError("hash_function must be one of NumPy here, and no PyTorch module")


class _Look(NamedTuple):
    """A partition, as far as others must know it."""

    n: int
    n_features: int
    fingerprint: str


def _look(X: Any) -> _Look:
    """Look at a partition before the training; raises if it holds what is no number."""
    if np.ndim(X) != 2:
        raise ArgumentError(f"X must be of shape (n, D), got shape {np.shape(X)}")
    n, n_features = np.shape(X)
    return _Look(n, n_features, fingerprint(_checked(X), None) if n else "")


def _checked(X: Any) -> NDArray[Any]:
    return check_points(NeighborHash(), X, least=1, all_points=False)


def _shares(most: int, sizes: Sequence[int]) -> list[int]:
    """How many points each partition gives: in proportion, rounded so that they add up."""
    before, total = np.cumsum([0, *sizes]).tolist(), sum(sizes)
    most = min(most, total)
    ends = [most * end // total for end in before]
    return [int(end - start) for start, end in pairwise(ends)]


def _sample(X: Any, share: int, rng: np.random.Generator) -> NDArray[Any]:
    """So many rows of a partition, drawn as a single machine draws them."""
    points = _checked(X)
    if share == len(points):
        return points
    rows: NDArray[Any] = points[np.sort(rng.permutation(len(points))[:share])]
    return rows


@threads.one_blas_thread()
def _train(
    settings: RankSettings,
    n_jobs: int | None,
    sample: list[NDArray[Any]],
    generators: list[np.random.Generator],
) -> RankResult:
    with context.using(n_jobs=n_threads() if n_jobs is None else n_jobs):
        return RankTraining(
            replace(settings, verbose=0), np.concatenate(sample), None, generators
        ).run()


def _codes(X: Any, h: HashFunction) -> Packed:
    return pack(hashfunctions.codes(h, h.features(_checked(X))))
