"""Open what is served: a model and a store."""

from typing import TYPE_CHECKING

from auxhash.serve.limits import Limits
from auxhash.serve.service import Service
from auxhash.stores import open as open_store

if TYPE_CHECKING:  # imported where they are needed: codes alone are served sooner
    from auxhash.learn.hasher import Hasher
    from auxhash.model.model import Model
    from auxhash.serve.pictures import Pictures


def service(
    url: str,
    model: str | None = None,
    limits: Limits | None = None,
    own: str | None = None,
    old_model: str | None = None,
    any_model: bool = False,
    n_bits: int | None = None,
    query_model: str | None = None,
) -> Service:
    """Open the store at a URL, created if there is a model or `n_bits`.

    `own` is the user's image feature. `old_model`, `any_model` and the asker, that of
    `query_model`: see `Service`.
    """
    if model is None:
        return Service(open_store(url, n_bits), limits=limits)
    from auxhash.learn import encoder

    fitted = encoder.load(model)
    old = None if old_model is None else encoder.load(old_model)
    pictures = _pictures(fitted.image_feature, own)
    asker = None if query_model is None else encoder.load(query_model)
    return open_service(url, fitted, pictures, limits, old, any_model, asker)


def open_service(
    url: str,
    model: "Model | Hasher",
    pictures: "Pictures | None",
    limits: Limits | None,
    old: "Model | Hasher | None" = None,
    any_model: bool = False,
    asker: "Model | Hasher | None" = None,
) -> Service:
    """Open a store for a model; it is closed again if the two do not fit together."""
    store = open_store(url, model.n_bits)
    try:
        return Service(store, model, pictures, limits, old, any_model, asker)
    except BaseException:
        store.close()
        raise


def _pictures(feature: str | None, own: str | None) -> "Pictures | None":
    if feature is None:
        if own is not None:
            raise ValueError("--features is for models of pictures, and this model is not one")
        return None
    if own is None and not feature.startswith("gist:"):
        return None  # a name in a file is no reason to run code: images are refused
    from auxhash.files.images import remembered
    from auxhash.serve.pictures import Pictures

    return Pictures(remembered(feature, own))
