"""Costs of requests: hostile ones take bounded memory, and others are answered meanwhile."""

import asyncio
import base64
import io
import json
import os
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from auxhash import stores
from auxhash.learn import baselines
from auxhash.serve import schemas

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
httpx = pytest.importorskip("httpx", reason="httpx is missing")
asking, right, reason, Limits = serve.asking, serve.right, serve.reason, serve.Limits

SOAK = bool(os.environ.get("AUXHASH_SOAK"))
MOST = 256  # MB that a request may cost
BODY = 8 << 20
JSON = {"content-type": "application/json"}
N, LARGE = (100_000, 200) if SOAK else (20_000, 20)  # points, and those with large payloads
BITS, FEATURES = 64, 320  # of a model of small GIST
HUGE = 10**9  # ids of points with large payloads begin here


def repeated(before, part, after, size=BODY):
    """A body that is as long as may be."""
    n = (size - len(before) - len(after)) // (len(part) + 1)
    return (before + ",".join([part] * n) + after).encode()


def image(side):
    content = io.BytesIO()
    Image.new("RGB", (side, side)).save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


@cache
def hostile():
    """Requests by name: a path, a body, and the status of the answer."""
    point = '{"points": [{"id": 1, "code": "%s", ' % ("0" * 16)
    query = "/points/query"
    codes = [bytes(8).hex()] * 1000
    some = {"codes": codes[:1], "with_payload": True}
    rows = [i * (N // 1000) for i in range(1000)]
    vector = f"[{','.join(['0'] * FEATURES)}]"
    return {
        "radius": (query, {"codes": codes, "radius": BITS, "limit": 1}, 200),
        "radius alone": (query, {"codes": codes[:100], "radius": BITS}, 200),
        "k": (query, {"codes": codes[:100], "k": 1000}, 200),
        "a field": (
            query,
            {"codes": codes, "k": 100, "filter": {"field": "kind", "values": [1] * 1000}},
            200,
        ),
        "ids": (query, {"codes": codes, "k": 100, "filter": {"ids": list(range(100_000))}}, 200),
        "rerank": (query, {"ids": rows[:10], "rerank": 10_000, "with_payload": True}, 200),
        "rerank many": (query, {"ids": rows, "rerank": 100, "k": 100}, 200),
        "payloads": (query, {**some, "k": 1000, "filter": {"field": "large", "value": 1}}, 422),
        "one payload": (
            query,
            {"codes": codes[:500], "k": 1, "with_payload": True, "filter": {"ids": [HUGE]}},
            422,
        ),
        "images": (query, {"images": [image(3464)] * 16}, 200),
        "vectors": (query, repeated('{"vectors": [', vector, "]}", 600_000), 200),
        "numbers": (query, repeated('{"vectors": [[', "0", "]]}", 2_000_000), 422),
        "wrong numbers": (query, repeated('{"vectors": [[', '"ab"', "]]}", 5_000_000), 422),
        "floats": (query, repeated('{"vectors": [[', "0.5", "]]}"), 413),
        "wrong ids": ("/points/delete", repeated('{"ids": [', '"ab"', "]}", 5_000_000), 422),
        "lists": ("/points/delete", repeated('{"ids": [', "[]", "]}"), 413),
        "objects": ("/points/delete", repeated('{"ids": [', '{"":0}', "]}", 3_500_000), 422),
        "unknown fields": (
            "/points/delete",
            json.dumps({f"{i:06x}": 0 for i in range(600_000)}).encode(),
            422,
        ),
        "text": ("/points/delete", b'{"ids": ["' + "\U0001f600".encode() * 2_000_000 + b'"]}', 422),
        "a payload": (
            "/points",
            repeated(point + '"payload": {"a": [', '{"":0}', "]}}]}", 3_400_000),
            200,
        ),
        "fields": (
            "/points",
            (
                point + f'"payload": {json.dumps({f"{i:06x}": i for i in range(300_000)})}}}]}}'
            ).encode(),
            200,
        ),
        "many points": (
            "/points",
            {"points": [{"id": i, "vector": [0.5] * FEATURES} for i in range(1000)]},
            200,
        ),
    }


NAMES = tuple(hostile()) if SOAK else ("radius", "payloads", "wrong ids", "unknown fields")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A model, and a store of many points, some of them with large payloads."""
    folder = tmp_path_factory.mktemp("costs")
    rng = np.random.default_rng(0)
    model = baselines.LSH(n_bits=BITS, random_state=0).fit(rng.normal(size=(50, FEATURES)))
    model.image_feature_ = "gist:16"
    model.save(folder / "model.safetensors")
    url = f"sqlite:///{folder}/store.db"
    with stores.open(url, BITS) as store:
        packed = rng.integers(0, 256, (N, BITS // 8), dtype=np.uint8)
        for ids in np.split(np.arange(N), 10):
            vectors = rng.normal(size=(len(ids), FEATURES))
            store.upsert(ids, packed[ids], vectors, [{"kind": 1}] * len(ids))
        for i in range(LARGE):
            long = [{"": 0}] * 250_000 if i < 4 else "x" * 2_000_000  # 30 bytes per byte, or 1
            store.upsert([HUGE + i], packed[:1], vectors[:1], [{"large": 1, "a": long}])
    return "--model", folder / "model.safetensors", "--store", url, "--rate", "0"


def megabytes(pid, name):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


@pytest.mark.parametrize("where", ["parsing", "validation"])
def test_others_are_answered_while_a_body_is_parsed(url, hasher, monkeypatch, where):
    """In a thread: in the event loop, the body would wait here for an answer that cannot come."""
    events, answered = [], threading.Event()

    def slow(work):
        def instead(*args, **named):
            events.append(f"{where} begins")
            answered.wait(20)
            events.append(f"{where} ends")
            return work(*args, **named)

        return instead

    with asking(url, hasher) as client:

        async def both():
            large = asyncio.create_task(
                client._client.post("/points/delete", json={"ids": [str(7)]})
            )
            async with asyncio.timeout(20):
                while not events:
                    await asyncio.sleep(0.001)
            health = await client._client.get("/healthz")
            events.append("healthz is answered")
            answered.set()
            return await large, health

        if where == "parsing":
            monkeypatch.setattr(json, "loads", slow(json.loads))
        else:  # what looks at an id that is text
            monkeypatch.setattr(schemas, "isinstance", slow(isinstance), raising=False)
        large, health = client.runner.run(both())
    assert events[:3] == [f"{where} begins", "healthz is answered", f"{where} ends"]
    assert (large.status_code, health.status_code) == (200, 200)


def test_work_ends_at_its_time(url, hasher):
    """The answer says so where it is not done by then."""
    with asking(url, hasher, Limits(rate=0, work=1e-9)) as client:
        put = [{"id": i, "code": "000000", "payload": {"a": 1}} for i in range(5)]
        right(client.put("/points", json={"points": put}))
        asked = {"codes": ["000000"], "with_payload": True}
        answer = client.post("/points/query", json=asked)
        assert "timed out" in reason(answer, 503)
        assert answer.headers["retry-after"] == "1"


def test_a_radius_asks_the_store_for_no_more_than_its_limit(url, hasher, monkeypatch):
    with asking(url, hasher) as client:
        put = [{"id": i, "code": "000000"} for i in range(9)] + [{"id": 9, "code": "ffff00"}]
        right(client.put("/points", json={"points": put}))
        store = client.work._service.store
        searched = []

        def search(queries, k, among=None):
            searched.append(k)
            return type(store).search(store, queries, k, among)

        monkeypatch.setattr(store, "search", search)
        monkeypatch.delattr(type(store), "search_radius")
        for limit, cut in ((8, True), (9, False), (10, False)):
            asked = {"codes": ["000000"], "radius": 15, "limit": limit}
            [result] = right(client.post("/points/query", json=asked))["results"]
            assert [hit["id"] for hit in result["hits"]] == list(range(min(limit, 9)))
            assert result["cut"] is cut
        assert searched == [9, 10, 11]


def test_points_in_parts(url, hasher, monkeypatch):
    """The answer is the same where vectors and payloads do not fit at once."""
    rng = np.random.default_rng(0)
    with asking(url, hasher) as client:
        X = rng.normal(size=(60, 6)).tolist()
        put = [{"id": i, "vector": x, "payload": {"n": i}} for i, x in enumerate(X)]
        right(client.put("/points", json={"points": put}))
        kinds = [
            {"vectors": X[:5], "k": 7, "rerank": 40, "with_payload": True},
            {"vectors": X[:5], "k": 7, "rerank": 40, "metric": "cosine"},
            {"ids": [3, 3, 4], "k": 50, "with_payload": True, "filter": {"field": "n", "value": 9}},
        ]
        answers = [right(client.post("/points/query", json=asked)) for asked in kinds]
        store = client.work._service.store
        cut, parts = store.parts, []

        def small(*args):
            parts.append(len(cut(*args, room=100)))
            return cut(*args, room=100)

        monkeypatch.setattr(store, "parts", lambda *args: small(*args[:3]))
        assert [right(client.post("/points/query", json=asked)) for asked in kinds] == answers
        assert max(parts) > 10


def test_the_document_has_the_limits(url, hasher):
    with asking(url, hasher, Limits(rate=0, batch=7, k=5, images=3)) as client:
        schemas = right(client.get("/openapi.json"))["components"]["schemas"]
        assert schemas["Upsert"]["properties"]["points"]["maxItems"] == 7
        assert schemas["Delete"]["properties"]["ids"]["maxItems"] == 7
        stated = schemas["Queries"]["properties"]
        for name, most in (("vectors", 7), ("codes", 7), ("images", 3), ("ids", 7)):
            assert stated[name]["anyOf"][0]["maxItems"] == most
        for name, most in (("k", 5), ("limit", 5), ("rerank", 50)):
            assert stated[name]["anyOf"][0]["maximum"] == most
        assert schemas["Filter"]["properties"]["ids"]["anyOf"][0]["maxItems"] == 700
        answer = client.post("/points/delete", json={"ids": list(range(8))})
        assert "ids: List should have at most 7 items" in reason(answer, 422)


def test_too_many_vectors_of_points(url):
    """The vectors of points that are queries count as if they had been sent."""
    with asking(url, limits=Limits(rate=0, values=100)) as client:
        for name in (1, 2):
            point = {"id": name, "code": "000000", "vector": [1] * 60}
            right(client.put("/points", json={"points": [point]}))
        right(client.post("/points/query", json={"ids": [1], "rerank": 2}))
        for ids in ([1, 2], [1, 1]):
            answer = client.post("/points/query", json={"ids": ids, "rerank": 2})
            assert "at most 100 numbers together" in reason(answer, 422)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_request_takes_little_memory(filled, name):
    path, body, status = hostile()[name]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert len(content) <= BODY
    method = "PUT" if path == "/points" else "POST"
    with (
        serve.serving(*filled) as (base, process),
        httpx.Client(base_url=base, timeout=300, headers=JSON) as client,
    ):
        few = {"vectors": [[0.5] * FEATURES] * 1000, "k": 1}
        right(client.post("/points/query", json=few))  # now the kernels are loaded
        before = megabytes(process.pid, "VmRSS")
        answer = client.request(method, path, content=content)
        assert megabytes(process.pid, "VmHWM") - before <= MOST
        assert answer.status_code == status, answer.text[:500]
