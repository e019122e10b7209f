"""What commands are given: points, labels, codes and pairs, in files and folders."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, as_packed
from auxhash.datasets import images, rows, tables
from auxhash.datasets.rows import Rows
from auxhash.files import destination
from auxhash.hasher import Hasher
from auxhash.index.hamming import check_packed

Array = NDArray[Any]


def points(path: str, own: str | None, label: str, jobs: int | None) -> Rows:
    """Points to learn from."""
    if not Path(path).is_dir():
        return _of_file(path, own, label)
    folder = images.image_folder(path)
    return rows.of_images(folder, images.feature_for(folder, own, jobs))


def points_for(hasher: Hasher, path: str, own: str | None, label: str) -> Rows:
    """Points for a model: of pictures, the features that it was learnt from."""
    if not Path(path).is_dir():
        return _of_file(path, own, label)
    name = getattr(hasher, "image_feature_", None)
    if name is None:
        raise ValueError(f"{path} is a folder, and the model was not learnt from pictures")
    return rows.of_images(images.image_folder(path), images.remembered(name, own, hasher.n_jobs))


def labels_of(found: Rows, path: str | None, label: str) -> Array | None:
    """Labels from a file of their own, or else those that came with the points, if any."""
    labels = found.labels if path is None else tables.read_labels(path, label)
    if labels is not None and len(labels) != len(found):
        raise ValueError(f"{found.name} holds {len(found)} points, but {path} {len(labels)} labels")
    return labels


def needed_labels(found: Rows, path: str | None, label: str, option: str) -> Array:
    """The same where there must be some; `option` is how to give them."""
    labels = labels_of(found, path, label)
    if labels is None:
        raise ValueError(f"{found.name} holds no labels called {label!r}: give {option}")
    return labels


def codes(path: str, n_bits: int | None) -> tuple[Packed, int]:
    """Packed codes of a .npy file, and their bits; packed codes alone do not tell all of these."""
    file = tables.checked_path(path, "codes", (".npy",))
    array, _ = tables.read_features(file)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "iu":
        raise ValueError(
            f"{path} holds no codes (packed uint8, or -1 and +1): "
            f"it is {array.dtype} of shape {array.shape}"
        )
    if n_bits is not None:
        return check_packed(array, n_bits, path), n_bits
    return as_packed(array, path), (8 if array.dtype == np.uint8 else 1) * array.shape[1]


def output_path(path: str, *made_from: str | None, suffix: str | None = None) -> Path:
    """A path that can be written to, and is none of what the file is made from.

    Better to know before an hour of work than after.
    """
    found = Path(path).expanduser()
    real = os.path.realpath
    if any(other and real(found) == real(Path(other).expanduser()) for other in made_from):
        raise ValueError(f"{path} is what the file is made from, and would be lost")
    if suffix is not None and found.suffix != suffix:
        raise ValueError(f"{path} must end in {suffix}")
    destination(found)
    return found


def _of_file(path: str, own: str | None, label: str) -> Rows:
    if own is not None:
        raise ValueError(f"--features is for folders of pictures, and {path} is none")
    return rows.of_file(path, label)
