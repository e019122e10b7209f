"""Affinities: which pairs of points are similar or dissimilar, and how much they count.

Draws n -> m are folded into unordered pairs i < j with a weight: how often the pair was drawn.
"""

from auxhash.mac.affinity.affinity import Affinity, Kind, convert
from auxhash.mac.affinity.build import from_labels, from_neighbors, from_pairs

__all__ = ["Affinity", "Kind", "convert", "from_labels", "from_neighbors", "from_pairs"]
