"""Client of the service, with nothing but the standard library: `auxhash.client`.

    client = Client("http://localhost:8000")
    client.put([{"id": 7, "vector": x, "payload": {"year": 2016}}])
    [result] = client.search(vectors=[x], k=5)
    for hit in result.hits:
        print(hit.id, hit.distance)

Vectors are lists of numbers or NumPy arrays; images are PNG or JPEG files, as paths or bytes; codes
are packed bytes or hexadecimal text. Every error is a `ServiceError`.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Literal, SupportsFloat, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

__all__ = [
    "AnswerError",
    "Client",
    "Match",
    "QueryResult",
    "ServiceError",
    "TimedOutError",
    "TokenError",
    "UnreachableError",
]

Sent = TypeVar("Sent")
PointId = int | str
Image = bytes | str | PathLike[str]
LARGE_ID = re.compile("[0-9]{16,19}")  # an id that may be a number which JavaScript would round
SHARE_OF_BODY = 0.9  # that points may take: the rest is for what is around them


class ServiceError(Exception):
    """A request that the service did not fulfil."""


class UnreachableError(ServiceError):
    """A service that refuses the connection, or cannot be found."""


class TimedOutError(ServiceError):
    """A service that did not answer in time; a write may have been made."""


class AnswerError(ServiceError):
    """An answer of 4xx or 5xx: the status, and the reason in the service's words."""

    def __init__(self, status: int, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{reason} (status {status})")
        self.status, self.reason = status, reason
        self.retry_after = retry_after  # seconds, of 429 and 503


class TokenError(AnswerError):
    """A token that is missing or wrong: status 401."""


@dataclass(frozen=True)
class Match:
    """A point near a query."""

    id: PointId
    distance: float
    payload: dict[str, Any] | Any = None  # None unless asked for: who did need not check


@dataclass(frozen=True)
class QueryResult:
    """The points near one query, nearest first."""

    hits: tuple[Match, ...]
    by: str  # hamming, outputs, tables, euclidean or cosine
    cut: bool  # whether the limit left out some within the radius


class Client:
    """A client of `auxhash serve`; any thread may call any method.

    Args:
        token: that of the service, if it demands one.
        timeout: seconds for each request.
    """

    def __init__(
        self, url: str = "http://localhost:8000", token: str | None = None, timeout: float = 60.0
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url must begin with http:// or https://, got {url!r}")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._opener = build_opener(_NoRedirect())

    def info(self) -> dict[str, Any]:
        """Model, store and limits of the service."""
        return dict(self._ask("GET", "/info"))

    def count(self) -> int:
        """Number of points."""
        return int(self._ask("GET", "/points")["count"])

    def point(self, name: PointId) -> dict[str, Any]:
        """One point, with its code, vector and payload."""
        return dict(self._ask("GET", f"/points/{quote(str(name), safe='')}"))

    def put(self, points: Iterable[Mapping[str, Any]], fingerprint: str | None = None) -> int:
        """Put points in and return their number: id, and vector, image or code, and payload.

        They are sent in as many requests as the limits of the service need, each of which puts
        all its points in, or none. `fingerprint` is of the model that made the codes. NaN and
        infinity are refused: in a list, before anything is sent.
        """
        sent = map(_sent, _finite(points, "points", lambda point: point.get("vector")))
        parts = self._parts((point, point.get("image") is not None) for point in sent)
        bodies = (b'{"points": %b, "fingerprint": %b}' % (p, _json(fingerprint)) for p in parts)
        return sum(self._ask("PUT", "/points", body)["upserted"] for body in bodies)

    def delete(self, ids: Iterable[PointId]) -> int:
        """Delete points and return how many of them were there."""
        bodies = (b'{"ids": %b}' % part for part in self._parts((name, False) for name in ids))
        return sum(self._ask("POST", "/points/delete", body)["deleted"] for body in bodies)

    def encode(
        self,
        vectors: Iterable[Sequence[float]] | None = None,
        images: Iterable[Image] | None = None,
    ) -> list[bytes]:
        """Packed codes of vectors or images, by the model of the service."""
        if vectors is not None and images is None:
            parts = self._parts((vector, False) for vector in _finite(vectors, "vectors"))
            bodies = (b'{"vectors": %b}' % part for part in parts)
        elif images is not None and vectors is None:
            parts = self._parts((_base64(image), True) for image in images)
            bodies = (b'{"images": %b}' % part for part in parts)
        else:
            raise ValueError("give either vectors or images")
        answers = (self._ask("POST", "/encode", body) for body in bodies)
        return [bytes.fromhex(code) for answer in answers for code in answer["codes"]]

    def search(
        self,
        vectors: Iterable[Sequence[float]] | None = None,
        *,
        codes: Iterable[bytes | str] | None = None,
        images: Iterable[Image] | None = None,
        ids: Iterable[PointId] | None = None,
        by: Literal["hamming", "outputs", "tables"] | None = None,
        k: int | None = None,
        radius: int | None = None,
        limit: int | None = None,
        rerank: int | None = None,
        metric: Literal["euclidean", "cosine"] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the API's word
        with_payload: bool = False,
        fingerprint: str | None = None,
    ) -> list[QueryResult]:
        """Find the k nearest points of each query, or all within a radius, in one request.

        Queries are of one kind: vectors, codes, images, or ids of points that are there; `by` says
        which distance orders the points, one of those that `info` lists.
        `filter` is {"ids": [...]}, or {"field": name, "value": ...}, or "values": [...].
        """
        asked = {
            "vectors": None if vectors is None else list(_finite(vectors, "vectors")),
            "codes": None if codes is None else [_hexadecimal(code) for code in codes],
            "images": None if images is None else [_base64(image) for image in images],
            "ids": None if ids is None else list(ids),
            **{"by": by, "k": k, "radius": radius, "limit": limit},
            **{"rerank": rerank, "metric": metric},
            **{"filter": filter, "fingerprint": fingerprint, "with_payload": with_payload},
        }
        content = {name: value for name, value in asked.items() if value is not None}
        answer = self._ask("POST", "/points/query", _json(content))
        names = {hit["id"] for result in answer["results"] for hit in result["hits"]}
        large = {name for name in names if isinstance(name, str) and LARGE_ID.fullmatch(name)}
        numbers = large if large and self.info()["ids"] == "number" else set()
        return [_result(each, answer["by"], numbers) for each in answer["results"]]

    def _parts(self, items: Iterable[tuple[object, bool]]) -> Iterator[bytes]:
        """Cut items, some with an image, into lists in JSON that the service takes at once."""
        part: list[bytes] = []
        limits, n_bytes, n_values = self._limits, 0, 0
        for item, with_image in items:
            text = _json(item)
            n_values_of_it = sum(map(text.count, (b",", b"[", b"{"))) + 1
            if part and (
                len(part) >= limits["images" if with_image else "batch"]
                or n_bytes + len(text) > SHARE_OF_BODY * limits["body"]
                or n_values + n_values_of_it > SHARE_OF_BODY * limits["values"]
            ):
                yield b"[%b]" % b",".join(part)
                part, n_bytes, n_values = [], 0, 0
            part.append(text)
            n_bytes, n_values = n_bytes + len(text) + 1, n_values + n_values_of_it
        if part:
            yield b"[%b]" % b",".join(part)

    @cached_property
    def _limits(self) -> dict[str, int]:
        limits: dict[str, int] = self.info()["limits"]
        return limits

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return the answer to a request, or raise a ServiceError that says what went wrong."""
        headers = {**self._headers, "Content-Type": "application/json"}
        request = Request(self.url + path, body, headers, method=method)
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                return json.loads(answer.read())
        except HTTPError as error:
            raise _refusal(error) from None
        except OSError as error:  # URLError is one, and has another within
            why = getattr(error, "reason", error)
            if isinstance(why, TimeoutError):
                waited = f"{self.timeout:g} seconds"
                raise TimedOutError(f"{self.url} did not answer within {waited}") from error
            why = getattr(why, "strerror", None) or why
            raise UnreachableError(f"{self.url} cannot be reached: {why}") from error
        except (HTTPException, ValueError) as error:
            raise ServiceError(f"{self.url} does not answer as auxhash does: {error}") from error


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirection: the token would go wherever it leads."""

    def redirect_request(self, *where: object, **more: object) -> None:
        return None


def _refusal(error: HTTPError) -> AnswerError:
    """Return the error for an answer of 3xx, 4xx or 5xx, with the service's own reason."""
    try:
        reason = json.loads(error.read())["error"]
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        reason = f"{error.reason}, without a reason"
    wait = error.headers.get("Retry-After", "")
    seconds = float(wait) if wait.isdecimal() else None
    kind = TokenError if error.code == 401 else AnswerError
    return kind(error.code, str(reason), seconds)


def _finite(
    items: Iterable[Sent], name: str, vector_of: Callable[[Sent], object] = lambda item: item
) -> Iterable[Sent]:
    """Return the items; ValueError for the first with a vector that is not finite.

    All of them are looked at now, except those of an iterator, which may not fit into memory.
    """

    def checked() -> Iterator[Sent]:
        for row, item in enumerate(items):
            vector = vector_of(item)
            values = vector.tolist() if hasattr(vector, "tolist") else vector
            for value in values if isinstance(values, (list, tuple)) else ():
                real = isinstance(value, SupportsFloat) and not isinstance(value, int)
                if real and not isfinite(value):
                    raise ValueError(f"{name}[{row}] must be finite, and holds {value}")
            yield item

    return checked() if isinstance(items, Iterator) else list(checked())


def _json(content: object) -> bytes:
    return json.dumps(content, allow_nan=False, default=_plain).encode()


def _plain(value: object) -> object:
    """Return NumPy's arrays and numbers as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


def _sent(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point as the API has it."""
    sent = dict(point)
    if sent.get("image") is not None:
        sent["image"] = _base64(sent["image"])
    if sent.get("code") is not None:
        sent["code"] = _hexadecimal(sent["code"])
    return sent


def _base64(image: Image) -> str:
    content = image if isinstance(image, bytes) else Path(image).read_bytes()
    return base64.b64encode(content).decode()


def _hexadecimal(code: bytes | str) -> str:
    return code if isinstance(code, str) else bytes(code).hex()


def _result(result: Mapping[str, Any], by: str, numbers: set[str]) -> QueryResult:
    """Return the result of a query; `numbers` are the ids that are numbers, and came as text."""
    hits = []
    for hit in result["hits"]:
        name = int(hit["id"]) if hit["id"] in numbers else hit["id"]
        hits.append(Match(name, hit["distance"], hit.get("payload")))
    return QueryResult(tuple(hits), by, result["cut"])
