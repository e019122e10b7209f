"""Vectors that a model gives texts or pictures, computed once and kept in the cache.

The file of a run that was interrupted, at whatever moment, holds the rows so far: the next run
appends the others. Texts are put into data sets here, too.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray
from auxhash.compute.bars import bar_of
from auxhash.compute.extras import install
from auxhash.experiments.datasets import minilm
from auxhash.experiments.datasets.dataset import (
    Dataset,
    Points,
    describe,
    ground_truth,
    split,
    stream,
    within,
)
from auxhash.experiments.datasets.fetch import cache
from auxhash.files.writing import locked

if TYPE_CHECKING:
    import torch

ROWS_PER_BLOCK = 128  # embedded, then appended: an interrupted run loses no more
SMALL_ROWS = 5_000  # of a small form
VERSION = "v1"  # raise it when the numbers change

Embed = Callable[[slice], NDArray[np.float32]]


def check_installed() -> None:
    """Raise ImportError, with the remedy, where a package that computes vectors is missing."""
    try:
        import tokenizers  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"vectors are computed by PyTorch and tokenizers ({error}): {install('embeddings')}"
        ) from error


def best_device() -> "torch.device":
    """PyTorch's device: a GPU where there is one, else the processor."""
    import torch

    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    return torch.device("cpu")


def vectors(path: Path, n: int, width: int, prepare: "Callable[[torch.device], Embed]") -> AnyArray:
    """The vectors (n, width), float32, memory-mapped from `path`; computed first if missing.

    `prepare(device)` returns what computes the vectors of a slice of rows. Of several processes one
    computes, and the others wait for it.
    """
    if not path.exists():
        check_installed()
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_name(path.name + ".lock"), wait=True):
            if not path.exists():  # still, after waiting
                device = best_device()
                part = path.with_name(path.name + ".part")
                with part.open("r+b" if part.exists() else "w+b") as out:
                    _fill(out, n, width, prepare(device), f"{path.parent.name} on {device}")
                    os.fsync(out.fileno())
                part.replace(path)
    return cache.stored(path)


def _fill(out: IO[bytes], n: int, width: int, embed: Embed, text: str) -> None:
    """Complete a .npy file whose last rows may be missing, or the last of them be cut."""
    np.lib.format.write_array_header_1_0(  # the same bytes each time
        out, {"descr": "<f4", "fortran_order": False, "shape": (n, width)}
    )
    start, row_bytes = out.tell(), 4 * width
    done = max(0, (out.seek(0, os.SEEK_END) - start) // row_bytes)
    out.truncate(start + done * row_bytes)
    out.seek(0, os.SEEK_END)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with bar_of(None, *columns, TimeRemainingColumn()) as bar:
        task = bar.add_task(text, total=n - done)
        for number, row in enumerate(range(done, n, ROWS_PER_BLOCK)):
            begun = time.perf_counter()
            rows = slice(row, min(row + ROWS_PER_BLOCK, n))
            out.write(np.ascontiguousarray(embed(rows), "<f4").tobytes())
            out.flush()
            bar.update(task, completed=rows.stop - done)
            if number == 1:  # the first takes longer
                seconds = (time.perf_counter() - begun) * (n - rows.stop) / ROWS_PER_BLOCK
                print(
                    f"{text}: {n - rows.stop:,} rows left, about {_duration(seconds)}. It may be "
                    "interrupted: run again, it goes on from there.",
                    file=sys.stderr,
                    flush=True,
                )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@dataclass(frozen=True)
class Passage:
    """A text to be found, a name to show for it, and short texts that ask for it."""

    name: str
    text: str
    questions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Texts:
    """Passages, the checksum of their file, and what they are, in words."""

    passages: Sequence[Passage]
    checksum: str
    about: str


def loaders(
    name: str, read: Callable[[], Texts]
) -> tuple[Callable[..., Dataset], Callable[..., Dataset]]:
    """The loaders of a data set of texts in MiniLM's vectors, and of its small form.

    The small form is 5,000 passages, drawn at random once for all, of which 500 are queries.
    """

    def load(
        n_train: int | None = None,
        n_base: int | None = None,
        n_query: int = 2_000,
        seed: int = 0,
        n_neighbors: int = 100,
    ) -> Dataset:
        return _in_minilm(name, read(), None, (n_train, n_base, n_query), seed, n_neighbors)

    def load_small(
        n_train: int | None = None,
        n_base: int | None = None,
        n_query: int = 500,
        seed: int = 0,
        n_neighbors: int = 100,
    ) -> Dataset:
        sizes = n_train, n_base, n_query
        return _in_minilm(f"{name}-small", read(), SMALL_ROWS, sizes, seed, n_neighbors)

    return load, load_small


def _in_minilm(
    name: str,
    texts: Texts,
    n_passages: int | None,
    sizes: tuple[int | None, int | None, int],
    seed: int,
    n_neighbors: int,
) -> Dataset:
    """Passages as base and queries, so many of them or all, and questions as `pairs`.

    `sizes` are those of train, base and query. The ground truth is the n_neighbors nearest base
    points of each query; 0 leaves it out.
    """
    n_neighbors = checks.integer("n_neighbors", n_neighbors, 0)
    passages = texts.passages
    askers = Counter(question for passage in passages for question in passage.questions)
    # Any block takes as long as another; the small form begins as the large one does.
    order = stream(0, name.removesuffix("-small")).permutation(len(passages))
    passages = [passages[row] for row in order[:n_passages]]
    n = len(passages)
    train, base, query = split(n, *sizes, seed)
    asked = [  # a question that several passages answer has no one answer
        (question, row)
        for row, passage in enumerate(passages)
        for question in passage.questions
        if askers[question] == 1
    ]
    written = checks.objects([passage.text for passage in passages])
    questions = checks.objects([question for question, _ in asked])
    X, Q = (
        _embedded(cache.folder() / name / f"{kind}-{VERSION}-{texts.checksum[:12]}.npy", part)
        for kind, part in (("passages", written), ("questions", questions))
    )
    everything = Points(
        X, texts=written, names=checks.objects([passage.name for passage in passages])
    )
    learnt, searched, queries = (everything.take(rows) for rows in (train, base, query))
    truth = ground_truth(searched.X, queries.X, n_neighbors) if n_neighbors else None
    queries = replace(queries, neighbors=truth)
    place = np.full(n, -1)
    place[base] = np.arange(len(base))
    answer = place[[row for _, row in asked]]
    pairs = Points(
        Q[answer >= 0], texts=questions[answer >= 0], neighbors=answer[answer >= 0, None]
    )
    protocol = describe(
        name, texts.about, learnt, searched, queries, within(learnt, searched), seed
    )
    protocol += (
        f" Pairs: {len(pairs)} questions, each with the base point that answers it. Vectors of "
        "length 1 by all-MiniLM-L6-v2 (Apache 2.0)."
    )
    return Dataset(name, learnt, searched, queries, protocol, pairs)


def _embedded(path: Path, texts: NDArray[np.object_]) -> AnyArray:
    def prepare(device: "torch.device") -> Embed:
        model = minilm.MiniLM(minilm.MODEL.obtain(), device)
        return lambda rows: model(list(texts[rows]))

    return vectors(path, len(texts), minilm.DIMENSION, prepare)
