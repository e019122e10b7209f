"""compare: many methods on one data set, from the same pairs, in one table."""

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from auxhash import baselines, datasets
from auxhash.affinity import Affinity
from auxhash.datasets.dataset import Dataset
from auxhash.estimators import MACHash, TwoStepHash
from auxhash.experiments import runs
from auxhash.experiments.cells import Arrays, Cells
from auxhash.hasher import Hasher
from auxhash.names import unknown

# The paper's names: cut and quad are the two-step methods, MACcut and MACquad what MAC makes of
# them, with the paper's schedules. MAC is our own Z step; MACrefined, the default, goes beyond.
OURS: dict[str, Callable[[], Hasher]] = {
    "MACrefined": lambda: MACHash(),
    "MAC": lambda: MACHash(refine=None),
    "MACcut": lambda: MACHash(z_step="cut", mu=0.3, refine=None),
    "MACquad": lambda: MACHash(z_step="quad", mu=0.01, refine=None),
    "cut": lambda: TwoStepHash(z_step="cut"),
    "quad": lambda: TwoStepHash(z_step="quad"),
}
METHODS = (*OURS, *baselines.__all__)


@dataclass(frozen=True)
class Comparison:
    """One row a method, number of bits and seed; a row of a method that failed says why."""

    rows: list[dict[str, Any]]
    protocol: dict[str, Any]

    def __str__(self) -> str:
        console = Console(width=160, record=True, file=StringIO())
        console.print(self.table())
        protocol = "\n".join(f"{name}: {value}" for name, value in self.protocol.items())
        return f"{protocol}\n{console.export_text()}"

    def table(self) -> Table:
        """The mean over the seeds of each method and number of bits."""
        columns = [name for name in self.rows[0] if name not in ("seed", "failed")]
        table = Table(*columns, "failed")
        for key in dict.fromkeys((row["method"], row["bits"]) for row in self.rows):
            same = [row for row in self.rows if (row["method"], row["bits"]) == key]
            cells = [_shown([row[name] for row in same]) for name in columns[2:]]
            why = next((row["failed"] for row in same if row["failed"]), "")
            table.add_row(key[0], str(key[1]), *cells, why)
        return table

    def to_frame(self) -> Any:
        """The rows as a pandas frame, the protocol in its `attrs`."""
        import pandas

        frame = pandas.DataFrame(self.rows)
        frame.attrs = dict(self.protocol)
        return frame


def compare(
    dataset: str | Dataset,
    methods: Iterable[str | Hasher] | Mapping[str, Hasher] = METHODS,
    bits: Sequence[int] = (32,),
    seeds: Sequence[int] = (0,),
    k: Sequence[int] = (100, 500, 1000),
    loss: Any = "ksh",
    n_similar: int | None = 100,
    n_dissimilar: int | None = 500,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Comparison:
    """Fit every method at every number of bits with every seed, and measure it.

    All methods that learn from pairs get the same ones, drawn for each seed from the training
    labels (or, where there are none, from nearest neighbours).

    Args:
        dataset: a name that `datasets.load` knows, or a Dataset.
        methods: names (see METHODS) or hashers, or hashers by the names they are to go by;
            `n_bits`, `random_state` and `n_jobs` are set.
        k: ranks at which precision is measured.
        loss: of the column L(h), and of the methods that minimise one.
        folder: where codes are kept: what is there is not trained again, and an interrupted run
            goes on. A temporary memory if None.
    """
    data = datasets.load(dataset) if isinstance(dataset, str) else dataset
    hashers = dict(methods if isinstance(methods, Mapping) else map(named, methods))
    cells: Cells | _Memory = _Memory() if folder is None else Cells(folder)
    mark = runs.fingerprint(data)
    rows = []
    jobs = [(seed, b, name) for seed in seeds for b in bits for name in hashers]
    columns = (SpinnerColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), disable=not verbose) as bar:
        task = bar.add_task("", total=len(jobs))
        pairs: dict[int, Affinity] = {}
        for seed, b, name in jobs:
            bar.update(task, description=f"{name}, {b} bits, seed {seed}")
            if seed not in pairs:
                pairs[seed] = runs.draw_pairs(data, n_similar, n_dissimilar, seed, n_jobs)
            hasher = runs.prepared(
                hashers[name],
                n_bits=b,
                random_state=seed,
                loss=loss,
                n_similar=n_similar,
                n_dissimilar=n_dissimilar,
                n_jobs=n_jobs,
            )
            configuration = runs.configuration(mark, hasher, n_similar, n_dissimilar, seed)
            rows.append(
                _row(name, b, seed, configuration, cells, hasher, data, pairs[seed], loss, k)
            )
            bar.advance(task)
    protocol = {
        "data set": data.name,
        "split": data.protocol,
        "pairs": f"{n_similar} similar and {n_dissimilar} dissimilar for each training point",
        "ties": "expected value over all orders",
        "seeds": list(seeds),
    }
    return Comparison(rows, protocol)


