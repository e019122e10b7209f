"""`Hasher`, the base class of all estimators: what they offer once they are fitted."""

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from auxhash.codes import Codes, Packed, sign
from auxhash.compute import checks, context, threads
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.learn.training.validation import precision_among
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions import HashFunction, NotFiniteError, encoded, is_shared
from auxhash.mac.hashfunctions.step import FLOATS
from auxhash.model import fitted
from auxhash.model import points as checked
from auxhash.model.model import LearntFrom, Model, about_codes
from auxhash.search.expected import ExpectedRecall

Fitted = TypeVar("Fitted", bound="Hasher")
FitData = ParamSpec("FitData")  # what `fit` is given

FINGERPRINT_ROWS = 1000  # that a fingerprint reads at least, or all
MIN_ROWS_WEIGHED = 50  # among fewer, one row may well outweigh the others
NUMBERS_PER_CHUNK = 1 << 20  # of X, whose squares are summed at a time
ROWS_PER_OUTLIER = 10  # outliers are at most one row in so many
SENTINEL_RATIO = 100  # of a sentinel value, found in several rows, to numbers of other rows


def learning(
    fit: Callable[Concatenate[Fitted, FitData], Fitted],
) -> Callable[Concatenate[Fitted, FitData], Fitted]:
    """Let `fit` run on the hasher's `n_jobs` threads, with one of BLAS each, ignoring underflow.

    Underflow is ignored whatever the caller's np.errstate: sums of squares and exponentials do so.
    """

    @wraps(fit)
    def prepared(hasher: Fitted, /, *args: FitData.args, **kwargs: FitData.kwargs) -> Fitted:
        with (
            context.using(n_jobs=hasher.n_jobs),
            threads.one_blas_thread(),
            np.errstate(under="ignore"),
        ):
            fitted_hasher = fit(hasher, *args, **kwargs)
            if getattr(fitted_hasher, "expected_recall_", None):  # of what was learnt before
                fitted_hasher.expected_recall_ = []
            fitted_hasher.model_  # noqa: B018  made here, so that encoding changes no attribute
            return fitted_hasher

    return prepared


class Hasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: decision_function, transform, encode, score and save.

    A subclass has a parameter `n_bits`, implements `_check_parameters`, and in `fit` sets
    `hash_function_` (or implements `_learnt_function`), `codes_` (the packed codes of the training
    points), `labels_` (their labels or None) and `data_fingerprint_` (of both).
    """

    _needs_labels = _takes_several_labels = False  # in `fit`; several are those of one point

    n_bits: int
    n_jobs: int | None = None
    codes_: Packed
    labels_: AnyArray | None
    data_fingerprint_: str
    hash_function_: HashFunction
    # Set by the caller of fit, if at all: how X was computed from pictures, and recall of points
    # that were held out.
    image_feature_: str
    expected_recall_: list[ExpectedRecall]

    @cached_property
    def model_(self) -> Model:
        """The learnt hash function as a value, which the codes are made by."""
        check_is_fitted(self)
        names, n_bits = getattr(self, "feature_names_in_", None), int(self.n_bits)
        parameters = {
            name: described(name, value)
            for name, value in self.get_params(deep=False).items()
            if name not in ("n_jobs", "verbose")
        }
        codes = self.codes_ if isinstance(self.codes_, np.ndarray) else np.empty((0, 1), np.uint8)
        origin = LearntFrom(
            type(self).__name__,
            int(len(self.codes_) or getattr(self, "n_learnt_", 0)),
            self.data_fingerprint_,
            parameters,
            getattr(self, "loss_", None),
            *about_codes(codes, n_bits),
            tuple(getattr(self, "expected_recall_", ())),
        )
        return Model(
            self._learnt_function(),
            n_bits,
            self.n_features_in_,
            origin,
            None if names is None else tuple(names.tolist()),
            getattr(self, "image_feature_", None),
            getattr(self, "metric", None),
            tuple(getattr(self, "prefixes", ())),
            getattr(self, "tables_", None),
            getattr(self, "made_for_", None),
        )

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__.pop("model_", None)  # it is made of the others
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, object]:
        """Leave out `affinity_`: copies for other processes would carry hundreds of megabytes."""
        state: dict[str, object] = super().__getstate__()
        return {name: state[name] for name in state if name not in ("model_", "affinity_")}

    def __setstate__(self, state: dict[str, object]) -> None:
        if "fingerprint_" in state:  # as it was called before models had one
            state = {**state, "data_fingerprint_": state["fingerprint_"]}
            del state["fingerprint_"]
        super().__setstate__(state)

    @property
    def fingerprint_(self) -> str:
        """The model's fingerprint: codes with the same one can be compared."""
        return self.model_.fingerprint

    @property
    def fingerprint(self) -> str:
        """`fingerprint_`, as a `Model` calls it, so that either serves where codes are made."""
        return self.model_.fingerprint

    def _going_on(self) -> bool:
        """Tell whether training goes on from a hash function learnt before."""
        return bool(getattr(self, "warm_start", False)) and hasattr(self, "hash_function_")

    def _learnt_function(self) -> HashFunction:
        """Return the hash function that the fitted attributes make up."""
        return self.hash_function_

    def _check_parameters(self) -> None:
        """Raise if a parameter is not valid."""
        raise NotImplementedError

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Real-valued outputs (n, n_bits); a bit is +1 where its output is not negative."""
        check_is_fitted(self)
        with context.using(n_jobs=self.n_jobs):
            if not devices.on_processor(X):
                return self.model_.decision_function(X)
            return self.model_.decide(_features(self, X, reset=False))

    def transform(self, X: ArrayLike) -> Codes:
        """Codes (n, n_bits), int8 in {-1, +1}."""
        codes: Codes = devices.like(X, sign(devices.native(self.decision_function(X))))
        return codes

    def encode(self, X: ArrayLike) -> Packed:
        """Packed codes (n, ceil(n_bits / 8)), uint8: bit k at byte k // 8, bit k % 8.

        X is encoded chunk by chunk: it may be a memory map larger than memory, and bytes, half or
        single precision are not copied. Points on a GPU, CuPy's or PyTorch's, get codes there, as
        they do from `transform` and `decision_function`; the processor makes them where a method
        has no hash function that a GPU could compute.
        """
        check_is_fitted(self)
        with context.using(n_jobs=self.n_jobs):
            if not devices.on_processor(X):
                return self.model_.encode(X)
            points = _features(self, X, reset=False, ensure_all_finite=False)
            try:
                return encoded(self.model_.hash_function, points, finite=False)
            except NotFiniteError:
                _features(self, X, reset=False)  # says so in scikit-learn's words
                raise

    def score(self, X: ArrayLike, y: ArrayLike, k: int | None = None) -> float:
        """Precision at k of the queries X, labelled y, against the training points.

        Ties in Hamming distance count by their expected value; k is capped by the number of
        training points. None takes 100, or the median number of training points per class where
        that is less: of more than these, not all can be right.
        """
        check_is_fitted(self)
        if self.labels_ is None:
            raise ValueError("score needs labels of the training points: fit with y as well")
        codes = devices.fetched(self.encode(X))
        with context.using(n_jobs=self.n_jobs):
            return precision_among(codes, self.codes_, y, self.labels_, k)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and the estimator to a file, for `auxhash.load`; `model_.save` the first.

        The file holds the parameters and everything learnt except `affinity_`, `two_step_`,
        `held_out_` and the times in `history_`: equal models give equal files. A parameter that is
        code (a loss given as a function, a solver) or data (the points of `validation`, the codes
        of `init`) is stored by name only: the loaded model encodes as this one does, but must be
        given it again, or another, before it is fitted. A Generator is stored in its current state.

        scikit-learn classifiers are stored through skops (`auxhash[classifiers]`), except those of
        `hash_function="trees"` and of the baselines' defaults. Less usual ones `load` refuses
        without `trusted`; a warning says so.

        Raises NotFittedError; TypeError for what cannot be stored; ValueError for a model that
        `load` would refuse, as when a parameter was changed after fitting; ImportError where skops
        is needed but missing; and OSError.
        """
        fitted.save(self, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.target_tags.required = self._needs_labels
        tags.target_tags.multi_output = self._takes_several_labels
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_bits)


