"""A folder of pictures by class, and the features of its pictures: GIST, or the user's own."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.datasets.gist import gist
from auxhash.datasets.tables import check_features, check_finite

Picture = NDArray[np.uint8]  # (height, width, 3)

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
GIST = "gist"
SMALLEST, LARGEST = 16, 64  # sides of the squares that GIST is computed on
LOOKED_AT = 100  # pictures, to choose that side
CHUNK = 256  # pictures held at a time


@dataclass(frozen=True, eq=False)
class ImageFolder:
    """The pictures of a folder in the order of their paths, labelled by the folder they are in."""

    root: Path
    paths: list[Path]
    labels: NDArray[np.str_] | None  # None where the pictures are in `root` itself

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def names(self) -> list[str]:
        """Paths below `root`."""
        return [path.relative_to(self.root).as_posix() for path in self.paths]


@dataclass(frozen=True)
class ImageFeature:
    """A function of a list of pictures, with the name that a model remembers it by."""

    name: str
    function: Callable[[list[Picture]], Any]

    def of(self, paths: Sequence[Path]) -> NDArray[Any]:
        """Features (n, D) of pictures in files."""
        pictures = [read_image(path) for path in paths]
        try:
            X = np.asarray(self.function(pictures))
        except Exception as error:  # the function is the user's, and so is the fault
            why = f"{type(error).__name__}: {error}"
            raise ValueError(f"the feature {self.name} failed: {why}") from error
        role = f"what {self.name} returns"
        check_finite(check_features(X, role), role)
        if len(X) != len(paths):
            raise ValueError(f"{role} for {len(paths)} pictures must be as many rows, got {len(X)}")
        return X


def image_folder(root: str | Path) -> ImageFolder:
    """The pictures in the folders of `root`, one folder a class; or those in `root` itself.

    Files that are no pictures by their ending, and hidden ones, are passed over.
    """
    root = Path(root).expanduser()
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is no folder")
    found = sorted(
        path
        for path in root.rglob("*")
        if path.suffix.lower() in SUFFIXES
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    )
    if not found:
        raise ValueError(f"{root} holds no pictures ({', '.join(SUFFIXES)})")
    inside = [path.parent != root for path in found]
    if not any(inside):
        return ImageFolder(root, found, None)
    if not all(inside):
        outside = found[inside.index(False)].name
        raise ValueError(
            f"{root} holds both pictures, such as {outside}, and folders of pictures; "
            "pictures by class are all in folders, one a class"
        )
    classes = [path.relative_to(root).parts[0] for path in found]
    return ImageFolder(root, found, np.array(classes))


def read_image(path: Path) -> Picture:
    """A picture's pixels (height, width, 3), turned upright."""
    image_module, operations = _pillow()
    try:
        with image_module.open(path) as image:
            return np.asarray(operations.exif_transpose(image).convert("RGB"))
    except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError) as error:
        if isinstance(error, PermissionError):
            raise
        raise ValueError(f"{path} is no picture that can be read: {error}") from error


def feature_for(
    folder: ImageFolder, own: str | None = None, n_jobs: int | None = None
) -> ImageFeature:
    """GIST, on squares about as large as the folder's pictures; or the user's module:function."""
    if own is not None:
        return own_feature(own)
    step = max(1, len(folder) // LOOKED_AT)
    sides = [min(read_image(path).shape[:2]) for path in folder.paths[::step]]
    return gist_feature(int(np.clip(np.median(sides), SMALLEST, LARGEST)), n_jobs)


def remembered(name: str, own: str | None = None, n_jobs: int | None = None) -> ImageFeature:
    """The feature that a model was learnt from. `own` must name it if it is the user's.

    A name in a file is no reason to run code: only the user can say so.
    """
    kind, _, side = name.partition(":")
    if kind == GIST and side.isdecimal():
        if own is not None:
            raise ValueError(f"the model was learnt from GIST, not from {own}")
        return gist_feature(int(side), n_jobs)
    if own is None:
        raise ValueError(
            f"the model was learnt from a feature of your own: --features {name} lets it be run"
        )
    if own != name:
        raise ValueError(f"the model was learnt from {name}, not from {own}")
    return own_feature(own)


def gist_feature(side: int, n_jobs: int | None = None) -> ImageFeature:
    """GIST of the largest centred square, in grey, scaled to `side` pixels."""

    def function(pictures: list[Picture]) -> NDArray[np.float32]:
        squares = np.stack([_grey_square(picture, side) for picture in pictures])
        return gist(squares, n_jobs=n_jobs)

    return ImageFeature(f"{GIST}:{side}", function)


def own_feature(name: str) -> ImageFeature:
    """The user's function of a list of pictures (height, width, 3), uint8, to features (n, D)."""
    module, _, function = name.partition(":")
    if not (module and function):
        raise ValueError(f"a feature of your own is named module:function, got {name!r}")
    if os.getcwd() not in sys.path:  # where the module is likely to be
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), function)
    except AttributeError as error:
        raise ValueError(f"module {module} has no function {function!r}") from error
    if not callable(found):
        raise ValueError(f"{name} is no function")
    return ImageFeature(name, found)


def _grey_square(picture: Picture, side: int) -> NDArray[np.uint8]:
    image_module, operations = _pillow()
    grey = image_module.fromarray(picture).convert("L")
    square = operations.fit(grey, (side, side), image_module.Resampling.BILINEAR)
    return np.asarray(square)


def _pillow() -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError("reading pictures needs Pillow: pip install 'auxhash[images]'") from error
    return Image, ImageOps
