"""Features, labels and pairs in files: .npy, .npz, .csv, .parquet, .fvecs and .bvecs.

Nothing in a file is run: pickles are refused, and an archive's members are read where they are,
whatever paths they name.
"""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.datasets.vectors import TYPES, read_vectors

Array = NDArray[Any]
Found = tuple[Array, Array | None]  # features and, where the file holds them, labels

LABEL = "y"  # what labels are called inside a file
PAIR = ("i", "j", "y")
DELIMITERS = ",;\t"


def read_features(path: str | Path, label: str = LABEL, role: str = "features") -> Found:
    """Features (n, D) and, where the file holds them under the name `label`, labels (n,).

    In .npz the array X (or the only one) is taken; in .parquet a column of lists, or else all
    columns of numbers but `label`; in .csv all columns but `label`, a first line of names or none.

    Raises FileNotFoundError, ImportError without pyarrow, and ValueError for what is no such file.
    """
    path = checked_path(path, role, FEATURES)
    return FEATURES[path.suffix](path, label)


def read_labels(path: str | Path, label: str = LABEL, role: str = "labels") -> Array:
    """Labels: the array of a .npy, or what is called `label`, or the only one, in the others."""
    path = checked_path(path, role, LABELS)
    return LABELS[path.suffix](path, label)


def read_pairs(path: str | Path) -> tuple[Array, Array, Array]:
    """i, j and y of pairs: named so in .npz, .parquet and .csv, or three columns in this order."""
    path = checked_path(path, "pairs", (".npy", ".npz", ".csv", ".parquet"))
    if path.suffix == ".npy":
        columns = dict(zip(PAIR, _three(path, _map_npy(path)), strict=True))
    elif path.suffix == ".npz":
        columns = _read_npz(path)
    elif path.suffix == ".parquet":
        table = _read_parquet(path)
        columns = {name: table[name].to_numpy() for name in table.column_names}
    else:
        columns = _pairs_of_text(path)
    if missing := [name for name in PAIR if name not in columns]:
        raise ValueError(f"{path} must hold i, j and y; {', '.join(missing)} is missing")
    i, j, y = (np.asarray(columns[name]) for name in PAIR)
    return _whole(path, "i", i), _whole(path, "j", j), y


def check_features(X: Array, role: str) -> Array:
    """X, if it is of shape (n, D), not empty, and of real numbers."""
    if X.ndim != 2 or not X.size:
        raise ValueError(f"{role} must be of shape (n, D) and not empty, got shape {X.shape}")
    if not (np.issubdtype(X.dtype, np.number) and np.isrealobj(X)):
        raise ValueError(f"{role} must hold real numbers, got {X.dtype}")
    return X


def check_finite(X: Array, role: str, first: int = 0) -> Array:
    """X, if no number of it is NaN or infinite; its first row is the `first` of the role."""
    if np.issubdtype(X.dtype, np.floating):
        bad = ~np.isfinite(X).all(axis=1)
        if bad.any():
            row = first + int(np.flatnonzero(bad)[0])
            raise ValueError(f"{role} must not hold NaN or infinity; row {row} does")
    return X


def checked_path(path: str | Path, role: str, suffixes: Sequence[str] | dict[str, Any]) -> Path:
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


def _map_npy(path: Path) -> Array:
    with path.open("rb") as file:
        start = file.read(len(np.lib.format.MAGIC_PREFIX))
    if start != np.lib.format.MAGIC_PREFIX:  # np.load would take it for a pickle or an archive
        why = "it begins otherwise" if start else "it is empty"
        raise ValueError(f"{path} is not a whole .npy file of numbers: {why}")
    try:
        mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError) as error:
        raise ValueError(f"{path} is not a whole .npy file of numbers: {error}") from error
    return mapped


def _features_of_npy(path: Path, label: str) -> Found:
    return _map_npy(path), None


def _features_of_npz(path: Path, label: str) -> Found:
    held = _read_npz(path)
    names = [name for name in held if name != label]
    if "X" not in names and len(names) != 1:
        raise ValueError(f"{path} must hold an array X; it holds {', '.join(held) or 'nothing'}")
    return held["X" if "X" in names else names[0]], held.get(label)


def _features_of_parquet(path: Path, label: str) -> Found:
    table = _read_parquet(path)
    labels = table[label].to_numpy() if label in table.column_names else None
    return features_of_arrow(table, path, label), labels


def features_of_arrow(table: Any, path: Path, label: str) -> Array:
    """Features (n, D) of a table or a batch of Arrow's."""
    import pyarrow as arrow

    lists, numbers = [], []
    for field in table.schema:
        if field.name == label:
            continue
        if arrow.types.is_list(field.type) or arrow.types.is_fixed_size_list(field.type):
            lists.append(field.name)
        elif arrow.types.is_integer(field.type) or arrow.types.is_floating(field.type):
            numbers.append(field.name)
    if len(lists) == 1:
        rows = table[lists[0]].to_pylist()
        if None in rows or len({len(row) for row in rows}) > 1:
            raise ValueError(f"{path}: the lists in column {lists[0]} differ in length")
        return np.array(rows, np.float32)
    if lists or not numbers:
        raise ValueError(f"{path} must hold one column of lists, or columns of numbers")
    return np.column_stack([table[name].to_numpy() for name in numbers])


def _features_of_csv(path: Path, label: str) -> Found:
    names, lines, first = _read_csv(path, label)
    kept = [column for column, name in enumerate(names) if name != label]
    if not kept:
        raise ValueError(f"{path} holds no column but {label!r}")
    X = _numbers(path, names, lines, kept, first)
    if label not in names:
        return X, None
    at = names.index(label)
    return X, _values([line[at] for line in lines])


