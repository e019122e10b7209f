"""Search items over HTTP: a model, a store in a database, and the service in front of both.

    python examples/items_service.py --store postgresql://localhost/shop

Without --store the items lie in a file of SQLite. Their ids are those of the shop, text.
"""

import argparse
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.datasets import load_digits

from auxhash import MACHash, client

KINDS = ("ring", "pen", "swan", "hook", "chair", "snake", "cherry", "axe", "knot", "balloon")


@contextmanager
def service(store: str) -> Iterator[client.Client]:
    """Run `auxhash serve` on any free port, and yield a client of it once it is ready."""
    command = ["auxhash", "serve", "--model", "model.safetensors", "--store", store]
    command += ["--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            matches = (re.search(r"http://\S+", line) for line in process.stdout)
            shop = client.Client(next(match.group() for match in matches if match))
            while not opened(shop):
                time.sleep(0.1)
            yield shop
        finally:
            process.terminate()  # it finishes what it has accepted


def opened(shop: client.Client) -> bool:
    """Return True once the service has opened its store."""
    try:
        return shop.count() >= 0
    except client.AnswerError:  # 503
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", default="sqlite:///items.db", help="URL of the store")
    parser.add_argument("--items", type=int, default=1500)
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X, y, queries = X[: options.items], y[: options.items], X[1500:1503]
    MACHash(n_bits=64, random_state=0).fit(X, y).save("model.safetensors")

    with service(options.store) as shop:
        shop.put(
            {"id": f"item-{i:04}", "vector": x, "payload": {"kind": KINDS[label]}}
            for i, (x, label) in enumerate(zip(X, y, strict=True))
        )
        # 50 candidates by their codes, ordered by the vectors that the store keeps.
        wanted = {"vectors": queries, "k": 3, "rerank": 50, "with_payload": True}
        for query, result in enumerate(shop.search(**wanted)):
            print(f"query {query}:", *(f"{hit.id} ({hit.payload['kind']})" for hit in result.hits))

        pens = {"field": "kind", "values": ["pen"]}
        for query, result in enumerate(shop.search(**wanted, filter=pens)):
            print(f"query {query}, pens alone:", *(hit.id for hit in result.hits))
        print("deleted:", shop.delete(["item-0000", "item-0001"]))


if __name__ == "__main__":
    main()
