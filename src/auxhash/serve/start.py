"""What is served: a model and a store of the user's, or handwritten digits."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auxhash import stores
from auxhash.compute.version import __version__
from auxhash.serve.limits import Limits
from auxhash.serve.service import Service

if TYPE_CHECKING:  # imported where they are needed: codes alone are served sooner
    from auxhash.files.images import Picture
    from auxhash.learn.hasher import Hasher
    from auxhash.learn.encoder import Encoder
    from auxhash.serve.pictures import Pictures

BITS, SEED = 32, 0  # of the digits' model
SIDE, WHITE = 8, 16  # of a digit: pixels, and the brightest of them


def service(
    url: str,
    model: str | None = None,
    limits: Limits | None = None,
    n_jobs: int | None = None,
    own: str | None = None,
) -> Service:
    """The store at a URL, which is made if there is a model; `own` is the user's image feature."""
    if model is None:
        return Service(stores.open(url, n_jobs=n_jobs), limits=limits)
    from auxhash.learn import encoder

    found = encoder.load(model)
    found.n_jobs = n_jobs
    pictures = _pictures(getattr(found, "image_feature_", None), own, n_jobs)
    return _checked(url, found, pictures, limits, n_jobs)


def digits(limits: Limits | None = None, n_jobs: int | None = None) -> Service:
    """Handwritten digits: a model, learnt once by each version, and a store, kept on disk."""
    from auxhash.experiments import datasets
    from auxhash.experiments.datasets.fetch import cache
    from auxhash.files.images import ImageFeature
    from auxhash.serve.pictures import Pictures

    folder = cache.folder() / "serve"
    found = _digits_model(folder, n_jobs)
    # Codes belong to the model that made them.
    url = f"sqlite:///{folder / f'digits-{found.fingerprint_[:12]}.db'}"
    made = _checked(url, found, Pictures(ImageFeature("digits", ink)), limits, n_jobs)
    if not len(made.store):
        base = datasets.load("digits", seed=SEED).base
        assert base.X is not None
        assert base.y is not None
        payloads = [{"digit": int(digit)} for digit in base.y]
        X = base.X.astype(np.float64)
        made.store.upsert(np.arange(len(X)), found.encode(X), X, payloads)
    return made


def ink(pictures: "list[Picture]") -> NDArray[np.float64]:
    """Digits, white on black, as the data set has them: 64 numbers from 0 to 16."""
    from PIL import Image

    small = [
        np.asarray(Image.fromarray(picture).convert("L").resize((SIDE, SIDE), Image.Resampling.BOX))
        for picture in pictures
    ]
    return np.stack(small).reshape(len(small), -1) * (WHITE / 255)


def _checked(
    url: str,
    found: "Encoder | Hasher",
    pictures: "Pictures | None",
    limits: Limits | None,
    n_jobs: int | None,
) -> Service:
    store = stores.open(url, found.n_bits, n_jobs)
    try:
        return Service(store, found, pictures, limits)
    except BaseException:
        store.close()
        raise


def _pictures(feature: str | None, own: str | None, n_jobs: int | None) -> "Pictures | None":
    if feature is None:
        if own is not None:
            raise ValueError("--features is for models of pictures, and this is none")
        return None
    if own is None and not feature.startswith("gist:"):
        return None  # a name in a file is no reason to run code: images are refused
    from auxhash.files.images import remembered
    from auxhash.serve.pictures import Pictures

    return Pictures(remembered(feature, own, n_jobs))


def _digits_model(folder: Path, n_jobs: int | None) -> "Hasher":
    from auxhash.experiments import datasets
    from auxhash.learn.estimators import MACHash
    from auxhash.learn import loading
    from auxhash.model.identity import DIGEST, in_words
    from auxhash.model.modelfile import ModelFileError

    train = datasets.load("digits", seed=SEED).train
    assert train.X is not None
    # Named by all that it is made of: another version learns its own.
    identity = in_words([train.X, train.y, BITS, SEED, __version__]).removeprefix(DIGEST)
    path = folder / f"digits-{identity[:12]}.safetensors"
    try:
        return loading.load(path)
    except (FileNotFoundError, ModelFileError):
        pass
    made = MACHash(n_bits=BITS, random_state=SEED, n_jobs=n_jobs).fit(train.X, train.y)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    return made
