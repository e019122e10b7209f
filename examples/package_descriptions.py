"""Search package descriptions by meaning: codes of text vectors, learnt without labels.

    python examples/package_descriptions.py              # Debian's, by a sentence model
    python examples/package_descriptions.py --installed  # of the Python packages on this machine

The first needs `pip install 'auxhash[embeddings]'` and, once, the network and some minutes.
"""

import argparse
from importlib.metadata import distributions

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from auxhash import HammingIndex, NamedIndex, NeighborHash, datasets
from auxhash.index import rerank


def of_debian() -> tuple[list[str], NDArray[np.float32]]:
    """Return names and MiniLM vectors (n, 384) of about 4,500 packages.

    Of two versions of a package in the archive the first is taken.
    """
    base = datasets.load("debian-minilm-small").base
    names, rows = np.unique(base.names.astype(str), return_index=True)
    return names.tolist(), base.X[rows]


def of_python() -> tuple[list[str], NDArray[np.float32]]:
    """Return names and vectors (n, 32) of what is installed here: words, weighted and reduced."""
    packages = {each.metadata["Name"]: each.metadata["Summary"] for each in distributions()}
    names = [f"{name}: {text}" for name, text in sorted(packages.items()) if text]
    words = TfidfVectorizer(stop_words="english", sublinear_tf=True).fit_transform(names)
    X = TruncatedSVD(32, random_state=0).fit_transform(words)
    return names, X.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--installed", action="store_true", help="Python packages of this machine")
    parser.add_argument("--query", help="how the name of a package begins: numpy:, or python3-")
    parser.add_argument("--steps", type=int, help="gradient steps; fewer are quicker, and worse")
    options = parser.parse_args()
    names, X = of_python() if options.installed else of_debian()
    query = options.query or ("numpy:" if options.installed else "python3-")
    asked = next((row for row, name in enumerate(names) if name.startswith(query)), None)
    if asked is None:
        parser.error(f"--query: none of {len(names):,} names begins with {query!r}")

    hasher = NeighborHash(64, hash_function="linear", n_steps=options.steps, random_state=0)
    codes = hasher.fit(X).encode(X)
    index = NamedIndex(HammingIndex(64)).add(codes, names)
    print(f"{len(X)} descriptions: {X.nbytes:,} bytes of vectors, {codes.nbytes:,} of codes")

    candidates = index.index.search(codes[[asked]], k=50)[1]
    nearest = rerank.by_vectors(candidates, X[[asked]], X, k=4, metric="cosine")[1]
    print(*index.called(nearest[0].tolist()), sep="\n    ")


if __name__ == "__main__":
    main()
