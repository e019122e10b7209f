"""On a worker: one partition, which trains together with the others.

A `Partition` is a Dask actor. It runs the program of the training in a thread of its own, as if it
were alone on a single machine; where the program needs something from its peers, the thread waits,
the client gets a `Request`, and answers it once all partitions have asked. So a worker can hold any
number of partitions, and each computes only while the client waits for it.

All that came from the peers is in the client's log. A partition that was lost runs the program anew
on another worker, with the answers from the log, and ends up where it was, to the last bit: the
program depends on nothing but its data, its generators and the answers.
"""

import pickle
import threading
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import distributed
import numpy as np
from numpy.typing import NDArray

from auxhash.compute import context
from auxhash.compute.peers import Common
from auxhash.compute.registry import register

CLOSED = object()  # in place of a reply: the training is over


class Request(NamedTuple):
    """What a partition asks for, or its last word."""

    kind: str  # a method of Peers; "outcome" of `once`; or, at the end, "done" or "failed"
    value: Any
    where: int = 0  # for "by" the place; for "outcome" where in the log its making began
    at: int = 0  # how many answers there have been, this one included


@register("ClusterAnswer")
class LogEntry(NamedTuple):
    """One answer in the log."""

    value: Any
    outcome: bool = False  # of `once`: it stands for all answers that its making took


class ClosedError(BaseException):
    """Ends the program's thread: nobody waits for it any more. No program is to handle it."""


class PartitionPeers:
    """The peers of one partition; see `compute.peers.Peers`."""

    def __init__(self, n: int, place: int, limit: float) -> None:
        self.n, self.place, self.limit = n, place, limit
        self.log: list[LogEntry] = []  # answers to programs before this one
        self.at = 0  # answers so far
        self.requests: SimpleQueue[Request] = SimpleQueue()
        self.replies: SimpleQueue[Any] = SimpleQueue()

    def sum(self, value: Common) -> Common:
        return self._exchange("sum", value)  # type: ignore[no-any-return]

    def least(self, value: Common) -> Common:
        return self._exchange("least", value)  # type: ignore[no-any-return]

    def most(self, value: Common) -> Common:
        return self._exchange("most", value)  # type: ignore[no-any-return]

    def join(self, rows: NDArray[Any]) -> NDArray[Any]:
        joined: NDArray[Any] = self._exchange("join", rows)
        return joined

    def by(self, place: int, make: Callable[[], Common]) -> Common:
        made = make() if place == self.place else None
        return self._exchange("by", made, place)  # type: ignore[no-any-return]

    def once(self, make: Callable[[], Common]) -> Common:
        if self.at < len(self.log) and self.log[self.at].outcome:
            self.at += 1
            told: Common = _copied(self.log[self.at - 1].value)
            return told
        began = self.at
        made = make()
        self._exchange("outcome", made if self.place == 0 else None, began)
        self.at = began + 1
        del self.log[began:]  # answers that the making took, if it was lost in the middle
        return made

    def tell(self, said: Any) -> bool:
        return bool(self._exchange("tell", said if self.place == 0 else None))

    def _exchange(self, kind: str, value: Any, where: int = 0) -> Any:
        if self.n == 1 and kind not in ("outcome", "tell"):
            return value  # the client could not say otherwise
        self.at += 1
        if self.at <= len(self.log):
            return _copied(self.log[self.at - 1].value)
        self.requests.put(Request(kind, _copied(value), where, self.at))
        try:
            reply = self.replies.get(timeout=self.limit)
        except Empty:
            raise ClosedError from None
        if reply is CLOSED:
            raise ClosedError
        return _copied(reply)


class Partition:
    """A partition's program, in a thread of its own; a method returns the program's next request.

    Args:
        program: called once, in the thread, with the number of the worker's threads and the
            arguments that follow.
        n, place: how many partitions there are, and which this is.
        limit: the most seconds that it waits for the others.
    """

    def __init__(
        self, program: Callable[..., Any], n: int, place: int, limit: float, *arguments: Any
    ) -> None:
        self.member = PartitionPeers(n, place, limit)
        # The thread must not hold this object: when Dask lets go of it, the thread is to end.
        self.thread = threading.Thread(
            target=_run, args=(self.member, program, (n_threads(), *arguments)), daemon=True
        )
        self.last: tuple[int, Request] | None = None
        weakref.finalize(self, self.member.replies.put, CLOSED)

    def begin(self, number: int, log: list[LogEntry]) -> Request:
        """Start the program, and answer it from the log as far as that goes: to this round."""
        if self.last is None:
            self.member.log = list(log)
            self.thread.start()
            self.last = number, self.member.requests.get(timeout=self.member.limit)
        return self.last[1]

    def advance(self, number: int, reply: Any) -> Request:
        """Answer the last request, in this round; the same round again is no news."""
        if self.last is None or number not in (self.last[0], self.last[0] + 1):
            raise RuntimeError("this partition is not where the others are")
        if number > self.last[0]:
            self.member.replies.put(reply)
            self.last = number, self.member.requests.get(timeout=self.member.limit)
        return self.last[1]


def n_threads() -> int | None:
    """The threads of the worker that calls this in a task; None outside of one."""
    try:
        n: int = distributed.get_worker().state.nthreads
    except ValueError:
        return None
    return n


def _run(member: PartitionPeers, program: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        with context.using(peers=member):
            last = Request("done", program(*arguments))
    except ClosedError:
        return
    except BaseException as error:  # the client raises it
        last = Request("failed", _portable(error))
    member.requests.put(last)


def _copied(value: Any) -> Any:
    """The same in arrays of its own: partitions of one process would share them otherwise."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(_copied(each) for each in value)
    return value


def _portable(error: BaseException) -> BaseException:
    """The error, or one that says the same, if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def combine(requests: list[Request]) -> Any:
    """The answer to requests of all partitions, in their order."""
    kind, values = requests[0].kind, [request.value for request in requests]
    ways = {(request.kind, request.where, request.at) for request in requests}
    if len(ways) > 1:
        told = ", ".join(f"{kind} {at}" for kind, _, at in sorted(ways))
        raise RuntimeError(f"the partitions have gone different ways ({told})")
    if kind == "sum":
        return sum(values[1:], start=values[0])
    if kind == "least":
        return min(values) if np.ndim(values[0]) == 0 else np.min(values, axis=0)
    if kind == "most":
        return max(values) if np.ndim(values[0]) == 0 else np.max(values, axis=0)
    if kind == "join":
        return np.concatenate(values)
    if kind == "by":
        return values[requests[0].where]
    return values[0]  # "outcome" and "tell", which the first partition says
