"""Summary of a model file for people, read without scikit-learn where possible."""

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
from auxhash.model.encoding import Json
from auxhash.model.modelfile import StoredModel


@dataclass(frozen=True)
class Summary:
    kind: str
    package: str  # the version of auxhash that wrote the file
    n_bits: int
    n_features: int
    image_feature: str | None
    parameters: Mapping[str, object]
    codes: Packed  # of the training points
    fingerprint: str
    loss: float | None
    history: list[Any]  # steps, whose attributes are numbers


def summary(path: str | os.PathLike[str]) -> Summary:
    """Summarise the model in a file; raises as `auxhash.load`."""
    model, loaded = modelfile.read(path), load_encoder(path)
    if isinstance(loaded, Encoder):
        result = _read(model, loaded)
        if result is not None:
            return result
        from auxhash.learn.loading import load

        loaded = load(path)
    return Summary(
        type(loaded).__name__,
        model.package,
        int(loaded.n_bits),
        loaded.n_features_in_,
        getattr(loaded, "image_feature_", None),
        loaded.get_params(deep=False),
        loaded.codes_,
        loaded.fingerprint_,
        getattr(loaded, "loss_", None),
        getattr(loaded, "history_", []),
    )


def _read(model: StoredModel, encoder: Encoder) -> Summary | None:
    """Summarise from the file alone; None where it does not hold what a fit leaves."""

    def read(coded: Json) -> Any:
        return encoding.decode(coded, model.arrays, part=True)

    try:
        content = encoding.parts(model.content)
        learnt = encoding.parts(content["learnt"])
        result = Summary(
            model.kind,
            model.package,
            encoder.n_bits,
            encoder.n_features_in_,
            encoder.image_feature_,
            read(content["parameters"]),
            as_packed(read(learnt["codes_"]), "codes_", encoder.n_bits),
            read(learnt["fingerprint_"]),
            read(learnt["loss_"]) if "loss_" in learnt else None,
            [_step(coded) for coded in learnt["history_"]],
        )
    except Exception:  # of any type: the estimator fails as well, and says why
        return None
    number = isinstance(result.loss, (int, float, np.number)) or model.kind == "NeighborHash"
    plain = isinstance(result.fingerprint, str) and number
    return result if plain and len(result.codes) and result.history else None


def _step(coded: Json) -> SimpleNamespace:
    [_, values] = coded["object"]
    read = {name: encoding.decode(value, {}) for name, value in values.items()}
    if not all(isinstance(value, (int, float)) for value in read.values()):
        raise ValueError("a step holds what is no number")
    return SimpleNamespace(**read)
