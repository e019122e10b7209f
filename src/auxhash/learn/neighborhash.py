"""NeighborHash: codes from points alone, which rank a point's nearest neighbours first."""

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from auxhash.codes import MAX_BITS
from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, ArrayLike, Numbers, Single
from auxhash.compute.device import Device
from auxhash.compute.neighbors import METRICS, Metric
from auxhash.compute.random import RandomState, generator
from auxhash.learn.estimators import WARN_BITS, run_in_words
from auxhash.learn.hasher import (
    Hasher,
    check_points,
    check_queries,
    fingerprint,
    kept_labels,
    learning,
)
from auxhash.learn.relevance import checked_relevance
from auxhash.learn.training import checkpoint as checkpoints
from auxhash.learn.training import interrupt
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.learn.training.ranking import (
    N_GENERATORS,
    Asking,
    RankSettings,
    RankStep,
    RankTraining,
)
from auxhash.mac import hashfunctions
from auxhash.mac.hashfunctions import HashFunction, NetworkHash, RadialBasis, Scaled, SVMHash, Unit
from auxhash.mac.hashfunctions.protocol import SmoothHashFunction
from auxhash.model.fitted import check_stored
from auxhash.model.tables import TableFunction
from auxhash.search.expected import ExpectedRecall

NAMES = ("network", "linear", "rbf")
QUERY_FUNCTIONS = ("auto", "network", "linear")
MAX_OTHER_STEPS = 2000  # gradient steps of what is no network, at most: it learns faster
MAX_EPOCHS, MIN_STEPS = 400, 500  # rounds over all points at most, but steps at least
MIN_TABLE_POINTS = 1_000  # that tables are learnt from, unless they are asked for
MAX_PAIRS = 1e9  # distances computed for synthetic queries: up to 31,600 points have some
DROPOUT, NOISE = 0.3, 0.2  # of a network, which overfits few points without them


class Plan(NamedTuple):
    """Size of a training."""

    n_hidden: int  # units of a network
    batch: int  # points per step
    sample: int  # points per step that their neighbours are ranked among
    n_steps: int
    table_steps: int  # more steps, where tables are learnt; in proportion to other n_steps
    joint: bool  # whether codes go on learning in these
    n_dims: int  # of a query's vector at most, unless there are more bits
    all_steps: float = math.inf  # features up to which a network makes all steps

    def n_steps_in_time(self, n_features: int) -> int:
        """Return the steps that take no longer than all steps with `all_steps` features."""
        if n_features <= self.all_steps:
            return self.n_steps
        share = (self.all_steps + OTHER_FEATURES) / (n_features + OTHER_FEATURES)
        return int(self.n_steps * share)


PLANS = {
    "fast": Plan(512, 1024, 2048, 1500, 1000, joint=False, n_dims=256),
    "default": Plan(512, 2048, 2048, 3000, 4000, joint=True, n_dims=128, all_steps=128),
    "best": Plan(2048, 4096, 16384, 3000, 3000, joint=True, n_dims=256),
}
# The default for few points, of which a sample is most, and for what is no network.
SMALL_PLAN = Plan(512, 1024, 4096, 4000, 2500, joint=False, n_dims=256, all_steps=1024)
MAX_SMALL_POINTS = 30_000  # of networks that learn by the small plan, with dropout and noise
HIDDEN_COORDINATES = 256  # of the features, that a hidden layer learns from: more take longer
OTHER_FEATURES = 850  # that would take as long as what each step does beside its features


