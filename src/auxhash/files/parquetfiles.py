"""Features and labels in .parquet files: which columns are taken, and their values.

A column of lists of numbers is the features; only without one are they all columns of numbers.
So an id is not taken for a feature if there is a column of lists.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from auxhash.compute.arrays import AnyArray
from auxhash.compute.extras import install
from auxhash.files import report

if TYPE_CHECKING:
    import pyarrow as arrow

ArrowColumn: TypeAlias = "arrow.Array | arrow.ChunkedArray"

INDEX = "__index_level_"  # pandas' name for row numbers without one
LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
# No more of a row group in memory than the pages that are read: it may hold the whole file.
STREAMED = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": 1 << 20}


@dataclass(frozen=True)
class Chosen:
    """The columns of a file that hold the features, and those that are not used."""

    features: list[str]
    are_lists: bool
    passed: list[str]
    label: str | None  # None if the file has no such column

    @property
    def columns(self) -> list[str] | None:
        """Names of the features; in lists they have none."""
        return None if self.are_lists else self.features

    @property
    def how(self) -> str:
        """The columns that are used and those that are not, in words."""
        labels = "" if self.label is None else f"labels: column {self.label}"
        return report.joined(report.columns(self.features), labels, report.passed_over(self.passed))

    @property
    def doubt(self) -> str:
        """Hints for the user, where a column may not be meant as a feature."""
        return report.doubtful(self.columns or (), self.label is not None)


class Parquet:
    """A .parquet file, no more of which is in memory than a few pages; or one `opened` elsewhere.

    Messages call it by its path.
    """

    def __init__(self, path: Path | str, opened: IO[bytes] | None = None) -> None:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise ImportError(f"reading .parquet needs pyarrow: {install('data')}") from error
        self.path = path
        with arrow_errors(path):
            self._file = parquet.ParquetFile(path if opened is None else opened, **STREAMED)
            self.schema = self._file.schema_arrow
        self.names: list[str] = self.schema.names
        if twice := [name for name in self.names if self.names.count(name) > 1]:
            raise ValueError(f"{path} has two columns called {twice[0]!r}")

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def chosen(self, label: str, id_column: report.IdColumns = report.IDS) -> Chosen:
        """Choose the columns of features."""
        return choose(self.schema, self.path, label, id_column)

    def read(self, names: list[str]) -> "arrow.Table":
        """Read these columns, as Arrow's table."""
        with arrow_errors(self.path):
            return self._file.read(columns=names)

    def labels(self, name: str) -> AnyArray:
        """The values of a column, one per point."""
        return values_of(self.read([name])[name], self.path, name)

    def numbers(self, name: str) -> AnyArray:
        """The numbers of a column."""
        column = self.read([name])[name]
        if not _is_number(column.type):
            raise ValueError(f"{self.path}: column {name} must hold numbers, got {column.type}")
        return _numbers(column, self.path, name, 0)

    def width(self, chosen: Chosen) -> int:
        """Number of features; of lists, the length of the first."""
        if not chosen.are_lists:
            return len(chosen.features)
        return next((X.shape[1] for X, _ in self.chunks(chosen, 1)), 0)

    def chunks(
        self, chosen: Chosen, size: int, beside: Sequence[str] = ()
    ) -> Iterator[tuple[AnyArray, "arrow.RecordBatch"]]:
        """The features, `size` rows at a time, and Arrow's batch with the columns `beside`, too."""
        first, width = 0, 0
        with arrow_errors(self.path):
            for batch in self._file.iter_batches(size, columns=[*chosen.features, *beside]):
                if not len(batch):  # a row group may be without rows
                    continue
                X = features_of(batch, chosen, self.path, first)
                if first and X.shape[1] != width:
                    raise ValueError(
                        f"{self.path}: the lists in column {chosen.features[0]} differ in length: "
                        f"row 0 has {width}, row {first} has {X.shape[1]}"
                    )
                width = X.shape[1]
                first += len(X)
                yield X, batch


def choose(
    schema: "arrow.Schema", path: Path | str, label: str, id_column: report.IdColumns = report.IDS
) -> Chosen:
    """The columns of features: the one of lists of numbers, or else all columns of numbers.

    Columns of ids, and the index of a pandas frame, are passed over; so are text and dates. If
    there is no column of lists, any other type is an error: it may hold the features in a form
    that is not read.
    """
    lists, numbers, passed, unread = [], [], [], []
    index = _index_of_frame(schema) | {*report.id_columns(schema.names, id_column, path)}
    for field in schema:
        name, kind = field.name, field.type
        if name == label:
            continue
        if name.startswith(INDEX) or name in index:
            passed.append(name)
        elif _is_list(kind) and _is_number(_storage(kind).value_type):
            lists.append(name)
        elif _is_number(kind):
            numbers.append(name)
        elif is_text(kind) or _is_date(kind):
            passed.append(name)
        else:
            unread.append(f"{name} ({kind})")
    if len(lists) > 1:
        raise ValueError(
            f"{path} has {len(lists)} columns of lists, {', '.join(lists)}, and one is needed"
        )
    own = label if label in schema.names else None
    if lists:
        rest = [name for name in schema.names if name not in (label, lists[0])]
        return Chosen(lists, True, rest, own)
    if unread:
        raise ValueError(
            f"{path} must hold one column of lists of numbers, or columns of numbers; "
            f"it holds {', '.join(unread)}"
        )
    if not numbers:
        raise ValueError(f"{path} must hold one column of lists, or columns of numbers")
    return Chosen(numbers, False, passed, own)


