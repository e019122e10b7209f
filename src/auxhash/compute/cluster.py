"""A Dask cluster, and waiting for it: every wait has a limit, and looks whether there is hope."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import distributed
from dask import delayed

from auxhash.compute.checks import ArgumentError

POLL = 1.0  # seconds after which a wait looks whether scheduler and workers are still there
NO_WORKERS = 60.0  # seconds that a cluster may be without workers: one may be starting


class ClusterError(RuntimeError):
    """The cluster cannot go on: no scheduler, no workers, or a partition that is lost for good."""


class Cluster:
    """The cluster of a client of `distributed`; `timeout` is the most seconds that a wait takes."""

    def __init__(self, client: Any, timeout: float) -> None:
        self.client, self.timeout = _client(client), timeout

    def workers(self) -> dict[str, int]:
        """Address and threads of all workers; ClusterError if the scheduler is gone."""
        status = self.client.status
        if status == "running":
            try:
                found = self.client.scheduler_info(n_workers=-1)["workers"]
                return {address: int(worker["nthreads"]) for address, worker in found.items()}
            except Exception as error:
                status = str(error) or type(error).__name__
        raise ClusterError(f"the scheduler cannot be reached any more ({status})")

    def results(self, work: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the work makes of each partition; what is lazy is computed where it is used."""
        made = self.client.compute([delayed(work)(*arguments) for arguments in given])
        return [self.result(future, place) for place, future in enumerate(made)]

    def result(self, future: Any, place: int | str) -> Any:
        """The result of a future of this partition, or of what is called so."""
        what = f"partition {place}" if isinstance(place, int) else place
        limit, since = time.monotonic() + self.timeout, None
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                now = time.monotonic()
                since = None if self.workers() else since or now
                if since is not None and now - since > NO_WORKERS:
                    told = f"there have been no workers for {NO_WORKERS:g} seconds"
                    raise ClusterError(f"{what} waits in vain: {told}") from None
                if now > limit:
                    raise TimeoutError(
                        f"{what} was not there within timeout={self.timeout:g} seconds"
                    ) from None
            except Exception as error:
                self.workers()
                raise named(what, error) from error


def named(what: str, error: BaseException) -> BaseException:
    """The error with the partition named, of the same type if that can be made of a text."""
    try:
        return type(error)(f"{what}: {error}")
    except Exception:
        return ClusterError(f"{what}: {type(error).__name__}: {error}")


def _client(client: Any) -> Any:
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
