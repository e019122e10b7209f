"""compare: many methods on one data set, in one table."""

import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auxhash.codes import MAX_BITS
from auxhash.compute import context
from auxhash.compute import device as devices
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.neighbors import Metric
from auxhash.compute.words import count
from auxhash.experiments import datasets, runs
from auxhash.experiments.cells import Cells, Facts, Memory
from auxhash.experiments.compareneighbors import N_BYTES, compare_neighbors
from auxhash.experiments.comparison import (
    BEST,
    EXACT,
    NONE,
    ComparedRows,
    Row,
    duration,
    in_turn,
    several,
    share,
    size,
)
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.entries import (
    WITH_LABELS,
    Entry,
    Methods,
    Shared,
    entries,
    in_short,
    shown,
)
from auxhash.experiments.figures.styles import looks
from auxhash.experiments.runs import PairNumbers
from auxhash.experiments.svg import Plot, Series, short
from auxhash.mac import losses
from auxhash.mac.affinity import Affinity
from auxhash.model.encoding import Arrays
from auxhash.search.metrics.gpu import MAX_GPU_BITS

COLUMNS = (
    "L(h): loss over the training pairs. p@k: share of a query's k nearest that are right. mAP: "
    "the same over all ranks. b_eff: effective bits. train s: seconds to learn. codes/s: points "
    "encoded per second. model: its size. Means over the seeds. "
    f"{BEST}: the highest mAP of its length. "
    f"{EXACT}: exact distances between the points themselves, in single precision."
)
SHORT_NAMES = {"model bytes": "model"}
OWN = "own"  # the column of a method's own parameters
FAILED = "failed"  # the column that says why, if any method failed


