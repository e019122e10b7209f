"""Encode the codes of a store again by another model, while searches go on with the old ones.

New codes are written beside the old ones, a batch per transaction, where no search finds them; the
last transaction lets them replace the old codes and sets the fingerprint. Which codes are missing
is read from the store: after an interruption at any point, the same call goes on.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from auxhash.codes import Packed
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.stores.ids import AnyIds, Id, check_different
from auxhash.stores.store import Models, ReencodingError, Store

POINTS_PER_BATCH = 2_000  # that are encoded in one transaction, while others wait to write


class CodeModel(Protocol):
    """A model: an estimator, or what `learn.encoder.load` gives."""

    @property
    def n_bits(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def encode(self, X: AnyArray) -> Packed: ...


def encode_again(
    store: Store,
    model: CodeModel,
    ids: ArrayLike | None = None,
    vectors: AnyArray | None = None,
    batch: int = POINTS_PER_BATCH,
    notify: Callable[[int], object] = lambda _: None,
) -> int:
    """Replace the codes of a store by those of another model; return how many were encoded now.

    Vectors that the store keeps are encoded, and for other points those with their `ids` here. With
    the model that the store has already, an unfinished change to another model is given up.

    Args:
        notify: called after each batch, with the number of points encoded so far.
    """
    extra, batch = _Vectors(ids, vectors), checks.integer("batch", batch, 1)
    if model.n_bits != store.n_bits:
        raise ArgumentError(
            f"the model makes codes of {model.n_bits} bits, and {store.url} holds codes of "
            f"{store.n_bits}: they need a store of their own, ?table=NAME"
        )
    if vectors is None and not store.keeps_points:
        raise ArgumentError(f"{store.url} keeps no vectors: give those of its points, with ids")
    fingerprint = model.fingerprint
    if not _begin(store, fingerprint):
        return 0
    n_encoded = 0
    last: Id | None = None  # of the batch before; None at the beginning
    while True:
        with store.changing():
            models = store._models()
            if models == Models(fingerprint):
                return n_encoded  # another program was quicker
            if models.upcoming != fingerprint:
                raise ReencodingError(
                    f"{store.url} is being encoded again by model {models.upcoming} now, and no "
                    f"longer by {fingerprint}"
                )
            names = store._unstaged(store._lowest() if last is None else last, batch)
            if len(names):
                store._stage(names, _encoded(store, model, names, extra))
            if last is None and len(names) < batch:  # complete: nobody can put more in meanwhile
                store._switch(Models(fingerprint))
                return n_encoded + len(names)
        n_encoded += len(names)
        notify(n_encoded)
        last = names.tolist()[-1] if len(names) == batch else None


def _begin(store: Store, fingerprint: str) -> bool:
    """Make a place for codes of this model; False if the store's codes are this model's."""
    with store.changing():
        models = store._models()
        upcoming = None if models.fingerprint == fingerprint else fingerprint
        if upcoming != models.upcoming:
            store._clear_staged()
            store._set_models(replace(models, upcoming=upcoming))
    return upcoming is not None


class _Vectors:
    """Vectors by id."""

    def __init__(self, ids: ArrayLike | None, vectors: AnyArray | None) -> None:
        if (ids is None) != (vectors is None):
            raise ArgumentError("ids are those of vectors: give both")
        names = checks.any_ids("ids", [] if ids is None else ids)
        if vectors is not None and len(vectors) != len(names):
            raise ArgumentError(
                f"vectors must be one for each of {len(names)} ids, got {len(vectors)}"
            )
        check_different(names, of="vector")
        self._rows, self._vectors = {name: i for i, name in enumerate(names.tolist())}, vectors

    def get(self, name: Id) -> AnyArray | None:
        row = self._rows.get(name)
        return None if row is None or self._vectors is None else self._vectors[row]


def _encoded(store: Store, model: CodeModel, ids: AnyIds, extra: _Vectors) -> Packed:
    """Encode the vectors of these points: the store's own, or else the extra ones."""
    points = store._read(ids, True, False).points() if store.keeps_points else {}
    rows = []
    for name in ids.tolist():
        vector = points[name].vector if name in points else None
        vector = extra.get(name) if vector is None else vector
        if vector is None:
            raise ArgumentError(f"point {name!r} has no vector in {store.url}, and none was given")
        rows.append(vector)
    if len({len(row) for row in rows}) > 1:
        raise ArgumentError(f"vectors of {store.url} are of different lengths")
    return model.encode(np.array(rows))
