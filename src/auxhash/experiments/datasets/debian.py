"""Descriptions of Debian's packages as MiniLM vectors: real embeddings of real texts.

There are about 60,000, some of them queries; `pairs` are titles with their descriptions, and
`names` of the points are packages with their titles.

The texts come through apt, from the archive that this machine uses, and change with it: their file
begins with its own sum, which the protocol states. Each text has the licence of its package; those
of Debian's main archive are all free. Needs `pip install 'auxhash[embeddings]'`.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from auxhash.experiments.datasets import minilm
from auxhash.experiments.datasets.embedded import Passage, Texts, check_installed, loaders
from auxhash.experiments.datasets.fetch.archives import Member
from auxhash.experiments.datasets.fetch.sources import AptLists, Collection, Snapshot

__all__ = ["FILES", "MODEL", "check_installed", "load", "load_small"]

TEXTS = "descriptions.tsv"
STANZA = re.compile(r"^Package: (.+)$(?:\n.+)*?\nDescription-en: *(.*)\n((?: .*\n?)+)", re.M)
MODEL = minilm.MODEL


def from_lists(lists: Iterable[Path]) -> Iterator[Member]:
    """One file of lines: its sum, then package, title and description, separated by tabs.

    Of packages with the same description, such as two versions of one, the first by name is kept.
    """
    by_text: dict[str, str] = {}
    for path in lists:
        for package, title, body in STANZA.findall(path.read_text("utf-8")):
            lines = (line.strip() for line in body.splitlines())
            text = " ".join(" ".join(line for line in lines if line != ".").split())
            line = f"{package}\t{' '.join(title.split())}\t{text}\n"
            if text:
                by_text[text] = min(line, by_text.get(text, line))
    content = "".join(sorted(by_text.values())).encode()
    if not content:
        raise ValueError("apt's lists hold no English descriptions")
    yield TEXTS, io.BytesIO(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


FILES = Collection("debian", (Snapshot(TEXTS),), (AptLists(from_lists),), "debian-minilm")


def passages() -> tuple[list[Passage], str]:
    """Return the descriptions with their titles, in the order of their file, and its checksum."""
    with (FILES.obtain() / TEXTS).open(encoding="utf-8", newline="\n") as lines:
        texts_sum = next(lines).strip()
        fields = [line.rstrip("\n").split("\t") for line in lines]
    return [
        Passage(f"{package}: {title}", text, (title,)) for package, title, text in fields
    ], texts_sum


def _texts() -> Texts:
    descriptions, checksum = passages()
    about = (
        f"descriptions of Debian packages (sha256 {checksum}; each under the licence of its "
        "package), queries drawn at random, questions are titles"
    )
    return Texts(descriptions, checksum, about)


load, load_small = loaders("debian-minilm", _texts)
