"""Limits: how much one request may ask for, and all of them together."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from auxhash.compute import checks


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """Each is answered with a status of its own and a reason; docs/serve.md has the table."""

    body: int = 8 << 20  # bytes of a request
    bodies: int = 64 << 20  # bytes of all requests that are being read
    values: int = 1_000_000  # numbers, texts, lists and objects in the JSON of a request
    batch: int = 1_000  # points, queries or ids in one request
    k: int = 1_000  # neighbours per query; candidates to re-rank are 10 times as many
    found: int = 100_000  # neighbours in one answer, those to re-rank counted
    answer: int = 32 << 20  # bytes of an answer to queries
    dimensions: int = 65_536  # numbers of a vector, where no model says how many there are
    pixels: int = 12_000_000  # of one image; up to 20 bytes each while it is decoded
    images: int = 16  # in one request
    workers: int = max(2, min(8, _cores()))  # requests that are worked on at once
    waiting: int = 64  # requests that wait for that
    connections: int = 512
    rate: float = 1_000.0  # requests per second and client; 0 is no limit
    work: float = 30.0  # seconds of work on one request, once it is begun
    seconds: float = 30.0  # for a request to arrive, and for an answer to be taken

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "rate":
                checks.number(name, value, 0)
            elif name in ("work", "seconds"):
                checks.number(name, value, 0, strict=True)
            else:
                checks.whole(name, value, 0 if name == "waiting" else 1)

    @property
    def candidates(self) -> int:
        """To re-rank, per query."""
        return 10 * self.k

    @property
    def choice(self) -> int:
        """Ids in a filter."""
        return 100 * self.batch

    def told(self) -> dict[str, Any]:
        """For clients: what concerns a single request."""
        own = ("body", "values", "batch", "k", "candidates", "choice", "found", "answer")
        return {name: getattr(self, name) for name in (*own, "dimensions", "pixels", "images")}
