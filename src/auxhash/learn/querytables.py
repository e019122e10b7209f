"""QueryTables: ask codes that are there with queries of another kind, learnt from relevance."""

import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from auxhash.codes import MAX_BITS, Packed
from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers, Single
from auxhash.compute.fingerprint import check_same, checked
from auxhash.compute.neighbors import METRICS, Metric
from auxhash.compute.random import RandomState, generator
from auxhash.learn.estimators import run_in_words
from auxhash.learn.hasher import Hasher, check_points, check_queries, fingerprint, learning
from auxhash.learn.relevance import Relevance, checked_relevance, codes_of
from auxhash.learn.smooth.tables import signs
from auxhash.learn.training import checkpoint as checkpoints
from auxhash.learn.training import interrupt
from auxhash.learn.training.asking import AskerSettings, AskerStep, AskerTraining, recall
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.learn.training.ranking import QUERY_NOISE, asking, followed
from auxhash.mac.hashfunctions import HashFunction, NetworkHash, Scaled, SVMHash, Unit, encoded
from auxhash.model.fitted import check_stored
from auxhash.model.model import Model
from auxhash.model.tables import TableFunction

NAMES = ("network", "linear")
N_HIDDEN = 1024  # units of a network
MAX_DIMS = 256  # of a vector, unless there are more bits
N_STEPS = 2000
RIDGES = (1e-3, 1e-2, 0.1, 0.3)  # of the start, relative to the mean variance of the features
ERROR_RATIO = 1.02  # to the least one with held-out queries: of such ridges, the least is taken
ERROR_RIDGE = 0.1  # the same of the covariance of its errors
MAX_HELD_OUT_QUERIES = 1000