@dataclass(frozen=True)
class Comparison(ComparedRows):
    """One row per method, number of bits and seed; if the method failed, its row says why.

    `own` lists the parameters that a method was given as a hasher and that are neither its class's
    defaults nor what all share. L(h) is the shared loss over the shared pairs in every row. The
    last row is that of exact distances between the vectors themselves.
    """

    spare = ("model", "codes/s", "b_eff", "train s", "L(h)")

    @property
    def title(self) -> str:
        return f"Methods compared on {self.protocol['data set']}"

    @property
    def legend(self) -> str:
        every = (
            f"{key[0]}, {count(key[1], 'bit')}: {_why(rows)}" for key, rows in self._runs().items()
        )
        failed = [line for line in every if not line.endswith(": ")]
        return "\n".join([COLUMNS, *(f"Failed: {line}" for line in failed)])

    def _runs(self) -> dict[tuple[str, int], list[Row]]:
        """Rows of all seeds of each method and number of bits."""
        runs: dict[tuple[str, int], list[Row]] = {}
        for row in self.rows:
            runs.setdefault((row["method"], row["bits"]), []).append(row)
        return runs

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of text: the mean over the seeds of each method and number of bits."""
        hidden = ["method", "bits", OWN, "seed", FAILED]
        measures = [name for name in self.rows[0] if name not in hidden]
        means = {key: _mean([row["mAP"] for row in rows]) for key, rows in self._runs().items()}
        # By bits; those that failed, whose mean is NaN, come last.
        order = sorted(means, key=lambda key: (key[1], -np.nan_to_num(means[key], nan=-1.0)))
        lengths = Counter(key[1] for key in order)
        best = {key[1]: key for key in reversed(order) if lengths[key[1]] > 1}
        rows = [
            [
                f"{key[1]:,}",
                BEST if best.get(key[1]) == key else "",
                key[0],
                *(_shown(name, [row[name] for row in self._runs()[key]]) for name in measures),
            ]
            for key in order
        ]
        return ["bits", "", "method", *(SHORT_NAMES.get(name, name) for name in measures)], rows

    def plots(self) -> list[Plot]:
        """Precision over k for each number of bits; over bits, if there are several."""
        return [*self.over_k(), *self.over_bits()]

    def over_k(self) -> list[Plot]:
        """Precision over k, one plot for each number of bits."""
        good, ranks = self._good(), self._ranks()
        reference = [row for row in good if row["method"] == EXACT]
        plots = []
        for b in self._lengths():
            rows = [row for row in good if row["bits"] == b and row["method"] != EXACT] + reference
            points = ((row["method"], k, row[f"p@{k}"]) for row in rows for k in ranks)
            plots.append(Plot(count(b, "bit"), "k", "precision", self._series(points), x_log=True))
        return plots

    def over_bits(self, k: int | None = None) -> list[Plot]:
        """Precision at k (by default, the last) over bits, in one plot; none for one length."""
        lengths = self._lengths()
        if len(lengths) < 2:
            return []
        k = self._ranks()[-1] if k is None else k
        points = (
            (row["method"], b, row[f"p@{k}"])
            for row in self._good()
            for b in (lengths if row["method"] == EXACT else [row["bits"]])
        )
        series = self._series(points)
        return [Plot(f"k = {k}", "number of bits", "precision", series, x_log=True)]

    def _good(self) -> list[Row]:
        return [row for row in self.rows if not row[FAILED]]

    def _lengths(self) -> list[int]:
        return sorted({row["bits"] for row in self._good() if row["method"] != EXACT})

    def _ranks(self) -> list[int]:
        """Ranks within the base, at which precision was measured."""
        exact = self.rows[-1]
        return sorted(int(n[2:]) for n, v in exact.items() if n[:2] == "p@" and v == v)

    def _series(self, points: Iterable[tuple[str, int, float]]) -> list[Series]:
        """One series per method of (method, x, y): at each x the mean over seeds, and the range."""
        look = looks([EXACT, *(row["method"] for row in self.rows)])
        by_method: dict[str, dict[int, list[float]]] = {}
        for method, x, y in points:
            by_method.setdefault(method, {}).setdefault(x, []).append(y)
        series = []
        for method, values in by_method.items():
            every = [values[x] for x in sorted(values)]
            several = any(len(seeds) > 1 for seeds in every)
            spread = ([min(s) for s in every], [max(s) for s in every]) if several else ((), ())
            means = [sum(seeds) / len(seeds) for seeds in every]
            series.append(Series(method, look[method], sorted(values), means, *spread))
        return series

    def at(self, k: Iterable[int]) -> "Comparison":
        """The comparison with precision at these ranks alone."""
        wanted = {f"p@{rank}" for rank in k}
        rows = [
            {name: value for name, value in row.items() if name in wanted or name[:2] != "p@"}
            for row in self.rows
        ]
        return Comparison(rows, self.protocol)


RANKS = (100, 500, 1000)  # at which precision is measured


def compare(
    dataset: str | Dataset | ArrayLike,
    methods: Methods | None = None,
    bits: int | Iterable[int] | None = None,
    seeds: int | Iterable[int] = (0,),
    k: int | Iterable[int] = RANKS,
    loss: losses.LossLike = "ksh",
    n_similar: int | None = 100,
    n_dissimilar: int | None = 500,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    device: devices.DeviceName = "cpu",
    *,
    y: ArrayLike | None = None,
    n_bytes: int | Iterable[int] | None = None,
    queries: ArrayLike | None = None,
    metric: Metric = "cosine",
    n_train: int | None = None,
    n_base: int | None = None,
    seconds: float | None = None,
) -> ComparedRows:
    """Fit every method at every length, and measure what it finds: by labels, or by neighbours.

    With labels (of the data set, or y), methods are measured by precision, at `bits`. Without them,
    by the share of a query's nearest points in feature space that codes of `n_bytes` find; so are
    points with labels where `n_bytes` is given.

    A method given by name learns under the shared `loss`, `n_similar` and `n_dissimilar`, as far
    as it has such parameters. A hasher keeps every parameter of its own, its loss among them; what
    differs from the defaults and from what is shared is listed in the column `own`. Of any method,
    `n_bits`, `random_state` and `n_jobs` are set, and it is trained from scratch.

    All methods that learn from pairs get the same ones, drawn for each seed from the training
    labels (or, where there are none, from nearest neighbours). Only a hasher whose `n_similar` or
    `n_dissimilar` is not its class's default gets pairs drawn by its own numbers, of the same seed.

    Ctrl-C raises KeyboardInterrupt: no method that was stopped has a row, or is kept.

    Args:
        dataset: a name that `datasets.load` knows, a Dataset, or points (n, D).
        methods: names (see `auxhash.experiments.entries.METHODS`; module:function of a hasher of
            your own, or a function that returns one) or hashers, or a mapping from
            names of your own to either. Hashers of one class are told apart by their
            parameters, equal ones by a number. Without labels, "signs" (one bit per feature), and
            faiss's "PQ", "OPQ" and "RaBitQ" are names, too. By default a few of each kind.
        bits, seeds: one or several; 32 bits by default. Without labels, one seed.
        k: ranks at which precision is measured, one or several. Beyond the number of base points
            there is none: the table has a dash there, the rows NaN, and the protocol says so.
        loss: what methods given by name minimise, if they minimise a loss. The column L(h) is
            always this loss over the shared pairs, whatever a method minimised itself.
        n_similar, n_dissimilar: pairs drawn per training point; None takes all.
        folder: where codes are kept: what is there is not trained again, and an interrupted run
            goes on. None keeps them in memory only.
        device: "cpu", "cuda" or "auto": where methods that can be are trained (MACHash with
            z_step="descent", NeighborHash) and all codes are measured.
        y: labels (n,) of points.
        n_bytes: bytes per point, one or several; 4, 8, 16 and 32 by default.
        queries: points (q, D) to search for; by default, some of the points are held out.
        metric: "cosine" or "euclidean": which points are near to each other.
        n_train, n_base: points drawn to learn from, and to search; by default, at most 20,000 and
            100,000.
        seconds: without labels, a limit for all methods together: those that are not done are
            named in the protocol.

    Raises ValueError, before anything is trained, for arguments that are wrong.
    """
    if isinstance(dataset, str):
        dataset = datasets.load(dataset)
    elif not isinstance(dataset, Dataset):
        if np.ndim(dataset) == 0:
            kind = type(dataset).__name__
            raise ArgumentError(f"dataset must be a name, a Dataset or points (n, D), got {kind}")
        dataset = np.asarray(dataset)
    if isinstance(dataset, np.ndarray) and y is not None:
        dataset = datasets.from_arrays(dataset, y=y, n_train=n_train)
        n_train = None
    labelled = isinstance(dataset, Dataset) and (dataset.query.y is not None or bits is not None)
    by_labels: dict[str, tuple[object, object]] = {"k": (k, RANKS), "loss": (loss, "ksh")}
    by_labels |= {"bits": (bits, None), "n_similar": (n_similar, 100)}
    by_labels |= {"n_dissimilar": (n_dissimilar, 500)}
    by_neighbors: dict[str, tuple[object, object]] = {"queries": (queries, None)}
    by_neighbors |= {"metric": (metric, "cosine"), "n_train": (n_train, None)}
    by_neighbors |= {"n_base": (n_base, None), "seconds": (seconds, None)}
    if labelled and n_bytes is None:
        assert isinstance(dataset, Dataset)
        _refuse(by_neighbors, "is for points without labels, or with n_bytes")
        lengths = (32,) if bits is None else bits
        chosen = WITH_LABELS if methods is None else methods
        asked = Compared(dataset, chosen, lengths, seeds, k, loss, n_similar, n_dissimilar)
        with context.using(n_jobs=n_jobs):
            return compare_labels(asked, folder, verbose, device)
    _refuse(by_labels, "is for labels, and neighbours are compared: give n_bytes, or y")
    [seed, *more] = several("seeds", seeds, 0)
    if more:
        raise ArgumentError(f"seeds must be one where neighbours are compared, got {seeds!r}")
    return compare_neighbors(
        dataset,
        methods,
        N_BYTES if n_bytes is None else n_bytes,
        None if queries is None else np.asarray(queries),
        metric,
        n_train,
        n_base,
        seconds,
        folder,
        seed,
        n_jobs,
        verbose,
        device,
    )


def _refuse(arguments: dict[str, tuple[object, object]], why: str) -> None:
    """Raise if an argument is not its default."""
    for name, (value, default) in arguments.items():
        if value is not default and not (isinstance(value, (str, int, tuple)) and value == default):
            raise ArgumentError(f"{name} {why}")


@dataclass(frozen=True)
class Compared:
    """Arguments of a comparison by labels, as `compare` takes them."""

    data: Dataset
    methods: Methods
    bits: int | Iterable[int]
    seeds: int | Iterable[int]
    k: int | Iterable[int]
    loss: losses.LossLike = "ksh"
    n_similar: int | None = 100
    n_dissimilar: int | None = 500

    @property
    def shared(self) -> Shared:
        return Shared(self.loss, self.n_similar, self.n_dissimilar)


def compare_labels(
    asked: Compared,
    folder: str | Path | None = None,
    verbose: int = 1,
    device: devices.DeviceName = "cpu",
) -> Comparison:
    """Compare methods by the labels of what their codes find; see `compare`."""
    data, shared = asked.data, asked.shared
    losses.get(asked.loss)
    on = devices.get(device).name
    chosen = entries(asked.methods, shared)
    lengths = several("bits", asked.bits, 1, MAX_GPU_BITS if device == "cuda" else MAX_BITS)
    every_seed, ranks = several("seeds", asked.seeds, 0), several("k", asked.k, 1)
    cells = Memory() if folder is None else Cells(folder)
    mark = runs.data_identity(data)
    drawn = _Drawn(data, shared.pairs)
    drawn.turn_to(every_seed[0])
    known = drawn.of(shared.pairs)
    losses.curves(asked.loss, np.unique(known.y), lengths[0], known.kind)  # or raise at once
    rows = []

    def run(job: _Job) -> None:
        drawn.turn_to(job.seed)
        rows.append(job.row(cells, drawn))

    settings = data, mark, asked.loss, ranks, on
    jobs = [
        _Job(entry, b, seed, *settings) for seed in every_seed for b in lengths for entry in chosen
    ]
    in_turn(jobs, run, verbose)
    rows.append(_exact(data, ranks, every_seed[0]))
    return Comparison(rows, _protocol(data, shared, chosen, lengths, every_seed, ranks))


class _Drawn:
    """The pairs of one seed at a time, each kind drawn once."""

    def __init__(self, data: Dataset, shared: PairNumbers) -> None:
        self.data, self.shared = data, shared
        self.seed = -1
        self.kept: dict[PairNumbers, Affinity] = {}

    def turn_to(self, seed: int) -> None:
        """Draw the shared pairs of a seed, unless it is the same as before."""
        if seed != self.seed:
            self.seed, self.kept = seed, {}
            self.of(self.shared)

    def of(self, pairs: PairNumbers) -> Affinity:
        if pairs not in self.kept:
            self.kept[pairs] = runs.draw_pairs(self.data, pairs, self.seed)
        return self.kept[pairs]


@dataclass(frozen=True)
class _Job:
    """One row of a comparison: a method with a number of bits and a seed."""

    entry: Entry
    n_bits: int
    seed: int
    data: Dataset
    mark: str
    loss: losses.LossLike
    ranks: Sequence[int]
    device: devices.DeviceName

    def __str__(self) -> str:
        return f"{self.entry.name}, {count(self.n_bits, 'bit')}, seed {self.seed}"

    def row(self, cells: Cells | Memory, drawn: _Drawn) -> Row:
        """Train unless it was trained before; then measure the codes."""
        row: Row = {"method": self.entry.name, "bits": self.n_bits, "seed": self.seed}
        row[OWN] = in_short(self.entry.own)
        measures = ["L(h)", *(f"p@{rank}" for rank in self.ranks), "mAP", "b_eff"]
        measures += ["train s", "codes/s", "model bytes"]
        try:
            facts, codes = self._trained(cells, drawn)
            return row | self._measured(facts, codes, drawn.of(drawn.shared)) | {"failed": ""}
        except Exception as error:  # one method that fails must not stop the others
            why = traceback.format_exception_only(error)[-1].strip()
            return row | dict.fromkeys(measures, float("nan")) | {"failed": why}

    def _trained(self, cells: Cells | Memory, drawn: _Drawn) -> tuple[Facts, Arrays]:
        configuration = self.entry.configuration(self.mark, self.n_bits, self.seed, self.device)
        if configuration in cells:
            return cells.read(configuration)
        hasher = self.entry.prepared(self.n_bits, self.seed, self.device)
        facts, codes = runs.train(hasher, self.data, drawn.of(self.entry.pairs))
        try:
            cells.write(configuration, facts, codes)
        except OSError as error:  # a full disk: what was trained can be measured all the same
            warnings.warn(f"{self.entry.name} could not be kept: {error}", stacklevel=4)
        return facts, codes

    def _measured(self, facts: Facts, codes: Arrays, pairs: Affinity) -> Row:
        within = [rank for rank in self.ranks if rank <= len(self.data.base)]
        on: devices.DeviceName = "cpu" if self.device == "cpu" else "auto"  # the numbers are equal
        scores = runs.measure(codes, self.n_bits, self.data, within or [1], on)
        at = dict(zip(scores.k.tolist(), scores.precision.tolist(), strict=True))
        return {
            "L(h)": runs.training_loss(codes, self.n_bits, pairs, self.loss),
            **{f"p@{rank}": at[rank] if rank in within else float("nan") for rank in self.ranks},
            "mAP": scores.mean_average_precision,
            "b_eff": scores.utilization,
            "train s": facts["seconds"],
            "codes/s": facts["codes_per_second"],
            "model bytes": facts["bytes"],
        }


def _exact(data: Dataset, k: Sequence[int], seed: int) -> Row:
    """The row of reference: the base ranked by exact distances."""
    nothing = float("nan")
    precision, average = runs.exact(data, k)
    row: Row = {"method": EXACT, "bits": 32 * data.base.X.shape[1], "seed": seed}
    row |= {OWN: "", "L(h)": nothing}
    row |= {f"p@{rank}": value for rank, value in zip(k, precision, strict=True)}
    row |= {"mAP": average, "b_eff": nothing, "train s": nothing, "codes/s": nothing}
    return row | {"model bytes": nothing, FAILED: ""}


def _protocol(
    data: Dataset,
    shared: Shared,
    chosen: Sequence[Entry],
    lengths: Sequence[int],
    seeds: Sequence[int],
    k: Sequence[int],
) -> dict[str, object]:
    """Facts that a reader must know; methods with a loss or pairs of their own are named."""
    pairs = f"{_numbers(shared.pairs)} for each training point"
    pairs += ", the same for all methods that learn from pairs"
    for entry in chosen:
        if entry.pairs != shared.pairs:
            pairs += f"; but {entry.name} from {_numbers(entry.pairs)}"
    loss = f"{shown(shared.loss)}; L(h) is this loss over these pairs in every row"
    for entry in chosen:
        if "loss" in entry.own:
            loss += f"; but {entry.name} minimises {shown(entry.own['loss'])}"
    protocol: dict[str, object] = {
        "data set": data.name,
        "split": data.protocol,
        "pairs": pairs,
        "loss": loss,
    }
    protocol |= {
        "ties": "expected value over all orders",
        "times": "of training and encoding; compiling is not counted",
        "seeds": list(seeds),
    }
    if own := [f"{entry.name}: {in_short(entry.own)}" for entry in chosen if entry.own]:
        protocol["own parameters"] = "; ".join(own)
    asked = {"n_bits": list(lengths), "random_state": list(seeds)}
    unused = [
        f"{name}={shown(value)} of {entry.name}"
        for entry in chosen
        for name, value in entry.unused.items()
        if asked[name] != [value]
    ]
    if unused:
        protocol["not used"] = f"{', '.join(unused)}: bits and seeds are those of the comparison"
    if beyond := [rank for rank in k if rank > len(data.base)]:
        ranks = ", ".join(f"p@{rank}" for rank in beyond)
        protocol["not measured"] = f"{ranks}: the base has {count(len(data.base), 'point')}"
    return protocol


def _numbers(pairs: PairNumbers) -> str:
    similar, dissimilar = ("all" if number is None else str(number) for number in pairs)
    return f"{similar} similar and {dissimilar} dissimilar"


def _why(rows: Sequence[Row]) -> str:
    """Reason why the first run that failed did, and its seed unless all failed."""
    failed = [row for row in rows if row["failed"]]
    if not failed:
        return ""
    which = f"seed {failed[0]['seed']}: " if len(failed) < len(rows) else ""
    return f"{which}{failed[0]['failed']}"


def _mean(values: Sequence[float]) -> float:
    """Mean over the seeds that did not fail; NaN if all did."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _shown(measure: str, values: Sequence[float]) -> str:
    mean = _mean(values)
    if np.isnan(mean):
        return NONE
    if measure == "L(h)":
        return f"{mean:,.0f}" if mean >= 1000 else f"{mean:.4g}"
    write = {"b_eff": "{:.1f}".format, "train s": duration, "model bytes": size}
    write["codes/s"] = lambda rate: short(float(f"{rate:.3g}"))
    return write.get(measure, share)(mean)
