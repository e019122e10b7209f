"""The stagewise form of two-step hashing, as in the authors' own programs.

For each bit in turn: infer its codes given the bits before it, train its classifier, and replace
the codes by the classifier's output, so that later bits make up for its mistakes. At bit k the loss
is that of codes of k bits, the bits so far.
"""

from dataclasses import dataclass

import numpy as np

from auxhash.codes import Codes, codes_to_words, sign
from auxhash.compute import checks, clock, threads
from auxhash.compute.arrays import Matrix
from auxhash.compute.random import RandomState
from auxhash.learn.estimators import AffinityHash
from auxhash.learn.training import Settings
from auxhash.mac import hashfunctions, loop, zstep
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.losses import LossLike
from auxhash.mac.zstep.start import next_bit


@dataclass(frozen=True)
class Stagewise(loop.MAC):
    """MAC whose two-step solution is found bit by bit, with `max_sweeps` passes per bit."""

    def two_step(
        self,
        problem: zstep.Problem,
        F: Matrix,
        h: HashFunction,
        Z: Codes,
        rng: np.random.Generator,
        free: bool,
    ) -> loop.Iterate:
        began = clock.seconds()
        Z = np.ones(Z.shape, np.int8)
        # Trained on the first codes, all +1, h has all bits from the beginning.
        h = h.refit(F, Z, np.arange(problem.n_bits))
        H = np.ones_like(Z)
        z_seconds, h_seconds = 0.0, clock.seconds() - began
        for k in range(problem.n_bits):
            began = clock.seconds()
            with threads.pool() as run:
                Z[:, k] = next_bit(
                    problem, codes_to_words(H), k, "absent", self.solver, self.max_sweeps, run, rng
                )
            between = clock.seconds()
            h = h.refit(F, Z, np.array([k]))
            H[:, k] = sign(h.decision(F)[:, k])
            z_seconds += between - began
            h_seconds += clock.seconds() - between
        loss = problem.loss(Z)
        return loop.Iterate(loop.State(h, H, Z, Z, None), loss, loss, z_seconds, h_seconds, 0)


@dataclass(eq=False, repr=False)
class TwoStepBaseline(AffinityHash):
    """Base of TSH and FastHash: two-step hashing, or its stagewise form.

    Args:
        n_bits: any number.
        loss: "ksh", "esplh", "bre", "ee", "hinge" or a function of (d, y, b).
        hash_function: "linear", "rbf", "network", "trees" (200 boosted ones of depth 4) or a
            scikit-learn classifier, cloned for every bit.
        stagewise: True trains a bit's classifier before the codes of the next bit are inferred;
            False infers all codes first.
        n_similar, n_dissimilar: kappa+ and kappa-, points drawn for each point; None takes all.
        max_sweeps: passes over the blocks of each bit (FastHash, stagewise), or over the bits.
        C: the SVM's cost of a margin violation.
        random_state: seed, Generator or RandomState.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes: those of `auxhash.TwoStepHash`.
    """

    n_bits: int = 32
    loss: LossLike = "ksh"
    hash_function: object = "linear"
    stagewise: bool = True
    n_similar: int | None = 100
    n_dissimilar: int | None = 500
    max_sweeps: int = 2
    C: float = 100.0
    random_state: RandomState = None
    n_jobs: int | None = None

    def _settings(self) -> Settings:
        solver = zstep.get(self.z_step)
        algorithm = loop.MAC(solver, max_sweeps=self.max_sweeps)
        if self.stagewise:
            # A second pass of quad would start where the first did, at the same eigenvector.
            passes = 1 if self.z_step == "quad" else self.max_sweeps
            algorithm = Stagewise(solver, max_sweeps=passes)
        return Settings(
            n_bits=int(self.n_bits),
            loss=self.loss,
            algorithm=algorithm,
            hash_function=hashfunctions.get(self.hash_function, self.C),
            n_similar=self.n_similar,
            n_dissimilar=self.n_dissimilar,
            two_step=True,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.flag("stagewise", self.stagewise)
