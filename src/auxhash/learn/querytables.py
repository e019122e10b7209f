"""QueryTables: ask codes that are there with queries of another kind, learnt from relevance."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from auxhash.codes import MOST_BITS, Packed, as_packed
from auxhash.compute import checks, threads
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Numbers, Single
from auxhash.compute.fingerprint import checked
from auxhash.compute.neighbors import METRICS, Metric
from auxhash.compute.random import RandomState, generator
from auxhash.learn.hasher import Hasher, check_points, check_queries, fingerprint, learning
from auxhash.learn.smooth.rank import BATCH_SIZE, SAMPLE
from auxhash.learn.smooth.similar import Relevant
from auxhash.learn.smooth.tables import (
    VALUES,
    Asker,
    FixedCodes,
    QueryRank,
    codebook_of_bits,
    signs,
)
from auxhash.learn.training.ranking import MAX_DIMS, QUERY_NOISE
from auxhash.mac.hashfunctions import NetworkHash, Scaled, SVMHash, Unit, encoded
from auxhash.model.fitted import check_stored
from auxhash.model.tables import TableFunction
from auxhash.search.index import HammingIndex

NAMES = ("network", "linear")
N_HIDDEN = 1024  # units of a network
N_STEPS = 2000
RATE = 0.005  # length of the first steps
RIDGE = 1e-3  # of the start, relative to the mean variance of the features
N_REPORTS, PATIENCE = 20, 4  # times that held-out queries are asked, and how many in vain
MAX_HELD_OUT = 1000  # queries
FIRST = 10  # rows among which the relevant ones of held-out queries are counted


class Relevance(NamedTuple):
    """Rows relevant to queries: those of query i are rows[starts[i]:starts[i + 1]]."""

    starts: Numbers
    rows: Numbers

    def only(self, queries: Numbers) -> "Relevance":
        """Return the relevance of these queries; all others have no relevant row."""
        kept = np.zeros(len(self.starts) - 1, bool)
        kept[queries] = True
        size = np.where(kept, np.diff(self.starts), 0)
        return Relevance(
            np.concatenate([[0], np.cumsum(size)]),
            self.rows[np.repeat(kept, np.diff(self.starts))],
        )


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
        recall_: of the held-out queries' relevant rows, the share among the first 10, by report.
        made_for_: fingerprint of the codes, if they have one.
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

    tables_: TableFunction = field(init=False)
    recall_: list[float] = field(init=False)
    made_for_: str | None = field(init=False)

    @learning
    def fit(self, Q: ArrayLike, rows: Any, codes: Any, made_for: str | None = None) -> Self:
        """Learn from queries Q (m, D) and the rows that are relevant to each.

        Args:
            rows: (m,) a row number for each query, or a list of row numbers for each.
            codes: packed (n, ceil(n_bits / 8)), or an index, whose codes are meant in their order.
            made_for: fingerprint of the model of the codes; by default that of the index.
        """
        self._check_parameters()
        queries = check_points(self, Q, least=3)
        packed = _packed(codes, int(self.n_bits))
        made_for = checked("made_for", made_for or getattr(codes, "fingerprint", None))
        relevance = checked_relevance(rows, len(queries), len(packed))
        choosing, preparing, moving = generator(self.random_state).spawn(3)
        order = choosing.permutation(len(queries))
        n_held_out = min(MAX_HELD_OUT, int(self.validation * len(queries)))
        held_out, learnt = order[:n_held_out], np.sort(order[n_held_out:])
        h = self._start(queries, relevance.only(learnt), packed, preparing)
        run = _Run(self, h, queries, relevance, packed, learnt, held_out, moving)
        self.recall_ = run.descend()
        self._take(run)
        self.made_for_ = made_for
        self.labels_, self.data_fingerprint_ = None, fingerprint(queries, None)
        self.codes_ = encoded(self.hash_function_, queries)
        return self

    def _start(
        self, Q: AnyArray, relevance: Relevance, packed: Packed, rng: np.random.Generator
    ) -> SVMHash | NetworkHash:
        """Return a function whose outputs are the mean code of the relevant rows, by ridge."""
        b, scaled = int(self.n_bits), Unit() if self.metric == "cosine" else Scaled()
        network = NetworkHash(N_HIDDEN, decay=0.0, map=scaled, dropout=0.0, noise=QUERY_NOISE)
        kind: Any = SVMHash(scaled) if self.hash_function == "linear" else network
        h = kind.prepare(Q, rng)
        F = h.features(Q)
        used = np.flatnonzero(np.diff(relevance.starts))
        sums = np.add.reduceat(signs(packed, b)[relevance.rows], relevance.starts[used])
        X = F[used]
        G = X.T @ X
        G[np.diag_indices(len(G))] += RIDGE * np.trace(G) / len(G)
        W = np.linalg.solve(G, X.T @ (sums / np.diff(relevance.starts)[used, None]))
        n_dims = max(b, min(F.shape[1] - 1, MAX_DIMS))
        more = rng.standard_normal((len(W), n_dims - b))
        more[-1] = 0
        started: SVMHash | NetworkHash = h.with_linear(np.hstack([W, W, more]))
        return started

    def _take(self, run: "_Run") -> None:
        """Set what was learnt: the code's outputs, then the vector's."""
        h, codebook = run.learnt_function()
        assert h.W is not None
        b = int(self.n_bits)
        self.hash_function_ = replace(h, W=np.ascontiguousarray(h.W[:, :b]))
        vector = replace(h, W=np.ascontiguousarray(h.W[:, b:]))
        self.tables_ = TableFunction.of(vector, codebook)

    def tables(self, Q: ArrayLike) -> Single:
        """Return tables (m, ceil(n_bits / 8), 256), for `HammingIndex.search_tables`."""
        return replace(self.model_, n_jobs=self.n_jobs).tables(check_queries(self, Q))

    def score(self, Q: ArrayLike, rows: Any, codes: Any, k: int = FIRST) -> float:  # type: ignore[override]
        """Return the share of relevant rows among the first k by tables, the mean over queries."""
        packed = _packed(codes, int(self.n_bits))
        tables = self.tables(Q)
        relevance = checked_relevance(rows, len(tables), len(packed))
        return recall(tables, relevance, np.arange(len(tables)), packed, k)

    def _check_parameters(self) -> None:
        check_stored(self)
        checks.integer("n_bits", self.n_bits, 1, MOST_BITS)
        checks.integer("n_steps", self.n_steps, 1)
        checks.one_of("hash_function", self.hash_function, NAMES)
        checks.one_of("metric", self.metric, METRICS)
        checks.one_of("device", self.device, devices.NAMES)
        if not 0 <= checks.number("validation", self.validation, 0) < 1:
            raise ValueError(f"validation must be from 0 to below 1, got {self.validation!r}")


class _Run:
    """Gradient steps of one fit, and what held-out queries find."""

    def __init__(
        self,
        settings: QueryTables,
        h: SVMHash | NetworkHash,
        Q: AnyArray,
        relevance: Relevance,
        packed: Packed,
        learnt: Numbers,
        held_out: Numbers,
        rng: np.random.Generator,
    ) -> None:
        self.settings, self.h, self.rng = settings, h, rng
        self.relevance, self.packed, self.held_out = relevance, packed, held_out
        b, device = int(settings.n_bits), devices.get(settings.device)
        known = Relevant(*relevance.only(learnt), len(packed))
        with threads.pool():
            smooth: Any = device.carry(h).smooth(device.put(h.features(Q)), rng)
        assert h.W is not None
        self.asker = Asker(smooth, codebook_of_bits(b, h.W.shape[1] - b, rng))
        rank = QueryRank(known, self.asker, settings.n_steps, RATE, BATCH_SIZE, SAMPLE, (b,))
        self.steps = FixedCodes(rank, device.put(packed))

    def descend(self) -> list[float]:
        """Make the steps, keep the best parameters; return the recall of every report."""
        reports: list[float] = []
        best: list[Single] | None = None
        ends = np.unique(np.linspace(0, self.settings.n_steps, N_REPORTS + 1).astype(int))
        self.steps.begin(self.rng)
        with threads.pool() as run:
            for start, stop in pairwise(ends.tolist()):
                for t in range(start, stop):
                    self.steps.move(t, run)
                if not len(self.held_out):
                    continue
                reports.append(self._recall(run))
                if reports[-1] >= max(reports):
                    best = self.asker.adam.state()[0]
                elif len(reports) - 1 - int(np.argmax(reports)) >= PATIENCE:
                    break
        if best is not None:
            _, mean, square = self.asker.adam.state()
            self.asker.adam.restore(best, mean, square)
        return reports

    def _recall(self, run: threads.Run) -> float:
        b, fetch = int(self.settings.n_bits), self.asker.device.fetch
        vectors = fetch(self.asker.smooth.outputs(self.held_out, run))[:, b:]
        tables = -vectors @ fetch(self.asker.codebook).T
        tables = tables.reshape(len(vectors), -1, VALUES)
        return recall(tables, self.relevance, self.held_out, self.packed, FIRST)

    def learnt_function(self) -> tuple[SVMHash | NetworkHash, Single]:
        """Return the function with both kinds of outputs, and the codebook."""
        fetch = self.asker.device.fetch
        weights: list[Array] = [fetch(each) for each in self.asker.smooth.weights()]
        return self.h.moved(weights), fetch(self.asker.codebook)


def recall(tables: Single, relevance: Relevance, queries: Numbers, packed: Packed, k: int) -> float:
    """Return the share of the queries' relevant rows among the first k, the mean over queries."""
    index = HammingIndex(8 * packed.shape[1]).add(packed)
    hits = index.search_tables(np.ascontiguousarray(tables, np.float32), min(k, len(packed)))[1]
    shares = [
        np.isin(relevance.rows[relevance.starts[i] : relevance.starts[i + 1]], row).mean()
        for i, row in zip(queries.tolist(), hits, strict=True)
    ]
    return float(np.mean(shares))