@dataclass(eq=False, repr=False)
class NeighborHash(Hasher):
    """Learn codes from points alone, so that the nearest points in feature space rank first.

    For a point and one of its nearest neighbours, the soft rank of the neighbour among a sample of
    all points is minimised by gradient steps (see `auxhash.refine.rank`). This is no method of the
    paper; MACHash with `affinity.from_neighbors` is what the paper has for points without labels.

    Args:
        n_bits: length b of the codes; there can be more bits than features.
        metric: "cosine" or "euclidean": how near points are to each other.
        hash_function: "network" (hidden units beside a linear part; up to 30,000 points, with
            dropout and noise), "linear", "rbf", one that `auxhash.hashfunctions` offers, with
            settings of your own, or an `auxhash.torch.ModuleHash`. X of any shape (pictures) is for
            the last alone; neighbours are then those of the pixels, unless they are given.
        n_neighbors: nearest points, of each point, that are to rank first.
        n_steps: gradient steps; None takes those of `quality`, but for what is no network at most
            2,000, and at least 500 where they would go over the points more than 400 times. With
            quality "default", a network of many features makes fewer: beyond 128 of them, for up to
            30,000 points beyond 1,024, as many as take about as long.
        query_function: "network" or "linear" learns `tables` of queries, too: a distance that ranks
            codes better than the Hamming distance does, and needs nothing but the codes from an
            index. With "linear", it is that of an additive quantiser; of "rbf", either is linear in
            the kernels. "auto" takes a network from
            1,000 points on, and none for a PyTorch module; None learns no tables. They are kept
            only if points that they were not learnt from find more neighbours by them than by
            outputs, among the first 10 and 100.
        prefixes: numbers of bits, multiples of 8 and rising, whose first bits are to be codes of
            their own: (32, 64) in a code of 128 bits.
        quality: "fast", "default" or "best": how large a network and how many points per step are.
            With "default", a network that learns from more than 30,000 points goes on changing its
            codes while tables are learnt, as it does with "best". On a GPU the default is "best",
            which takes 20 times as long as "default" on a processor.
        max_points: at most so many of the points, drawn at random, are learnt from; None takes all.
            Their exact neighbours take a time that grows with the square of their number. Beyond
            300,000 points, or 50,000 of more than 512 features, they are approximate: most of them
            are the nearest.
        warm_start: whether fitting again goes on from the hash function learnt before, with the
            features as it scales them. Codes of before and after are of two models.
        device: "cpu"; "cuda", a GPU by way of CuPy; or "auto", a GPU where there is one. It is
            where the gradient steps are made.
        random_state: seed, Generator or RandomState. The same seed gives the same codes on any
            number of threads.
        n_jobs: threads; None takes every core that this process may use, not 1.
        verbose: 1 shows a progress bar.

    Attributes:
        hash_function_: the learnt hash function.
        tables_: the function from queries to tables; None if they were not wanted, or are no better
            than outputs.
        history_: list of `training.ranking.RankStep`: the rank that a neighbour typically has.
        n_learnt_: points learnt from.
        held_out_: rows of the points that were not, beyond `max_points`; not saved.
        codes_: packed codes of the points that `fit` was given, in their order.
        device_: where the gradient steps were made, "cpu" or "cuda".
        interrupted_: whether Ctrl-C stopped the training.
    """

    n_bits: int = 64
    metric: Metric = "cosine"
    hash_function: str | SmoothHashFunction = "network"
    n_neighbors: int = 10
    n_steps: int | None = None
    query_function: str | None = "auto"
    prefixes: Sequence[int] = ()
    quality: str = "default"
    max_points: int | None = 100_000
    warm_start: bool = False
    device: devices.DeviceName = "cpu"
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    hash_function_: HashFunction = field(init=False)
    tables_: TableFunction | None = field(init=False)
    history_: list[RankStep] = field(init=False)
    n_learnt_: int = field(init=False)
    held_out_: Numbers = field(init=False)
    expected_recall_: list[ExpectedRecall] = field(init=False)
    device_: str = field(init=False)
    interrupted_: bool = field(init=False)

    @learning
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        neighbors: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        queries: ArrayLike | None = None,
        relevant: Any = None,
    ) -> Self:
        """Learn from features X (n, D); y is not learnt from, only kept for `score`.

        Args:
            neighbors: (n, k), row numbers of the points that are near to each point, where you know
                them already; then all points are learnt from, and n_neighbors has no effect.
            checkpoint: a folder to keep the state of the training in, as in `MACHash.fit`: the same
                call with the same data and parameters goes on where it stopped.
            queries: (m, D), that have relevant rows: codes and tables are learnt from these as
                from the neighbours of points, and all points are learnt from. Queries of another
                model are for `QueryTables`.
            relevant: the rows of X that are relevant to each query, as for `QueryTables.fit`.

        Ctrl-C stops after the current steps with what was learnt so far, and a
        `TrainingInterrupted` warning; a second one stops at once.
        """
        self._check_parameters()
        points = check_points(self, X, least=3, reset=not self._going_on())
        labels = kept_labels(points, y)
        if points.ndim > 2 and self.query_function in ("network", "linear"):
            raise ValueError(
                "query_function is for features (n, D), not for pictures: leave it out"
            )
        _warn_of_cost(int(self.n_bits))
        table = None if neighbors is None else _checked_neighbors(neighbors, len(points))
        asked = _checked_queries(self, points, queries, relevant)
        if checkpoint is None:
            return self._train(points, labels, table, asked, None)
        run = self._in_words(points, table, asked)
        unstored = hashfunctions.with_defaults(self._hash_function(len(points))).unstored()
        with checkpoints.opened(checkpoint, run, unstored) as run_checkpoint:
            return self._train(points, labels, table, asked, run_checkpoint)

    def _train(
        self,
        points: AnyArray,
        labels: AnyArray | None,
        nearest: Numbers | None,
        asked: Asking | None,
        run_checkpoint: Checkpoint | None,
    ) -> Self:
        # One generator per part, so that no part's draws depend on another's.
        generators = generator(self.random_state).spawn(N_GENERATORS)
        settings = self._settings(len(points), math.prod(points.shape[1:]))
        n = min(len(points), settings.max_points or len(points))
        needed = 8 * points.shape[1] * (n + settings.n_queries(n))
        with devices.telling(settings.device, needed, "learn from fewer points (max_points)"):
            of_points = points, nearest, generators
            result = RankTraining(settings, *of_points, run_checkpoint, asked).run()
        self.device_ = settings.device.name
        self.hash_function_, self.tables_ = result.h, result.tables
        self.history_ = result.history
        self.n_learnt_ = result.n_learnt
        self.held_out_, self.expected_recall_ = result.held_out, []
        self.labels_ = labels
        self.data_fingerprint_ = fingerprint(points, labels)
        with interrupt.watching() as watch:  # what was learnt is not to be lost now
            self.codes_ = hashfunctions.encoded(result.h, points)
        self.interrupted_ = result.interrupted or watch.pressed
        if self.interrupted_:
            interrupt.warn(f"step {result.history[-1].step}", "what was learnt", run_checkpoint)
        return self

    def tables(self, X: ArrayLike) -> Single:
        """Return tables (n, ceil(n_bits / 8), 256), for `HammingIndex.search_tables`.

        A code is at the distance tables[i, 0, code[0]] + tables[i, 1, code[1]] + ... of query i.
        The first p / 8 tables are those of the first p bits, if p is one of `prefixes`.
        """
        return replace(self.model_, n_jobs=self.n_jobs).tables(check_queries(self, X))

    def _settings(self, n: int, n_features: int) -> RankSettings:
        """Return the settings of a run on n points of so many features."""
        if self.max_points is not None:
            n = min(n, int(self.max_points))
        h, plan = self._hash_function(n), self._plan(n)
        n_steps = self.n_steps
        if n_steps is None:
            in_time = plan.n_steps_in_time(n_features)
            max_steps = in_time if isinstance(h, NetworkHash) else MAX_OTHER_STEPS
            n_steps = max(MIN_STEPS, min(plan.n_steps, max_steps, MAX_EPOCHS * n // plan.batch))
        query_function = self._query_function(h, n)
        table_steps = -(-plan.table_steps * int(n_steps) // plan.n_steps)
        return RankSettings(
            n_bits=int(self.n_bits),
            hash_function=h,
            metric=self.metric,
            n_neighbors=int(self.n_neighbors),
            n_steps=int(n_steps),
            max_points=None if self.max_points is None else int(self.max_points),
            max_pairs=MAX_PAIRS,
            device=self._device(),
            verbose=self.verbose,
            batch=plan.batch,
            sample=plan.sample,
            prefixes=self._prefixes(),
            query_function=query_function,
            table_steps=0 if query_function is None else table_steps,
            joint=plan.joint,
            n_dims=plan.n_dims,
            start=self.hash_function_ if self._going_on() else None,
        )

    def _device(self) -> Device:
        return devices.get(self.device, refusal=self._gpu_refusal())

    def _plan(self, n: int) -> Plan:
        """Return the size of a training on n points, as suits the device."""
        if self.quality == "default":
            if self._device() is not devices.CPU:
                return PLANS["best"]
            network = self.hash_function == "network" or isinstance(self.hash_function, NetworkHash)
            if n <= MAX_SMALL_POINTS or not network:
                return SMALL_PLAN
        return PLANS[self.quality]

    def _prefixes(self) -> tuple[int, ...]:
        """Return the numbers of bits that are codes of their own, or () for the whole code."""
        return (*map(int, self.prefixes), int(self.n_bits)) if len(self.prefixes) else ()

    def _query_function(self, h: HashFunction, n: int) -> SVMHash | NetworkHash | None:
        """Return the hash function that is to give a query's vector."""
        if self.query_function is None:
            return None
        if not isinstance(h, SVMHash | NetworkHash):  # a PyTorch module
            scaled = self._scaled()
            if self.query_function == "auto":
                return None
        elif self.query_function == "auto" and n < MIN_TABLE_POINTS:
            return None
        elif isinstance(h.map, Scaled | Unit):
            scaled = h.map
        else:
            return h  # of kernels: linear in them
        return SVMHash(scaled) if self.query_function == "linear" else self._network(n, scaled)

    def _scaled(self) -> Scaled | Unit:
        return Unit() if self.metric == "cosine" else Scaled()

    def _gpu_refusal(self) -> str:
        """Return the reason why no GPU of `device` can do this training; "" where one can."""
        if not hashfunctions.is_shared(self.hash_function):
            return ""
        return (
            "device is for hash functions of NumPy: a PyTorch module computes where it is; leave "
            f'it at "cpu", got {self.device!r}'
        )

    def _hash_function(self, n: int) -> SmoothHashFunction:
        """Return the hash function to be learnt from n points."""
        if not isinstance(self.hash_function, str):
            return self.hash_function
        scaled = self._scaled()
        if self.hash_function == "linear":
            return SVMHash(scaled)
        if self.hash_function == "rbf":
            return SVMHash(RadialBasis(scaled=scaled))
        return self._network(n, scaled)

    def _network(self, n: int, scaled: Scaled | Unit) -> NetworkHash:
        """Return a network to be learnt from n points."""
        regularized = n <= MAX_SMALL_POINTS
        dropout, noise = (DROPOUT, NOISE) if regularized else (0.0, 0.0)
        return NetworkHash(
            self._plan(n).n_hidden,
            decay=0.0,
            map=scaled,
            dropout=dropout,
            noise=noise,
            n_coordinates=HIDDEN_COORDINATES,
        )

    def _in_words(
        self, points: AnyArray, nearest: Numbers | None, asked: Asking | None
    ) -> checkpoints.RunIdentity:
        """Describe everything that the result depends on, each by its name and as a text."""
        data: dict[str, object] = {"X": points, "neighbors": nearest}
        data["plan"] = self._plan(min(len(points), self.max_points or len(points)))
        if asked is not None:
            data |= {"queries": asked.Q} | asked.relevance._asdict()
        return run_in_words(self, data, self.hash_function_ if self._going_on() else None)

    def _check_parameters(self) -> None:
        check_stored(self)
        checks.integer("n_bits", self.n_bits, 1, MAX_BITS)
        checks.integer("n_neighbors", self.n_neighbors, 1)
        if self.n_steps is not None:
            checks.integer("n_steps", self.n_steps, 1)
        if self.max_points is not None:
            checks.integer("max_points", self.max_points, 3)
        checks.one_of("device", self.device, devices.NAMES)
        checks.flag("warm_start", self.warm_start)
        W = getattr(self.hash_function_, "W", None) if self._going_on() else None
        if W is not None and W.shape[1] != self.n_bits:
            raise ValueError(
                f"warm_start goes on with the {W.shape[1]} bits that were learnt: n_bits cannot "
                f"become {self.n_bits}"
            )
        checks.one_of("quality", self.quality, PLANS)
        if self.query_function is not None:
            checks.one_of("query_function", self.query_function, QUERY_FUNCTIONS)
        _check_prefixes(self.prefixes, int(self.n_bits))
        if self.device == "cuda" and (refusal := self._gpu_refusal()):
            raise ValueError(refusal)
        checks.one_of("metric", self.metric, METRICS)
        if isinstance(self.hash_function, str):
            checks.one_of("hash_function", self.hash_function, NAMES)
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


def _checked_queries(
    hasher: NeighborHash, points: AnyArray, queries: ArrayLike | None, relevant: Any
) -> Asking | None:
    """Check queries of the same features as the points, and the rows relevant to them."""
    if queries is None and relevant is None:
        return None
    if queries is None or relevant is None:
        raise ValueError("queries and relevant, the rows of X for each of them, belong together")
    if np.shape(queries)[1:] != points.shape[1:]:
        raise ValueError(
            f"queries must have the {points.shape[1]} features of X, got shape "
            f"{np.shape(queries)}: QueryTables learns queries of another model, for codes that are "
            "there"
        )
    Q = check_queries(hasher, queries)
    return Asking(Q, checked_relevance(relevant, len(Q), len(points), "relevant", "X"))


def _check_prefixes(prefixes: Sequence[int], n_bits: int) -> None:
    if np.ndim(prefixes) != 1:
        raise ValueError(f"prefixes must be numbers of bits, such as (32, 64), got {prefixes!r}")
    bits = [checks.integer("prefixes", each, 8, n_bits - 1) for each in prefixes]
    if any(each % 8 for each in bits) or any(a >= b for a, b in pairwise(bits)):
        raise ValueError(
            f"prefixes must be multiples of 8, rising and below n_bits={n_bits}, got {prefixes!r}"
        )


def _warn_of_cost(b: int) -> None:
    if b > WARN_BITS:
        warnings.warn(
            f"{b:,} bits: training takes about {b // 64:,} times as long as for 64 bits",
            stacklevel=4,
        )
