"""LogitLSH: random projections of class log-probabilities.

Unlike the predicted class, the log-probabilities also tell apart points of the same class.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Supervised
from auxhash.learn.baselines.onehot import class_predictor
from auxhash.model.functions import LogProbabilities, WeightedHash


@dataclass(eq=False, repr=False)
class LogitLSH(Supervised):
    """Random hyperplanes in the space of a classifier's log-probabilities.

    Args:
        n_bits: any number.
        classifier: a scikit-learn classifier with predict_proba; None is logistic regression of
            standardised X.
        random_state: seed of the hyperplanes, and of a classifier that has none.

    Attributes:
        classifier_: the fitted classifier.
        mean_: of the training points' log-probabilities, (n_classes,).
        hyperplanes_: (n_classes, n_bits).
    """

    n_bits: int = 32
    classifier: object = None
    random_state: RandomState = None

    classifier_: Any = field(init=False)
    mean_: Array = field(init=False)
    hyperplanes_: Array = field(init=False)

    def _learn(self, X: Array, y: AnyArray, rng: np.random.Generator) -> None:
        seeds, planes = rng.spawn(2)
        model = class_predictor(self.classifier, seeds)
        if not hasattr(model, "predict_proba"):
            raise TypeError(f"classifier needs predict_proba; {type(model).__name__} has none")
        self.classifier_ = model.fit(X, y)
        logits = LogProbabilities(self.classifier_)(X)
        self.mean_ = logits.mean(axis=0)
        self.hyperplanes_ = planes.standard_normal((logits.shape[1], self.n_bits))

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(LogProbabilities(self.classifier_, self.mean_), self.hyperplanes_)
