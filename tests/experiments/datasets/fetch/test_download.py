"""Against a server of our own on the loopback that breaks off, forgets ranges and refuses."""

import json
import re
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from auxhash.experiments.datasets.fetch import download as module
from auxhash.experiments.datasets.fetch.download import download
from tests.experiments.datasets.made import everything_in

CONTENT = bytes(range(256)) * 1000


CHANGED = CONTENT[::-1]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.headers.get("Range"))
        behaviour = self.path.strip("/")
        content = CHANGED if self.server.changed else CONTENT
        tag = f'"{content[0]}"'
        if behaviour == "missing":
            return self.send_error(404)
        if behaviour == "busy" and len(self.server.seen) < 3:
            return self.send_error(503)
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        same = self.headers.get("If-Range", tag) == tag
        if match and same and behaviour != "forgetful":
            start = int(match[1])
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206)
            sent = 0 if behaviour == "elsewhere" else start
            self.send_header("Content-Range", f"bytes {sent}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if behaviour == "tagged":
            self.send_header("ETag", tag)
        rest = content[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        broken = behaviour == "broken" and len(self.server.seen) < 3
        if behaviour == "slow":
            self.wfile.write(rest[:1000])
            self.wfile.flush()
            self.server.go_on.wait(60)
            rest = rest[1000:]
        self.wfile.write(rest[: len(rest) // 2] if broken else rest)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.seen = []
        httpd.changed = False
        httpd.go_on = threading.Event()
        httpd.address = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield httpd
        httpd.go_on.set()
        httpd.shutdown()
        thread.join()


def test_plain(server, tmp_path):
    reports = []
    download(f"{server.address}/plain", tmp_path / "f", lambda *report: reports.append(report))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert reports[-1] == (len(CONTENT), len(CONTENT))
    assert not (tmp_path / "f.part").exists()


def test_goes_on_where_the_server_broke_off(server, tmp_path):
    download(f"{server.address}/broken", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen == [None, f"bytes={len(CONTENT) // 2}-", f"bytes={len(CONTENT) * 3 // 4}-"]


def left_over(path, content, address, version=""):
    """Return what a process leaves that was killed as it fetched from this address."""
    path.with_name("f.part").write_bytes(content)
    origin = {"address": address, "version": version}
    path.with_name("f.part.json").write_text(json.dumps(origin))


def test_goes_on_from_an_earlier_run(server, tmp_path):
    left_over(tmp_path / "f", CONTENT[:1000], f"{server.address}/plain")
    download(f"{server.address}/plain", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen == ["bytes=1000-"]
    assert everything_in(tmp_path) == ["f"]


def test_a_part_that_is_whole_is_not_fetched_again(server, tmp_path):
    left_over(tmp_path / "f", CONTENT, f"{server.address}/plain")
    download(f"{server.address}/plain", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen == [f"bytes={len(CONTENT)}-"]


def test_starts_anew_where_the_part_is_from_elsewhere(server, tmp_path):
    """An official address and a mirror may well hold different files of one name."""
    left_over(tmp_path / "f", CHANGED[:1000], f"{server.address}/mirror")
    download(f"{server.address}/plain", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    (tmp_path / "f.part").write_bytes(CHANGED[:1000])  # nobody knows from where
    download(f"{server.address}/plain", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen == [None, None]


def test_starts_anew_where_the_server_s_file_has_changed(server, tmp_path):
    left_over(tmp_path / "f", CONTENT[:1000], f"{server.address}/tagged", f'"{CONTENT[0]}"')
    server.changed = True
    download(f"{server.address}/tagged", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CHANGED
    assert server.seen == ["bytes=1000-"]


def test_starts_anew_where_the_server_sends_another_part(server, tmp_path):
    left_over(tmp_path / "f", CONTENT[:1000], f"{server.address}/elsewhere")
    download(f"{server.address}/elsewhere", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_starts_anew_where_the_server_knows_no_ranges(server, tmp_path):
    left_over(tmp_path / "f", b"something else", f"{server.address}/forgetful")
    download(f"{server.address}/forgetful", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_starts_anew_where_the_part_is_too_long(server, tmp_path):
    left_over(tmp_path / "f", CONTENT + b"more", f"{server.address}/plain")
    download(f"{server.address}/plain", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


FETCH = """
    import sys
    from pathlib import Path
    from auxhash.experiments.datasets.fetch.download import download

    print("begins", flush=True)
    download(sys.argv[1], Path(sys.argv[2]))
"""


def test_two_processes_do_not_fetch_into_one_part(server, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(FETCH), f"{server.address}/slow"]
    with ExitStack() as stack:
        running = []
        for _ in range(2):
            process = subprocess.Popen([*command, tmp_path / "f"], stdout=subprocess.PIPE)
            running.append(stack.enter_context(process))
            assert process.stdout.readline() == b"begins\n"
            while not server.seen:
                time.sleep(0.01)
        time.sleep(0.5)  # in which the second would ask the server
        server.go_on.set()
        assert [process.wait() for process in running] == [0, 0]
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen == [None]  # the second has found the file whole
    assert everything_in(tmp_path) == ["f"]


def test_the_next_process_goes_on_where_one_was_killed(server, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(FETCH), f"{server.address}/slow"]
    with subprocess.Popen([*command, tmp_path / "f"]) as process:
        while not (tmp_path / "f.part").exists():
            time.sleep(0.01)
        process.kill()
    server.go_on.set()
    download(f"{server.address}/slow", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_tries_again_where_the_server_is_busy(server, tmp_path):
    download(f"{server.address}/busy", tmp_path / "f")
    assert len(server.seen) == 3


def test_gives_up_at_once_where_nothing_is_there(server, tmp_path):
    with pytest.raises(OSError, match="the server answered 404 Not Found"):
        download(f"{server.address}/missing", tmp_path / "f")
    assert len(server.seen) == 1


def test_keeps_the_part_when_it_gives_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    with pytest.raises(OSError, match=r"broke off after 128000 of 256000 bytes|IncompleteRead"):
        download(f"{server.address}/broken", tmp_path / "f")
    assert (tmp_path / "f.part").read_bytes() == CONTENT[:128000]


def test_an_address_where_nobody_listens(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(OSError, match="refused"):
        download("http://127.0.0.1:1/f", tmp_path / "f")