def _features_of_vectors(path: Path, label: str) -> Found:
    return read_vectors(path), None


# Labels.


def _labels_of_npy(path: Path, label: str) -> Array:
    return np.array(_map_npy(path))


def _labels_of_npz(path: Path, label: str) -> Array:
    held = _read_npz(path)
    return held[_only(path, label, held)]


def _labels_of_parquet(path: Path, label: str) -> Array:
    table = _read_parquet(path)
    labels: Array = table[_only(path, label, table.column_names)].to_numpy()
    return labels


def _labels_of_csv(path: Path, label: str) -> Array:
    names, lines, _ = _read_csv(path, label)
    at = names.index(_only(path, label, names))
    return _values([line[at] for line in lines])


def _only(path: Path, label: str, names: Iterable[str]) -> str:
    """`label`, if it is among the names, or else the only one."""
    found = list(names)
    if label in found:
        return label
    if len(found) != 1:
        every = ", ".join(found) or "nothing"
        raise ValueError(f"{path} holds nothing called {label!r}, but {every}")
    return found[0]


# Pairs.


def _three(path: Path, pairs: Array) -> Array:
    if pairs.ndim != 2 or pairs.shape[1] != 3:
        raise ValueError(f"{path} must be of shape (n, 3), for i, j and y; got {pairs.shape}")
    return pairs.T


def _pairs_of_text(path: Path) -> dict[str, Array]:
    names, lines, first = _read_csv(path, LABEL)
    table = _numbers(path, names, lines, range(len(names)), first)
    if not set(PAIR) & set(names):
        return dict(zip(PAIR, _three(path, table), strict=True))
    return dict(zip(names, table.T, strict=True))


def _whole(path: Path, name: str, values: Array) -> Array:
    """Numbers of points, which a table that also holds y may hold as floats."""
    if np.issubdtype(values.dtype, np.integer):
        return values
    if not np.issubdtype(values.dtype, np.floating) or not (values == np.rint(values)).all():
        raise ValueError(f"{path}: {name} must be whole numbers, the rows of the two points")
    return values.astype(np.int64)


# The formats.


def _read_npz(path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path):  # np.load would take a pickle for one
            pass
        with np.load(path, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except MemoryError as error:
        raise ValueError(f"{path} states arrays that are larger than memory") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise ValueError(f"{path} is not a whole .npz file of arrays: {error}") from error


def _read_parquet(path: Path) -> Any:
    return open_parquet(path).read()


def open_parquet(path: Path) -> Any:
    """The file as pyarrow's ParquetFile."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("reading .parquet needs pyarrow: pip install 'auxhash[data]'") from error
    try:
        return parquet.ParquetFile(path)
    except (ValueError, OSError) as error:  # Arrow's own errors are such
        raise ValueError(f"{path} is not a whole .parquet file: {error}") from error


def _read_csv(path: Path, label: str) -> tuple[list[str], list[list[str]], int]:
    """Names of the columns, the lines, and the number in the file of the first of these."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            start = text.readline()
            text.seek(0)
            delimiter = max(DELIMITERS, key=start.count)
            lines = [line for line in csv.reader(text, delimiter=delimiter) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a .csv file: {error}") from error
    if not lines:
        raise ValueError(f"{path} is empty")
    for number, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"{path} must have as many columns in every line: line 1 has {len(lines[0])}, "
                f"line {number + 1} has {len(line)}"
            )
    names = [cell.strip() for cell in lines[0]]
    if not _are_names(names, lines[1] if len(lines) > 1 else [], label):
        return [str(column) for column in range(len(names))], lines, 1
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path} has two columns called {twice!r}")
    if len(lines) == 1:
        raise ValueError(f"{path} has a line of names and nothing below it")
    return names, lines[1:], 2


def _are_names(first: list[str], second: list[str], label: str) -> bool:
    """Whether the first line names the columns: text above a number, or what is looked for."""
    above = zip(first, second, strict=False)
    return label in first or any(_is_number(b) and not _is_number(a) for a, b in above)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(
    path: Path, names: list[str], lines: list[list[str]], kept: Sequence[int], first: int
) -> Array:
    """The columns `kept` (n, columns) of lines; `first` is the first line's number in the file."""
    try:
        return np.array([[float(line[column]) for column in kept] for line in lines])
    except ValueError:
        at, column = next(
            (at, column)
            for at, line in enumerate(lines)
            for column in kept
            if not _is_number(line[column])
        )
        raise ValueError(
            f"{path}: line {at + first}, column {names[column]!r}: "
            f"{lines[at][column]!r} is no number"
        ) from None


def _values(cells: list[str]) -> Array:
    """Whole numbers, if all of them are; or else numbers; or else text."""
    for kind in (np.int64, np.float64):
        try:
            return np.array(cells).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(cells)


FEATURES: dict[str, Callable[[Path, str], Found]] = {
    ".npy": _features_of_npy,
    ".npz": _features_of_npz,
    ".csv": _features_of_csv,
    ".parquet": _features_of_parquet,
    **dict.fromkeys(TYPES, _features_of_vectors),
}
LABELS: dict[str, Callable[[Path, str], Array]] = {
    ".npy": _labels_of_npy,
    ".npz": _labels_of_npz,
    ".csv": _labels_of_csv,
    ".txt": _labels_of_csv,
    ".parquet": _labels_of_parquet,
    ".ivecs": lambda path, label: read_vectors(path),
}
