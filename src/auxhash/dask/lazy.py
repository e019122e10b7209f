"""Outputs of a fitted model for dask collections: lazy, partition by partition."""

from collections.abc import Iterable
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from dask.typing import DaskCollection

from auxhash.dask.blocks import columns_of, rows_of
from auxhash.learn.hasher import Hasher

OUTPUT_TYPES = {"decision_function": np.float64, "transform": np.int8, "encode": np.uint8}


def apply(model: Hasher, method: str, n_columns: int, X: DaskCollection) -> da.Array:
    """Return a dask array (n, n_columns) of this method of the model, applied to X.

    It is cut as X is, which is a dask array (n, D) or a dataframe; the lengths of the partitions of
    a dataframe are not known before they are computed.
    """
    columns_of(X)
    dtype = np.dtype(OUTPUT_TYPES[method])
    shared = delayed(model, pure=True)  # in the graph once, not in every task
    if not hasattr(X, "chunks"):
        parts = [delayed(_apply)(block, shared, method, n_columns) for block in rows_of(X, "X")]
        return joined([(part, (np.nan, n_columns)) for part in parts], dtype)
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    chunks, meta = (X.chunks[0], (n_columns,)), np.empty((0, 0), dtype)
    return X.map_blocks(_apply, shared, method, n_columns, dtype=dtype, chunks=chunks, meta=meta)


def joined(parts: Iterable[tuple[Delayed, tuple[float, ...]]], dtype: np.dtype) -> da.Array:
    """Join lazy parts, each with its shape, to one dask array."""
    arrays = [da.from_delayed(part, shape, dtype) for part, shape in parts]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _apply(block: Any, model: Hasher, method: str, n_columns: int) -> Any:
    if not len(block):
        return np.empty((0, n_columns), OUTPUT_TYPES[method])
    return getattr(model, method)(block)
