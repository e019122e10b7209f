"""TableFunction: from a query to tables, what each value of each byte adds to its distance."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from auxhash.compute.arrays import AnyArray, Single
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import HashFunction, NetworkHash, SVMHash, outputs

VALUES_PER_BYTE = 256
MAX_RELATIVE_ERROR = 2.0**-11  # of half precision


@register("TableFunction")
@dataclass(frozen=True, repr=False)
class TableFunction:
    """tables(q)[g, v] = -a(q)'C[g, v]: the vector a(q) of a query, and a codebook.

    The code c is at the distance tables(q)[0, c_0] + tables(q)[1, c_1] + ...: up to a sign, the
    inner product of a(q) with the sum of the rows of the codebook that the code names. If a is
    linear, this is an additive quantiser.
    """

    vector: HashFunction  # whose outputs are a(q)
    codebook: Single  # (n_bytes, 256, n_dims)

    @classmethod
    def of(cls, vector: SVMHash | NetworkHash, rows: Single) -> Self:
        """Return the function of a codebook's rows (n_bytes * 256, n_dims), all in half precision.

        That is enough to rank by, and a file has half the bytes.
        """
        halved = {f.name: _rounded(getattr(vector, f.name)) for f in fields(vector) if f.init}
        codebook = _rounded(rows).reshape(-1, VALUES_PER_BYTE, rows.shape[1])
        return cls(replace(vector, **halved), codebook)

    def check_read(self) -> None:
        C = self.codebook
        fits = type(C) is np.ndarray and C.dtype == np.float32 and C.ndim == 3 and C.size
        if not fits or C.shape[1] != VALUES_PER_BYTE or not np.isfinite(C).all():
            shape = f"(n_bytes, {VALUES_PER_BYTE}, n_dims)"
            raise ValueError(f"codebook must be finite float32 {shape}")

    def __repr__(self) -> str:
        n_bytes, _, n_dims = self.codebook.shape
        by = type(self.vector).__name__
        return f"TableFunction({n_bytes} bytes, vectors of {n_dims} numbers by {by})"

    def vectors(self, X: AnyArray) -> Single:
        """Return the vectors a(q), (n, n_dims), of queries, as `HammingIndex.to_faiss` needs."""
        return outputs(self.vector, X).astype(np.float32)

    def tables(self, X: AnyArray) -> Single:
        """Return tables (n, n_bytes, 256) of queries; smaller is nearer."""
        n_groups, _, n_dims = self.codebook.shape
        tables: Single = self.vectors(X) @ -self.codebook.reshape(-1, n_dims).T
        return tables.reshape(len(X), n_groups, VALUES_PER_BYTE)


def _rounded(value: Any) -> Any:
    """Round an array of numbers to those of half precision, unless some are out of its range."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    with np.errstate(over="ignore", under="ignore"):
        half = value.astype(np.float16).astype(value.dtype)
    error, size = np.abs(half - value).max(initial=0), np.abs(value).max(initial=0)
    return half if error <= MAX_RELATIVE_ERROR * size else value
