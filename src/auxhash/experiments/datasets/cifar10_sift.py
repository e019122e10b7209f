"""A million real SIFT descriptors of CIFAR-10, for runs at the scale of SIFT1M.

Every image gives the same number of descriptors, so that no image dominates: those of its
strongest keypoints and, if it has too few, of points on a regular grid. Needs OpenCV:
`pip install 'auxhash[sift]'`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.extras import install
from auxhash.experiments.datasets import cifar10
from auxhash.experiments.datasets.dataset import (
    Dataset,
    Points,
    describe,
    draw,
    ground_truth,
    stream,
    within,
)
from auxhash.experiments.datasets.fetch import cache

FILES = cifar10.FILES
DESCRIPTORS_PER_IMAGE = 20
TRAINING_IMAGES = 50_000  # they make the base; the 10,000 test images make the queries
DIMENSION = 128
ENLARGEMENT = 2  # factor on an image before keypoints are sought: at 32 pixels there are too few
GRID_POINTS_PER_SIDE = 5  # points along a side, where keypoints run out
GRID_POINT_PIXELS = 16.0  # diameter in pixels that a grid point describes
IMAGES_PER_CHUNK = 500


def load(
    n_train: int | None = 10_000,
    n_base: int | None = None,
    n_query: int = 10_000,
    seed: int = 0,
    n_neighbors: int = 100,
) -> Dataset:
    """Base: 20 descriptors per training image, of 50,000; queries: one per test image.

    The ground truth is the `n_neighbors` nearest base points of each query; 0 leaves it out.
    """
    vectors = descriptors()
    split = TRAINING_IMAGES * DESCRIPTORS_PER_IMAGE
    pool, tests = vectors[:split], vectors[split:]
    base = Points(pool if n_base is None else pool[draw(split, n_base, seed, "n_base")])
    train = base.take(draw(len(base), n_train, seed, "n_train"))
    images = draw(len(tests) // DESCRIPTORS_PER_IMAGE, n_query, seed, "n_query")
    chosen = stream(seed, "descriptor").integers(
        DESCRIPTORS_PER_IMAGE, size=len(tests) // DESCRIPTORS_PER_IMAGE
    )
    X = np.asarray(tests[images * DESCRIPTORS_PER_IMAGE + chosen[images]])
    truth = ground_truth(base.X, X, n_neighbors) if n_neighbors else None
    query = Points(X, neighbors=truth)
    about = (
        f"SIFT, {DESCRIPTORS_PER_IMAGE} descriptors of each of CIFAR-10's 50,000 training images, "
        "queries one of each test image"
    )
    protocol = describe("cifar10-sift", about, train, base, query, within(train, base), seed)
    return Dataset("cifar10-sift", train, base, query, protocol)


def descriptors() -> NDArray[np.uint8]:
    """All descriptors (60,000 x 20, 128), image by image, made once and then mapped from disk."""

    def make(path: Path) -> None:
        _opencv()  # before the images are fetched
        grey = cifar10.as_grey(cifar10.read()[0])
        vectors = sift(np.rint(grey).astype(np.uint8), DESCRIPTORS_PER_IMAGE)
        with path.open("wb") as out:
            np.save(out, vectors.reshape(-1, DIMENSION))

    path = cache.folder() / "cifar10-sift" / f"sift-{DESCRIPTORS_PER_IMAGE}-v1.npy"
    return cache.obtain(path, make)


def sift(images: NDArray[np.uint8], per_image: int = DESCRIPTORS_PER_IMAGE) -> NDArray[np.uint8]:
    """`per_image` SIFT descriptors of each grey image (n, side, side): (n, per_image, 128)."""
    if not 1 <= per_image <= GRID_POINTS_PER_SIDE**2:
        raise ValueError(f"per_image must be from 1 to {GRID_POINTS_PER_SIDE**2}, got {per_image}")
    cv2 = _opencv()
    vectors = np.empty((len(images), per_image, DIMENSION), np.uint8)

    def describe_chunk(rows: slice) -> None:
        # No threshold on contrast or edges: weak keypoints are better than none.
        extractor = cv2.SIFT_create(contrastThreshold=0.0, edgeThreshold=1e6)
        for n in range(rows.start, rows.stop):
            vectors[n] = _strongest(cv2, extractor, images[n], per_image)

    _single_threaded(cv2, lambda: _run(describe_chunk, len(images)))
    return vectors


def _run(work: Callable[[slice], None], n: int) -> None:
    with threads.pool() as run:
        run(work, threads.chunks(n, IMAGES_PER_CHUNK))


def _single_threaded(cv2: Any, work: Callable[[], None]) -> None:
    """Run `work` with one thread per call of OpenCV: our own chunks already use all cores."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        work()
    finally:
        cv2.setNumThreads(before)


def _strongest(
    cv2: Any, extractor: Any, image: NDArray[np.uint8], count: int
) -> NDArray[np.float32]:
    """Descriptors (count, 128) of the strongest keypoints, then of grid points."""
    side = ENLARGEMENT * image.shape[1]
    large = cv2.resize(image, (side, side), interpolation=cv2.INTER_CUBIC)
    keypoints = sorted(
        extractor.detect(large, None),
        key=lambda k: (-k.response, k.pt[1], k.pt[0], k.size, k.angle),
    )[:count]
    step = side / GRID_POINTS_PER_SIDE
    for cell in range(count - len(keypoints)):
        row, column = divmod(cell, GRID_POINTS_PER_SIDE)
        at = ((column + 0.5) * step, (row + 0.5) * step)
        keypoints.append(cv2.KeyPoint(*at, GRID_POINT_PIXELS, 0.0))
    _, computed = extractor.compute(large, keypoints)
    vectors: NDArray[np.float32] = computed
    return vectors


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError(f"cifar10-sift needs OpenCV: {install('sift')}") from error
    return cv2
