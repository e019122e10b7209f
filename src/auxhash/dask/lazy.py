"""What a fitted model makes of dask collections: lazy, partition by partition."""

from collections.abc import Callable, Iterable
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed

from auxhash.dask.blocks import columns_of, rows_of
from auxhash.learn.hasher import Hasher

MADE = {"decision_function": np.float64, "transform": np.int8, "encode": np.uint8}


def made_by(model: Hasher, method: str, n_columns: int, X: Any) -> Any:
    """A dask array (n, n_columns) of what this method of the model makes of X.

    It is cut as X is, which is a dask array (n, D) or a dataframe; the lengths of the partitions of
    a dataframe are not known before they are computed.
    """
    columns_of(X)
    dtype = np.dtype(MADE[method])
    held = delayed(model, pure=True)  # in the graph once, not in every task
    if not hasattr(X, "chunks"):
        made = [delayed(_made)(block, held, method, n_columns) for block in rows_of(X, "X")]
        return joined([(one, (np.nan, n_columns)) for one in made], dtype)
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X.map_blocks(
        _made,
        held,
        method,
        n_columns,
        dtype=dtype,
        chunks=(X.chunks[0], (n_columns,)),
        meta=np.empty((0, 0), dtype),
    )


def joined(parts: Iterable[tuple[Any, tuple[float, ...]]], dtype: np.dtype[Any]) -> Any:
    """The dask array of lazy parts, one after the other, each given with its shape."""
    arrays = [da.from_delayed(part, shape, dtype) for part, shape in parts]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def single(function: Callable[..., Any]) -> Any:
    """The function, to be called lazily."""
    return delayed(function)


def pair(function: Callable[..., Any]) -> Any:
    """The function, to be called lazily; it returns two values."""
    return delayed(function, nout=2)


def _made(block: Any, model: Hasher, method: str, n_columns: int) -> Any:
    if not len(block):
        return np.empty((0, n_columns), MADE[method])
    return getattr(model, method)(block)
