"""ILH: independent Laplacian hashing (Carreira-Perpinan and Raziperchikolaei 2016).

The bits are learnt independently: each is two-step hashing of one bit, whose loss is -y z z'
summed over pairs, on a training set of its own (the form called ILHt). Only their training sets
make the bits differ, and that is enough.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np

from auxhash.codes import Codes, sign
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Pairwise
from auxhash.mac import affinity as affinities
from auxhash.mac import hashfunctions, zstep
from auxhash.mac.affinity import Affinity

LOSS = "ksh"  # for one bit, (z z' - y)^2 is 2 (-y z z') plus a constant


@dataclass(eq=False, repr=False)
class ILH(Pairwise):
    """Independent bits on disjoint training subsets. Any number of bits.

    Args:
        n_bits: length of the codes.
        n_subset: training points per bit. Subsets are disjoint as long as there are enough points;
            then all points are drawn from again. With n_subset points or fewer in all, the bits
            differ only by their draws of pairs and their starts.
        hash_function: "linear", "rbf", "network", "trees" or a scikit-learn classifier, cloned for
            every bit.
        z_step: "cut", "quad", "descent" or a solver.
        n_similar, n_dissimilar: kappa+ and kappa-, the points drawn for each point from its subset;
            None takes all.
        C: the SVM's cost of a margin violation.
        random_state: seed, Generator or RandomState.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        hash_function_: the learnt hash function.
        subsets_: the training points of each bit, (n_bits, n_subset).
    """

    n_bits: int = 32
    n_subset: int = 5000
    hash_function: object = "linear"
    z_step: str | zstep.Solver = "cut"
    n_similar: int | None = 100
    n_dissimilar: int | None = 500
    C: float = 100.0
    random_state: RandomState = None
    n_jobs: int | None = None

    hash_function_: hashfunctions.HashFunction = field(init=False)
    subsets_: Numbers = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("n_subset", self.n_subset, 2)
        checks.number("C", self.C, 0, strict=True)

    def _learn(
        self, X: Array, y: AnyArray | None, affinity: Affinity | None, rng: np.random.Generator
    ) -> None:
        cutting, centres, solving = rng.spawn(3)
        self.subsets_ = subsets(len(X), int(self.n_bits), self.n_subset, cutting)
        h = hashfunctions.get(self.hash_function, self.C).prepare(X, centres)
        F = h.features(X)
        ones = np.ones((self.subsets_.shape[1], self.n_bits), np.int8)
        h = h.refit(F[self.subsets_[0]], ones, np.arange(self.n_bits))
        for k, (rows, bit_rng) in enumerate(
            zip(self.subsets_, solving.spawn(self.n_bits), strict=True)
        ):
            Z = ones.copy()
            Z[:, k] = self._codes(rows, y, affinity, bit_rng)
            h = h.refit(F[rows], Z, np.array([k]))
        self.hash_function_ = h

    def _codes(
        self, rows: Numbers, y: AnyArray | None, affinity: Affinity | None, rng: np.random.Generator
    ) -> Codes:
        """The free codes of one bit, from its own training points."""
        draws, start, solving = rng.spawn(3)
        if affinity is not None:
            pairs = affinity.subset(rows)
            if not len(pairs):
                raise ValueError(f"affinity has no pairs among {len(rows)} points: raise n_subset")
        else:
            with warnings.catch_warnings():
                # A subset is often too small for kappa+ and kappa-: no reason to warn.
                warnings.filterwarnings("ignore", ".*points have fewer than n_")
                pairs = affinities.from_labels(
                    np.asarray(y)[rows], self.n_similar, self.n_dissimilar, draws
                )
        Z = sign(start.standard_normal((len(rows), 1)))
        problem = zstep.Problem(pairs, LOSS, 1)
        free = zstep.Penalty(Z, 0.0)
        solution = zstep.z_step(problem, Z, free, zstep.get(self.z_step), 2, solving)
        return solution.Z[:, 0]


def subsets(n: int, n_bits: int, size: int, rng: np.random.Generator) -> Numbers:
    """Subsets (n_bits, size) of 0..n-1, drawn in rounds of n // size disjoint subsets."""
    size = min(size, n)
    a_round = n // size
    rounds = [
        rng.permutation(n)[: a_round * size].reshape(a_round, size)
        for _ in range(-(-n_bits // a_round))
    ]
    return np.sort(np.concatenate(rounds)[:n_bits], axis=1)
