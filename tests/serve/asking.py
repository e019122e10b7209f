"""Clients of a service: in this process, or of a server on a free port."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partialmethod

import httpx

from auxhash import stores
from auxhash.serve import app
from auxhash.serve.limits import Limits
from auxhash.serve.pictures import Pictures
from auxhash.serve.service import Service
from tests.serve.conftest import BITS

__all__ = ["Limits", "Pictures", "Service", "asking", "reason", "right", "serving", "status"]

START = "from auxhash.cli import main; main(prog_name='auxhash')"


class Client:
    """Asks an application in this process, one request after the other."""

    def __init__(self, made, runner, address=("127.0.0.1", 50_000)):
        self._runner = runner
        transport = httpx.ASGITransport(made, raise_app_exceptions=False, client=address)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def request(self, method, path, **more):
        return self._runner.run(self._client.request(method, path, **more))

    get = partialmethod(request, "GET")
    put = partialmethod(request, "PUT")
    post = partialmethod(request, "POST")
    delete = partialmethod(request, "DELETE")

    def all(self, *requests):
        """The answers to (method, path, content) that come at once."""

        async def gathered():
            return await asyncio.gather(
                *(self._client.request(m, path, json=body) for m, path, body in requests)
            )

        return self._runner.run(gathered())


@contextmanager
def started(made, runner):
    """The application between its start and its end, as a server would have it."""
    messages = [{"type": "lifespan.startup"}]
    output, ending = [], asyncio.Event()

    async def receive():
        if not messages:
            await ending.wait()
            return {"type": "lifespan.shutdown"}
        return messages.pop()

    async def send(message):
        output.append(message["type"])

    async def begin():
        task = asyncio.create_task(made({"type": "lifespan"}, receive, send))
        while not output:
            await asyncio.sleep(0)
        return task

    async def end(task):
        ending.set()
        await task

    task = runner.run(begin())
    try:
        yield
    finally:
        runner.run(end(task))
        assert output == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@contextmanager
def asking(url, hasher=None, limits=None, token=None, pictures=None, opened=None):
    """A client of a service on the store, in this process."""
    limits = limits or Limits(rate=0)

    def usual():
        return Service(stores.open(url, BITS), hasher, pictures, limits)

    made, work = app.make(opened or usual, limits, token)
    with asyncio.Runner() as runner, started(made, runner):
        while opened is None and not work.ready:
            assert work.failed is None, work.failed
            runner.run(asyncio.sleep(0.005))
        client = Client(made, runner)
        client.made, client.work, client.runner = made, work, runner
        yield client


@contextmanager
def serving(*options, env=None, ready=True):
    """The URL and process of `auxhash serve` on a free port; it is killed at the end."""
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--no-open", *map(str, options)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        line = process.stdout.readline()
        url = re.match(r"http://\S+:\d+", line)
        assert url, line + process.communicate()[1]
        while ready and status(f"{url[0]}/readyz") != 200:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        yield url[0], process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def status(url, **more):
    try:
        return httpx.get(url, **more).status_code
    except httpx.TransportError:
        return None


def right(answer, status=200):
    """The content of an answer of this status."""
    assert answer.status_code == status, answer.text
    return answer.json()


def reason(answer, status):
    """Why an answer is none."""
    return right(answer, status)["error"]