def _packed(codes: Any, n_bits: int) -> Packed:
    """Return the codes of an index, named or not, or packed codes; there must be some."""
    index = getattr(codes, "index", codes)  # that of a NamedIndex
    packed = as_packed(getattr(index, "packed", index), "codes", n_bits)
    if not len(packed):
        raise ValueError("codes must hold at least one code, got none")
    return packed


def checked_relevance(rows: Any, n_queries: int, n_codes: int) -> Relevance:
    """Check the rows that are relevant to each query: a number, or a list of them, per query."""
    if len(rows) != n_queries:
        raise ValueError(
            f"rows must say for each of {n_queries} queries which are relevant, got {len(rows)}"
        )
    lists: Sequence[AnyArray] = [np.atleast_1d(np.asarray(each)) for each in rows]
    size = np.array([len(each) for each in lists])
    if not size.all():
        raise ValueError(f"rows must not be empty: query {int(np.argmin(size))} has none")
    flat = np.concatenate(lists)
    if flat.dtype.kind not in "iu" or flat.ndim != 1:
        raise checks.ArgumentError(
            f"rows must be row numbers of codes, not ids or names, got {flat.dtype}"
        )
    if flat.min() < 0 or flat.max() >= n_codes:
        wrong = flat.min() if flat.min() < 0 else flat.max()
        raise ValueError(f"rows must lie in 0..{n_codes - 1}, got {wrong}")
    return Relevance(np.concatenate([[0], np.cumsum(size)]), flat.astype(np.int64))
