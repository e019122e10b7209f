"""Work on many files by the workers of a cluster, each file by itself."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import distributed

from auxhash.compute.cluster import MAX_WORKERLESS_SECONDS, SECONDS_PER_POLL, Cluster, ClusterError
from auxhash.compute.context import Common
from auxhash.compute.threads import Item, Output
from auxhash.compute.words import count
from auxhash.files.shards.folder import FileWork

LOCAL = "local"
CONNECT_TIMEOUT_SECONDS = 20.0
FILE_TIMEOUT_SECONDS = 3600.0  # in which no file is done
FILES_PER_THREAD = 4  # of the cluster, given out before the first of them is done


class Fleet:
    """The workers of a cluster, as a `shards.folder.Runner`. Work that is lost is given out again.

    Args:
        cluster: with `timeout`, the most seconds in which no file is done.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def each(
        self,
        work: FileWork[Item, Common, Output],
        items: Sequence[Item],
        shared: Common,
        tell: Callable[[int], None],
    ) -> Iterator[tuple[int, Output]]:
        """See `shards.folder.Runner`."""
        client = self.cluster.client
        # A task, not `scatter`: Dask can give it again if the worker that holds it is lost.
        shared_task = client.submit(_identity, shared, pure=False)
        waiting: dict[distributed.Future, int] = {}
        left = iter(enumerate(items))
        last = time.monotonic()
        empty: float | None = None
        while True:
            for number, item in _up_to(left, self._limit() - len(waiting)):
                waiting[client.submit(_worked, work, item, shared_task, pure=False)] = number
            if not waiting:
                return
            try:
                done = distributed.wait(
                    list(waiting), timeout=SECONDS_PER_POLL, return_when="FIRST_COMPLETED"
                ).done
            except TimeoutError:
                now = time.monotonic()
                empty = None if self.cluster.workers() else empty or now
                if empty is not None and now - empty > MAX_WORKERLESS_SECONDS:
                    message = f"there have been no workers for {MAX_WORKERLESS_SECONDS:g} seconds"
                    raise ClusterError(f"{count(len(items), 'file')} wait: {message}") from None
                if now - last > self.cluster.timeout:
                    message = f"no file was done within {self.cluster.timeout:g} seconds"
                    raise TimeoutError(message) from None
                continue
            except Exception as error:
                self.cluster.workers()  # raises if the scheduler is gone
                raise ClusterError(f"the cluster cannot go on: {error}") from error
            last = time.monotonic()
            for future in done:
                number = waiting.pop(future)
                result, points = self._result(future, items[number])
                tell(points)
                yield number, result

    def _result(self, future: distributed.Future, item: object) -> Any:
        try:
            return future.result(timeout=self.cluster.timeout)
        except distributed.KilledWorker:
            place = getattr(item, "source", item)
            raise ClusterError(
                f"{place}: its workers were killed, one after the other: have they memory enough?"
            ) from None
        except Exception:
            self.cluster.workers()  # raises if the scheduler is gone
            raise

    def _limit(self) -> int:
        """Number of files to give out; a worker that joins late gets its share of the rest."""
        return FILES_PER_THREAD * max(1, sum(self.cluster.workers().values()))


@contextmanager
def fleet_at(address: str, n_workers: int | None) -> Iterator[Fleet]:
    """The workers of the scheduler at this address, or a cluster of this machine, if "local"."""
    if address == LOCAL:
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield Fleet(Cluster(client, FILE_TIMEOUT_SECONDS))
        return
    try:
        client = distributed.Client(address, timeout=CONNECT_TIMEOUT_SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no scheduler answers at {address} within {CONNECT_TIMEOUT_SECONDS:g} seconds "
            f"({error}): start one with `dask scheduler`, which says its address"
        ) from None
    with client:
        yield Fleet(Cluster(client, FILE_TIMEOUT_SECONDS))


def _up_to(left: Iterator[Item], n: int) -> list[Item]:
    return [item for _, item in zip(range(n), left, strict=False)]


def _identity(value: Common) -> Common:
    return value


def _worked(work: FileWork[Item, Common, Output], item: Item, shared: Common) -> tuple[Output, int]:
    """Result of the work, and the number of points that it reported."""
    counts: list[int] = []
    return work(item, shared, counts.append), sum(counts)
