"""Base of estimators on a cluster: the model of one machine, on dask collections."""

import os
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from auxhash.codes import n_bytes
from auxhash.compute.checks import ArgumentError
from auxhash.dask import blocks, lazy
from auxhash.dask.blocks import Blocks
from auxhash.learn.hasher import Hasher
from auxhash.learn.training.validation import SCORE_K

OWN_PARAMETERS = ("client", "timeout")  # that estimators of one machine do not have
NOT_PASSED_ON = ("self", "__class__", *OWN_PARAMETERS)  # of the names in a constructor


class Distributed(Hasher):
    """A hasher that was trained on a cluster; `to_local` returns one of this machine."""

    n_bits: int

    def to_local(self, codes: bool = True) -> Hasher:
        """Return the estimator of one machine, with the codes of the training points or without."""
        raise NotImplementedError

    def _without_codes(self) -> Hasher:
        """Return an estimator that encodes as this one, without codes of the training points."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> Any:
        """Return the outputs of `Hasher.decision_function`; lazy for dask arrays and dataframes."""
        return self._of_points(X, "decision_function", int(self.n_bits))

    def transform(self, X: Any) -> Any:
        """Return the codes of `Hasher.transform`; lazy for dask arrays and dataframes."""
        return self._of_points(X, "transform", int(self.n_bits))

    def encode(self, X: Any) -> Any:
        """Return the packed codes of `Hasher.encode`; lazy for dask collections, cut as X is."""
        return self._of_points(X, "encode", n_bytes(int(self.n_bits)))

    def _of_points(self, X: Any, method: str, n_columns: int) -> Any:
        check_is_fitted(self)
        model = self._without_codes()
        if blocks.is_lazy(X):
            return lazy.apply(model, method, n_columns, X)
        return getattr(model, method)(X)

    def score(self, X: ArrayLike, y: ArrayLike, k: int = SCORE_K) -> float:
        """Return `Hasher.score`; the codes of the training points are brought here (`to_local`)."""
        return self.to_local().score(X, y, k)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, as `to_local().save` does."""
        self.to_local().save(path)

    def _take_names(self, parts: Blocks, going_on: bool = False) -> None:
        """Set the attributes of scikit-learn's estimators on their features."""
        known = getattr(self, "n_features_in_", parts.n_features)
        if going_on and known != parts.n_features:
            raise ArgumentError(f"X has {parts.n_features} features, and had {known} before")
        self.n_features_in_ = parts.n_features
        if parts.names is not None:
            self.feature_names_in_ = parts.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
