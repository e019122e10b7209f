"""maps: the paper's remark on continuous embeddings (sec. 5), made real.

Mappings that are learnt together with a map, beside mappings fitted to a map that was made without
them: E(F(X)), and how many of the points among which a new point lands are of its class.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.neighbors import nearest
from auxhash.compute.version import __version__
from auxhash.experiments import claims, datasets, runs
from auxhash.experiments.cells import Cells, Configuration, Facts
from auxhash.experiments.claims import Verdict
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.experiments.figures.figure import ALL, FigureContent, Part, Section, Table
from auxhash.experiments.figures.styles import COLOURS
from auxhash.experiments.scales import Scale
from auxhash.experiments.svg import Plot, Series, Style
from auxhash.learn.regression import regression
from auxhash.mac.maps import Energy, MapLoss, MapState, Path, attraction, lowest, principal, z_step
from auxhash.model.encoding import Arrays

SIZES: dict[str, tuple[str, dict[str, int]]] = {  # data set and sizes, by scale
    "paper": ("mnist", {"n_train": 5_000, "n_query": 2_000}),
    "small": ("digits", {}),
    "tiny": ("digits", {"n_train": 60, "n_query": 20}),
}
LOSSES: dict[MapLoss, str] = {"tsne": "t-SNE", "ee": "elastic embedding"}
MAPPINGS = ("linear", "rbf", "network")
DRAWN_MAPPINGS = ("linear", "network")  # maps of t-SNE that are drawn
N_DRAWN, N_NEAR = 1_000, 10
PERPLEXITY, ALPHA, TOL = 30.0, 1.4, 0.02
MAX_CLASSES = 12  # that have colours of their own; with more, there are none
CLASS_COLOURS = [name for name in COLOURS if name not in ("ink", "muted", "sky")]
WAYS = {
    "free": "free embedding",
    "direct": "regression onto it",
    "repeated": "the same, as many steps",
    "joint": "MAC",
}
ABOUT_E = (
    "Of the points learnt from; smaller is better. As many steps: the regression goes on for as "
    "many steps as MAC has."
)
ABOUT_NEAR = (
    "Share of the 10 points of the map nearest to a query on it; for the free embedding, which "
    "queries have no place on, to a point itself. Larger is better."
)


@dataclass(frozen=True)
class MapRun:
    """One loss and mapping on one data set."""

    data: str
    sizes: tuple[tuple[str, int], ...]
    loss: MapLoss
    mapping: str

    def __str__(self) -> str:
        return f"{self.loss}, {self.mapping}, {self.data}"

    def load(self) -> Dataset:
        sizes: dict[str, Any] = dict(self.sizes)
        return datasets.load(self.data, **sizes)

    def configuration(self) -> Configuration:
        own = {"data": self.data, "sizes": dict(self.sizes), "alpha": ALPHA}
        of_map = {"loss": self.loss, "mapping": self.mapping}
        return {"figure": "maps", "version": __version__, **own, **of_map}

    def run(self) -> tuple[Facts, Arrays]:
        data = self.load()
        X, Q = (np.asarray(part.X, np.float64) for part in (data.train, data.query))
        y, query_y = np.asarray(data.train.y), np.asarray(data.query.y)
        with threads.one_blas_thread():
            energy, Z = _embedded(self.data, self.sizes, self.loss)
            path = Path(alpha=ALPHA, tol=TOL, first_steps=1)
            regress = regression(self.mapping, X, np.random.default_rng(1))
            steps = list(path.steps(energy, regress, Z))
            (_, direct), (_, joint) = steps[0], lowest(steps)
            Z = direct.Z
            regress = regression(self.mapping, X, np.random.default_rng(1))
            for _ in steps:
                repeated = MapState(*regress(Z), Z)
            every = {"direct": direct, "repeated": repeated, "joint": joint}
            facts = {
                "E": {"free": energy.value(Z)}
                | {w: energy.value(own.F) for w, own in every.items()},
                "same class": {"free": _agreement(Z, y)}
                | {
                    way: _agreement(own.F, y, _landed(own, Q), query_y)
                    for way, own in every.items()
                },
                "history": [asdict(step) for step, _ in steps],
                "seconds": sum(step.seconds for step, _ in steps),
                "machine": runs.machine(),
            }
        arrays: Arrays = {"y": y[:N_DRAWN], "free": Z[:N_DRAWN]}
        return facts, arrays | {way: own.F[:N_DRAWN] for way, own in every.items()}


@cache
def _embedded(name: str, sizes: tuple[tuple[str, int], ...], loss: MapLoss) -> tuple[Energy, Array]:
    """Return E, and the direct embedding, from which every mapping begins."""
    X = np.asarray(datasets.load(name, **dict[str, Any](sizes)).train.X, np.float64)
    energy = Energy(attraction.of_neighbors(X, min(PERPLEXITY, (len(X) - 1) / 3)), loss)
    Z = principal(X, 2, np.random.default_rng(0))
    return energy, z_step(energy, Z, Z, 0.0, Path.first_steps)[0]


def _landed(state: MapState, Q: Array) -> Array:
    """Return the places of new points."""
    return state.mapping.decision(state.mapping.features(Q))


def _agreement(
    places: Array, y: AnyArray, new: Array | None = None, new_y: AnyArray | None = None
) -> float:
    """Share of the N_NEAR points nearest to new ones, or to each point, that are of its class."""
    near = nearest(places, new, min(N_NEAR, len(places) - 1))[0]
    return float((y[near] == (y if new_y is None else new_y)[:, None]).mean())


Cases = dict[tuple[MapLoss, str], Facts]  # by E and mapping


def verdicts(every: Cases) -> list[Verdict]:
    """The claims, where a regression onto the free map does not agree with it at once."""
    paths = {case: facts for case, facts in every.items() if len(facts["history"]) > 1}
    E = {case: facts["E"] for case, facts in paths.items()}
    judged = []
    for way, words in (("direct", "than a regression"), ("repeated", "than one of as many steps")):
        won = sum(own["joint"] < own[way] for own in E.values())
        pairs = [
            f"{_name(*case)}: {own['joint']:.3f} and {own[way]:.3f}" for case, own in E.items()
        ]
        judged.append(
            Verdict(
                f"Learnt together with the map, F has a lower E(F(X)) {words} onto the free map",
                True,
                won == len(E) if E else None,
                f"In {won} of {len(E)} cases (needed: all). {'; '.join(pairs)}."
                if E
                else claims.UNTESTED[1],
            )
        )
    ends = [facts["history"][-1]["distance"] for facts in paths.values()]
    agree = sum(distance <= TOL for distance in ends)
    return [
        *judged,
        Verdict(
            "Z and F(X) agree at the end of the path",
            True,
            agree == len(ends) if ends else None,
            f"In {agree} of {len(ends)} cases (needed: all) their distance is at most {TOL:.0%} of "
            f"the map's size; the largest is {max(ends):.1%}."
            if ends
            else claims.UNTESTED[1],
        ),
    ]


def _name(loss: MapLoss, mapping: str) -> str:
    return f"{LOSSES[loss]}, {mapping}"


@dataclass(frozen=True)
class Maps:
    """The figure: E along the path, maps, and a table."""

    name: str = "maps"
    number: str = "Sec. 5"
    title: str = "Continuous maps: learnt together with their mapping, and fitted afterwards"
    about: str = (
        "The paper has no figure of it: it says that the method learns mappings of continuous "
        "embeddings as well, and this is what such mappings gain. Of 5,000 digits of MNIST at the "
        "paper's scale, of scikit-learn's digits at others."
    )

    @property
    def claimed(self) -> Sequence[Verdict]:
        return verdicts({})

    def jobs(self, scale: Scale, part: Part = ALL) -> Sequence[MapRun]:
        if part:
            raise ValueError(f"{self.name} has no parts: leave out{part}")
        data, sizes = SIZES[scale.name]
        cases = [(loss, mapping) for mapping in MAPPINGS for loss in LOSSES]
        return [MapRun(data, tuple(sizes.items()), *case) for case in cases]

    def content(self, scale: Scale, cells: Cells, part: Part = ALL) -> FigureContent:
        jobs = [job for job in self.jobs(scale, part) if job.configuration() in cells]
        every = {(job.loss, job.mapping): cells.read(job.configuration()) for job in jobs}
        facts = {case: fact for case, (fact, _) in every.items()}
        # Where the direct regression agrees with the free map at once, there is no path.
        paths = {case: _path(*case, own) for case, own in facts.items() if len(own["history"]) > 1}
        rows = [[paths[case] for case in paths if case[0] == loss] for loss in LOSSES]
        sections = [Section("E along the path", [row for row in rows if row])]
        sections += [
            Section(f"The map by t-SNE, {name}", [_maps(every["tsne", name][1])])
            for name in DRAWN_MAPPINGS
            if ("tsne", name) in every
        ]
        sections += [
            Section("E", table=_table(facts, "E"), note=ABOUT_E),
            Section("Points of the same class", table=_table(facts, "same class"), note=ABOUT_NEAR),
        ]
        protocol = [("Data", jobs[0].load().protocol)] if jobs else []
        machines = dict.fromkeys(fact["machine"] for fact in facts.values())
        return FigureContent(
            verdicts(facts),
            sections if jobs else [],
            [*protocol, *(("Machine", machine) for machine in machines)],
            [{"loss": case[0], "mapping": case[1], **fact} for case, fact in facts.items()],
        )


def _path(loss: MapLoss, mapping: str, facts: Facts) -> Plot:
    """E(F(X)) and E(Z) over mu, and E(F(X)) of what is fitted afterwards."""
    steps = facts["history"][1:]
    mu = [step["mu"] for step in steps]
    lines = [
        Series("E(F(X))", Style("vermillion", "circle"), mu, [step["loss"] for step in steps]),
        Series("E(Z)", Style("green", "diamond"), mu, [step["free_loss"] for step in steps]),
    ]
    for way, look in (("direct", Style("blue", "", "5 3")), ("repeated", Style("ink", "", "2 3"))):
        lines.append(Series(WAYS[way], look, mu, [facts["E"][way]] * len(mu)))
    return Plot(_name(loss, mapping), "mu", "E", lines, x_log=True)


def _maps(arrays: Arrays) -> list[Plot]:
    return [map_plot(WAYS[w], arrays[w], arrays["y"]) for w in WAYS if w != "repeated"]


def _table(every: Cases, kind: str) -> Table:
    rows = [
        [LOSSES[loss], mapping, *(f"{facts[kind][way]:.3f}" for way in WAYS)]
        for (loss, mapping), facts in every.items()
    ]
    return Table(["energy", "mapping", *WAYS.values()], rows)


def map_plot(
    title: str,
    places: Array,
    y: AnyArray | None,
    before: Sequence[Series] = (),
    marker: str = "dot",
) -> Plot:
    """Points as dots, in the colours of their classes."""
    classes: AnyArray = np.unique([] if y is None else y)
    if y is None or len(classes) > MAX_CLASSES:
        look = Style("blue", marker, joined=False)
        x, up = places.T.tolist()
        series = [Series("", look, x, up, keyed=False)]
    else:
        series = []
        for one, colour in zip(classes, CLASS_COLOURS, strict=False):
            x, up = places[y == one].T.tolist()
            look = Style(colour, marker, joined=False)
            series.append(Series(str(one), look, x, up, keyed=not before))  # one legend will do
    return Plot(title, "", "", [*before, *series], listed=False)


MAPS = Maps()
