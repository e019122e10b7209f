"""A real server in a process of its own: many clients at once, slow ones, and kills."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

from auxhash import stores
from auxhash.codes import hamming
from auxhash.learn import baselines, encoder
from tests.serve.conftest import FEATURES

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
httpx = pytest.importorskip("httpx", reason="httpx is missing")
serving, right = serve.serving, serve.right

SOAK = bool(os.environ.get("AUXHASH_SOAK"))
BITS, GROUP = 64, 10
FREE = ("--rate", "0")


@pytest.fixture
def codes(tmp_path):
    """The URL of a store of codes alone: a server of it starts soon."""
    url = f"sqlite:///{tmp_path}/codes.db"
    stores.open(url, BITS).close()
    return url


def group(owner, turn):
    """Points of one write: all have one code and one payload, which tell of each other."""
    code = (turn * 2654435761 + owner) % 2**BITS
    return [
        {
            "id": 1000 * owner + i,
            "code": code.to_bytes(8, "little").hex(),
            "vector": [float(owner), float(turn)],
            "payload": {"owner": owner, "turn": turn, "far": code.bit_count()},
        }
        for i in range(GROUP)
    ]


def turn_of(client, owner):
    """The turn of an owner's points, or None; all are there or none, and fit together."""
    asked = {"codes": ["0" * 16], "radius": BITS, "with_payload": True}
    asked["filter"] = {"field": "owner", "value": owner}
    hits = right(client.post("/points/query", json=asked))["results"][0]["hits"]
    payloads = [hit["payload"] for hit in hits]
    assert len(hits) in (0, GROUP)
    assert all(payload == payloads[0] for payload in payloads)
    assert all(hit["distance"] == hit["payload"]["far"] for hit in hits)
    return payloads[0]["turn"] if payloads else None


def check_store(url, base):
    """The server finds what the store holds: ids, codes."""
    with stores.open(url) as store, httpx.Client(base_url=base) as client:
        parts = list(store.batches())
        ids = np.concatenate([np.empty(0, np.int64), *(part for part, _ in parts)])
        packed = np.concatenate([np.empty((0, 8), np.uint8), *(part for _, part in parts)])
        assert right(client.get("/points")) == {"count": len(ids)}
        query = np.random.default_rng(len(ids)).integers(0, 256, (1, 8), dtype=np.uint8)
        near = hamming(query, packed)[0]
        order = np.lexsort((ids, near))[:50]
        answer = right(
            client.post("/points/query", json={"codes": [bytes(query[0]).hex()], "k": 50})
        )
        result = [(int(hit["id"]), hit["distance"]) for hit in answer["results"][0]["hits"]]
        assert result == list(zip(ids[order].tolist(), near[order].tolist(), strict=True))
        return ids, packed


