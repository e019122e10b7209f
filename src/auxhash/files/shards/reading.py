"""The points of a .parquet or .npy file at any place, and their ids, chunk by chunk."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from auxhash.compute.arrays import AnyArray
from auxhash.files.npyfiles import checked_header
from auxhash.files.parquetfiles import Chosen, Parquet, check_nulls, choose, is_text
from auxhash.files.shards.places import FileAt
from auxhash.files.tables import check_features, check_finite

if TYPE_CHECKING:
    import pyarrow as arrow

KINDS = (".parquet", ".npy")
NUMBERS_PER_CHUNK = 1 << 20  # about
MAX_ROWS_PER_CHUNK = 4096
NUMBERED = "row numbers"  # the ids of .npy files


@dataclass(frozen=True)
class Columns:
    """Names of the columns of .parquet files that hold no features."""

    id: str = "id"
    label: str = "y"


class Look(NamedTuple):
    """Size, columns and types of a file."""

    n: int
    mark: str  # of its content, before anything of it was read
    features: tuple[str, ...]  # columns; none in a .npy file
    width: int
    ids: str  # their type
    named: bool  # whether each feature is a column, which has a name

    @property
    def kind(self) -> tuple[tuple[str, ...], int, str]:
        """The part that must be the same in all files."""
        return self.features, self.width, self.ids


class Chunk(NamedTuple):
    X: AnyArray
    ids: "arrow.Array"


def look(place: FileAt, columns: Columns) -> Look:
    """Look at a file's columns, and at its first row."""
    mark = place.mark()
    if place.suffix == ".npy":
        with place.open() as opened:
            shape, _ = _header(place, opened)
        return Look(shape[0], mark, (), shape[1], NUMBERED, False)
    with place.open() as opened:
        file = Parquet(str(place), opened)
        chosen, kind = _chosen(file.schema, place, columns)
        n = len(file)
        if not n:
            raise ValueError(f"{place} holds no rows")
        width = file.width(chosen)
    return Look(n, mark, tuple(chosen.features), width, str(kind), not chosen.are_lists)


def chunks(place: FileAt, columns: Columns, first_id: int) -> Iterator[Chunk]:
    """All points in their order; those of .npy files are numbered from `first_id`."""
    first = 0
    for X, ids in (_of_npy if place.suffix == ".npy" else _of_parquet)(place, columns):
        X = check_finite(check_features(X, str(place)), str(place), first)
        if ids is None:
            import pyarrow as arrow

            start = first_id + first
            ids = arrow.array(np.arange(start, start + len(X), dtype=np.int64))
        first += len(X)
        yield Chunk(X, ids)


def _of_npy(place: FileAt, columns: Columns) -> Iterator[tuple[AnyArray, None]]:
    with place.open() as file:
        shape, dtype = _header(place, file)
        n, width = shape
        size = rows_at_once(width)
        for start in range(0, n, size):
            rows = min(size, n - start)
            data = file.read(rows * width * dtype.itemsize)
            if len(data) < rows * width * dtype.itemsize:
                raise ValueError(f"{place} is not a whole .npy file: it ends in row {start + rows}")
            yield np.frombuffer(data, dtype).reshape(rows, width), None


def _of_parquet(place: FileAt, columns: Columns) -> Iterator[tuple[AnyArray, "arrow.Array"]]:
    with place.open() as opened:
        file, first = Parquet(str(place), opened), 0
        chosen, _ = _chosen(file.schema, place, columns)
        size = rows_at_once(file.width(chosen))
        for X, batch in file.chunks(chosen, size, [columns.id]):
            ids = batch.column(columns.id)
            check_nulls(ids, str(place), columns.id, first)
            first += len(X)
            yield X, ids


def rows_at_once(width: int) -> int:
    """Number of rows of this width that are read at once."""
    return max(1, min(MAX_ROWS_PER_CHUNK, NUMBERS_PER_CHUNK // max(1, width)))


def _header(place: FileAt, file: IO[bytes]) -> tuple[tuple[int, int], np.dtype]:
    """Shape and type of the array of a .npy file, whose numbers follow."""
    size = place.system.size(place.path)
    fault = f"{place} is not a whole .npy file"
    shape, by_columns, dtype = checked_header(file, size, fault, str(place))
    check_features(np.empty((1,) * len(shape), dtype), str(place))
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"{place} must be of shape (n, D) and not empty, got shape {shape}")
    if by_columns and min(shape) > 1:
        raise ValueError(
            f"{place} is stored column by column: save np.ascontiguousarray(X), so that its rows "
            "can be read one after the other"
        )
    return (shape[0], shape[1]), dtype


def _chosen(
    schema: "arrow.Schema", place: FileAt, columns: Columns
) -> tuple[Chosen, "arrow.DataType"]:
    """The columns of features, and the type of the ids."""
    from pyarrow import types

    name = columns.id
    if name not in schema.names:
        raise ValueError(
            f"{place} has no column {name!r} of ids, which codes are found again by; it has "
            f"{', '.join(schema.names[:10])}. --id NAME says which holds them"
        )
    kind = schema.field(name).type
    if not (types.is_integer(kind) or is_text(kind)):
        raise ValueError(f"{place}: column {name} must hold whole numbers or text, got {kind}")
    rest = schema.remove(schema.get_field_index(name))
    return choose(rest, str(place), columns.label), kind
