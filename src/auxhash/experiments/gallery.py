"""Galleries: some queries, and the points that each method retrieves first for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import AnyArray, Numbers
from auxhash.compute.words import count
from auxhash.experiments.cells import Cells
from auxhash.experiments.datasets.dataset import Dataset, MaybeArray
from auxhash.experiments.groups import Group
from auxhash.model.encoding import Arrays
from auxhash.search.index import HammingIndex

N_QUERIES = 4
N_CONSIDERED_QUERIES = 1_000  # that they are chosen from
N_RETRIEVED = 10  # retrieved points shown


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
    return pictures(title, group.data.judged(), trained, bits)


def pictures(title: str, data: Dataset, codes: Mapping[str, Arrays], bits: int) -> Gallery:
    """A few queries, and what each method's codes retrieve first."""
    if data.query.images is None or data.base.images is None:
        return Gallery(title, why_none=f"{data.name} holds descriptors, not images to be shown.")
    retrieved = {method: _search(own, bits) for method, own in codes.items()}
    right = [_right(data, rows) for rows in retrieved.values()]  # (queries, N_RETRIEVED) each
    chosen = differing(np.stack([marks.sum(axis=1) for marks in right], axis=1), data.query.y)
    shown = [
        (
            strip("query", data.query.images, np.array([q]), [True]),
            [
                strip(name, data.base.images, rows[q], marks[q].tolist())
                for (name, rows), marks in zip(retrieved.items(), right, strict=True)
            ],
        )
        for q in chosen
    ]
    return Gallery(title, shown)


def differing(right: Numbers, y: AnyArray | None = None) -> list[int]:
    """N_QUERIES queries at most, of as many classes, where methods differ most.

    `right` counts what each method finds (queries, methods). A few methods that fail tell less
    than half of them, so the spread decides, not the range; among equals, the first.
    """
    labels = np.arange(len(right)) if y is None else np.asarray(y)[: len(right)]
    order = np.argsort(-right.std(axis=1), kind="stable")
    _, first = np.unique(labels[order], return_index=True)  # of each class
    best: list[int] = order[np.sort(first)[:N_QUERIES]].tolist()
    return best


def _search(codes: Arrays, bits: int) -> Numbers:
    index = HammingIndex(bits)
    index.add(codes["base"])
    return index.search(codes["query"][:N_CONSIDERED_QUERIES], N_RETRIEVED)[1]


def _right(data: Dataset, rows: Numbers) -> NDArray[np.bool_]:
    truth, labels = np.asarray(data.query.y), np.asarray(data.base.y)
    same: NDArray[np.bool_] = labels[rows] == truth[: len(rows), None]
    return same


def strip(label: str, pictures: MaybeArray, rows: Numbers, right: Sequence[bool]) -> Strip:
    """The pictures of these rows, side by side."""
    images = np.asarray(pictures[rows])
    brightest = int(images.max(initial=1))
    if brightest <= 16:  # the digits of scikit-learn
        images = (images.astype(np.uint16) * 255 // 16).astype(np.uint8)
    return Strip(label, np.concatenate(list(images), axis=1), right)
