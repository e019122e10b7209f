"""Hash functions: maps from features to codes, and the h step that trains them."""

from auxhash.hashfunctions.classifiers import ClassifierHash
from auxhash.hashfunctions.features import RadialBasis, Scaled, Unit
from auxhash.hashfunctions.linear import SVMHash, linear, rbf
from auxhash.hashfunctions.network import NetworkHash, network
from auxhash.hashfunctions.step import (
    HashFunction,
    SmoothHashFunction,
    alternatives,
    check_started,
    codes,
    decided,
    get,
    given,
    h_step,
    is_averageable,
    is_shared,
    is_smooth,
    is_started_linearly,
    outputs,
    packed,
    renewed,
    started,
    training_features,
)

__all__ = [
    "ClassifierHash",
    "HashFunction",
    "NetworkHash",
    "RadialBasis",
    "SVMHash",
    "Scaled",
    "SmoothHashFunction",
    "Unit",
    "alternatives",
    "check_started",
    "codes",
    "decided",
    "get",
    "given",
    "h_step",
    "is_averageable",
    "is_shared",
    "is_smooth",
    "is_started_linearly",
    "linear",
    "network",
    "outputs",
    "packed",
    "rbf",
    "renewed",
    "started",
    "training_features",
]
