"""auxhash: learn short binary codes for similarity search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auxhash import (
        affinity,
        baselines,
        codes,
        datasets,
        hashfunctions,
        index,
        losses,
        mac,
        metrics,
        paper,
        refine,
        stores,
        zstep,
    )
    from auxhash.affinity import Affinity
    from auxhash.estimators import EndToEndHash, MACHash, TwoStepHash
    from auxhash.experiments.compare import compare
    from auxhash.hasher import Hasher
    from auxhash.index import ApproximateIndex, HammingIndex, NamedIndex
    from auxhash.models.loading import load
    from auxhash.models.onnxgraph import export_onnx
    from auxhash.neighborhash import NeighborHash
    from auxhash.refine import Refine
    from auxhash.storage.encoding import register
    from auxhash.storage.modelfile import ModelFileError
    from auxhash.training.interrupt import TrainingInterrupted
    from auxhash.training.validation import Validation

__version__ = "0.1.0"

# Loaded at first use, so that `import auxhash` stays quick.
_HOMES = {
    "Affinity": "auxhash.affinity",
    "ApproximateIndex": "auxhash.index",
    "EndToEndHash": "auxhash.estimators",
    "HammingIndex": "auxhash.index",
    "Hasher": "auxhash.hasher",
    "MACHash": "auxhash.estimators",
    "ModelFileError": "auxhash.storage.modelfile",
    "NamedIndex": "auxhash.index",
    "NeighborHash": "auxhash.neighborhash",
    "Refine": "auxhash.refine",
    "TrainingInterrupted": "auxhash.training.interrupt",
    "TwoStepHash": "auxhash.estimators",
    "Validation": "auxhash.training.validation",
    "compare": "auxhash.experiments.compare",
    "export_onnx": "auxhash.models.onnxgraph",
    "load": "auxhash.models.loading",
    "register": "auxhash.storage.encoding",
}
_MODULES = (
    "affinity",
    "baselines",
    "codes",
    "datasets",
    "hashfunctions",
    "index",
    "losses",
    "mac",
    "metrics",
    "paper",
    "refine",
    "stores",
    "torch",  # not in __all__: it needs PyTorch
    "zstep",
)

__all__ = [
    "Affinity",
    "ApproximateIndex",
    "EndToEndHash",
    "HammingIndex",
    "Hasher",
    "MACHash",
    "ModelFileError",
    "NamedIndex",
    "NeighborHash",
    "Refine",
    "TrainingInterrupted",
    "TwoStepHash",
    "Validation",
    "affinity",
    "baselines",
    "codes",
    "compare",
    "datasets",
    "export_onnx",
    "hashfunctions",
    "index",
    "load",
    "losses",
    "mac",
    "metrics",
    "paper",
    "refine",
    "register",
    "stores",
    "zstep",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"auxhash.{name}")
    raise AttributeError(f"module 'auxhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
