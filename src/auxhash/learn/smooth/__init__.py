"""The smooth core, and refinement by it: lower L(h) after MAC.

gradient    gradient steps on an objective, for any hash function whose outputs have gradients
pairs       the objective of an affinity: its loss over given or fresh pairs
rank        the objective of similar points: their rank among all points
slopes      its slopes and gradients, of the few points that matter where most are far away
tables      the same rank by tables that queries learn
classes     the objective of classes: their codes as far apart as they can be
similar     similarity of points
refinement  the steps that follow MAC, starting from its best step
"""

from auxhash.learn.smooth.refinement import N_REPORTS, Refine

__all__ = ["N_REPORTS", "Refine"]
