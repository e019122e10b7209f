"""SIFT descriptors with exact neighbours: the TEXMEX corpora SIFT1M and its small sibling.

Hash functions are trained on a random part of the base, as in the paper. The corpora have a learn
set, too, which is not fetched.
"""

from dataclasses import replace

import numpy as np

from auxhash.experiments.datasets.dataset import (
    Dataset,
    Points,
    describe,
    draw,
    ground_truth,
    within,
)
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Official, Pip
from auxhash.files.vectors import read_vectors

CORPUS = "ftp://ftp.irisa.fr/local/texmex/corpus"
PARTS = ("base.fvecs", "query.fvecs", "groundtruth.ivecs")
SMALL_NAMES = tuple(f"siftsmall_{part}" for part in PARTS)
FULL_NAMES = tuple(f"sift_{part}" for part in PARTS)

SMALL = Collection(
    "siftsmall",
    (
        File("siftsmall_base.fvecs", "30b1197f1e01c6d477b367d1f7a84156"),
        File("siftsmall_query.fvecs", "7775eae73731956655843fa44cd3666a"),
        File("siftsmall_groundtruth.ivecs", "4c111b6f0b007504a4ebc9fc161636f6"),
    ),
    (
        Official(
            (f"{CORPUS}/siftsmall.tar.gz",), lambda path: archives.from_tar(path, SMALL_NAMES)
        ),
        Pip(
            "tiledb-vector-search",
            "0.1.0",
            lambda path: archives.from_tar(path, SMALL_NAMES),
            "scikit_build_core.build",
        ),
    ),
)

# No checksums are published; the sizes follow from the format.
FULL = Collection(
    "sift1m",
    (
        File("sift_base.fvecs", size=1_000_000 * 4 * (1 + 128)),
        File("sift_query.fvecs", size=10_000 * 4 * (1 + 128)),
        File("sift_groundtruth.ivecs", size=10_000 * 4 * (1 + 100)),
    ),
    (Official((f"{CORPUS}/sift.tar.gz",), lambda path: archives.from_tar(path, FULL_NAMES)),),
)


def load_small(
    n_train: int | None = None, n_base: int | None = None, n_query: int | None = None, seed: int = 0
) -> Dataset:
    """10,000 base vectors, 100 queries with 100 neighbours each."""
    return corpus(SMALL, n_train, n_base, n_query, seed)


def load(
    n_train: int | None = 10_000,
    n_base: int | None = None,
    n_query: int | None = None,
    seed: int = 0,
) -> Dataset:
    """1,000,000 base vectors, n_train of them learnt from; 10,000 queries, 100 neighbours each."""
    return corpus(FULL, n_train, n_base, n_query, seed)


def corpus(
    files: Collection, n_train: int | None, n_base: int | None, n_query: int | None, seed: int
) -> Dataset:
    """A TEXMEX corpus. Its ground truth is that of the whole base; for a part, it is computed."""
    home = files.obtain()
    base, query, truth = (read_vectors(home / file.name) for file in files.files)
    queries = Points(query, neighbors=truth.astype(np.int64))
    queries = queries.take(draw(len(queries), n_query, seed, "n_query"))
    points = Points(base[draw(len(base), n_base, seed, "n_base")])
    if len(points) < len(base):
        neighbors = ground_truth(points.X, queries.X, truth.shape[1])
        queries = replace(queries, neighbors=neighbors)
    train = points.take(draw(len(points), n_train, seed, "n_train"))
    random = seed if (n_train, n_base, n_query) != (None,) * 3 else None
    about = "SIFT descriptors, base and queries as in the official corpus"
    protocol = describe(files.name, about, train, points, queries, within(train, points), random)
    return Dataset(files.name, train, points, queries, protocol)
