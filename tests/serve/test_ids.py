"""Ids that are text, in requests and responses: they are answered as numbers are."""

from urllib.parse import quote

import numpy as np
import pytest

from tests.serve.conftest import FEATURES

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
asking, right, reason = serve.asking, serve.right, serve.reason
N = 60


def text(number):
    """Text in the order of the numbers, which needs quotes in an address."""
    return f"a/b?ü #{number:03}"


def points(called):
    """Points of some ids; every vector is there twice, so that distances tie."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N // 2, FEATURES)), 1).repeat(2, axis=0)
    order = rng.permutation(N)
    return [
        {"id": called(i), "vector": X[i].tolist(), "payload": {"even": i % 2 == 0}}
        for i in order.tolist()
    ]


def requests(called):
    """Queries of all kinds."""
    [vector] = np.random.default_rng(1).normal(size=(1, FEATURES)).tolist()
    return [
        {"vectors": [vector], "k": 9},
        {"vectors": [vector], "k": 9, "rerank": 40, "with_payload": True},
        {"vectors": [vector], "k": 9, "with_payload": True},
        {"vectors": [vector], "radius": 9},
        {"ids": [called(5), called(3), called(5)], "k": 4, "rerank": 20},
        {"vectors": [vector], "filter": {"ids": [called(i) for i in (7, 1, 99, 7)]}},
        {"vectors": [vector], "filter": {"ids": []}},
        {"vectors": [vector], "filter": {"field": "even", "value": True}, "k": 30},
    ]


def test_numbers_and_text_agree(url, hasher):
    answers = []
    for called, table, kind in ((int, "a", "number"), (text, "b", "text")):
        with asking(f"{url}?table={table}", hasher) as client:
            assert right(client.get("/info"))["ids"] is None
            right(client.put("/points", json={"points": points(called)}))
            assert right(client.get("/info"))["ids"] == kind
            number = {called(i): i for i in range(N)}
            answer = []
            for asked in requests(called):
                got = right(client.post("/points/query", json=asked))
                for result in got["results"]:
                    for hit in result["hits"]:
                        hit["id"] = number[hit["id"]]
                answer.append(got)
            path = quote(str(called(5)), safe="")
            point = right(client.get(f"/points/{path}"))
            assert point.pop("id") == called(5)
            answer.append(point)
            assert reason(client.get(f"/points/{quote(str(called(99)), safe='')}"), 404) == (
                f"there is no point {called(99)}"
            )
            gone = {"ids": [called(5), called(99), called(5)]}
            assert right(client.post("/points/delete", json=gone)) == {"deleted": 1}
            reason(client.get(f"/points/{path}"), 404)
            answers.append(answer)
    assert answers[0] == answers[1]


def test_digits(url, hasher):
    """Text that is digits: a number in a store of numbers, and text in any other."""
    ones = [1.0] * FEATURES
    with asking(url, hasher) as client:

        def put(*ids):
            listed = [{"id": name, "vector": ones} for name in ids]
            return client.put("/points", json={"points": listed})

        right(put("7", "007"))
        assert right(client.get("/info"))["ids"] == "text"
        for name in ("7", "007"):
            assert right(client.get(f"/points/{name}"))["id"] == name
        assert "ids must be text, as those in the store; got 8" in reason(put(8), 422)
        right(client.post("/points/delete", json={"ids": ["7", "007"]}))
        right(put(7, str(2**60), "8"))  # beside a number, digits are one
        assert right(client.get("/info"))["ids"] == "number"
        right(put("9"))
        ids = [hit["id"] for hit in query(client, vectors=[ones])]
        assert ids == [7, 8, 9, str(2**60)]
        assert "ids must be whole numbers, as those in the store; got 'a'" in reason(put("a"), 422)
        assert "ids must be whole" in reason(client.get("/points/a"), 422)


def test_half_a_sign(client):
    """JSON can write it, and UTF-8 cannot."""
    for path, body in (("/points/query", rb'{"ids": ["\ud800"]}'), ("/points/delete", None)):
        body = body or rb'{"ids": ["a", "\udfff"]}'
        sent = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert "ids must be text that UTF-8 can write" in reason(sent, 422)


def query(client, **asked):
    return right(client.post("/points/query", json=asked))["results"][0]["hits"]
