"""Infinite MNIST: deformed handwritten digits without end, each addressed by its number.

The data set is that of Loosli, Canu and Bottou (2007), "Training invariant support vector machines
using selective sampling"; the images are not theirs. Elastic deformation (Simard, Steinkraus and
Platt, 2003): every pixel is moved by a random field, smoothed by a Gaussian; on top of it a small
rotation, scaling and shift. All randomness is a function of (seed, number of the image, number of
the draw), so any image can be made at any time, alone or among a million, on any thread, and is
always the same.

Their program (leon.bottou.org/projects/infimnist) differs:

- It combines 1,522 stored fields with stored tangent vectors of the training images. Here every
  image has a random field of its own, along which its pixels are moved.
- It translates digits beside that; here they are also turned by up to 10 degrees and scaled by up
  to a tenth.
- Its first images are MNIST's own, and only training images are deformed. Here every image is,
  queries too, which are made of MNIST's test images.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import context, threads
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.kernels import kernel
from auxhash.compute.random import random_bits
from auxhash.experiments.datasets import mnist
from auxhash.experiments.datasets.dataset import Dataset, Points, describe, draw, within
from auxhash.experiments.datasets.fetch import cache

FILES = mnist.FILES
SIDE = 28
IMAGES_PER_CHUNK = 1000

SMOOTHING_PIXELS = 4.0  # deviation of the Gaussian
GAUSSIAN_RADIUS_PIXELS = 12  # where it is cut off
FIELD_PIXELS = 26.0  # that a pixel moves where the smoothed field, of numbers in -1..1, is 1
MAX_TURN_RADIANS = math.radians(10)  # to either side
MAX_LOG_SCALE = 0.1  # for each axis
MAX_SHIFT_PIXELS = 1.5  # along each axis


@dataclass(frozen=True, eq=False)
class InfiniteMNIST:
    """Image i is a deformation of source image i mod n; its label is that image's label.

    `digits` are the n source images (n, 28, 28), uint8, and `labels` theirs.
    """

    digits: NDArray[np.uint8]
    labels: NDArray[np.int64]
    seed: int = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        shape = self.digits.shape
        if self.digits.dtype != np.uint8 or shape[1:] != (SIDE, SIDE) or not shape[0]:
            raise ValueError(
                f"digits must be uint8 (n, {SIDE}, {SIDE}), got {self.digits.dtype} {shape}"
            )
        if len(self.labels) != shape[0]:
            raise ValueError(f"{shape[0]} digits do not fit {len(self.labels)} labels")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")

    def images(self, index: ArrayLike) -> NDArray[np.uint8]:
        """Images (n, 28, 28) of these numbers, or one image (28, 28) of a single number."""
        numbers = np.asarray(index)
        if not np.issubdtype(numbers.dtype, np.integer) or numbers.ndim > 1:
            raise ValueError("index must be a whole number or a list of them")
        if numbers.size and numbers.min() < 0:
            raise ValueError(f"index must not be negative, got {numbers.min()}")
        flat = np.atleast_1d(numbers).astype(np.int64)
        out = np.empty((len(flat), SIDE, SIDE), np.uint8)
        self.fill(flat, out)
        return out if numbers.ndim else out[0]

    def fill(self, numbers: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """Put the images of these numbers into `out` (n, 28, 28), which may lie on disk."""
        kernel = _gaussian()

        def make(rows: slice) -> None:
            _deform(self.digits, numbers[rows], np.uint64(self.seed), kernel, out[rows])

        with context.using(n_jobs=self.n_jobs), threads.pool() as run:
            run(make, threads.chunks(len(numbers), IMAGES_PER_CHUNK))

    def label(self, index: ArrayLike) -> NDArray[np.int64]:
        """Labels of the images of these numbers."""
        labels: NDArray[np.int64] = self.labels[np.asarray(index) % len(self.labels)]
        return labels


def load(
    n_train: int | None = 10_000, n_base: int = 1_000_000, n_query: int = 2_000, seed: int = 0
) -> Dataset:
    """Base: images 0..n_base-1, of MNIST's training images; queries: deformed test images.

    The base lies on disk, one byte per pixel, and is mapped into memory, never read as a whole.
    """
    if n_base < 1 or n_query < 1:
        raise ValueError(f"n_base and n_query must be positive, got {n_base} and {n_query}")
    written, held_out = training_images(seed), held_out_images(seed)

    def make(path: Path) -> None:
        out = np.lib.format.open_memmap(path, "w+", np.uint8, (n_base, SIDE**2))
        written.fill(np.arange(n_base), out.reshape(-1, SIDE, SIDE))
        out.flush()

    pixels = cache.obtain(cache.folder() / "infinite-mnist" / f"v1-seed{seed}-{n_base}.npy", make)
    base = _points(pixels, written.label(np.arange(n_base)))
    rows = draw(n_base, n_train, seed, "n_train")
    train = base if len(rows) == n_base else base.take(rows)  # all of it stays on disk
    numbers = np.arange(n_query)
    query = _points(held_out.images(numbers).reshape(n_query, -1), held_out.label(numbers))
    about = (
        "raw pixels of deformed digits after Loosli, Canu and Bottou (2007), by our own "
        "deformations, base from MNIST's training images, queries from its test images"
    )
    protocol = describe("infinite-mnist", about, train, base, query, within(train, base), seed)
    return Dataset("infinite-mnist", train, base, query, protocol)


def training_images(seed: int = 0, n_jobs: int | None = None) -> InfiniteMNIST:
    """Deformed training images of MNIST, which the base of `load` is made of."""
    return InfiniteMNIST(*_digits(mnist.training_images(FILES.obtain())), seed, n_jobs)


def held_out_images(seed: int = 0, n_jobs: int | None = None) -> InfiniteMNIST:
    """Deformed test images, which the queries of `load` are made of."""
    return InfiniteMNIST(*_digits(mnist.held_out_images(FILES.obtain())), seed + 1, n_jobs)


def _digits(source: Points) -> tuple[AnyArray, AnyArray]:
    assert source.images is not None  # MNIST has both
    assert source.y is not None
    return source.images, source.y


def _points(pixels: AnyArray, labels: NDArray[np.int64]) -> Points:
    return Points(pixels, labels, pixels.reshape(-1, SIDE, SIDE))


def _gaussian() -> NDArray[np.float32]:
    at = np.arange(-GAUSSIAN_RADIUS_PIXELS, GAUSSIAN_RADIUS_PIXELS + 1)
    weight: NDArray[np.float64] = np.exp(-(at**2) / (2 * SMOOTHING_PIXELS**2))
    kernel: NDArray[np.float32] = (weight / weight.sum()).astype(np.float32)
    return kernel


@kernel(inline="always")
def _two_uniform(bits: int) -> tuple[np.float32, np.float32]:
    """Two numbers in -1..1 out of 64 random bits."""
    high = np.float32(np.int64(bits >> np.uint64(40))) / np.float32(1 << 23) - np.float32(1)
    low = np.float32(np.int64((bits >> np.uint64(8)) & np.uint64(0xFFFFFF))) / np.float32(1 << 23)
    return high, low - np.float32(1)


@kernel
def _smooth(field: AnyArray, kernel: AnyArray, wide: AnyArray, across: AnyArray) -> None:
    """Convolve a field with the Gaussian in place; it wraps around at the edges."""
    side = len(field)
    reach = len(kernel) // 2
    for row in range(side):  # along x
        for x in range(side + 2 * reach):
            wide[x] = field[row, (x - reach + side) % side]
        across[row, :] = 0
        for k in range(len(kernel)):
            for x in range(side):
                across[row, x] += kernel[k] * wide[x + k]
    for row in range(side):  # along y
        field[row, :] = 0
        for k in range(len(kernel)):
            source = (row + k - reach + side) % side
            for x in range(side):
                field[row, x] += kernel[k] * across[source, x]


@kernel(inline="always")
def _pixel(digit: AnyArray, row: int, x: int) -> np.float32:
    inside = 0 <= row < digit.shape[0] and 0 <= x < digit.shape[1]
    return np.float32(digit[row, x]) if inside else np.float32(0)


@kernel
def _deform(
    digits: AnyArray, numbers: AnyArray, seed: int, kernel: AnyArray, out: AnyArray
) -> None:
    """Draw the images: each pixel is interpolated from the four around the place it comes from."""
    side = digits.shape[1]
    middle = np.float32((side - 1) / 2)
    across = np.empty((side, side), np.float32)
    field_x, field_y = np.empty_like(across), np.empty_like(across)
    wide = np.empty(side + len(kernel) - 1, np.float32)
    for n in range(len(numbers)):
        digit = digits[numbers[n] % len(digits)]
        key = random_bits(random_bits(seed, 0), numbers[n])
        for p in range(side * side):
            a, b = _two_uniform(random_bits(key, p))
            field_x[p // side, p % side], field_y[p // side, p % side] = a, b
        _smooth(field_x, kernel, wide, across)
        _smooth(field_y, kernel, wide, across)
        turn, _ = _two_uniform(random_bits(key, side * side))
        wider, higher = _two_uniform(random_bits(key, side * side + 1))
        right, down = _two_uniform(random_bits(key, side * side + 2))
        cosine, sine = math.cos(MAX_TURN_RADIANS * turn), math.sin(MAX_TURN_RADIANS * turn)
        scale_x, scale_y = math.exp(MAX_LOG_SCALE * wider), math.exp(MAX_LOG_SCALE * higher)
        for row in range(side):
            for x in range(side):
                u, v = x - middle, row - middle
                from_x = (cosine * u - sine * v) * scale_x + MAX_SHIFT_PIXELS * right
                from_y = (sine * u + cosine * v) * scale_y + MAX_SHIFT_PIXELS * down
                from_x += middle + FIELD_PIXELS * field_x[row, x]
                from_y += middle + FIELD_PIXELS * field_y[row, x]
                left, top = math.floor(from_x), math.floor(from_y)
                share_x, share_y = from_x - left, from_y - top
                upper = _pixel(digit, top, left) * (1 - share_x)
                upper += _pixel(digit, top, left + 1) * share_x
                lower = _pixel(digit, top + 1, left) * (1 - share_x)
                lower += _pixel(digit, top + 1, left + 1) * share_x
                out[n, row, x] = np.uint8(upper * (1 - share_y) + lower * share_y + 0.5)
