"""Handwritten digits as a service: a model and a store, made at the first start and kept."""

from pathlib import Path

import numpy as np
from PIL import Image

from auxhash.compute.arrays import Array
from auxhash.compute.version import __version__
from auxhash.experiments import datasets
from auxhash.experiments.datasets.fetch import cache
from auxhash.files.images import ImageFeature, Picture
from auxhash.learn import loading
from auxhash.learn.estimators import MACHash
from auxhash.learn.hasher import Hasher
from auxhash.model.identity import DIGEST, in_words
from auxhash.model.modelfile import ModelFileError
from auxhash.serve.limits import Limits
from auxhash.serve.pictures import Pictures
from auxhash.serve.service import Service
from auxhash.serve.start import open_service
from auxhash.stores import file_url

BITS, SEED = 32, 0  # of the model
SIDE, WHITE = 8, 16  # of a digit: pixels, and the brightest of them


def service(limits: Limits | None = None) -> Service:
    """Open the digits' model and store, both in the data folder; learn and fill them once."""
    folder = cache.folder() / "serve"
    model = _digits_model(folder)
    # Codes belong to the model that made them.
    url = file_url("sqlite", folder / f"digits-{model.fingerprint_[:12]}.db")
    opened = open_service(url, model, Pictures(ImageFeature("digits", ink)), limits)
    if not len(opened.store):
        base = datasets.load("digits", seed=SEED).base
        assert base.X is not None
        assert base.y is not None
        payloads = [{"digit": int(digit)} for digit in base.y]
        X = base.X.astype(np.float64)
        codes, mark = model.encode(X), model.fingerprint
        opened.store.upsert(np.arange(len(X)), codes, X, payloads, fingerprint=mark)
    return opened


def ink(pictures: list[Picture]) -> Array:
    """Digits, white on black, as the data set has them: 64 numbers from 0 to 16."""
    small = [
        np.asarray(Image.fromarray(picture).convert("L").resize((SIDE, SIDE), Image.Resampling.BOX))
        for picture in pictures
    ]
    return np.stack(small).reshape(len(small), -1) * (WHITE / 255)


def _digits_model(folder: Path) -> Hasher:
    train = datasets.load("digits", seed=SEED).train
    assert train.X is not None
    # Named by all that it is made of: another version learns its own.
    identity = in_words([train.X, train.y, BITS, SEED, __version__]).removeprefix(DIGEST)
    path = folder / f"digits-{identity[:12]}.safetensors"
    try:
        kept = loading.load(path)
        if isinstance(kept, Hasher):
            return kept
    except (FileNotFoundError, ModelFileError):
        pass
    model = MACHash(n_bits=BITS, random_state=SEED).fit(train.X, train.y)
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return model
