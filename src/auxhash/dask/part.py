"""On a worker: one partition, which trains together with the others.

A `Partition` is a Dask actor. It runs the program of the training in a thread of its own, as if it
were alone on a single machine; where the program needs something from its peers, the thread waits,
the client gets a `Request`, and answers it once all partitions have asked. So a worker can hold any
number of partitions, and each computes only while the client waits for it.

All answers of the peers are in the client's log. A partition that was lost runs the program again
on another worker, with the answers from the log, and ends up in the same state, bit by bit: the
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

from auxhash.compute import context
from auxhash.compute.arrays import AnyArray
from auxhash.compute.context import Common
from auxhash.compute.registry import register

CLOSED = object()  # in place of a reply: the training is over


class Request(NamedTuple):
    """A request from a partition, or its result."""

    kind: str  # a method of Peers; "outcome" of `once`; or, at the end, "done" or "failed"
    value: Any
    where: int = 0  # for "by" the place; for "outcome" the position in the log where it began
    at: int = 0  # number of answers so far, this one included


@register("ClusterAnswer")
class LogEntry(NamedTuple):
    """One answer in the log."""

    value: Any
    outcome: bool = False  # of `once`: it replaces all answers that were needed for it


class ClosedError(BaseException):
    """Ends the program's thread, whose result is no longer needed. No program is to handle it."""


class PartitionPeers:
    """Peers of one partition; see `compute.context.Peers`."""

    def __init__(self, n: int, place: int, limit: float) -> None:
        self.n, self.place, self.limit = n, place, limit
        self.log: list[LogEntry] = []  # answers to programs before this one
        self.at = 0  # answers so far
        self.requests: SimpleQueue[Request] = SimpleQueue()
        self.replies: SimpleQueue[object] = SimpleQueue()

    def sum(self, value: Common) -> Common:
        return self._exchange("sum", value)  # type: ignore[no-any-return]

    def least(self, value: Common) -> Common:
        return self._exchange("least", value)  # type: ignore[no-any-return]

    def most(self, value: Common) -> Common:
        return self._exchange("most", value)  # type: ignore[no-any-return]

    def join(self, rows: AnyArray) -> AnyArray:
        joined: AnyArray = self._exchange("join", rows)
        return joined

    def by(self, place: int, make: Callable[[], Common]) -> Common:
        value = make() if place == self.place else None
        return self._exchange("by", value, place)  # type: ignore[no-any-return]

    def once(self, make: Callable[[], Common]) -> Common:
        if self.at < len(self.log) and self.log[self.at].outcome:
            self.at += 1
            logged: Common = _copied(self.log[self.at - 1].value)
            return logged
        began = self.at
        outcome = make()
        self._exchange("outcome", outcome if self.place == 0 else None, began)
        self.at = began + 1
        del self.log[began:]  # answers needed for it, if it was lost in the middle
        return outcome

    def tell(self, said: object) -> bool:
        return bool(self._exchange("tell", said if self.place == 0 else None))

    def _exchange(self, kind: str, value: object, where: int = 0) -> Any:
        if self.n == 1 and kind not in ("outcome", "tell"):
            return value  # the answer of the client would be the same
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
    """A partition's program in a thread of its own; methods return the program's next request.

    Args:
        program: called once, in the thread, with the number of the worker's threads and the
            arguments that follow.
        n, place: the number of partitions, and the position of this one.
        limit: timeout of waiting for the others, in seconds.
    """

    def __init__(
        self, program: Callable[..., object], n: int, place: int, limit: float, *arguments: object
    ) -> None:
        self.member = PartitionPeers(n, place, limit)
        # The thread must have no reference to this object: when Dask drops it, the thread ends.
        self.thread = threading.Thread(
            target=_run, args=(self.member, program, (n_threads(), *arguments)), daemon=True
        )
        self.last: tuple[int, Request] | None = None
        weakref.finalize(self, self.member.replies.put, CLOSED)

    def begin(self, number: int, log: list[LogEntry]) -> Request:
        """Start the program, answered from the log up to this round; return its next request."""
        if self.last is None:
            self.member.log = list(log)
            self.thread.start()
            self.last = number, self.member.requests.get(timeout=self.member.limit)
        return self.last[1]

    def advance(self, number: int, reply: object) -> Request:
        """Answer the last request, once per round, and return the next one."""
        if self.last is None or number not in (self.last[0], self.last[0] + 1):
            raise RuntimeError("this partition is not where the others are")
        if number > self.last[0]:
            self.member.replies.put(reply)
            self.last = number, self.member.requests.get(timeout=self.member.limit)
        return self.last[1]


def n_threads() -> int | None:
    """Return the number of threads of the worker that calls this in a task; else None."""
    try:
        n: int = distributed.get_worker().state.nthreads
    except ValueError:
        return None
    return n


def _run(
    member: PartitionPeers, program: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    try:
        with context.using(peers=member):
            last = Request("done", program(*arguments))
    except ClosedError:
        return
    except BaseException as error:  # the client raises it
        last = Request("failed", _portable(error))
    member.requests.put(last)


def _copied(value: Any) -> Any:
    """Copy the arrays in a value: partitions of one process would share them otherwise."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(_copied(each) for each in value)
    return value


def _portable(error: BaseException) -> BaseException:
    """Return the error, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def combine(requests: list[Request]) -> Any:
    """Return the answer to the requests of all partitions, in their order."""
    kind, values = requests[0].kind, [request.value for request in requests]
    steps = {(request.kind, request.where, request.at) for request in requests}
    if len(steps) > 1:
        listed = ", ".join(f"{kind} {at}" for kind, _, at in sorted(steps))
        raise RuntimeError(f"the partitions have gone different ways ({listed})")
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
    return values[0]  # of "outcome" and "tell", the first partition's counts
