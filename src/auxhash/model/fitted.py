"""A fitted estimator as a stored model: what is stored of it, and whether all of it is valid.

This module is below all estimators and imports none: of an estimator it relies only on
scikit-learn's conventions, and on what every `Hasher` has.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import HashFunction
from auxhash.model import modelfile
from auxhash.model.encoding import check, decode, encode, parts
from auxhash.model.model import MAX_FEATURES, write
from auxhash.model.modelfile import StoredModel

# Fitted attributes: pairs and rows, useless without the points; MAC's start; the model
# with its tables, which has a part of its own.
NOT_SAVED = ("affinity_", "two_step_", "held_out_", "tables_", "model_")
# Parameters that can be data, which other people may not want in a file, and as what.
OF_DATA = {"init": "codes", "validation": "points"}
HEADER_ALONE = "no array"  # begins so
TIMES = ("seconds", "z_seconds", "h_seconds")  # fields of a step that models do not hold
# Attributes that scikit-learn sets, and whether a value of theirs is valid.
SKLEARN: dict[str, Callable[[object], bool]] = {
    "n_features_in_": lambda n: type(n) is int and 1 <= n <= MAX_FEATURES,
    "feature_names_in_": lambda names: (
        isinstance(names, np.ndarray) and names.ndim == 1 and all(type(n) is str for n in names)
    ),
    "_sklearn_output_config": lambda config: (
        type(config) is dict and config.get("transform") in (None, "default", "pandas", "polars")
    ),
}


@register("OfModel")
@dataclass(frozen=True)
class OfModel:
    """A fitted attribute that is a part of the model's hash function, by its place, or itself."""

    place: str  # "", "W", "map.points"


@register("ByName")
@dataclass(frozen=True)
class ByName:
    """Name of a parameter, code or data, in a loaded model whose file holds the name alone."""

    name: str

    def check_read(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"name must be text, got {self.name!r}")


def save(hasher: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, and its model, to a file, unless `load` would refuse it."""
    _check_known(hasher)
    try:
        check_consistent(hasher)
    except Exception as error:  # parts that do not fit together can raise anything
        raise ValueError(
            f"this {type(hasher).__name__} is not as it was fitted and cannot be saved: {error}"
        ) from error
    write(path, stored(hasher), stacklevel=4)


def _check_known(hasher: object) -> None:
    """Raise unless it is a fitted estimator of auxhash."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(hasher)
    kind = type(hasher)
    if not kind.__module__.startswith("auxhash."):
        raise TypeError(
            f"{kind.__name__} is a class of your own, which auxhash.load would not know; "
            "only auxhash's estimators can be saved"
        )


def stored(hasher: Any) -> StoredModel:
    """The model of a fitted estimator, its parameters and fitted attributes."""
    _check_known(hasher)
    model, kind = hasher.model_, type(hasher).__name__
    parameters = hasher.get_params(deep=False)
    learnt = {
        name: _shared(value, model.hash_function)
        for name, value in vars(hasher).items()
        if name not in parameters and name not in NOT_SAVED
    }
    if "history_" in learnt:
        learnt["history_"] = [_without_time(step) for step in learnt["history_"]]
    kept = {name: _to_store(name, value) for name, value in parameters.items()}
    rest, arrays = encode({"parameters": kept, "learnt": learnt}, kind)
    value = model.stored()
    return StoredModel(kind, {"dict": parts(value.content) | parts(rest)}, value.arrays | arrays)


def _shared(value: object, h: HashFunction) -> Any:
    """Return the place of an attribute in the hash function, if it is a part of it, or itself."""
    if not (isinstance(value, np.ndarray) or hasattr(value, "__dict__")):
        return value
    places = {"": h, **vars(h)}
    map_parts = getattr(places.get("map"), "__dict__", {})
    places |= {f"map.{name}": part for name, part in map_parts.items()}
    return next((OfModel(place) for place, part in places.items() if part is value), value)


def resolved(learnt: dict[str, object], h: HashFunction) -> dict[str, object]:
    """Return attributes as they were before `stored`, from the hash function in the file."""

    def at(place: str) -> object:
        part: object = h
        for name in place.split(".") if place else ():
            part = vars(part)[name]
        return part

    return {
        name: at(value.place) if type(value) is OfModel else value for name, value in learnt.items()
    }


def stored_history(path: str | os.PathLike[str]) -> list[dict[str, object]]:
    """Read the steps of the training from a file, without times; none without an estimator."""
    model = modelfile.read(path, HEADER_ALONE)
    with modelfile.reading(path, model):
        content = parts(model.content)
        coded = parts(content["learnt"]).get("history_", []) if "learnt" in content else []
        steps = [
            {name: decode(v, {}) for name, v in step["object"][1].items() if v is not None}
            for step in coded
        ]
        for value in (v for step in steps for v in step.values()):
            if not all(isinstance(v, (int, float)) for v in np.atleast_1d(value).tolist()):
                raise ValueError("a step holds what is no number")
    return [{k: v for k, v in step.items() if k not in TIMES} for step in steps]


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
    check_learnt(hasher, set(vars(hasher)) - set(parameters) - set(NOT_SAVED))
    n_bits, codes, labels = int(hasher.n_bits), hasher.codes_, hasher.labels_
    if codes.shape[1:] != (-(-n_bits // 8),) or (codes[:, -1] >> (n_bits - 1) % 8 > 1).any():
        raise ValueError(f"codes_, of shape {codes.shape}, are no codes of {n_bits} bits")
    if labels is not None and len(labels) != len(codes):
        raise ValueError(f"it has {len(labels)} labels for {len(codes)} training points")
    hasher.model_.check_read()


def check_learnt(hasher: object, names: set[str]) -> None:
    """Raise unless the attributes of these names are declared by the class, and of that type."""
    declared = get_type_hints(type(hasher))
    for name in sorted(names):
        value = getattr(hasher, name)
        if name in SKLEARN:
            fine = SKLEARN[name](value)
        elif name not in declared or not name.endswith("_"):
            raise ValueError(f"{type(hasher).__name__} has no learnt attribute {name}")
        else:
            fine = _fits(value, declared[name])
            check(value)
        if not fine:
            is_array = hasattr(value, "shape")
            got = f"{value.dtype} of shape {value.shape}" if is_array else value
            raise ValueError(f"{name} is not right: {got!r}")


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


def data_name(name: str, value: Any) -> str | None:
    """Return a name for the value of a parameter that is the user's data; else None."""
    points = getattr(value, "points", value)  # of a Validation
    if name not in OF_DATA or not hasattr(points, "__len__"):
        return None
    first = points[0] if isinstance(points, tuple) else points
    return f"{OF_DATA[name]} of shape {np.shape(first)}"


def _to_store(name: str, value: object) -> object:
    """Return the value of a parameter to store: its name alone, if it is code or the user's data.

    Of a scikit-learn classifier, which is cloned for every bit, what it has learnt elsewhere is not
    stored.
    """
    if (data := data_name(name, value)) is not None:
        return ByName(data)
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
