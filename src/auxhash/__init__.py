"""auxhash: learn short binary codes for similarity search."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auxhash.compute.version import __version__ as __version__

if TYPE_CHECKING:
    from auxhash import codes, mac, stores
    from auxhash.compute.registry import register
    from auxhash.experiments import datasets
    from auxhash.experiments.compare import compare
    from auxhash.learn import baselines, paper
    from auxhash.learn import smooth as refine
    from auxhash.learn.estimators import EndToEndHash, MACHash, TwoStepHash
    from auxhash.learn.hasher import Hasher
    from auxhash.learn.loading import load
    from auxhash.learn.macmap import MACMap
    from auxhash.learn.neighborhash import NeighborHash
    from auxhash.learn.querytables import QueryTables
    from auxhash.learn.smooth import Refine
    from auxhash.learn.training.interrupt import TrainingInterrupted
    from auxhash.learn.training.validation import Validation
    from auxhash.mac import affinity, hashfunctions, losses, zstep
    from auxhash.mac.affinity import Affinity
    from auxhash.model.model import Model
    from auxhash.model.modelfile import ModelFileError
    from auxhash.model.onnxgraph import export_onnx
    from auxhash.search import index, metrics
    from auxhash.search.index import ApproximateIndex, HammingIndex, NamedIndex
    from auxhash.serve import client

# Loaded at first use, so that `import auxhash` stays quick.
_HOMES = {
    "Affinity": "auxhash.mac.affinity",
    "ApproximateIndex": "auxhash.search.index",
    "EndToEndHash": "auxhash.learn.estimators",
    "HammingIndex": "auxhash.search.index",
    "Hasher": "auxhash.learn.hasher",
    "MACHash": "auxhash.learn.estimators",
    "MACMap": "auxhash.learn.macmap",
    "Model": "auxhash.model.model",
    "ModelFileError": "auxhash.model.modelfile",
    "NamedIndex": "auxhash.search.index",
    "NeighborHash": "auxhash.learn.neighborhash",
    "QueryTables": "auxhash.learn.querytables",
    "Refine": "auxhash.learn.smooth",
    "TrainingInterrupted": "auxhash.learn.training.interrupt",
    "TwoStepHash": "auxhash.learn.estimators",
    "Validation": "auxhash.learn.training.validation",
    "compare": "auxhash.experiments.compare",
    "export_onnx": "auxhash.model.onnxgraph",
    "load": "auxhash.learn.loading",
    "register": "auxhash.compute.registry",
}
# Public modules by their short names: `from auxhash.zstep import Cut` and `auxhash.zstep.Cut` work.
_MODULES = {
    "affinity": "auxhash.mac.affinity",
    "baselines": "auxhash.learn.baselines",
    "client": "auxhash.serve.client",
    "codes": "auxhash.codes",
    "datasets": "auxhash.experiments.datasets",
    "hashfunctions": "auxhash.mac.hashfunctions",
    "index": "auxhash.search.index",
    "losses": "auxhash.mac.losses",
    "mac": "auxhash.mac",
    "metrics": "auxhash.search.metrics",
    "paper": "auxhash.learn.paper",
    "refine": "auxhash.learn.smooth",
    "stores": "auxhash.stores",
    "torch": "auxhash.learn.torch",  # not in __all__: it needs PyTorch
    "zstep": "auxhash.mac.zstep",
}

__all__ = [
    "Affinity",
    "ApproximateIndex",
    "EndToEndHash",
    "HammingIndex",
    "Hasher",
    "MACHash",
    "MACMap",
    "Model",
    "ModelFileError",
    "NamedIndex",
    "NeighborHash",
    "QueryTables",
    "Refine",
    "TrainingInterrupted",
    "TwoStepHash",
    "Validation",
    "affinity",
    "baselines",
    "client",
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
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'auxhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _ShortNames:
    """Finder and loader of a public module by its short name: the module itself, no second copy."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        home = _home(name)
        return None if home is None else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(str(_home(module.__name__)))


def _home(name: str) -> str | None:
    """The full name of a module that a short one stands for; None for any other name."""
    top, _, rest = name.removeprefix("auxhash.").partition(".")
    home = _MODULES.get(top) if name.startswith("auxhash.") else None
    if home is None or home == f"auxhash.{top}":
        return None
    return f"{home}.{rest}" if rest else home


sys.meta_path.insert(0, _ShortNames())