def test_many_at_once(codes):
    """Writers and readers: every answer is of one moment, and at the end all is as it should be."""
    turns, wrong, last = 30 if SOAK else 8, [], {}

    def guarded(work, *args):
        try:
            with httpx.Client(base_url=base, timeout=30) as client:
                work(client, *args)
        except BaseException as error:
            wrong.append(repr(error))
            raise

    def write(client, owner):
        for turn in range(turns):
            right(client.put("/points", json={"points": group(owner, turn)}))
            last[owner] = turn
            assert turn_of(client, owner) == turn  # one's own writes are seen at once
            if turn % 3 == 1:
                gone = [point["id"] for point in group(owner, turn)]
                deleted = right(client.post("/points/delete", json={"ids": gone}))
                assert deleted == {"deleted": GROUP}
                last[owner] = None
                assert turn_of(client, owner) is None

    def read(client):
        for turn in range(2 * turns):
            turn_of(client, turn % 3)
            asked = {"codes": ["f" * 16], "k": 5}
            hits = right(client.post("/points/query", json=asked))["results"][0]["hits"]
            assert [hit["distance"] for hit in hits] == sorted(hit["distance"] for hit in hits)

    with serving("--store", codes, *FREE) as (base, _):
        jobs = [threading.Thread(target=guarded, args=(write, owner)) for owner in range(3)]
        jobs += [threading.Thread(target=guarded, args=(read,)) for _ in range(3)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        assert wrong == []
        ids, packed = check_store(codes, base)
        points = [p for owner, turn in last.items() if turn is not None for p in group(owner, turn)]
        assert dict(zip(ids.tolist(), (bytes(row).hex() for row in packed), strict=True)) == {
            point["id"]: point["code"] for point in points
        }


def test_kills_under_load(codes):
    """Whatever was acknowledged is there after SIGKILL, and no half of a write."""
    acknowledged: dict[int, int] = {}
    for kill in range(30 if SOAK else 2):
        with serving("--store", codes, *FREE) as (base, process):
            check_all(codes, base, acknowledged)
            begun = {owner: acknowledged.get(owner, -1) for owner in range(3)}
            jobs = [
                threading.Thread(
                    target=write_on, args=(base, owner, begun[owner] + 1, acknowledged)
                )
                for owner in range(3)
            ]
            for job in jobs:
                job.start()
            while not all(acknowledged.get(o, -1) > begun[o] + kill % 5 for o in range(3)):
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            for job in jobs:
                job.join()
    with serving("--store", codes, *FREE) as (base, _):
        check_all(codes, base, acknowledged)


def write_on(base, owner, turn, acknowledged):
    """Write on until the server is gone."""
    with httpx.Client(base_url=base, timeout=30) as client:
        while True:
            try:
                answer = client.put("/points", json={"points": group(owner, turn)})
            except httpx.TransportError:
                return
            right(answer)
            acknowledged[owner] = turn
            turn += 1


def check_all(url, base, acknowledged):
    """The last write of each owner that was acknowledged, or the one that was underway."""
    ids, _ = check_store(url, base)
    assert len(ids) % GROUP == 0
    with httpx.Client(base_url=base) as client:
        for owner, turn in acknowledged.items():
            seen = turn_of(client, owner)
            assert seen in (turn, turn + 1)
            acknowledged[owner] = seen
            point = right(client.get(f"/points/{1000 * owner}"))
            assert point["vector"] == [owner, seen]


def raw(base, content, timeout=20):
    """A socket with this sent already."""
    parts = urlsplit(base)
    line = socket.create_connection((parts.hostname, parts.port), timeout)
    line.sendall(content)
    return line


def head(length, path="/points", method="PUT"):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def rest(line):
    """Read all that still comes."""
    parts = []
    try:
        while part := line.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_sigterm_finishes_what_was_accepted(codes):
    body = json.dumps({"points": group(7, 1)}).encode()
    with serving("--store", codes, *FREE) as (base, process):
        with raw(base, head(len(body)) + body[:100]) as line:
            time.sleep(0.3)  # until the server has read that
            process.send_signal(signal.SIGTERM)
            while serve.status(f"{base}/healthz") is not None:
                time.sleep(0.02)
            assert process.poll() is None
            line.sendall(body[100:])
            answer = rest(line)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b'{"upserted": 10}' in answer
        out, error = process.communicate(timeout=20)
        assert (process.returncode, out, error) == (0, "", "")
    with stores.open(codes) as store:
        assert store.count() == GROUP
        assert store.read([7000])[7000].payload["turn"] == 1


def test_slow_clients(codes):
    with serving("--store", codes, "--seconds", "0.4", *FREE) as (base, _):
        check_slow_requests(base)
        check_a_client_that_does_not_take_its_answer(base)
        assert serve.status(f"{base}/points") == 200


def check_slow_requests(base):
    with raw(base, b"") as line:
        assert rest(line) == b""  # says nothing
    with raw(base, b"GET /points HTTP/1.1\r\nHost: loc") as line:
        assert rest(line) == b""  # does not end its head
    once = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with raw(base, once) as line:
        assert line.recv(10) == b"HTTP/1.1 2"
        line.sendall(b"GET /heal")
        rest(line)  # nor that of the second
    with raw(base, head(100) + b"{") as line:
        answer = rest(line)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"the request took longer than 0.4 seconds" in answer
    with raw(base, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000) as line:
        assert rest(line)[:13] in (b"HTTP/1.1 400 ", b"")  # too long a head; the answer may be lost


def check_a_client_that_does_not_take_its_answer(base):
    with httpx.Client(base_url=base) as client:
        for part in range(5):
            points = group(part, 0)
            for point in points:
                point["payload"]["long"] = "x" * 600_000
            right(client.put("/points", json={"points": points}))
    body = json.dumps({"codes": ["0" * 16], "k": 50, "with_payload": True}).encode()
    with raw(base, head(len(body), "/points/query", "POST") + body) as line:
        assert line.recv(12) == b"HTTP/1.1 200"
        time.sleep(2)
        assert len(rest(line)) < 50 * 600_000


def test_a_token_on_another_address(codes, tmp_path):
    """And what the log says of it: nothing."""
    (tmp_path / "token").write_text("a-token-that-nobody-knows\n")
    options = ("--store", codes, "--host", "0.0.0.0", "--token-file", tmp_path / "token")
    with serving(*options, "--log-requests", ready=False) as (base, process):
        base = base.replace("0.0.0.0", "127.0.0.1")
        headers = {"Authorization": "Bearer a-token-that-nobody-knows"}
        while serve.status(f"{base}/readyz", headers=headers) != 200:
            time.sleep(0.02)
        assert serve.status(f"{base}/info") == 401
        assert serve.status(f"{base}/info", headers={"Authorization": "Bearer x"}) == 401
        assert serve.status(f"{base}/healthz") == 200
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
        assert process.returncode == 0
        assert '"GET /info HTTP/1.1" 401' in out + error
        assert "nobody-knows" not in out + error


def test_a_newer_model_takes_over(url, model, tmp_path):
    """Another process encodes the points again: each answer is the old model's or the new one's."""
    X = np.random.default_rng(3).normal(size=(3_000, FEATURES))
    old, new, n_bits = tmp_path / "old.safetensors", model, encoder.load(model).n_bits
    baselines.LSH(n_bits=n_bits, random_state=1).fit(X).save(old)
    models = [encoder.load(path) for path in (old, new)]
    with stores.open(url, n_bits) as store:
        mark = models[0].fingerprint
        store.upsert(np.arange(len(X)), models[0].encode(X), X, fingerprint=mark)
    answers = []
    for each in models:
        near = hamming(each.encode(X[:1]), each.encode(X))[0]
        answers.append(np.lexsort((np.arange(len(X)), near))[:20].tolist())
    with serving("--store", url, "--model", new, "--old-model", old, *FREE) as (at, _):
        command = ["store", "encode-again", url, "--model", str(new)]
        again = subprocess.Popen(
            [sys.executable, "-c", serve.START, *command], stdout=subprocess.DEVNULL
        )
        seen = []
        while again.poll() is None or not seen:
            asked = {"vectors": [X[0].tolist()], "k": 20}
            [result] = right(httpx.post(f"{at}/points/query", json=asked))["results"]
            seen.append(answers.index([hit["id"] for hit in result["hits"]]))
        assert again.returncode == 0
        assert seen == sorted(seen)
        assert seen[0] == 0
        info = right(httpx.get(f"{at}/info"))
        assert info["model"] == info["made_by"] == models[1].fingerprint
