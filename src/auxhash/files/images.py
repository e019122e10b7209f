"""A folder of pictures by class, and the features of its pictures: GIST, or the user's own.

Pictures are from anyone: only the kinds in `FORMATS` are decoded, whatever a file is called, and
none that states more than `MAX_PIXELS`.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, ArrayLike, Single
from auxhash.compute.extras import install
from auxhash.compute.imported import imported
from auxhash.compute.words import count
from auxhash.files.feature import GIST_SIDES
from auxhash.files.gist import gist
from auxhash.files.tables import check_features, check_finite

if TYPE_CHECKING:
    from PIL import Image

Picture = NDArray[np.uint8]  # (height, width, 3)
PictureSource = Path | IO[bytes]  # of a picture; errors call it by its text

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP")
GIST = "gist"
SAMPLED_PICTURES = 100  # whose size is read, to choose the side of GIST's squares
PICTURES_PER_CHUNK = 256  # given to a feature at a time
MAX_CHUNK_PIXELS = 64 * 10**6  # of pictures at full size; a single picture may have more
MAX_PIXELS = 100 * 10**6  # of a picture that is read
DECODED_SIDES = 4  # sides of GIST's square: a JPEG is decoded no larger than it need be
GREY16_MODES = ("I;16", "I;16L", "I;16B", "I;16N")  # Pillow's names for 16 bits of grey
THUMBNAIL_SIDE = 64
CLASSES_SHOWN = 6  # where a folder is described


@dataclass(frozen=True, eq=False)
class ImageFolder:
    """The pictures of a folder in the order of their paths, labelled by the folder they are in."""

    root: Path
    paths: list[Path]
    labels: NDArray[np.str_] | None  # None where the pictures are in `root` itself

    def __len__(self) -> int:
        return len(self.paths)

    def __str__(self) -> str:
        """Describe the folder: its classes with their sizes."""
        start = f"{self.root}: {count(len(self), 'picture')}"
        if self.labels is None:
            return f"{start}, without classes"
        sizes = Counter(self.labels.tolist())
        few = ", ".join(f"{name} ({size:,})" for name, size in list(sizes.items())[:CLASSES_SHOWN])
        more = f" and {len(sizes) - CLASSES_SHOWN:,} more" if len(sizes) > CLASSES_SHOWN else ""
        return f"{start} of {count(len(sizes), 'class')}: {few}{more}"

    def classes(self) -> NDArray[np.str_]:
        """The labels, where there are any; ValueError if the classes lie deeper than one folder."""
        assert self.labels is not None
        if all(name.count("/") > 1 for name in self.names):
            raise ValueError(
                f"{self.root} holds {count(len(self), 'picture')}, all in folders of folders, such "
                f"as {self.names[0]}: give the folder that holds one folder per class"
            )
        return self.labels

    @property
    def names(self) -> list[str]:
        """Paths below `root`."""
        return [path.relative_to(self.root).as_posix() for path in self.paths]


@dataclass(frozen=True)
class ImageFeature:
    """A function of a list of pictures, with the name that a model remembers it by.

    `reduced`, where there is one, reads what the function needs of a picture, and nothing else is
    held; without it, the function is given pictures at full size, few at a time if they are large.
    """

    name: str
    function: Callable[[list[Picture]], ArrayLike]
    reduced: Callable[[PictureSource], Picture] | None = None

    def of(self, paths: Sequence[PictureSource]) -> AnyArray:
        """Features (n, D) of pictures in files."""
        return np.concatenate(list(self.chunks(paths)))

    def chunks(self, paths: Sequence[PictureSource]) -> Iterator[AnyArray]:
        """Features of pictures in files, some pictures at a time."""
        width = None
        for batch in _batches(paths, full_size=self.reduced is None):
            X = self._of_batch(batch)
            if width is not None and X.shape[1] != width:
                raise ValueError(
                    f"what {self.name} returns must have as many columns for all pictures: "
                    f"{width} at first, {X.shape[1]} from {batch[0]} on"
                )
            width = X.shape[1]
            yield X

    def _of_batch(self, paths: Sequence[PictureSource]) -> AnyArray:
        pictures = [(self.reduced or read_image)(path) for path in paths]
        try:
            X = np.asarray(self.function(pictures))
        except Exception as error:  # the function is the user's, and so is the fault
            why = f"{type(error).__name__}: {error}"
            raise ValueError(f"the feature {self.name} failed: {why}") from error
        role = f"what {self.name} returns"
        check_finite(check_features(X, role), role)
        if len(X) != len(paths):
            raise ValueError(
                f"{role} for {count(len(paths), 'picture')} must be as many rows, got {len(X)}"
            )
        return X


def image_folder(root: str | Path) -> ImageFolder:
    """The pictures in the folders of `root`, one folder per class; or those in `root` itself.

    Files that are no pictures by their ending, and hidden ones, are passed over.
    """
    root = Path(root).expanduser()
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is no folder")
    pictures = sorted(
        path
        for path in root.rglob("*")
        if path.suffix.lower() in SUFFIXES
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    )
    if not pictures:
        raise ValueError(f"{root} holds no pictures ({', '.join(SUFFIXES)})")
    inside = [path.parent != root for path in pictures]
    if not any(inside):
        return ImageFolder(root, pictures, None)
    if not all(inside):
        outside = pictures[inside.index(False)].name
        raise ValueError(
            f"{root} holds both pictures, such as {outside}, and folders of pictures; "
            "pictures by class are all in folders, one folder per class"
        )
    classes = [path.relative_to(root).parts[0] for path in pictures]
    return ImageFolder(root, pictures, np.array(classes))


def read_image(path: PictureSource) -> Picture:
    """A picture's pixels (height, width, 3), turned upright.

    Of several frames, the first is taken; of 16 bits per channel, the upper 8; transparency is
    left out, so that the colours beneath it count. 32 bits per channel are refused: it is not known
    which number is white.
    """
    with _opened(path) as image:
        return _pixels(image)


def feature_for(folder: ImageFolder, own: str | None = None) -> ImageFeature:
    """GIST, on squares about as large as the folder's pictures; or the user's module:function."""
    if own is not None:
        return own_feature(own)
    step = max(1, len(folder) // SAMPLED_PICTURES)
    sides = [min(image_size(path)) for path in folder.paths[::step]]
    return gist_feature(int(np.clip(np.median(sides), GIST_SIDES[0], GIST_SIDES[-1])))


def remembered(name: str, own: str | None = None) -> ImageFeature:
    """The feature that a model was learnt from. `own` must name it if it is the user's.

    A name in a file is no reason to run code: only the user can say so.
    """
    kind, _, side = name.partition(":")
    if kind == GIST and side.isdecimal():
        if own is not None:
            raise ValueError(f"the model was learnt from GIST, not from {own}")
        return gist_feature(int(side))
    if own is None:
        raise ValueError(
            f"the model was learnt from a feature of your own: --features {name} lets it be run"
        )
    if own != name:
        raise ValueError(f"the model was learnt from {name}, not from {own}")
    return own_feature(own)


def gist_feature(side: int) -> ImageFeature:
    """GIST of the largest centred square, in grey, scaled to `side` pixels.

    A JPEG of more than `DECODED_SIDES` times the side is decoded at a half, a quarter or an
    eighth of its size, as long as that is no less than `DECODED_SIDES` times the side.
    """

    def function(squares: list[Picture]) -> Single:
        return gist(np.stack(squares))

    return ImageFeature(f"{GIST}:{side}", function, lambda path: grey_square(path, side))


def own_feature(name: str) -> ImageFeature:
    """The user's function of a list of pictures (height, width, 3), uint8, to features (n, D)."""
    loaded = imported(name, "a feature of your own")
    if not callable(loaded):
        raise ValueError(f"{name} is no function")
    return ImageFeature(name, loaded)


