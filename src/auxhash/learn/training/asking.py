"""One run of training for queries of their own, for codes that stay as they are.

    queries, relevant rows, codes -> gradient steps of the query's side (`smooth.tables`)
                                  -> the parameters with which held-out queries found most

The steps are a generator, as MAC's are: checkpoints, the progress bar and Ctrl-C consume it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from auxhash.codes import Packed
from auxhash.compute import clock, threads, underway
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.compute.checks import integer, number
from auxhash.compute.device import CPU, Device
from auxhash.compute.registry import register
from auxhash.learn.relevance import Relevance
from auxhash.learn.smooth.similar import Relevant
from auxhash.learn.smooth.tables import (
    N_VALUES,
    Asker,
    FixedCodes,
    QueryRank,
    Rivals,
    codebook_of_bits,
)
from auxhash.learn.training.checkpoint import Checkpoint, RunIdentity
from auxhash.learn.training.progress import drive
from auxhash.mac.hashfunctions import NetworkHash, SVMHash
from auxhash.search.index import HammingIndex

N_REPORTS = 20  # times that held-out queries are asked, and that a run can be stopped or go on
MAX_REPORTS_IN_VAIN = 4  # reports in vain, after which it stops
RANKS = (1, 10, 100)  # first hits among which the relevant rows of held-out queries are counted
RATE = 0.001  # length of the first steps; with 0.005, the first place is lost for the tenth
BATCH_SIZE, SAMPLE_SIZE = 512, 2048  # queries and codes per step
N_RIVALS = 32  # codes near to a relevant one that it is to be told from


@register("AskerStep")
@dataclass(frozen=True)
class AskerStep:
    """Report after some gradient steps."""

    step: int  # gradient steps made so far
    recall: tuple[float, ...]  # share of held-out queries' rows among the first 1, 10 and 100
    seconds: float  # since the last such report; NaN in a model that was loaded

    def check_read(self) -> None:
        integer("step", self.step, 0)
        for share in self.recall:
            number("recall", share, 0)
        if not isinstance(self.seconds, (int, float)):
            raise ValueError(f"seconds must be a number, got {self.seconds!r}")


@register("AskerCheckpoint")
@dataclass(frozen=True)
class AskerSaved:
    """The content of a checkpoint: the state of the query's side, and its best parameters."""

    run: RunIdentity
    generators: list[np.random.Generator]  # one per part, as the run began
    rng: np.random.Generator
    history: list[AskerStep]
    state: list[Single]
    best: list[Single]


@dataclass(frozen=True)
class AskerSettings:
    """Settings of a run. The estimator has checked every field."""

    n_bits: int
    n_steps: int
    device: Device = CPU
    verbose: int = 0
    batch: int = BATCH_SIZE
    sample: int = SAMPLE_SIZE


class AskerResult(NamedTuple):
    """The result of a run: the outputs of the code come first, then those of the vector."""

    h: SVMHash | NetworkHash
    codebook: Single
    history: list[AskerStep]
    interrupted: bool


