"""Load any saved estimator."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from auxhash import __version__, baselines, estimators, modelfile
from auxhash.encoding import decode
from auxhash.hasher import Hasher
from auxhash.modelfile import Content, ModelFileError

MOST_FEATURES = 1 << 22  # beyond, trying the model out would take too much memory


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Hasher:
    """The estimator that `save` wrote: same parameters, same codes.

    Nothing in the file is run. What it holds is checked: sums, shapes, and that the parts fit
    together.

    Args:
        trusted: full names of types inside a scikit-learn classifier that skops does not trust by
            itself; only for files of people you trust.

    Raises ModelFileError for a file that is foreign, damaged, newer than this package or not to
    be trusted; OSError; ImportError where it takes skops.
    """
    model = modelfile.read(path)
    try:
        hasher = _made(model, trusted)
        _check(hasher)
    except ImportError:
        raise
    except Exception as error:  # whatever a part that does not fit makes of the others
        written = f" (of auxhash {model.package})" if model.package != __version__ else ""
        raise ModelFileError(f"{path}{written} cannot be loaded: {error}") from error
    return hasher


def _made(model: Content, trusted: Sequence[str]) -> Hasher:
    if model.kind in baselines.__all__:
        cls: Any = getattr(baselines, model.kind)
    elif model.kind in ("MACHash", "TwoStepHash"):
        cls = getattr(estimators, model.kind)
    else:
        raise ValueError(f"it holds a {model.kind!r}, which is no estimator of auxhash")
    content = decode(model.content, model.arrays, trusted)
    hasher: Hasher = cls(**content["parameters"])
    for name, value in content["learnt"].items():
        if not (name.endswith("_") or name == "_sklearn_output_config") or hasattr(cls, name):
            raise ValueError(f"{name} is nothing that a {model.kind} learns")
        setattr(hasher, name, value)
    return hasher


def _check(hasher: Hasher) -> None:
    """Raise unless all parts fit together: the model encodes, and its training codes are codes."""
    n_bits, n_features = hasher.n_bits, hasher.n_features_in_
    if type(n_features) is not int or not 1 <= n_features <= MOST_FEATURES:
        raise ValueError(f"n_features_in_ is {n_features!r}")
    for n in (1, 2):  # a part of a wrong shape could be stretched to one of them, not to both
        with np.errstate(all="ignore"):
            outputs = hasher._decide(np.zeros((n, n_features)))
        if outputs.shape != (n, n_bits) or outputs.dtype != np.float64:
            shape = outputs.shape
            raise ValueError(f"its outputs are of shape {shape} for {n} points of {n_bits} bits")
    codes, labels = hasher.codes_, hasher.labels_
    if codes.dtype != np.uint8 or codes.shape[1:] != (-(-n_bits // 8),):
        raise ValueError(f"codes_ is {codes.dtype} of shape {codes.shape} for {n_bits} bits")
    if labels is not None and len(labels) != len(codes):
        raise ValueError(f"it has {len(labels)} labels for {len(codes)} training points")
    names = getattr(hasher, "feature_names_in_", None)
    if names is not None and len(names) != n_features:
        raise ValueError(f"it has {len(names)} feature names for {n_features} features")
