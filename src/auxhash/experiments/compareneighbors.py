"""Comparison without labels: which share of the nearest neighbours do codes of some bytes find?"""

import math
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from auxhash.codes import Packed
from auxhash.compute import checks, clock, context, deadline
from auxhash.compute.arrays import AnyArray, Numbers, Single
from auxhash.compute.device import DeviceName
from auxhash.compute.neighbors import METRICS, Metric, nearest, normalized
from auxhash.compute.version import __version__
from auxhash.compute.words import count
from auxhash.experiments import coders, runs
from auxhash.experiments.cells import Cell, Cells, Configuration, Facts, Memory
from auxhash.experiments.coders import Coder, HasherCoder, Ranking, SignBits
from auxhash.experiments.comparison import (
    BEST,
    EXACT,
    ComparedRows,
    Row,
    duration,
    in_turn,
    several,
    share,
    size,
)
from auxhash.experiments.datasets.dataset import Dataset, Points, draw
from auxhash.experiments.entries import (
    BY_NAME,
    LINEAR,
    METHODS,
    NETWORK,
    Entry,
    MethodLike,
    Methods,
    Shared,
    entries,
    shown,
)
from auxhash.experiments.figures.styles import LONG, SHORT, looks
from auxhash.experiments.svg import Plot, Series
from auxhash.learn.hasher import Hasher
from auxhash.model.identity import in_words
from auxhash.search.expected import NEAREST
from auxhash.search.metrics.ranks import NeighborRanks
from auxhash.search.metrics.recall import (
    RECALL_RANKS,
    RECALL_RANKS_OF_ONE,
    checked_points,
    figures,
)

N_BYTES = (4, 8, 16, 32)
MAX_CODE_BYTES = 4095
MAX_TRAIN, MAX_BASE, MAX_QUERIES = 20_000, 100_000, 1_000  # points drawn of a larger file
POINTS_PER_QUERY = 10  # one point in so many is a query
N_TIMED_QUERIES = 100
N_SHOWN_QUERIES = 10  # whose first points are kept, to be shown
POINTS_PER_TIMING = 1_000_000  # times of encoding are given for so many
FACTS_VERSION = 2  # raise it when other facts of a run are kept

SIGNS = "signs"
QUANTIZERS: dict[str, Callable[[int, int], Coder]] = {  # of a number of bytes and a seed
    "PQ": coders.PQ,
    "RaBitQ": coders.RaBitQ,
    "OPQ": coders.OPQ,
    "RQ": coders.RQ,  # these two by name: they take long
    "LSQ": coders.LSQ,
}
CENTROID_METHODS = ("PQ", "OPQ", "RQ", "LSQ")
MIN_CENTROID_POINTS = 39 * coders.N_CENTROIDS  # to learn centroids from; faiss warns of fewer
# From cheap to expensive, so that a time limit leaves out as few as it can.
DEFAULT_METHODS = (SIGNS, "ITQ", "PQ", "RaBitQ", LINEAR, "OPQ", NETWORK)
DASHES = {"Hamming": SHORT, "tables": LONG}
MEASURES = (*(f"{NEAREST}@{k}" for k in RECALL_RANKS), *(f"R@{k}" for k in RECALL_RANKS_OF_ONE))
LEGEND = (
    f"{NEAREST}@k: share of the {NEAREST} nearest that are among the first k. {NEAREST}@100 is also"
    f" what {NEAREST} results have once the first 100 are re-ranked by the vectors. R@k: share of "
    "queries whose nearest is among the first k. By outputs: real outputs of the query against "
    "codes."
)
FIGURES = (*MEASURES, "±", "codes", "model", "learn s", "1M s", "ms")
COLUMNS = f"{LEGEND} Own: the method's own distances. ★: the best of its size."


