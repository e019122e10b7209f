"""MACMap: a continuous map and the mapping that new points are put into it by, learnt together."""

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from auxhash.compute import checks, context, threads
from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.compute.random import RandomState, generator
from auxhash.learn.baselines.method import doubles
from auxhash.learn.hasher import check_pairs, check_points, check_queries
from auxhash.learn.regression import MAPPINGS, regression
from auxhash.mac import hashfunctions
from auxhash.mac.affinity import Affinity, from_labels
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.maps import LOSSES, Energy, MapLoss, MapStep, Path, attraction, lowest, principal
from auxhash.mac.maps.path import MapState
from auxhash.model import modelfile
from auxhash.model.encoding import decode, encode, parts
from auxhash.model.fitted import check_learnt
from auxhash.model.modelfile import StoredModel

KIND = "MACMap"  # of its model files
N_GENERATORS = 3  # for pairs, the start and the regression


@dataclass(eq=False, repr=False)
class MACMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a map of points, on which similar points are near, and a mapping for new points.

    The mapping F is learnt together with the map Z, by auxiliary coordinates: Z gives way to what F
    can do while mu grows, until both agree. So E(F(X)) is lower than where F is fitted to a map
    made without it, as `history_[0]` has it. Codes take MACHash; this is for pictures and plots.

    Args:
        n_components: dimensions of the map. Beyond two, all pairs of points are computed at each
            step, in a time that grows with the square of their number.
        loss: E: "tsne" or "ee", the elastic embedding.
        mapping: F: "linear"; "rbf", linear in 500 radial basis functions; or "network", of one
            hidden layer.
        perplexity: about how many neighbours attract a point; capped at a third of the others.
        mu: mu_1, the first positive mu, or "auto": that at which the penalty is 1% of E.
        alpha: factor from one mu to the next.
        max_iter: the most iterations, after the direct embedding; 0 for this alone.
        tol: distance of Z and F(X), relative to the size of the map, at which the path ends. Where
            max_iter ends it before, a ConvergenceWarning says so.
        random_state: seed, Generator or RandomState. The same seed gives the same map on any number
            of threads.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        mapping_: F, of the step with the lowest E(F(X)).
        embedding_: Z (n, n_components) of that step.
        loss_: its E(F(X)).
        history_: list of `MapStep`, one per iteration: E(F(X)), E(Z) and the distance between both.
            The first is the direct embedding with the regression onto it.
        n_iter_: steps made, the first included.
    """

    n_components: int = 2
    loss: MapLoss = "tsne"
    mapping: Literal["linear", "rbf", "network"] = "rbf"
    perplexity: float = 30.0
    mu: float | Literal["auto"] = "auto"
    alpha: float = 1.4
    max_iter: int = 50
    tol: float = 0.02
    random_state: RandomState = None
    n_jobs: int | None = None

    mapping_: HashFunction = field(init=False)
    embedding_: Array = field(init=False)
    loss_: float = field(init=False)
    history_: list[MapStep] = field(init=False)
    n_iter_: int = field(init=False)

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, affinity: Affinity | None = None
    ) -> Self:
        """Learn from features X (n, D) alone; from labels y; or from an affinity of the n points.

        Without y and affinity, a point's nearest neighbours in X attract it; else points of its
        class, or its similar pairs. All points repel each other, dissimilar pairs no more than
        others.
        """
        self._check_parameters()
        with context.using(n_jobs=self.n_jobs), _computing():
            if y is None and affinity is None:
                return self._learn(doubles(check_points(self, X)), None, None)
            points, labels = check_pairs(self, X, y, affinity)
            return self._learn(doubles(points), labels, affinity)

    def _learn(self, X: Array, labels: AnyArray | None, affinity: Affinity | None) -> Self:
        drawing, starting, regressing = generator(self.random_state).spawn(N_GENERATORS)
        if affinity is None and labels is not None:
            n_similar = math.ceil(attraction.NEIGHBORS_PER_PERPLEXITY * self.perplexity)
            affinity = from_labels(labels, n_similar, 1, drawing)
        if affinity is None:
            P = attraction.of_neighbors(X, float(self.perplexity))
        else:
            P = attraction.of_pairs(affinity)
        mu = self.mu if self.mu == "auto" else float(self.mu)
        path = Path(mu, float(self.alpha), int(self.max_iter), float(self.tol))
        Z = principal(X, int(self.n_components), starting)
        steps = path.steps(Energy(P, self.loss), regression(self.mapping, X, regressing), Z)
        self.history_ = []
        best, state = lowest(self._kept(steps))
        apart = self.history_[-1].distance
        if self.max_iter and apart > self.tol:
            warnings.warn(
                f"Z and F(X) do not agree after max_iter={self.max_iter} iterations: their "
                f"distance is {apart:.2g}, and tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.mapping_, self.embedding_, self.loss_ = state.mapping, state.Z, best.loss
        self.n_iter_ = len(self.history_)
        return self

    def _kept(
        self, steps: Iterable[tuple[MapStep, MapState]]
    ) -> Iterator[tuple[MapStep, MapState]]:
        """Pass the steps on, and keep them in `history_`."""
        for step, state in steps:
            self.history_.append(step)
            yield step, state

    def transform(self, X: ArrayLike) -> Array:
        """Return the places F(X) (n, n_components) of points X on the map."""
        check_is_fitted(self)
        with context.using(n_jobs=self.n_jobs), _computing():
            points = check_queries(self, X)
            return hashfunctions.decided(lambda x: hashfunctions.outputs(self.mapping_, x), points)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and all that was learnt to a file, for `auxhash.load`."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        learnt = {name: value for name, value in vars(self).items() if name not in parameters}
        learnt["history_"] = [replace(step, seconds=math.nan) for step in self.history_]
        content, arrays = encode({"parameters": parameters, "learnt": learnt}, KIND)
        modelfile.write(path, StoredModel(KIND, content, arrays))

    @classmethod
    def stored_in(
        cls, stored: StoredModel, trusted: Sequence[str], unstored: Mapping[str, object]
    ) -> Self:
        """Return the map that a file holds; raises ValueError if it is not valid."""
        values = decode({"dict": parts(stored.content)}, stored.arrays, trusted, unstored=unstored)
        new, learnt = cls(**values["parameters"]), values["learnt"]
        new._check_parameters()
        for name, value in learnt.items():
            setattr(new, name, value)
        check_learnt(new, set(learnt))
        width = int(new.n_components)
        places = hashfunctions.outputs(new.mapping_, np.zeros((2, new.n_features_in_)))
        if places.shape != (2, width) or new.embedding_.shape[1:] != (width,):
            raise ValueError(f"its mapping and embedding are not those of {width} components")
        return new

    def _check_parameters(self) -> None:
        checks.integer("n_components", self.n_components, 1)
        checks.one_of("loss", self.loss, LOSSES)
        checks.one_of("mapping", self.mapping, MAPPINGS)
        checks.number("perplexity", self.perplexity, 1)
        if self.mu != "auto":
            checks.number("mu", self.mu, 0, strict=True, instead=' or "auto"')
        checks.number("alpha", self.alpha, 1, strict=True)
        checks.integer("max_iter", self.max_iter, 0)
        checks.number("tol", self.tol, 0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)


@contextmanager
def _computing() -> Iterator[None]:
    """Compute with one thread of BLAS in each of ours, and ignore underflow."""
    with threads.one_blas_thread(), np.errstate(under="ignore"):
        yield
