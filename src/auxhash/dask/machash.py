"""DaskMACHash: `MACHash` on points that are in many partitions, on many machines."""

import os
from dataclasses import dataclass, field, replace
from typing import Self

import dask.array as da
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from dask.typing import DaskCollection
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from auxhash.codes import n_bytes
from auxhash.compute import checks
from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.random import generator
from auxhash.dask import blocks, lazy
from auxhash.dask.blocks import Blocks, Loaded
from auxhash.dask.distribution import OWN_PARAMETERS, Distributed
from auxhash.dask.learning import (
    HOLD_OUT_GENERATOR,
    Learning,
    codes_of,
    data_in_words,
    generators_of,
)
from auxhash.dask.rounds import Rounds, Traffic
from auxhash.dask.watching import Watcher
from auxhash.learn.estimators import PARAMETERS_WITHOUT_EFFECT, MACHash, run_in_words
from auxhash.learn.smooth import Refine
from auxhash.learn.training import checkpoint as checkpoints
from auxhash.learn.training import interrupt
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.learn.training.run import N_GENERATORS
from auxhash.learn.training.validation import Validation
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import NetworkHash, SVMHash


@dataclass(eq=False, repr=False)
class DaskMACHash(Distributed[MACHash], MACHash):
    """`MACHash` on a Dask cluster. The points stay on the workers, and the model travels.

    Each partition of X draws its pairs among its own points, and makes the Z step on its own codes.
    The h step solves the same SVMs as on one machine, with gradients and products with the Hessian
    summed over the partitions; so are L(h) and every other number. Refinement takes its batches
    from one partition after the other. One partition gives `MACHash`'s codes, to the last bit, and
    several the same codes on any number of workers and threads.

    A worker that is lost costs its share of the work: its partitions are loaded again and catch up.

    Args:
        n_bits, loss, ..., verbose: as for `MACHash`. hash_function is "linear", "rbf" or "network";
            device is "cpu", which "auto" is, too; init must be None; validation compares labels.
            n_jobs are threads per partition: None takes as many as the worker has.
        client: a `distributed.Client`; None takes the current one.
        timeout: of one step of one partition, and of its loading, in seconds.

    Attributes:
        hash_function_, loss_, history_, ...: as in `MACHash`.
        codes_, labels_: of the training points, lazily: dask arrays in the order of the partitions.
        traffic_: list of `Traffic`, step by step.
        n_lost_: partitions that were lost with their workers, and caught up.
    """

    _local = MACHash
    _learnt = (
        *("feature_names_in_", "n_features_in_", "device_", "hash_function_", "loss_", "two_step_"),
        "history_",
        *("n_iter_", "codes_", "labels_", "n_learnt_", "data_fingerprint_", "interrupted_"),
    )
    client: Client | None = None
    timeout: float = 3600.0

    traffic_: list[Traffic] = field(init=False)
    n_lost_: int = field(init=False)

    def fit(  # type: ignore[override]
        self,
        X: DaskCollection,
        y: DaskCollection | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from X (n, D) and labels y: dask arrays cut along the rows, or dataframes.

        Every partition needs at least two classes, and should hold all of them: shuffle rows that
        are sorted. Empty partitions are passed over. X and y are loaded into the memory of the
        workers while this takes; data that Dask cannot compute again is lost with its worker.

        Args:
            checkpoint: a folder to keep the state of the training in, on the client's machine. If
                the client dies, the same call with the same data and parameters resumes it: sums
                and hash functions are not computed again, only the partitions' own Z steps are.

        Ctrl-C stops after the current step with the best hash function so far, and a
        `TrainingInterrupted` warning; a second one stops at once.

        Raises ValueError for data that cannot be learnt from, `ClusterError` if the scheduler or
        workers are gone for good, and TimeoutError; an error in a partition is raised with its
        number.
        """
        self._check_parameters()
        cluster = Cluster(self.client, float(self.timeout))
        parts = blocks.check(X, y)
        loaded = blocks.load(cluster, parts)
        self._take_names(parts, self._going_on())
        if checkpoint is None:
            return self._train_on_cluster(cluster, parts, loaded, None)
        # Before any generator among the parameters is drawn from.
        run = self._run_in_words(cluster, loaded)
        with checkpoints.opened(checkpoint, run) as kept:
            return self._train_on_cluster(cluster, parts, loaded, kept)

    def _train_on_cluster(
        self, cluster: Cluster, parts: Blocks, loaded: Loaded, kept: Checkpoint | None
    ) -> Self:
        """Train on the partitions that hold points, and set the fitted attributes."""
        generators = generators_of(len(loaded.data), generator(self.random_state))
        if kept is not None:
            flat = kept.generators([one for own in generators for one in own])
            generators = [flat[at : at + N_GENERATORS] for at in range(0, len(flat), N_GENERATORS)]
        settings = replace(self._settings(), verbose=0)
        if settings.going_on:
            again = self.n_learnt_ if loaded.fingerprint == self.data_fingerprint_ else 0
            settings = replace(settings, learnt_from=self.n_learnt_ - again)
        arguments = [(own,) for own in generators]
        rounds = Rounds(cluster, Learning(settings, self.n_jobs), loaded.data, arguments, kept)
        with interrupt.watching() as watch, Watcher(watch, settings, bool(self.verbose)) as watcher:
            results = rounds.run(watcher)
        [model] = [one.model for one in results if one.model is not None]
        self.hash_function_, self.loss_, self.two_step_ = model.h, model.loss, model.two_step
        self.history_, self.interrupted_ = model.history, model.interrupted
        self.device_ = "cpu"
        self.n_iter_ = len(self.history_)
        self.n_learnt_ = sum(one.n for one in results) + settings.learnt_from
        self.data_fingerprint_ = loaded.fingerprint
        self.traffic_, self.n_lost_ = rounds.traffic, rounds.lost
        data = [(parts.X[place], parts.y[place]) for place in loaded.places]
        trained_on = [
            (*both, own[HOLD_OUT_GENERATOR], one.n)
            for both, own, one in zip(data, generators, results, strict=True)
        ]
        self._trained_on = trained_on, settings.validation
        first = loaded.summaries[0]
        self._labels = first.labels.dtype, (np.nan,) * first.several
        if self.interrupted_:
            interrupt.warn(f"iteration {self.history_[-1].iteration}", "the best", kept)
        return self

    def _run_in_words(self, cluster: Cluster, loaded: Loaded) -> checkpoints.RunIdentity:
        """Return all inputs of the result by name, each as a text; the data by every byte."""
        marks = [cluster.client.submit(data_in_words, *both, pure=False) for both in loaded.data]
        partitions = [cluster.result(mark, place) for place, mark in enumerate(marks)]
        model = (self.hash_function_, self.n_learnt_) if self._going_on() else None
        without = (*OWN_PARAMETERS, *PARAMETERS_WITHOUT_EFFECT)
        return run_in_words(self, {"partitions": partitions}, model, without)

    @property
    def codes_(self) -> da.Array:  # type: ignore[override]
        """Packed codes of the points learnt from: a dask array, computed when it is asked for."""
        width = n_bytes(int(self.n_bits))
        parts = [(both[0], (n, width)) for both, n in self._codes_and_labels()]
        return lazy.joined(parts, np.dtype(np.uint8))

    @property
    def labels_(self) -> da.Array:  # type: ignore[override]
        """Labels of the points learnt from, as `codes_`."""
        parts = [(both[1], (n, *self._labels[1])) for both, n in self._codes_and_labels()]
        return lazy.joined(parts, self._labels[0])

    def _codes_and_labels(self) -> list[tuple[Delayed, int]]:
        """Return each partition's codes and labels as a lazy pair, and the number of its points."""
        if not hasattr(self, "_trained_on"):
            raise AttributeError("codes_ and labels_ exist only after fit")
        parts, validation = self._trained_on
        return [
            (delayed(codes_of, nout=2)(X, y, self.hash_function_, validation, rng), n)
            for X, y, rng, n in parts
        ]

    def to_local(self, codes: bool = True) -> MACHash:
        """Return an ordinary `MACHash`, which saves, exports and searches.

        It holds the codes and labels of the training points, n_bits / 8 bytes of each, which are
        computed on the cluster and brought here; with codes=False none, and encodes the same.
        """
        check_is_fitted(self)
        model = self._without_codes()
        if not checks.flag("codes", codes):
            return model
        cluster = Cluster(self.client, float(self.timeout))
        futures = cluster.client.compute([both for both, _ in self._codes_and_labels()])
        results = [cluster.result(future, place) for place, future in enumerate(futures)]
        model.codes_ = np.concatenate([packed for packed, _ in results])
        model.labels_ = np.concatenate([labels for _, labels in results])
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.init is not None:
            raise ArgumentError("init must be None here: codes of all points would have to travel")
        h = hashfunctions.get(self.hash_function, self.C)
        if type(h) not in (SVMHash, NetworkHash):
            raise ArgumentError(
                "hash_function must be linear, rbf or network here, which can be trained by sums "
                f"over partitions; got {type(h).__name__}"
            )
        if isinstance(self.refine, Refine) and self.refine.cross_entropy:
            raise ArgumentError(
                "cross_entropy must be 0 here: its classifier would be another in each partition; "
                f"got refine with {self.refine.cross_entropy}"
            )
        if isinstance(self.validation, Validation) and self.validation.neighbors is not None:
            raise ArgumentError(
                "validation by neighbors needs all points on one machine: here it compares labels"
            )
