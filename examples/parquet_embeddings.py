"""Search embeddings with text ids, from a Parquet file to re-ranked answers.

    python examples/parquet_embeddings.py docs.parquet --id doc_id --vector embedding

Without a file it makes a small one: scans of digits, 64 features each.
"""

import argparse

import numpy as np
import pyarrow as arrow
from pyarrow import parquet

from auxhash import HammingIndex, NamedIndex, NeighborHash
from auxhash.index import rerank, tables_from_outputs


def make(path: str) -> None:
    """Write digits as if they were embeddings of documents."""
    from sklearn.datasets import load_digits

    X = load_digits().data.astype(np.float32)
    ids = [f"scan-{i:04}" for i in range(len(X))]
    parquet.write_table(arrow.table({"doc_id": ids, "embedding": list(X)}), path)


def read(path: str, id_column: str, vector_column: str) -> tuple[list[str], np.ndarray]:
    """Return the ids and the vectors (n, D) of a Parquet file."""
    table = parquet.read_table(path, columns=[id_column, vector_column])
    vectors = table[vector_column].combine_chunks().values.to_numpy().reshape(len(table), -1)
    return table[id_column].to_pylist(), vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--id", default="doc_id")
    parser.add_argument("--vector", default="embedding")
    parser.add_argument("--steps", type=int, help="gradient steps; fewer are quicker, and worse")
    parser.add_argument("--linear", action="store_true", help="no network: quicker, and worse")
    options = parser.parse_args()
    if options.file is None:
        options.file = "docs.parquet"
        make(options.file)

    ids, X = read(options.file, options.id, options.vector)
    queries, base = X[-100:], X[:-100]  # the last 100 documents are searched for
    names = ids[:-100]

    kind = "linear" if options.linear else "network"
    hasher = NeighborHash(128, hash_function=kind, n_steps=options.steps, random_state=0).fit(base)
    hasher.save("model.safetensors")
    index = NamedIndex(HammingIndex(128)).add(hasher.encode(base), names)
    index.save("docs.index")
    print(f"{len(base):,} documents in {len(base) * 16:,} bytes of codes, not {base.nbytes:,}")

    # Three orders: by codes alone, by the query's outputs, and 100 candidates by their vectors.
    numbered, outputs = index.index, hasher.decision_function(queries)
    by_codes = numbered.search(hasher.encode(queries), k=10)[1]
    by_outputs = numbered.search_tables(tables_from_outputs(outputs), k=10)[1]
    candidates = numbered.search_tables(tables_from_outputs(outputs), k=100)[1]
    by_vectors = rerank.by_vectors(candidates, queries, base, k=10, metric="cosine")[1]

    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    nearest = np.argsort(-queries @ unit.T, axis=1)[:, :10]
    for order, rows in {"codes": by_codes, "outputs": by_outputs, "vectors": by_vectors}.items():
        right = np.mean([len({*a} & {*b}) for a, b in zip(rows, nearest, strict=True)]) / 10
        print(f"by {order}: {right:.2f} of the 10 nearest")
    print(f"{ids[-100]} finds", *index.called(by_vectors[0, :3].tolist()))


if __name__ == "__main__":
    main()
