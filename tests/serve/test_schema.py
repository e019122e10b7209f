"""The OpenAPI document: what schemathesis makes of it gets no fault, and answers as it says."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from tests.serve.conftest import FEATURES

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
schemas = pytest.importorskip("auxhash.serve.schemas", reason="auxhash[serve] is missing")
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is missing")

EXAMPLES = 300 if os.environ.get("AUXHASH_SOAK") else 6
PATHS = [
    ("PUT", "/points"),
    ("POST", "/points/delete"),
    ("POST", "/points/query"),
    ("POST", "/encode"),
    ("GET", "/points"),
    ("GET", "/points/{id}"),
    ("GET", "/info"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]


def test_the_document_names_every_answer(client):
    document = serve.right(client.get("/openapi.json"))
    result = [(method.upper(), path) for path, ways in document["paths"].items() for method in ways]
    assert sorted(result) == sorted(PATHS)
    for ways in document["paths"].values():
        for way in ways.values():
            assert {"200", "401", "403", "408", "413", "429", "500", "503"} <= set(way["responses"])
            assert way["description"]
            if "requestBody" in way:
                assert {"400", "422"} <= set(way["responses"])
                content = way["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                name = content.rsplit("/", 1)[1]
                assert examples(document, name)
                for example in examples(document, name):
                    getattr(schemas, name).model_validate(example)


def test_answers_have_examples(client):
    """Each is an answer as the document has it; errors have one too."""
    document = serve.right(client.get("/openapi.json"))
    for ways in document["paths"].values():
        for way in ways.values():
            for status, answer in way["responses"].items():
                if "application/json" not in answer.get("content", {}):
                    assert (status, way["operationId"]) == ("200", "metrics_metrics_get")
                    continue
                name = answer["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
                [example] = examples(document, name)
                getattr(schemas, name).model_validate(example)


def examples(document, name):
    return document["components"]["schemas"][name]["examples"]


def send(client, case):
    """The answer to what schemathesis made, which it wants to be sent by requests."""
    sent = case.as_transport_kwargs(base_url="http://localhost")
    method, url = sent.pop("method"), sent.pop("url")
    headers = {key: value.encode("latin-1", "ignore") for key, value in sent["headers"].items()}
    content = sent.get("data")
    if "json" in sent:
        content = json.dumps(sent["json"])
        headers["Content-Type"] = b"application/json"
    return client.request(method, url, params=sent.get("params"), headers=headers, content=content)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_no_fault_and_answers_as_documented(client, method, path, mode):
    """`mode` says whether requests are as the document has them, or not."""
    schema = schemathesis.openapi.from_dict(serve.right(client.get("/openapi.json")))
    points = [{"id": i, "vector": [float(i)] * FEATURES, "payload": {"a": i}} for i in range(5)]
    serve.right(client.put("/points", json={"points": points}))
    check = schemathesis.checks
    checks = [
        check.not_a_server_error,
        check.status_code_conformance,
        check.content_type_conformance,
        check.response_headers_conformance,
        check.response_schema_conformance,
    ]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(schema[path][method].as_strategy(generation_mode=mode))
    def each(case):
        case.validate_response(send(client, case), checks=checks)

    try:
        each()
    except Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE  # of a request without parameters
