"""The layers around the API: who may ask, how much and how often; and what leaves."""

import asyncio
import logging
import threading
from functools import partial

import pytest

from auxhash.serve import rates
from auxhash.stores import StoreError
from tests.serve.conftest import FEATURES

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
asking, right, reason, Limits = serve.asking, serve.right, serve.reason, serve.Limits

TOKEN = "a-token-that-nobody-knows"
QUERY = {"codes": ["000000"]}


def bearer(token, kind="Bearer"):
    return {"Authorization": f"{kind} {token}"}


def test_every_answer_has_the_headers(url, hasher, monkeypatch):
    monkeypatch.setattr(serve.Service, "info", lambda self: 1 / 0)
    limits = Limits(rate=5, body=100)
    with asking(url, hasher, limits, TOKEN) as client:
        answers = [
            client.get("/healthz"),
            client.get("/points"),
            client.get("/points", headers=bearer(TOKEN)),
            client.get("/nowhere", headers=bearer(TOKEN)),
            client.get("/info", headers=bearer(TOKEN)),
            client.post("/points/query", content=b"x" * 101, headers=bearer(TOKEN)),
            client.post("/points/query", content=b"{", headers=bearer(TOKEN)),
            *(client.get("/points", headers=bearer(TOKEN)) for _ in range(40)),
        ]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:7] == [200, 401, 200, 404, 500, 413, 422]
    assert 429 in statuses[7:]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["content-type"] == "application/json"
        assert "access-control-allow-origin" not in answer.headers


def test_a_token_is_demanded(url, hasher, caplog):
    caplog.set_level(logging.DEBUG)
    with asking(url, hasher, token=TOKEN) as client:
        right(client.get("/healthz"))
        assert client.get("/").status_code != 401  # the page asks for the token
        reason(client.get("/static/nothing"), 404)
        for path in ("/readyz", "/metrics", "/openapi.json", "/docs", "/docs/start.js"):
            assert client.get(path).status_code == 200  # none tells of a point
        ways = right(client.get("/openapi.json"))["paths"]
        free = [path for path, each in ways.items() if "security" not in str(each)]
        assert sorted(free) == ["/healthz", "/metrics", "/readyz"]
        for path in ("/info", "/points", "/points/1", "/nowhere", "/docsx", "/metrics/x"):
            for headers in ({}, bearer(TOKEN, "Basic")):
                answer = client.get(path, headers=headers)
                assert reason(answer, 401) == "a token is needed: Authorization: Bearer TOKEN"
                assert answer.headers["www-authenticate"] == "Bearer"
            for headers in (bearer("wrong"), bearer(TOKEN[:-1]), bearer("")):
                answer = client.get(path, headers=headers)
                assert "the token is wrong" in reason(answer, 401)
                assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        strange = {"Authorization": "Bearer é".encode()}
        reason(client.get("/info", headers=strange), 401)
        for kind in ("Bearer", "bearer"):
            right(client.get("/info", headers=bearer(TOKEN, kind)))
        # With a token any name may lead here.
        right(client.get("/info", headers={**bearer(TOKEN), "Host": "codes.example.org"}))
        document = right(client.get("/openapi.json"))
        assert document["paths"]["/points"]["put"]["security"] == [{"HTTPBearer": []}]
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("LOCALHOST", True),
        ("evil.example.org", False),
        ("localhost.evil.example.org", False),
        ("127.0.0.1.evil.example.org:8000", False),
        ("evil.example.org@", False),
        ("[", False),
        ("", False),
    ],
)
def test_a_name_that_leads_here_by_trickery(client, host, fine):
    answer = client.get("/info", headers={"Host": host})
    assert answer.status_code == (200 if fine else 403)
    assert fine or "Host header" in answer.json()["error"]


def test_pages_of_other_sites_change_nothing(client):
    for origin in ("http://evil.example.org", "null", "http://localhost:1", "http://[", ""):
        headers = {"Origin": origin}
        assert "other sites" in reason(
            client.post("/points/delete", json={"ids": [1]}, headers=headers), 403
        )
    same = {"Origin": "http://localhost"}
    right(client.post("/points/delete", json={"ids": [1]}, headers=same))
    # Nor by a form, which needs no permission of the browser's.
    plain = {"Content-Type": "text/plain"}
    answer = client.post("/points/delete", content=b'{"ids": [1]}', headers=plain)
    assert "Content-Type: application/json" in reason(answer, 422)


