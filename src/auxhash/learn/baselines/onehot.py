"""OneHot: the code is the predicted class, the baseline that supervised hashing has to beat."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from auxhash.codes import Codes
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Supervised
from auxhash.model.functions import Codewords


def class_predictor(classifier: object, rng: np.random.Generator) -> Any:
    """A clone of the classifier, or logistic regression of standardised features if None."""
    if classifier is None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, tol=1e-3))
    if not (hasattr(classifier, "fit") and hasattr(classifier, "get_params")):
        raise TypeError(
            f"classifier must be a scikit-learn classifier, got {type(classifier).__name__}"
        )
    model = clone(classifier)
    seeds = {
        name: int(rng.integers(2**31))
        for name, value in sorted(model.get_params().items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return model.set_params(**seeds)


def codewords(n_classes: int, n_bits: int) -> Codes:
    """One codeword per class (n_classes, n_bits): one-hot, repeated to fill the bits.

    With fewer bits than classes, it is the number of the class in binary, repeated likewise; with
    too few bits even for that, classes share codewords, and a warning says so.
    """
    bit = np.arange(n_bits)
    number = np.arange(n_classes)[:, None]
    if n_bits >= n_classes:
        member = number == bit % n_classes
    else:
        needed = max(1, int(np.ceil(np.log2(n_classes))))
        if needed > n_bits:
            warnings.warn(
                f"n_bits={n_bits} bits cannot tell {n_classes} classes apart: some share a "
                "codeword",
                stacklevel=2,
            )
        member = (number >> bit % min(needed, n_bits)) & 1
    return np.where(member, 1, -1).astype(np.int8)


@dataclass(eq=False, repr=False)
class OneHot(Supervised):
    """The codeword of the class that a classifier predicts.

    Args:
        n_bits: any number; with at least n_classes the codewords are one-hot.
        classifier: a scikit-learn classifier; None is logistic regression of standardised X.
        random_state: seed of a classifier that has none.

    Attributes:
        classifier_: the fitted classifier.
        codewords_: of its classes, (n_classes, n_bits).
    """

    n_bits: int = 32
    classifier: object = None
    random_state: RandomState = None

    classifier_: Any = field(init=False)
    codewords_: Codes = field(init=False)

    def _learn(self, X: Array, y: AnyArray, rng: np.random.Generator) -> None:
        self.classifier_ = class_predictor(self.classifier, rng).fit(X, y)
        self.codewords_ = codewords(len(self.classifier_.classes_), self.n_bits)

    def _learnt_function(self) -> Codewords:
        return Codewords(self.classifier_, self.codewords_)