class Thumbnails:
    """Small squares of pictures in files, uint8 (n, side, side, 3), read when NumPy asks."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: AnyArray) -> "Thumbnails":
        return Thumbnails([self.paths[row] for row in rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        return np.stack([_square(path, THUMBNAIL_SIDE, "RGB") for path in self.paths])


def grey_square(path: PictureSource, side: int) -> NDArray[np.uint8]:
    """The largest centred square of a picture, in grey, scaled to (side, side)."""
    return _square(path, side, "L")


def _square(path: PictureSource, side: int, mode: str) -> NDArray[np.uint8]:
    image_module, operations = _pillow()
    with _opened(path) as image:
        decoded = DECODED_SIDES * side
        image.draft("RGB", (decoded, decoded))  # does nothing to what is no JPEG
        picture = _pixels(image)
    converted = image_module.fromarray(picture).convert(mode)
    square = operations.fit(converted, (side, side), image_module.Resampling.BILINEAR)
    return np.asarray(square)


def image_size(path: PictureSource) -> tuple[int, int]:
    """A picture's two sides, without decoding it."""
    with _opened(path) as image:
        width, height = image.size
        return int(width), int(height)


@contextmanager
def _opened(path: PictureSource) -> Iterator["Image.Image"]:
    """A picture whose header has been read; its pixels are decoded when they are asked for."""
    image_module, _ = _pillow()
    bomb = image_module.DecompressionBombError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", image_module.DecompressionBombWarning)
            image = image_module.open(path, formats=FORMATS)
        with image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise bomb(f"it has {width:,} x {height:,} pixels")
            yield image
    except PermissionError:
        raise
    except bomb as error:
        raise ValueError(
            f"{path} is too large a picture, at most {MAX_PIXELS:,} pixels are read: {error}"
        ) from error
    except (OSError, ValueError, SyntaxError, MemoryError) as error:  # a part that states 2 GB
        why = str(error) or "it takes too much memory"
        raise ValueError(f"{path} is no picture that can be read: {why}") from error


def _pixels(image: "Image.Image") -> Picture:
    """The pixels of an open picture as uint8 (height, width, 3)."""
    image_module, operations = _pillow()
    grey16 = image.mode in GREY16_MODES or (image.mode == "I" and image.format == "PNG")
    if image.mode in ("I", "F") and not grey16:
        raise ValueError("it has 32 bits per channel, and 8 or 16 are needed")
    upright = operations.exif_transpose(image)
    if grey16:
        upright = image_module.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
    return np.asarray(upright.convert("RGB"))


def _batches(paths: Sequence[PictureSource], full_size: bool) -> Iterator[Sequence[PictureSource]]:
    """Cut the paths into batches; at full size, of at most `MAX_CHUNK_PIXELS` each."""
    if not full_size:
        yield from (paths[rows] for rows in threads.chunks(len(paths), PICTURES_PER_CHUNK))
        return
    batch: list[PictureSource] = []
    pixels = 0
    for path in paths:
        width, height = image_size(path)
        if batch and (
            len(batch) == PICTURES_PER_CHUNK or pixels + width * height > MAX_CHUNK_PIXELS
        ):
            yield batch
            batch, pixels = [], 0
        batch.append(path)
        pixels += width * height
    yield batch


def _pillow() -> tuple[ModuleType, ModuleType]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError(f"reading pictures needs Pillow: {install('images')}") from error
    return Image, ImageOps
