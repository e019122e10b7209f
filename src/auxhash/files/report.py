"""Reports in words of what was read from a file: wrong guesses must be seen before training."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from auxhash.compute.arrays import AnyArray
from auxhash.compute.words import count

MAX_LISTED = 4  # names that are listed one by one
IDS = "id"  # a column called so, in any case, is never a feature
IdColumns = str | tuple[str, ...]  # the column of ids, and others that are no features either
LIKE_KEYS = re.compile(r"(?i:(^|[_ .-])(id|key|index|idx|uuid|guid|pk))$|[a-z]I[dD]$")
LIKE_LABELS = ("y", "label", "labels", "class", "target", "category")  # likely no features


@dataclass(frozen=True, eq=False)
class Features:
    """Features and, where the file holds them, labels; `how` says which parts of it they were.

    Labels are read only when asked for: to encode points, they may be missing or wrong.
    """

    X: AnyArray
    read_labels: Callable[[], AnyArray] | None = None
    how: str = ""
    columns: list[str] | None = None  # names of the features, where they have names
    doubt: str = ""  # hints for the user, where a column may not be meant as a feature
    read_ids: Callable[[], AnyArray] | None = None  # if the file has a column of ids

    @property
    def labels(self) -> AnyArray | None:
        """The labels, or None where the file holds none."""
        return None if self.read_labels is None else self.read_labels()


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels (n,), or (n, n_labels) of 0 and 1; `how` says which part of a file they were."""

    values: AnyArray
    how: str = ""


def id_columns(names: Sequence[str], column: IdColumns, name: object) -> list[str]:
    """The columns of ids: `column`, and any called id; ValueError if one is asked for in vain.

    `name` is that of the file.
    """
    wanted = (column,) if isinstance(column, str) else column
    for each in wanted:
        if each != IDS and each not in names:
            of_ids = " of ids" if each == wanted[0] else ""
            raise ValueError(f"{name} has no column {each!r}{of_ids}, but {columns(names)}")
    present = [each for each in wanted if each in names]
    return present + [each for each in names if each.lower() == IDS and each not in wanted]


def features_line(name: object, n: int, d: int, dtype: DTypeLike, how: str) -> str:
    """Describe a file of features in one line."""
    line = f"{name}: {count(n, 'point')} of {count(d, 'feature')}, {np.dtype(dtype).name}"
    return joined(line, how)


def labels_line(name: object, labels: Labels, role: str = "labels") -> str:
    """Describe a file of labels, or of other values, one per point, in one line."""
    values = labels.values
    if values.ndim == 2:
        n, each = values.shape
        line = f"{name}: {count(n, 'point')}, {count(each, role.removesuffix('s'))} each"
        return joined(line, labels.how)
    classes = f" of {count(len(np.unique(values)), 'class')}" if role == "labels" else ""
    line = f"{name}: {count(len(values), role.removesuffix('s'))}{classes}, {kind(values)}"
    return joined(line, labels.how)


def kind(values: AnyArray) -> str:
    """Text, or the type of the numbers."""
    return "text" if values.dtype.kind in "USO" else values.dtype.name


def columns(names: Sequence[str], one: str = "column") -> str:
    """The names of columns in words: all of a few, the first and the last of many."""
    if len(names) < 2:
        return f"{one} {names[0]}" if names else f"no {one}s"
    if len(names) <= MAX_LISTED:
        return f"{one}s {', '.join(names)}"
    return f"{len(names)} {one}s, {names[0]} to {names[-1]}"


def doubtful(names: Sequence[str], labelled: bool) -> str:
    """Hints for the user where features are called as labels are, or as keys."""
    hints = []
    labels = [name for name in names if name.lower() in LIKE_LABELS]
    if labels and not labelled:
        hints.append(f"{labels[0]} is taken for a feature; if it holds labels, --label {labels[0]}")
    for key in [name for name in names if LIKE_KEYS.search(name)][:MAX_LISTED]:
        hints.append(f"{key} is taken for a feature; if it is a key, call it {IDS} or --id {key}")
    return joined(*hints)


def passed_over(names: Sequence[str]) -> str:
    """The names of the parts that were not used, in words."""
    if len(names) <= 2 * MAX_LISTED:
        return f"passed over: {', '.join(names)}" if names else ""
    return (
        f"passed over: {', '.join(names[: 2 * MAX_LISTED])} and {len(names) - 2 * MAX_LISTED} more"
    )


def places(
    wanted: Sequence[str],
    there: Sequence[str],
    name: object,
    whose: str = "the model was learnt from",
) -> list[int]:
    """Positions of the wanted columns in a file; ValueError if one is not there."""
    at = {each: place for place, each in enumerate(there)}
    if missing := [each for each in wanted if each not in at]:
        raise ValueError(
            f"{name} lacks what {whose}, {columns(missing)}; "
            f"it has {columns(there)} (an array, .npy, is taken column by column as it is)"
        )
    return [at[each] for each in wanted]


def joined(*parts: str) -> str:
    """The parts that are not empty, as one line."""
    return "; ".join(part for part in parts if part)
