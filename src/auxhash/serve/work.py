"""Work: jobs of requests, run on a few threads behind a short queue."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from auxhash.compute import deadline
from auxhash.serve.limits import Limits
from auxhash.serve.refused import unavailable
from auxhash.serve.service import Service
from auxhash.stores import StoreError

JobResult = TypeVar("JobResult")
PROBE_SECONDS = 5.0  # after which a store that does not answer counts as down


class Work:
    """A service that is opened in the background, and used by a bounded number of threads.

    The threads compute in the context that this was made in: on as many threads of their own.
    """

    def __init__(self, opened: Callable[[], Service], limits: Limits) -> None:
        self._opened, self._limits = opened, limits
        self._threads = ThreadPoolExecutor(limits.workers, "auxhash-serve")
        self._context = contextvars.copy_context()
        self._service: Service | None = None
        self._opening: asyncio.Future[Service] | None = None
        self.failed: BaseException | None = None  # why it could not be opened
        self.on_failure: Callable[[], object] = lambda: None
        self.present = 0  # requests in work or in the queue

    @property
    def ready(self) -> bool:
        return self._service is not None

    def start(self) -> None:
        """Begin to open the service."""
        loop = asyncio.get_running_loop()
        self._opening = loop.run_in_executor(self._threads, self._context.copy().run, self._opened)
        self._opening.add_done_callback(self._is_open)

    def _is_open(self, opening: "asyncio.Future[Service]") -> None:
        if opening.cancelled():
            return
        self.failed = opening.exception()
        if self.failed is None:
            self._service = opening.result()
        else:
            self.on_failure()

    async def do(self, job: Callable[[Service], JobResult]) -> JobResult:
        """Run a job on one of the threads and return its result; refuse it if the queue is full."""
        service = self._service
        if service is None:
            raise unavailable("the service is starting")
        if self.present >= self._limits.workers + self._limits.waiting:
            raise unavailable("the service is busy: try again")
        self.present += 1
        try:
            loop = asyncio.get_running_loop()
            run = self._context.copy().run
            return await loop.run_in_executor(self._threads, run, self._in_time, job, service)
        finally:
            self.present -= 1

    def _in_time(self, job: Callable[[Service], JobResult], service: Service) -> JobResult:
        with deadline.within(self._limits.work):
            return job(service)

    async def stop(self) -> None:
        """Finish the jobs that have begun, then close the service."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await asyncio.to_thread(self._threads.shutdown)
        if self._service is not None:
            await asyncio.to_thread(self._service.close)
            self._service = None


class Probe(Generic[JobResult]):
    """A job that anybody may ask for: it runs once at a time, for all who wait for it."""

    def __init__(self, work: Work, job: Callable[[Service], JobResult]) -> None:
        self._work, self._job = work, job
        self._running: asyncio.Task[JobResult] | None = None

    async def result(self) -> JobResult:
        """Return the job's result; RefusedError if the store does not answer."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._work.do(self._job))
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await asyncio.shield(self._running)
        except (StoreError, TimeoutError) as error:  # logged where a request needs the store
            raise unavailable("the store does not answer", 5) from error
