"""Settings in which MAC's gain over two-step hashing is large, and the first codes that cut makes.

python -m benchmarks setting --train 10000 --bits 16 32 48 --functions linear rbf --seeds 0 1 2
                             [--apart | --ways NAME ...] [--results FILE] [--sweeps N] [--tables]

CIFAR's GIST features, ksh, mu from 0.3 times 1.4, two sweeps per Z step, no validation set and no
refinement. A way is a way of making the codes of mu = 0 from which MAC goes on. What was measured
stands in a file of JSON lines, docs/results/setting.jsonl, and is not measured again: a run that
was stopped goes on. `--sweeps N` only makes the codes of mu = 0, by N sweeps in either order, and
writes what each sweep led to into setting-sweeps.jsonl beside it. `--tables` writes
docs/tables/setting.md and three beside it out of the first file, and measures nothing.
"""

import argparse
import copy
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from auxhash.codes import Codes, pack, sign
from auxhash.compute import context, threads
from auxhash.compute.random import generator
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset, Points
from auxhash.learn.training import Settings, Training
from auxhash.learn.training.run import N_GENERATORS
from auxhash.learn.training.validation import TrainingPoints
from auxhash.mac import affinity, hashfunctions
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.hashfunctions.step import POINTS_PER_CHUNK
from auxhash.mac.loop import MAC, State, Step, lowest
from auxhash.mac.presets import ALPHA, FIRST_MU_CUT, FIRST_MU_QUAD, MAX_SWEEPS, QUAD, C
from auxhash.mac.zstep import Cut, Penalty, Problem, z_step
from auxhash.search import metrics
from benchmarks import peers
from benchmarks.records import RESULTS, Record, append, known, markdown, read, write_tables

FILE = RESULTS / "setting.jsonl"
BITS, FUNCTIONS, KAPPA = (16, 32, 48), ("linear", "rbf"), (100, 500)
RANKS = (100, 2000)
MAX_ITER = 100
COLUMNS = {"function": "hash function", "bits": "bits", "seed": "seed"}
BOTH = ("two_step", "mac")  # parts of a record that are compared
TRIAL_POINTS = 2_000  # of the trials that take the matter apart

Order = Literal["fixed", "random"]
ORDERS: tuple[Order, ...] = ("fixed", "random")
Steps = list[tuple[Step, State]]


@dataclass
class Cell:
    """The training of one number of bits, one hash function and one seed, for every way."""

    data: Dataset
    pairs: Affinity
    bits: int
    function: str
    seed: int

    def __post_init__(self) -> None:
        algorithm = MAC(Cut())
        h = hashfunctions.get(self.function, C)
        settings = Settings(self.bits, "ksh", algorithm, h)
        points = TrainingPoints(self.data.train.X, self.data.train.y, self.pairs)
        self.training = Training(settings, points, generator(self.seed).spawn(N_GENERATORS))
        self.ends: dict[Order, Codes] = {}

    @property
    def rng(self) -> np.random.Generator:
        """A generator of the solver's draws, the same for every way."""
        return copy.deepcopy(self.training.solving)

    @property
    def classes(self) -> NDArray[np.int64]:
        """The class of each training point, numbered from 0."""
        return np.unique(self.data.train.y, return_inverse=True)[1]

    def mac(self, algorithm: MAC, codes: Codes | None = None) -> Steps:
        """All steps of MAC: from these codes, or from free codes that it makes itself."""
        own = self.training
        Z = own.Z if codes is None else codes
        return list(algorithm.steps(own.problem, own.F, own.h, Z, self.rng, codes is None))

    def free(self, order: Order, Z: Codes | None = None, sweeps: int = MAX_SWEEPS) -> Codes:
        """The codes of mu = 0, by so many sweeps from Z, or from random codes."""
        Z = self.training.Z if Z is None else Z
        return _free(self.training.problem, Z, order, sweeps, self.rng)

    def fewer(self, bits: int) -> Codes:
        """Codes of mu = 0 of so many bits, from random codes and by blocks in random order."""
        problem = Problem(self.pairs, "ksh", bits)
        return _free(problem, self.training.Z[:, :bits], "random", MAX_SWEEPS, self.rng)

    def end(self, order: Order) -> Codes:
        """h(X) where MAC ends, blocks always in this order."""
        if order not in self.ends:
            self.ends[order] = self.mac(maccut(order))[-1][1].H
        return self.ends[order]


