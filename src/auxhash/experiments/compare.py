"""compare: many methods on one data set, in one table."""

import traceback
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.codes import MOST_BITS
from auxhash.compute import device as devices
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.neighbors import Metric
from auxhash.compute.words import count
from auxhash.experiments import datasets, runs
from auxhash.experiments.cells import Cells, Memory
from auxhash.experiments.compareneighbors import N_BYTES, compare_neighbors
from auxhash.experiments.comparison import NONE, ComparedRows, in_turn, several
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.entries import METHODS, Entry, Methods, Shared, entries, in_short, shown
from auxhash.experiments.runs import PairNumbers
from auxhash.mac import losses
from auxhash.mac.affinity import Affinity
from auxhash.model.encoding import Arrays
from auxhash.search.metrics.gpu import MAX_GPU_BITS

OWN = "own"  # the column of a method's own parameters
FAILED = "failed"  # the column that says why, if any method failed


@dataclass(frozen=True)
class Comparison(ComparedRows):
    """One row per method, number of bits and seed; if the method failed, its row says why.

    `own` lists the parameters that a method was given as a hasher and that are neither its class's
    defaults nor what all share. L(h) is the shared loss over the shared pairs in every row.
    """

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of text: the mean over the seeds of each method and number of bits."""
        hidden = ["method", "bits", OWN, "seed", FAILED]
        measures = [name for name in self.rows[0] if name not in hidden]
        owned, failed = (
            [name] if any(r[name] for r in self.rows) else [] for name in (OWN, FAILED)
        )
        rows = []
        for key in dict.fromkeys((row["method"], row["bits"]) for row in self.rows):
            same = [row for row in self.rows if (row["method"], row["bits"]) == key]
            brought = [same[0][OWN]] if owned else []
            cells = [_shown([row[name] for row in same]) for name in measures]
            rows.append([key[0], str(key[1]), *brought, *cells, *([_why(same)] if failed else [])])
        return ["method", "bits", *owned, *measures, *failed], rows

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
    loss: Any = "ksh",
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
    as it has such parameters. A hasher keeps every parameter of its own, these three among them;
    what differs from the defaults and from what is shared is listed in the column `own`. Of any
    method, `n_bits`, `random_state` and `n_jobs` are set, and it is trained from scratch.

    All methods that learn from pairs get the same ones, drawn for each seed from the training
    labels (or, where there are none, from nearest neighbours). Only a hasher with an `n_similar` or
    `n_dissimilar` of its own gets pairs drawn by its own numbers, with the same seed.

    Ctrl-C raises KeyboardInterrupt: no method that was stopped has a row, or is kept.

    Args:
        dataset: a name that `datasets.load` knows, a Dataset, or points (n, D).
        methods: names (see `auxhash.experiments.entries.METHODS`) or hashers, or a mapping from
            names of your own to either. Hashers of one class are told apart by their
            parameters, equal ones by a number. Without labels, "signs" (one bit per feature), and
            faiss's "PQ", "OPQ" and "RaBitQ" are names, too.
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
    by_labels: dict[str, Any] = {"k": (k, RANKS), "loss": (loss, "ksh"), "bits": (bits, None)}
    by_labels |= {"n_similar": (n_similar, 100), "n_dissimilar": (n_dissimilar, 500)}
    by_neighbors: dict[str, Any] = {"queries": (queries, None), "metric": (metric, "cosine")}
    by_neighbors |= {"n_train": (n_train, None), "n_base": (n_base, None)}
    by_neighbors |= {"seconds": (seconds, None)}
    if labelled and n_bytes is None:
        assert isinstance(dataset, Dataset)
        _refuse(by_neighbors, "is for points without labels, or with n_bytes")
        pairs = loss, n_similar, n_dissimilar
        lengths = (32,) if bits is None else bits
        chosen = METHODS if methods is None else methods
        return compare_labels(
            dataset, chosen, lengths, seeds, k, *pairs, folder, n_jobs, verbose, device
        )
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


def _refuse(arguments: dict[str, tuple[Any, Any]], why: str) -> None:
    """Raise if an argument is not its default."""
    for name, (value, default) in arguments.items():
        if value is not default and not (isinstance(value, (str, int, tuple)) and value == default):
            raise ArgumentError(f"{name} {why}")


def compare_labels(
    data: Dataset,
    methods: Methods,
    bits: int | Iterable[int],
    seeds: int | Iterable[int],
    k: int | Iterable[int],
    loss: Any,
    n_similar: int | None,
    n_dissimilar: int | None,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    device: devices.DeviceName = "cpu",
) -> Comparison:
    """Compare methods by the labels of what their codes find; see `compare`."""
    shared = Shared(loss, n_similar, n_dissimilar)
    losses.get(loss)
    on = devices.get(device).name
    chosen = entries(methods, shared)
    lengths = several("bits", bits, 1, MAX_GPU_BITS if device == "cuda" else MOST_BITS)
    every_seed, ranks = several("seeds", seeds, 0), several("k", k, 1)
    cells = Memory() if folder is None else Cells(folder)
    mark = runs.data_identity(data)
    drawn = _Drawn(data, shared.pairs, n_jobs)
    drawn.turn_to(every_seed[0])
    known = drawn.of(shared.pairs)
    losses.curves(loss, np.unique(known.y), lengths[0], known.kind)  # or raise at once
    rows = []

    def run(job: _Job) -> None:
        drawn.turn_to(job.seed)
        rows.append(job.row(cells, drawn))

    settings = data, mark, loss, ranks, n_jobs, on
    jobs = [
        _Job(entry, b, seed, *settings) for seed in every_seed for b in lengths for entry in chosen
    ]
    in_turn(jobs, run, verbose)
    return Comparison(rows, _protocol(data, shared, chosen, lengths, every_seed, ranks))


class _Drawn:
    """The pairs of one seed at a time, each kind drawn once."""

    def __init__(self, data: Dataset, shared: PairNumbers, n_jobs: int | None) -> None:
        self.data, self.n_jobs = data, n_jobs
        self.shared = shared
        self.seed = -1
        self.kept: dict[PairNumbers, Affinity] = {}

    def turn_to(self, seed: int) -> None:
        """Draw the shared pairs of a seed, unless it is the same as before."""
        if seed != self.seed:
            self.seed, self.kept = seed, {}
            self.of(self.shared)

    def of(self, pairs: PairNumbers) -> Affinity:
        if pairs not in self.kept:
            self.kept[pairs] = runs.draw_pairs(self.data, pairs, self.seed, self.n_jobs)
        return self.kept[pairs]


@dataclass(frozen=True)
class _Job:
    """One row of a comparison: a method with a number of bits and a seed."""

    entry: Entry
    n_bits: int
    seed: int
    data: Dataset
    mark: str
    loss: Any
    ranks: Sequence[int]
    n_jobs: int | None
    device: Any

    def __str__(self) -> str:
        return f"{self.entry.name}, {count(self.n_bits, 'bit')}, seed {self.seed}"

    def row(self, cells: Cells | Memory, drawn: _Drawn) -> dict[str, Any]:
        """Train unless it was trained before; then measure the codes."""
        row: dict[str, Any] = {"method": self.entry.name, "bits": self.n_bits, "seed": self.seed}
        row[OWN] = in_short(self.entry.own)
        measures = ["L(h)", *(f"p@{rank}" for rank in self.ranks), "mAP", "b_eff"]
        measures += ["train s", "codes/s", "model bytes"]
        try:
            facts, codes = self._trained(cells, drawn)
            return row | self._measured(facts, codes, drawn.of(drawn.shared)) | {"failed": ""}
        except Exception as error:  # one method that fails must not stop the others
            why = traceback.format_exception_only(error)[-1].strip()
            return row | dict.fromkeys(measures, float("nan")) | {"failed": why}

    def _trained(self, cells: Cells | Memory, drawn: _Drawn) -> tuple[runs.Facts, Arrays]:
        configuration = self.entry.configuration(self.mark, self.n_bits, self.seed, self.device)
        if configuration in cells:
            return cells.read(configuration)
        hasher = self.entry.prepared(self.n_bits, self.seed, self.n_jobs, self.device)
        facts, codes = runs.train(hasher, self.data, drawn.of(self.entry.pairs))
        try:
            cells.write(configuration, facts, codes)
        except OSError as error:  # a full disk: what was trained can be measured all the same
            warnings.warn(f"{self.entry.name} could not be kept: {error}", stacklevel=4)
        return facts, codes

    def _measured(self, facts: runs.Facts, codes: Arrays, pairs: Affinity) -> dict[str, Any]:
        within = [rank for rank in self.ranks if rank <= len(self.data.base)]
        on: devices.DeviceName = "cpu" if self.device == "cpu" else "auto"  # the numbers are equal
        scores = runs.measure(codes, self.n_bits, self.data, within or [1], self.n_jobs, on)
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


def _protocol(
    data: Dataset,
    shared: Shared,
    chosen: Sequence[Entry],
    lengths: Sequence[int],
    seeds: Sequence[int],
    k: Sequence[int],
) -> dict[str, Any]:
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
    protocol: dict[str, Any] = {
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


def _why(rows: Sequence[dict[str, Any]]) -> str:
    """Reason why the first run that failed did, and its seed unless all failed."""
    failed = [row for row in rows if row["failed"]]
    if not failed:
        return ""
    which = f"seed {failed[0]['seed']}: " if len(failed) < len(rows) else ""
    return f"{which}{failed[0]['failed']}"


def _shown(values: Sequence[float]) -> str:
    if not np.isfinite(values).any():
        return NONE
    mean = float(np.nanmean(values))
    return (
        f"{mean:.3f}" if abs(mean) < 10 else f"{mean:,.1f}" if abs(mean) < 1000 else f"{mean:,.0f}"
    )
