"""auxhash: learn short binary codes for similarity search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auxhash import affinity, baselines, datasets, index, losses, metrics
    from auxhash.estimators import MACHash, TwoStepHash
    from auxhash.experiments.compare import compare
    from auxhash.index import ApproximateIndex, HammingIndex
    from auxhash.interrupt import TrainingInterrupted
    from auxhash.loading import load
    from auxhash.modelfile import ModelFileError
    from auxhash.onnxgraph import export_onnx

__version__ = "0.1.0"

# Loaded at first use, so that `import auxhash` stays quick.
_HOMES = {
    "ApproximateIndex": "auxhash.index",
    "HammingIndex": "auxhash.index",
    "MACHash": "auxhash.estimators",
    "ModelFileError": "auxhash.modelfile",
    "TrainingInterrupted": "auxhash.interrupt",
    "TwoStepHash": "auxhash.estimators",
    "compare": "auxhash.experiments.compare",
    "export_onnx": "auxhash.onnxgraph",
    "load": "auxhash.loading",
}
_MODULES = ("affinity", "baselines", "datasets", "index", "losses", "metrics")

__all__ = [
    "ApproximateIndex",
    "HammingIndex",
    "MACHash",
    "ModelFileError",
    "TrainingInterrupted",
    "TwoStepHash",
    "affinity",
    "baselines",
    "compare",
    "datasets",
    "export_onnx",
    "index",
    "load",
    "losses",
    "metrics",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"auxhash.{name}")
    raise AttributeError(f"module 'auxhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
