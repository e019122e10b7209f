"""The client of the standard library, and a real server; and servers that are none."""

import json
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.client import (
    AnswerError,
    Client,
    Match,
    ServiceError,
    TimedOutError,
    TokenError,
    UnreachableError,
)
from tests.cli.conftest import make_photos
from tests.serve.conftest import FEATURES

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
serving = serve.serving

LARGEST = 2**63 - 1
TOKEN = "a-token-that-nobody-knows"


def test_points_and_queries(url, model, hasher):
    X = np.random.default_rng(1).normal(size=(50, FEATURES)).astype(np.float32)
    codes = hasher.encode(X)
    with serving("--store", url, "--model", model, "--batch", 20) as (at, _):
        client = Client(at)
        points = [{"id": i, "vector": x, "payload": {"even": i % 2}} for i, x in enumerate(X)]
        assert client.put(points) == 50  # in three requests
        assert client.put([{"id": LARGEST, "code": codes[0], "payload": {"even": 2}}]) == 1
        assert client.count() == client.info()["points"] == 51
        assert client.encode(X) == [bytes(code) for code in codes]
        assert client.point(3)["code"] == bytes(codes[3]).hex()
        [first, _] = client.search(vectors=X[:2], k=2, with_payload=True)
        assert first.hits == (Match(0, 0, {"even": 0}), Match(LARGEST, 0, {"even": 2}))
        assert (first.by, first.cut) == ("hamming", False)
        [near] = client.search(codes=[codes[0]], radius=0, filter={"field": "even", "value": 2})
        assert [hit.id for hit in near.hits] == [LARGEST]
        [near] = client.search(codes=[bytes(codes[0]).hex()], radius=20, limit=1)
        assert near.cut
        assert client.search(vectors=X[:1], by="outputs", k=1)[0].by == "outputs"
        [near] = client.search(ids=[5], rerank=5, k=1, metric="cosine")
        assert (near.by, near.hits[0].id) == ("cosine", 5)
        assert client.delete([*range(40), LARGEST, 12345]) == 41
        assert client.count() == 10


def test_text_ids(url):
    """They stay text, even where they look like large numbers."""
    names = ["9007199254740993", "a/b c", "7", "count", "\u00e9?#"]
    with serving("--store", url, "--bits", 16) as (at, _):
        client = Client(at)
        assert client.put([{"id": name, "code": "ff00"} for name in names]) == 5
        [near] = client.search(codes=["ff00"])
        assert [hit.id for hit in near.hits] == sorted(names)
        assert [client.point(name)["id"] for name in names] == names
        assert client.delete(names[:3]) == 3


def test_a_large_put_is_cut_by_bytes(url, model):
    X = np.random.default_rng(2).normal(size=(400, FEATURES))
    with serving("--store", url, "--model", model, "--body", 20_000) as (at, _):
        client = Client(at)
        assert client.put({"id": i, "vector": x} for i, x in enumerate(X)) == client.count() == 400
        assert len(client.encode(X)) == 400
        with pytest.raises(AnswerError, match="must be at most 20,000 bytes") as caught:
            client.put([{"id": 1, "vector": X[0], "payload": {"text": "x" * 30_000}}])
        assert caught.value.status == 413


def test_pictures_of_a_folder(tmp_path):
    """From a folder of pictures to answers by their names, which more pictures can join."""
    make_photos(tmp_path / "photos")
    command = ["build", tmp_path / "photos", "-o", tmp_path / "search", "--bits", 16, "--vectors"]
    result = CliRunner().invoke(main, list(map(str, command)))
    assert result.exit_code == 0, result.output
    with serving(tmp_path / "search") as (at, _):
        client = Client(at)
        photo = tmp_path / "photos" / "across" / "01.png"
        [near] = client.search(images=[photo], k=1, rerank=24)
        assert near.hits == (Match("across/01.png", pytest.approx(0, abs=1e-6)),)
        more = [photo.read_bytes()] * 20  # more than a request takes
        assert client.put([{"id": f"new {i}", "image": one} for i, one in enumerate(more)]) == 20
        [near] = client.search(ids=["new 7"], radius=0)
        assert {"across/01.png", *(f"new {i}" for i in range(20))} <= {hit.id for hit in near.hits}
        codes = client.encode(images=[str(photo), more[0]])
        assert [code.hex() for code in codes] == [client.point("new 0")["code"]] * 2


