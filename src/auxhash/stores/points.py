"""Data beside a code: its vector, for re-ranking, and a payload, for filtering."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auxhash.codes import Packed
from auxhash.compute.arrays import Array, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.stores.ids import AnyIds, Id

Payload = Mapping[str, Any]

VECTOR_TYPE = "<f8"  # of the bytes of a vector
MAX_DEPTH = 32  # of objects and lists of a payload within each other
MAX_CHARACTERS = 256  # of a text that a search can ask for
MAX_NUMBER = 2**63 - 1  # of a number that a search can ask for


@dataclass(frozen=True, eq=False)
class Point:
    """A code with its vector and payload, as stored under one id."""

    code: Packed  # (n_bytes,)
    vector: Array | None
    payload: dict[str, Any] | None


@dataclass(frozen=True)
class Having:
    """The points whose payload has in this field, at its top level, one of these values.

    Values are text, whole numbers, True and False. 1 is the same as 1.0, and not as True or "1".
    """

    field: str
    values: tuple[str | int | bool, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.field, str):
            raise ArgumentError(f"field must be text, got {self.field!r}")
        _check_text(self.field, "field")
        if not isinstance(self.values, tuple) or not self.values:
            raise ArgumentError(f"values must be a tuple of at least one, got {self.values!r}")
        for value in self.values:
            if not isinstance(value, (str, int)):
                raise ArgumentError(
                    f"values must be text, whole numbers, True or False, got {value!r}"
                )
            if isinstance(value, str):
                _check_text(value, "values")
            if isinstance(value, str) and len(value) > MAX_CHARACTERS:
                raise ArgumentError(
                    f"values must be of at most {MAX_CHARACTERS} characters, got {len(value)}"
                )
            if not isinstance(value, str) and not -MAX_NUMBER <= value <= MAX_NUMBER:
                raise ArgumentError(f"values must lie within 2^63 - 1, got {value}")

    def holds(self, payload: Payload | None) -> bool:
        """Return True if a payload is of this kind."""
        if payload is None or self.field not in payload:
            return False
        present = payload[self.field]
        if not isinstance(present, (str, int, float)):
            return False
        return any(
            isinstance(present, bool) == isinstance(value, bool) and present == value
            for value in self.values
        )


@dataclass(frozen=True)
class Beside:
    """Vectors as bytes and payloads as JSON, one per point, None where there is none."""

    vectors: Sequence[bytes | None]
    payloads: Sequence[str | None]


@dataclass(frozen=True)
class StoredPoints:
    """Points as a database gives them, in any order."""

    ids: AnyIds
    packed: Packed
    beside: Beside | None = None

    def points(self) -> dict[Id, Point]:
        """Points by id; ValueError where the database holds a payload that is no JSON object."""
        n = len(self.ids)
        more = self.beside or Beside([None] * n, [None] * n)
        both = zip(more.vectors, more.payloads, strict=True)
        read = [(_vector(vector), _payload(payload)) for vector, payload in both]
        return {name: Point(self.packed[i], *read[i]) for i, name in enumerate(self.ids.tolist())}


def as_vectors(vectors: Any, n: int) -> list[bytes | None]:
    """n vectors of finite numbers, each of one axis, as bytes; None where there is none."""
    if vectors is None:
        return [None] * n
    if not hasattr(vectors, "__len__") or len(vectors) != n:
        raise ArgumentError(f"vectors must be one for each of {n} codes")
    return [None if vector is None else _bytes(vector, i) for i, vector in enumerate(vectors)]


def as_payloads(payloads: object, n: int) -> list[str | None]:
    """n payloads, dictionaries of what JSON knows, as JSON; None where there is none."""
    if payloads is None:
        return [None] * n
    if not isinstance(payloads, Sequence) or len(payloads) != n:
        raise ArgumentError(f"payloads must be a list, one for each of {n} codes")
    return [None if payload is None else _json(payload, i) for i, payload in enumerate(payloads)]


def _bytes(vector: ArrayLike, at: int) -> bytes:
    try:
        array = np.asarray(vector, np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"vectors[{at}] must be numbers: {error}") from error
    if array.ndim != 1 or not len(array):
        raise ArgumentError(f"vectors[{at}] must be of shape (D,), got {array.shape}")
    if not np.isfinite(array).all():
        raise ArgumentError(f"vectors[{at}] must be finite, and holds NaN or infinity")
    return array.astype(VECTOR_TYPE).tobytes()


def _json(payload: object, at: int) -> str:
    if not isinstance(payload, dict):
        kind = type(payload).__name__
        raise ArgumentError(f"payloads[{at}] must be a dictionary or None, got {kind}")
    _check_parts(payload, at)
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"payloads[{at}] must be JSON: {error}") from error


def _check_parts(payload: dict[object, object], at: int) -> None:
    """Refuse what databases would not give back as it was, and too deep a payload."""
    level: list[object] = [payload]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for part in level:
            texts = [part] if isinstance(part, str) else []
            if isinstance(part, dict):
                if not all(isinstance(key, str) for key in part):
                    raise ArgumentError(f"payloads[{at}] must have fields named by text")
                texts = list(part)
                below += part.values()
            elif isinstance(part, (list, tuple)):
                below += part
            for text in texts:
                _check_text(text, f"payloads[{at}]")
        if not below:
            return
        level = below
    raise ArgumentError(f"payloads[{at}] must be of at most {MAX_DEPTH} levels")


def _check_text(text: str, name: str) -> None:
    if "\0" in text:
        raise ArgumentError(f"{name} must not hold the character 0")
    if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ArgumentError(f"{name} must be Unicode, and holds a lone surrogate")


def _vector(data: bytes | None) -> Array | None:
    return None if data is None else np.frombuffer(data, VECTOR_TYPE).astype(np.float64)


def _payload(text: str | None) -> dict[str, Any] | None:
    payload = {} if text is None else json.loads(text)
    if not isinstance(payload, dict):
        raise ValueError("a payload is no JSON object")
    return None if text is None else payload
