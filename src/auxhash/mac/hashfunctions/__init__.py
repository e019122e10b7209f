"""Hash functions: maps from features to codes, and the h step that trains them."""

from auxhash.mac.hashfunctions.classifiers import ClassifierHash
from auxhash.mac.hashfunctions.features import RadialBasis, Scaled, Unit
from auxhash.mac.hashfunctions.linear import SVMHash, linear, rbf
from auxhash.mac.hashfunctions.network import NetworkHash, network
from auxhash.mac.hashfunctions.protocol import (
    BaseHash,
    HashFunction,
    SmoothHashFunction,
    is_shared,
    is_smooth,
    is_started_linearly,
    with_defaults,
)
from auxhash.mac.hashfunctions.step import (
    NotFiniteError,
    alternatives,
    check_started,
    codes,
    decided,
    encoded,
    get,
    h_step,
    outputs,
    packed,
    renewed,
    started,
    training_features,
)

__all__ = [
    "BaseHash",
    "ClassifierHash",
    "HashFunction",
    "NetworkHash",
    "NotFiniteError",
    "RadialBasis",
    "SVMHash",
    "Scaled",
    "SmoothHashFunction",
    "Unit",
    "alternatives",
    "check_started",
    "codes",
    "decided",
    "encoded",
    "get",
    "h_step",
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
    "with_defaults",
]
