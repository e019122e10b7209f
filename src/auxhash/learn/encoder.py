"""A saved model as an encoder: what encoding needs of it, without scikit-learn.

Importing scikit-learn takes several times as long as encoding some thousand points does. A file
that holds a hash function of auxhash's own (linear, kernels, network) is therefore read without
making an estimator of it. Whatever is out of the ordinary is left to the estimator: other models,
damaged ones, and points that it has to refuse.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MOST_BITS, Packed, pack, sign
from auxhash.compute import context
from auxhash.compute.arrays import AnyArray, Array
from auxhash.files.feature import is_feature
from auxhash.mac.hashfunctions import (
    HashFunction,
    NetworkHash,
    NotFiniteError,
    SVMHash,
    decided,
    encoded,
    outputs,
)
from auxhash.model import encoding, fitted, modelfile
from auxhash.model.encoding import Json
from auxhash.model.modelfile import StoredModel

if TYPE_CHECKING:
    from auxhash.learn.hasher import Hasher

KINDS = ("MACHash", "TwoStepHash", "EndToEndHash", "NeighborHash")


@dataclass
class Encoder:
    """The hash function of a model file; its codes are those of the estimator in the file."""

    path: str | os.PathLike[str]
    n_bits: int
    n_features_in_: int
    hash_function: HashFunction
    image_feature_: str | None
    metric: str | None  # that its codes were learnt for, if it was one of neighbours
    feature_names_in_: AnyArray | None  # of the columns it was learnt from, if they had names
    n_jobs: int | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of the hash function: codes with the same one can be compared."""
        return encoding.fingerprint(self.hash_function)

    def decision_function(self, X: AnyArray) -> Array:
        """Real-valued outputs (n, n_bits), as `Hasher.decision_function` gives them."""
        points = self._points(X)
        if points is None:
            from auxhash.learn.loading import load

            decisions: Array = load(self.path).set_params(n_jobs=self.n_jobs).decision_function(X)
            return decisions
        with context.using(n_jobs=self.n_jobs):
            return decided(self._outputs, points)

    def encode(self, X: AnyArray) -> Packed:
        """Packed codes (n, ceil(n_bits / 8)), as `Hasher.encode` gives them."""
        if self._fits(X):
            with context.using(n_jobs=self.n_jobs), suppress(NotFiniteError):
                return encoded(self.hash_function, X, finite=False)
        return pack(sign(self.decision_function(X)))

    def _outputs(self, X: NDArray[Any]) -> Array:
        return outputs(self.hash_function, X)

    def _points(self, X: AnyArray) -> AnyArray | None:
        """Return X if the estimator would accept it, else None."""
        return X if self._fits(X) and np.isfinite(X).all() else None

    def _fits(self, X: AnyArray) -> bool:
        """Check whether the estimator would accept X, if X is finite."""
        plain = type(X) is np.ndarray and X.dtype.kind in "fiu"
        return plain and X.ndim == 2 and len(X) > 0 and X.shape[1] == self.n_features_in_


def load(path: str | os.PathLike[str]) -> "Encoder | Hasher":
    """Load a saved model for encoding alone; raises as `auxhash.load`."""
    encoder = _encoder(path, modelfile.read(path))
    if encoder is None:
        from auxhash.learn import loading

        return loading.load(path)
    return encoder


def _encoder(path: str | os.PathLike[str], model: StoredModel) -> Encoder | None:
    """Return the encoder in a file, or None where the file has to be read as an estimator."""
    if model.kind not in KINDS:
        return None
    try:
        content = encoding.parts(model.content)
        learnt = encoding.parts(content["learnt"])

        def read(coded: Json) -> Any:
            return encoding.decode(coded, model.arrays, part=True)

        parameters = encoding.parts(content["parameters"])
        encoder = Encoder(
            path,
            int(read(parameters["n_bits"])),
            read(learnt["n_features_in_"]),
            read(learnt["hash_function_"]),
            read(learnt.get("image_feature_")),
            read(parameters.get("metric")),
            read(learnt.get("feature_names_in_")),
        )
        return encoder if _is_consistent(encoder) else None
    except Exception:  # of any type: the estimator fails as well, and says why
        return None


def _is_consistent(encoder: Encoder) -> bool:
    """Check whether the parts fit together, as `fitted.check_consistent` does."""
    image, n_features, n_bits = encoder.image_feature_, encoder.n_features_in_, encoder.n_bits
    if type(encoder.hash_function) not in (SVMHash, NetworkHash) or not 1 <= n_bits <= MOST_BITS:
        return False
    if not fitted.SKLEARN["n_features_in_"](n_features):
        return False
    if image is not None and not (type(image) is str and is_feature(image)):
        return False
    names = encoder.feature_names_in_
    if names is not None and not fitted.SKLEARN["feature_names_in_"](names):
        return False
    if names is not None and len(names) != n_features:
        return False
    with np.errstate(all="ignore"):
        tried = {n: decided(encoder._outputs, np.zeros((n, n_features))) for n in (1, 2)}
    return all(each.shape == (n, n_bits) and each.dtype == np.float64 for n, each in tried.items())