def named(method: str | Hasher) -> tuple[str, Hasher]:
    """A method's name and a hasher that is it."""
    if not isinstance(method, str):
        return type(method).__name__, method
    if method in OURS:
        return method, OURS[method]()
    if method not in METHODS:
        raise unknown("method", method, METHODS, "a hasher")
    return method, getattr(baselines, method)()


def _row(
    name: str,
    n_bits: int,
    seed: int,
    configuration: dict[str, Any],
    cells: "Cells | _Memory",
    hasher: Hasher,
    data: Dataset,
    pairs: Affinity,
    loss: Any,
    k: Sequence[int],
) -> dict[str, Any]:
    """Train unless it was trained before; then measure the codes."""
    row: dict[str, Any] = {"method": name, "bits": n_bits, "seed": seed}
    measures = ["L(h)", *(f"p@{rank}" for rank in k), "mAP", "b_eff"]
    measures += ["train s", "codes/s", "model bytes"]
    try:
        if configuration not in cells:
            cells.write(configuration, *runs.train(hasher, data, pairs))
        facts, codes = cells.read(configuration)
        row |= _measured(facts, codes, n_bits, data, pairs, loss, k)
        return row | {"failed": ""}
    except Exception as error:  # one method must not take the others with it
        why = traceback.format_exception_only(error)[-1].strip()
        return row | dict.fromkeys(measures, float("nan")) | {"failed": why}


def _measured(
    facts: runs.Facts,
    codes: Arrays,
    n_bits: int,
    data: Dataset,
    pairs: Affinity,
    loss: Any,
    k: Sequence[int],
) -> dict[str, Any]:
    found = runs.measure(codes, n_bits, data, k)
    at = dict(zip(found.k.tolist(), found.precision.tolist(), strict=True))
    return {
        "L(h)": runs.training_loss(codes, n_bits, pairs, loss),
        **{f"p@{rank}": at.get(rank, float("nan")) for rank in k},
        "mAP": found.mean_average_precision,
        "b_eff": found.utilization,
        "train s": facts["seconds"],
        "codes/s": facts["codes_a_second"],
        "model bytes": facts["bytes"],
    }


def _shown(values: Sequence[float]) -> str:
    mean = float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
    return (
        f"{mean:.3f}" if abs(mean) < 10 else f"{mean:,.1f}" if abs(mean) < 1000 else f"{mean:,.0f}"
    )


class _Memory:
    """Cells that last as long as the call."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def __contains__(self, configuration: dict[str, Any]) -> bool:
        return repr(configuration) in self.kept

    def write(self, configuration: dict[str, Any], facts: Any, arrays: Any) -> None:
        self.kept[repr(configuration)] = facts, arrays

    def read(self, configuration: dict[str, Any]) -> Any:
        return self.kept[repr(configuration)]
