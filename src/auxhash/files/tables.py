"""Features, labels and pairs in files: .npy, .npz, .csv, .parquet, .fvecs and .bvecs.

Nothing in a file is run: pickles are refused, and an archive's members are read where they are,
whatever paths they name. `read_...` gives the values; `take_...` also says where in the
file they were, for the user to see.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray
from auxhash.files import report, textfiles
from auxhash.files.npyfiles import Archive, map_npy
from auxhash.files.parquetfiles import Parquet, features_of
from auxhash.files.report import Features, IdColumns, Labels
from auxhash.files.vectors import TYPES, check_dimensions, map_vectors, read_vectors

HeaderChoice = bool | None  # whether line 1 of a text holds names; None decides by its cells
PairColumns = tuple[AnyArray, AnyArray, AnyArray]

LABEL = "y"  # name of the labels inside a file
PAIR = ("i", "j", "y")
RELEVANT = ("query", "id", "weight")


def read_features(
    path: str | Path, label: str = LABEL, role: str = "features", header: HeaderChoice = None
) -> tuple[AnyArray, AnyArray | None]:
    """Features (n, D) and, where the file holds them under the name `label`, labels (n,).

    In .npz the array X (or the only one) is taken; in .parquet the column of lists of numbers, or
    else all columns of numbers; in .csv all columns, which must be of numbers. Columns called
    `label` or id are no features. `header` says whether line 1 of a .csv holds the columns' names;
    by default it does if `label` is among them, or if none of them is a number.

    Raises FileNotFoundError, ImportError without pyarrow, and ValueError for what is no such file.
    """
    features = take_features(path, label, role, header)
    labels = features.labels
    return features.X, None if labels is None else checks.labels(f"labels in {path}", labels)


def read_labels(
    path: str | Path, label: str = LABEL, role: str = "labels", header: HeaderChoice = None
) -> AnyArray:
    """Labels: the array of a .npy, or what is called `label`, or the only one, in the others.

    In .csv and .txt they are int64 or float64 where those print as the cells do, or else text. By
    default (`header`) line 1 of a single column is a name only if it is `label`.
    """
    return take_labels(path, label, role, header).values


def read_pairs(path: str | Path, header: HeaderChoice = None) -> PairColumns:
    """i, j and y of pairs: named so in .npz, .parquet and .csv, or three columns in this order."""
    path = checked_path(path, "pairs", (".npy", ".npz", ".csv", ".parquet"))
    columns = _PAIRS[path.suffix](path, header)
    if missing := [name for name in PAIR if name not in columns]:
        raise ValueError(f"{path} must hold i, j and y; {', '.join(missing)} is missing")
    i, j, y = (np.asarray(columns[name]) for name in PAIR)
    return _row_numbers(path, "i", i), _row_numbers(path, "j", j), y


def read_relevant(
    path: str | Path, header: HeaderChoice = None
) -> tuple[list[Any], list[Any], list[Any] | None]:
    """Pairs of a query and an id that is relevant to it, and their weights if there are any.

    Columns query, id and weight of a .csv or .parquet file; or two or three columns in this order,
    as in a .npy file.
    """
    path = checked_path(path, "pairs", (".npy", ".csv", ".parquet"))
    if path.suffix == ".npy":
        array = np.array(map_npy(path))
        if array.ndim != 2 or array.shape[1] not in (2, 3):
            raise ValueError(
                f"{path} must be of shape (n, 2) or (n, 3), for query, id and weight; got "
                f"{array.shape}"
            )
        columns = [column.tolist() for column in array.T]
    elif path.suffix == ".parquet":
        file = Parquet(path)
        chosen = _relevant_columns(path, file.names)
        table = file.read(chosen)
        columns = [[_plain(value) for value in table[name].to_pylist()] for name in chosen]
    else:
        text = textfiles.read_text(path, None, header)
        chosen = _relevant_columns(path, text.names)
        columns = [text.cells(text.names.index(name)) for name in chosen]
    if not columns[0]:
        raise ValueError(f"{path} holds no pairs")
    for name, column in zip(RELEVANT, columns, strict=False):
        if None in column:
            raise ValueError(f"{path}: {name} of pair {column.index(None)} is missing")
    query, ids, *weights = columns
    return query, ids, weights[0] if weights else None


def _relevant_columns(path: Path, names: Sequence[str]) -> list[str]:
    """The columns of queries, ids and perhaps weights: by their names, or in this order.

    By their order only if no name is known: one that is says that the others may be in any.
    """
    if {"query", "id"} <= set(names):
        return [name for name in RELEVANT if name in names]
    if len(names) not in (2, 3) or not set(RELEVANT).isdisjoint(names):
        raise ValueError(
            f"{path} must hold columns query and id, and perhaps weight, but has "
            f"{report.columns(names)}"
        )
    return list(names)


def read_names(path: str | Path, header: HeaderChoice = None, column: str = "name") -> list[str]:
    """Names, one per row: text as it stands, in the column called `column` or the only one."""
    return list(take_names(path, header, column).values)


def take_names(path: str | Path, header: HeaderChoice = None, column: str = "name") -> Labels:
    """`read_names`, with the words on where in the file they were."""
    path = checked_path(path, "names", LABELS)
    if path.suffix in (".csv", ".txt"):
        return _labels_of_text(path, column, header, as_text=True)
    labels = take_labels(path, column, "names")
    values = labels.values
    if values.ndim != 1:
        raise ValueError(f"{path} must hold one name per row, got shape {values.shape}")
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} holds names that are no text: {error}") from error
    return Labels(checks.objects([str(name) for name in values.tolist()]), labels.how)


def column_names(path: str | Path, header: HeaderChoice = None) -> list[str]:
    """Names of the columns of a .csv or .parquet file; none where there are no names."""
    path = Path(path)
    if path.suffix == ".csv":
        text = textfiles.read_text(path, None, header)
        return text.names if text.header else []
    return Parquet(path).names if path.suffix == ".parquet" else []


def read_columns(
    path: str | Path, names: Sequence[str], header: HeaderChoice = None
) -> dict[str, list[Any]]:
    """Columns of a .csv or .parquet file, as values that JSON knows; None where one is missing."""
    path = checked_path(path, "columns", (".csv", ".parquet"))
    there = column_names(path, header)
    if missing := [name for name in names if name not in there]:
        raise ValueError(f"{path} has no column {missing[0]!r}, but {report.columns(there)}")
    if path.suffix == ".parquet":
        table = Parquet(path).read(list(names))
        return {name: [_plain(value) for value in table[name].to_pylist()] for name in names}
    text = textfiles.read_text(path, None, header)
    return {name: text.cells(text.names.index(name)) for name in names}


def _plain(value: object) -> Any:
    """Return a value of Arrow as JSON knows it: NaN is missing, and a date is text."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return None
    if isinstance(value, (bool, int, float, str, list, dict)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def take_features(
    path: str | Path,
    label: str = LABEL,
    role: str = "features",
    header: HeaderChoice = None,
    id_column: IdColumns = report.IDS,
) -> Features:
    """`read_features`, with the words on where in the file they were.

    `id_column` is that of ids in a table, which are no features.
    """
    path = checked_path(path, role, FEATURES)
    return FEATURES[path.suffix](path, label, header, id_column)


def take_labels(
    path: str | Path, label: str = LABEL, role: str = "labels", header: HeaderChoice = None
) -> Labels:
    """`read_labels`, with the words on where in the file they were."""
    path = checked_path(path, role, LABELS)
    labels = LABELS[path.suffix](path, label, header)
    return Labels(checks.labels(f"{role} in {path}", labels.values), labels.how)


def check_features(X: AnyArray, role: str) -> AnyArray:
    """X, if it is of shape (n, D), not empty, and of real numbers."""
    if X.ndim != 2 or not X.size:
        raise ValueError(f"{role} must be of shape (n, D) and not empty, got shape {X.shape}")
    if X.dtype.kind not in "iuf":
        raise ValueError(f"{role} must hold real numbers, got {X.dtype}")
    return X


def check_finite(X: AnyArray, role: str, first: int = 0) -> AnyArray:
    """X, if none of its numbers is NaN or infinite; in the error, its rows count from `first`."""
    if np.issubdtype(X.dtype, np.floating):
        bad = ~np.isfinite(X).all(axis=1)
        if bad.any():
            row = first + int(np.flatnonzero(bad)[0])
            raise ValueError(f"{role} must not hold NaN or infinity; row {row} does")
    return X


def checked_path(path: str | Path, role: str, suffixes: Collection[str]) -> Path:
    """The path, if it is a file with one of these endings."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise IsADirectoryError(f"{role}: {path} is a folder, and a file is needed")
    if path.suffix not in suffixes:
        raise ValueError(f"{role}: {path.name} must end in {', '.join(suffixes)}")
    if not path.is_file():
        raise FileNotFoundError(f"{role}: there is no file {path}")
    return path


# Features.


def _features_of_npy(
    path: Path, label: str, header: HeaderChoice, id_column: IdColumns
) -> Features:
    return Features(map_npy(path))


def _features_of_npz(
    path: Path, label: str, header: HeaderChoice, id_column: IdColumns
) -> Features:
    archive = Archive(path)
    names = [name for name in archive.names if name != label]
    if "X" not in names and len(names) != 1:
        every = ", ".join(archive.names) or "nothing"
        raise ValueError(f"{path} must hold an array X; it holds {every}")
    name = "X" if "X" in names else names[0]
    labels, labels_note = None, ""
    if label in archive.names:
        labels, labels_note = partial(archive.read, label), f"labels: array {label}"
    rest = report.passed_over([other for other in names if other != name])
    return Features(archive.read(name), labels, report.joined(f"array {name}", labels_note, rest))


def _features_of_parquet(
    path: Path, label: str, header: HeaderChoice, id_column: IdColumns
) -> Features:
    file = Parquet(path)
    chosen = file.chosen(label, id_column)
    if not len(file):
        raise ValueError(f"{path} holds no rows")
    X = features_of(file.read(chosen.features), chosen, path)
    labels = None if chosen.label is None else partial(file.labels, label)
    names = report.id_columns(file.names, id_column, path)
    ids = partial(file.labels, names[0]) if names else None
    return Features(X, labels, chosen.how, chosen.columns, chosen.doubt, ids)


def _features_of_vectors(
    path: Path, label: str, header: HeaderChoice, id_column: IdColumns
) -> Features:
    records = map_vectors(path)
    check_dimensions(path, records)
    return Features(records["vector"])


# Labels.


def _labels_of_npy(path: Path, label: str, header: HeaderChoice) -> Labels:
    return Labels(np.array(map_npy(path)))


def _labels_of_npz(path: Path, label: str, header: HeaderChoice) -> Labels:
    archive = Archive(path)
    name = _only(path, label, archive.names)
    return Labels(archive.read(name), f"array {name}")


def _labels_of_parquet(path: Path, label: str, header: HeaderChoice) -> Labels:
    file = Parquet(path)
    name = _only(path, label, file.names)
    return Labels(file.labels(name), f"column {name}")


def _labels_of_text(path: Path, label: str, header: HeaderChoice, as_text: bool = False) -> Labels:
    text = textfiles.read_text(path, label, header, only=True)
    name = _only(path, label, text.names)
    of = f"column {name}" if text.header else ""
    at = text.names.index(name)
    values = checks.objects(text.text(at)) if as_text else text.values(at)
    return Labels(values, report.joined(of, text.how))


def _labels_of_vectors(path: Path, label: str, header: HeaderChoice) -> Labels:
    return Labels(read_vectors(path))


def _only(path: Path, label: str, names: Iterable[str]) -> str:
    """`label`, if it is among the names, or else the only one."""
    listed = list(names)
    if label in listed:
        return label
    if len(listed) != 1:
        many = len(listed) > report.MAX_LISTED
        every = report.columns(listed) if many else ", ".join(listed) or "nothing"
        raise ValueError(f"{path} holds nothing called {label!r}, but {every}")
    return listed[0]


# Pairs.


def _pairs_of_npy(path: Path, header: HeaderChoice) -> dict[str, AnyArray]:
    return dict(zip(PAIR, _three(path, map_npy(path)), strict=True))


def _pairs_of_npz(path: Path, header: HeaderChoice) -> dict[str, AnyArray]:
    archive = Archive(path)
    return {name: archive.read(name) for name in PAIR if name in archive.names}


def _pairs_of_parquet(path: Path, header: HeaderChoice) -> dict[str, AnyArray]:
    file = Parquet(path)
    return {name: file.numbers(name) for name in PAIR if name in file.names}


def _pairs_of_text(path: Path, header: HeaderChoice) -> dict[str, AnyArray]:
    text = textfiles.read_text(path, None, header)
    at = {name: text.names.index(name) for name in PAIR if name in text.names}
    if not at:
        if len(text.names) != len(PAIR):
            raise ValueError(f"{path} must have three columns, for i, j and y; got {text.names}")
        at = dict(zip(PAIR, range(3), strict=True))
    columns: dict[str, AnyArray] = {
        name: text.points(at[name]) for name in ("i", "j") if name in at
    }
    if "y" in at:
        columns["y"] = text.numbers([at["y"]])[:, 0]
    return columns


def _three(path: Path, pairs: AnyArray) -> AnyArray:
    if pairs.ndim != 2 or pairs.shape[1] != 3:
        raise ValueError(f"{path} must be of shape (n, 3), for i, j and y; got {pairs.shape}")
    return pairs.T


def _row_numbers(path: Path, name: str, values: AnyArray) -> AnyArray:
    """Row numbers of points, as integers: with y in the same table, they may be floats."""
    if values.dtype.kind in "iu":
        return values
    fine = values.dtype.kind == "f" and (values == np.rint(values)).all()
    if not fine or (np.abs(values) > textfiles.MAX_EXACT).any():
        raise ValueError(f"{path}: {name} must be whole numbers, the rows of the two points")
    return values.astype(np.int64)


FEATURES: dict[str, Callable[[Path, str, HeaderChoice, IdColumns], Features]] = {
    ".npy": _features_of_npy,
    ".npz": _features_of_npz,
    ".csv": textfiles.read_features,
    ".parquet": _features_of_parquet,
    **dict.fromkeys(TYPES, _features_of_vectors),
}
LABELS: dict[str, Callable[[Path, str, HeaderChoice], Labels]] = {
    ".npy": _labels_of_npy,
    ".npz": _labels_of_npz,
    ".csv": _labels_of_text,
    ".txt": _labels_of_text,
    ".parquet": _labels_of_parquet,
    ".ivecs": _labels_of_vectors,
}
_PAIRS: dict[str, Callable[[Path, HeaderChoice], dict[str, AnyArray]]] = {
    ".npy": _pairs_of_npy,
    ".npz": _pairs_of_npz,
    ".csv": _pairs_of_text,
    ".parquet": _pairs_of_parquet,
}
