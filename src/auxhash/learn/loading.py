"""Load any saved estimator or model."""

import os
from collections.abc import Sequence
from typing import Any

from auxhash.learn import baselines, estimators, macmap
from auxhash.learn.hasher import Hasher
from auxhash.learn.macmap import MACMap
from auxhash.learn.neighborhash import NeighborHash
from auxhash.learn.querytables import QueryTables
from auxhash.model import modelfile
from auxhash.model.encoding import decode, parts
from auxhash.model.fitted import check_consistent, resolved
from auxhash.model.model import KIND, PART, Model, check_module
from auxhash.model.modelfile import StoredModel


def load(
    path: str | os.PathLike[str], trusted: Sequence[str] = (), module: object = None
) -> Hasher | Model | MACMap:
    """Load what `save` wrote: an estimator, with the same parameters and codes, or a model alone.

    Nothing in the file is executed. Its content is checked: checksums, types, shapes, that numbers
    are finite, and that the parts fit together. Of scikit-learn classifiers only what compiled code
    reads without a check of bounds is checked, and this of the usual ones.

    Args:
        trusted: full names of the types inside any other scikit-learn estimator: a forged one could
            crash the process. Only for files of people you trust.
        module: the PyTorch module of a model that was learnt with one
            (`auxhash.torch.ModuleHash`): the file holds its weights alone. Its own weights are not
            used, and it stays as it is; the model computes on the device that it is on. Where
            callables belong to it, give all of them: `module=ModuleHash(net, to_input=...)`.

    Raises ModelFileError for a file that is foreign, damaged, newer than this package or not to
    be trusted; OSError; ImportError where skops is needed but missing.
    """
    unstored = {**_unstored_fields(module), "n_jobs": None}
    stored = modelfile.read(path)
    with modelfile.reading(path, stored):
        if stored.kind == KIND:
            return Model.stored_in(stored, trusted, unstored)
        if stored.kind == macmap.KIND:
            return MACMap.stored_in(stored, trusted, unstored)
        return _hasher(stored, trusted, unstored)


def as_model(loaded: Hasher | Model | MACMap, path: str | os.PathLike[str]) -> Model:
    """Return the model that was loaded from a file; raises ValueError for a map."""
    if isinstance(loaded, MACMap):
        raise ValueError(f"{path} holds a map (MACMap), which makes no codes")
    return loaded if isinstance(loaded, Model) else loaded.model_


def _unstored_fields(module: object) -> dict[str, object]:
    """Return the fields of a hash function that the caller gives, since no file holds them."""
    if module is None:
        return {}
    from auxhash.learn.torch import ModuleHash  # only where there is a module is there PyTorch

    hash_function = module if isinstance(module, ModuleHash) else ModuleHash(module)
    return hash_function.unstored()


def _hasher(stored: StoredModel, trusted: Sequence[str], unstored: dict[str, object]) -> Hasher:
    cls, content = _class(stored.kind), parts(stored.content)
    check_module(stored, unstored)
    model, arrays = None, stored.arrays
    if PART in content:
        model = Model.stored_in(stored, trusted, unstored)
        arrays = {name: a for name, a in arrays.items() if not name.startswith(f"{PART}.")}
        content = {name: part for name, part in content.items() if name != PART}
    values = decode({"dict": content}, arrays, trusted, unstored=unstored)
    learnt = values["learnt"]
    if model is not None:
        learnt = resolved(learnt, model.hash_function)
    elif "fingerprint_" in learnt:  # as format 1 called it
        learnt["data_fingerprint_"] = learnt.pop("fingerprint_")
    hasher: Hasher = cls(**values["parameters"])
    for name, value in learnt.items():
        if hasattr(cls, name) or name in values["parameters"]:
            raise ValueError(f"{stored.kind} has no learnt attribute {name}")
        setattr(hasher, name, value)
    if isinstance(hasher, (NeighborHash, QueryTables)):
        hasher.tables_ = None if model is None else model.table_function
    check_consistent(hasher)
    if model is not None and model.fingerprint != hasher.model_.fingerprint:
        raise ValueError(f"its model is not that of the {stored.kind} beside it")
    return hasher


def _class(kind: str) -> Any:
    if kind in baselines.__all__:
        return getattr(baselines, kind)
    if kind in ("MACHash", "TwoStepHash", "EndToEndHash"):
        return getattr(estimators, kind)
    if kind == "NeighborHash":
        return NeighborHash
    if kind == "QueryTables":
        return QueryTables
    raise ValueError(f"it holds {kind!r}, which is no estimator of auxhash")
