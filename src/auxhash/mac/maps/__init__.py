"""Continuous maps in place of codes (sec. 5): MAC with an embedding as Z step.

attraction  the affinities of points that belong together
repulsion   the sum over all pairs of points, exact or on a grid
energy      E(Z): elastic embedding and t-SNE
path        the algorithm, as a generator of steps
"""

from auxhash.mac.maps.energy import LOSSES, Energy, MapLoss
from auxhash.mac.maps.path import MapState, MapStep, Path, Regression, lowest, principal, z_step

__all__ = [
    "LOSSES",
    "Energy",
    "MapLoss",
    "MapState",
    "MapStep",
    "Path",
    "Regression",
    "lowest",
    "principal",
    "z_step",
]
