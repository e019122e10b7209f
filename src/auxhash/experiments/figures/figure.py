"""Parts of a figure, and the figures that compare groups of methods."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np

from auxhash.experiments import claims
from auxhash.experiments.cells import Cells, Configuration, Facts
from auxhash.experiments.claims import Claim, Verdict
from auxhash.experiments.figures.styles import dashed, label, looks, style
from auxhash.experiments.gallery import Gallery, gallery
from auxhash.experiments.groups import PAPERS, TWO_STEP_OF, Group, Record
from auxhash.experiments.numbers import entries
from auxhash.experiments.scales import H_STEPS, ORDERS, RETURNED, SCALES, Scale
from auxhash.experiments.svg import Arrow, Plot, Series, Style
from auxhash.model.encoding import Arrays

ARROW_GAP_SHARE = 0.03  # share of x between one arrow and the next
NEAREST = "Precision over k: the share of the k nearest that are right."
WITHIN = (
    "Precision over recall: one point per Hamming radius; where nothing lies within the radius of "
    "a query, its precision is 0."
)


class Job(Protocol):
    """Something to run once and keep in a cell."""

    def configuration(self) -> Configuration: ...

    def run(self) -> tuple[Facts, Arrays]: ...


@dataclass(frozen=True)
class Table:
    """Rows of text under column names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """Rows of plots with one legend for all of them, or a table."""

    title: str
    rows: Sequence[Sequence[Plot]] = ()
    table: Table | None = None
    note: str = ""

    @property
    def plots(self) -> list[Plot]:
        return [plot for row in self.rows for plot in row]


@dataclass(frozen=True)
class HitList:
    """Points that come first for a query, in words, and which of them are right."""

    label: str
    hits: Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class QueryExample:
    """A query in words, its true neighbours, and what each method finds."""

    query: str
    lists: Sequence[HitList]


@dataclass(frozen=True)
class FigureContent:
    """Content of a page, and the numbers for a file."""

    verdicts: Sequence[Verdict]
    sections: Sequence[Section]
    protocol: Sequence[tuple[str, str]]
    numbers: Sequence[Mapping[str, object]]
    galleries: Sequence[Gallery] = ()
    notes: Sequence[str] = ()
    examples: Sequence[QueryExample] = ()
    shown: str = ""  # which results galleries and examples show, where there are more


@dataclass(frozen=True)
class Part:
    """A part of a figure; without any restriction, all of it."""

    data: str | None = None  # only the panels on this data set
    bits: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # methods left out, and what is made of their runs
    own: tuple[str, ...] = ()  # module:function of methods of the user's, added to every panel

    def __bool__(self) -> bool:
        return bool(self.data or self.bits or self.methods or self.without or self.own)

    def __str__(self) -> str:
        """The part as options of the command."""
        words = [f" --data {self.data}"] if self.data else []
        words += [f" --bits {b}" for b in self.bits]
        words += [f" --method {shlex.quote(name)}" for name in self.methods]
        words += [f" --without {shlex.quote(name)}" for name in self.without]
        words += [f" --own {shlex.quote(name)}" for name in self.own]
        return "".join(words)

    def of(self, figure: str, groups: Sequence[Group]) -> list[Group]:
        """The groups of this part; raises for what none of them has."""
        have: dict[str, list[str] | list[int]] = {
            "data": [group.data.name for group in groups],
            "bits": [b for group in groups for b in group.bits],
            "method": [name for group in groups for name in group.methods],
        }
        asked: dict[str, Sequence[str | int]] = {
            "data": [self.data] if self.data else [],
            "bits": self.bits,
            "method": (*self.methods, *self.without),
        }
        for name, values in asked.items():
            for value in values:
                if value not in have[name]:
                    every = ", ".join(map(str, dict.fromkeys(have[name])))
                    raise ValueError(f"{figure} has no {name} {value}; it has {every}")
        chosen = [self._of(group) for group in groups if self.data in (None, group.data.name)]
        chosen = [group for group in chosen if group.bits and group.methods]
        if not chosen:
            raise ValueError(f"nothing of {figure} is left with{self}")
        return chosen

    def _of(self, group: Group) -> Group:
        bits = tuple(b for b in group.bits if not self.bits or b in self.bits)
        methods = tuple(
            name
            for name in group.methods
            if (not self.methods or name in self.methods)
            and not {name, TWO_STEP_OF.get(name, name)} & set(self.without)
        )
        return replace(group, bits=bits, methods=(*methods, *self.own))


ALL = Part()