@dataclass(eq=False, repr=False)
class QueryTables(Hasher):
    """Learn tables and codes of queries for codes that are there and stay as they are.

    The queries may come from another embedding model than the codes did, be of another dimension,
    or of another kind: titles and texts, clicks. Neither the model of the codes nor its vectors are
    needed, only rows that are relevant to each query. A model that is saved carries the fingerprint
    of those codes, and can be used wherever theirs can.

    Args:
        n_bits: length of the codes that are there.
        hash_function: "network" or "linear".
        metric: "cosine" takes queries at unit length, "euclidean" scales them.
        n_steps: gradient steps at most; held-out queries stop them before.
        validation: share of the queries that is held out, 0 for none.
        device, random_state, n_jobs, verbose: as those of `NeighborHash`.

    Attributes:
        hash_function_, tables_: what `encode` and `tables` compute.
        history_: list of `training.asking.AskerStep`: of the held-out queries' relevant rows, the
            shares among the first 1, 10 and 100. What was best by their mean is taken.
        made_for_: fingerprint of the codes, if they have one.
        interrupted_: whether Ctrl-C stopped the training.
    """

    n_bits: int = 64
    hash_function: Literal["network", "linear"] = "network"
    metric: Metric = "cosine"
    n_steps: int = N_STEPS
    validation: float = 0.1
    device: devices.DeviceName = "cpu"
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    hash_function_: SVMHash | NetworkHash = field(init=False)
    tables_: TableFunction = field(init=False)
    history_: list[AskerStep] = field(init=False)
    made_for_: str | None = field(init=False)
    interrupted_: bool = field(init=False)

    @learning
    def fit(
        self,
        Q: ArrayLike,
        rows: Any,
        codes: Any,
        made_for: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        start: Hasher | Model | None = None,
    ) -> Self:
        """Learn from queries Q (m, D) and the rows that are relevant to each.

        Args:
            rows: (m,) a row number for each query, or a list of row numbers for each; or a sparse
                matrix (m, n) of weights, as of clicks: of a query's rows, those of larger weight
                count more, and one that is listed twice as one of weight 2. Every query counts the
                same.
            codes: packed (n, ceil(n_bits / 8)); or an index, whose codes are meant in their order;
                or a store, in the order of the ids, as `batches` gives them; so an approximate
                index.
            made_for: fingerprint of the model of the codes; by default that of the index or store.
            checkpoint: a folder to keep the state of the training in, as in `MACHash.fit`: the same
                call with the same data and parameters goes on where it stopped.
            start: the model of the codes, where the queries have its features, as titles and texts
                in vectors of one model: training starts with its outputs. Few pairs do with it.

        Ctrl-C stops after the current steps with what was learnt so far, and a
        `TrainingInterrupted` warning; a second one stops at once.
        """
        self._check_parameters()
        queries = check_points(self, Q, least=3)
        packed = codes_of(codes, int(self.n_bits))
        own = getattr(codes, "fingerprint", None)
        check_same("the set of codes", own, "made_for", checked("made_for", made_for))
        made_for = made_for or own
        relevance = checked_relevance(rows, len(queries), len(packed))
        first = None if start is None else self._checked_start(start, queries, made_for)
        data = queries, relevance, packed, made_for, first
        if checkpoint is None:
            return self._train(*data, None)
        run = self._in_words(queries, relevance, packed, first)
        with checkpoints.opened(checkpoint, run) as run_checkpoint:
            return self._train(*data, run_checkpoint)

    def _train(
        self,
        queries: AnyArray,
        relevance: Relevance,
        packed: Packed,
        made_for: str | None,
        first: HashFunction | None,
        run_checkpoint: Checkpoint | None,
    ) -> Self:
        generators = generator(self.random_state).spawn(3)
        if run_checkpoint is not None:
            generators = run_checkpoint.generators(generators)
        choosing, preparing, moving = generators
        n_held_out = min(MAX_HELD_OUT_QUERIES, int(self.validation * len(queries)))
        held_out = np.sort(choosing.permutation(len(queries))[:n_held_out])
        device = devices.get(self.device)
        settings = AskerSettings(int(self.n_bits), int(self.n_steps), device, self.verbose)
        if first is None:
            h = self._by_ridge(queries, relevance, packed, held_out, preparing)
        else:
            h = self._following(first, queries, preparing)
        data = queries, relevance, packed, held_out
        result = AskerTraining(settings, h, *data, moving, run_checkpoint).run()
        self._take(result.h, result.codebook)
        self.history_, self.made_for_ = result.history, made_for
        self.labels_, self.data_fingerprint_ = None, fingerprint(queries, None)
        with interrupt.watching() as watch:  # what was learnt is not to be lost now
            self.codes_ = encoded(self.hash_function_, queries)
        self.interrupted_ = result.interrupted or watch.pressed
        if self.interrupted_:
            after = f"step {result.history[-1].step}"
            interrupt.warn(after, "the best with held-out queries", run_checkpoint)
        return self

    def _by_ridge(
        self,
        Q: AnyArray,
        relevance: Relevance,
        packed: Packed,
        held_out: Numbers,
        rng: np.random.Generator,
    ) -> SVMHash | NetworkHash:
        """Return a function that predicts the mean code of the relevant rows, by ridge.

        The vector's outputs are those that tell codes apart best if the prediction's errors are
        normal: the prediction times the inverse of their covariance.
        """
        h, codes = self._function().prepare(Q, rng), signs(packed, int(self.n_bits))
        F = h.features(Q)
        used, mean = relevance.only(np.setdiff1d(np.arange(len(Q)), held_out)).means(codes)
        X = F[used]
        fits = [_solved(X.T @ X, X.T @ mean, ridge) for ridge in RIDGES]
        errors = [0.0]  # of the first
        if len(held_out):
            asked, true = relevance.only(held_out).means(codes)
            errors = [float(((true - F[asked] @ W) ** 2).mean()) for W in fits]
        W = next(
            W for W, error in zip(fits, errors, strict=False) if error <= ERROR_RATIO * min(errors)
        )
        outputs = np.hstack([W, _weighted(W, mean - X @ W), self._more(F, rng)])
        return h.with_linear(outputs)

    def _following(
        self, first: HashFunction, Q: AnyArray, rng: np.random.Generator
    ) -> SVMHash | NetworkHash:
        """Return a function whose outputs are those of `first`, of the code and of the vector."""
        kind, b = self._function(), int(self.n_bits)
        if not isinstance(first, SVMHash | NetworkHash):
            first = followed(first, kind.map.fit(Q, rng), Q)
        n_dims = self._n_dims(first.map(Q[:1]).shape[1])
        h = asking(first, kind, Q, n_dims, rng)
        assert h.W is not None
        return replace(h, W=np.hstack([h.W[:, :b], h.W]))

    def _function(self) -> SVMHash | NetworkHash:
        """Return the function that is to be learnt."""
        scaled = Unit() if self.metric == "cosine" else Scaled()
        if self.hash_function == "linear":
            return SVMHash(scaled)
        return NetworkHash(N_HIDDEN, decay=0.0, map=scaled, dropout=0.0, noise=QUERY_NOISE)

    def _n_dims(self, n_features: int) -> int:
        """Return the coordinates of a query's vector."""
        return max(int(self.n_bits), min(n_features, MAX_DIMS))

    def _more(self, F: AnyArray, rng: np.random.Generator) -> Array:
        """Return random weights of the coordinates of a vector beyond those of the bits."""
        n_features = F.shape[1] - 1
        more = rng.standard_normal((F.shape[1], self._n_dims(n_features) - int(self.n_bits)))
        more[-1] = 0
        return more

    def _checked_start(self, start: object, Q: AnyArray, made_for: str | None) -> HashFunction:
        """Return the hash function of the model to start with."""
        model = getattr(start, "model_", start)
        if not isinstance(model, Model):
            raise checks.ArgumentError(
                f"start must be a fitted hasher or a Model, got {type(start).__name__}"
            )
        if (model.n_bits, model.n_features) != (self.n_bits, Q.shape[1]):
            raise ValueError(
                f"start must be the model of the codes, for queries of its features: it takes "
                f"{model.n_features} features to {model.n_bits} bits, and Q has {Q.shape[1]} for "
                f"n_bits={self.n_bits}"
            )
        check_same("the set of codes", made_for, "start", model.fingerprint)
        return model.hash_function

    def _take(self, h: SVMHash | NetworkHash, codebook: Single) -> None:
        """Set what was learnt: the code's outputs, then the vector's."""
        assert h.W is not None
        b = int(self.n_bits)
        self.hash_function_ = replace(h, W=np.ascontiguousarray(h.W[:, :b]))
        vector = replace(h, W=np.ascontiguousarray(h.W[:, b:]))
        self.tables_ = TableFunction.of(vector, codebook)

    def _in_words(
        self,
        queries: AnyArray,
        relevance: Relevance,
        packed: Packed,
        first: HashFunction | None,
    ) -> checkpoints.RunIdentity:
        """Describe everything that the result depends on, each by its name and as a text."""
        of = {"rows": relevance.rows, "starts": relevance.starts, "weights": relevance.weights}
        return run_in_words(self, {"Q": queries, "codes": packed, **of, "start": first})

    def tables(self, Q: ArrayLike) -> Single:
        """Return tables (m, ceil(n_bits / 8), 256), for `HammingIndex.search_tables`."""
        return replace(self.model_, n_jobs=self.n_jobs).tables(check_queries(self, Q))

    def score(self, Q: ArrayLike, rows: Any, codes: Any, k: int = 10) -> float:  # type: ignore[override]
        """Return the share of relevant rows among the first k by tables, the mean over queries."""
        packed = codes_of(codes, int(self.n_bits))
        own = getattr(codes, "fingerprint", None)
        check_same("the set of codes", own, "the model", self.made_for_)
        tables = self.tables(Q)
        relevance = checked_relevance(rows, len(tables), len(packed))
        return recall(tables, relevance, np.arange(len(tables)), packed, (k,))[0]

    def _check_parameters(self) -> None:
        check_stored(self)
        checks.integer("n_bits", self.n_bits, 1, MAX_BITS)
        checks.integer("n_steps", self.n_steps, 1)
        checks.one_of("hash_function", self.hash_function, NAMES)
        checks.one_of("metric", self.metric, METRICS)
        checks.one_of("device", self.device, devices.NAMES)
        if not 0 <= checks.number("validation", self.validation, 0) < 1:
            raise ValueError(f"validation must be from 0 to below 1, got {self.validation!r}")


def _weighted(W: Array, errors: Array) -> Array:
    """Return W (D, b) times the inverse covariance of its errors (n, b).

    By how far the codes are from the prediction, and which bits together, a bit says more or less.
    """
    return _solved(errors.T @ errors / len(errors), W.T, ERROR_RIDGE).T


def _solved(G: Array, right: Array, ridge: float) -> Array:
    """Solve G W = right for a symmetric G, with this share of its mean variance added."""
    G[np.diag_indices(len(G))] += max(ridge * np.trace(G) / len(G), np.finfo(float).tiny)
    return np.asarray(np.linalg.solve(G, right), np.float64)
