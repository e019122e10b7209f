"""A Dask cluster: every wait has a timeout, and ends early if scheduler or workers are gone."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import distributed
from dask import delayed

from auxhash.compute.checks import ArgumentError

SECONDS_PER_POLL = 1.0  # a wait looks whether scheduler and workers are still there
MAX_WORKERLESS_SECONDS = 60.0  # seconds that a cluster may be without workers: one may be starting


class ClusterError(RuntimeError):
    """The cluster cannot go on: no scheduler, no workers, or a partition that is lost for good."""


class Cluster:
    """The cluster of a client of `distributed`; `timeout` is the most seconds that a wait takes."""

    def __init__(self, client: distributed.Client | None, timeout: float) -> None:
        self.client, self.timeout = _client(client), timeout

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker, by address; ClusterError if the scheduler is gone."""
        status = self.client.status
        if status == "running":
            try:
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
                return {address: int(worker["nthreads"]) for address, worker in workers.items()}
            except Exception as error:
                status = str(error) or type(error).__name__
        raise ClusterError(f"the scheduler cannot be reached any more ({status})")

    def results(self, work: Callable[..., Any], arguments: Sequence[Sequence[object]]) -> list[Any]:
        """Return the results of `work`, one per partition; lazy arguments are computed there."""
        futures = self.client.compute([delayed(work)(*each) for each in arguments])
        return [self.result(future, place) for place, future in enumerate(futures)]

    def result(self, future: distributed.Future, place: int | str) -> Any:
        """Wait for a future and return its result; errors name `place`, a partition or a text."""
        what = f"partition {place}" if isinstance(place, int) else place
        limit, since = time.monotonic() + self.timeout, None
        while True:
            try:
                return future.result(timeout=SECONDS_PER_POLL)
            except TimeoutError:
                now = time.monotonic()
                since = None if self.workers() else since or now
                if since is not None and now - since > MAX_WORKERLESS_SECONDS:
                    reason = f"there have been no workers for {MAX_WORKERLESS_SECONDS:g} seconds"
                    raise ClusterError(f"{what} waits in vain: {reason}") from None
                if now > limit:
                    raise TimeoutError(
                        f"{what} was not there within timeout={self.timeout:g} seconds"
                    ) from None
            except Exception as error:
                self.workers()
                raise named(what, error) from error


def named(what: str, error: BaseException) -> BaseException:
    """Return the error with the partition named, of its own type if that takes a message alone."""
    try:
        return type(error)(f"{what}: {error}")
    except Exception:
        return ClusterError(f"{what}: {type(error).__name__}: {error}")


def _client(client: distributed.Client | None) -> distributed.Client:
    if client is None:
        try:
            return distributed.get_client()
        except ValueError:
            raise ArgumentError(
                "client=None takes the current client of distributed, and there is none: make one, "
                "client = distributed.Client(ADDRESS)"
            ) from None
    if not isinstance(client, distributed.Client):
        raise ArgumentError(
            f"client must be a distributed.Client or None, got {type(client).__name__}"
        )
    if client.asynchronous:
        raise ArgumentError("client must not be asynchronous: make one with asynchronous=False")
    return client
