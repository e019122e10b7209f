"""Load any saved estimator."""

import os
from collections.abc import Sequence
from typing import Any

from auxhash import __version__, baselines, estimators, neighborhash
from auxhash.hasher import Hasher
from auxhash.storage import modelfile
from auxhash.storage.encoding import decode
from auxhash.storage.fitted import check_whole
from auxhash.storage.modelfile import ModelFileError, StoredModel


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Hasher:
    """The estimator that `save` wrote: same parameters, same codes.

    Nothing in the file is executed. Its content is checked: checksums, types, shapes, that numbers
    are finite, and that the parts fit together.

    Args:
        trusted: full names of the types inside a scikit-learn estimator that auxhash cannot check:
            a forged one could crash the process. Only for files of people you trust.

    Raises ModelFileError for a file that is foreign, damaged, newer than this package or not to
    be trusted; OSError; ImportError where skops is needed but missing.
    """
    model = modelfile.read(path)
    try:
        hasher = _made(model, trusted)
        check_whole(hasher)
    except ImportError:
        raise
    except Exception as error:  # of any type: parts that do not fit together fail anywhere
        written = f" (of auxhash {model.package})" if model.package != __version__ else ""
        raise ModelFileError(f"{path}{written} cannot be loaded: {error}") from error
    return hasher


def _made(model: StoredModel, trusted: Sequence[str]) -> Hasher:
    if model.kind in baselines.__all__:
        cls: Any = getattr(baselines, model.kind)
    elif model.kind in ("MACHash", "TwoStepHash"):
        cls = getattr(estimators, model.kind)
    elif model.kind == "NeighborHash":
        cls = neighborhash.NeighborHash
    else:
        raise ValueError(f"it holds {model.kind!r}, which is no estimator of auxhash")
    content = decode(model.content, model.arrays, trusted)
    hasher: Hasher = cls(**content["parameters"])
    for name, value in content["learnt"].items():
        if hasattr(cls, name) or name in content["parameters"]:
            raise ValueError(f"{name} is nothing that {model.kind} learns")
        setattr(hasher, name, value)
    return hasher
