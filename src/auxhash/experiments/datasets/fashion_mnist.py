"""Fashion-MNIST: 70,000 pictures of clothes, in MNIST's file format."""

from pathlib import Path

from auxhash.experiments.datasets import mnist
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, Debian, File, Official

PACKED = tuple(f"{name}.gz" for name in mnist.NAMES)
HOST = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"

FILES = Collection(
    "fashion-mnist",
    (
        File(mnist.TRAIN_IMAGES, "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        File(mnist.TRAIN_LABELS, "9018921c3c673c538a1fc5bad174d6f9"),
        File(mnist.TEST_IMAGES, "8181f5470baa50b63fa0f6fddb340f0a"),
        File(mnist.TEST_LABELS, "15d484375f8d13e6eb1aabb0c3f46965"),
    ),
    (
        Official(tuple(f"{HOST}/{name}" for name in PACKED), archives.from_gzip),
        Debian(
            "dataset-fashion-mnist",
            Path("/usr/share/datasets/fashion-mnist"),
            PACKED,
            archives.from_gzip,
        ),
    ),
)


def load(
    n_train: int | None = 10_000, n_base: int | None = None, n_query: int = 2_000, seed: int = 0
) -> Dataset:
    """The 60,000 training images are the base; queries are drawn from the 10,000 test images."""
    return mnist.in_idx_files("fashion-mnist", FILES.obtain(), n_train, n_base, n_query, seed)