@dataclass(frozen=True)
class NeighborComparison(ComparedRows):
    """One row per method, number of bytes and distance, best first within each size.

    `first` has the positions in the base of the first points, for the first queries.
    """

    search: "Search"
    first: dict[tuple[str, str, int], Numbers]

    legend = COLUMNS
    spare = ("1M s", "R@100", "model", "codes", "10@1000", "R@10", "±", "ms", "learn s", "R@1")

    @property
    def title(self) -> str:
        return f"What codes of a few bytes cost on {self.search.data.name}"

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of text."""
        rows = [
            [
                f"{row['bytes']:,}",
                BEST if row["best"] else "",
                row["method"],
                row["distance"],
                *figure_texts(row),
            ]
            for row in self.rows
        ]
        return ["bytes", "", "method", "by", *FIGURES], rows

    def plots(self) -> list[Plot]:
        """Shares of the nearest that are found over bytes, among the first 10 and 100."""
        titles = {
            MEASURES[0]: "of the 10 nearest, among the first 10",
            MEASURES[1]: "among the first 100 (after re-ranking)",
        }
        return [
            Plot(title, "bytes per point", "share", curves(self.rows, measure), x_log=True)
            for measure, title in titles.items()
            if not math.isnan(self.rows[0][measure])  # the base is large enough
        ]

    def summary(self) -> str:
        """The best of each size, and what makes it look better than it is."""
        best = [
            f"{row['method']} finds {share(row[MEASURES[0]])} of the {NEAREST} nearest with "
            f"{count(row['bytes'], 'byte')}"
            for row in self.rows
            if row["best"]
        ]
        doubt = self.protocol.get("few points")
        return " ".join(f"{part}." for part in ("; ".join(best), doubt) if part)


def figure_texts(row: Row) -> list[str]:
    """Return the FIGURES of a row as text."""
    return [
        *(share(row[name]) for name in (*MEASURES, "error")),
        size(row["code bytes"]),
        size(row["model bytes"]),
        *(duration(row[name]) for name in ("learn s", "encode 1M s", "ms per query")),
    ]


def curves(rows: Sequence[Row], measure: str, methods: Iterable[str] = ()) -> list[Series]:
    """Curves of a measure over the bytes, one per method and distance.

    `methods` are those of several plots, which look the same in each.
    """
    rows = [row for row in rows if row["method"] != EXACT]
    look = looks([*methods, *(row["method"] for row in rows)])
    drawn = []
    for method, distance in dict.fromkeys((row["method"], row["distance"]) for row in rows):
        own = [row for row in rows if (row["method"], row["distance"]) == (method, distance)]
        dashes = DASHES.get(distance, "")
        label = f"{method}, {distance}" if dashes else method
        x, y = [row["bytes"] for row in own], [row[measure] for row in own]
        drawn.append(Series(label, replace(look[method], dashes=dashes), x, y, keyed=not dashes))
    return drawn


@dataclass(frozen=True, eq=False)
class Search:
    """Points to learn from, points to search, queries with their true neighbours; all checked."""

    data: Dataset
    metric: Metric
    n_points: int  # of the file, of which the base may be a part
    base_rows: Numbers  # of the file
    query_rows: Numbers  # of the file, or of the file of queries
    exact_ms: float  # per query, of the search that found the neighbours

    @property
    def neighbors(self) -> Numbers:
        near = self.data.query.neighbors
        assert near is not None  # as `prepared` found them
        return np.asarray(near)


@dataclass(frozen=True)
class CoderJob:
    """A method at a number of bytes."""

    name: str
    n_bytes: int
    make: Callable[[], Coder]
    configuration: Configuration

    def __str__(self) -> str:
        return f"{self.name}, {count(self.n_bytes, 'byte')}"


def compare_neighbors(
    data: Dataset | AnyArray,
    methods: Methods | None = None,
    n_bytes: int | Iterable[int] = N_BYTES,
    queries: AnyArray | None = None,
    metric: Metric = "cosine",
    n_train: int | None = None,
    n_base: int | None = None,
    seconds: float | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: int = 1,
    device: DeviceName = "cpu",
    name: str = "X",
) -> NeighborComparison:
    """Compare methods by the nearest neighbours that their codes find; see `auxhash.compare`."""
    sizes = several("n_bytes", n_bytes, 1, MAX_CODE_BYTES)
    limit = math.inf if seconds is None else checks.number("seconds", seconds, 0, strict=True)
    cells = Memory() if folder is None else Cells(folder)
    left_out: list[tuple[str, CoderJob]] = []  # with the reason
    done: list[tuple[CoderJob, Cell]] = []

    def run(job: CoderJob) -> None:
        try:
            deadline.check()
            done.append((job, _obtained(job, search, cells)))
        except deadline.DeadlineError:
            left_out.append((f"not done within {seconds:g} s", job))
        except (ImportError, ValueError) as error:
            left_out.append((str(error), job))
        except Exception as error:  # one method that fails must not stop the others
            left_out.append((traceback.format_exception_only(error)[-1].strip(), job))

    with context.using(n_jobs=n_jobs), deadline.within(limit):
        try:
            search = prepared(data, queries, metric, n_train, n_base, seed, name)
        except deadline.DeadlineError:
            raise ValueError(f"the true neighbours were not found within {seconds:g} s") from None
        in_turn(_jobs(search, methods, sizes, seed, device), run, verbose)
    if not done:
        raise ValueError(f"no method could be measured: {_in_words(left_out)}")
    rows = [row for job, cell in done for row in _rows(job.name, job.n_bytes, cell, search)]
    protocol = _protocol(search, rows, left_out, seed)
    first = {
        (job.name, distance, job.n_bytes): arrays[f"{distance} first"]
        for job, (facts, arrays) in done
        for distance in facts["ms per query"]
    }
    return NeighborComparison(_ranked([*rows, _exact(search)]), protocol, search, first)


def prepared(
    data: Dataset | AnyArray,
    queries: AnyArray | None,
    metric: Metric,
    n_train: int | None = None,
    n_base: int | None = None,
    seed: int = 0,
    name: str = "X",
) -> Search:
    """Draw samples of what is large, scale to length 1 for cosine, find the true neighbours."""
    checks.one_of("metric", metric, METRICS)
    if isinstance(data, Dataset):
        X, name = data.base.X, data.name
        queries = data.query.X if queries is None else queries
    else:
        X = np.asarray(data)
    X = checked_points(X, name)
    Q = X if queries is None else checked_points(queries, "queries", 1)
    if Q.shape[1] != X.shape[1]:
        raise checks.ArgumentError(
            f"queries have {count(Q.shape[1], 'feature')}, and {name} has {X.shape[1]}"
        )
    n_query = min(MAX_QUERIES, len(X) // POINTS_PER_QUERY if queries is None else len(Q))
    asked = draw(len(Q), n_query, seed, "n_query")
    others = np.setdiff1d(np.arange(len(X)), asked) if queries is None else np.arange(len(X))
    most = min(len(others), MAX_BASE)
    base = others[draw(len(others), most if n_base is None else n_base, seed, "n_base")]
    most = min(len(base), MAX_TRAIN)
    train = base[draw(len(base), most if n_train is None else n_train, seed, "n_train")]
    origin = "drawn from it and not searched" if queries is None else f"of {len(Q):,} given"
    text = (
        f"{name}: {count(len(X), 'point')} of {count(X.shape[1], 'feature')}; {len(base):,} are "
        f"searched for {count(len(asked), 'query')} ({origin})"
    )
    asker = name if queries is None else "queries"
    drawn_rows = (X, train, name), (X, base, name), (Q, asked, asker)
    parts = [_single(points, rows, metric, role) for points, rows, role in drawn_rows]
    began = clock.seconds()
    near = nearest(parts[1], parts[2], min(NEAREST, len(base)))[0]
    ms = 1000 * (clock.seconds() - began) / len(asked)
    drawn = Dataset(
        name, Points(parts[0]), Points(parts[1]), Points(parts[2], neighbors=near), text
    )
    return Search(drawn, metric, len(X), base, asked, ms)


def _single(X: AnyArray, rows: Numbers, metric: Metric, name: str) -> Single:
    """Rows of X in single precision, for cosine scaled to length 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.asarray(normalized(X[rows]) if metric == "cosine" else X[rows], np.float32)
    bad = rows[~np.isfinite(points).all(axis=1)]
    if len(bad):
        raise checks.ArgumentError(f"{name} must hold finite numbers; row {bad[0]} does not")
    return points


