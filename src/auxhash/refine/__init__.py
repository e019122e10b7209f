"""The smooth core, and refinement by it: lower L(h) after MAC.

gradient    steps down an objective, for any hash function whose outputs have gradients
pairs       the objective of an affinity: its loss over given or fresh pairs
refinement  from MAC's best step on
"""

from auxhash.refine.refinement import REPORTS, Refine

__all__ = ["REPORTS", "Refine"]
