"""Downloads by plain HTTP, HTTPS or FTP: a broken one goes on where it stopped.

By hand, since pooch starts a broken download anew: of a file whose connection breaks at three
quarters it fetches 1.75 times the bytes, this fetches each once. And pooch needs requests and six
more packages.
"""

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path

from auxhash.files.writing import locked

ATTEMPTS = 3
TIMEOUT_SECONDS = 10.0  # without an answer, or without a byte
PAUSE_SECONDS = 1.0  # before the second attempt; doubled before each one after
BLOCK_BYTES = 1 << 16

Report = Callable[[int, int | None], None]  # bytes so far, bytes in all where known


def download(address: str, path: Path, report: Report = lambda done, total: None) -> None:
    """Fetch `address` into `path`, by way of `path`.part, which a later call goes on from.

    Of several processes that fetch into one path, one does, and the others wait for it.

    Raises OSError with a plain reason where the address is unknown, refuses, or breaks off
    `ATTEMPTS` times.
    """
    part = _Part(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = _mark(path)
    with locked(path.with_name(path.name + ".lock"), wait=True):
        if _mark(path) not in (None, before):
            return  # another process has fetched it while this one waited
        for attempt in range(ATTEMPTS):
            try:
                _fetch(address, part, report)
                part.finish()
                return
            except (OSError, http.client.HTTPException) as error:
                if _hopeless(error) or attempt == ATTEMPTS - 1:
                    raise OSError(_reason(error)) from error
                time.sleep(PAUSE_SECONDS * 2**attempt)


class _Part:
    """The part of a file fetched so far, and a note of its source: bytes of two must not mix."""

    def __init__(self, path: Path) -> None:
        self.target = path
        self.path = path.with_name(path.name + ".part")
        self.origin = path.with_name(path.name + ".part.json")

    def version(self, address: str) -> str | None:
        """Version of the file that the part is of, "" where the server did not say.

        None where there is nothing to go on from: no part, or one of another address.
        """
        try:
            origin = json.loads(self.origin.read_text("utf-8"))
            if self.path.stat().st_size and origin["address"] == address:
                return str(origin["version"])
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return None

    def start(self, address: str, version: str) -> None:
        self.path.unlink(missing_ok=True)
        self.origin.write_text(json.dumps({"address": address, "version": version}), "utf-8")

    def drop(self) -> None:
        self.origin.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def finish(self) -> None:
        self.path.replace(self.target)
        self.origin.unlink(missing_ok=True)


def _fetch(address: str, part: _Part, report: Report) -> None:
    """One attempt: append to the part what it lacks, if the server can; else start anew."""
    headers = {"User-Agent": "auxhash", "Accept-Encoding": "identity"}
    version = part.version(address)
    have = 0 if version is None else part.path.stat().st_size
    if have:
        headers["Range"] = f"bytes={have}-"
    if version:
        headers["If-Range"] = version  # if the file has changed, all of it is sent
    request = urllib.request.Request(address, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            if error.headers.get("Content-Range") == f"bytes */{have}":
                return  # the part is the whole file: a process was killed before it could rename it
        part.drop()  # not a beginning of this file
        raise ConnectionError("the server's file is shorter than the part we had") from error
    with answer:
        resumed = getattr(answer, "status", None) == http.HTTPStatus.PARTIAL_CONTENT
        if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.drop()
            raise ConnectionError("the server sent another part of the file than was asked for")
        done = have if resumed else 0
        if not resumed:
            part.start(address, _version(answer.headers))
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.path.open("ab") as out:
            while block := answer.read(BLOCK_BYTES):
                out.write(block)
                done += len(block)
                report(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"broke off after {done} of {total} bytes")


def _version(headers: Message) -> str:
    """The value for If-Range: the ETag, if it is a strong one, else the time of the last change."""
    tag = headers.get("ETag", "")
    return str(tag if tag.startswith('"') else headers.get("Last-Modified", ""))


def _mark(path: Path) -> tuple[int, ...] | None:
    """Mark of the file at `path`, or None; it differs once another file is there."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _hopeless(error: Exception) -> bool:
    """Return True if another attempt would end the same way: no such host, no such page."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code not in (408, 416, 429)
    reason = getattr(error, "reason", error)
    return isinstance(reason, socket.gaierror)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    return str(getattr(error, "reason", error)) or type(error).__name__