def described(name: str, value: object) -> object:
    """Return a parameter without data or code: plain values as they are, others as a text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if (data := fitted.data_name(name, value)) is not None:
        return data
    text = getattr(value, "__qualname__", "") or getattr(value, "name", "") or repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def fingerprint(X: AnyArray, y: AnyArray | None) -> str:
    """A digest that tells training sets apart: their shape, all labels, 1000 points or more."""
    marked = X[:: max(1, len(X) // FINGERPRINT_ROWS)]
    if marked.dtype not in FLOATS:  # the same points are the same in any type that holds them
        marked = marked.astype(FLOATS[0])
    digest = hashlib.sha256(f"{marked.dtype} {X.shape}".encode())
    digest.update(np.ascontiguousarray(marked).tobytes())
    if y is not None:
        labels = y.astype(str) if y.dtype == object else y
        digest.update(f"{labels.dtype} {labels.shape}".encode() + labels.tobytes())
    return digest.hexdigest()


def check_points(
    hasher: BaseEstimator,
    X: ArrayLike,
    least: int = 2,
    reset: bool = True,
    short: bool = False,
    all_points: bool = True,
) -> AnyArray:
    """Check X (n, D) of at least `least` points; warn if they are all the same, or of outliers.

    `short` leaves an array of whole numbers or of half precision as it is, without a copy;
    `all_points` says that X holds all points, not a part of them.
    """
    points = _features(hasher, X, ensure_min_samples=least, reset=reset)
    if points.dtype not in FLOATS and points.ndim == 2 and not short:  # pictures stay bytes
        points = points.astype(FLOATS[0])
    if np.array_equal(points[0], points[-1]) and (points == points[0]).all():
        warnings.warn(
            f"all {len(points)} points of X are the same, and will get the same code", stacklevel=2
        )
    if all_points and getattr(hasher, "metric", None) != "cosine":  # by which lengths do not count
        _warn_of_one_row(points)
    return points


class OutweighingRow(UserWarning):
    """Outliers: a row of X, or few with one number in common, outweigh all others together.

    A typing error does so, or a sentinel for missing data. Whatever is learnt then tells those
    rows from the others, and the others not from each other.
    """


def _warn_of_one_row(X: AnyArray) -> None:
    if X.ndim != 2 or len(X) < MIN_ROWS_WEIGHED or X.dtype.itemsize == 1:  # bytes are bounded
        return

    def weights(part: slice, scale: float = 1.0) -> NDArray[np.float64]:
        rows = X[part] if X.dtype in FLOATS else X[part].astype(np.float64)
        rows = rows if scale == 1 else rows / scale
        return np.asarray(np.einsum("ij,ij->i", rows, rows), np.float64)

    parts, scale = threads.chunks(len(X), max(1, NUMBERS_PER_CHUNK // X.shape[1])), 1.0
    with threads.pool() as run, np.errstate(over="ignore"):
        each = np.concatenate(run(weights, parts))
        if not np.isfinite(each.sum()):  # squares have left the range of their type
            scale = max(float(np.abs(X[part]).max()) for part in parts)
            each = np.concatenate([weights(part, scale) for part in parts])
    row = int(each.argmax())
    column = int(np.abs(X[row].astype(np.float64)).argmax())
    heavy = np.argsort(each)[-(len(X) // ROWS_PER_OUTLIER) :]
    heavy = heavy[(X[heavy] == X[row, column]).any(axis=1)]  # the row, and others with its number
    rest = each.sum() - each[heavy].sum()
    if 2 * rest >= each.sum():
        return
    typical = np.sqrt(rest / ((len(X) - len(heavy)) * X.shape[1])) * scale
    if len(heavy) > 1 and not 0 < SENTINEL_RATIO * typical < abs(float(X[row, column])):
        return
    which = f"row {row} of X outweighs" if len(heavy) == 1 else f"{len(heavy)} rows of X outweigh"
    warnings.warn(
        f"{which} all other {len(X) - len(heavy):,} together (column {column} of row {row} holds "
        f"{X[row, column]:g}), and codes may tell no others apart: is it an error, or a "
        "sentinel for missing data?",
        OutweighingRow,
        stacklevel=4,
    )


def _features(hasher: BaseEstimator, X: ArrayLike, **wanted: Any) -> AnyArray:
    """Check X. Arrays of real numbers keep their type; anything else becomes float64."""
    checks.unmasked("X", X)
    X = devices.fetched(X)
    any_shape = _takes_any_shape(hasher)
    if any_shape and np.ndim(X) > 2:
        pictures = checked.pictures(
            X, wanted.get("ensure_min_samples", 1), wanted.get("ensure_all_finite", True)
        )
        if wanted["reset"]:
            hasher.n_features_in_ = int(np.prod(pictures.shape[1:]))
            if hasattr(hasher, "feature_names_in_"):
                del hasher.feature_names_in_
        return pictures
    real = isinstance(X, np.ndarray) and X.dtype.kind in "iuf" and X.dtype.itemsize <= 8
    plain = real and not any_shape  # a module would take bytes for pictures
    try:
        points: AnyArray = validate_data(hasher, X, dtype="numeric" if plain else FLOATS, **wanted)
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ArgumentError(f"X must hold numbers: {error}") from error
        raise
    return points


def _takes_any_shape(hasher: BaseEstimator) -> bool:
    return is_shared(getattr(hasher, "hash_function", None))


def kept_labels(points: AnyArray, y: ArrayLike | None) -> AnyArray | None:
    """Return labels that are not learnt from, for `score`; there must be one per point."""
    if y is None:
        return None
    y = devices.fetched(y)
    check_consistent_length(points, y)
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y)


def check_queries(hasher: BaseEstimator, X: ArrayLike) -> AnyArray:
    """Check points of the kind that `hasher` learns from."""
    return _features(hasher, X, reset=False)


def check_labelled(
    hasher: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike | None,
    least: int = 2,
    reset: bool = True,
    short: bool = False,
    all_points: bool = True,
) -> tuple[AnyArray, AnyArray]:
    """Check X and the labels y to learn from, (n,) or (n, n_labels)."""
    if y is None:
        # Raises, as scikit-learn's estimators do; pictures are no reason to raise.
        rows = [[0.0]] if _takes_any_shape(hasher) and np.ndim(X) > 2 else X
        validate_data(hasher, rows, None, reset=reset)
    points = check_points(hasher, X, least, reset, short, all_points)
    labels = checks.classes("y", devices.fetched(y))
    check_consistent_length(points, labels)
    return points, labels


def check_pairs(
    hasher: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike | None,
    affinity: Affinity | None,
    reset: bool = True,
    short: bool = False,
    all_points: bool = True,
) -> tuple[AnyArray, AnyArray | None]:
    """Check X and y for a method that learns from labels y or from an affinity."""
    if affinity is not None and not isinstance(affinity, Affinity):
        raise TypeError(
            "affinity must be an auxhash.affinity.Affinity "
            f"(from_labels, from_neighbors, from_pairs), got {type(affinity).__name__}"
        )
    labels = None
    if affinity is not None and y is None:
        points = check_points(hasher, X, reset=reset, short=short, all_points=all_points)
    else:
        points, labels = check_labelled(hasher, X, y, 2, reset, short, all_points)
    if affinity is not None and affinity.n_points != len(points):
        raise ValueError(f"affinity is for {affinity.n_points} points, but X has {len(points)}")
    if affinity is not None and not len(affinity):
        raise ValueError("affinity holds no pairs to learn from")
    return points, labels
