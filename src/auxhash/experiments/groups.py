"""A group: methods under one setting, which a panel of a figure compares.

A group says what has to be trained and, once that is done, gives one record for each method,
hash function, number of bits and seed. The two-step methods need no training of their own: their
codes are those that MAC started from, from the same seed and the same pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from auxhash import metrics
from auxhash.affinity import Affinity
from auxhash.experiments import runs
from auxhash.experiments.cells import Cells
from auxhash.experiments.entries import OURS, known
from auxhash.experiments.runs import Facts
from auxhash.experiments.scales import Data
from auxhash.hasher import Hasher
from auxhash.storage.encoding import Arrays

TWO_STEP_OF = {"cut": "MACcut", "quad": "MACquad"}
RANKS = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
DEEPEST = 5  # ranks go up to 1/5 of the base: beyond, every method retrieves by chance


@dataclass(frozen=True)
class PlannedRun:
    """One cell: a method trained on a data set with a seed."""

    method: str
    hash_function: str  # of our methods and KSH; "" for a method that has its own
    n_bits: int
    seed: int
    data: Data
    loss: str
    pairs: tuple[int, int]
    mu: float  # factor on mu_1
    n_jobs: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        kind = f", {self.loss}, {self.hash_function}" if self.hash_function else ""
        of = f"{self.data.name}{', cosine' if self.data.cosine else ''}"
        return f"{self.method}{kind}, {self.n_bits} bits, seed {self.seed}, {of}"

    def hasher(self) -> Hasher:
        settings: dict[str, Any] = {
            "random_state": self.seed,
            "loss": self.loss,
            "n_similar": self.pairs[0],
            "n_dissimilar": self.pairs[1],
            "n_jobs": self.n_jobs,
        }
        hasher = runs.prepared(known(self.method), self.n_bits, **settings)
        if self.hash_function:
            hasher.set_params(hash_function=self.hash_function)
        first = hasher.get_params(deep=False).get("mu", "auto")
        if self.method in OURS and first != "auto":
            hasher.set_params(mu=self.mu * first)
        return hasher

    def configuration(self) -> dict[str, Any]:
        return runs.configuration(_mark(self.data), self.hasher(), self.pairs, self.seed)

    def run(self) -> tuple[Facts, Arrays]:
        data = self.data.load()
        return runs.train(self.hasher(), data, drawn(self.data, self.pairs, self.seed, self.n_jobs))


@dataclass(frozen=True)
class Record:
    """What was measured of one method with one seed: all that a claim looks at."""

    group: str
    method: str
    hash_function: str
    bits: int
    seed: int
    loss: float = float("nan")  # L(h) on the training pairs
    precision: dict[int, float] = field(default_factory=dict)  # at k
    radius: list[tuple[float, float]] = field(default_factory=list)  # (recall, precision) at r
    average_precision: float = float("nan")  # mAP over the whole base
    effective: dict[str, float] = field(default_factory=dict)  # bits, of base and query
    history: list[dict[str, Any]] = field(default_factory=list)  # MAC's steps, as `mac.Step`
    seconds: float = float("nan")  # of training
    points: int = 0  # trained on


@dataclass(frozen=True)
class Group:
    """Methods trained on the same points; those that learn from pairs get the same pairs."""

    name: str
    data: Data
    loss: str
    pairs: tuple[int, int]
    bits: tuple[int, ...]
    methods: tuple[str, ...]
    mu: float
    seeds: int
    seeds_quad: int
    hash_functions: tuple[str, ...] = ("linear",)
    n_jobs: int | None = None

    def trainings(self) -> list[PlannedRun]:
        """The runs to train, each once."""
        return list(dict.fromkeys(training for _, training in self._members()))

    def records(self, cells: Cells) -> list[Record]:
        """What was measured, of the runs that have been trained."""
        members = [pair for pair in self._members() if pair[1].configuration() in cells]
        return [self._record(method, training, cells) for method, training in members]

    def facts(self, cells: Cells) -> list[Facts]:
        """The facts of every run that has been trained."""
        return [
            cells.read(training.configuration())[0]
            for training in self.trainings()
            if training.configuration() in cells
        ]

    def codes(self, method: str, bits: int, cells: Cells) -> Arrays | None:
        """Codes of a method with its first hash function and seed 0, or None if not trained."""
        for name, training in self._members():
            at = name, training.n_bits, training.seed
            if at == (method, bits, 0) and training.configuration() in cells:
                return _codes(name, cells.read(training.configuration())[1])
        return None

    def _members(self) -> Iterator[tuple[str, PlannedRun]]:
        for method in self.methods:
            trained = TWO_STEP_OF.get(method, method)
            kinds = self.hash_functions if trained in (*OURS, "KSH") else ("",)
            seeds = self.seeds_quad if "quad" in trained else self.seeds
            for kind in kinds:
                for b in self.bits:
                    for seed in range(min(seeds, self.seeds)):
                        yield method, self._training(trained, kind, b, seed)

    def _training(self, method: str, kind: str, bits: int, seed: int) -> PlannedRun:
        return PlannedRun(
            method, kind, bits, seed, self.data, self.loss, self.pairs, self.mu, self.n_jobs
        )

    def _record(self, method: str, training: PlannedRun, cells: Cells) -> Record:
        facts, arrays = cells.read(training.configuration())
        codes = _codes(method, arrays)
        data, b = self.data.judged(self.n_jobs), training.n_bits
        ranks = [k for k in RANKS if k <= len(data.base) // DEEPEST]
        found = runs.measure(codes, b, data, ranks, self.n_jobs)
        pairs = drawn(self.data, self.pairs, training.seed, self.n_jobs)
        return Record(
            self.name,
            method,
            training.hash_function,
            b,
            training.seed,
            runs.training_loss(codes, b, pairs, self.loss),
            dict(zip(found.k.tolist(), found.precision.tolist(), strict=True)),
            list(zip(found.radius_recall.tolist(), found.radius_precision.tolist(), strict=True)),
            found.mean_average_precision,
            {name: metrics.code_utilization(codes[name]) for name in ("base", "query")},
            facts["history"],
            facts["history"][0]["seconds"] if method in TWO_STEP_OF else facts["seconds"],
            len(data.train),
        )


def _codes(method: str, arrays: Arrays) -> Arrays:
    if method not in TWO_STEP_OF:
        return arrays
    return {name: arrays[runs.TWO_STEP + name] for name in runs.PARTS}


@lru_cache(maxsize=8)
def _mark(data: Data) -> str:
    return runs.data_identity(data.load())


@lru_cache(maxsize=4)
def drawn(data: Data, pairs: tuple[int, int], seed: int, n_jobs: int | None) -> Affinity:
    """The pairs of a seed, drawn once."""
    return runs.draw_pairs(data.load(), pairs, seed, n_jobs)
