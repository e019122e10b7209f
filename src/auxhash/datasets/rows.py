"""Rows of a file, a chunk at a time: what is larger than memory can be encoded.

.npy, .fvecs and .bvecs files are mapped anew for every chunk, so that pages read before are given
back; pictures are read as their turn comes. Other files are read as a whole.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash import threads
from auxhash.datasets.images import CHUNK as PICTURES
from auxhash.datasets.images import ImageFeature, ImageFolder
from auxhash.datasets.tables import FEATURES as READERS
from auxhash.datasets.tables import LABEL, check_features, check_finite, checked_path, read_features
from auxhash.datasets.vectors import TYPES, check_dimensions, map_vectors
from auxhash.files import writing

Array = NDArray[Any]

NUMBERS = 1 << 20  # in a chunk


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows, of which `read` gives a slice as an array (rows, D)."""

    name: str
    n: int
    size: int  # of a chunk
    read: Callable[[slice], Array]
    labels: Array | None = None
    names: list[str] | None = None  # of pictures

    def __len__(self) -> int:
        return self.n

    def chunks(self) -> Iterator[Array]:
        """All rows in their order, checked for NaN and infinity."""
        for rows in threads.chunks(self.n, self.size):
            yield check_finite(self.read(rows), self.name, rows.start)

    def all(self) -> Array:
        """All rows in one array."""
        return np.concatenate(list(self.chunks()))


def of_file(path: str | Path, label: str = LABEL, role: str = "features") -> Rows:
    """The features of a file; `tables.read_features` says what of it is taken."""
    path = checked_path(path, role, READERS)
    if path.suffix in TYPES:
        return _of_vectors(path)
    X, labels = read_features(path, label, role)
    check_features(X, str(path))
    if path.suffix == ".npy":
        return Rows(str(path), len(X), _size(X.shape[1]), _from_npy(path))
    return Rows(str(path), len(X), _size(X.shape[1]), lambda rows: X[rows], labels)


def of_images(folder: ImageFolder, feature: ImageFeature) -> Rows:
    """The features of a folder's pictures, with their classes as labels."""
    return Rows(
        str(folder.root),
        len(folder),
        PICTURES,
        lambda rows: feature.of(folder.paths[rows]),
        folder.labels,
        folder.names,
    )


def write_npy(
    path: str | Path, shape: tuple[int, int], chunks: Iterable[NDArray[np.uint8]]
) -> None:
    """Write codes to a .npy file as they come, whole or not at all."""
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    with writing(Path(path)) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk).data)


def _from_npy(path: Path) -> Callable[[slice], Array]:
    return lambda rows: np.array(np.load(path, mmap_mode="r", allow_pickle=False)[rows])


def _of_vectors(path: Path) -> Rows:
    def read(rows: slice) -> Array:
        records = map_vectors(path)[rows]
        check_dimensions(path, records, rows.start)
        return np.array(records["vector"])

    records = map_vectors(path)
    return Rows(str(path), len(records), _size(records["vector"].shape[1]), read)


def _size(d: int) -> int:
    return max(1, NUMBERS // d)