def _free(problem: Problem, Z: Codes, order: Order, sweeps: int, rng: np.random.Generator) -> Codes:
    return z_step(problem, Z, Penalty(Z, 0.0), Cut(order), sweeps, rng).Z


def maccut(
    order: Order, start: Any = "random", mu: float = FIRST_MU_CUT, alpha: float = ALPHA
) -> MAC:
    return MAC(Cut(order), mu, alpha, MAX_ITER, MAX_SWEEPS, start=start)


def exchanged(cell: Cell) -> Codes:
    """The fixed order's codes, each bit with the classes exchanged at random.

    Every bit still splits the classes into parts of the same sizes, but no two are alike.
    """
    rng, classes = np.random.default_rng(cell.seed), cell.classes
    split = sign(by_class(cell.free("fixed"), classes))
    return np.stack([rng.permutation(bit)[classes] for bit in split.T], axis=1)


def renumbered(cell: Cell) -> Codes:
    """The codes of mu = 0 with blocks in a fixed order, but another one than that of the names."""
    pairs = cell.pairs
    assert pairs.groups is not None
    order = np.random.default_rng(cell.seed).permutation(pairs.groups.max() + 1)
    problem = Problem(pairs.grouped(order[pairs.groups]), "ksh", cell.bits)
    return _free(problem, cell.training.Z, "fixed", MAX_SWEEPS, cell.rng)


def opposed(cell: Cell, couples: Sequence[tuple[int, int]]) -> Codes:
    """Random codes of the classes in which the two of each couple are opposite in every bit."""
    rng, classes = np.random.default_rng(cell.seed), cell.classes
    split = sign(rng.random((classes.max() + 1, cell.bits)) - 0.5)
    for one, other in couples:
        split[other] = -split[one]
    return split[classes]


def in_turn(n_classes: int) -> list[tuple[int, int]]:
    """The first and second class, the third and fourth, and so on."""
    return [(c, c + 1) for c in range(0, n_classes - 1, 2)]


def coupled(cell: Cell, alike: bool) -> list[tuple[int, int]]:
    """The classes in couples, so that the two are as alike as can be, or as unlike.

    Alike are classes whose means are close, measured by the covariance inside the classes.
    """
    X, classes = np.asarray(cell.data.train.X, np.float64), cell.classes
    means = np.stack([X[classes == c].mean(axis=0) for c in range(classes.max() + 1)])
    within = np.cov(X - means[classes], rowvar=False) + 1e-9 * np.eye(X.shape[1])
    apart = means[:, None] - means[None]
    squared = np.einsum("ijk,ijk->ij", apart, np.linalg.solve(within, apart[..., None])[..., 0])
    return min(
        _couples(range(len(means))),
        key=lambda couples: (1 if alike else -1) * sum(squared[pair] for pair in couples),
    )


