"""Galleries: some queries, and the points that each method retrieves first for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import Numbers
from auxhash.compute.words import count
from auxhash.experiments.cells import Cells
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.groups import Group
from auxhash.model.encoding import Arrays
from auxhash.search.index import HammingIndex

QUERIES = 4
FIRST = 10  # retrieved points shown


@dataclass(frozen=True)
class Strip:
    """Pictures side by side (height, n * width[, 3]), and which of them are right."""

    label: str
    pixels: NDArray[np.uint8]
    right: Sequence[bool]


@dataclass(frozen=True)
class Gallery:
    """Pictures of queries with one strip per method each, or the reason why there are none."""

    title: str
    queries: Sequence[tuple[Strip, Sequence[Strip]]] = ()
    why_none: str = ""


def gallery(group: Group, cells: Cells) -> Gallery | None:
    """A gallery at the group's middle number of bits; None if nothing was trained."""
    bits = group.bits[len(group.bits) // 2]
    codes = {method: group.codes(method, bits, cells) for method in group.methods}
    trained = {method: own for method, own in codes.items() if own is not None}
    if not trained:
        return None
    title = f"{group.name}, {count(bits, 'bit')}, {group.hash_functions[0]} hash function"
    return pictures(title, group.data.judged(group.n_jobs), trained, bits)


def pictures(title: str, data: Dataset, codes: Mapping[str, Arrays], bits: int) -> Gallery:
    """A few queries, and what each method's codes retrieve first."""
    if data.query.images is None or data.base.images is None:
        return Gallery(title, why_none=f"{data.name} holds descriptors, not images to be shown.")
    chosen = _chosen(data)
    retrieved = {method: _search(own, chosen, bits) for method, own in codes.items()}
    shown = [
        (
            _strip("query", data.query, np.array([q]), [True]),
            [
                _strip(name, data.base, rows[at], _right(data, q, rows[at]))
                for name, rows in retrieved.items()
            ],
        )
        for at, q in enumerate(chosen)
    ]
    return Gallery(title, shown)


def _chosen(data: Dataset) -> Numbers:
    """The first query of each of a few classes, evenly apart."""
    _, first = np.unique(np.asarray(data.query.y), return_index=True)
    picked: Numbers = first[np.linspace(0, len(first) - 1, QUERIES).astype(int)]
    return picked


def _search(codes: Arrays, chosen: Numbers, bits: int) -> Numbers:
    index = HammingIndex(bits)
    index.add(codes["base"])
    return index.search(codes["query"][chosen], FIRST)[1]


def _right(data: Dataset, query: int, rows: Numbers) -> list[bool]:
    truth: Any = data.query.y
    labels: Any = data.base.y
    return [bool(labels[row] == truth[query]) for row in rows]


def _strip(label: str, points: Any, rows: Numbers, right: Sequence[bool]) -> Strip:
    images = np.asarray(points.images[rows])
    brightest = int(images.max(initial=1))
    if brightest <= 16:  # the digits of scikit-learn
        images = (images.astype(np.uint16) * 255 // 16).astype(np.uint8)
    return Strip(label, np.concatenate(list(images), axis=1), right)
