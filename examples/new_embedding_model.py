"""Change the embedding model of queries, and keep the codes of the documents as they are.

    python examples/new_embedding_model.py

The old model gives digits 64 features, the new one 40 others. Neither the old model nor the old
vectors are needed, only a sample of the documents, embedded again.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits

from auxhash import HammingIndex, MACHash, QueryTables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=1000, help="documents embedded again")
    parser.add_argument("--steps", type=int, default=300, help="gradient steps at most")
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    new = np.tanh(X @ rng.normal(size=(64, 40)) / 30)  # of all, by the new model

    old = MACHash(n_bits=32, random_state=0).fit(X[:1500], y[:1500])
    index = HammingIndex(32, fingerprint=old.fingerprint).add(old.encode(X[:1500]))

    rows = np.sort(rng.permutation(1500)[: options.sample])
    asker = QueryTables(32, metric="euclidean", n_steps=options.steps, random_state=0)
    asker.fit(new[rows], rows, index)  # row i is what the new vector of document i should find

    queries, right = slice(1500, None), y[1500:, None]
    before = index.search(old.encode(X[queries]), k=10)[1]
    by_codes = index.search(asker.encode(new[queries]), k=10)[1]
    by_tables = index.search_tables(asker.tables(new[queries]), k=10)[1]
    for what, hits in {
        "old model": before,
        "new model, by codes": by_codes,
        "new model, by tables": by_tables,
    }.items():
        print(f"{what}: {(y[hits] == right).mean():.2f} of the first 10 are of the query's class")


if __name__ == "__main__":
    main()
