"""FastHash (Lin et al. 2014): two-step hashing with codes from graph cuts."""

from auxhash.learn.baselines.stagewise import TwoStepBaseline


class FastHash(TwoStepBaseline):
    """Two-step hashing with the cut solver, meant above all for boosted trees.

    Parameters and attributes are those of `TwoStepBaseline`.
    """

    z_step = "cut"
