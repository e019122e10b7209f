"""TSH: two-step hashing (Lin et al. 2013) with codes from a relaxed quadratic program."""

from auxhash.learn.baselines.stagewise import TwoStepBaseline


class TSH(TwoStepBaseline):
    """Two-step hashing with the quad solver.

    Parameters and attributes are those of `TwoStepBaseline`.
    """

    z_step = "quad"
