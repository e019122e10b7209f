"""A fitted estimator as a stored model: what is stored of it, and whether all of it is valid.

This module is below all estimators and imports none: of an estimator it relies only on
scikit-learn's conventions, and on what every `Hasher` has.
"""

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from auxhash.compute.registry import register
from auxhash.files.feature import GIST_SIDES, is_feature
from auxhash.mac.hashfunctions import with_defaults
from auxhash.model import modelfile
from auxhash.model.encoding import check, encode, to_trust
from auxhash.model.modelfile import StoredModel

# Fitted attributes: pairs and rows, useless without the points; MAC's start.
NOT_SAVED = ("affinity_", "two_step_", "held_out_")
# Parameters that can be data, which other people may not want in a file, and as what.
OF_DATA = {"init": "codes", "validation": "points"}
TIMES = ("seconds", "z_seconds", "h_seconds")  # fields of a step that models do not hold
MAX_FEATURES = 1 << 22  # with more, trying a model out would take too much memory
# Attributes that scikit-learn sets, and whether a value of theirs is valid.
SKLEARN: dict[str, Callable[[Any], bool]] = {
    "n_features_in_": lambda n: type(n) is int and 1 <= n <= MAX_FEATURES,
    "feature_names_in_": lambda names: (
        isinstance(names, np.ndarray) and names.ndim == 1 and all(type(n) is str for n in names)
    ),
    "_sklearn_output_config": lambda config: (
        type(config) is dict and config.get("transform") in (None, "default", "pandas", "polars")
    ),
}


@register("ByName")
@dataclass(frozen=True)
class ByName:
    """Name of a parameter, code or data, in a loaded model whose file holds the name alone."""

    name: str

    def check_read(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"name must be text, got {self.name!r}")


def save(hasher: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file, unless `load` would refuse it."""
    model = stored(hasher)
    try:
        check_consistent(hasher)
    except Exception as error:  # parts that do not fit together can raise anything
        raise ValueError(
            f"this {model.kind} is not as it was fitted and cannot be saved: {error}"
        ) from error
    modelfile.write(path, model)
    if trusted := sorted(to_trust(model.content, model.arrays)):
        warnings.warn(
            f"{os.fspath(path)} holds a scikit-learn estimator that auxhash cannot check; "
            f"whoever loads it has to say auxhash.load(..., trusted={trusted})",
            stacklevel=3,
        )


def stored(hasher: Any, without: tuple[str, ...] = NOT_SAVED) -> StoredModel:
    """Parameters and fitted attributes of a fitted estimator, except those in `without`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(hasher)
    kind = type(hasher)
    if not kind.__module__.startswith("auxhash."):
        raise TypeError(
            f"{kind.__name__} is a class of your own, which auxhash.load would not know; "
            "only auxhash's estimators can be saved"
        )
    parameters = hasher.get_params(deep=False)
    learnt = {name: value for name, value in vars(hasher).items() if name not in parameters}
    if "history_" in learnt:
        learnt["history_"] = [_without_time(step) for step in learnt["history_"]]
    content = {
        "parameters": {name: _to_store(name, value) for name, value in parameters.items()},
        "learnt": learnt,
    }
    for part in content.values():
        for name in without:
            part.pop(name, None)
    coded, arrays = encode(content, kind.__name__)
    return StoredModel(kind.__name__, coded, arrays)


def _without_time(step: Any) -> Any:
    times = [name for name in TIMES if hasattr(step, name)]
    return replace(step, **dict.fromkeys(times, math.nan)) if times else step


def check_consistent(hasher: Any) -> None:
    """Raise unless parameters and learnt attributes are as a fit leaves them.

    All must be of the declared types, numbers finite, and the parts must fit together: the model
    encodes, and its training codes have the right number of bits.
    """
    parameters = hasher.get_params(deep=False)
    known_parameters = {name: v for name, v in parameters.items() if not isinstance(v, ByName)}
    type(hasher)(**known_parameters)._check_parameters()
    _check_learnt(hasher, set(vars(hasher)) - set(parameters) - set(NOT_SAVED))
    n_bits = int(hasher.n_bits)
    for n in (1, 2):  # a part of a wrong shape could be stretched to one of them, not to both
        with np.errstate(all="ignore"):
            outputs = hasher._decide(_blank(hasher, n))
        if outputs.shape == (n, outputs.size // n) and outputs.size != n * n_bits:
            raise ValueError(f"n_bits is {n_bits}, but it was fitted to {outputs.size // n} bits")
        if outputs.shape != (n, n_bits) or outputs.dtype != np.float64:
            raise ValueError(f"its outputs are of shape {outputs.shape} for {n} points")
    codes, labels = hasher.codes_, hasher.labels_
    if codes.shape[1:] != (-(-n_bits // 8),) or (codes[:, -1] >> (n_bits - 1) % 8 > 1).any():
        raise ValueError(f"codes_, of shape {codes.shape}, are no codes of {n_bits} bits")
    if labels is not None and len(labels) != len(codes):
        raise ValueError(f"it has {len(labels)} labels for {len(codes)} training points")


def _blank(hasher: Any, n: int) -> Any:
    """n points of zeros; a hash function of pictures knows their shape."""
    h = getattr(hasher, "hash_function_", None)
    blank = None if h is None else with_defaults(h).blank(n)
    return np.zeros((n, hasher.n_features_in_)) if blank is None else blank


def _check_learnt(hasher: Any, names: set[str]) -> None:
    """Raise unless the attributes of these names are declared by the class, and of that type."""
    declared = get_type_hints(type(hasher))
    for name in sorted(names):
        value = getattr(hasher, name)
        if name in SKLEARN:
            fine = SKLEARN[name](value)
        elif name not in declared or not name.endswith("_"):
            raise ValueError(f"{name} is nothing that {type(hasher).__name__} learns")
        else:
            fine = _fits(value, declared[name])
            check(value)
        if not fine:
            is_array = hasattr(value, "shape")
            got = f"{value.dtype} of shape {value.shape}" if is_array else value
            raise ValueError(f"{name} is not right: {got!r}")
    if names >= {"feature_names_in_"} and len(hasher.feature_names_in_) != hasher.n_features_in_:
        n = len(hasher.feature_names_in_)
        raise ValueError(f"it has {n} feature names for {hasher.n_features_in_} features")
    if "image_feature_" in names and not is_feature(hasher.image_feature_):
        raise ValueError(
            f'image_feature_ must be "gist:SIDE" with a side from {GIST_SIDES[0]} to '
            f'{GIST_SIDES[-1]}, or "module:function", got {hasher.image_feature_!r}'
        )


def _fits(value: Any, hint: Any) -> bool:
    """Check whether a value is of the type that a class declares; numbers must be finite."""
    if hasattr(get_origin(hint), "__value__"):  # NDArray[...] itself is an alias from NumPy 2.5 on
        hint = get_origin(hint).__value__[get_args(hint)]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        [kind] = get_args(parts[1])
        if not isinstance(value, np.ndarray) or (kind is not Any and value.dtype != kind):
            return False
        return kind is Any or value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if origin is list:
        return isinstance(value, list) and all(_fits(part, parts[0]) for part in value)
    if origin is UnionType:
        return any(_fits(value, part) for part in parts)
    if hint is float:
        number = isinstance(value, (int, float, np.integer, np.floating))
        return number and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint is Any or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)


def _to_store(name: str, value: Any) -> Any:
    """Return the value of a parameter to store: its name alone, if it is code or the user's data.

    Of a scikit-learn classifier, which is cloned for every bit, what it has learnt elsewhere is not
    stored.
    """
    if name in OF_DATA:
        points = getattr(value, "points", value)  # of a Validation
        if hasattr(points, "__len__"):
            first = points[0] if isinstance(points, tuple) else points
            return ByName(f"{OF_DATA[name]} of shape {np.shape(first)}")
    if hasattr(value, "get_params") and not isinstance(value, type):
        from sklearn.base import clone

        value = clone(value)
    try:
        encode(value)
    except TypeError:
        return ByName(getattr(value, "__qualname__", type(value).__qualname__))
    return value


def check_stored(hasher: Any) -> None:
    """Raise if a parameter of a loaded model is known by name only."""
    for name, value in hasher.get_params(deep=False).items():
        if isinstance(value, ByName):
            raise ValueError(
                f"{name} was {value.name!r}, which the model file holds by name only; give it "
                f"again, or another, by set_params({name}=...), before fitting"
            )
