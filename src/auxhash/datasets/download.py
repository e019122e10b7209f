"""Downloads by plain HTTP, HTTPS or FTP: a broken one goes on where it stopped."""

import http.client
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

ATTEMPTS = 3
TIMEOUT = 10.0  # seconds without an answer, or without a byte
PAUSE = 1.0  # seconds before the second attempt; doubled before each one after
BLOCK = 1 << 16

Report = Callable[[int, int | None], None]  # bytes so far, bytes in all where known


def download(address: str, path: Path, report: Report = lambda done, total: None) -> None:
    """Fetch `address` into `path`, by way of `path`.part, which a later call goes on from.

    Raises OSError with a plain reason where the address is unknown, refuses, or breaks off
    `ATTEMPTS` times.
    """
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(ATTEMPTS):
        try:
            _fetch(address, part, report)
            part.replace(path)
            return
        except (OSError, http.client.HTTPException) as error:
            if _hopeless(error) or attempt == ATTEMPTS - 1:
                raise OSError(_reason(error)) from error
            time.sleep(PAUSE * 2**attempt)


def _fetch(address: str, part: Path, report: Report) -> None:
    """One attempt: append to `part` what it lacks, if the server can; else start anew."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "auxhash", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(address, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
        part.unlink()  # not a beginning of this file
        raise ConnectionError("the server's file is shorter than the part we had") from error
    with answer:
        resumed = getattr(answer, "status", None) == http.HTTPStatus.PARTIAL_CONTENT
        done = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if resumed else "wb") as out:
            while block := answer.read(BLOCK):
                out.write(block)
                done += len(block)
                report(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"broke off after {done} of {total} bytes")


def _hopeless(error: Exception) -> bool:
    """Whether another attempt would end the same way: no such host, no such page."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code not in (408, 416, 429)
    reason = getattr(error, "reason", error)
    return isinstance(reason, socket.gaierror)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    return str(getattr(error, "reason", error)) or type(error).__name__
