"""Against a server of our own on the loopback that breaks off, forgets ranges and refuses."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from auxhash.datasets import download as module
from auxhash.datasets.download import download

CONTENT = bytes(range(256)) * 1000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.headers.get("Range"))
        behaviour = self.path.strip("/")
        if behaviour == "missing":
            return self.send_error(404)
        if behaviour == "busy" and len(self.server.seen) < 3:
            return self.send_error(503)
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if match and behaviour != "forgetful":
            start = int(match[1])
            if start >= len(CONTENT):
                return self.send_error(416)
            self.send_response(206)
        else:
            self.send_response(200)
        rest = CONTENT[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        broken = behaviour == "broken" and len(self.server.seen) < 3
        self.wfile.write(rest[: len(rest) // 2] if broken else rest)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.seen = []
        httpd.address = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield httpd
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


def test_goes_on_from_an_earlier_run(server, tmp_path):
    (tmp_path / "f.part").write_bytes(CONTENT[:1000])
    download(f"{server.address}/plain", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen == ["bytes=1000-"]


def test_starts_anew_where_the_server_knows_no_ranges(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"something else")
    download(f"{server.address}/forgetful", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_starts_anew_where_the_part_is_too_long(server, tmp_path):
    (tmp_path / "f.part").write_bytes(CONTENT + b"more")
    download(f"{server.address}/plain", tmp_path / "f")
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
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(OSError, match="refused"):
        download("http://127.0.0.1:1/f", tmp_path / "f")
