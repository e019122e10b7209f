"""Search items over HTTP: a model, a store in a database, and the service in front of both.

    python examples/items_service.py --store postgresql://localhost/shop

Without --store the items lie in a file of SQLite. Any client of HTTP will do; here it is the one of
the standard library.
"""

import argparse
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from sklearn.datasets import load_digits

from auxhash import MACHash

KINDS = ("ring", "pen", "swan", "hook", "chair", "snake", "cherry", "axe", "knot", "balloon")


@contextmanager
def service(store: str) -> Iterator[str]:
    """Run `auxhash serve` on any free port, and yield its address."""
    command = ["auxhash", "serve", "--model", "model.safetensors", "--store", store]
    command += ["--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = (re.search(r"http://\S+", line) for line in process.stdout)
            url = next(match.group().rstrip("/") for match in found if match)
            while not ready(url):
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()  # it finishes what it has accepted


def ready(url: str) -> bool:
    """Return True once the service has opened its store."""
    try:
        with urlopen(f"{url}/readyz"):
            return True
    except HTTPError:  # 503
        return False


def ask(method: str, url: str, **body: Any) -> dict[str, Any]:
    """Send a request with a JSON body, and return the JSON of the answer."""
    headers = {"Content-Type": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers, method=method)
    with urlopen(request) as answer:
        return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", default="sqlite:///items.db", help="URL of the store")
    parser.add_argument("--items", type=int, default=1500)
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X, y, queries = X[: options.items], y[: options.items], X[1500:1503]
    MACHash(n_bits=64, random_state=0).fit(X, y).save("model.safetensors")

    with service(options.store) as url:
        points = [
            {"id": i, "vector": x.tolist(), "payload": {"kind": KINDS[label]}}
            for i, (x, label) in enumerate(zip(X, y, strict=True))
        ]
        for first in range(0, len(points), 500):
            ask("PUT", f"{url}/points", points=points[first : first + 500])

        # 50 candidates by their codes, ordered by the vectors that the store keeps.
        wanted = {"vectors": queries.tolist(), "k": 3, "rerank": 50, "with_payload": True}
        for query, result in enumerate(ask("POST", f"{url}/points/query", **wanted)["results"]):
            hits = [f"{hit['id']} ({hit['payload']['kind']})" for hit in result["hits"]]
            print(f"query {query}:", *hits)

        wanted |= {"filter": {"field": "kind", "values": ["pen"]}}
        for query, result in enumerate(ask("POST", f"{url}/points/query", **wanted)["results"]):
            print(f"query {query}, pens alone:", *(hit["id"] for hit in result["hits"]))
        print("deleted:", ask("POST", f"{url}/points/delete", ids=[0, 1])["deleted"])


if __name__ == "__main__":
    main()