class AskerTraining:
    """A run that is ready to start: its queries are split, and its function is prepared."""

    def __init__(
        self,
        settings: AskerSettings,
        h: SVMHash | NetworkHash,
        Q: AnyArray,
        relevance: Relevance,
        packed: Packed,
        held_out: Numbers,
        rng: np.random.Generator,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.settings, self.h, self.rng, self.checkpoint = settings, h, rng, checkpoint
        self.relevance, self.packed, self.held_out = relevance, packed, held_out
        b, device = settings.n_bits, settings.device
        learnt = np.setdiff1d(np.arange(len(Q)), held_out)
        starts, rows, weights = relevance.only(learnt)
        with threads.pool():
            smooth = device.carry(h).smooth(device.put(h.features(Q)), rng)
        assert h.W is not None
        self.asker = Asker(smooth, codebook_of_bits(b, h.W.shape[1] - b, rng))
        known = Relevant(starts, rows, len(packed), weights)
        self.rank = QueryRank(
            rivals_of(np.unique(rows), packed),
            *(known, self.asker, settings.n_steps, RATE, settings.batch, settings.sample, (b,)),
        )
        self.steps = FixedCodes(self.rank, device.put(packed))
        self.best: list[Single] = []
        if checkpoint is not None:
            checkpoint.check(h)

    def run(self) -> AskerResult:
        """Make all steps, or those until Ctrl-C or until they gain nothing."""
        saved = None if self.checkpoint is None else self.checkpoint.saved
        history: list[AskerStep] = [] if saved is None else list(saved.history)
        if saved is not None:
            self.rank.restore(saved.state)
            self.best = saved.best
            self.rng.bit_generator.state = saved.rng.bit_generator.state
        steps = self._checkpointed(self._steps(history), history)
        pressed = drive(steps, self.settings.n_steps, N_REPORTS, _describe, self.settings.verbose)
        fetch = self.asker.device.fetch
        if self.best:
            _, *means = self.asker.adam.state()
            self.asker.adam.restore(self.best, *means)
        weights: list[Array] = [fetch(each) for each in self.asker.smooth.weights()]
        return AskerResult(self.h.moved(weights), fetch(self.asker.codebook), history, pressed)

    def _steps(self, history: list[AskerStep]) -> Iterator[AskerStep]:
        """The reports that are still to come, each of them in the history."""
        n_steps = self.settings.n_steps
        ends = np.unique(np.linspace(0, n_steps, N_REPORTS + 1).astype(int)).tolist()
        if not history:
            with threads.pool() as run:
                self._note(history, 0, clock.seconds(), run)
            yield history[-1]
        for start, stop in pairwise(ends):
            if start < history[-1].step or _in_vain(history) >= MAX_REPORTS_IN_VAIN:
                continue
            began = clock.seconds()
            self.steps.begin(self.rng)
            with threads.pool() as run, self.settings.device.rough():
                for t in underway.each("gradient steps", range(start, stop)):
                    self.steps.move(t, run)
                self._note(history, stop, began, run)
            yield history[-1]

    def _note(self, history: list[AskerStep], step: int, began: float, run: threads.Run) -> None:
        """Add a report, and keep the parameters if they are the best so far."""
        shares = self._recall(run) if len(self.held_out) else ()
        history.append(AskerStep(step, shares, clock.seconds() - began))
        if shares and not _in_vain(history):
            self.best = [each.copy() for each in self.asker.adam.state()[0]]  # steps change them

    def _recall(self, run: threads.Run) -> tuple[float, ...]:
        b, fetch = self.settings.n_bits, self.asker.device.fetch
        vectors = fetch(self.asker.smooth.outputs(self.held_out, run))[:, b:]
        tables = -vectors @ fetch(self.asker.codebook).T
        tables = tables.reshape(len(vectors), -1, N_VALUES)
        return tuple(recall(tables, self.relevance, self.held_out, self.packed, RANKS))

    def _checkpointed(
        self, steps: Iterator[AskerStep], history: list[AskerStep]
    ) -> Iterator[AskerStep]:
        """Pass the steps on once they are on disk, if there is a checkpoint."""
        for step in steps:
            if (checkpoint := self.checkpoint) is not None:
                began = checkpoint.run, checkpoint.began, self.rng
                checkpoint.write(AskerSaved(*began, history, self.rank.state(), self.best))
            yield step


def rivals_of(rows: Numbers, packed: Packed) -> Rivals:
    """Return the codes nearest to those of these rows, by Hamming distance."""
    index = HammingIndex(8 * packed.shape[1]).add(packed)
    return Rivals(rows, index.search(packed[rows], min(N_RIVALS + 1, len(packed)))[1])


def recall(
    tables: Single, relevance: Relevance, queries: Numbers, packed: Packed, ranks: Sequence[int]
) -> list[float]:
    """Return the share of the queries' relevant rows among the first hits, the mean over them."""
    index, k = HammingIndex(8 * packed.shape[1]).add(packed), min(max(ranks), len(packed))
    hits = index.search_tables(np.ascontiguousarray(tables, np.float32), k)[1]
    return relevance.recall(queries, hits, ranks)


def _in_vain(history: list[AskerStep]) -> int:
    """Return how many reports came after the best, by the mean share, the last of equal ones."""
    shares = [sum(step.recall) for step in history if step.recall]
    return shares[::-1].index(max(shares)) if shares else 0


def _describe(step: AskerStep) -> str:
    if not step.recall:
        return ""
    shares = " / ".join(f"{share:.3f}" for share in step.recall)
    return f"{shares} of relevant rows among the first {' / '.join(map(str, RANKS))}"
