"""On the client: rounds of requests and answers, and recovery of lost partitions.

The client has no points. In each round every partition sends the same request (for a sum, say), and
gets the same answer. The client keeps all answers in a log; the answers that an h step took are
replaced by its result, so that the log stays small. When a worker is lost, its partitions are
loaded again, by Dask, on other workers, and run again from the log; the others wait. With a
checkpoint, the log is on disk after each step of the training: another client goes on
as if all partitions were lost.
"""

import pickle
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from distributed import Actor, BaseActorFuture, Future

from auxhash.compute.cluster import SECONDS_PER_POLL, Cluster, ClusterError, named
from auxhash.compute.registry import register
from auxhash.dask.part import LogEntry, Partition, Request, combine
from auxhash.learn.training.checkpoint import Checkpoint, RunIdentity
from auxhash.mac.loop import Step

MAX_LOSSES_PER_STEP = 5  # of one partition; steps are those of the training


@register("Traffic")
class Traffic(NamedTuple):
    """Traffic between client and partitions during one step of the training."""

    iteration: int
    rounds: int
    sent: int  # bytes from the partitions to the client, all of them together
    received: int  # bytes from the client to the partitions


@register("ClusterCheckpoint")
@dataclass(frozen=True)
class RoundsSaved:
    """Content of a checkpoint: the data that partitions need to catch up."""

    run: RunIdentity
    generators: list[np.random.Generator]  # of one partition after the other, as it began
    log: list[LogEntry]
    traffic: list[Traffic]


