"""A group: methods under one setting, which a panel of a figure compares.

A group says what has to be trained and, once that is done, gives one record for each method,
hash function, number of bits and seed. MACcut and MACquad are `auxhash.paper`'s. The two-step
methods need no training of their own: their codes are those that MAC started from, from the same
seed, the same pairs and the same points.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from auxhash.experiments import runs
from auxhash.experiments.cells import Cells, Configuration, Facts
from auxhash.experiments.entries import OURS, known
from auxhash.experiments.scales import Data
from auxhash.learn import paper
from auxhash.learn.hasher import Hasher
from auxhash.mac import hashfunctions
from auxhash.mac.affinity import Affinity
from auxhash.mac.loop import HStep, Returned
from auxhash.mac.presets import ORDER, Order
from auxhash.model.encoding import Arrays
from auxhash.search import metrics

TWO_STEP_OF = {"cut": "MACcut", "quad": "MACquad"}
SEARCHED_MU = "MACcut, mu found"  # with mu_1 by search, in place of the paper's
PAPERS = ("MACcut", "MACquad", SEARCHED_MU)
WITH_KINDS = (*OURS, *PAPERS, "KSH")  # methods that can have several hash functions
MANY_CENTRES, LIBSVM = "many centres", "LIBSVM"  # hash functions, beside "linear" and "rbf"
CENTRES_FACTOR = 4  # on the number of centres of "rbf"
RANKS = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
BASE_PER_RANK = 5  # ranks go up to 1/5 of the base: beyond, every method retrieves by chance


@dataclass(frozen=True)
class PlannedRun:
    """One cell: a method trained on a data set with a seed."""

    method: str
    hash_function: str  # of WITH_KINDS; "" for a method with a fixed hash function
    n_bits: int
    seed: int
    data: Data
    loss: str
    pairs: tuple[int, int]
    mu: float  # factor on mu_1
    order: Order  # of the blocks of cut
    h_step: HStep
    iterate: Returned

    def __str__(self) -> str:
        kind = f", {self.loss}, {self.hash_function}" if self.hash_function else ""
        of = f"{self.data.name}{', cosine' if self.data.cosine else ''}"
        return f"{self.method}{kind}, {self.n_bits} bits, seed {self.seed}, {of}"

    def hasher(self) -> Hasher:
        settings: dict[str, object] = {
            "random_state": self.seed,
            "loss": self.loss,
            "n_similar": self.pairs[0],
            "n_dissimilar": self.pairs[1],
            "n_jobs": None,
        }
        if self.hash_function:
            settings["hash_function"] = self._hash_function()
        if self.method in PAPERS:
            return self._papers(settings)
        return runs.prepared(known(self.method), self.n_bits, **settings)

    def _papers(self, settings: dict[str, object]) -> Hasher:
        """MACcut or MACquad, with mu_1 in proportion to the pairs of a point."""
        quad = self.method == "MACquad"
        papers = paper.macquad() if quad else paper.maccut(order=self.order)
        mu = "auto" if self.method == SEARCHED_MU else self.mu * float(papers.mu)
        settings |= {"mu": mu, "h_step": self.h_step, "iterate": self.iterate}
        return runs.prepared(papers, self.n_bits, **settings)

    def _hash_function(self) -> object:
        """The hash function of that name, for the parameter of a method."""
        if self.hash_function == MANY_CENTRES:
            usual = hashfunctions.RadialBasis().n_centers
            return hashfunctions.rbf(n_centers=CENTRES_FACTOR * usual)
        if self.hash_function == LIBSVM:
            return _libsvm(self.data)
        return self.hash_function

    def configuration(self) -> Configuration:
        return runs.configuration(_mark(self.data), self.hasher(), self.pairs, self.seed)

    def run(self) -> tuple[Facts, Arrays]:
        data = self.data.load()
        return runs.train(self.hasher(), data, drawn(self.data, self.pairs, self.seed))


@dataclass(frozen=True)
class Record:
    """Measurements of one method with one seed: all that a claim looks at."""

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
    history: list[Facts] = field(default_factory=list)  # MAC's steps, as `mac.Step`
    seconds: float = float("nan")  # of training
    points: int = 0  # trained on
    all_radii: bool = True  # whether `radius` has every radius, 0 to b
    iterate: Returned = "last"  # which MAC returned

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """Identity of a measurement: once in each figure."""
        return self.group, self.method, self.hash_function, self.bits, self.seed


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
    order: Order = ORDER
    h_step: HStep = "plain"
    iterate: Returned = "last"
    hash_functions: tuple[str, ...] = ("linear",)

    def trainings(self) -> list[PlannedRun]:
        """The runs to train, each once."""
        return list(dict.fromkeys(training for _, training in self.members()))

    def records(self, cells: Cells) -> list[Record]:
        """Records of the runs that have been trained."""
        members = [pair for pair in self.members() if pair[1].configuration() in cells]
        return [self._record(method, training, cells) for method, training in members]

    def without(self, records: Iterable[Record]) -> list[PlannedRun]:
        """The runs that some method has no record of."""
        known = {record.key for record in records}
        return [
            run
            for method, run in self.members()
            if (self.name, method, run.hash_function, run.n_bits, run.seed) not in known
        ]

    def facts(self, cells: Cells) -> list[Facts]:
        """The facts of every run that has been trained."""
        return [
            cells.read(training.configuration())[0]
            for training in self.trainings()
            if training.configuration() in cells
        ]

    def codes(self, method: str, bits: int, cells: Cells) -> Arrays | None:
        """Codes of a method with its first hash function and seed 0, or None if not trained."""
        for name, training in self.members():
            at = name, training.n_bits, training.seed
            if at == (method, bits, 0) and training.configuration() in cells:
                return _codes(name, cells.read(training.configuration())[1])
        return None

    def members(self) -> Iterator[tuple[str, PlannedRun]]:
        """Yield every method with the run that its codes come from."""
        for method in self.methods:
            trained = TWO_STEP_OF.get(method, method)
            kinds = self.hash_functions if trained in WITH_KINDS else ("",)
            seeds = self.seeds_quad if "quad" in trained else self.seeds
            for kind in kinds:
                for b in self.bits:
                    for seed in range(min(seeds, self.seeds)):
                        yield method, self._training(trained, kind, b, seed)

    def _training(self, method: str, kind: str, bits: int, seed: int) -> PlannedRun:
        of_data = self.data, self.loss, self.pairs
        return PlannedRun(
            method, kind, bits, seed, *of_data,
            self.mu, self.order, self.h_step, self.iterate,
        )  # fmt: skip

    def _record(self, method: str, training: PlannedRun, cells: Cells) -> Record:
        facts, arrays = cells.read(training.configuration())
        codes = _codes(method, arrays)
        data, b = self.data.judged(), training.n_bits
        ranks = [k for k in RANKS if k <= len(data.base) // BASE_PER_RANK]
        scores = runs.measure(codes, b, data, ranks)
        pairs = drawn(self.data, self.pairs, training.seed)
        history = facts["history"]
        if len(history) > 1:
            start = runs.training_loss(_two_step_codes(arrays), b, pairs, self.loss)
            history = _scaled(history, start / history[0]["loss"])
        return Record(
            self.name,
            method,
            training.hash_function,
            b,
            training.seed,
            runs.training_loss(codes, b, pairs, self.loss),
            dict(zip(scores.k.tolist(), scores.precision.tolist(), strict=True)),
            list(zip(scores.radius_recall.tolist(), scores.radius_precision.tolist(), strict=True)),
            scores.mean_average_precision,
            {name: metrics.code_utilization(codes[name]) for name in ("base", "query")},
            history,
            facts["history"][0]["seconds"] if method in TWO_STEP_OF else facts["seconds"],
            len(data.train),
            iterate=training.iterate,
        )


@lru_cache(maxsize=2)
def _libsvm(data: Data) -> object:
    """A kernel SVM of LIBSVM for each bit, with the cost and the bandwidth of "rbf"."""
    from sklearn.svm import SVC

    width = hashfunctions.RadialBasis().fit(data.load().train.X, np.random.default_rng(0)).sigma
    return SVC(C=hashfunctions.rbf().C, kernel="rbf", gamma=1 / (2 * width**2))


def _scaled(history: list[Facts], ratio: float) -> list[Facts]:
    """The steps with their losses over all training pairs.

    MAC measures them without the pairs of the points held out for validation; the two-step
    solution, measured over both, gives the ratio.
    """
    names = ("loss", "free_loss", "penalized_loss")
    return [step | {name: step[name] * ratio for name in names} for step in history]


def _codes(method: str, arrays: Arrays) -> Arrays:
    return _two_step_codes(arrays) if method in TWO_STEP_OF else arrays


def _two_step_codes(arrays: Arrays) -> Arrays:
    return {name: arrays[runs.TWO_STEP + name] for name in runs.PARTS}


@lru_cache(maxsize=8)
def _mark(data: Data) -> str:
    return runs.data_identity(data.load())


@lru_cache(maxsize=4)
def drawn(data: Data, pairs: tuple[int, int], seed: int) -> Affinity:
    """The pairs of a seed, drawn once."""
    return runs.draw_pairs(data.load(), pairs, seed)
