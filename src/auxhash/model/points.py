"""Checks of the points that a model is given, without scikit-learn."""

from collections.abc import Sequence

import numpy as np

from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.mac.hashfunctions.step import FLOATS

NAMES_SHOWN = 3  # of columns, in messages


def rows(X: ArrayLike, n_features: int, names: Sequence[str] | None, model: str) -> AnyArray:
    """Check points (n, D), at least one, whose numbers may be infinite or NaN.

    Arrays of real numbers keep their type; anything else becomes float64. `names` are those of the
    columns that the model was learnt from, and `model` what messages call it.
    """
    checks.unmasked("X", X)
    if hasattr(X, "toarray"):
        raise ArgumentError(f"X must be dense, got a {type(X).__name__}: give X.toarray()")
    if names is not None and hasattr(X, "columns"):
        _check_names([str(name) for name in X.columns], names, model)
    points = np.asarray(devices.fetched(X))
    if points.dtype.kind == "c":
        raise ArgumentError(f"X must hold real numbers, got {points.dtype}")
    if points.dtype.kind not in "iuf" or points.dtype.itemsize > 8:
        try:
            points = points.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"X must hold numbers: {error}") from error
    if points.ndim != 2:
        raise ArgumentError(
            f"X must be of shape (n, {n_features}), one row per point, got shape {points.shape}"
        )
    if not len(points):
        raise ArgumentError("X must hold at least one point, got none")
    if points.shape[1] != n_features:
        raise ArgumentError(
            f"X has {points.shape[1]} features, but {model} is expecting {n_features} features "
            "as input"
        )
    return points


def pictures(X: ArrayLike, least: int = 1, finite: bool = True) -> AnyArray:
    """Check points of more than one axis each, such as pictures.

    The hash function itself checks that they are of the shape that it was learnt from.
    """
    points = np.asarray(X)
    if points.dtype not in (np.uint8, *FLOATS):
        raise ArgumentError(
            f"X of shape {points.shape} must be uint8 (pictures), float32 or float64, got "
            f"{points.dtype}"
        )
    if len(points) < least:
        raise ArgumentError(f"X must hold at least {least} points, got {len(points)}")
    if not points.size:
        raise ArgumentError(f"X must not be empty, got shape {points.shape}")
    if points.dtype != np.uint8 and finite:
        check_finite(points)
    return points


def check_finite(X: AnyArray) -> None:
    fine = np.isfinite(X).reshape(len(X), -1).all(axis=1)
    if not fine.all():
        raise ArgumentError(f"X must be finite; row {int(np.flatnonzero(~fine)[0])} is not")


def _check_names(columns: list[str], names: Sequence[str], model: str) -> None:
    if columns != [*names]:
        shown = ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")
        raise ArgumentError(
            f"X must have the feature names that {model} was learnt from, in their order: {shown}"
        )
