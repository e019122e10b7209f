"""Fixed chunks of work on several threads: results depend on the chunks, never on the threads.

Kernels release the interpreter's lock, so a thread pool is all the parallelism we need. Matrix
products run on one BLAS thread each: their sums depend on the number of BLAS threads, and our
chunks keep the cores busy already.
"""

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Protocol, TypeVar

from threadpoolctl import LibController, ThreadpoolController

from auxhash.compute import context, deadline, underway
from auxhash.compute.checks import ArgumentError

Item = TypeVar("Item")
Output = TypeVar("Output")

CGROUP = Path("/sys/fs/cgroup")
POINTS_PER_SHARE, MAX_SHARES = 1 << 16, 16  # shares are tasks that pass over all pairs


class Run(Protocol):
    """Apply a function to every item and return the results in the items' order."""

    def __call__(
        self, function: Callable[[Item], Output], items: Sequence[Item]
    ) -> list[Output]: ...


def count() -> int:
    """Number of threads for the `n_jobs` of the context.

    None takes every core that this process may use, unlike scikit-learn, where None means 1:
    threads share X and the codes, so that using them costs no memory. Inside joblib's workers and
    Dask's, None takes the worker's share of the cores. -1 takes every core even there, -2 all but
    one.
    """
    n_jobs = context.current().n_jobs
    if n_jobs is None:
        return _share()
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise ArgumentError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ArgumentError("n_jobs must not be 0; None or -1 takes every core")
    return int(n_jobs) if n_jobs > 0 else max(1, cores() + 1 + int(n_jobs))


def cores() -> int:
    """Number of cores that this process may use, by CPU affinity and by its container's quota."""
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    return max(1, min(available, _quota()))


def _quota() -> int:
    """Number of cores that the control group's CPU quota amounts to, rounded up."""
    try:
        if (CGROUP / "cpu.max").exists():
            most, period = (CGROUP / "cpu.max").read_text().split()
        else:
            most = (CGROUP / "cpu/cpu.cfs_quota_us").read_text()
            period = (CGROUP / "cpu/cpu.cfs_period_us").read_text()
        quota = float(most) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # not Linux, no control group, or "max"
        return sys.maxsize
    return math.ceil(quota) if quota > 0 else sys.maxsize


def _share() -> int:
    """Number of cores for this worker, where several share the machine.

    joblib's and Dask's worker processes state their share in OMP_NUM_THREADS; joblib's worker
    threads have one thread each.
    """
    share = cores()
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if stated.isdecimal() and int(stated) > 0:
        share = min(share, int(stated))
    joblib = sys.modules.get("joblib")
    if joblib is not None and joblib.parallel.get_active_backend()[0].nesting_level:
        share = min(share, joblib.effective_n_jobs(None))
    return share


class _Limit:
    """A limit of one thread on some BLAS libraries, in force while anyone holds it.

    Holders are counted: the first sets the limit, and the last restores the numbers before it.
    """

    def __init__(self) -> None:
        self.holders = 0
        self.before: dict[str, tuple[LibController, int]] = {}  # path: library, its threads before

    def hold(self, libraries: Iterable[LibController]) -> None:
        self.holders += 1
        for library in libraries:
            if library.filepath not in self.before:
                self.before[library.filepath] = library, library.num_threads
                _set_threads(library, 1)

    def release(self) -> None:
        self.holders -= 1
        if not self.holders:
            self.lift()

    def lift(self) -> None:
        for library, n_threads in self.before.values():
            _set_threads(library, n_threads)
        self.before.clear()


class _Blas:
    """The limits on all BLAS libraries, for the process and for each thread.

    OpenBLAS and BLIS have one number of threads for the whole process; MKL, and OpenBLAS on
    OpenMP, have one for each thread that calls them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process = _Limit()
        self.threads = threading.local()
        self.libraries: list[LibController] = []
        self.modules = -1  # how many were imported when libraries were last looked for

    def hold(self) -> None:
        with self.lock:
            if self.modules != len(sys.modules):  # an import may have brought another library
                self.modules = len(sys.modules)
                controller = ThreadpoolController().select(user_api="blas")
                self.libraries = controller.lib_controllers
            self.process.hold(each for each in self.libraries if not _is_per_thread(each))
            self.own.hold(each for each in self.libraries if _is_per_thread(each))

    def release(self) -> None:
        with self.lock:
            self.process.release()
            self.own.release()

    def hold_worker(self) -> None:
        """Hold the limit in a pool's thread. Never released: the thread ends with its pool."""
        with self.lock:
            self.own.hold(each for each in self.libraries if _is_per_thread(each))

    @property
    def own(self) -> _Limit:
        """The limit of the calling thread."""
        if not hasattr(self.threads, "limit"):
            self.threads.limit = _Limit()
        limit: _Limit = self.threads.limit
        return limit

    def after_fork(self) -> None:
        """Lift the limits in a forked child: the threads that held them do not exist there."""
        self.process.lift()
        self.own.lift()
        self.__init__()  # type: ignore[misc]


