"""Rows of a file, a chunk at a time: what is larger than memory can be encoded.

.npy, .fvecs and .bvecs files are mapped anew for every chunk, so that pages read before are given
back; .parquet files and pictures are read as their turn comes. Other files are read as a whole.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash import threads
from auxhash.datasets.images import CHUNK as PICTURES
from auxhash.datasets.images import ImageFeature, ImageFolder
from auxhash.datasets.tables import (
    FEATURES,
    LABEL,
    check_features,
    check_finite,
    checked_path,
    features_of_arrow,
    open_parquet,
    read_features,
)
from auxhash.datasets.vectors import TYPES, check_dimensions, map_vectors
from auxhash.files import writing

Array = NDArray[Any]

NUMBERS = 1 << 20  # in a chunk
BATCH = 4096  # rows of a .parquet file


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows, that `read` gives from the first to the last as arrays (rows, D)."""

    name: str
    n: int
    read: Callable[[], Iterable[Array]]
    labels: Array | None = None
    names: list[str] | None = None  # of pictures
    feature: str | None = None  # that was computed of them

    def __len__(self) -> int:
        return self.n

    def chunks(self) -> Iterator[Array]:
        """All rows in their order, checked for NaN and infinity."""
        first = 0
        for chunk in self.read():
            yield check_finite(chunk, self.name, first)
            first += len(chunk)

    def all(self) -> Array:
        """All rows in one array."""
        return np.concatenate(list(self.chunks()))


def of_file(path: str | Path, label: str = LABEL, role: str = "features") -> Rows:
    """The features of a file; `tables.read_features` says what of it is taken."""
    path = checked_path(path, role, FEATURES)
    if path.suffix in TYPES:
        return _of_vectors(path)
    if path.suffix == ".parquet":
        return _of_parquet(path, label)
    X, labels = read_features(path, label, role)
    check_features(X, str(path))
    n, d = X.shape
    if path.suffix == ".npy":
        return Rows(str(path), n, lambda: _slices(n, d, partial(_mapped, path)))
    return Rows(str(path), n, lambda: _slices(n, d, X.__getitem__), labels)


def of_images(folder: ImageFolder, feature: ImageFeature) -> Rows:
    """The features of a folder's pictures, with their classes as labels."""

    def read() -> Iterator[Array]:
        for rows in threads.chunks(len(folder), PICTURES):
            yield feature.of(folder.paths[rows])

    return Rows(str(folder.root), len(folder), read, folder.labels, folder.names, feature.name)


def write_npy(
    path: str | Path, shape: tuple[int, int], chunks: Iterable[NDArray[np.uint8]]
) -> None:
    """Write codes to a .npy file as they come, whole or not at all."""
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    with writing(Path(path)) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk).data)


def _slices(n: int, d: int, read: Callable[[slice], Array]) -> Iterator[Array]:
    for rows in threads.chunks(n, max(1, NUMBERS // d)):
        yield read(rows)


def _mapped(path: Path, rows: slice) -> Array:
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[rows])


def _of_vectors(path: Path) -> Rows:
    def read(rows: slice) -> Array:
        records = map_vectors(path)[rows]
        check_dimensions(path, records, rows.start)
        return np.array(records["vector"])

    n, d = map_vectors(path)["vector"].shape
    return Rows(str(path), n, lambda: _slices(n, d, read))


def _of_parquet(path: Path, label: str) -> Rows:
    file = open_parquet(path)
    labels = None
    if label in file.schema_arrow.names:
        labels = file.read(columns=[label])[label].to_numpy()

    def read() -> Iterator[Array]:
        for batch in open_parquet(path).iter_batches(BATCH):
            yield check_features(features_of_arrow(batch, path, label), str(path))

    if not file.metadata.num_rows:
        raise ValueError(f"{path} holds no rows")
    return Rows(str(path), file.metadata.num_rows, read, labels)
