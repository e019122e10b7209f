"""DaskNeighborHash: `NeighborHash` on points that are in many partitions, on many machines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import dask.array as da
import numpy as np
from dask import delayed
from dask.typing import DaskCollection
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from auxhash.codes import Packed, n_bytes, pack
from auxhash.compute import checks, context, threads
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.random import generator
from auxhash.dask import blocks, lazy
from auxhash.dask.distribution import Distributed
from auxhash.dask.part import n_threads
from auxhash.learn.hasher import check_points, fingerprint
from auxhash.learn.neighborhash import NeighborHash
from auxhash.learn.training.ranking import N_GENERATORS, RankResult, RankSettings, RankTraining
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction

MIN_POINTS = 3


@dataclass(eq=False, repr=False)
class DaskNeighborHash(Distributed[NeighborHash], NeighborHash):
    """`NeighborHash` on a Dask cluster: a sample of all points is learnt from, on one worker.

    Each partition gives its share of `max_points`, in proportion to its points; the sample moves to
    one worker, which trains as a single machine does. One partition gives `NeighborHash`'s codes,
    to the last bit, and several the same codes on any number of workers and threads. Data
    lost with a worker is computed again.

    Args:
        n_bits, metric, ..., verbose: as for `NeighborHash`; max_points must be a number. n_jobs are
            threads: None takes as many as the worker has. verbose has no effect.
        client: a `distributed.Client`; None takes the current one.
        timeout: of the training, and of the loading of a partition, in seconds.

    Attributes:
        hash_function_, history_, ...: as in `NeighborHash`.
        codes_: of the points that `fit` was given, lazily: a dask array in their order.
    """

    _local = NeighborHash
    _learnt = (
        *("feature_names_in_", "n_features_in_", "device_", "hash_function_", "history_"),
        *("n_learnt_", "expected_recall_", "labels_", "data_fingerprint_", "codes_"),
        *("interrupted_", "tables_"),
    )

    client: Client | None = None
    timeout: float = 3600.0

    def fit(self, X: DaskCollection, y: None = None) -> Self:  # type: ignore[override]
        """Learn from X (n, D), a dask array cut along the rows or a dataframe; y must be None.

        Empty partitions are passed over. Raises ValueError for data that cannot be learnt from,
        `ClusterError` if scheduler or workers are gone for good, and TimeoutError.
        """
        self._check_parameters()
        if y is not None:
            raise ArgumentError("y must be None: labels are not learnt from")
        cluster = Cluster(self.client, float(self.timeout))
        parts = blocks.check_points(X)
        summaries = cluster.results(_summarize, [(block,) for block in parts.X])
        sizes = [one.n for one in summaries]
        for place, one in enumerate(summaries):
            if one.n and one.n_features != parts.n_features:
                raise ArgumentError(
                    f"partition {place} has {one.n_features} features, and X is said to have "
                    f"{parts.n_features}"
                )
        if sum(sizes) < MIN_POINTS:
            raise ArgumentError(f"X must hold {MIN_POINTS} points or more, got {sum(sizes)}")
        self._take_names(parts)
        self._trained_on = [(block, n) for block, n in zip(parts.X, sizes, strict=True) if n]
        result = self._train_on_cluster(cluster)
        self.device_ = "cpu"
        self.hash_function_, self.tables_ = result.h, result.tables
        self.history_, self.expected_recall_ = result.history, []
        self.n_learnt_, self.interrupted_, self.labels_ = result.n_learnt, result.interrupted, None
        marks = [one.fingerprint for one in summaries if one.n]
        self.data_fingerprint_ = blocks.joint_fingerprint(marks)
        return self

    def _train_on_cluster(self, cluster: Cluster) -> RankResult:
        """Train on one worker: the sample is moved to it by Dask, not by the client."""
        parts, sizes = zip(*self._trained_on, strict=True)
        generators = generator(self.random_state).spawn(N_GENERATORS)
        drawing = [generators[0]] if len(parts) == 1 else generators[0].spawn(len(parts))
        shares = _shares(checks.integer("max_points", self.max_points, MIN_POINTS), sizes)
        sample = [
            delayed(_sample)(block, share, own)
            for block, share, own in zip(parts, shares, drawing, strict=True)
            if share
        ]
        settings = self._settings(sum(sizes), self.n_features_in_)
        training = delayed(_train)(settings, self.n_jobs, sample, generators)
        result: RankResult = cluster.result(cluster.client.compute(training), "the training")
        return result

    @property
    def codes_(self) -> da.Array:  # type: ignore[override]
        """Packed codes of all points: a dask array, computed when it is asked for."""
        if not hasattr(self, "_trained_on"):
            raise AttributeError("codes_ exist only after fit")
        width, make = n_bytes(int(self.n_bits)), delayed(_codes)
        parts = [(make(block, self.hash_function_), (n, width)) for block, n in self._trained_on]
        return lazy.joined(parts, np.dtype(np.uint8))

    def to_local(self, codes: bool = True) -> NeighborHash:
        """Return an ordinary `NeighborHash`, which saves, exports and searches.

        It holds the codes of all points, n_bits / 8 bytes of each, which are computed on the
        cluster and brought here; with codes=False none, and encodes the same.
        """
        check_is_fitted(self)
        model = self._without_codes()
        if checks.flag("codes", codes):
            cluster = Cluster(self.client, float(self.timeout))
            arguments = [(block, self.hash_function_) for block, _ in self._trained_on]
            model.codes_ = np.concatenate(cluster.results(_codes, arguments))
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("max_points", self.max_points, MIN_POINTS)
        if hashfunctions.is_shared(self.hash_function):
            raise ArgumentError("hash_function must be one of NumPy here, and no PyTorch module")


class _PointsSummary(NamedTuple):
    """Facts of a partition that the client needs."""

    n: int
    n_features: int
    fingerprint: str


def _summarize(X: ArrayLike) -> _PointsSummary:
    """Check a partition before the training, and return its facts."""
    if np.ndim(X) != 2:
        raise ArgumentError(f"X must be of shape (n, D), got shape {np.shape(X)}")
    n, n_features = np.shape(X)
    return _PointsSummary(n, n_features, fingerprint(_checked(X), None) if n else "")


def _checked(X: ArrayLike) -> AnyArray:
    return check_points(NeighborHash(), X, least=1, all_points=False)


def _shares(max_points: int, sizes: Sequence[int]) -> list[int]:
    """Return the sample size of each partition: in proportion, rounded so that they add up."""
    before, total = np.cumsum([0, *sizes]).tolist(), sum(sizes)
    n = min(max_points, total)
    ends = [n * end // total for end in before]
    return [int(end - start) for start, end in pairwise(ends)]


def _sample(X: ArrayLike, share: int, rng: np.random.Generator) -> AnyArray:
    """Draw `share` rows of a partition, as a single machine draws them."""
    points = _checked(X)
    if share == len(points):
        return points
    return points[np.sort(rng.permutation(len(points))[:share])]


@threads.one_blas_thread()
def _train(
    settings: RankSettings,
    n_jobs: int | None,
    sample: list[AnyArray],
    generators: list[np.random.Generator],
) -> RankResult:
    with context.using(n_jobs=n_threads() if n_jobs is None else n_jobs):
        return RankTraining(
            replace(settings, verbose=0), np.concatenate(sample), None, generators
        ).run()


def _codes(X: ArrayLike, h: HashFunction) -> Packed:
    return pack(hashfunctions.codes(h, h.features(_checked(X))))
