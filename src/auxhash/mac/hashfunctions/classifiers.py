"""Any scikit-learn classifier as a hash function: one clone of it per bit."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from auxhash.codes import Codes
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers
from auxhash.compute.checks import integer
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions.features import FeatureMap, Scaled
from auxhash.mac.hashfunctions.protocol import BaseHash


@register("Constant")
@dataclass(frozen=True)
class Constant:
    """The classifier of a bit that is equal for all points: most others refuse a single class."""

    value: float

    def check_read(self) -> None:
        if self.value not in (-1.0, 1.0):
            raise ValueError(f"value must be -1 or 1, got {self.value!r}")

    def decision_function(self, F: Matrix) -> Array:
        return np.full(len(F), self.value)


@register("ClassifierHash")
@dataclass(frozen=True)
class ClassifierHash(BaseHash):
    """One clone of `classifier` per bit: +1 where its decision value is not negative."""

    classifier: object
    map: FeatureMap = field(default_factory=Scaled)
    seed: int = 0
    fitted: tuple[Any, ...] = ()

    TRAINING_ONLY: ClassVar[tuple[str, ...]] = ("classifier", "seed")

    def check_read(self) -> None:
        integer("seed", self.seed, 0)
        for each in self.fitted:
            if not (hasattr(each, "predict") or isinstance(each, Constant)):
                raise ValueError(f"fitted must be classifiers, got {type(each).__name__}")

    def kind(self) -> list[str]:
        return [*super().kind(), *(type(part).__name__ for part in (self.map, self.classifier))]

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> "ClassifierHash":
        return replace(self, map=self.map.fit(X, rng), seed=int(rng.integers(2**31)))

    def features(self, X: AnyArray) -> Array:
        return self.map(X)

    def refit(
        self, F: Matrix, Z: Codes, bits: Numbers, weight: Array | None = None
    ) -> "ClassifierHash":
        fitted = list(self.fitted or [None] * Z.shape[1])

        def train(k: int) -> object:
            return self._train(F, Z[:, k], None if weight is None else weight[:, k], k)

        with threads.pool() as run:
            for k, classifier in zip(bits, run(train, list(bits)), strict=True):
                fitted[k] = classifier
        return replace(self, fitted=tuple(fitted))

    def _train(self, F: Matrix, z: Codes, weight: Array | None, k: int) -> object:
        from sklearn.base import clone

        if (z == z[0]).all():
            return Constant(float(z[0]))
        classifier = clone(self.classifier)
        unseeded = {
            name: (self.seed + int(k)) % 2**31
            for name, value in classifier.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        classifier.set_params(**unseeded)
        if weight is None:
            return classifier.fit(F, z)
        self.check_weighted()
        return classifier.fit(F, z, sample_weight=weight)

    def check_weighted(self) -> None:
        """Raise TypeError unless the classifier can weight its points."""
        from sklearn.utils.validation import has_fit_parameter

        if not has_fit_parameter(self.classifier, "sample_weight"):
            raise TypeError(
                f"{type(self.classifier).__name__}.fit takes no sample_weight, which the augmented "
                'Lagrangian needs; use penalty="quadratic" or another hash_function'
            )

    def take(self, other: "ClassifierHash", bits: Numbers) -> "ClassifierHash":
        fitted = list(self.fitted)
        for k in bits:
            fitted[k] = other.fitted[k]
        return replace(self, fitted=tuple(fitted))

    def decision(self, F: Matrix) -> Array:
        with threads.pool() as run:
            return np.column_stack(run(lambda one: _decide(one, F), self.fitted))


def boosted_trees() -> ClassifierHash:
    """Return boosted decision trees for each bit, as many and as deep as in FastHash."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(max_iter=200, max_depth=4, early_stopping=False)
    return ClassifierHash(trees)


def _decide(classifier: Any, F: Matrix) -> Array:
    """Return decision values (n,), positive for the class +1."""
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(F), np.float64)
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(F)[:, 1] - 0.5, np.float64)
    return np.asarray(classifier.predict(F), np.float64)