def _jobs(
    search: Search,
    methods: Methods | None,
    sizes: Sequence[int],
    seed: int,
    device: DeviceName,
) -> list[CoderJob]:
    """All methods at all sizes; signs at the only size that they have."""
    listed = _listed(DEFAULT_METHODS if methods is None else methods)
    # A mapping's names are the user's; otherwise, hashers of one class are told apart.
    named = isinstance(methods, Mapping)
    hashers = [(name, method) for name, method in listed if not _is_other(method)]
    known = dict(hashers) if named else [method for _, method in hashers]
    shared = Shared(metric=search.metric)
    prepared_hashers = iter(entries(known, shared) if hashers or not listed else ())
    points = [getattr(search.data, part).X for part in runs.PARTS]
    mark = in_words([FACTS_VERSION, search.metric, *points])
    n_features = search.data.base.X.shape[1]
    jobs = []
    for name, method in listed:
        if method == SIGNS:
            n = -(-n_features // 8)
            jobs.append(_other_job(name, SIGNS, n, partial(SignBits, n_features), mark, seed))
        elif _is_other(method):
            jobs += [
                _other_job(name, method, n, partial(QUANTIZERS[method], n, seed), mark, seed)
                for n in sizes
            ]
        else:
            entry = next(prepared_hashers)
            for n in sizes:
                same = entry.configuration(mark, 8 * n, seed, device) | {"measured": "neighbours"}
                make = partial(_hashed, entry, 8 * n, seed, device)
                jobs.append(CoderJob(entry.name, n, make, same))
    if len({str(job) for job in jobs}) < len(jobs):
        raise checks.ArgumentError("methods must be named once each")
    return jobs


def _listed(methods: Methods) -> list[tuple[str, MethodLike]]:
    """Names and methods; raises for names that are not known."""
    if isinstance(methods, (str, Hasher)):
        methods = [methods]
    if not isinstance(methods, Iterable):
        raise checks.ArgumentError(f"methods must be names or hashers, got {shown(methods)}")
    every = SIGNS, *QUANTIZERS, *BY_NAME, *METHODS
    named = methods if isinstance(methods, Mapping) else {}
    listed = [(name, named.get(name, name)) for name in methods]
    for _, method in listed:
        if isinstance(method, str) and ":" not in method and method not in every:
            raise checks.unknown("method", method, every, "a hasher")
    return listed


def _other_job(
    name: str, method: str, n_bytes: int, make: Callable[[], Coder], mark: str, seed: int
) -> CoderJob:
    same = {"data": mark, "method": method, "bytes": n_bytes, "seed": seed, "version": __version__}
    return CoderJob(name, n_bytes, make, same)


def _is_other(method: object) -> bool:
    """Return True for what is no hasher."""
    return isinstance(method, str) and (method == SIGNS or method in QUANTIZERS)


def _hashed(entry: Entry, n_bits: int, seed: int, device: DeviceName) -> Coder:
    return HasherCoder(entry.prepared(n_bits, seed, device))


def _obtained(job: CoderJob, search: Search, cells: Cells | Memory) -> Cell:
    """Facts and ranks of a job, kept from before or measured now."""
    if job.configuration in cells:
        return cells.read(job.configuration)
    facts, arrays = _measured(job.make(), search)
    try:
        cells.write(job.configuration, facts, arrays)
    except OSError as error:  # a full disk: what was measured can be shown all the same
        warnings.warn(f"{job} could not be kept: {error}", stacklevel=3)
    return facts, arrays


def _measured(coder: Coder, search: Search) -> Cell:
    data = search.data
    began = clock.seconds()
    coder.fit(data.train.X)
    seconds = clock.seconds() - began
    codes, encoding = timed_codes(coder.encode, data.base.X)
    facts = {"learn s": seconds, "encode 1M s": encoding, "model bytes": coder.model_bytes()}
    return _searched(facts, coder.rankings(data.query.X, codes), search)


def timed_codes(encode: Callable[[AnyArray], Packed], X: AnyArray) -> tuple[Packed, float]:
    """Return the codes of points, and the seconds that a million of them would take."""
    began = clock.seconds()
    codes = encode(X)
    return codes, (clock.seconds() - began) * POINTS_PER_TIMING / len(X)


def _searched(facts: Facts, rankings: Iterable[Ranking], search: Search) -> Cell:
    """Add the time of a query by each distance to the facts; return them and all ranks."""
    times: dict[str, float] = {}
    arrays: dict[str, AnyArray] = {}
    for ranking in rankings:
        n = min(N_TIMED_QUERIES, len(search.data.query))
        first = ranking.search(n, NEAREST)[:N_SHOWN_QUERIES]  # compiles
        began = clock.seconds()
        ranking.search(n, NEAREST)
        times[ranking.distance] = 1000 * (clock.seconds() - began) / n
        ranks = ranking.ranks(search.neighbors)
        name = ranking.distance
        arrays |= {f"{name} above": ranks.above, f"{name} tied": ranks.tied, f"{name} first": first}
    return {**facts, "ms per query": times}, arrays


def learnt_rows(
    rankings: Iterable[Ranking], n_bytes: int, search: Search, **facts: float
) -> list[Row]:
    """Rows of codes that are there, one per ranking, NaN for what is not among the `facts`."""
    unknown = dict.fromkeys(("learn s", "encode 1M s", "model bytes"), math.nan)
    return list(_rows("", n_bytes, _searched({**unknown, **facts}, rankings, search), search))


def _rows(method: str, n_bytes: int, cell: Cell, search: Search) -> Iterator[Row]:
    facts, arrays = cell
    for distance, ms in facts["ms per query"].items():
        ranks = NeighborRanks(arrays[f"{distance} above"], arrays[f"{distance} tied"])
        yield {
            "method": method,
            "distance": distance,
            "bytes": n_bytes,
            **figures(ranks, len(search.data.base)),
            "code bytes": n_bytes * search.n_points,
            "model bytes": facts["model bytes"],
            "learn s": facts["learn s"],
            "encode 1M s": facts["encode 1M s"],
            "ms per query": ms,
        }


def _exact(search: Search) -> Row:
    """The row of reference: the vectors themselves, in single precision."""
    n_base, width = search.data.base.X.shape
    place = np.tile(np.arange(search.neighbors.shape[1]), (2, 1))
    return {
        "method": EXACT,
        "distance": search.metric,
        "bytes": 4 * width,
        **figures(NeighborRanks(place, np.ones_like(place)), n_base),
        "code bytes": 4 * width * search.n_points,
        "model bytes": 0,
        "learn s": 0.0,
        "encode 1M s": 0.0,
        "ms per query": search.exact_ms,
    }


def _ranked(rows: Iterable[Row]) -> list[Row]:
    """Rows by size, the best first, which is marked where it has others beside it."""
    ordered = sorted(rows, key=lambda row: (row["bytes"], -row[MEASURES[0]], -row[MEASURES[1]]))
    sizes = Counter(row["bytes"] for row in ordered)
    best = {row["bytes"]: row for row in reversed(ordered) if sizes[row["bytes"]] > 1}
    return [{**row, "best": best.get(row["bytes"]) is row} for row in ordered]


def _protocol(
    search: Search,
    rows: Sequence[Row],
    left_out: Sequence[tuple[str, CoderJob]],
    seed: int,
) -> dict[str, object]:
    data = search.data
    error = max(row["error"] for row in rows)
    protocol: dict[str, object] = {
        "data": f"{data.protocol}; methods learn from {len(data.train):,} of them",
        "neighbours": f"exact, by {search.metric} distance; ties in a code's distances count by "
        "their expected value",
        "how far off": f"standard error of {NEAREST}@{NEAREST} over the queries: at most "
        f"{error:.3f}; twice that is rarely exceeded",
    }
    if search.n_points > len(data.base) + len(data.query):
        protocol["not all"] = (
            f"recall depends on how many points are searched: among {search.n_points:,} it differs"
        )
    measured = {row["method"] for row in rows}
    learnt = [name for name in CENTROID_METHODS if name in measured]
    if learnt and len(data.train) < MIN_CENTROID_POINTS:
        protocol["few points"] = (
            f"{' and '.join(learnt)}: the 256 centroids per byte are learnt from the "
            f"{len(data.train):,} points that are searched, and fit them too well: of points that "
            "come later less is found"
        )
    if len(data.train) < len(data.base):
        protocol["learnt from a part"] = "codes that are learnt from more points are better"
    protocol |= {**units(search), "seed": seed}
    if left_out:
        protocol["left out"] = _in_words(left_out)
    return protocol


def units(search: Search) -> dict[str, str]:
    """Explanation of bytes and times."""
    return {
        "bytes": f"per point; codes: of {search.n_points:,} points; model: what encodes and "
        "searches them, such as weights or centroids, once",
        "times": "seconds to learn, and to encode a million points; ms: milliseconds to search "
        f"{len(search.data.base):,} codes for one query, of {N_TIMED_QUERIES} at once; compiling "
        "is not counted",
    }


def _in_words(left_out: Sequence[tuple[str, CoderJob]]) -> str:
    """Each reason, after the methods and sizes that it holds for."""
    groups: dict[str, dict[str, list[str]]] = {}
    for reason, job in left_out:
        groups.setdefault(reason, {}).setdefault(job.name, []).append(f"{job.n_bytes:,}")
    lines = []
    for reason, jobs in groups.items():
        which = [f"{name} ({', '.join(sizes)} bytes)" for name, sizes in jobs.items()]
        lines.append(f"{', '.join(which)}: {reason}")
    return "; ".join(lines)