class Rounds:
    """One program, run by all partitions together.

    Args:
        program: called in every partition with its data and its arguments.
        data: futures of each partition's data, which Dask can compute again.
        arguments: more arguments for each partition.
        checkpoint: keeps the log on disk; it may have that of another client, to go on from.
    """

    def __init__(
        self,
        cluster: Cluster,
        program: Callable[..., object],
        data: Sequence[tuple[Future, ...]],
        arguments: Sequence[tuple[object, ...]],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.cluster, self.program = cluster, program
        self.data, self.arguments = data, arguments
        self.parts: dict[int, Actor | Future] = {}  # by place; at first, futures of the actors
        self.log: list[LogEntry] = []
        self.number = 0
        self.losses = [0] * len(data)
        self.lost = 0  # partitions, in all
        self.traffic: list[Traffic] = []
        self._rounds = self._sent = self._received = 0
        self.checkpoint = checkpoint
        if checkpoint is not None and checkpoint.saved is not None:
            self.log, self.traffic = list(checkpoint.saved.log), list(checkpoint.saved.traffic)

    def run(self, watch: Callable[[Step], bool]) -> list[Any]:
        """Run the program, and return its result in every partition.

        `watch` is called with the steps that the first partition reports, and returns True to stop.
        """
        try:
            for place in range(len(self.data)):
                self.parts[place] = self._submitted(place)
            for place, future in self.parts.items():
                self.parts[place] = self._actor(place, future)
            begun = {place: part.begin(0, self.log) for place, part in self.parts.items()}
            requests = self._gather(begun, self._catch_up_timeout)
            while requests[0].kind != "done":
                requests = self._round(requests, watch)
            return [request.value for request in requests]
        finally:
            self.parts.clear()  # the last reference to them: their threads end

    def _round(self, requests: list[Request], watch: Callable[[Step], bool]) -> list[Request]:
        reply = combine(requests)
        first = requests[0]
        self._count(requests, reply)
        if first.kind == "tell":
            reply = watch(reply)
        if first.kind == "outcome":
            self.log[first.where :] = [LogEntry(reply, outcome=True)]
            reply = None  # the partitions have it
        else:
            self.log.append(LogEntry(reply))
        if first.kind == "tell":
            self._keep()
        self.number += 1
        calls = {}
        for place in range(len(self.data)):
            try:
                calls[place] = self.parts[place].advance(self.number, reply)
            except Exception:  # Dask knows already that its worker is gone
                calls[place] = self._restored(place)
        return self._gather(calls)

    def _keep(self) -> None:
        """Write the checkpoint, if there is one; a resumed run does not stop here again."""
        if self.checkpoint is not None:
            kept, log = self.checkpoint, [*self.log[:-1], LogEntry(False)]
            kept.write(RoundsSaved(kept.run, kept.began, log, self.traffic))

    @property
    def _catch_up_timeout(self) -> float:
        """Timeout of a partition that catches up, in seconds: for all steps so far."""
        return self.cluster.timeout * (1 + len(self.traffic))

    def _count(self, requests: list[Request], reply: Any) -> None:
        self._rounds += 1
        self._sent += sum(_size(request.value) for request in requests)
        if requests[0].kind != "outcome":
            self._received += len(requests) * _size(reply)
        if requests[0].kind == "tell":
            numbers = self._rounds, self._sent, self._received
            self.traffic.append(Traffic(int(reply.iteration), *numbers))
            self._rounds = self._sent = self._received = 0
            self.losses = [0] * len(self.losses)

    def _gather(
        self, calls: dict[int, BaseActorFuture[Request]], seconds: float | None = None
    ) -> list[Request]:
        """Wait for the requests of all partitions; lost partitions are run again."""
        arrived: dict[int, Request] = {}
        limit = time.monotonic() + (self.cluster.timeout if seconds is None else seconds)
        while calls:
            place = next(iter(calls))
            try:
                arrived[place] = calls[place].result(timeout=SECONDS_PER_POLL)
                del calls[place]
            except TimeoutError:
                for lost in self._missing(calls):
                    calls[lost] = self._restored(lost)
                    limit = time.monotonic() + self._catch_up_timeout
                if time.monotonic() > limit:
                    raise TimeoutError(self._late(calls)) from None
            except Exception:  # its worker is gone, or has lost it
                calls[place] = self._restored(place)
                limit = time.monotonic() + self._catch_up_timeout
        for place, request in sorted(arrived.items()):
            if request.kind == "failed":
                raise named(f"partition {place}", request.value)
        return [arrived[place] for place in sorted(arrived)]

    def _late(self, calls: Iterable[int]) -> str:
        places = ", ".join(str(place) for place in sorted(calls)[:10])
        return (
            f"partition {places} took more than timeout={self.cluster.timeout:g} seconds for one "
            "step of the training: raise timeout, cut the data into more partitions, or see its "
            "worker's log"
        )

    def _missing(self, calls: Iterable[int]) -> list[int]:
        """Return the places whose workers have left the cluster."""
        workers = self.cluster.workers()
        return [place for place in calls if self.parts[place]._address not in workers]

    def _restored(self, place: int) -> BaseActorFuture[Request]:
        """Run a lost partition again, up to the round of the others; return its pending request."""
        self.cluster.workers()  # or raise at once, if there is no cluster any more
        self.losses[place] += 1
        self.lost += 1
        if self.losses[place] > MAX_LOSSES_PER_STEP:
            raise ClusterError(
                f"partition {place} was lost {MAX_LOSSES_PER_STEP + 1} times in one step of the "
                "training: does its worker have memory enough? Cut the data into more partitions"
            )
        self.parts[place] = self._actor(place, self._submitted(place))
        try:
            return self.parts[place].begin(self.number, self.log)
        except Exception:  # lost again
            return self._restored(place)

    def _actor(self, place: int, future: Future) -> Actor:
        """Wait for the actor, until its partition's data is loaded."""
        actor = self.cluster.result(future, place)
        # It takes the process's latest client for its own, which may be one of another cluster.
        actor._client, actor._future, actor._worker = self.cluster.client, future, None
        return actor

    def _submitted(self, place: int) -> Future:
        """Submit a new actor, which Dask creates on the worker of the partition's data."""
        position = len(self.data), place, 2 * self._catch_up_timeout
        arguments = self.program, *position, *self.data[place], *self.arguments[place]
        return self.cluster.client.submit(Partition, *arguments, actor=True, pure=False)


def _size(value: object) -> int:
    """Return the size of a message in bytes, without its envelope."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(_size(each) for each in value)
    if value is None or isinstance(value, (bool, int, float)):
        return 0 if value is None else 8
    return len(pickle.dumps(value, 5))
