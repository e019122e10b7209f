"""The numbers of a figure as they stand in a file, and the records that they tell of.

An entry holds all seeds of one group, method, hash function and number of bits. So runs of several
machines can be judged together, without their codes. Older files have fewer digits, of the curve of
precision over recall some points alone, no number of points, the seconds of the steps in the place
of the run's, and do not say that MAC returned the iterate of lowest L(h).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from auxhash.experiments.cells import Facts
from auxhash.experiments.claims import RECALLS, precision_at_recall
from auxhash.experiments.groups import TWO_STEP_OF, Record

DIGITS = 9  # fewer would make ties of what is not the same

# Fields of MAC's steps, by their names in the file.
STEP_FIELDS = {
    "score": "score",
    "accepted": "accepted",
    "violations": "violations",
    "skipped": "skipped",
    "z_seconds": "z_seconds",
    "h_seconds": "h_seconds",
    "seconds of steps": "seconds",
}

Written = dict[str, Any]  # an entry


def entries(records: Sequence[Record]) -> list[Written]:
    """The numbers for a file."""
    every: dict[tuple[str, str, str, int], list[Record]] = {}
    for record in records:
        every.setdefault(record.key[:-1], []).append(record)
    return [_entry(own) for own in every.values()]


def _entry(own: Sequence[Record]) -> Written:
    """Values of the records of several seeds."""
    one = own[0]
    entry: Written = {"group": one.group, "method": one.method, "hash_function": one.hash_function}
    entry |= {"bits": one.bits, "points": one.points, "seeds": [r.seed for r in own]}
    entry["loss"] = [_round(r.loss) for r in own]
    entry["mAP"] = [_round(r.average_precision) for r in own]
    entry["precision"] = {k: [_round(r.precision[k]) for r in own] for k in one.precision}
    entry["precision at recall"] = {
        f"{recall:g}": [_round(precision_at_recall(r, recall)) for r in own] for recall in RECALLS
    }
    entry["recall at radius"] = [[_round(recall) for recall, _ in r.radius] for r in own]
    entry["precision at radius"] = [[_round(precision) for _, precision in r.radius] for r in own]
    entry["effective bits"] = {
        part: [_round(r.effective[part]) for r in own] for part in one.effective
    }
    entry["seconds"] = [_round(r.seconds) for r in own]
    if one.history and one.method not in TWO_STEP_OF:
        entry["iterate"] = one.iterate
        entry["history"] = [[_round(s["loss"]) for s in r.history] for r in own]
        entry["free loss"] = [_round(r.history[0]["free_loss"]) for r in own]
        every = {key: _steps(own, name) for key, name in STEP_FIELDS.items()}
        entry |= {key: values for key, values in every.items() if values is not None}
    return entry


def _steps(records: Sequence[Record], name: str) -> list[list[float | None]] | None:
    """One value of every step; None if it was not measured."""
    if any(name not in step for record in records for step in record.history):
        return None
    return [[_round(float(step[name])) for step in record.history] for record in records]


def _round(value: float) -> float | None:
    """Whole numbers as they are: L is one, and so are counts."""
    if not np.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(f"{value:.{DIGITS}g}")


def records(numbers: Iterable[Written]) -> list[Record]:
    """The records of a file's entries, as far as they tell."""
    return [_record(entry, at) for entry in numbers for at in range(len(entry["seeds"]))]


def _record(entry: Written, at: int) -> Record:
    """Record of one seed."""
    history, seconds = _history(entry, at), entry["seconds"][at]
    if isinstance(seconds, list):
        history = [step | {"seconds": s} for step, s in zip(history, seconds, strict=True)]
        seconds = sum(seconds)
    all_radii = "recall at radius" in entry
    return Record(
        entry["group"],
        entry["method"],
        entry["hash_function"],
        entry["bits"],
        entry["seeds"][at],
        _number(entry["loss"][at]),
        {int(k): _number(values[at]) for k, values in entry["precision"].items()},
        _curve(entry, at),
        _number(entry["mAP"][at]),
        {part: _number(values[at]) for part, values in entry["effective bits"].items()},
        history,
        _number(seconds),
        entry.get("points", 0),
        all_radii=all_radii,
        iterate=entry.get("iterate") or "lowest",
    )


def _curve(entry: Written, at: int) -> list[tuple[float, float]]:
    """Recall and precision, at every radius if the file has them."""
    if "recall at radius" in entry:
        pairs = zip(entry["recall at radius"][at], entry["precision at radius"][at], strict=True)
        return [(_number(recall), _number(precision)) for recall, precision in pairs]
    every = entry["precision at recall"].items()
    return [(float(recall), _number(values[at])) for recall, values in every]


def _history(entry: Written, at: int) -> list[Facts]:
    """The steps of MAC; only the first has the loss of the free codes."""
    if "history" not in entry:
        return []
    by_name = {name: entry[key][at] for key, name in STEP_FIELDS.items() if key in entry}
    steps = [
        {"iteration": i, "loss": _number(loss)}
        | {name: _number(by_name[name][i]) for name in by_name}
        for i, loss in enumerate(entry["history"][at])
    ]
    steps[0]["free_loss"] = _number(entry["free loss"][at])
    return steps


def _number(value: float | None) -> float:
    """A count stays one, also where an older file has 3.0 for it."""
    if value is None:
        return float("nan")
    return int(value) if float(value).is_integer() else value
