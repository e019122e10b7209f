"""free-codes: the paper's sketch of code space, drawn from problems small enough to enumerate.

A few digits of three classes, in the plane of their first two principal components, get 2 bits.
All possible codes, and all that a linear hash function can produce, are enumerated; so the free
codes, the codes realizable by hash functions and the best of these are exact. Beside
them stand what two-step hashing and MAC find.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import context
from auxhash.compute.arrays import Array, Numbers
from auxhash.compute.version import __version__
from auxhash.experiments import claims, datasets, runs
from auxhash.experiments.cells import Cells, Configuration, Facts
from auxhash.experiments.claims import Verdict
from auxhash.experiments.figures.figure import ALL, FigureContent, Part, Section
from auxhash.experiments.figures.styles import DASHES
from auxhash.experiments.scales import H_STEPS, ORDERS, RETURNED, Scale
from auxhash.experiments.svg import Plot, Series, Style
from auxhash.mac import affinity, hashfunctions, loop, zstep
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.hashfunctions.rotation import principal_axes
from auxhash.mac.loop import HStep, Returned
from auxhash.mac.presets import Order
from auxhash.model.encoding import Arrays

Signs = NDArray[np.int8]

CLASSES = (1, 2, 7)
POINTS_PER_CLASS = 4
N_BITS = 2
LOWEST = "lowest of all codes"
TOL = 1e-9  # energies that differ by rounding alone


class Dichotomies(NamedTuple):
    """All ways (m, n) in which a line divides n points, and a line (a, b, c) for each."""

    signs: Signs
    lines: Array  # ax + by + c >= 0 where the sign is +1


def points(seed: int) -> tuple[Array, Numbers]:
    """POINTS_PER_CLASS digits of each class in two dimensions, each of unit variance."""
    data = datasets.load("digits").base
    mean, axes = principal_axes(np.asarray(data.X, np.float64), 2, "the sketch")
    plane = (data.X - mean) @ axes
    plane /= plane.std(axis=0)
    labels = np.asarray(data.y)
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(labels == c), POINTS_PER_CLASS, False) for c in CLASSES]
    chosen = np.concatenate(rows)
    return plane[chosen], labels[chosen]


def dichotomies(X: Array) -> Dichotomies:
    """All dichotomies: every cut of the points sorted along a direction, one for each order."""
    turns = [np.arctan2(*(X[j] - X[i])) for i, j in combinations(range(len(X)), 2)]
    angles = np.unique(np.mod(np.negative(turns), np.pi))
    between = (angles + np.append(angles[1:], angles[0] + np.pi)) / 2
    signs, lines = [], []
    for angle in between:
        a, b = np.cos(angle), np.sin(angle)
        along = np.sort(X @ [a, b])
        cuts = [along[0] - 1, *(along[1:] + along[:-1]) / 2, along[-1] + 1]
        for cut in cuts:
            for way in (1, -1):
                line = way * np.array([a, b, -cut])
                lines.append(line)
                signs.append(np.where(X @ line[:2] + line[2] >= 0, 1, -1))
    every, first = np.unique(np.array(signs, np.int8), axis=0, return_index=True)
    return Dichotomies(every, np.array(lines)[first])


def energies(bits: Signs, others: Signs, pairs: Affinity) -> Array:
    """KSH loss of all codes (z, z') of 2 bits with z a row of `bits`, z' of `others`.

    With p, p' = +-1 the products of a pair's two signs, ((p + p') / 2 - y)^2 is
    (1 + p p') / 2 - y (p + p') + y^2: one matrix product computes them all.
    """
    p, q = (z[:, pairs.i].astype(np.float64) * z[:, pairs.j] for z in (bits, others))
    w, y = pairs.weight, pairs.y
    linear = (p @ (w * y))[:, None] + (q @ (w * y))[None]
    total: Array = (w * (0.5 + y**2)).sum() + 0.5 * (p * w) @ q.T - linear
    return total


def distances(free: Signs, bits: Signs, others: Signs) -> Numbers:
    """Bits in which the free codes (2, n) differ from all (z, z'), as `energies` takes them.

    Swapping bits or turning one around does not change E, so the least distance over these counts.
    """

    def apart(signs: Signs) -> Numbers:
        differing = (free[:, None] != signs[None]).sum(axis=2)  # (2, m)
        turned: Numbers = np.minimum(differing, free.shape[1] - differing)
        return turned

    p, q = apart(bits), apart(others)
    least: Numbers = np.minimum(p[0][:, None] + q[1][None], p[1][:, None] + q[0][None])
    return least


def all_signs(n: int) -> Signs:
    """All 2^n rows of signs."""
    numbers = np.arange(2**n)[:, None] >> np.arange(n)
    return (2 * (numbers & 1) - 1).astype(np.int8)


@dataclass(frozen=True)
class Draw:
    """One small problem, solved in every way."""

    seed: int
    order: Order = "random"  # of the blocks of cut
    h_step: HStep = "plain"
    iterate: Returned = "last"

    def __str__(self) -> str:
        return f"problem {self.seed}"

    def configuration(self) -> Configuration:
        problem = {
            "classes": CLASSES,
            "per class": POINTS_PER_CLASS,
            "seed": self.seed,
            "order": self.order,
        }
        of_mac = {"h_step": self.h_step, "iterate": self.iterate}
        problem |= {k: v for k, v in of_mac.items() if runs.ADDED_SINCE[k] != v}
        return {"figure": "free-codes", "version": __version__, **problem}

    def run(self) -> tuple[Facts, Arrays]:
        """Positions of all these codes: distance from the free codes found, and E(Z)."""
        X, y = points(self.seed)
        pairs = affinity.from_labels(y, None, None)
        two_step, best = self._solve(X, pairs)
        free = two_step.Z.T
        line = dichotomies(X)
        energy = energies(line.signs, line.signs, pairs)
        distance = distances(free, line.signs, line.signs)
        best_of_all = energy <= energy.min() + TOL  # of these, the nearest to the free codes
        optimal = np.unravel_index(
            np.argmin(np.where(best_of_all, distance, len(X) * N_BITS)), energy.shape
        )
        half = all_signs(len(X))[1::2]  # the first sign is +1: turning a bit around changes nothing
        facts = {
            "free codes": _place(free, free, pairs),
            "two-step": _place(two_step.H.T, free, pairs),
            "MAC": _place(best.H.T, free, pairs),
            "nearest realizable": [
                int(distance.min()),
                float(energy[distance == distance.min()].min()),
            ],
            "optimal": [int(distance[optimal]), float(energy[optimal])],
            LOWEST: float(energies(half, half, pairs).min()),
            "machine": runs.machine(),
        }
        arrays = {
            "X": X,
            "y": y,
            "realizable": np.unique(np.stack([distance.ravel(), energy.ravel()], 1), axis=0),
            "optimal": line.lines[list(optimal)],
            "two-step": _lines(two_step.h),
            "MAC": _lines(best.h),
        }
        return facts, arrays

    def _solve(self, X: Array, pairs: Affinity) -> tuple[loop.State, loop.State]:
        """Start of MAC, with the free codes as Z, and its end."""
        centres, start, solving = np.random.default_rng(self.seed).spawn(3)
        h = hashfunctions.get("linear", 100.0).prepare(X, centres)
        Z = (2 * start.integers(0, 2, (len(X), N_BITS)) - 1).astype(np.int8)
        algorithm = loop.MAC(zstep.Cut(order=self.order), h_step=self.h_step)
        with context.using(n_jobs=1):
            problem = zstep.Problem(pairs, "ksh", N_BITS)
            steps = list(algorithm.steps(problem, h.features(X), h, Z, solving))
        end = steps[-1] if self.iterate == "last" else loop.lowest(steps)
        return steps[0][1], end[1]


def _place(codes: Signs, free: Signs, pairs: Affinity) -> list[float]:
    """Distance from the free codes, and E."""
    one, two = codes[:1], codes[1:]
    return [float(distances(free, one, two)[0, 0]), float(energies(one, two, pairs)[0, 0])]


def _lines(h: HashFunction) -> Array:
    """The line (a, b, c) of each bit of a linear hash function of the plane."""
    origin, right, up = h.decision(h.features(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
    return np.stack([right - origin, up - origin, origin], axis=1)


LOOKS = {
    "free codes": Style("green", "diamond"),
    "two-step": Style("blue", "circle-open", DASHES["linear"]),
    "MAC": Style("vermillion", "circle"),
    "nearest realizable": Style("sky", "square-open"),
    "optimal": Style("ink", "up", DASHES["bound"]),
}
CLASS_LOOKS = (Style("orange", "circle"), Style("purple", "square"), Style("green", "up"))


def space_plot(facts: Facts, arrays: Arrays) -> Plot:
    """Code space as seen from the free codes."""
    grey = replace(Style("muted", "dot"), joined=False)
    series = [Series("realizable codes", grey, *arrays["realizable"].T.tolist())]
    for name, look in LOOKS.items():
        x, y = facts[name]
        series.append(Series(name, replace(look, joined=False), [x], [y]))
    return Plot(
        "Codes realizable by linear hash functions",
        "bits unlike the free codes",
        "E(Z)",
        series,
    )


def plane_plot(arrays: Arrays) -> Plot:
    """The points, and the two lines of each hash function."""
    X, y = arrays["X"], arrays["y"]
    box = np.stack([X.min(axis=0) - 0.2, X.max(axis=0) + 0.2])
    series = []
    for number, look in zip(CLASSES, CLASS_LOOKS, strict=True):
        own = X[y == number].T.tolist()
        series.append(Series(f"digit {number}", replace(look, joined=False), *own))
    for name in ("two-step", "MAC", "optimal"):
        for line in arrays[name]:
            ends = clipped(line, box)
            if len(ends) == 2:
                series.append(Series(name, replace(LOOKS[name], marker=""), *ends.T.tolist()))
    return Plot("The points and the lines", "first component", "second component", series)


def clipped(line: Array, box: Array) -> Array:
    """The two points where a line leaves the box, or none if it misses the box."""
    a, b, c = line
    crossings = [(x, -(a * x + c) / b) for x in box[:, 0] if b]
    crossings += [(-(b * y + c) / a, y) for y in box[:, 1] if a]
    inside = [p for p in crossings if np.all(p >= box[0] - 1e-9) and np.all(p <= box[1] + 1e-9)]
    return np.array(inside[:2])


def verdicts(every: Sequence[Facts]) -> list[Verdict]:
    """The sketch's claims, each over all problems drawn."""
    n = len(every)
    E = {
        name: np.array([facts[name][1] for facts in every])
        for name in ("two-step", "MAC", "nearest realizable", "optimal")
    }
    lowest = np.array([facts[LOWEST] for facts in every])

    def verdict(words: str, count: int, needed: float, detail: str, ours: bool = False) -> Verdict:
        holds = claims.enough(count, n, needed) if n else None
        won = f"In {count} of {n} problems (needed: {claims.WORDS[needed]})."
        return Verdict(words, ours, holds, f"{won} {detail}".rstrip() if n else claims.UNTESTED[1])

    def excess(name: str) -> str:
        above = np.mean(E[name] / E["optimal"] - 1) if n else 0.0
        return f"{name}: E(Z) {above:.1%} above the optimum on average."

    return [
        verdict(
            "The free codes cannot be produced by a hash function",
            int((E["optimal"] > lowest + TOL).sum()),
            claims.USUALLY,
            "",
        ),
        verdict(
            "The two-step codes are not those of the optimal hash function",
            int((E["two-step"] > E["optimal"] + TOL).sum()),
            claims.USUALLY,
            excess("two-step"),
        ),
        verdict(
            "Nor are the realizable codes nearest to the free codes",
            int((E["nearest realizable"] > E["optimal"] + TOL).sum()),
            claims.USUALLY,
            excess("nearest realizable"),
        ),
        verdict(
            "MAC finds a better hash function than two-step hashing",
            int((E["MAC"] < E["two-step"] - TOL).sum()),
            claims.USUALLY,
            f"Worse in {int((E['MAC'] > E['two-step'] + TOL).sum())}. {excess('MAC')}",
        ),
        verdict(
            "MAC finds the optimum",
            int((E["MAC"] <= E["optimal"] + TOL).sum()),
            claims.USUALLY,
            f"Two-step: {int((E['two-step'] <= E['optimal'] + TOL).sum())}.",
            ours=True,
        ),
    ]


@dataclass(frozen=True)
class Sketch:
    """The figure: a picture of one problem, and verdicts over many."""

    name: str = "free-codes"
    number: str = "Fig. 4"
    title: str = "Free codes, two-step codes and optimal codes, in problems that can be enumerated"
    about: str = "The paper's sketch of the space of codes, from real runs in two dimensions."

    @property
    def claimed(self) -> Sequence[Verdict]:
        return verdicts([])

    def jobs(self, scale: Scale, part: Part = ALL) -> Sequence[Draw]:
        if part:
            raise ValueError(f"{self.name} has no parts: leave out{part}")
        of_mac = scale.order, scale.h_step, scale.iterate
        return [Draw(seed, *of_mac) for seed in range(scale.sketches)]

    def content(self, scale: Scale, cells: Cells, part: Part = ALL) -> FigureContent:
        draws = [draw for draw in self.jobs(scale, part) if draw.configuration() in cells]
        every = [cells.read(draw.configuration()) for draw in draws]
        facts = [fact for fact, _ in every]
        return FigureContent(
            verdicts(facts),
            [_section(every)] if every else [],
            _protocol(facts, scale),
            [
                {"seed": draw.seed, **{name: fact[name] for name in (*LOOKS, LOWEST)}}
                for draw, fact in zip(draws, facts, strict=True)
            ],
        )


def _section(every: Sequence[tuple[Facts, Arrays]]) -> Section:
    """The first problem in which two-step, MAC and the optimum are three different things."""

    def apart(facts: Facts) -> int:
        return len({round(facts[name][1], 6) for name in ("two-step", "MAC", "optimal")})

    shown = max(range(len(every)), key=lambda at: apart(every[at][0]))
    facts, arrays = every[shown]
    return Section(
        f"Problem {shown}: the first where two-step, MAC and optimum differ most",
        [[space_plot(facts, arrays), plane_plot(arrays)]],
        note=(
            "Left: every grey dot is a distance from the free codes and a loss that some linear "
            "hash function has. Two-step hashing looks for the leftmost; the lowest is wanted."
        ),
    )


def _protocol(every: Sequence[Facts], scale: Scale) -> list[tuple[str, str]]:
    classes = ", ".join(map(str, CLASSES))
    return [
        (
            "Problems",
            f"{len(every)} draws of {POINTS_PER_CLASS} digits of each of the classes {classes}, in "
            f"their first two principal components; {N_BITS} bits, KSH loss on all pairs, linear "
            f"SVMs, cut in the Z step, {ORDERS[scale.order]}; {H_STEPS[scale.h_step]}; MAC returns "
            f"{RETURNED[scale.iterate]}; the free codes are those that the Z step at mu = 0 found; "
            "no validation: the points are too few",
        ),
        *(("Machine", machine) for machine in dict.fromkeys(facts["machine"] for facts in every)),
    ]


FREE_CODES = Sketch()
