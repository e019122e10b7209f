"""Load any saved estimator."""

import os
from collections.abc import Sequence
from typing import Any

from auxhash.compute.version import __version__
from auxhash.learn import baselines, estimators, neighborhash
from auxhash.learn.hasher import Hasher
from auxhash.model import modelfile
from auxhash.model.encoding import class_names, decode
from auxhash.model.fitted import check_consistent
from auxhash.model.modelfile import ModelFileError, StoredModel


def load(path: str | os.PathLike[str], trusted: Sequence[str] = (), module: Any = None) -> Hasher:
    """Load the estimator that `save` wrote: same parameters, same codes.

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
    unstored = _unstored_fields(module)
    model = modelfile.read(path)
    try:
        hasher = _hasher(model, trusted, unstored)
        check_consistent(hasher)
    except ImportError:
        raise
    except Exception as error:  # of any type: parts that do not fit together fail anywhere
        written = f" (of auxhash {model.package})" if model.package != __version__ else ""
        raise ModelFileError(f"{path}{written} cannot be loaded: {error}") from error
    return hasher


def _unstored_fields(module: Any) -> dict[str, object]:
    """Return the fields of a hash function that the caller gives, since no file holds them."""
    if module is None:
        return {}
    from auxhash.learn.torch import ModuleHash  # only where there is a module is there PyTorch

    hash_function = module if isinstance(module, ModuleHash) else ModuleHash(module)
    return hash_function.unstored()


def _hasher(model: StoredModel, trusted: Sequence[str], unstored: dict[str, object]) -> Hasher:
    if model.kind in baselines.__all__:
        cls: Any = getattr(baselines, model.kind)
    elif model.kind in ("MACHash", "TwoStepHash", "EndToEndHash"):
        cls = getattr(estimators, model.kind)
    elif model.kind == "NeighborHash":
        cls = neighborhash.NeighborHash
    else:
        raise ValueError(f"it holds {model.kind!r}, which is no estimator of auxhash")
    if "module" not in unstored and "ModuleHash" in class_names(model.content):
        raise ValueError(
            "it holds the weights of a PyTorch module, and not the module itself, which is code: "
            "give it, as in auxhash.load(path, module=...)"
        )
    content = decode(model.content, model.arrays, trusted, unstored=unstored)
    hasher: Hasher = cls(**content["parameters"])
    for name, value in content["learnt"].items():
        if hasattr(cls, name) or name in content["parameters"]:
            raise ValueError(f"{name} is nothing that {model.kind} learns")
        setattr(hasher, name, value)
    return hasher
