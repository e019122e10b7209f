"""Tables of distances: what each value of each byte of a code adds to its distance from a query.

Tables are float32 (n_queries, n_bytes, 256). The distance of a code is tables[i, g, code[g]] summed
over the bytes g in float32, from 0 on and byte 0 first: the same number on every path of a search.
"""

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, n_bytes
from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import ArrayLike

Tables = NDArray[np.float32]  # (n_queries, n_bytes, 256)
TableDistances = NDArray[np.float32]

VALUES_PER_BYTE = 256


def as_tables(tables: ArrayLike, n_bits: int, n_queries: int | None = None) -> Tables:
    """Return checked tables for codes of `n_bits`; those of one query may lack the first axis."""
    array = np.asarray(devices.fetched(tables))
    if array.ndim == 2:
        array = array[None]
    m = "n_queries" if n_queries is None else n_queries
    count_fits = n_queries is None or len(array) == n_queries
    if (
        array.dtype != np.float32
        or array.shape[1:] != (n_bytes(n_bits), VALUES_PER_BYTE)
        or not count_fits
    ):
        raise checks.ArgumentError(
            f"tables for codes of {n_bits} bits must be float32 of shape ({m}, {n_bytes(n_bits)}, "
            f"{VALUES_PER_BYTE}); got {array.dtype} of shape {array.shape}"
        )
    largest = np.abs(array).max(axis=2).sum(axis=1, dtype=np.float64)
    wrong = ~(largest < np.finfo(np.float32).max / 2)  # no sum of float32 may overflow
    if wrong.any():
        raise checks.ArgumentError(
            f"tables must be finite, and so must their sums: not so for query {wrong.argmax()}"
        )
    return np.ascontiguousarray(array)


def tables_from_outputs(outputs: ArrayLike) -> Tables:
    """Return the tables of real-valued outputs (n_queries, n_bits); a single row is one query.

    The distance is that of `rerank.by_outputs`: a bit that differs from the output's sign costs
    |output|, and the bits that pad the last byte cost nothing.

    >>> tables_from_outputs([[0.5, -2.0]])[0, 0, :4]
    array([0.5, 0. , 2.5, 2. ], dtype=float32)
    """
    real = np.atleast_2d(np.asarray(devices.fetched(outputs), np.float64))
    if real.ndim != 2 or not real.shape[1]:
        raise checks.ArgumentError(
            f"outputs must be of shape (n_queries, n_bits), got shape {real.shape}"
        )
    if not np.isfinite(real).all():
        raise checks.ArgumentError("outputs must be finite, but hold NaN or infinity")
    m, b = real.shape
    bits = np.zeros((m, 8 * n_bytes(b)))
    bits[:, :b] = real
    tables = np.zeros((m, n_bytes(b), 1))
    for output in np.moveaxis(bits.reshape(m, n_bytes(b), 8), 2, 0)[..., None]:
        # Each bit doubles the values: first those without it, then those with it.
        tables = np.concatenate([tables + output.clip(0), tables + (-output).clip(0)], axis=2)
    return tables.astype(np.float32)


def table_distances(tables: Tables, queries: NDArray[np.integer], codes: Packed) -> TableDistances:
    """Return the distances (...) of codes (..., n_bytes) to the queries (...), rows of `tables`."""
    total = np.zeros(codes.shape[:-1], np.float32)
    for g in range(codes.shape[-1]):
        total += tables[queries, g, codes[..., g]]
    return total
