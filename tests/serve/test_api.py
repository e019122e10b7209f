"""Every path against brute force, and every wrong request with its reason."""

import asyncio
import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from auxhash import HammingIndex, NeighborHash, QueryTables, stores
from auxhash.codes import hamming
from auxhash.compute.fingerprint import OtherModelError
from auxhash.files.images import ImageFeature, gist_feature
from auxhash.search.expected import ExpectedRecall
from auxhash.search.index import tables_from_outputs
from auxhash.search.metrics.recall import expected_recall
from auxhash.serve import incoming
from auxhash.serve import start as starting
from auxhash.stores.sqlite import SqliteStore
from auxhash.stores.store import Store
from tests.serve.conftest import BITS, FEATURES

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
asking, right, reason = serve.asking, serve.right, serve.reason
Limits, Service = serve.Limits, serve.Service
LARGEST = 2**63 - 1
N = 120
ONES = [1.0] * FEATURES


@pytest.fixture
def points(hasher):
    """Ids, vectors, codes and payloads; some vectors are the same, so that distances tie."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(N, FEATURES)), 1)
    X[60:90] = X[:30]
    ids = np.concatenate([rng.permutation(500)[: N - 3], [2**53 - 1, 2**53, LARGEST]])
    payloads = [{"colour": "red" if i % 3 else "blue", "n": i % 5, "i": i} for i in range(N)]
    return ids, X, hasher.encode(X), payloads


@pytest.fixture
def filled(client, points):
    ids, X, _, payloads = points
    listed = [
        {"id": int(name), "vector": x.tolist(), "payload": payload}
        for name, x, payload in zip(ids, X, payloads, strict=True)
    ]
    assert right(client.put("/points", json={"points": listed})) == {"upserted": N}
    return client


def query(client, **asked):
    return right(client.post("/points/query", json=asked))


def hits_of(answer):
    """(id, distance) of the hits of each query."""
    return [[(int(hit["id"]), hit["distance"]) for hit in r["hits"]] for r in answer["results"]]


def expected(points, code, which=slice(None)):
    """All (id, distance), by distance and then id."""
    ids, codes = points[0][which], points[2][which]
    near = hamming(code[None], codes)[0]
    order = np.lexsort((ids, near))
    return list(zip(ids[order].tolist(), near[order].tolist(), strict=True))


def test_k_nearest(filled, points, hasher):
    asked = np.random.default_rng(2).normal(size=(4, FEATURES))
    codes = hasher.encode(asked)
    right_ones = [expected(points, code) for code in codes]
    for k in (1, 7, N, 1000):
        answer = query(filled, vectors=asked.tolist(), k=k)
        assert answer["by"] == "hamming"
        assert hits_of(answer) == [each[:k] for each in right_ones]
        assert not any(result["cut"] for result in answer["results"])
        assert hits_of(query(filled, codes=[bytes(code).hex() for code in codes], k=k)) == hits_of(
            answer
        )
    assert hits_of(query(filled, vectors=asked.tolist())) == [each[:10] for each in right_ones]


def test_by_ids_of_points(filled, points):
    ids, codes = points[0], points[2]
    answer = query(filled, ids=[int(ids[5]), str(LARGEST)], k=6)
    assert hits_of(answer) == [expected(points, codes[i])[:6] for i in (5, N - 1)]
    assert reason(filled.post("/points/query", json={"ids": [987654]}), 404) == (
        "there is no point 987654"
    )


def test_radius_says_when_it_was_cut(filled, points):
    code = points[2][3]
    for radius in (0, 6, BITS, 10**9):
        within = [pair for pair in expected(points, code) if pair[1] <= radius]
        answer = query(filled, codes=[bytes(code).hex()], radius=radius)
        assert hits_of(answer) == [within]
        assert answer["results"][0]["cut"] is False
        for limit in (1, len(within) - 1, len(within)):
            if limit:
                answer = query(filled, codes=[bytes(code).hex()], radius=radius, limit=limit)
                assert hits_of(answer) == [within[:limit]]
                assert answer["results"][0]["cut"] is (limit < len(within))


@pytest.mark.parametrize(
    ("learnt", "by"), [(None, "euclidean"), ("euclidean", "euclidean"), ("cosine", "cosine")]
)
def test_the_model_says_by_which_metric_is_reranked(url, hasher, points, learnt, by):
    ids, X, _, _ = points
    if learnt is not None:
        hasher = NeighborHash(BITS, learnt, "linear", n_steps=2, random_state=0).fit(X)
    with asking(url, hasher) as client:
        listed = [{"id": int(n), "vector": x.tolist()} for n, x in zip(ids, X, strict=True)]
        right(client.put("/points", json={"points": listed}))
        asked = {"vectors": X[:3].tolist(), "k": 4, "rerank": N}
        answer, by_name = query(client, **asked), query(client, **asked, metric=by)
        assert answer == by_name
        assert answer["by"] == by


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_reranked(filled, points, hasher, metric):
    ids, X, _, _ = points
    asked = np.random.default_rng(3).normal(size=(3, FEATURES))
    answer = query(filled, vectors=asked.tolist(), k=5, rerank=40, metric=metric)
    assert answer["by"] == metric
    for x, code, hits in zip(asked, hasher.encode(asked), hits_of(answer), strict=True):
        candidates = [name for name, _ in expected(points, code)[:40]]
        rows = np.flatnonzero(np.isin(ids, candidates))
        far = np.linalg.norm(X[rows] - x, axis=1)
        if metric == "cosine":
            far = 1 - X[rows] @ x / np.linalg.norm(X[rows], axis=1) / np.linalg.norm(x)
        order = np.lexsort((ids[rows], np.round(far, 12)))[:5]
        assert [name for name, _ in hits] == ids[rows][order].tolist()
        np.testing.assert_allclose([distance for _, distance in hits], far[order], atol=1e-12)
    everything = query(filled, ids=[int(ids[0])], k=1, rerank=N, metric=metric)
    assert hits_of(everything)[0][0][1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("chosen", "holds"),
    [
        ({"field": "colour", "value": "blue"}, lambda p: p["colour"] == "blue"),
        ({"field": "n", "values": [0, 4, 9]}, lambda p: p["n"] in (0, 4)),
        ({"field": "n", "value": False}, lambda p: False),
        ({"field": "none", "value": "x"}, lambda p: False),
    ],
)
def test_filtered_by_a_field(filled, points, chosen, holds):
    which = np.array([holds(payload) for payload in points[3]])
    code = bytes(points[2][0]).hex()
    answer = query(filled, codes=[code, code], k=9, filter=chosen, with_payload=True)
    assert hits_of(answer) == [expected(points, points[2][0], which)[:9]] * 2
    assert all(holds(hit["payload"]) for hit in answer["results"][0]["hits"])
    answer = query(filled, codes=[code], radius=7, filter=chosen)
    within = [pair for pair in expected(points, points[2][0], which) if pair[1] <= 7]
    assert hits_of(answer) == [within]


def test_filtered_by_ids(filled, points):
    chosen = [int(name) for name in points[0][::7]]
    which = np.arange(N) % 7 == 0
    code = bytes(points[2][0]).hex()
    answer = query(filled, codes=[code], k=5, filter={"ids": [*chosen, 777777]})
    assert hits_of(answer) == [expected(points, points[2][0], which)[:5]]
    vector = points[1][0].tolist()
    answer = query(filled, vectors=[vector], k=2, rerank=9, filter={"ids": chosen})
    assert {name for name, _ in hits_of(answer)[0]} <= set(chosen)
    assert hits_of(query(filled, codes=[code], filter={"ids": []})) == [[]]
    assert hits_of(query(filled, vectors=[vector], rerank=5, filter={"ids": []})) == [[]]


@pytest.fixture
def asker(keeps_tables):
    """A model that has learnt tables."""
    X = np.random.default_rng(4).normal(size=(200, FEATURES))
    return NeighborHash(
        BITS, "euclidean", "linear", n_steps=4, query_function="linear", random_state=0
    ).fit(X)


def fill(client, ids, X):
    listed = [
        {"id": int(name), "vector": x.tolist(), "payload": {"even": i % 2 == 0}}
        for i, (name, x) in enumerate(zip(ids, X, strict=True))
    ]
    right(client.put("/points", json={"points": listed}))


@pytest.mark.parametrize("scanned", [True, False])
@pytest.mark.parametrize("by", ["outputs", "tables"])
def test_by_outputs_and_tables(url, asker, points, monkeypatch, by, scanned):
    """All points of a store of SQLite; the others order a shortlist, and the answer says so."""
    if not scanned:
        monkeypatch.setattr(SqliteStore, "search_tables", Store.search_tables)
        monkeypatch.setattr(SqliteStore, "scans_tables", False)
        monkeypatch.setattr("auxhash.stores.store.MIN_CANDIDATES", 60)
    ids, X = points[:2]
    asked = np.random.default_rng(5).normal(size=(3, FEATURES))
    codes, wanted = asker.encode(X), {"k": 6, "by": by}

    def expected_hits(Q, which=slice(None)):
        tables = (
            asker.tables(Q) if by == "tables" else tables_from_outputs(asker.decision_function(Q))
        )
        few, hits = np.arange(N)[which], []
        for code, table in zip(asker.encode(Q), tables, strict=True):
            order = np.lexsort((ids[few], hamming(code[None], codes[few])[0]))
            rows = few if scanned else few[order[:60]]
            far = sum(table[g, codes[rows, g]] for g in range(codes.shape[1]))
            order = np.lexsort((ids[rows], far))[:6]
            hits.append(list(zip(ids[rows][order].tolist(), far[order].tolist(), strict=True)))
        return hits

    with asking(url, asker) as client:
        assert right(client.get("/info"))["by"] == ["hamming", "outputs", "tables"]
        fill(client, ids, X)
        answer = query(client, vectors=asked.tolist(), **wanted)
        assert (answer["by"], answer.get("candidates")) == (by, None if scanned else 60)
        assert hits_of(answer) == expected_hits(asked)
        assert hits_of(query(client, ids=ids[3:5].tolist(), **wanted)) == expected_hits(X[3:5])
        even = {"filter": {"field": "even", "value": True}, "with_payload": True}
        answer = query(client, vectors=asked.tolist(), **wanted, **even)
        assert hits_of(answer) == expected_hits(asked, slice(0, None, 2))
        assert all(hit["payload"] == {"even": True} for hit in answer["results"][0]["hits"])
        answer = query(client, vectors=asked.tolist(), **wanted, rerank=N)
        far = np.linalg.norm(X[None] - asked[:, None], axis=2).round(12)
        for row, hits in zip(far, hits_of(answer), strict=True):
            assert {name for name, _ in hits} == set(ids[np.lexsort((ids, row))[:6]].tolist())


def test_what_has_no_tables(client, url, asker, points):
    says = reason(client.post("/points/query", json={"vectors": [ONES], "by": "tables"}), 422)
    assert says == 'the model has learnt no tables: "by": "outputs" ranks by its outputs'
    assert right(client.get("/info"))["by"] == ["hamming", "outputs"]
    with asking(url.replace("store.db", "codes.db")) as without:
        put = {"id": 1, "code": "ffff0f", "vector": ONES}
        right(without.put("/points", json={"points": [put]}))
        for by in ("outputs", "tables"):
            answer = without.post("/points/query", json={"ids": [1], "by": by})
            assert reason(answer, 422) == (
                f"queries cannot be ordered by {by}: the service has no model"
            )
    limits = Limits(rate=0, tables=3 * 1024 * 3)  # of 3 queries
    with asking(url.replace("store.db", "tables.db"), asker, limits) as small:
        fill(small, *points[:2])
        asked = {"vectors": [ONES] * 3, "by": "tables"}
        query(small, **asked)
        asked["vectors"] = [ONES] * 4
        assert reason(small.post("/points/query", json=asked), 422) == (
            "4 queries by tables of 20 bits are too many, at most 3: ask in several requests"
        )
        asked = {"vectors": [[1e99] * FEATURES], "by": "tables"}
        assert "must be finite" in reason(small.post("/points/query", json=asked), 422)
        right(small.put("/points", json={"points": [{"id": 1, "code": "ffff0f"}]}))
        answer = small.post("/points/query", json={"ids": [1], "by": "tables"})
        assert reason(answer, 409) == "point 1 was put in as a code: it has no vector"


def test_payloads_come_with_the_hits(filled, points):
    payloads = dict(zip(points[0].tolist(), points[3], strict=True))
    hits = query(filled, ids=[int(points[0][0])], k=20, with_payload=True)["results"][0]["hits"]
    assert all(hit["payload"] == payloads[int(hit["id"])] for hit in hits)
    assert "payload" not in query(filled, ids=[int(points[0][0])])["results"][0]["hits"][0]


def test_a_point(filled, points):
    ids, X, codes, payloads = points
    for i in (0, N - 3, N - 2, N - 1):
        point = right(filled.get(f"/points/{ids[i]}"))
        assert point == {
            "id": int(ids[i]) if ids[i] < 2**53 else str(ids[i]),
            "code": bytes(codes[i]).hex(),
            "vector": X[i].tolist(),
            "payload": payloads[i],
        }
    assert reason(filled.get("/points/777777"), 404) == "there is no point 777777"
    for wrong in ("-1", "a", str(2**63), "1.5", "9" * 30):
        assert "id" in reason(filled.get(f"/points/{wrong}"), 422)


def test_delete_and_count(filled, points):
    assert right(filled.get("/points")) == {"count": N}
    gone = [int(points[0][0]), str(LARGEST), 777777, int(points[0][0])]
    assert right(filled.post("/points/delete", json={"ids": gone})) == {"deleted": 2}
    assert right(filled.get("/points")) == {"count": N - 2}
    reason(filled.get(f"/points/{LARGEST}"), 404)
    left = np.ones(N, bool)
    left[[0, N - 1]] = False
    code = points[2][0]
    assert hits_of(query(filled, codes=[bytes(code).hex()], k=8)) == [
        expected(points, code, left)[:8]
    ]


def test_a_point_is_replaced_as_a_whole(filled, points):
    name, code = int(points[0][0]), bytes(points[2][1]).hex()
    right(filled.put("/points", json={"points": [{"id": name, "code": code}]}))
    assert right(filled.get(f"/points/{name}")) == {
        "id": name,
        "code": code,
        "vector": None,
        "payload": None,
    }
    asked = {"vectors": [points[1][0].tolist()], "k": 1, "rerank": N}
    message = f"point {name} was put in as a code: it has no vector"
    assert reason(filled.post("/points/query", json=asked), 409) == message
    assert reason(filled.post("/points/query", json={"ids": [name], "rerank": 5}), 409) == message
    assert query(filled, ids=[name], k=1)["results"]


def test_info(filled, hasher):
    info = right(filled.get("/info"))
    assert (info["points"], info["n_bits"], info["n_features"]) == (N, BITS, FEATURES)
    assert (info["store"], info["keeps_points"], info["images"]) == ("sqlite", True, False)
    assert info["limits"]["batch"] == 1000
    assert info["model"] == info["made_by"] == hasher.fingerprint
    learnt = hasher.learnt
    assert info["learnt"] == {
        "method": "LSH",
        "points": learnt.n_points,
        "data": learnt.data,
        "expected_recall": [],
    }


def test_info_says_what_recall_to_expect(url, hasher):
    recall = ExpectedRecall(100, 20, 0.5, 0.1, 0.6, 0.1)
    promising = replace(hasher, learnt=replace(hasher.learnt, expected=(recall,)))
    with asking(url, promising) as client:
        info = right(client.get("/info"))
    assert info["learnt"]["expected_recall"] == [vars(recall)]


def test_drift_of_points_that_came_in(url, hasher):
    """Recall of the points beside the promise, in /info and /metrics; none before there are any."""
    rng = np.random.default_rng(0)
    usual = rng.normal(size=(2_500, FEATURES))
    metric, functions = "euclidean", (hasher.encode, hasher.decision_function)
    expected = tuple(expected_recall(*functions, usual, metric=metric))
    promising = replace(hasher, metric=metric, learnt=replace(hasher.learnt, expected=expected))

    def put(client, X, first=0):
        for start in range(0, len(X), 1_000):
            vectors = X[start : start + 1_000].tolist()
            points = [{"id": first + start + n, "vector": v} for n, v in enumerate(vectors)]
            right(client.put("/points", json={"points": points}))

    with asking(url, promising) as client:
        assert right(client.get("/info"))["drift"] is None
        assert 'auxhash_recall{of="now"} NaN' in client.get("/metrics").text
        put(client, rng.normal(size=(1_500, FEATURES)))
        drift = right(client.get("/info"))["drift"]
        assert (drift["points"], drift["searched"], drift["lower"]) == (1_500, 1_000, False)
        [promise] = [each for each in expected if each.n_base == 1_000]
        assert drift["expected"] == promise.hamming
        put(client, rng.normal(size=(199, FEATURES)), 1_500)
        assert right(client.get("/info"))["drift"]["now"] == drift["now"]  # not measured again
        put(client, rng.normal(size=(5_000, FEATURES)) + 40, 2_000)  # all on one side of planes
        moved = right(client.get("/info"))["drift"]
        assert moved["lower"]
        assert moved["change"] == pytest.approx(moved["now"] - promise.hamming)
        metrics = client.get("/metrics").text
        assert f'auxhash_recall{{of="now"}} {moved["now"]}' in metrics
        assert f'auxhash_recall{{of="expected"}} {promise.hamming}' in metrics


def test_drift_of_a_model_with_tables_is_by_tables(url, asker):
    X = np.random.default_rng(0).normal(size=(400, FEATURES))
    functions = asker.encode, asker.decision_function, X, None, "euclidean"
    expected = expected_recall(*functions, tables=asker.tables)
    model = asker.model_
    promising = replace(model, learnt=replace(model.learnt, expected=tuple(expected)))
    with asking(url, promising) as client:
        fill(client, np.arange(400), X)
        drift = right(client.get("/info"))["drift"]
    assert (drift["by"], drift["searched"]) == ("tables", expected[-1].n_base)
    assert drift["expected"] == drift["now"] == expected[-1].tables
    assert drift["now"] != expected[-1].hamming


def test_the_sample_is_of_the_last_points(monkeypatch):
    monkeypatch.setattr(incoming, "SAMPLED_VECTORS", 100)
    monkeypatch.setattr(incoming, "RECENT_POINTS", 1_000)
    points = incoming.IncomingPoints()
    for first in range(0, 20_000, 500):
        points.add([[n] for n in range(first, first + 500)])
    age = 20_000 - points._sample[:, 0]
    assert points.n_points == 20_000
    assert len(np.unique(age)) == 100
    assert 700 < age.mean() < 1_300  # on average, the last thousand


def test_codes_of_another_model(filled, points, hasher):
    """They are refused, as queries and as points; those of the same model are not."""
    own, other, code = hasher.fingerprint, "0123456789abcdef", bytes(points[2][0]).hex()
    put = {"points": [{"id": 1, "code": code}]}
    assert right(filled.put("/points", json={**put, "fingerprint": own})) == {"upserted": 1}
    assert query(filled, codes=[code], fingerprint=own) == query(filled, codes=[code])
    for answer in (
        filled.put("/points", json={**put, "fingerprint": other}),
        filled.post("/points/query", json={"codes": [code], "fingerprint": other}),
    ):
        assert f"by model {other}, and those in the store by model {own}" in reason(answer, 409)
    wrong = filled.put("/points", json={**put, "fingerprint": "x"})
    assert "fingerprint" in reason(wrong, 422)
    asked = {"vectors": [points[1][0].tolist()], "fingerprint": own}
    answer = filled.post("/points/query", json=asked)
    assert "a fingerprint is that of codes" in reason(answer, 422)


def test_health(client):
    assert right(client.get("/healthz")) == {"status": "alive"}
    assert right(client.get("/readyz")) == {"status": "ready"}


def test_metrics(filled):
    query(filled, ids=[int(right(filled.get("/points"))["count"])][:0] or None, codes=["0" * 6])
    reason(filled.get("/nowhere"), 404)
    text = filled.get("/metrics").text
    assert 'auxhash_requests_total{method="PUT",path="/points",status="200"} 1.0' in text
    assert 'auxhash_requests_total{method="GET",path="other",status="404"} 1.0' in text
    assert f"auxhash_points {float(N)}" in text
    assert "auxhash_ready 1.0" in text


def test_codes_only(url):
    """Without a model there are no vectors to be encoded, but any may stand beside a code."""
    with asking(url) as client:
        assert right(client.get("/info"))["n_features"] is None
        put = [{"id": 1, "code": "ffff0f", "vector": [1.0, 2.0]}, {"id": 2, "code": "000000"}]
        right(client.put("/points", json={"points": put}))
        assert hits_of(query(client, codes=["010000"])) == [[(2, 1), (1, 19)]]
        for method, path, asked in (
            ("PUT", "/points", {"points": [{"id": 1, "vector": [1.0]}]}),
            ("POST", "/points/query", {"vectors": [[1.0]]}),
            ("POST", "/points/query", {"images": ["aaaa"]}),
        ):
            assert "model" in reason(client.request(method, path, json=asked), 422)


def test_a_store_of_codes_only(url, hasher, monkeypatch):
    """Stands for DuckDB and the others: vectors are encoded and not kept, payloads refused."""
    monkeypatch.setattr("auxhash.stores.sqlite.SqliteStore.keeps_points", False)
    with asking(url, hasher) as client:
        put = {"id": 1, "vector": [1.0] * FEATURES}
        right(client.put("/points", json={"points": [put]}))
        assert right(client.get("/points/1"))["vector"] is None
        put["payload"] = {"a": 1}
        says = "a store of sqlite holds codes only, and no payloads"
        assert reason(client.put("/points", json={"points": [put]}), 422) == says
        for more in ({"rerank": 3}, {"filter": {"field": "a", "value": 1}}):
            asked = {"vectors": [[1.0] * FEATURES], **more}
            assert "holds codes only" in reason(client.post("/points/query", json=asked), 422)


def test_model_and_store_must_agree(url, hasher):
    class Store:
        n_bits, url = 16, "sqlite:///a"

    with pytest.raises(ValueError, match="makes codes of 20 bits, and sqlite:///a holds"):
        Service(Store(), hasher)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "a query has one of vectors, codes, images and ids"),
        ({"vectors": [ONES], "codes": ["000000"]}, "a query has one of"),
        ({"vectors": []}, "vectors: List should have at least 1 item"),
        ({"vectors": [[]]}, "vectors.0: List should have at least 1 item"),
        ({"vectors": [[1.0]]}, "vectors must be 6 numbers, as the model takes, got 1"),
        ({"vectors": [["1"] * 6]}, "vectors.0.0: Input should be a valid number"),
        ({"vectors": [[True] * 6]}, "vectors.0.0: Input should be a valid number"),
        ({"vectors": [[1e101] * 6]}, "vectors.0.0: Input should be less than or equal to"),
        ({"vectors": [[10**400] * 6]}, "vectors.0.0: Input should be a"),
        ({"vectors": [ONES], "k": 0}, "k: Input should be greater than or equal to 1"),
        ({"vectors": [ONES], "k": 1.0}, "k: Input should be a valid integer"),
        ({"vectors": [ONES], "k": 1001}, "k: Input should be less than or equal to 1000"),
        ({"vectors": [ONES], "radius": -1}, "radius: Input should be greater than"),
        ({"vectors": [ONES], "radius": 1, "k": 1}, "a radius finds all within it: leave out k"),
        ({"vectors": [ONES], "radius": 1, "rerank": 9}, "a radius finds all within it"),
        ({"vectors": [ONES], "by": "guess"}, "by: Input should be 'hamming', 'outputs' or"),
        ({"codes": ["000000"], "by": "tables"}, "codes have no outputs or tables: give vectors"),
        ({"vectors": [ONES], "by": "outputs", "radius": 1}, "a radius counts bits: leave out by"),
        ({"vectors": [ONES], "limit": 1}, "a limit belongs to a radius"),
        (
            {"vectors": [ONES], "radius": 1, "limit": 1001},
            "limit: Input should be less than or equal to 1000",
        ),
        (
            {"vectors": [ONES], "rerank": 10_001},
            "rerank: Input should be less than or equal to 10000",
        ),
        ({"vectors": [ONES], "metric": "manhattan"}, "metric: Input should be 'euclidean' or"),
        (
            {"vectors": [ONES] * 1001},
            "vectors: List should have at most 1000 items after validation, not 1001",
        ),
        ({"vectors": [ONES] * 101, "k": 1000}, "101 queries for 1,000 each are too many"),
        ({"vectors": [ONES] * 101, "radius": 3}, "101 queries for 1,000 each are too many"),
        ({"vectors": [ONES] * 11, "rerank": 10_000}, "11 queries for 10,000 each are too many"),
        ({"codes": ["0000"]}, "codes of 20 bits must be 6 hexadecimal digits, got 4"),
        ({"codes": ["00000g"]}, "codes.0: String should match pattern"),
        ({"codes": ["0000f0"]}, "codes must be 0 in the padding bits beyond n_bits=20"),
        ({"codes": ["000000"], "rerank": 5}, "codes cannot be re-ranked"),
        ({"codes": ["000000"], "with_payload": 1}, "with_payload: Input should be a valid boolean"),
        ({"codes": ["000000"], "nothing": 1}, "nothing: Extra inputs are not permitted"),
        ({"codes": ["000000"], "filter": {}}, "filter: a filter has either ids or a field"),
        ({"codes": ["000000"], "filter": {"ids": [1], "field": "a"}}, "either ids or a field"),
        ({"codes": ["000000"], "filter": {"field": "a"}}, "either a value or values"),
        ({"codes": ["000000"], "filter": {"ids": [1], "value": 1}}, "a value belongs to a field"),
        ({"codes": ["000000"], "filter": {"field": "a", "value": 1.5}}, "filter.value"),
        ({"codes": ["000000"], "filter": {"field": "a", "value": 2**63}}, "filter.value"),
        ({"codes": ["000000"], "filter": {"field": "a\0", "value": 1}}, "the character 0"),
        ({"codes": ["000000"], "filter": {"field": "a", "value": "x" * 257}}, "filter.value"),
        ({"codes": ["000000"], "filter": {"ids": [-1]}}, "filter.ids.0: an id must be a whole"),
        (
            {"codes": ["000000"], "filter": {"ids": [0] * 100_001}},
            "filter.ids: List should have at most 100000 items",
        ),
        ({"ids": [2**63]}, "ids.0: an id must be a whole number from 0 to 2^63 - 1, or text"),
        ({"ids": [1.0]}, "ids.0: an id must be a whole number from 0 to 2^63 - 1, or text"),
        ({"ids": [True]}, "ids.0: an id must be a whole number from 0 to 2^63 - 1, or text"),
        ({"ids": [""]}, "ids.0: an id must be a whole number from 0 to 2^63 - 1, or text"),
        ({"ids": ["a\0"]}, "ids must not hold the character 0"),
        ({"ids": ["x" * 1025]}, "ids must be of at most 1,024 bytes in UTF-8; row 0 has 1,025"),
        ({"ids": [1, "a"]}, "ids must be all whole numbers or all text, and are mixed"),
        ({"images": ["aaaa"]}, "the model was not learnt from pictures"),
        ([1], "the body must be a JSON object"),
    ],
)
def test_wrong_queries(client, asked, says):
    assert says in reason(client.post("/points/query", json=asked), 422)


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ({"id": 1}, "points.0: a point needs a vector, an image or a code"),
        ({"vector": ONES}, "points.0.id: Field required"),
        ({"id": 1, "vector": ONES, "image": "aaaa"}, "has either a vector or an image"),
        ({"id": 1, "image": "aaaa"}, "images cannot be encoded: the model was not learnt"),
        ({"id": 1, "vector": [1.0]}, "vector must be 6 numbers, as the model takes, got 1"),
        ({"id": 1, "vector": [1.0], "code": "000000"}, "vector must be 6 numbers"),
        ({"id": 1, "code": "00"}, "code of 20 bits must be 6 hexadecimal digits, got 2"),
        ({"id": 1, "code": "0000ff"}, "code must be 0 in the padding bits"),
        (
            {"id": 1, "vector": ONES, "payload": []},
            "points.0.payload: Input should be a",
        ),
        ({"id": 1, "vector": ONES, "payload": {"a": "\0"}}, "must not hold the character 0"),
        ({"id": 1, "vector": ONES, "more": 1}, "points.0.more: Extra inputs are not permitted"),
    ],
)
def test_wrong_points(client, point, says):
    assert says in reason(client.put("/points", json={"points": [point]}), 422)
    assert right(client.get("/points")) == {"count": 0}


def test_more_wrong_requests(client):
    twice = {"points": [{"id": 5, "vector": ONES}, {"id": "5", "vector": ONES}]}
    assert reason(client.put("/points", json=twice), 422) == (
        "points must not name an id twice, 5 does"
    )
    many = {"points": [{"id": i, "code": "000000"} for i in range(1001)]}
    assert "points: List should have at most 1000 items" in reason(
        client.put("/points", json=many), 422
    )
    assert "ids: List should have at most 1000 items" in reason(
        client.post("/points/delete", json={"ids": [1] * 1001}), 422
    )
    for text in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = f'{{"vectors": [[{", ".join([text] * 6)}]]}}'
        answer = client.post(
            "/points/query", content=body, headers={"content-type": "application/json"}
        )
        assert reason(answer, 422) == "vectors.0.0: Input should be a finite number"
    for body in ("{", '{"codes": ["\ud800"]}'.encode("utf-8", "surrogatepass"), "[" * 100_000):
        answer = client.post(
            "/points/query", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (400, 422)
        assert set(answer.json()) == {"error"}
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    body = b'{"points": [{"id": 1, "code": "000000", "payload": ' + deep + b"}]}"
    answer = client.put("/points", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert reason(client.get("/nowhere"), 404) == "Not Found"
    answer = client.delete("/points")
    assert reason(answer, 405) == "Method Not Allowed"
    assert answer.headers["allow"] == "PUT"
    reason(client.get("/redoc"), 404)  # it would fetch scripts from elsewhere


def png(size=(20, 20), value=200, form="PNG", mode="RGB"):
    content = io.BytesIO()
    Image.new(mode, size, value if mode == "L" else (value, 0, 0)).save(content, form)
    return base64.b64encode(content.getvalue()).decode()


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_images(url, hasher, form):
    """An image is a query by its feature."""
    feature = ImageFeature(
        "mean", lambda pictures: np.array([[p.mean()] * FEATURES for p in pictures])
    )
    with asking(url, hasher, pictures=serve.Pictures(feature)) as client:
        vector = [200 / 3] * FEATURES
        right(client.put("/points", json={"points": [{"id": 1, "vector": vector}]}))
        answer = query(client, images=[png(form=form)] * 2, rerank=1)
        assert hits_of(answer)[0][0] == (1, pytest.approx(0, abs=3))
        assert right(client.get("/info"))["images"] is True
        put = [{"id": 2, "image": png(form=form)}, {"id": 3, "image": png(), "code": "000000"}]
        assert right(client.put("/points", json={"points": put})) == {"upserted": 2}
        two, three = (right(client.get(f"/points/{name}")) for name in (2, 3))
        assert two["vector"] == pytest.approx(vector, abs=1)
        assert three["vector"] == pytest.approx(vector, abs=1e-9)
        assert three["code"] == "000000"
        codes = right(client.post("/encode", json={"images": [png(form=form)]}))["codes"]
        assert codes == [two["code"]]


def test_encode(filled, points, hasher):
    """Codes of vectors are those that the points have."""
    X = points[1][:3]
    answer = right(filled.post("/encode", json={"vectors": X.tolist()}))
    assert answer["codes"] == [bytes(code).hex() for code in hasher.encode(X)]
    assert answer["fingerprint"] == hasher.fingerprint
    for asked, says in (
        ({}, "give either vectors or images"),
        ({"vectors": [[1.0]]}, "vectors must be 6 numbers, as the model takes, got 1"),
        ({"images": [png()]}, "images cannot be encoded: the model was not learnt from pictures"),
    ):
        assert says in reason(filled.post("/encode", json=asked), 422)


def test_encode_needs_a_model(url):
    with asking(url) as client:
        answer = client.post("/encode", json={"vectors": [[1.0]]})
        assert reason(answer, 422) == "the service has no model that encodes"


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (["!"], "an image must be in base64"),
        (["aGFsbG8="], "an image must be PNG or JPEG"),
        ([png(form="BMP")], "an image must be PNG or JPEG"),
        ([base64.b64encode(base64.b64decode(png())[:40]).decode()], "no picture that can be read"),
        ([png((101, 100), mode="L")], "at most 10,000 pixels, got 101 x 100"),
        ([png()] * 17, "images: List should have at most 16 items after validation, not 17"),
    ],
)
def test_wrong_images(url, hasher, images, says):
    feature = gist_feature(16)
    limits = Limits(rate=0, pixels=10_000)
    with asking(url, hasher, limits, pictures=serve.Pictures(feature)) as client:
        assert says in reason(client.post("/points/query", json={"images": images}), 422)
        points = [{"id": i, "image": image} for i, image in enumerate(images)]
        message = reason(client.put("/points", json={"points": points}), 422)
        assert message == "a request has at most 16 images, got 17" or says in message


def test_queries_of_another_kind_are_encoded_by_a_model_of_their_own(url, hasher, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    codes, Q = hasher.encode(X), np.tanh(X @ rng.normal(size=(6, 4)))
    asker = QueryTables(BITS, "linear", "euclidean", n_steps=2, random_state=0)
    asker.fit(Q, np.arange(60), codes, made_for=hasher.fingerprint)
    asker.save(tmp_path / "asker.safetensors")
    hasher.save(tmp_path / "model.safetensors")

    def opened():
        files = tmp_path / "model.safetensors", tmp_path / "asker.safetensors"
        return starting.service(url, str(files[0]), query_model=str(files[1]))

    with asking(url, hasher, opened=opened) as client:
        while not client.work.ready:
            client.runner.run(asyncio.sleep(0.005))
        points = [{"id": i, "vector": x.tolist()} for i, x in enumerate(X)]
        assert client.put("/points", json={"points": points}).status_code == 200
        info = client.get("/info").json()
        assert (info["n_features"], info["n_query_features"]) == (6, 4)
        assert info["by"] == ["hamming", "outputs", "tables"]
        asked = {"vectors": Q[:5].tolist(), "k": 3, "by": "tables"}
        results = client.post("/points/query", json=asked).json()["results"]
        index = HammingIndex(BITS).add(codes)
        hits = [[hit["id"] for hit in each["hits"]] for each in results]
        np.testing.assert_array_equal(hits, index.search_tables(asker.tables(Q[:5]), 3)[1])
        wrong = {"vectors": X[:1].tolist()}
        assert reason(client.post("/points/query", json=wrong), 422).startswith(
            "vectors must be 4 numbers, as the model takes, got 6"
        )
        again = {"vectors": Q[:1].tolist(), "rerank": 5}
        assert "leave out" in reason(client.post("/points/query", json=again), 422)


def test_a_model_of_queries_encodes_new_documents_beside_old_codes(url, hasher, tmp_path):
    """After a change of model, it alone is served: for queries, and for points that are put."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    same = np.tanh(X @ rng.normal(size=(6, 4)))  # by the new model
    with stores.open(url, BITS) as store:
        store.upsert(np.arange(40), hasher.encode(X[:40]), fingerprint=hasher.fingerprint)
        asker = QueryTables(BITS, "linear", "euclidean", n_steps=2, random_state=0)
        asker.fit(same[:40], np.arange(40), store)
    asker.save(tmp_path / "asker.safetensors")

    def opened():
        return starting.service(url, str(tmp_path / "asker.safetensors"))

    with asking(url, hasher, opened=opened) as client:
        while not client.work.ready:
            client.runner.run(asyncio.sleep(0.005))
        points = [{"id": i, "vector": same[i].tolist()} for i in range(40, 60)]
        assert client.put("/points", json={"points": points}).status_code == 200
        info = client.get("/info").json()
        assert (info["n_features"], info["n_query_features"]) == (4, 4)
        asked = {"vectors": same.tolist(), "k": 5, "by": "tables"}
        results = client.post("/points/query", json=asked).json()["results"]
        hits = np.array([[hit["id"] for hit in each["hits"]] for each in results])
        both = np.concatenate([hasher.encode(X[:40]), asker.encode(same[40:])])
        index = HammingIndex(BITS).add(both)
        np.testing.assert_array_equal(hits, index.search_tables(asker.tables(same), 5)[1])
        hit = (hits == np.arange(60)[:, None]).any(axis=1)
        assert hit[:40].mean() > 0.5
        assert hit[40:].mean() > 0.5
        by_id = client.post("/points/query", json={"ids": [50], "k": 3, "by": "tables"})
        assert by_id.status_code == 200


def test_a_model_of_queries_for_other_codes_is_refused(url, hasher):
    Q = np.random.default_rng(0).normal(size=(30, 4))
    asker, other = (
        QueryTables(bits, "linear", n_steps=1).fit(Q, np.arange(30), np.zeros((30, 3), np.uint8))
        for bits in (BITS, 24)
    )
    with stores.open(url, BITS) as store:
        with pytest.raises(OtherModelError, match="model of queries was learnt for codes of model"):
            Service(store, hasher, asker=asker.model_)
        with pytest.raises(
            ValueError, match="is for codes of 24 bits, and the model makes codes of 20"
        ):
            Service(store, hasher, asker=other.model_)
        with pytest.raises(ValueError, match="needs the model of the codes"):
            Service(store, asker=asker.model_)
        Service(store, hasher, asker=asker.model_, any_model=True).close()
