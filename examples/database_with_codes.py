"""Keep codes beside your own rows: one SQLite file, searched by code and joined by id.

    python examples/database_with_codes.py --database shop.db

The same store may lie in PostgreSQL, DuckDB, LanceDB or Milvus: only its URL changes.
"""

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

from sklearn.datasets import load_digits

from auxhash import MACHash, stores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", default="shop.db")
    parser.add_argument("--items", type=int, default=1500)
    options = parser.parse_args()
    if Path(options.database).exists():
        parser.error(f"{options.database} is there already, and is left as it is: name another")
    X, y = load_digits(return_X_y=True)
    X, y, query = X[: options.items], y[: options.items], X[[1510]]
    ids = [f"item-{i:04}" for i in range(len(X))]
    url = stores.file_url("sqlite", options.database)
    hasher = MACHash(n_bits=32, random_state=0).fit(X, y)

    with closing(sqlite3.connect(options.database)) as shop, shop:
        shop.execute("CREATE TABLE item (id TEXT PRIMARY KEY, digit INTEGER, price REAL)")
        rows = ((id_, int(y[i]), 0.5 * (i % 40)) for i, id_ in enumerate(ids))
        shop.executemany("INSERT INTO item VALUES (?, ?, ?)", rows)

    with stores.open(url, n_bits=32, fingerprint=hasher.fingerprint) as store:
        store.upsert(ids, hasher.encode(X))
        print(f"{len(store):,} codes, made by model {hasher.fingerprint[:8]}")
        with closing(sqlite3.connect(options.database)) as shop:
            cheap = [id_ for (id_,) in shop.execute("SELECT id FROM item WHERE price < 5")]
            for what, among in {"all": None, "below 5": cheap}.items():
                distances, nearest = store.search(hasher.encode(query), k=3, among=among)
                print(f"of {what}:")
                for d, id_ in zip(distances[0], nearest[0], strict=True):
                    row = "SELECT digit, price FROM item WHERE id = ?"
                    digit, price = shop.execute(row, [id_]).fetchone()
                    print(f"    {id_} at distance {d}: digit {digit}, price {price:.2f}")


if __name__ == "__main__":
    main()