def test_too_large(url, hasher):
    with asking(url, hasher, Limits(rate=0, body=1000)) as client:

        async def parts(n, each=100, pause=0.0):
            for _ in range(n):
                yield b" " * each
                await asyncio.sleep(pause)
            yield b'{"codes": ["000000"]}'

        headers = {"content-type": "application/json"}
        right(client.post("/points/query", content=parts(9), headers=headers))
        for body in (parts(10), parts(10**6), b" " * 1001):
            answer = client.post("/points/query", content=body, headers=headers)
            assert reason(answer, 413) == "a request must be at most 1,000 bytes"
            assert answer.headers["connection"] == "close"
        lying = {**headers, "content-length": "10"}
        answer = client.post("/points/query", content=parts(100), headers=lying)
        reason(answer, 413)
        huge = {**headers, "content-length": "9" * 5000}
        reason(client.post("/points/query", content=parts(1), headers=huge), 413)


def test_too_many_large_ones_at_once(url, hasher, monkeypatch):
    going = threading.Event()
    monkeypatch.setattr(serve.Service, "delete", lambda self, ids: going.wait(10) and 0)
    with asking(url, hasher, Limits(rate=0, body=1000, bodies=1500)) as client:
        one = ("POST", "/points/delete", {"ids": [1] * 450})  # about 900 bytes

        def free_them():
            while not client.work.present:
                pass
            going.set()

        freeing = threading.Thread(target=free_them)
        freeing.start()
        answers = client.all(one, one, one)
        freeing.join()
        assert sorted(answer.status_code for answer in answers) == [200, 503, 503]
        [busy, _] = [answer for answer in answers if answer.status_code == 503]
        assert reason(busy, 503) == "too many large requests at once: try again"
        for _ in range(3):  # what was held is let go
            right(client.request(one[0], one[1], json=one[2]))


def test_too_slow(url, hasher):
    with asking(url, hasher, Limits(rate=0, seconds=0.05)) as client:

        async def slow():
            while True:
                yield b" "
                await asyncio.sleep(0.02)

        answer = client.post("/points/query", content=slow())
        assert reason(answer, 408) == "the request took longer than 0.05 seconds"
        right(client.post("/points/query", json=QUERY))