def test_tokens(url):
    with serving("--store", url, "--bits", 16, env={"AUXHASH_TOKEN": TOKEN}) as (at, _):
        assert Client(at, TOKEN).info()["n_bits"] == 16
        with pytest.raises(TokenError, match="a token is needed"):
            Client(at).info()
        with pytest.raises(TokenError, match="the token is wrong") as caught:
            Client(at, "another").search(codes=["0000"])
        assert caught.value.status == 401
        with pytest.raises(AnswerError, match=r"there is no point 7 \(status 404\)") as caught:
            Client(at, TOKEN).point(7)
        assert not isinstance(caught.value, TokenError)
        with pytest.raises(AnswerError, match="k: Input should be less than") as caught:
            Client(at, TOKEN).search(codes=["0000"], k=10**6)
        assert caught.value.reason.startswith("k: Input")


@contextmanager
def answering(content):
    """The address of a server that answers every request with these bytes, if any."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = []

        def answer():
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line:
                    heard.append(line.recv(65_536))
                    if content is None:
                        line.recv(1)  # until the client has gone
                    else:
                        line.sendall(content)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def reply(status, body=b"", *headers):
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def test_nobody_answers():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        at = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(UnreachableError, match=f"{at} cannot be reached: Connection refused"):
        Client(at).count()
    with answering(None) as (at, _), pytest.raises(TimedOutError, match=r"within 0\.1 seconds"):
        Client(at, timeout=0.1).count()
    with answering(b"") as (at, _), pytest.raises(ServiceError, match=at):
        Client(at).count()
    with pytest.raises(ValueError, match="url must begin with http:// or https://, got 'local"):
        Client("localhost:8000")


def test_answers_of_others():
    busy = reply("503 Busy", json.dumps({"error": "busy"}).encode(), "Retry-After: 7")
    for answer, kind, says in (
        (reply("200 OK", b"<html>"), ServiceError, "does not answer as auxhash does"),
        (reply("502 Bad Gateway", b"<html>"), AnswerError, r"Bad Gateway, .* \(status 502\)"),
        (busy, AnswerError, r"busy \(status 503\)"),
    ):
        with answering(answer) as (at, _), pytest.raises(kind, match=says) as caught:
            Client(at).info()
    assert caught.value.retry_after == 7


def test_the_token_goes_nowhere_else():
    """A redirection is not followed."""
    with answering(reply("200 OK", b"{}")) as (other, heard):
        moved = reply("302 Found", b"", f"Location: {other}/info")
        with answering(moved) as (at, _), pytest.raises(AnswerError, match="status 302"):
            Client(at, TOKEN).info()
        assert heard == []


def test_what_cannot_be_sent():
    client = Client("http://localhost:1")
    with pytest.raises(ValueError, match="give either vectors or images"):
        client.encode()
    good, bad = [0.5, 1], np.array([0, np.inf], np.float32)
    for vectors in ([good, bad], [good, list(bad)], [good, [0.5, float("nan")]]):
        for ask in (client.search, client.encode):
            with pytest.raises(ValueError, match=r"vectors\[1\] must be finite, and holds (in|na)"):
                ask(vectors=vectors)
        with pytest.raises(ValueError, match=r"points\[1\] must be finite, and holds (inf|nan)"):
            client.put([{"id": i, "vector": vector} for i, vector in enumerate(vectors)])
    with pytest.raises(TypeError, match="object cannot be sent as JSON"):
        client.search(vectors=[object()])
    with pytest.raises(FileNotFoundError):
        client.search(images=["missing.png"])
