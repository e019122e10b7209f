"""`auxhash serve` under load, on loopback: requests per second and their times, and its memory.

The server is a process of its own; clients are threads of this one, each with a connection. What
is asked is the library's own search, through HTTP; the ratio is to that search, called directly.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from auxhash import stores
from auxhash.compute.words import count
from benchmarks.records import markdown, write_tables

BITS, K, SEED = 64, 10, 0
CLIENTS = (1, 4, 16, 64)
START = "from auxhash.cli import main; main(prog_name='auxhash')"


class Server:
    """The server of a store, and what the system knows of its process."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-c", START, "serve", "--store", url, "--port", "0"]
        self._process = subprocess.Popen(
            [*command, "--rate", "0", "--no-open"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert self._process.stdout is not None
            match = re.match(r"http://\S+:\d+", self._process.stdout.readline())
            assert match is not None
            self.place = urlsplit(match[0]).netloc
            line = HTTPConnection(self.place)
            while ask(line, "GET", "/readyz", None) != 200:
                line.close()
                time.sleep(0.05)
            line.close()
        except BaseException:
            self._process.kill()
            raise

    def megabytes(self) -> float:
        """Megabytes of memory that the server holds; NaN where the system does not say."""
        try:
            text = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return float("nan")
        match = re.search(r"VmRSS:\s+(\d+) kB", text)
        return int(match[1]) / 1024 if match else float("nan")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.communicate()  # closes its output as well


def ask(line: HTTPConnection, method: str, path: str, body: bytes | None) -> int:
    """The status of an answer that was read to its end."""
    line.request(method, path, body, {"Content-Type": "application/json"})
    answer = line.getresponse()
    answer.read()
    return answer.status


def bodies(kind: str, n: int) -> list[bytes]:
    """Requests of one kind, each another."""
    rng = np.random.default_rng(SEED + 1)
    contents = []
    for number in range(n):
        n_codes = 100 if kind == "100 queries" else 1
        codes = [row.tobytes().hex() for row in random_codes(n_codes, rng)]
        if kind == "upsert":
            content: object = {"points": [{"id": number, "code": codes[0]}]}
        else:
            content = {"codes": codes, "k": K}
        contents.append(json.dumps(content).encode())
    return contents


def load(place: str, clients: int, kind: str, seconds: float) -> list[float]:
    """The time of each request, in seconds, that so many clients make one after the other."""
    method, path = ("PUT", "/points") if kind == "upsert" else ("POST", "/points/query")
    prepared = bodies(kind, 64)
    taken: list[list[float]] = [[] for _ in range(clients)]
    end = time.perf_counter() + seconds

    def work(own: list[float], first: int) -> None:
        line, number = HTTPConnection(place), first
        while time.perf_counter() < end:
            begun = time.perf_counter()
            status = ask(line, method, path, prepared[number % len(prepared)])
            assert status == 200, status
            own.append(time.perf_counter() - begun)
            number += 1
        line.close()

    threads = [threading.Thread(target=work, args=(own, i)) for i, own in enumerate(taken)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each for own in taken for each in own]


def random_codes(n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    return rng.integers(0, 256, (n, BITS // 8), dtype=np.uint8)


def per_second(work: Callable[[], object], seconds: float) -> float:
    """Rate of the work, per second."""
    done = 0
    for _ in range(2):  # the first time, it may load or compile what it needs
        begun, done = time.perf_counter(), 0
        while time.perf_counter() < begun + seconds:
            work()
            done += 1
    return done / (time.perf_counter() - begun)


def measured(url: str, n: int, seconds: float, clients: tuple[int, ...]) -> list[list[str]]:
    """Rows: what is asked, clients, requests per second, p50, p99, ratio, memory after."""
    rng = np.random.default_rng(SEED)
    begun = time.perf_counter()
    store = stores.open(url)
    opening = time.perf_counter() - begun
    one, many = random_codes(1, rng), random_codes(100, rng)
    with store:
        direct = {
            "1 query": per_second(lambda: store.search(one, K), seconds / 4),
            "100 queries": per_second(lambda: store.search(many, K), seconds / 4),
        }
    rows = [["opening, s per million codes", "", "", "", "", "", f"{opening * 1e6 / n:.2f}"]]
    with Server(url) as server:
        rows.append(["memory before, MB", "", "", "", "", "", f"{server.megabytes():.0f}"])
        load(server.place, 1, "100 queries", seconds / 2)  # until it has loaded its kernels
        for kind in ("1 query", "100 queries", "upsert"):
            for number in clients:
                begun = time.perf_counter()
                taken = load(server.place, number, kind, seconds)
                rate = len(taken) / (time.perf_counter() - begun)
                p50, p99 = 1000 * np.percentile(taken, [50, 99])
                ratio = f"{rate / direct[kind]:.2f}" if kind in direct else ""
                memory = f"{server.megabytes():.0f} MB"
                rows.append(
                    [kind, str(number), f"{rate:,.0f}", f"{p50:.1f}", f"{p99:.1f}", ratio, memory]
                )
    return rows


def after_other_writer(n: int) -> tuple[float, float]:
    """Milliseconds of a query, and of one after another process's commit; each median of 20."""
    rng = np.random.default_rng(SEED)
    query = random_codes(1, rng)
    with tempfile.TemporaryDirectory() as folder:
        url = stores.file_url("sqlite", Path(folder) / "codes.db")
        with stores.open(url, BITS) as store:
            store.upsert(np.arange(n), random_codes(n, rng))
            with stores.open(url) as other:  # to SQLite, a connection of any process
                taken: dict[bool, list[float]] = {False: [], True: []}
                for turn in range(42):
                    written = turn % 2 == 1
                    if written:
                        other.upsert([turn], random_codes(1, rng))
                    begun = time.perf_counter()
                    store.search(query, K)
                    taken[written].append(time.perf_counter() - begun)
    plain, after = (1000 * float(np.median(times[1:])) for times in taken.values())
    return plain, after


HEADS = ["request", "clients", "requests/s", "p50, ms", "p99, ms", "ratio to the library", "memory"]


def main(small: bool = False, seconds: float = 10.0) -> None:
    n, seconds = (2_000, 0.3) if small else (1_000_000, seconds)
    clients = (1, 4) if small else CLIENTS
    title = f"{n:,} codes of {BITS} bits, k = {K}, {count(os.cpu_count() or 1, 'core')}"
    with tempfile.TemporaryDirectory() as folder:
        url = stores.file_url("sqlite", Path(folder) / "codes.db")
        rng = np.random.default_rng(SEED)
        with stores.open(url, BITS) as store:
            store.upsert(np.arange(n), random_codes(n, rng))
        rows = measured(url, n, seconds, clients)
    n_codes = 2_000 if small else 300_000
    plain, after = (f"{took:.1f}" for took in after_other_writer(n_codes))
    name = f"search of {n_codes:,} codes"
    rows.append([name, "", "", plain, "", "", ""])
    rows.append([f"{name}, after another process's write", "", "", after, "", "", ""])
    table = Table(*HEADS, title=title)
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)
    if not small:
        write_tables({"serve.md": f"{markdown(HEADS, rows)}\n{title}.\n"})


if __name__ == "__main__":
    main("--small" in sys.argv)