def _is_per_thread(library: LibController) -> bool:
    on_openmp = getattr(library, "threading_layer", "") == "openmp"
    return library.internal_api == "mkl" or (library.internal_api == "openblas" and on_openmp)


def _set_threads(library: LibController, n_threads: int) -> None:
    """Set a library's number of threads.

    threadpoolctl lets only the thread that first set OpenBLAS's limit change it, and ignores
    others. Our first and last holder may be different threads, so we lift that restriction.
    """
    disown = getattr(library, "clear_controlling_thread", None)
    if disown is not None:
        disown(force=True)
    library.set_num_threads(n_threads)
    if disown is not None:
        disown(force=True)


_blas = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, whatever other threads of the process do meanwhile.

    For everything whose result must not depend on the number of cores or on other computations.
    """
    _blas.hold()
    try:
        yield
    finally:
        _blas.release()


@contextmanager
def pool() -> Iterator[Run]:
    """Yield a `Run` on the threads of the context, with BLAS held to one thread each."""
    others = count() - 1  # the calling thread works, too
    with (
        one_blas_thread(),
        ThreadPoolExecutor(max(1, others), initializer=_blas.hold_worker) as executor,
    ):

        def run(function: Callable[[Item], Output], items: Sequence[Item]) -> list[Output]:
            return _run(function, items, executor, others)

        yield run


def run_kernels(function: Callable[[Item], Output], items: Sequence[Item]) -> list[Output]:
    """Run work that calls no BLAS, and may take less than a millisecond, as a pool's `Run` does.

    BLAS is left alone: to make a pool would take longer than to search some thousands of codes.
    """
    others = 0 if len(items) <= 1 else min(count(), len(items)) - 1
    if not others:
        return _run(function, items, None, 0)
    with ThreadPoolExecutor(others) as executor:
        return _run(function, items, executor, others)


def _run(
    function: Callable[[Item], Output],
    items: Sequence[Item],
    executor: ThreadPoolExecutor | None,
    others: int,
) -> list[Output]:
    """Take the items in turn, in this thread and `others` more, all in a copy of its context.

    To wake another thread takes as long as many an item: what it has not begun when all is done,
    it need not begin. Where items fail, no more are begun, and the error of the first is raised:
    always the same, as they are begun in order.
    """
    with underway.loop("", len(items)) as progress:
        others = min(others, len(items) - 1)
        if executor is None or others <= 0:
            return [_counted(_begun(function, item), progress) for item in items]
        waiting = deque(range(len(items)))
        outputs: dict[int, Output] = {}
        failed: dict[int, Exception] = {}

        def work() -> None:
            while waiting:
                try:
                    at = waiting.popleft()
                except IndexError:  # another thread was quicker
                    return
                try:
                    outputs[at] = _begun(function, items[at])
                except Exception as error:
                    failed[at] = error
                    waiting.clear()
                progress.done = len(outputs)

        helpers = [executor.submit(copy_context().run, work) for _ in range(others)]
        try:
            work()
        finally:
            waiting.clear()  # Ctrl-C came
            for helper in helpers:
                if not helper.cancel():
                    helper.result()
        if failed:
            raise failed[min(failed)]
        progress.done = len(items)  # two threads may have counted at once
        return [outputs[at] for at in range(len(items))]


def _begun(function: Callable[[Item], Output], item: Item) -> Output:
    deadline.check()
    return function(item)


def _counted(output: Output, progress: context.Loop) -> Output:
    progress.done += 1
    return output


def chunks(n: int, size: int) -> list[slice]:
    """Cut range(n) into slices of `size`; the last may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def n_shares(n: int, n_pairs: int, size: int) -> int:
    """Return the number of tasks for n points, if each task passes over all pairs.

    As many as there are threads with `size` pairs each; more for many points, so that progress
    can be shown, but not so many that the passes add up.
    """
    return max(min(count(), 1 + n_pairs // size), min(n // POINTS_PER_SHARE, MAX_SHARES))
