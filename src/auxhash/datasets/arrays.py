"""The user's own data, from arrays or files, under the same protocol as the named sets."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auxhash.datasets.dataset import Dataset, Points, describe, draw, split, within
from auxhash.datasets.vectors import TYPES, read_vectors

Given = ArrayLike | str | Path

MOST_QUERIES = 2_000


def from_arrays(
    base: Given,
    query: Given | None = None,
    train: Given | None = None,
    *,
    y: Given | None = None,
    query_y: Given | None = None,
    train_y: Given | None = None,
    neighbors: Given | None = None,
    label: str = "y",
    n_train: int | None = None,
    n_query: int | None = None,
    seed: int = 0,
    cosine: bool = False,
    name: str = "arrays",
) -> Dataset:
    """A data set from arrays, or from .npy, .npz, .fvecs, .bvecs or .parquet files.

    Args:
        base, query, train: features (n, D). In .npz the array X (or the only one) is taken; in
            .parquet a column of lists, or else all columns of numbers but `label`.
        y, query_y, train_y: labels (n,), where the files of features do not hold them.
        neighbors: indices (q, k) of each query's nearest base points; .ivecs or any other file.
        label: name of the labels inside .npz and .parquet.
        n_train: training points to draw, from `train` or else from the base; None takes all.
        n_query: queries to draw from `query`; without one, from the base, which loses them
            (a tenth of it, at most 2,000).
        cosine: centre by the mean of the training points and normalise.
    """
    points = _points("base", base, y, label)
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
            n_query = min(MOST_QUERIES, max(1, len(points) // 10))
        _, kept, drawn = split(len(points), None, None, n_query, seed)
        points, queries = points.take(kept), points.take(drawn)
        origin = "drawn at random, none of them in the base"
    if train is not None:
        learnt = _points("train", train, train_y, label)
        learnt = learnt.take(draw(len(learnt), n_train, seed, "n_train"))
        overlap = "given apart from the base"
    else:
        learnt = points.take(draw(len(points), n_train, seed, "n_train"))
        overlap = within(learnt, points)
    for role, part in (("query", queries), ("train", learnt)):
        if part.X.shape[1] != points.X.shape[1]:
            raise ValueError(f"{role} has {part.X.shape[1]} features, base has {points.X.shape[1]}")
    protocol = describe(name, "own data", learnt, points, queries, overlap, seed, origin)
    found = Dataset(name, learnt, points, queries, protocol)
    return found.cosine() if cosine else found


def _points(role: str, given: Given, y: Given | None, label: str) -> Points:
    X, inside = _read(role, given, label)
    if X.ndim != 2 or not X.size:
        raise ValueError(f"{role} must be of shape (n, D) and not empty, got shape {X.shape}")
    if not (np.issubdtype(X.dtype, np.number) and np.isrealobj(X)):
        raise ValueError(f"{role} must hold real numbers, got {X.dtype}")
    if y is None:
        return Points(X, inside)
    labels = _read(f"labels of {role}", y, label)[0]
    if len(labels) != len(X):
        raise ValueError(f"{role} has {len(X)} points but {len(labels)} labels")
    return Points(X, labels)


def _neighbors(given: Given, n_base: int) -> NDArray[np.int64]:
    found, _ = _read("neighbors", given, "")
    if found.ndim != 2 or not np.issubdtype(found.dtype, np.integer):
        raise ValueError("neighbors must be whole numbers of shape (queries, k)")
    if found.size and not (found.min() >= 0 and found.max() < n_base):
        raise ValueError(f"neighbors must lie in 0..{n_base - 1}, the base points")
    return found.astype(np.int64)


def _read(role: str, given: Given, label: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """An array and, where its file holds them, labels."""
    if not isinstance(given, (str, Path)):
        return np.asarray(given), None
    path = Path(given).expanduser()
    if path.suffix not in READERS:
        raise ValueError(f"{role}: {path.name} must end in {', '.join(READERS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{role}: there is no file {path}")
    return READERS[path.suffix](path, label)


Found = tuple[NDArray[Any], NDArray[Any] | None]


def _read_npy(path: Path, label: str) -> Found:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False), None
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a whole .npy file of numbers: {error}") from error


def _read_npz(path: Path, label: str) -> Found:
    with np.load(path, allow_pickle=False) as held:
        names = [name for name in held.files if name != label]
        if "X" not in names and len(names) != 1:
            raise ValueError(f"{path} must hold an array X; it holds {', '.join(held.files)}")
        X = held["X" if "X" in names else names[0]]
        return X, held[label] if label in held.files else None


def _read_parquet(path: Path, label: str) -> Found:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("reading .parquet needs pyarrow: pip install 'auxhash[data]'") from error
    table = parquet.read_table(path)
    labels = table[label].to_numpy() if label in table.column_names else None
    lists, numbers = [], []
    for field in table.schema:
        if field.name == label:
            continue
        if arrow.types.is_list(field.type) or arrow.types.is_fixed_size_list(field.type):
            lists.append(field.name)
        elif arrow.types.is_integer(field.type) or arrow.types.is_floating(field.type):
            numbers.append(field.name)
    if len(lists) == 1:
        rows = table[lists[0]].to_pylist()
        if len({len(row) for row in rows}) > 1:
            raise ValueError(f"{path}: the lists in column {lists[0]} differ in length")
        return np.array(rows, np.float32), labels
    if lists or not numbers:
        raise ValueError(f"{path} must hold one column of lists, or columns of numbers")
    return np.column_stack([table[name].to_numpy() for name in numbers]), labels


def _read_vecs(path: Path, label: str) -> Found:
    return read_vectors(path), None


READERS: dict[str, Callable[[Path, str], Found]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    **dict.fromkeys(TYPES, _read_vecs),
}
