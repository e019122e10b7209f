"""On the client: rounds of requests and answers, and partitions that were lost.

The client holds no points. In each round every partition asks the same (for a sum, say), and gets
the same answer. The client keeps all answers in a log; the answers that an h step took are replaced
by its result, so that the log stays small. When a worker is lost, its partitions are loaded again,
by Dask, on other workers, and run anew from the log; the others wait. With a checkpoint, the log is
on disk after each step of the training: another client goes on as if all partitions were lost.
"""

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from auxhash.compute.cluster import POLL, Cluster, ClusterError, named
from auxhash.compute.registry import register
from auxhash.dask.part import LogEntry, Partition, Request, combine
from auxhash.learn.training.checkpoint import Checkpoint, RunIdentity

MOST_LOSSES = 5  # of one partition, within one step of the training


@register("Traffic")
class Traffic(NamedTuple):
    """What travelled until a step of the training was made, since the last."""

    iteration: int
    rounds: int
    sent: int  # bytes from the partitions to the client, all of them together
    received: int  # bytes from the client to the partitions


@register("ClusterCheckpoint")
@dataclass(frozen=True)
class RoundsSaved:
    """The content of a checkpoint: all that partitions need to catch up."""

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
        checkpoint: where the log is kept, and was, if another client has begun.
    """

    def __init__(
        self,
        cluster: Cluster,
        program: Callable[..., Any],
        data: Sequence[tuple[Any, ...]],
        arguments: Sequence[tuple[Any, ...]],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.cluster, self.program = cluster, program
        self.data, self.arguments = data, arguments
        self.parts: dict[int, Any] = {}  # actors, by place
        self.log: list[LogEntry] = []
        self.number = 0
        self.losses = [0] * len(data)
        self.lost = 0  # partitions, in all
        self.traffic: list[Traffic] = []
        self._rounds = self._sent = self._received = 0
        self.checkpoint = checkpoint
        if checkpoint is not None and checkpoint.saved is not None:
            self.log, self.traffic = list(checkpoint.saved.log), list(checkpoint.saved.traffic)

    def run(self, watch: Callable[[Any], bool]) -> list[Any]:
        """What the program returns in every partition.

        `watch` is called with what the first partition tells, and returns whether to stop.
        """
        try:
            for place in range(len(self.data)):
                self.parts[place] = self._submitted(place)
            for place, future in self.parts.items():
                self.parts[place] = self._actor(place, future)
            begun = {place: part.begin(0, self.log) for place, part in self.parts.items()}
            requests = self._gather(begun, self._patience)
            while requests[0].kind != "done":
                requests = self._round(requests, watch)
            return [request.value for request in requests]
        finally:
            self.parts.clear()  # the last that holds them: their threads end

    def _round(self, requests: list[Request], watch: Callable[[Any], bool]) -> list[Request]:
        reply = combine(requests)
        first = requests[0]
        self._count(requests, reply)
        if first.kind == "tell":
            reply = watch(reply)
        if first.kind == "outcome":
            self.log[first.where :] = [LogEntry(reply, outcome=True)]
            reply = None  # they have it
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
        """Write the checkpoint, if there is one: a run that goes on is not to stop here again."""
        if self.checkpoint is not None:
            kept, log = self.checkpoint, [*self.log[:-1], LogEntry(False)]
            kept.write(RoundsSaved(kept.run, kept.began, log, self.traffic))

    @property
    def _patience(self) -> float:
        """The most seconds that a partition may take to catch up: all steps so far."""
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

    def _gather(self, calls: dict[int, Any], seconds: float | None = None) -> list[Request]:
        """The requests of all partitions; those that are lost meanwhile are run anew."""
        found: dict[int, Request] = {}
        limit = time.monotonic() + (self.cluster.timeout if seconds is None else seconds)
        while calls:
            place = next(iter(calls))
            try:
                found[place] = calls[place].result(timeout=POLL)
                del calls[place]
            except TimeoutError:
                for lost in self._missing(calls):
                    calls[lost] = self._restored(lost)
                    limit = time.monotonic() + self._patience
                if time.monotonic() > limit:
                    raise TimeoutError(self._late(calls)) from None
            except Exception:  # its worker is gone, or has lost it
                calls[place] = self._restored(place)
                limit = time.monotonic() + self._patience
        for place, request in sorted(found.items()):
            if request.kind == "failed":
                raise named(f"partition {place}", request.value)
        return [found[place] for place in sorted(found)]

    def _late(self, calls: dict[int, Any]) -> str:
        told = ", ".join(str(place) for place in sorted(calls)[:10])
        return (
            f"partition {told} took more than timeout={self.cluster.timeout:g} seconds for one "
            "step of the training: raise timeout, cut the data into more partitions, or see its "
            "worker's log"
        )

    def _missing(self, calls: dict[int, Any]) -> list[int]:
        """The places whose workers have left the cluster."""
        workers = self.cluster.workers()
        return [place for place in calls if self.parts[place]._address not in workers]

    def _restored(self, place: int) -> Any:
        """Run a lost partition anew, up to where the others are: its pending next request."""
        self.cluster.workers()  # or raise at once, if there is no cluster any more
        self.losses[place] += 1
        self.lost += 1
        if self.losses[place] > MOST_LOSSES:
            raise ClusterError(
                f"partition {place} was lost {MOST_LOSSES + 1} times in one step of the training: "
                "does its worker have memory enough? Cut the data into more partitions"
            )
        self.parts[place] = self._actor(place, self._submitted(place))
        try:
            return self.parts[place].begin(self.number, self.log)
        except Exception:  # lost again
            return self._restored(place)

    def _actor(self, place: int, future: Any) -> Any:
        """The actor, once its partition's data is loaded."""
        actor = self.cluster.result(future, place)
        # It takes the process's latest client for its own, which may be one of another cluster.
        actor._client, actor._future, actor._worker = self.cluster.client, future, None
        return actor

    def _submitted(self, place: int) -> Any:
        """The future of a new actor, which Dask makes where the partition's data is."""
        kept = len(self.data), place, 2 * self._patience
        given = *kept, *self.data[place], *self.arguments[place]
        return self.cluster.client.submit(Partition, self.program, *given, actor=True, pure=False)


def _size(value: Any) -> int:
    """Bytes of a message, without what little its envelope takes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(_size(each) for each in value)
    if value is None or isinstance(value, (bool, int, float)):
        return 0 if value is None else 8
    return len(pickle.dumps(value, 5))
