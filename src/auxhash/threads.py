"""Fixed chunks of work on several threads: the chunks, never the threads, define a result.

Kernels release the interpreter's lock, so a thread pool is all the parallelism we need. Inside a
pool BLAS keeps to one thread: its sums depend on how many it uses, and our chunks feed the cores.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Protocol, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


class Run(Protocol):
    """Apply a function to every item and return the results in the items' order."""

    def __call__(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]: ...


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def count(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`: None or -1 is every core this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; None or -1 takes every core")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@contextmanager
def pool(n_jobs: int | None) -> Iterator[Run]:
    """Yield a `Run` on `n_jobs` threads, with BLAS held to one thread each."""
    threads = count(n_jobs)
    with _blas().limit(limits=1), ThreadPoolExecutor(threads) as executor:

        def run(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
            if threads == 1 or len(items) == 1:  # handing work over costs more than a little of it
                return [function(item) for item in items]
            return list(executor.map(function, items))

        yield run


def chunks(n: int, size: int) -> list[slice]:
    """Cut range(n) into slices of `size`; the last may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
