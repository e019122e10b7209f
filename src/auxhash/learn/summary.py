"""What a model file holds, for people to read, without scikit-learn where that can be avoided."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from auxhash.codes import Packed, as_packed
from auxhash.learn.encoder import Encoder
from auxhash.learn.encoder import load as load_encoder
from auxhash.model import encoding, modelfile
from auxhash.model.modelfile import StoredModel


@dataclass(frozen=True)
class Summary:
    kind: str
    package: str  # the version of auxhash that wrote the file
    n_bits: int
    n_features: int
    image_feature: str | None
    parameters: Mapping[str, Any]
    codes: Packed  # of the training points
    fingerprint: str
    loss: float | None
    history: list[Any]  # steps, whose attributes are numbers


def summary(path: str | os.PathLike[str]) -> Summary:
    """What the file holds; raises as `auxhash.load`."""
    model, found = modelfile.read(path), load_encoder(path)
    if isinstance(found, Encoder):
        told = _read(model, found)
        if told is not None:
            return told
        from auxhash.learn.loading import load

        found = load(path)
    return Summary(
        type(found).__name__,
        model.package,
        int(found.n_bits),
        found.n_features_in_,
        getattr(found, "image_feature_", None),
        found.get_params(deep=False),
        found.codes_,
        found.fingerprint_,
        getattr(found, "loss_", None),
        getattr(found, "history_", []),
    )


def _read(model: StoredModel, found: Encoder) -> Summary | None:
    """The same from the file alone, or None where it does not hold what a fit leaves."""

    def read(coded: Any) -> Any:
        return encoding.decode(coded, model.arrays, part=True)

    try:
        content = encoding.parts(model.content)
        learnt = encoding.parts(content["learnt"])
        told = Summary(
            model.kind,
            model.package,
            found.n_bits,
            found.n_features_in_,
            found.image_feature_,
            read(content["parameters"]),
            as_packed(read(learnt["codes_"]), "codes_", found.n_bits),
            read(learnt["fingerprint_"]),
            read(learnt["loss_"]) if "loss_" in learnt else None,
            [_step(coded) for coded in learnt["history_"]],
        )
    except Exception:  # of any type: the estimator fails as well, and says why
        return None
    number = isinstance(told.loss, (int, float, np.number)) or model.kind == "NeighborHash"
    plain = isinstance(told.fingerprint, str) and number
    return told if plain and len(told.codes) and told.history else None


def _step(coded: Any) -> SimpleNamespace:
    [_, values] = coded["object"]
    read = {name: encoding.decode(value, {}) for name, value in values.items()}
    if not all(isinstance(value, (int, float)) for value in read.values()):
        raise ValueError("a step holds what is no number")
    return SimpleNamespace(**read)
