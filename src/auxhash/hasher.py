"""What every method that learns codes offers once it is fitted."""

import hashlib
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from auxhash import checks
from auxhash.affinity import Affinity
from auxhash.codes import Codes, Packed, pack, sign
from auxhash.compute import threads
from auxhash.mac import Step
from auxhash.storage import modelfile
from auxhash.storage.encoding import check, encode, register, to_trust
from auxhash.training.validation import SCORE_K, precision_among

CHUNK = 16384  # points encoded at a time
FLOATS = [np.float64, np.float32]
# Of the fitted attributes: the pairs, large and no use without the points; where MAC started.
NOT_SAVED = ("affinity_", "two_step_")
MARKED_ROWS = 1000  # that a fingerprint reads
MOST_FEATURES = 1 << 22  # beyond, trying a model out would take too much memory
GIST_SIDES = range(16, 65)  # of the squares that GIST of pictures is computed on
# What scikit-learn sets, and whether it is right.
SKLEARN: dict[str, Callable[[Any], bool]] = {
    "n_features_in_": lambda n: type(n) is int and 1 <= n <= MOST_FEATURES,
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
    """In a loaded model, a parameter that its file knows by name only: a function, a solver."""

    name: str

    def check_read(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"name must be text, got {self.name!r}")


class Hasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """decision_function, transform, encode and score, from `_outputs`.

    A subclass has a parameter `n_bits`, implements `_outputs`, and in `fit` sets `codes_`, the
    packed codes of the training points, `labels_`, their labels or None, and `fingerprint_`.
    """

    n_bits: int
    n_jobs: int | None = None
    codes_: Packed
    labels_: NDArray[Any] | None
    fingerprint_: str
    image_feature_: str  # what X was computed from pictures by, where whoever fitted set it

    def _outputs(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Real-valued outputs (n, n_bits) for a chunk of checked points."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise where a parameter cannot be right."""
        raise NotImplementedError

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Real-valued outputs (n, n_bits); a bit is +1 where its output is not negative."""
        check_is_fitted(self)
        return self._decide(validate_data(self, X, dtype=FLOATS, reset=False))

    @threads.one_blas_thread()
    def _decide(self, points: NDArray[Any]) -> NDArray[np.float64]:
        chunks = range(0, len(points), CHUNK)
        outputs = np.concatenate([self._outputs(points[at : at + CHUNK]) for at in chunks])
        if np.isnan(outputs).any():
            row = int(np.flatnonzero(np.isnan(outputs).any(axis=1))[0])
            raise ValueError(
                f"X holds numbers too far from the training points: row {row} has outputs that "
                "are no numbers"
            )
        return outputs

    def transform(self, X: ArrayLike) -> Codes:
        """Codes (n, n_bits), int8 in {-1, +1}."""
        return sign(self.decision_function(X))

    def encode(self, X: ArrayLike) -> Packed:
        """Packed codes (n, ceil(n_bits / 8)), uint8: bit k at byte k // 8, bit k % 8."""
        return pack(self.transform(X))

    def score(self, X: ArrayLike, y: ArrayLike, k: int = SCORE_K) -> float:
        """Precision at k of the queries X, labelled y, against the training points.

        Ties in Hamming distance count by their expected value; k is capped by the number of
        training points.
        """
        check_is_fitted(self)
        if self.labels_ is None:
            raise ValueError("score needs labels of the training points: fit with y as well")
        codes = self.encode(X)
        return precision_among(codes, self.codes_, y, self.labels_, k, self.n_jobs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, for `auxhash.load`.

        The file holds the parameters and everything learnt but `affinity_` and `two_step_`, and of
        `history_` no times: equal models are equal files. A parameter that only code can make (a
        loss given as a function, a solver) is kept by name: the loaded model encodes as this one
        does, but must be given it again to be fitted. A Generator is kept as it stands now.

        The usual scikit-learn classifiers are stored in a form that `load` checks. Any other is
        stored through skops, and `load` will need `trusted`; a warning says so.

        Raises NotFittedError, TypeError for what cannot be stored, ValueError for a model that
        `load` would refuse, because a parameter was changed after fitting, and OSError.
        """
        model = self._model()
        try:
            check_whole(self)
        except Exception as error:  # whatever a part that does not fit makes of the others
            raise ValueError(
                f"this {model.kind} is not as it was fitted and cannot be saved: {error}"
            ) from error
        modelfile.write(path, model)
        if trusted := sorted(to_trust(model.content, model.arrays)):
            warnings.warn(
                f"{os.fspath(path)} holds a scikit-learn estimator that auxhash cannot check; "
                f"whoever loads it has to say auxhash.load(..., trusted={trusted})",
                stacklevel=2,
            )

    def _model(self, without: tuple[str, ...] = NOT_SAVED) -> modelfile.StoredModel:
        """Parameters and fitted attributes, but for those named."""
        check_is_fitted(self)
        kind = type(self)
        if not kind.__module__.startswith("auxhash."):
            raise TypeError(
                f"{kind.__name__} is a class of your own, which auxhash.load would not know; "
                "only auxhash's estimators can be saved"
            )
        parameters = self.get_params(deep=False)
        learnt = {name: value for name, value in vars(self).items() if name not in parameters}
        if "history_" in learnt:
            learnt["history_"] = [_without_time(step) for step in learnt["history_"]]
        content = {
            "parameters": {name: _or_name(value) for name, value in parameters.items()},
            "learnt": learnt,
        }
        for part in content.values():
            for name in without:
                part.pop(name, None)
        coded, arrays = encode(content, kind.__name__)
        return modelfile.StoredModel(kind.__name__, coded, arrays)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_bits)


def _without_time(step: Any) -> Any:
    return replace(step, seconds=math.nan) if isinstance(step, Step) else step


def check_whole(hasher: Hasher) -> None:
    """Raise unless parameters and learnt attributes are as a fit leaves them.

    All are of their kinds, numbers are finite, and the parts fit together: the model encodes, and
    its training codes are codes.
    """
    parameters = hasher.get_params(deep=False)
    given = {name: v for name, v in parameters.items() if not isinstance(v, ByName)}
    type(hasher)(**given)._check_parameters()
    _check_learnt(hasher, set(vars(hasher)) - set(parameters) - set(NOT_SAVED))
    n_bits, n_features = int(hasher.n_bits), hasher.n_features_in_
    for n in (1, 2):  # a part of a wrong shape could be stretched to one of them, not to both
        with np.errstate(all="ignore"):
            outputs = hasher._decide(np.zeros((n, n_features)))
        if outputs.shape == (n, outputs.size // n) and outputs.size != n * n_bits:
            raise ValueError(f"n_bits is {n_bits}, but it was fitted to {outputs.size // n} bits")
        if outputs.shape != (n, n_bits) or outputs.dtype != np.float64:
            raise ValueError(f"its outputs are of shape {outputs.shape} for {n} points")
    codes, labels = hasher.codes_, hasher.labels_
    if codes.shape[1:] != (-(-n_bits // 8),) or (codes[:, -1] >> (n_bits - 1) % 8 > 1).any():
        raise ValueError(f"codes_, of shape {codes.shape}, are no codes of {n_bits} bits")
    if labels is not None and len(labels) != len(codes):
        raise ValueError(f"it has {len(labels)} labels for {len(codes)} training points")


def _check_learnt(hasher: Hasher, names: set[str]) -> None:
    """Raise unless the attributes of these names are declared by the class, and of that kind."""
    declared = get_type_hints(type(hasher))
    for name in sorted(names):
        value = getattr(hasher, name)
        if name in SKLEARN:
            fine = SKLEARN[name](value)
        elif name not in declared or not name.endswith("_"):
            raise ValueError(f"{name} is nothing that a {type(hasher).__name__} learns")
        else:
            fine = _fits(value, declared[name])
            check(value)
        if not fine:
            told = f"{value.dtype} of shape {value.shape}" if hasattr(value, "shape") else value
            raise ValueError(f"{name} is not right: {told!r}")
    if names >= {"feature_names_in_"} and len(hasher.feature_names_in_) != hasher.n_features_in_:
        n = len(hasher.feature_names_in_)
        raise ValueError(f"it has {n} feature names for {hasher.n_features_in_} features")
    if "image_feature_" in names and not _is_feature(hasher.image_feature_):
        raise ValueError(
            f'image_feature_ must be "gist:SIDE" with a side from {GIST_SIDES[0]} to '
            f'{GIST_SIDES[-1]}, or "module:function", got {hasher.image_feature_!r}'
        )


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that a class declares; numbers must be finite."""
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


def _is_feature(name: str) -> bool:
    kind, _, rest = name.partition(":")
    if kind == "gist" and rest.isdecimal():
        return int(rest) in GIST_SIDES
    return all(part.isidentifier() for part in (*kind.split("."), rest))


def _or_name(value: Any) -> Any:
    """A parameter's value or, where that cannot be stored, its name."""
    try:
        encode(value)
    except TypeError:
        return ByName(getattr(value, "__qualname__", type(value).__qualname__))
    return value


def check_stored(hasher: Hasher) -> None:
    """Raise where a parameter of a loaded model is known by name only."""
    for name, value in hasher.get_params(deep=False).items():
        if isinstance(value, ByName):
            raise ValueError(
                f"{name} was {value.name!r}, which the model file holds by name only; give it "
                f"again, by set_params({name}=...), before fitting"
            )


def fingerprint(X: NDArray[Any], y: NDArray[Any] | None) -> str:
    """A digest that tells training sets apart: their shapes, all labels, a thousand points."""
    step = max(1, len(X) // MARKED_ROWS)
    digest = hashlib.sha256(f"{X.dtype} {X.shape}".encode())
    digest.update(np.ascontiguousarray(X[::step]).tobytes())
    if y is not None:
        labels = y.astype(str) if y.dtype == object else y
        digest.update(f"{labels.dtype} {labels.shape}".encode() + labels.tobytes())
    return digest.hexdigest()


def check_pairs(
    hasher: Hasher, X: ArrayLike, y: ArrayLike | None, affinity: Affinity | None, reset: bool = True
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Checked points and labels of a method that learns from labels y or from an affinity."""
    if affinity is not None and not isinstance(affinity, Affinity):
        raise TypeError(
            "affinity must be an auxhash.affinity.Affinity "
            f"(from_labels, from_neighbors, from_pairs), got {type(affinity).__name__}"
        )
    wanted = {"dtype": FLOATS, "ensure_min_samples": 2, "reset": reset}
    labels = None
    if affinity is not None and y is None:
        points = validate_data(hasher, X, **wanted)
    else:
        points, labels = validate_data(hasher, X, y, multi_output=True, **wanted)
        check_classification_targets(labels)
        labels = checks.labels("y", labels)
    if affinity is not None and affinity.n_points != len(points):
        raise ValueError(f"affinity is for {affinity.n_points} points, but X has {len(points)}")
    return points, labels
