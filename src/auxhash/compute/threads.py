"""Fixed chunks of work on several threads: the chunks, never the threads, define a result.

Kernels release the interpreter's lock, so a thread pool is all the parallelism we need. Matrix
products run on one BLAS thread each, since their sums depend on how many there are, and our chunks
feed the cores.
"""

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from auxhash.checks import ArgumentError

Item = TypeVar("Item")
Result = TypeVar("Result")

CGROUP = Path("/sys/fs/cgroup")


class Run(Protocol):
    """Apply a function to every item and return the results in the items' order."""

    def __call__(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]: ...


def count(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`.

    None takes every core that this process may use, unlike scikit-learn, where None means 1:
    threads share X and the codes, so that using them costs no memory. Inside joblib's workers and
    Dask's, None takes the worker's share of the cores. -1 takes every core even there, -2 all but
    one.
    """
    if n_jobs is None:
        return _share()
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise ArgumentError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ArgumentError("n_jobs must not be 0; None or -1 takes every core")
    return int(n_jobs) if n_jobs > 0 else max(1, cores() + 1 + int(n_jobs))


def cores() -> int:
    """The cores that this process may use: by affinity, and by its container's CPU quota."""
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    return max(1, min(available, _quota()))


def _quota() -> int:
    """Cores' worth of time that the control group grants, rounded up."""
    try:
        if (CGROUP / "cpu.max").exists():
            most, period = (CGROUP / "cpu.max").read_text().split()
        else:
            most = (CGROUP / "cpu/cpu.cfs_quota_us").read_text()
            period = (CGROUP / "cpu/cpu.cfs_period_us").read_text()
        quota = float(most) / float(period)
    except (OSError, ValueError):  # not Linux, no control group, or "max"
        return sys.maxsize
    return math.ceil(quota) if quota > 0 else sys.maxsize


def _share() -> int:
    """The cores, divided by the workers that share them.

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


class _Blas:
    """Holds every BLAS library of the process to one thread while anyone wants it so.

    OpenBLAS and BLIS have one setting for the whole process, so that holders are counted: the
    first sets it, and the last puts back what was there. MKL, and OpenBLAS on OpenMP, have one
    setting for each thread.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.holders = 0
        self.before: dict[str, tuple[Any, int]] = {}  # library and its threads, by its path
        self.libraries: list[Any] = []
        self.modules = -1  # imported when the libraries were last looked for

    def hold(self) -> list[tuple[Any, int]]:
        """Set the limit; return what to `release` with, from the same thread."""
        with self.lock:
            self.holders += 1
            if self.modules != len(sys.modules):  # an import may have brought another library
                self.modules = len(sys.modules)
                found = ThreadpoolController().select(user_api="blas")
                self.libraries = found.lib_controllers
            own = [(each, each.num_threads) for each in self.libraries if _is_per_thread(each)]
            for library in self.libraries:
                if _is_per_thread(library):
                    library.set_num_threads(1)
                elif library.filepath not in self.before:
                    self.before[library.filepath] = library, library.num_threads
                    _set_process_wide(library, 1)
            return own

    def release(self, own: list[tuple[Any, int]]) -> None:
        with self.lock:
            for library, n_threads in own:
                library.set_num_threads(n_threads)
            self.holders -= 1
            if not self.holders:
                self.lift()

    def lift(self) -> None:
        for library, n_threads in self.before.values():
            _set_process_wide(library, n_threads)
        self.before.clear()

    def hold_worker(self) -> None:
        """Set the limit of a thread that ends before the one that started it releases."""
        for library in self.libraries:
            if _is_per_thread(library):
                library.set_num_threads(1)

    def after_fork(self) -> None:
        """The child has none of the threads that held the limit: lift it."""
        self.lock = threading.Lock()
        self.lift()
        self.reset()


def _is_per_thread(library: Any) -> bool:
    on_openmp = getattr(library, "threading_layer", "") == "openmp"
    return library.internal_api == "mkl" or (library.internal_api == "openblas" and on_openmp)


def _set_process_wide(library: Any, n_threads: int) -> None:
    """Set OpenBLAS's or BLIS's number of threads, from any thread.

    threadpoolctl lets only the thread that set OpenBLAS's limit first change it, and ignores
    others. Our first and last holder may be two threads, and we count them ourselves.
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

    Around everything whose result must not depend on the number of cores, or on who else computes.
    """
    own = _blas.hold()
    try:
        yield
    finally:
        _blas.release(own)


@contextmanager
def pool(n_jobs: int | None) -> Iterator[Run]:
    """Yield a `Run` on `n_jobs` threads, with BLAS held to one thread each."""
    threads = count(n_jobs)
    with one_blas_thread(), ThreadPoolExecutor(threads, initializer=_blas.hold_worker) as executor:

        def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
            if threads == 1 or len(items) == 1:  # handing work over costs more than a little of it
                return [function(item) for item in items]
            return list(executor.map(function, items))

        yield run


def chunks(n: int, size: int) -> list[slice]:
    """Cut range(n) into slices of `size`; the last may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