class Figure(Protocol):
    """A figure as `reproduce` needs it."""

    @property
    def name(self) -> str: ...

    @property
    def number(self) -> str: ...  # in the paper

    @property
    def title(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def claimed(self) -> Sequence[Verdict]:
        """The claims of the figure, none of them tested yet."""

    def jobs(self, scale: Scale, part: Part = ALL) -> Sequence[Job]:
        """Runs that the part needs."""

    def content(self, scale: Scale, cells: Cells, part: Part = ALL) -> FigureContent:
        """Content from the existing cells; nothing is trained."""


@dataclass(frozen=True)
class GroupFigure:
    """A figure made of groups: panels of their records, and claims about them."""

    name: str
    number: str  # in the paper
    title: str
    about: str
    groups: Callable[[Scale], Sequence[Group]]
    sections: Callable[[Sequence[Group], Sequence[Record]], Sequence[Section]]
    claims: Sequence[Claim]
    pictures: bool = True

    @property
    def claimed(self) -> Sequence[Verdict]:
        return claims.judge(self.claims, [])

    def jobs(self, scale: Scale, part: Part = ALL) -> Sequence[Job]:
        groups = self._groups(scale, part)
        # Seed by seed, so that pairs are drawn once; seed 0 of all runs comes first.
        trainings = dict.fromkeys(t for group in groups for t in group.trainings())
        return sorted(trainings, key=lambda training: training.seed)

    def content(self, scale: Scale, cells: Cells, part: Part = ALL) -> FigureContent:
        groups = self._groups(scale, part)
        records = [record for group in groups for record in group.records(cells)]
        galleries = [gallery(group, cells) for group in groups] if self.pictures else []
        shown = {one.why_none or one.title: one for one in galleries if one is not None}
        return FigureContent(
            claims.judge(self.claims, records),
            self.sections(groups, records),
            list(_protocol(groups, cells)),
            entries(records),
            list(shown.values()),
            list(_notes(scale, groups, records)),
        )

    def _groups(self, scale: Scale, part: Part) -> list[Group]:
        groups = [
            replace(group, order=scale.order, h_step=scale.h_step, iterate=scale.iterate)
            for group in self.groups(scale)
        ]
        return part.of(self.name, groups)


Curve = Sequence[tuple[float, float]]


def curves(
    records: Sequence[Record],
    points: Callable[[Record], Curve],
    kinds: bool = True,
) -> list[Series]:
    """One series per method and hash function, from the curve of each record."""
    series = []
    look = looks(r.method for r in records)
    for method, kind in dict.fromkeys((r.method, r.hash_function) for r in records):
        own = [points(record) for record in of(records, method=method, hash_function=kind)]
        shown = kind if kinds else ""
        series.append(average(label(method, shown), dashed(look[method], shown), own))
    return series


def over_bits(
    records: Sequence[Record], value: Callable[[Record], float], kinds: bool = True
) -> list[Series]:
    """One series per method and hash function, with one value per number of bits."""
    series = []
    look = looks(r.method for r in records)
    for method, kind in dict.fromkeys((r.method, r.hash_function) for r in records):
        own = of(records, method=method, hash_function=kind)
        seeds = dict.fromkeys(record.seed for record in own)
        every = [sorted((r.bits, value(r)) for r in of(own, seed=seed)) for seed in seeds]
        shown = kind if kinds else ""
        series.append(average(label(method, shown), dashed(look[method], shown), every))
    return series


def average(name: str, look: Style, every: Sequence[Curve]) -> Series:
    """The mean of the curves of several seeds, point by point, and their least and greatest.

    A shorter curve is continued by its last value: where MAC has stopped, it stays.
    """
    longest = max(every, key=len)
    full = [[*curve, *([curve[-1]] * (len(longest) - len(curve)))] for curve in every]
    y = np.array([[point[1] for point in curve] for curve in full])
    x = np.array([[point[0] for point in curve] for curve in every if len(curve) == len(longest)])
    spread = (y.min(axis=0).tolist(), y.max(axis=0).tolist()) if len(y) > 1 else ((), ())
    return Series(name, look, x.mean(axis=0).tolist(), y.mean(axis=0).tolist(), *spread)


def arrows(records: Sequence[Record], value: Callable[[Record], float], x: float) -> list[Arrow]:
    """Arrows at about x from each two-step method to the MAC that started from it."""
    arrows = []
    kinds = dict.fromkeys(r.hash_function for r in records if r.method in TWO_STEP_OF)
    for at, (kind, two_step) in enumerate(product(kinds, TWO_STEP_OF)):
        ends = [
            [value(r) for r in of(records, method=method, hash_function=kind)]
            for method in (two_step, TWO_STEP_OF[two_step])
        ]
        if all(ends):
            start, end = (float(np.mean(values)) for values in ends)
            colour = style(TWO_STEP_OF[two_step]).colour
            arrows.append(Arrow(x * (1 - ARROW_GAP_SHARE * at), start, end, colour))
    return arrows


def precision_plot(title: str, records: Sequence[Record], kinds: bool = True) -> Plot:
    """Precision over k."""
    series = curves(records, lambda r: sorted(r.precision.items()), kinds)
    ranks = sorted({k for r in records for k in r.precision})
    middle = ranks[len(ranks) // 2] if ranks else 1
    shown = arrows(records, lambda r: r.precision[middle], middle)
    return Plot(title, "k", "precision", series, x_log=True, arrows=shown)


def recall_plot(title: str, records: Sequence[Record], kinds: bool = True) -> Plot:
    """Precision over recall, one point per Hamming radius."""
    series = curves(records, lambda r: r.radius, kinds)
    return Plot(title, "recall", "precision", series)


def of(records: Iterable[Record], **wanted: object) -> list[Record]:
    """The records whose fields have these values."""
    return [r for r in records if all(getattr(r, name) == v for name, v in wanted.items())]


def _protocol(groups: Sequence[Group], cells: Cells) -> Iterable[tuple[str, str]]:
    for data in dict.fromkeys(group.data for group in groups):
        named = [group.name for group in groups if group.data == data]
        yield f"Data of {', '.join(named)}", data.judged().protocol
    for group in groups:
        yield (
            f"Training, {group.name}",
            f"{group.loss} loss, {group.pairs[0]} similar and {group.pairs[1]} dissimilar points "
            f"drawn for each training point, the same for all methods that learn from pairs; "
            f"{_schedule(group)}",
        )
        quad = min(group.seeds, group.seeds_quad)
        seeds = f"{group.seeds} (quad {quad}) from 0 on, of pairs and starts; the split is the same"
        yield f"Seeds, {group.name}", seeds
    yield "Ties in Hamming distance", "expected value over all orders; in pictures, base order"
    facts = [fact for group in groups for fact in group.facts(cells)]
    for machine in dict.fromkeys(fact["machine"] for fact in facts):
        own = [fact for fact in facts if fact["machine"] == machine]
        hours = sum(fact["seconds"] for fact in own) / 3600
        last = max(fact["finished"] for fact in own)
        yield "Machine", f"{machine}; {hours:.2f} hours of training, the last done {last}"


def _schedule(group: Group) -> str:
    """Describe how MAC runs, by the settings that it has."""
    hashers = {t.method: t.hasher().get_params(deep=False) for t in group.trainings()}
    macs = {name: own for name, own in hashers.items() if name in PAPERS}
    if not macs:
        return "no method of MAC"
    firsts = {
        name: "a search" if own["mu"] == "auto" else f"{own['mu']:g}" for name, own in macs.items()
    }
    mu = " and ".join(f"{first} ({name})" for name, first in firsts.items())
    one = next(iter(macs.values()))
    share = one["validation"]
    validation = "no validation set, so that every step of MAC counts"
    if share is not None:
        validation = (
            f"{share:.0%} of the training points are held out for validation, in the two-step "
            "solutions as well, and a step that lowers their precision is ignored; L(h) is told "
            "over all training pairs"
        )
    return (
        f"{ORDERS[group.order]}; mu from {mu}, times {one['alpha']:g}; {validation}; "
        f"{H_STEPS[group.h_step]}; MAC returns {RETURNED[group.iterate]}"
    )


def _notes(scale: Scale, groups: Sequence[Group], records: Sequence[Record]) -> Iterable[str]:
    if note := fewer_seeds(max(group.seeds for group in groups), scale):
        yield note
    if any(group.data.stands_in for group in groups):
        yield (
            "SIFT1M was not to be had. cifar10-sift stands in for it: a million real SIFT "
            "descriptors of CIFAR-10's images. The paper's numbers are not to be expected."
        )
    if note := missing(groups, records):
        yield note


def fewer_seeds(seeds: int, scale: Scale) -> str:
    """Seeds that were run, in a sentence; empty if they are those of the scale."""
    asked = SCALES[scale.name].seeds
    words = "one seed" if seeds == 1 else f"{seeds} seeds"
    return f"Run with {words} in place of {asked}." if seeds < asked else ""


def missing(groups: Sequence[Group], records: Sequence[Record]) -> str:
    """The runs that are missing, in a sentence; empty if there are none."""
    trainings = dict.fromkeys(t for group in groups for t in group.trainings())
    without = list(dict.fromkeys(t for group in groups for t in group.without(records)))
    if not without:
        return ""
    named = "; ".join(str(training) for training in without[:5])
    return (
        f"{len(without)} of {len(trainings)} runs are missing, and with them what they would "
        f"show: {named}{'; and more' if len(without) > 5 else ''}."
    )
