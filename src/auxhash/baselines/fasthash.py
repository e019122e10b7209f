"""FastHash (Lin et al. 2014): two-step hashing, the codes from graph cuts."""

from typing import Any

from auxhash.baselines.stagewise import TwoStepBaseline
from auxhash.draws import RandomState


class FastHash(TwoStepBaseline):
    """Two-step hashing with the cut solver, for boosted trees above all.

    Args:
        n_bits: any number.
        loss: "ksh", "esplh", "bre", "ee", "hinge" or a function of (d, y, b).
        hash_function: "linear", "rbf", "trees" (200 boosted ones of depth 4) or a scikit-learn
            classifier, cloned for every bit.
        stagewise: True trains a bit's classifier before the codes of the next bit are inferred;
            False infers all codes first.
        n_similar, n_dissimilar: kappa+ and kappa-, drawn for each point; None takes all.
        max_sweeps: passes over the blocks of a bit (stagewise), or over the bits.
        C: the SVM's cost of a margin violation.
        random_state: seed, Generator or RandomState.
        n_jobs: threads; None takes every core.

    Attributes: as of `auxhash.TwoStepHash`.
    """

    z_step = "cut"

    def __init__(
        self,
        n_bits: int = 32,
        loss: Any = "ksh",
        hash_function: Any = "linear",
        stagewise: bool = True,
        n_similar: int | None = 100,
        n_dissimilar: int | None = 500,
        max_sweeps: int = 2,
        C: float = 100.0,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.hash_function = hash_function
        self.stagewise = stagewise
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.max_sweeps = max_sweeps
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs
