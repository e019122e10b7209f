"""Rows of a file, chunk by chunk, so that files larger than memory can be encoded.

.npy, .fvecs and .bvecs files are mapped anew for every chunk, so that the memory of earlier chunks
is released; .parquet files and pictures are read chunk by chunk. Other files are read as a whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray
from auxhash.files import report
from auxhash.files.parquetfiles import Parquet
from auxhash.files.tables import (
    FEATURES,
    LABEL,
    HeaderChoice,
    check_features,
    check_finite,
    checked_path,
    take_features,
)
from auxhash.files.vectors import TYPES, check_dimensions, map_vectors

if TYPE_CHECKING:
    from auxhash.files.images import ImageFeature, ImageFolder

NUMBERS_PER_CHUNK = 1 << 20
PARQUET_ROWS_PER_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows; `read` gives them from the first to the last as arrays (rows, D)."""

    name: str
    n: int
    read: Callable[[], Iterable[AnyArray]]
    read_labels: Callable[[], AnyArray] | None = None  # if they came with the points
    names: list[str] | None = None  # of pictures
    feature: str | None = None  # computed from the pictures
    summary: str = ""  # of what was read from the file, in words
    columns: list[str] | None = None  # names of the features, where they have names
    doubt: str = ""  # hints for the user, where a column may not be meant as a feature
    array: AnyArray | None = None  # all rows, in memory or mapped, where the file holds them as one
    read_ids: Callable[[], AnyArray] | None = None  # if the file has a column of ids

    def __len__(self) -> int:
        return self.n

    @property
    def labels(self) -> AnyArray | None:
        """The labels that came with the points, checked; None where there are none."""
        if self.read_labels is None:
            return None
        return checks.labels(f"labels in {self.name}", self.read_labels())

    def chunks(self) -> Iterator[AnyArray]:
        """All rows in their order, checked for NaN and infinity."""
        first = 0
        for chunk in self.read():
            yield check_finite(chunk, self.name, first)
            first += len(chunk)

    def all(self) -> AnyArray:
        """All rows in one array, checked; a file that can be mapped is not copied into memory."""
        X, first = self.array, 0
        for chunk in self.chunks():
            if self.array is None:
                X = np.empty((self.n, chunk.shape[1]), chunk.dtype) if X is None else X
                X = X.astype(np.result_type(X, chunk), copy=False)  # the user's feature may vary
                X[first : first + len(chunk)] = chunk
            first += len(chunk)
        assert X is not None  # there is at least one row
        return X

    def of_columns(self, names: Sequence[str]) -> "Rows":
        """Rows with the columns of these names, in this order; all must be there.

        Features without names stay as they are.
        """
        if self.columns is None or self.columns == list(names):
            return self
        at = report.places(names, self.columns, self.name)
        known = set(names)
        left = [name for name in self.columns if name not in known]
        note = "columns are taken in the order that the model was learnt from"
        note += f", without {report.columns(left)}" if left else ""
        line = report.joined(self.summary, note)
        return replace(
            self,
            read=lambda: (np.take(chunk, at, axis=1) for chunk in self.read()),
            summary=line,
            columns=list(names),
            array=None,
        )


def of_file(
    path: str | Path,
    label: str = LABEL,
    header: HeaderChoice = None,
    id_column: report.IdColumns = report.IDS,
) -> Rows:
    """The features of a file; `tables.read_features` says which part of it is taken."""
    path = checked_path(path, "features", FEATURES)
    if path.suffix in TYPES:
        return _of_vectors(path)
    if path.suffix == ".parquet":
        return _of_parquet(path, label, id_column)
    features = take_features(path, label, "features", header, id_column)
    X = check_features(features.X, str(path))
    n, d = X.shape
    line = report.features_line(path, n, d, X.dtype, features.how)
    read = partial(_mapped, path) if path.suffix == ".npy" else X.__getitem__
    return Rows(
        str(path),
        n,
        lambda: _slices(n, d, read),
        features.read_labels,
        summary=line,
        columns=features.columns,
        doubt=features.doubt,
        array=X,
        read_ids=features.read_ids,
    )


def of_images(folder: "ImageFolder", feature: "ImageFeature") -> Rows:
    """The features of a folder's pictures, with their classes as labels."""
    return Rows(
        str(folder.root),
        len(folder),
        partial(feature.chunks, folder.paths),
        None if folder.labels is None else folder.classes,
        folder.names,
        feature.name,
        f"{folder}; feature: {feature.name}",
    )


def _slices(n: int, d: int, read: Callable[[slice], AnyArray]) -> Iterator[AnyArray]:
    for rows in threads.chunks(n, max(1, NUMBERS_PER_CHUNK // d)):
        yield read(rows)


def _mapped(path: Path, rows: slice) -> AnyArray:
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[rows])


def _of_vectors(path: Path) -> Rows:
    def read(rows: slice) -> AnyArray:
        records = map_vectors(path)[rows]
        check_dimensions(path, records, rows.start)
        return np.array(records["vector"])

    vectors = map_vectors(path)["vector"]
    n, d = vectors.shape
    line = report.features_line(path, n, d, vectors.dtype, "")
    return Rows(str(path), n, lambda: _slices(n, d, read), summary=line, array=vectors)


def _of_parquet(path: Path, label: str, id_column: report.IdColumns) -> Rows:
    file = Parquet(path)
    chosen = file.chosen(label, id_column)
    if not len(file):
        raise ValueError(f"{path} holds no rows")

    def read() -> Iterator[AnyArray]:
        for X, _ in Parquet(path).chunks(chosen, PARQUET_ROWS_PER_CHUNK):
            yield check_features(X, str(path))

    X = check_features(next(file.chunks(chosen, 1))[0], str(path))
    line = report.features_line(path, len(file), X.shape[1], X.dtype, chosen.how)
    labels = None if chosen.label is None else partial(file.labels, chosen.label)
    ids = report.id_columns(file.names, id_column, path)
    return Rows(
        str(path),
        len(file),
        read,
        labels,
        summary=line,
        columns=chosen.columns,
        doubt=chosen.doubt,
        read_ids=partial(file.labels, ids[0]) if ids else None,
    )
