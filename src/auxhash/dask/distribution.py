"""Base of estimators on a cluster: the model of one machine, on dask collections."""

import os
from typing import Any, Generic, TypeVar

import numpy as np
from dask.typing import DaskCollection
from sklearn.utils.validation import check_is_fitted

from auxhash.codes import n_bytes
from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.dask import blocks, lazy
from auxhash.dask.blocks import Blocks
from auxhash.learn.hasher import Hasher

Local = TypeVar("Local", bound=Hasher)

OWN_PARAMETERS = ("client", "timeout")  # that estimators of one machine do not have


class Distributed(Hasher, Generic[Local]):
    """A hasher that was trained on a cluster; `to_local` returns one of this machine."""

    n_bits: int
    device: devices.DeviceName
    timeout: float
    _local: type[Local]  # estimator of one machine
    _learnt: tuple[str, ...]  # its fitted attributes, in its order: equal models are equal files

    def to_local(self, codes: bool = True) -> Local:
        """Return the estimator of one machine, with the codes of the training points or without."""
        raise NotImplementedError

    def _without_codes(self) -> Local:
        """Return an estimator that encodes as this one, without codes of the training points."""
        parameters = self.get_params(deep=False)
        for name in OWN_PARAMETERS:
            del parameters[name]
        model = self._local(**parameters)
        empty = {"codes_": np.empty((0, n_bytes(int(self.n_bits))), np.uint8), "labels_": None}
        learnt = {**vars(self), **empty}
        for name in self._learnt:
            if name in learnt:
                setattr(model, name, learnt[name])
        return model

    def _gpu_refusal(self) -> str:
        return f'device must be "cpu" here: workers train on processors, got {self.device!r}'

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("timeout", self.timeout, 0, strict=True)

    def decision_function(self, X: ArrayLike | DaskCollection) -> Any:
        """Return the outputs of `Hasher.decision_function`; lazy for dask arrays and dataframes."""
        return self._of_points(X, "decision_function", int(self.n_bits))

    def transform(self, X: ArrayLike | DaskCollection) -> Any:
        """Return the codes of `Hasher.transform`; lazy for dask arrays and dataframes."""
        return self._of_points(X, "transform", int(self.n_bits))

    def encode(self, X: ArrayLike | DaskCollection) -> Any:
        """Return the packed codes of `Hasher.encode`; lazy for dask collections, cut as X is."""
        return self._of_points(X, "encode", n_bytes(int(self.n_bits)))

    def _of_points(self, X: ArrayLike | DaskCollection, method: str, n_columns: int) -> Any:
        check_is_fitted(self)
        model = self._without_codes()
        if blocks.is_lazy(X):
            return lazy.apply(model, method, n_columns, X)
        return getattr(model, method)(X)

    def score(self, X: ArrayLike, y: ArrayLike, k: int | None = None) -> float:
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
