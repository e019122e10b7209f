"""SDH: supervised discrete hashing (Shen et al. 2015).

Good codes B make the classes Y linearly separable and are near to the hash function's outputs F P:

    min |Y - B W|^2 + lambda |W|^2 + nu |B - F P|^2   over B in {-1,+1}, W and P

F holds radial basis functions of X. W and P are regressions; the bits of B are solved in turn,
each exactly. The hash function is sign(F P).
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from auxhash.codes import sign
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Supervised
from auxhash.mac.hashfunctions import RadialBasis
from auxhash.model.functions import WeightedHash

RIDGE = 1e-8  # of the regression for P, relative: radial basis functions are nearly collinear
MAX_PASSES = 10  # over the bits, at most, per B step


@dataclass(eq=False, repr=False)
class SDH(Supervised):
    """Supervised discrete hashing. Any number of bits.

    Args:
        n_bits: length of the codes.
        n_anchors: number of centres of the radial basis functions, drawn from the training points.
        lam: lambda, the penalty on large W.
        nu: the penalty on codes that differ from the hash function's outputs.
        n_iter: number of rounds over the three steps.
        random_state: seed of the centres and the first codes.

    Attributes:
        map_: the radial basis functions.
        weights_: P (n_anchors, n_bits).
        objective_: the objective after each round.
    """

    n_bits: int = 32
    n_anchors: int = 1000
    lam: float = 1.0
    nu: float = 1e-5
    n_iter: int = 5
    random_state: RandomState = None

    map_: RadialBasis = field(init=False)
    weights_: Array = field(init=False)
    objective_: list[float] = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("n_anchors", self.n_anchors, 1)
        checks.integer("n_iter", self.n_iter, 1)
        checks.number("lam", self.lam, 0, strict=True)
        checks.number("nu", self.nu, 0, strict=True)

    def _learn(self, X: Array, y: AnyArray, rng: np.random.Generator) -> None:
        centres, codes = rng.spawn(2)
        self.map_ = RadialBasis(self.n_anchors).fit(X, centres)
        F = self.map_(X)
        classes, groups = np.unique(y, return_inverse=True)
        Y = np.eye(len(classes))[groups]
        B = sign(codes.standard_normal((len(X), self.n_bits))).astype(np.float64)
        gram = F.T @ F
        factor = cho_factor(gram + RIDGE * np.trace(gram) * np.eye(len(gram)))
        self.objective_ = []
        for _ in range(self.n_iter):
            P = cho_solve(factor, F.T @ B)
            W = np.linalg.solve(B.T @ B + self.lam * np.eye(self.n_bits), B.T @ Y)
            outputs = F @ P
            B = b_step(Y @ W.T + self.nu * outputs, W @ W.T, B)
            fit = np.square(Y - B @ W).sum() + self.lam * np.square(W).sum()
            self.objective_.append(float(fit + self.nu * np.square(B - outputs).sum()))
        self.weights_ = cho_solve(factor, F.T @ B)

    def _learnt_function(self) -> WeightedHash:
        return WeightedHash(self.map_, self.weights_)


def b_step(Q: Array, WW: Array, B: Array) -> Array:
    """Lower |B W|^2 - 2 tr(B'Q) over B in {-1,+1}, bit by bit, until none changes."""
    B = B.copy()
    for _ in range(MAX_PASSES):
        changed = False
        for k in range(B.shape[1]):
            rest = Q[:, k] - B @ WW[:, k] + B[:, k] * WW[k, k]
            new = np.where(rest == 0, B[:, k], np.sign(rest))
            changed = changed or bool((new != B[:, k]).any())
            B[:, k] = new
        if not changed:
            break
    return B
