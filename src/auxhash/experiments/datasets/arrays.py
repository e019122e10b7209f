"""The user's own data, from arrays or files, under the same protocol as the named sets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.experiments.datasets.dataset import Dataset, Points, describe, draw, split, within
from auxhash.files.report import Features
from auxhash.files.tables import LABEL, check_features, read_features, read_labels, take_features

ArrayOrFile = ArrayLike | str | Path

MAX_QUERIES = 2_000


def from_arrays(
    base: ArrayOrFile,
    query: ArrayOrFile | None = None,
    train: ArrayOrFile | None = None,
    *,
    y: ArrayOrFile | None = None,
    query_y: ArrayOrFile | None = None,
    train_y: ArrayOrFile | None = None,
    neighbors: ArrayOrFile | None = None,
    label: str = LABEL,
    n_train: int | None = None,
    n_query: int | None = None,
    seed: int = 0,
    cosine: bool = False,
    name: str = "arrays",
    images: AnyArray | None = None,
) -> Dataset:
    """A data set from arrays, or from .npy, .npz, .csv, .parquet, .fvecs or .bvecs files.

    Args:
        base, query, train: features (n, D). For what is taken from a file, see
            `auxhash.files.tables.read_features`.
        y, query_y, train_y: labels (n,), if the files of features do not hold them.
        neighbors: indices (q, k) of each query's nearest base points; .ivecs or any other file.
        label: name of the labels inside .npz, .csv and .parquet.
        n_train: training points to draw, from `train` or else from the base; None takes all.
        n_query: queries to draw from `query`; None takes all. Without `query`, they are drawn and
            removed from the base; None is then a tenth of it, at most 2,000.
        cosine: centre by the mean of the training points and normalise.
        images: pictures of the base, uint8 (n, height, width) or (n, height, width, 3), which pages
            show where queries are drawn from the base.
    """
    points = replace(_points("base", base, y, label), images=images)
    if query is not None:
        queries = _points("query", query, query_y, label)
        if neighbors is not None:
            queries = replace(queries, neighbors=_neighbors(neighbors, len(points)))
        queries = queries.take(draw(len(queries), n_query, seed, "n_query"))
        origin = "as given"
    elif neighbors is not None or query_y is not None:
        raise ValueError("neighbors and query_y belong to query, which is not given")
    else:
        if n_query is None:
            n_query = min(MAX_QUERIES, max(1, len(points) // 10))
        _, kept, drawn = split(len(points), None, None, n_query, seed)
        points, queries = points.take(kept), points.take(drawn)
        origin = "drawn at random, none of them in the base"
    if train is not None:
        learnt = _points("train", train, train_y, label)
        learnt = learnt.take(draw(len(learnt), n_train, seed, "n_train"))
        overlap = "given apart from the base"
    else:
        learnt = points
        if n_train is not None:
            learnt = points.take(draw(len(points), n_train, seed, "n_train"))
        overlap = within(learnt, points)
    for role, part in (("query", queries), ("train", learnt)):
        if part.X.shape[1] != points.X.shape[1]:
            raise ValueError(f"{role} has {part.X.shape[1]} features, base has {points.X.shape[1]}")
    protocol = describe(name, "own data", learnt, points, queries, overlap, seed, origin)
    dataset = Dataset(name, learnt, points, queries, protocol)
    return dataset.cosine() if cosine else dataset


def _points(role: str, source: ArrayOrFile, y: ArrayOrFile | None, label: str) -> Points:
    of_role = f"labels of {role}"
    features = (
        take_features(source, label, role)
        if isinstance(source, (str, Path))
        else Features(np.asarray(source))
    )
    X = check_features(features.X, role)
    if y is None:
        inside = features.labels
        return Points(X, None if inside is None else checks.labels(of_role, inside))
    labels = read_labels(y, label, of_role) if isinstance(y, (str, Path)) else y
    labels = checks.labels(of_role, labels)
    if len(labels) != len(X):
        raise ValueError(f"{role} has {len(X)} points but {len(labels)} labels")
    return Points(X, labels)


def _neighbors(source: ArrayOrFile, n_base: int) -> NDArray[np.int64]:
    if isinstance(source, (str, Path)):
        neighbors = read_features(source, "", "neighbors")[0]
    else:
        neighbors = np.asarray(source)
    if neighbors.ndim != 2 or not np.issubdtype(neighbors.dtype, np.integer):
        raise ValueError("neighbors must be whole numbers of shape (queries, k)")
    if neighbors.size and not (neighbors.min() >= 0 and neighbors.max() < n_base):
        raise ValueError(f"neighbors must lie in 0..{n_base - 1}, the base points")
    return neighbors.astype(np.int64)
