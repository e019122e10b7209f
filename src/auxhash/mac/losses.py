"""Affinity-based losses. Each is a plain function loss(d, y, b) of NumPy arrays:

d, the Hamming distance of two b-bit codes; y, their affinity; s = b - 2 d, their inner product.

That is the whole interface: any function of this form can be used as a loss. Set its attribute
`reads = "distance"` to be given y as a distance in [0, 1] rather than as a similarity.

`tabulate` evaluates a loss once for all distances; kernels only look values up.
Equations are numbered as in the paper.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes, Words, as_codes, codes_to_words, popcount
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.compute.checks import ArgumentError, one_of
from auxhash.compute.kernels import kernel
from auxhash.mac.affinity import Affinity, Kind, convert

Loss = Callable[[Array, Array, int], AnyArray]
LossLike = str | Loss  # by its name, or the function itself

PAIRS_PER_TASK = 1 << 16  # pairs per task of a thread
WARN_TERMS, WARN_BYTES = 16, 10**8  # numbers per pair, and bytes of all, beyond which to warn


def ksh(d: Array, y: Array, b: int, scale: float = 1.0) -> Array:
    """Supervised hashing with kernels, eq. (3) over b^2: (s/b - y)^2.

    `scale=b` gives the paper's literal form, (s - b y)^2, and multiplies mu by b^2.
    """
    return (scale * ((b - 2 * d) / b - y)) ** 2


def esplh(d: Array, y: Array, b: int) -> Array:
    """Exponential SPLH (eSPLH): exp(-y s/b)."""
    return np.exp(-y * (b - 2 * d) / b)


def bre(d: Array, y: Array, b: int, scale: float = 1.0, largest: float = 1.0) -> Array:
    """Binary reconstructive embedding: (d/b - y)^2 with y a distance in [0, 1].

    The paper's literal form is (|z-z'|^2/b - |x-x'|^2/2)^2, where |z-z'|^2 = 4 d: `scale=4`, with
    the largest |x-x'|^2/2 of the pairs, which y = 1 stands for, as `largest`.
    """
    if np.min(y) < 0 or np.max(y) > 1:
        raise ValueError("bre reads y as distances in [0, 1] (or similarities in [-1, 1])")
    return (scale * d / b - largest * y) ** 2


bre.reads = "distance"  # type: ignore[attr-defined]


def ee(d: Array, y: Array, b: int, lam: float = 1.0, scale: float = 1.0) -> Array:
    """Elastic embedding, eq. (2): y+ |z-z'|^2 + lam y- exp(-|z-z'|^2).

    |z-z'|^2 = 4 d is divided by b; `scale=b` undoes that and gives the paper's literal form.
    """
    squared = scale * 4 * d / b
    return np.maximum(y, 0) * squared + lam * np.maximum(-y, 0) * np.exp(-squared)


def hinge(d: Array, y: Array, b: int) -> Array:
    """FastHash's hinge: (d/b)^2 where similar, max(0, 1/2 - d/b)^2 where dissimilar."""
    return np.where(y > 0, (d / b) ** 2, np.maximum(0, 0.5 - d / b) ** 2)


LOSSES: dict[str, Loss] = {"ksh": ksh, "esplh": esplh, "bre": bre, "ee": ee, "hinge": hinge}


def get(loss: LossLike) -> Loss:
    """Return the loss of that name, or the function itself."""
    if callable(loss):
        return loss
    return LOSSES[one_of("loss", loss, LOSSES, "a function of (d, y, b)")]


def reads(loss: Loss) -> Kind:
    """Return the kind that a loss reads y as; for a partial, that of its function."""
    while isinstance(loss, partial) and not hasattr(loss, "reads"):
        loss = loss.func
    return getattr(loss, "reads", "similarity")


