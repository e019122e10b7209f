"""Limits of one request, and of all requests together."""

from dataclasses import asdict, dataclass

from auxhash.compute import checks
from auxhash.compute.threads import cores


@dataclass(frozen=True)
class Limits:
    """Limits of the service: what goes beyond one is refused, with a status and a reason.

    docs/serve.md has the table.
    """

    body: int = 8 << 20  # bytes of a request
    bodies: int = 64 << 20  # bytes of all requests that are being read
    values: int = 1_000_000  # numbers, texts, lists and objects in the JSON of a request
    batch: int = 1_000  # points, queries or ids in one request
    k: int = 1_000  # neighbours per query; candidates to re-rank are 10 times as many
    found: int = 100_000  # neighbours in one response, candidates to re-rank included
    tables: int = 64 << 20  # bytes of the tables of a request's queries
    answer: int = 32 << 20  # bytes of a response to queries
    dimensions: int = 65_536  # numbers of a vector, where no model says how many there are
    pixels: int = 12_000_000  # of one image; up to 20 bytes each while it is decoded
    images: int = 16  # in one request
    workers: int = max(2, min(8, cores()))  # requests processed at once
    waiting: int = 64  # requests in the queue before that
    connections: int = 512
    rate: float = 1_000.0  # requests per second and client; 0 is no limit
    work: float = 30.0  # timeout of processing one request, in seconds
    seconds: float = 30.0  # timeout of receiving a request, and of sending a response

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "rate":
                checks.number(name, value, 0)
            elif name in ("work", "seconds"):
                checks.number(name, value, 0, strict=True)
            else:
                checks.integer(name, value, 0 if name == "waiting" else 1)

    @property
    def candidates(self) -> int:
        """Candidates to re-rank per query, at most."""
        return 10 * self.k

    @property
    def choice(self) -> int:
        """Ids in a filter, at most."""
        return 100 * self.batch

    def of_one_request(self) -> dict[str, int]:
        """Return the limits of a single request, which clients may read, by name."""
        names = ("body", "values", "batch", "k", "candidates", "choice", "found", "tables")
        return {
            name: getattr(self, name)
            for name in (*names, "answer", "dimensions", "pixels", "images")
        }
