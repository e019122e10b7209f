"""Open what is served: a model and a store."""

from typing import TYPE_CHECKING

from auxhash import stores
from auxhash.serve.limits import Limits
from auxhash.serve.service import Service

if TYPE_CHECKING:  # imported where they are needed: codes alone are served sooner
    from auxhash.learn.encoder import Encoder
    from auxhash.learn.hasher import Hasher
    from auxhash.serve.pictures import Pictures


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
    return checked(url, found, pictures, limits, n_jobs)


def checked(
    url: str,
    found: "Encoder | Hasher",
    pictures: "Pictures | None",
    limits: Limits | None,
    n_jobs: int | None,
) -> Service:
    """Open a store for a model; closed again if both do not fit together."""
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