@dataclass(frozen=True)
class LossTable:
    """A loss on the pairs of an affinity, as look-ups over d = 0..b.

    The weighted loss of pair p at distance d is

        table[row[p], d] + sum_r coef[p, r] basis[r, d]        (+ its share of `constant`)

    With few distinct (y, weight) each has a row in the table, and there is no basis. With many, as
    for real-valued y, the loss is written as a sum of R products of a function of y and a function
    of d (R is two for ksh and bre, one for ee, about twelve for esplh), found numerically. A loss
    of your own that is no such sum, as |s/b - y| is not, has R = b: 8 b bytes per pair.
    """

    n_bits: int
    row: NDArray[np.uint8]  # (pairs,)
    table: Array  # (rows, b + 1)
    coef: Array  # (pairs, R)
    basis: Array  # (R, b + 1)
    constant: float


def tabulate(affinity: Affinity, loss: LossLike, n_bits: int) -> LossTable:
    """Evaluate `loss` at every distance for the pairs of `affinity`."""
    tabulated = tabulate_at(np.arange(n_bits + 1.0), affinity, loss, n_bits, warn=True)
    if (tabulated.table == tabulated.table[:, :1]).all() and not tabulated.basis.any():
        warnings.warn(
            "the loss of these pairs does not depend on the distance d: there is nothing to learn",
            stacklevel=2,
        )
    return tabulated


def tabulate_at(
    d: Array, affinity: Affinity, loss: LossLike, n_bits: int, warn: bool = False
) -> LossTable:
    """Evaluate `loss` at distances d, real numbers from 0 to `n_bits`: column i is for d[i].

    `warn` says whether to warn, before it is made, of a table that takes much memory.
    """
    function = get(loss)
    if affinity.row is not None and affinity.rows is not None:
        table = _of_rows(affinity.rows, affinity.kind, function, d, n_bits)
        none = np.zeros((len(affinity), 0)), np.zeros((0, len(d))), 0.0
        return LossTable(n_bits, affinity.row, table, *none)
    factors = _factorize(function, d, affinity, n_bits, warn)
    return LossTable(n_bits, np.zeros(len(affinity), np.uint8), np.zeros((1, len(d))), *factors)


def tabulate_rows(rows: Array, kind: Kind, loss: LossLike, n_bits: int) -> Array:
    """Return the weighted loss (rows, b + 1) at every distance, for distinct (y, weight)."""
    return _of_rows(rows, kind, get(loss), np.arange(n_bits + 1.0), n_bits)


def _of_rows(rows: Array, kind: Kind, function: Loss, d: Array, n_bits: int) -> Array:
    y = convert(rows[:, 0], kind, reads(function))
    return rows[:, 1:] * _evaluate(function, d, y, n_bits)


def curves(loss: LossLike, y: ArrayLike, n_bits: int, kind: Kind = "similarity") -> Array:
    """Return the loss (len(y), b + 1) at d = 0..b for each y; `kind` says what the y are."""
    function = get(loss)
    values = convert(np.asarray(y, np.float64), kind, reads(function))
    return _evaluate(function, np.arange(n_bits + 1.0), values, n_bits)


def total(codes: ArrayLike, affinity: Affinity, loss: LossLike) -> float:
    """Return L(Z), eq. (10): the weighted loss of +-1 codes (n_points, b), over all pairs."""
    Z = as_codes(codes)
    if len(Z) != affinity.n_points:
        raise ValueError(f"{len(Z)} codes do not fit an affinity of {affinity.n_points} points")
    return sum_pairs(Z, affinity, tabulate(affinity, loss, Z.shape[1]))


def sum_pairs(Z: Codes, affinity: Affinity, t: LossTable) -> float:
    """Return L(Z), eq. (10), from a table made by `tabulate`."""
    words = codes_to_words(Z)

    def chunk(rows: slice) -> float:
        i, j = affinity.ends(rows)
        return float(_sum_pairs(words, i, j, t.row[rows], t.table, t.coef[rows], t.basis))

    with threads.pool() as run:
        return t.constant + sum(run(chunk, threads.chunks(len(affinity), PAIRS_PER_TASK)))