def _couples(classes: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to put the classes into couples; of an odd number, the last is left over."""
    if len(classes) < 2:
        yield []
        return
    first, *others = classes
    for other in others:
        for rest in _couples([c for c in others if c != other]):
            yield [(first, other), *rest]


def drawn(cell: Cell) -> Codes:
    """A random code for every class: half of the classes +1 in each bit."""
    rng, classes = np.random.default_rng(cell.seed), cell.classes
    halves = sign(np.arange(classes.max() + 1) % 2 - 0.5)
    return np.stack([rng.permutation(halves)[classes] for _ in range(cell.bits)], axis=1)


def shaken(cell: Cell, share: float) -> Codes:
    """Codes at MAC's end in fixed order, with this share of all bits flipped."""
    end = cell.end("fixed")
    flip = np.random.default_rng(cell.seed).random(end.shape) < share
    return np.where(flip, -end, end).astype(np.int8)


def repeated(times: int) -> "Way":
    """Good codes of fewer bits, each bit so many times."""
    return Way(maccut("random"), lambda cell: np.repeat(cell.fewer(cell.bits // times), times, 1))


@dataclass(frozen=True)
class Way:
    """Settings of MAC, and the codes that it starts from; without, it makes those of mu = 0."""

    algorithm: MAC
    codes: Callable[[Cell], Codes] | None = None


RANDOM, FIXED = maccut("random"), maccut("fixed")
STARTS = {
    "random order": Way(RANDOM),
    "fixed order": Way(FIXED),
    "bit after bit, random order": Way(maccut("random", "bitwise")),
    "bit after bit, fixed order": Way(maccut("fixed", "bitwise")),
    "later bits zero, random order": Way(maccut("random", "zeros")),
    "later bits zero, fixed order": Way(maccut("fixed", "zeros")),
}
QUADS = {
    "quad": Way(MAC(QUAD, FIRST_MU_QUAD, ALPHA, MAX_ITER, MAX_SWEEPS)),
    "quad, later bits zero": Way(
        MAC(QUAD, FIRST_MU_QUAD, ALPHA, MAX_ITER, MAX_SWEEPS, start="zeros")
    ),
}
APART = {
    "codes in fixed order, MAC in random": Way(RANDOM, lambda cell: cell.free("fixed")),
    "codes in random order, MAC in fixed": Way(FIXED, lambda cell: cell.free("random")),
    "fixed order, classes exchanged in every bit": Way(FIXED, exchanged),
    "a random code for every class": Way(FIXED, drawn),
    "fixed order of classes numbered anew": Way(FIXED, renumbered),
    "couples in turn, opposite": Way(
        FIXED, lambda cell: opposed(cell, in_turn(cell.classes.max() + 1))
    ),
    "couples of alike classes, opposite": Way(
        FIXED, lambda cell: opposed(cell, coupled(cell, alike=True))
    ),
    "couples of unlike classes, opposite": Way(
        FIXED, lambda cell: opposed(cell, coupled(cell, alike=False))
    ),
    "each bit twice": repeated(2),
    "each bit 4 times": repeated(4),
    "fixed order, 10 sweeps at mu = 0": Way(FIXED, lambda cell: cell.free("fixed", sweeps=10)),
    "fixed order, mu from 0.003": Way(maccut("fixed", mu=FIRST_MU_CUT / 100)),
    "fixed order, MAC again from its end": Way(FIXED, lambda cell: cell.end("fixed")),
    "the same, 10% of all bits flipped": Way(FIXED, lambda cell: shaken(cell, 0.1)),
    "the same, 30% of all bits flipped": Way(FIXED, lambda cell: shaken(cell, 0.3)),
    "the same, codes of mu = 0 in random order": Way(
        RANDOM, lambda cell: cell.free("random", cell.end("fixed"))
    ),
    "random order, MAC again from its end": Way(RANDOM, lambda cell: cell.end("random")),
}
ALPHAS = {  # the multiplier of mu; the ways without a word about it have 1.4
    f"{order} order, mu times {alpha:g}": Way(maccut(order, alpha=alpha))
    for order in ORDERS
    for alpha in (1.1, 1.2, 2.0, 5.0, 100.0)
}
WAYS = {**STARTS, **QUADS, **APART, **ALPHAS}
MADE = [way for way in APART if not way.startswith("the same") and "again" not in way]
COUPLES = [way for way in APART if way.startswith("couples")]
PICTURED = ("random order", "fixed order")  # the codes of their classes are kept


@context.using(n_jobs=1)
def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, and print all that it has."""
    asked = _options(options)
    if small:
        _run_small()
    elif asked.tables:
        write_tables(tables(read(asked.results)))
    elif asked.sweeps:
        sweep(asked, Console(width=150))
    else:
        measure(asked, Console(width=150))


@threads.one_blas_thread()
def measure(asked: argparse.Namespace, console: Console) -> None:
    """Run what is asked for, one record each, and show the means."""
    done = known(asked.results, _key)
    for seed in asked.seeds:
        data = datasets.load("cifar10-gist", n_train=asked.train, seed=0)
        pairs: Affinity | None = None
        for function in asked.functions:
            for bits in asked.bits:
                cell: Cell | None = None
                for way in asked.ways:
                    setup = {"train": asked.train, "function": function, "bits": bits}
                    record = {**setup, "seed": seed, "way": way}
                    if _key(record) in done:
                        continue
                    if pairs is None:
                        pairs = draw(data, seed)
                    if cell is None:
                        cell = Cell(data, pairs, bits, function, seed)
                    record |= run(cell, way)
                    append(asked.results, record)
                    console.print(_line(record))
    console.print(shown(chosen(read(asked.results), asked.train)))


@threads.one_blas_thread()
def sweep(asked: argparse.Namespace, console: Console) -> None:
    """Follow the free codes of mu = 0, sweep after sweep; the first of all that is asked for."""
    data = datasets.load("cifar10-gist", n_train=asked.train, seed=0)
    bits, function, seed = asked.bits[0], asked.functions[0], asked.seeds[0]
    cell = Cell(data, draw(data, seed), bits, function, seed)
    path = asked.results.with_name("setting-sweeps.jsonl")
    path.unlink(missing_ok=True)
    for order in ORDERS:
        Z, rng = cell.training.Z, cell.rng
        for number in range(1, asked.sweeps + 1):
            Z = _free(cell.training.problem, Z, order, 1, rng)
            setup = {"train": asked.train, "bits": bits, "seed": seed, "order": order}
            loss = cell.training.problem.loss(Z)
            record = {**setup, "sweeps": number, "loss": loss, **likeness(Z, cell.classes)}
            append(path, record)
            console.print(json.dumps(record), soft_wrap=True)


def draw(data: Dataset, seed: int, kappa: tuple[int, int] = KAPPA) -> Affinity:
    """The pairs that MACHash draws with this seed."""
    rng = generator(seed).spawn(N_GENERATORS)[0]
    return affinity.from_labels(data.train.y, *kappa, rng, 1)


def run(cell: Cell, way: str) -> Record:
    """Results of a way: free codes, two-step hashing, MAC at its lowest L(h) and at its end."""
    way_run = WAYS[way]
    codes = way_run.codes and way_run.codes(cell)
    began = process_time()
    steps = cell.mac(way_run.algorithm, codes)
    seconds = process_time() - began
    (first, start), (_, best), (_, last) = steps[0], lowest(steps), steps[-1]
    record = {
        "free": {"loss": first.free_loss, **likeness(start.Z, cell.classes)},
        "two_step": evaluated(cell, start.h, start.H),
        "mac": evaluated(cell, best.h, best.H),
        "last": evaluated(cell, last.h, last.H),
        "path": [
            [float(f"{step.mu:.5g}"), round(step.loss), round(step.free_loss), step.violations]
            for step, _ in steps
        ],
        "cpu_s": round(seconds, 1),
    }
    if way_run.codes is None and way_run.algorithm in (RANDOM, FIXED):
        cell.ends[way_run.algorithm.solver.order] = last.H
    if way in PICTURED and cell.seed == 0:
        codes = {"free": start.Z, "two_step": start.H, "mac": best.H}
        record["classes"] = {
            name: np.rint(100 * by_class(Z, cell.classes)).astype(int).tolist()
            for name, Z in codes.items()
        }
    return record


def evaluated(cell: Cell, h: HashFunction, H: Codes) -> Record:
    """L(h), precision over the base, and how alike the bits are."""
    data, ranks = cell.data, [rank for rank in RANKS if rank <= len(cell.data.base)]
    query, base = (_encoded(h, part.X) for part in (data.query, data.base))
    shares = metrics.precision_at_k(query, base, data.query.y, data.base.y, ranks, 1)
    precision = {
        str(rank): round(float(share), 5) for rank, share in zip(ranks, shares, strict=True)
    }
    loss = cell.training.problem.loss(H)
    return {"loss": loss, "precision": precision, **likeness(H, cell.classes)}


def likeness(Z: Codes, classes: NDArray[np.int64]) -> Record:
    """Measures of how alike the bits are.

    The mean |correlation| of two bits; the effective number of bits; in how many ways the bits
    split the classes, by majority; the fewest bits by which two classes differ, by majority; the
    dimensions that the mean codes of the classes fill (the participation ratio of the squared
    singular values: 1 where all bits are the same, 9 at most for ten classes and balanced bits);
    and the share of the bits in which two classes differ that follow in turn, by majority.
    """
    codes, bits = pack(Z), Z.shape[1]
    correlation = np.abs(metrics.bit_correlation(codes, bits, 1))[~np.eye(bits, dtype=bool)]
    mean = by_class(Z, classes)
    split, power = sign(mean), np.linalg.svd(mean, compute_uv=False) ** 2
    first, second = np.array(in_turn(len(mean))).T
    apart = (split[:, None] != split[None]).sum(axis=2)[np.triu_indices(len(split), 1)]
    return {
        "correlation": round(float(correlation.mean()), 4),
        "effective": round(metrics.code_utilization(codes), 3),
        "splits": len(np.unique(split * split[0], axis=1).T),
        "closest": int(apart.min()),
        "dimensions": round(float(power.sum() ** 2 / (power**2).sum()), 3),
        "in_turn": round(float((split[first] != split[second]).mean()), 4),
    }


def by_class(Z: Codes, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean code of each class (n_classes, b)."""
    member = np.eye(classes.max() + 1)[classes]
    mean: NDArray[np.float64] = member.T @ Z / member.sum(axis=0)[:, None]
    return mean


def _encoded(h: HashFunction, X: NDArray[Any]) -> NDArray[np.uint8]:
    parts = [X[at : at + POINTS_PER_CHUNK] for at in range(0, len(X), POINTS_PER_CHUNK)]
    return np.concatenate([pack(sign(hashfunctions.outputs(h, x))) for x in parts])


def chosen(records: Iterable[Record], train: int) -> list[Record]:
    """Records with so many training points, in the order of functions, bits and ways."""
    place = list(WAYS)
    return sorted(
        (record for record in records if record["train"] == train),
        key=lambda r: (r["function"], r["bits"], place.index(r["way"]), r["seed"]),
    )


def grouped(records: Iterable[Record]) -> dict[tuple[str, int, str], list[Record]]:
    """The seeds of each hash function, number of bits and way."""
    groups: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["function"], record["bits"], record["way"]), []).append(record)
    return groups


def tables(records: Sequence[Record]) -> dict[str, str]:
    """The text of the tables, by file name.

    setting.md and setting-alike.md are of the most points and one seed, setting-most-seeds.md has
    both orders with all seeds; setting-apart.md takes the matter apart
    with few points, 32 bits and one seed, and setting-seeds.md has what there is of others;
    setting-alike-seeds.md and setting-gain.md are of all runs with few points.
    """
    every = chosen(records, max(record["train"] for record in records))
    most = [one for one in every if one["seed"] == 0]
    few = chosen(records, TRIAL_POINTS)
    same = [one for one in few if (one["function"], one["bits"]) == ("linear", 32)]
    others = [
        one
        for (function, bits, _), own in grouped(few).items()
        for one in own
        if (function, bits) != ("linear", 32) or len(own) > 1
    ]
    return {
        "setting.md": losses(most, ("function", "bits")),
        "setting-most-seeds.md": losses(
            [one for one in every if one["way"] in PICTURED], ("function", "bits", "seed")
        ),
        "setting-alike.md": alike([one for one in most if one["way"] in STARTS]),
        "setting-apart.md": losses(
            [one for one in same if one["seed"] == 0 and one["way"] not in ALPHAS], ()
        ),
        "setting-seeds.md": losses(
            [one for one in others if one["way"] not in ALPHAS], ("function", "bits", "seed")
        ),
        "setting-multiplier.md": multipliers(same),
        "setting-alike-seeds.md": alike_of_seeds([one for one in few if one["way"] in PICTURED]),
        "setting-gain.md": dependence([one for one in few if one["way"] in (*STARTS, *MADE)]),
    }


def multipliers(records: Sequence[Record]) -> str:
    """Markdown: how long MAC runs and where it ends, by the multiplier of mu; seeds as means."""
    rows = []
    for order in ORDERS:
        for alpha in sorted({ALPHA, *(way.algorithm.alpha for way in ALPHAS.values())}):
            way = f"{order} order" + (f", mu times {alpha:g}" if alpha != ALPHA else "")
            own = [record for record in records if record["way"] == way]
            if own:
                rows.append([f"{order} order", f"{alpha:g}", str(len(own)), *_run_of(own)])
    head = ("blocks", "mu times", "seeds", "iterations", "of them without a change")
    return markdown((*head, "MAC L(h)", "gain", *(f"precision at {k:,}" for k in RANKS)), rows)


def _run_of(records: Sequence[Record]) -> list[str]:
    """Iterations, those that changed neither L(Z) nor L(h), L(h), gain and precision: means."""
    paths = [np.array(record["path"])[:, 1:] for record in records]
    idle = [float((np.diff(path, axis=0) == 0).all(axis=1).sum()) for path in paths]
    start, end = (mean(records, part, "loss") for part in BOTH)
    return [
        f"{np.mean([len(path) - 1 for path in paths]):.0f}",
        f"{np.mean(idle):.0f}",
        _loss(end),
        f"{100 * (1 - end / start):.1f}%",
        *(_share(mean(records, "mac", "precision", str(rank))) for rank in RANKS),
    ]


def losses(records: Sequence[Record], columns: Sequence[str]) -> str:
    """Markdown: what the codes cost, and what MAC gains, with these columns first."""
    head = (
        *(COLUMNS[name] for name in columns),
        *("codes of mu = 0", "L(Z)", "two-step L(h)", "MAC L(h)", "gain"),
        *(f"precision at {rank:,}" for rank in RANKS),
    )
    rows = []
    for one in records:
        start, end = (one[part]["loss"] for part in BOTH)
        precision = [
            _together(" → ", (_share(one[part]["precision"][str(rank)]) for part in BOTH))
            for rank in RANKS
        ]
        first = [str(one[name]) for name in columns]
        costs = [_loss(one["free"]["loss"]), _loss(start), _loss(end)]
        rows.append([*first, one["way"], *costs, f"{100 * (1 - end / start):.1f}%", *precision])
    return markdown(head, rows)


LIKENESS: dict[str, tuple[str, Callable[[Any], str]]] = {  # name in a record, and in words
    "mean abs. correlation": ("correlation", lambda value: _share(value, 2)),
    "effective bits": ("effective", "{:.1f}".format),
    "splits": ("splits", "{:.0f}".format),
    "dimensions": ("dimensions", "{:.1f}".format),
    "in turn, %": ("in_turn", lambda value: f"{100 * value:.0f}"),
}


def alike(records: Sequence[Record]) -> str:
    """Markdown: how alike the bits are in free, two-step and MAC codes; every record a row."""
    return _alike([(f"{one['function']}, {one['bits']}", one["way"], [one]) for one in records])


def alike_of_seeds(records: Sequence[Record]) -> str:
    """Markdown: how alike the bits are, every row the mean of several seeds."""
    return _alike([(f"{f}, {bits}", way, own) for (f, bits, way), own in grouped(records).items()])


def _alike(rows: Sequence[tuple[str, str, Sequence[Record]]]) -> str:
    cells = [
        [title, way]
        + [
            _together(" / ", (in_words(mean(own, part, name)) for part in ("free", *BOTH)))
            for name, in_words in LIKENESS.values()
        ]
        for title, way, own in rows
    ]
    return markdown(("hash function, bits", "codes of mu = 0", *LIKENESS), cells)


def dependence(records: Sequence[Record]) -> str:
    """Markdown: the correlation of MAC's gain with what its free codes are like, over the runs."""
    names = {"L(Z)": "loss", **{words: name for words, (name, _) in LIKENESS.items()}}
    kinds = {
        "all ways of making codes": records,
        "without the couples that were made": [r for r in records if r["way"] not in COUPLES],
        "random order and fixed order alone": [r for r in records if r["way"] in PICTURED],
    }
    rows = []
    for title, own in kinds.items():
        gains = [1 - one["mac"]["loss"] / one["two_step"]["loss"] for one in own]
        every = [_correlation(gains, [one["free"][name] for one in own]) for name in names.values()]
        rows.append([title, str(len(own)), *every])
    return markdown(("runs", "number", *names), rows)


def _correlation(a: Sequence[float], b: Sequence[float]) -> str:
    """A correlation in words; nothing where one side is the same throughout."""
    return f"{np.corrcoef(a, b)[0, 1]:+.2f}" if np.std(a) and np.std(b) else ""


def _together(between: str, words: Iterable[str]) -> str:
    """The words in one line, which no table breaks."""
    return between.replace(" ", "\u00a0").join(words)


def mean(records: Iterable[Record], *names: str) -> float:
    """The mean over the records of what stands under these names."""
    values = []
    for record in records:
        value: Any = record
        for name in names:
            value = value[name]
        values.append(value)
    return float(np.mean(values))


def _loss(value: float) -> str:
    digits = len(str(int(value))) - 1
    return f"{value / 10**digits:.3f}e{digits}"


def _share(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def shown(records: Sequence[Record]) -> Table:
    """The means over the seeds, and the ratio of MAC's L(h) to that of two-step hashing."""
    columns = ("way", "L(Z)", "two-step", "MAC", "ratio", "last", "p@100", "|c|", "eff", "splits")
    table = Table("", "bits", *columns, "closest", "s")
    for (function, bits, way), own in grouped(records).items():
        free, start, best = (mean(own, part, "loss") for part in ("free", "two_step", "mac"))
        rank = min(own[0]["mac"]["precision"], key=int)
        three = ("free", *BOTH)
        table.add_row(
            *(function, str(bits), way, _loss(free), _loss(start), _loss(best)),
            *(f"{best / start:.3f}", _loss(mean(own, "last", "loss"))),
            " > ".join(_share(mean(own, part, "precision", rank)) for part in BOTH),
            " ".join(_share(mean(own, part, "correlation"), 2) for part in three),
            " ".join(f"{mean(own, part, 'effective'):.1f}" for part in three),
            *(" ".join(f"{mean(own, p, n):.0f}" for p in three) for n in ("splits", "closest")),
            f"{mean(own, 'cpu_s'):.0f}",
        )
    return table


def _line(record: Record) -> str:
    start, best = record["two_step"], record["mac"]
    return (
        f"{record['train']} {record['function']} {record['bits']} bits, seed {record['seed']}, "
        f"{record['way']}: free {_loss(record['free']['loss'])}, L(h) {_loss(start['loss'])} > "
        f"{_loss(best['loss'])} > {_loss(record['last']['loss'])}, precision "
        f"{start['precision']} > {best['precision']}, |c| {record['free']['correlation']} > "
        f"{start['correlation']} > {best['correlation']} ({record['cpu_s']} s)"
    )


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks setting")
    parser.add_argument("--train", type=int, default=10_000, help="training points")
    parser.add_argument("--bits", type=int, nargs="+", default=list(BITS))
    parser.add_argument("--functions", choices=FUNCTIONS, nargs="+", default=list(FUNCTIONS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=list(STARTS))
    parser.add_argument("--apart", action="store_true", help="all ways but those of quad")
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--sweeps", type=int, default=0, help="only make codes of mu = 0")
    parser.add_argument("--tables", action="store_true")
    asked = parser.parse_args(options)
    if asked.apart:
        asked.ways = [*STARTS, *APART]
    return asked


def _run_small() -> None:
    """Show that all of it runs, on made data."""
    X, y = peers.decaying(180, 12, 0)
    base, query = Points(X[:150], y[:150]), Points(X[150:], y[150:])
    data = Dataset("made", base, base, query, "made data")
    cell = Cell(data, draw(data, 0, (3, 9)), 4, "linear", 0)
    setup = {"train": TRIAL_POINTS, "function": "linear", "bits": 4, "seed": 0}
    records = [{**setup, "way": way, **run(cell, way)} for way in WAYS]
    Console(width=150).print(shown(records))


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("train", "function", "bits", "seed", "way"))