def _index_of_frame(schema: "arrow.Schema") -> set[str]:
    """The columns that were the index of a pandas frame, as pandas notes it in the file."""
    try:
        known = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        return {name for name in known.get("index_columns", []) if isinstance(name, str)}
    except (ValueError, AttributeError, TypeError):  # not pandas' note
        return set()


def features_of(
    table: "arrow.Table | arrow.RecordBatch", chosen: Chosen, path: Path | str, first: int = 0
) -> AnyArray:
    """Features (n, D) of an Arrow table or batch, whose first row is row `first` of the file."""
    if chosen.are_lists:
        [name] = chosen.features
        return _matrix(table[name], path, name, first)
    return np.column_stack([_numbers(table[name], path, name, first) for name in chosen.features])


def values_of(column: ArrowColumn, path: Path | str, name: str) -> AnyArray:
    """Labels in an Arrow column: numbers, text, dates, or lists of 0 and 1."""
    import pyarrow as arrow

    check_nulls(column, path, name, 0)
    kind = column.type
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if is_text(kind):
        return np.array(column.to_pylist(), np.str_)
    if _is_number(kind) or arrow.types.is_date(kind) or arrow.types.is_timestamp(kind):
        return np.asarray(column.to_numpy())
    if _is_list(kind) and _is_number(_storage(kind).value_type):
        return _matrix(column, path, name, 0)
    raise ValueError(f"{path}: column {name} must hold numbers or text, got {kind}")


def _matrix(column: ArrowColumn, path: Path | str, name: str, first: int) -> AnyArray:
    """Lists of equal length as an array (n, D), of the type that they hold."""
    import pyarrow.compute as compute

    parts: list[AnyArray] = []
    width = None
    for chunk in getattr(column, "chunks", [column]):
        if not len(chunk):
            continue
        lists = getattr(chunk, "storage", chunk)  # of a tensor, which is a list with a shape
        check_nulls(lists, path, name, first)
        lengths = compute.list_value_length(lists).to_numpy(zero_copy_only=False)
        width = int(lengths[0]) if width is None else width
        if (other := np.flatnonzero(lengths != width)).size:
            raise ValueError(
                f"{path}: the lists in column {name} differ in length: the first has {width}, "
                f"that of row {first + other[0]} has {lengths[other[0]]}"
            )
        values = lists.flatten()
        check_nulls(values, path, name, first, max(1, width))
        parts.append(_plain(values).reshape(len(chunk), width))
        first += len(chunk)
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


def _numbers(column: ArrowColumn, path: Path | str, name: str, first: int) -> AnyArray:
    check_nulls(column, path, name, first)
    return _plain(column)


def _plain(column: ArrowColumn) -> AnyArray:
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(np.uint8) if values.dtype == bool else values


def check_nulls(
    column: ArrowColumn, path: Path | str, name: str, first: int, width: int = 1
) -> None:
    """Raise where a value is missing; there are `width` values in each row."""
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        row = first + int(np.flatnonzero(missing)[0]) // width
        raise ValueError(f"{path}: column {name} must not hold missing values; row {row} does")


def _storage(kind: "arrow.DataType") -> "arrow.DataType":
    """The type that a tensor is stored as, or else the type itself."""
    import pyarrow as arrow

    return kind.storage_type if isinstance(kind, arrow.FixedShapeTensorType) else kind


def _is_list(kind: "arrow.DataType") -> bool:
    from pyarrow import types

    stored = _storage(kind)
    known = (getattr(types, f"is_{name}", None) for name in LISTS)  # views came with pyarrow 16
    return any(is_kind is not None and is_kind(stored) for is_kind in known)


def _is_number(kind: "arrow.DataType") -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def is_text(kind: "arrow.DataType") -> bool:
    """Return True if Arrow's type is one of text, stored in any way."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind) in ("string", "large_string", "string_view")


def _is_date(kind: "arrow.DataType") -> bool:
    from pyarrow import types

    return bool(types.is_temporal(kind) or types.is_null(kind))


@contextmanager
def arrow_errors(path: Path | str) -> Iterator[None]:
    """Turn Arrow's errors into a ValueError that says what is wrong with the file."""
    import pyarrow as arrow

    try:
        yield
    except PermissionError:
        raise
    except (arrow.ArrowException, OSError) as error:
        why = " ".join(str(error).split())  # Arrow's messages have several lines
        raise ValueError(f"{path} is not a whole .parquet file: {why}") from error
