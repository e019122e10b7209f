"""Fingerprints: which model made these codes, compared wherever two things meet.

A fingerprint is a digest of whatever decides the bits of a model, 16 hexadecimal digits, the same
on every machine. Codes of two models are of one size, and a search of one by the other finds noise
without an error: so codes, indexes and stores carry the fingerprint of their model.
"""

import hashlib
import re
import warnings
from collections.abc import Iterable

N_DIGITS = 16


class OtherModelError(ValueError):
    """Two things that are to be used together were made by different models."""


class UnknownModelWarning(UserWarning):
    """Something that does not say which model made it, so that nothing could be checked."""


def digest(parts: Iterable[bytes | memoryview]) -> str:
    """Return the fingerprint of parts, which are told apart: b"ab", b"c" is not b"a", b"bc"."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()[:N_DIGITS]


def checked(name: str, value: str | None) -> str | None:
    """Return an argument that is a fingerprint or None; raise ValueError for anything else."""
    if value is None or (isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{N_DIGITS}}}", value)):
        return value
    raise ValueError(
        f"{name} must be the fingerprint of a model, {N_DIGITS} hexadecimal digits, got {value!r}"
    )


def check_same(first: str, fingerprint: str | None, second: str, other: str | None) -> None:
    """Raise OtherModelError, which names both, if two fingerprints that are known differ."""
    if fingerprint is not None and other is not None and fingerprint != other:
        raise OtherModelError(
            f"{first} was made by model {fingerprint} and {second} by model {other}: "
            "codes of two models cannot be compared"
        )


def match(
    first: str, fingerprint: str | None, second: str, other: str | None, force: bool = False
) -> str | None:
    """Return the fingerprint of two things that are used together.

    Args:
        first, second: what they are called in messages, such as a path.
        force: do not compare them; the answer is then `fingerprint`, or else `other`.

    Raises OtherModelError, which names both, if they were made by different models. Where one of
    them carries no fingerprint, a warning says so, and the other's is returned.
    """
    if not force:
        check_same(first, fingerprint, second, other)
    unknown = [name for name, mark in ((first, fingerprint), (second, other)) if mark is None]
    if unknown and not force:
        both = " and ".join(unknown)
        verb = "do" if len(unknown) > 1 else "does"
        warnings.warn(
            f"{both} {verb} not say which model made the codes, so that nothing was checked",
            UnknownModelWarning,
            stacklevel=3,
        )
    return other if fingerprint is None else fingerprint