def test_too_often(url, hasher, monkeypatch):
    still = partial(rates.Buckets, clock=lambda: 0.0)  # however slow the machine is
    monkeypatch.setattr(rates, "Buckets", still)
    with asking(url, hasher, Limits(rate=2)) as client:
        answers = [client.get("/points") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 4 + [429]
        assert reason(answers[-1], 429) == "too many requests"
        assert int(answers[-1].headers["retry-after"]) >= 1
        right(client.get("/healthz"))
        right(client.get("/readyz"))
        other = serve.Client(client.made, client.runner, ("192.0.2.7", 1))
        right(other.get("/points"))


def test_buckets_fill_again_and_forget(monkeypatch):
    monkeypatch.setattr(rates, "MAX_CLIENTS", 3)
    now = 0.0
    buckets = rates.Buckets(0.5, lambda: now)
    assert buckets.wait("a") == 0
    assert buckets.wait("a") == 2
    now = 1.0
    assert buckets.wait("a") == 1
    now = 2.0
    assert buckets.wait("a") == 0
    assert buckets.wait("a") == 2
    for other in "bcd":
        assert buckets.wait(other) == 0
    assert buckets.wait("a") == 0  # forgotten
    assert len(buckets._left) == 3


def test_too_busy(url, hasher, monkeypatch):
    going = threading.Event()
    monkeypatch.setattr(serve.Service, "delete", lambda self, ids: going.wait(10) and 0)
    with asking(url, hasher, Limits(rate=0, workers=2, waiting=1)) as client:
        one = ("POST", "/points/delete", {"ids": [1]})

        def free_them():
            while client.work.present < 3:
                pass
            going.set()

        freeing = threading.Thread(target=free_them)
        freeing.start()
        answers = client.all(*[one] * 8)
        freeing.join()
        busy = [answer for answer in answers if answer.status_code == 503]
        assert len(busy) == 5
        assert reason(busy[0], 503) == "the service is busy: try again"
        assert busy[0].headers["retry-after"] == "1"
        assert client.work.present == 0
        right(client.post("/points/query", json=QUERY))


def test_not_ready_until_the_store_is_open(url, hasher):
    going = threading.Event()

    def opened():
        going.wait(10)
        return serve.Service(serve.stores.open(url, 20), hasher)

    with asking(url, opened=opened) as client:
        right(client.get("/healthz"))
        for path in ("/readyz", "/points", "/info"):
            answer = client.get(path)
            assert reason(answer, 503) == "the service is starting"
            assert answer.headers["retry-after"] == "1"
        assert "auxhash_ready 0.0" in client.get("/metrics").text
        going.set()
        while not client.work.ready:
            client.get("/readyz")
        right(client.get("/points"))


def test_a_store_that_cannot_be_opened(url):
    def opened():
        raise StoreError("gone")

    with asking(url, opened=opened) as client:
        calls = []
        client.work.on_failure = lambda: calls.append(1)
        while client.work.failed is None:
            client.get("/healthz")
        assert str(client.work.failed) == "gone"
        reason(client.get("/readyz"), 503)


def test_no_traceback_leaves(url, hasher, monkeypatch, caplog):
    def fail(self):
        raise RuntimeError("a secret")

    monkeypatch.setattr(serve.Service, "info", fail)
    with asking(url, hasher) as client:
        answer = client.get("/info")
        fault = right(answer, 500)
        assert fault["error"] == "a fault of the service; its log has more"
        assert "secret" not in answer.text
        assert f"fault {fault['id']}" in caplog.text
        assert caplog.text.count("RuntimeError: a secret") == 1
        right(client.get("/points"))


def test_a_fault_of_a_layer(url, hasher, monkeypatch, caplog):
    def fail(self, scope):
        raise RuntimeError("a secret")

    monkeypatch.setattr("auxhash.serve.bodies.Bodies._check_content_length", fail)
    with asking(url, hasher) as client:
        answer = right(client.get("/info"), 500)
        assert f"fault {answer['id']}" in caplog.text


def test_a_store_that_fails(url, hasher, monkeypatch, caplog):
    def fail(self):
        raise StoreError("sqlite:////home/me/a.db: disk I/O error")

    monkeypatch.setattr("auxhash.stores.sqlite.SqliteStore.count", fail)
    with asking(url, hasher) as client:
        answer = client.get("/points")
        fault = right(answer, 503)
        assert "the store cannot be read or written" in fault["error"]
        assert "/home/me" not in answer.text
        assert fault["id"] in caplog.text
        assert "disk I/O error" in caplog.text
        assert answer.headers["retry-after"] == "5"


def test_a_store_that_is_down(url, hasher, monkeypatch, caplog):
    """Readiness and metrics say so, and fill no log; many who ask are one query to the store."""
    calls, going = [], threading.Event()

    def fail(self):
        calls.append(1)
        going.wait(10)
        raise StoreError("the connection broke")

    with asking(url, hasher) as client:
        right(client.get("/readyz"))
        with monkeypatch.context() as patched:
            patched.setattr("auxhash.stores.sqlite.SqliteStore.fingerprint", property(fail))
            patched.setattr("auxhash.stores.sqlite.SqliteStore.count", fail)
            freeing = threading.Timer(0.2, going.set)
            freeing.start()
            answers = client.all(*[("GET", "/readyz", None)] * 20)
            freeing.join()
            assert {reason(answer, 503) for answer in answers} == {"the store does not answer"}
            assert len(calls) == 1
            text = client.get("/metrics").text
            assert "auxhash_ready 0.0" in text
            assert "auxhash_points NaN" in text
        right(client.get("/readyz"))
        text = client.get("/metrics").text
        assert "auxhash_ready 1.0" in text
        assert "auxhash_points 0.0" in text
    assert caplog.text == ""


def test_a_store_that_hangs(url, hasher, monkeypatch):
    monkeypatch.setattr("auxhash.serve.work.PROBE_SECONDS", 0.05)
    going = threading.Event()
    hangs = property(lambda self: going.wait(10))
    with asking(url, hasher) as client, monkeypatch.context() as patched:
        patched.setattr("auxhash.stores.sqlite.SqliteStore.fingerprint", hangs)
        assert reason(client.get("/readyz"), 503) == "the store does not answer"
        going.set()


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"body": 0}, "body must be a whole number of at least 1"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"waiting": -1}, "waiting must be a whole number of at least 0"),
        ({"rate": -1}, "rate must be a number of at least 0"),
        ({"seconds": 0}, "seconds must be a number above 0"),
    ],
)
def test_wrong_limits(limits, says):
    with pytest.raises(ValueError, match=says):
        Limits(**limits)


def test_points_that_change_during_a_query(url, hasher, monkeypatch):
    """Between the search and the reading of payloads: the query is made again, and is right."""
    with asking(url, hasher) as client:
        one = [1.0] * FEATURES
        put = [{"id": i, "vector": one, "payload": {"n": i}} for i in range(5)]
        right(client.put("/points", json={"points": put}))
        store = client.work._service.store
        reading, changed = store.read, []

        def changing(ids, *more):
            if not changed:
                changed.append(store.delete([0]))
            return reading(ids, *more)

        monkeypatch.setattr(store, "read", changing)
        asked = {"vectors": [one], "k": 3, "with_payload": True}
        hits = right(client.post("/points/query", json=asked))["results"][0]["hits"]
        assert [hit["payload"] for hit in hits] == [{"n": 1}, {"n": 2}, {"n": 3}]

        def always(ids, *more):  # another program, which no lock keeps out
            store.delete([ids[0]])
            return reading(ids, *more)

        monkeypatch.setattr(store, "read", always)
        answer = client.post("/points/query", json=asked)
        assert "changed the points during the query" in reason(answer, 503)