def _evaluate(function: Loss, d: Array, y: Array, n_bits: int) -> Array:
    """Evaluate loss(d, y) as a (len(y), len(d)) array, and check it."""
    # A copy: a loss may work in place.
    values = _numbers(function(d[None, :].copy(), y[:, None], n_bits))
    try:
        values = np.broadcast_to(values, (len(y), len(d)))
    except ValueError:
        raise ValueError(
            "a loss must broadcast over arrays d (1, b + 1) and y (n, 1); it returned shape "
            f"{values.shape} for n={len(y)}, b={n_bits}"
        ) from None
    if not np.isfinite(values).all():
        raise ValueError("the loss is not finite for some distance d and affinity y")
    return values


def _numbers(returned: object) -> Array:
    """Convert the result of a loss to float64; raise if it is not numbers."""
    kind = type(returned).__name__
    try:
        array = np.asarray(returned)
        if returned is not None and array.dtype.kind in "biufO":
            return array.astype(np.float64)
        kind = {"U": "text", "S": "bytes", "O": kind}.get(array.dtype.kind, str(array.dtype))
    except (TypeError, ValueError):
        pass  # lists of uneven lengths, or objects that are no numbers
    raise ArgumentError(f"a loss must return numbers, one for each d and y; it returned {kind}")


def _factorize(
    function: Loss, d: Array, affinity: Affinity, n_bits: int, warn: bool
) -> tuple[Array, Array, float]:
    """Split weight * loss(d, y) into coef (pairs, R) @ basis (R, len(d)), plus a constant.

    The value at the first d goes into the constant: it never matters to the codes. The basis comes
    from a sample of y; where it does not reproduce the loss for every y, the unit basis does.
    """
    y = affinity.read_as(reads(function))
    sample = np.quantile(y, np.linspace(0, 1, 4 * len(d)))
    values = _evaluate(function, d, sample, n_bits)
    _, size, directions = np.linalg.svd(values - values[:, :1], full_matrices=False)
    for basis in (directions[size > 1e-14 * size[0]], np.eye(len(d))[1:]):
        if warn and _warn_of_memory(len(y), len(basis)):
            warn = False  # once is enough
        coef = np.empty((len(y), len(basis)))
        constant = 0.0
        for rows in threads.chunks(len(y), PAIRS_PER_TASK):
            values = _evaluate(function, d, y[rows], n_bits)
            rest = values - values[:, :1]
            coef[rows] = rest @ basis.T
            error = np.abs(coef[rows] @ basis - rest).max()
            if error > 1e-12 * np.abs(values).max():
                break
            constant += float(affinity.values(rows)[1] @ values[:, 0])
        else:
            break
    for rows in threads.chunks(len(y), PAIRS_PER_TASK):
        coef[rows] *= affinity.values(rows)[1][:, None]
    return coef, basis, constant


def _warn_of_memory(n_pairs: int, n_terms: int) -> bool:
    """Warn if a loss takes much memory on real-valued y; return True if it does."""
    needed = 8 * n_terms * n_pairs
    if n_terms <= WARN_TERMS or needed <= WARN_BYTES:
        return False
    warnings.warn(
        f"this loss takes {8 * n_terms} bytes for each of {n_pairs:,} pairs, {needed / 1e9:,.1f} "
        "GB: it is no sum of few products of a function of y and one of d. Round y, so that there "
        "are at most 256 distinct (y, weight), which take one byte, or give fewer pairs",
        stacklevel=5,
    )
    return True


@kernel
def _sum_pairs(
    words: Words, i: AnyArray, j: AnyArray, row: AnyArray, table: Array, coef: Array, basis: Array
) -> float:
    result = 0.0
    for p in range(len(i)):
        d = np.uint64(0)
        for w in range(words.shape[1]):
            d += popcount(words[i[p], w] ^ words[j[p], w])
        result += table[row[p], d]
        for r in range(coef.shape[1]):
            result += coef[p, r] * basis[r, d]
    return result
