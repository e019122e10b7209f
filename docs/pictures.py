"""The pictures of the documentation: python docs/pictures.py [NAME ...].

Writes docs/pictures/NAME.html, SVG that takes its colours from the page; `readme` writes README's,
docs/pictures/readme.svg, from the numbers in docs/results.
"""

import json
import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.base import clone

from auxhash import MACHash, MACMap
from auxhash.compute.words import count
from auxhash.experiments import datasets
from auxhash.experiments.cells import Cells
from auxhash.experiments.compareneighbors import curves as bit_curves
from auxhash.experiments.figures.maps import DRAWN_MAPPINGS, MAPS, map_plot
from auxhash.experiments.figures.sketch import Draw, plane_plot, space_plot
from auxhash.experiments.figures.styles import COLOURS, style
from auxhash.experiments.reproduce import Reproduction
from auxhash.experiments.scales import SCALES
from auxhash.experiments.svg import HEIGHT, LEFT, WIDTH, Plot, Series, Style, draw, key, look
from auxhash.mac import losses

sys.path.append(str(Path(__file__).parents[1]))  # where benchmarks are, if this runs as a script
from benchmarks import records as files
from benchmarks.bits import FILE as BITS_FILE
from benchmarks.bits import learnt_from_all, means, of_best_quality

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
PICTURES = DOCS / "pictures"
README = "readme"


@dataclass(frozen=True)
class Grid:
    """A panel of coloured squares: values from -1 (blue) over 0 (none) to 1 (vermillion)."""

    title: str
    rows: Sequence[str]
    values: Sequence[Sequence[float]]
    x_label: str
    texts: Sequence[Sequence[str]] = ()  # in the squares
    series: Sequence[Series] = ()  # none: the legend has no line for it


Panel = Plot | Grid


@cache
def fitted(n_train: int) -> MACHash:
    """MACHash on digits, 32 bits."""
    data = datasets.load("digits", n_train=n_train)
    hasher = MACHash(n_similar=20, n_dissimilar=100, random_state=0, n_jobs=1)
    return hasher.fit(data.train.X, data.train.y)


def path(n_train: int = 500) -> list[Plot]:
    """The losses and the violations while mu grows."""
    hasher = fitted(n_train)
    steps = [step for step in hasher.history_ if 0 < step.mu < np.inf]
    start = hasher.history_[0]
    mu = [step.mu for step in steps]
    of_h = Series("L(h)", Style("vermillion", "circle"), mu, [step.loss for step in steps])
    of_z = Series("L(Z)", Style("green", "diamond"), mu, [step.free_loss for step in steps])
    two_step = Series("L(h), two-step", Style("blue", "", "5 3"), mu, [start.loss] * len(mu))
    apart = [100 * step.violations / (n_train * hasher.n_bits) for step in steps]
    differ = Series("bits of Z that differ from h(X)", Style("purple", "square"), mu, apart)
    return [
        Plot("Loss", "mu", "loss", [of_h, of_z, two_step], x_log=True),
        Plot("Violations", "mu", "% of all bits", [differ], x_log=True),
    ]


def maps(n_train: int = 400) -> list[Plot]:
    """E along the path of a linear MACMap of digits; the free map, that fitted to it, MACMap's."""
    data = datasets.load("digits", n_train=n_train)
    learner = MACMap(mapping="linear", alpha=2.0, random_state=0, n_jobs=1)
    joint = clone(learner).fit(data.train.X)
    direct = learner.set_params(max_iter=0).fit(data.train.X)
    start, steps = joint.history_[0], joint.history_[1:]
    mu = [step.mu for step in steps]
    lines = [
        Series("E(F(X))", Style("vermillion", "circle"), mu, [step.loss for step in steps]),
        Series("E(Z)", Style("green", "diamond"), mu, [step.free_loss for step in steps]),
        Series("E(F(X)), fitted afterwards", Style("blue", "", "5 3"), mu, [start.loss] * len(mu)),
    ]
    shown = {
        "The free map": direct.embedding_,
        "Fitted afterwards": direct.transform(data.train.X),
        "Learnt together": joint.transform(data.train.X),
    }
    return [
        Plot("E along the path", "mu", "E", lines, x_log=True),
        *(map_plot(title, places, data.train.y) for title, places in shown.items()),
    ]


def mnist(folder: str = "results", step: int = 2) -> list[Plot]:
    """Paths and maps of `auxhash reproduce maps --scale paper`, by t-SNE, every other point.

    What is not in its folder of results is run.
    """
    figure = Reproduction(MAPS, SCALES["paper"], Cells(folder))
    figure.run(Console(stderr=True))
    paths, *maps = [s for s in MAPS.content(figure.scale, figure.cells).sections if s.rows]
    plots = list(paths.rows[0])
    for mapping, section in zip(DRAWN_MAPPINGS, maps, strict=True):
        free, *mapped = section.plots
        plots += [free] if mapping == DRAWN_MAPPINGS[0] else []
        plots += [replace(plot, title=f"{plot.title}, {mapping}") for plot in mapped]
    thinned = [
        [s if s.style.joined else replace(s, x=s.x[::step], y=s.y[::step]) for s in plot.series]
        for plot in plots
    ]
    return [replace(p, series=series) for p, series in zip(plots, thinned, strict=True)]


def curves() -> list[Plot]:
    """Every loss over the Hamming distance of a similar and of a dissimilar pair, 16 bits."""
    looks = {
        "ksh": Style("vermillion"),
        "esplh": Style("purple", "", "6 3"),
        "bre": Style("orange", "", "2 3"),
        "ee": Style("green", "", "8 2 2 2"),
        "hinge": Style("blue", "", "3 2"),
    }
    d = list(range(17))
    plots = []
    for at, kind in enumerate(("similar", "dissimilar")):
        series = [
            Series(name, look, d, losses.curves(name, [1, -1], 16)[at].tolist())
            for name, look in looks.items()
        ]
        plots.append(Plot(f"A {kind} pair", "Hamming distance", "loss", series))
    return plots


def sketch() -> list[Plot]:
    """The first problem of `auxhash reproduce free-codes` in which all of the codes differ."""
    for seed in range(30):
        facts, arrays = Draw(seed).run()
        energies = [round(facts[name][1], 6) for name in ("two-step", "MAC", "nearest realizable")]
        if energies[1] < min(energies[0], energies[2]):
            break
    return [space_plot(facts, arrays), plane_plot(arrays)]


def refined(n_train: int = 500) -> list[Plot]:
    """tanh(s a) for the steepness of the first and the last step; L(h) from the end of MAC on."""
    a = np.linspace(-1.5, 1.5, 121)
    looks = {2: Style("sky"), 6: Style("blue", "", "6 3"), 20: Style("purple", "", "3 2")}
    steps = [
        Series(f"s = {s}", look, a.tolist(), np.tanh(s * a).tolist()) for s, look in looks.items()
    ]
    history = fitted(n_train).history_
    after = [step.loss for step in history if step.mu == np.inf]
    loss = [min(step.loss for step in history if step.mu < np.inf), *after]
    done = np.linspace(0, 100, len(loss)).tolist()
    descent = Series("L(h)", Style("vermillion", "circle"), done, loss)
    return [
        Plot("In the place of the sign", "output a", "tanh(s a)", steps),
        Plot("Refinement", "% of its steps", "loss", [descent]),
    ]


COMPARED = {
    "MACrefined": "auxhash: MAC, refined",
    "MACcut": "MACcut, the paper's best",
    "CCAITQ": "CCA-ITQ",
    "ITQ": "ITQ (PCA)",
    "KSH": "KSH, linear",
    "OneHot": "one-hot classifier",
}
EDGE, PAPER = ("#d8dbdf", "#343a40"), ("#fdfdfc", "#14171a")  # light, dark


CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
ORDERS = {
    "fixed order": ("one order", Style("vermillion", "circle")),
    "random order": ("random order", Style("blue", "square", "5 3")),
}


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Records that `python -m benchmarks setting` wrote to a file."""
    return [json.loads(line) for line in (RESULTS / name).read_text("utf-8").splitlines()]


def _of(way: str, train: int = 10_000, bits: int = 32, function: str = "linear") -> dict[str, Any]:
    """The record of a way, of seed 0."""
    wanted = {"way": way, "train": train, "bits": bits, "function": function, "seed": 0}
    [record] = [one for one in records("setting.jsonl") if wanted.items() <= one.items()]
    return record


def couples() -> list[Panel]:
    """The share of the free codes' bits in which two classes differ, in both orders."""
    panels: list[Panel] = []
    for way, (words, _) in ORDERS.items():
        split = np.sign(np.array(_of(way)["classes"]["free"]) + 0.5)
        share = 100 * (split[:, None] != split[None]).mean(axis=2)
        texts = [
            ["" if a == b else f"{v:.0f}" for b, v in enumerate(row)] for a, row in enumerate(share)
        ]
        # Half of the bits, or a little more, is what every two classes would have at best.
        shade = (np.where(np.eye(len(share)), 55, share) - 55) / 45
        title = f"% of bits that differ, {words}"
        panels.append(Grid(title, CLASSES, shade.tolist(), "the same classes", texts))
    return panels


def codes() -> list[Panel]:
    """The mean code of each class in both orders, free and after MAC."""
    panels: list[Panel] = []
    for way, (words, _) in ORDERS.items():
        for part, name in (("free", "free codes"), ("mac", "h(X) after MAC")):
            mean = np.array(_of(way)["classes"][part]) / 100
            # Bits of one sign or the other are the same bit: the first class is made +1.
            mean *= np.where(mean[0] < 0, -1, 1)
            mean = mean[:, np.lexsort(np.sign(mean)[::-1])]
            panels.append(Grid(f"{name}, {words}", CLASSES, mean.tolist(), "bits, sorted"))
    return panels


def sweeps() -> list[Panel]:
    """L(Z) at mu = 0, and the bits in which classes in turn differ, sweep after sweep."""
    plots: list[Panel] = []
    named = {
        "loss": ("The free codes' loss", "L(Z)"),
        "in_turn": ("Classes next to each other", "% of bits that differ"),
    }
    for name, (title, label) in named.items():
        series = []
        for way, (words, line) in ORDERS.items():
            own = [r for r in records("setting-sweeps.jsonl") if way.startswith(r["order"])]
            scale = 100 if name == "in_turn" else 1
            values = [scale * one[name] for one in own]
            series.append(Series(words, line, [one["sweeps"] for one in own], values))
        plots.append(Plot(title, "sweeps over the bits at mu = 0", label, series))
    return plots


def paths() -> list[Panel]:
    """L(h) and L(Z) of MAC over mu in both orders."""
    plots: list[Panel] = []
    for title, at in (("L(h)", 1), ("L(Z)", 2)):
        series = []
        for way, (words, line) in ORDERS.items():
            steps = _of(way)["path"]
            mu = [step[0] or steps[1][0] / 1.4 for step in steps]
            series.append(Series(words, line, mu, [step[at] for step in steps]))
        plots.append(Plot(title, "mu; the first point is two-step", "loss", series, x_log=True))
    return plots


KINDS = {
    "cut, by order and start": Style("blue", "square", joined=False),
    "classes in couples, opposite in every bit": Style("vermillion", "circle", joined=False),
    "each bit repeated": Style("green", "diamond", joined=False),
    "other codes": Style("muted", "up-open", joined=False),
}


def ways(train: int = 2_000) -> list[Panel]:
    """Draw what MAC makes of poor and of good codes: L(h) after it, and precision."""
    by_kind: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for one in records("setting.jsonl"):
        own = (one["train"], one["function"], one["bits"], one["seed"]) == (train, "linear", 32, 0)
        if own and "mu times" not in one["way"]:
            by_kind[_kind(one["way"])].append(one)
    plots: list[Panel] = []
    percent = _of("random order", train)["two_step"]["loss"] / 100
    for title, value in (
        ("L(h), % of two-step in random order", lambda part: part["loss"] / percent),
        ("Precision at 100", lambda part: part["precision"]["100"]),
    ):
        series = [
            Series(
                kind,
                KINDS[kind],
                [value(one["two_step"]) for one in members],
                [value(one["mac"]) for one in members],
            )
            for kind, members in by_kind.items()
        ]
        plots.append(Plot(title, "two-step", "after MAC", series))
    return plots


def _kind(way: str) -> str:
    if way.startswith("each bit"):
        return "each bit repeated"
    if way.startswith("couples"):
        return "classes in couples, opposite in every bit"
    own = way.endswith((" order", ", random order", ", fixed order")) and "the same" not in way
    return "cut, by order and start" if own else "other codes"


def html(plots: Iterable[Panel]) -> str:
    """The plots side by side, and one legend for them all."""
    plots = list(plots)
    looks = dict.fromkeys((s.label, s.style) for plot in plots for s in plot.series if s.keyed)
    legend = "".join(f"<li>{key(look)}{escape(label)}</li>" for label, look in looks)
    drawn = "\n".join(squares(p) if isinstance(p, Grid) else draw(p) for p in plots)
    listed = f'<ul class="plot-legend">{legend}</ul>\n' if legend else ""
    return f'<div class="plots">\n{drawn}\n</div>\n{listed}'


def squares(grid: Grid) -> str:
    """The grid as an <svg> element as wide as a plot."""
    left, top = max(64, 6 * max(map(len, grid.rows))), 24
    across = (WIDTH - left - 6) / len(grid.values[0])
    down = max(across, 14.0) if grid.texts else 14.0
    high = round(top + down * len(grid.rows) + 20)
    parts = [_label((left + WIDTH) / 2, 14, grid.title, "middle", "title")]
    for at, (name, row) in enumerate(zip(grid.rows, grid.values, strict=True)):
        y = top + at * down
        parts.append(_label(left - 5, y + down / 2 + 3.5, name, "end"))
        for column, value in enumerate(row):
            x, colour = left + column * across, "vermillion" if value > 0 else "blue"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{across - 0.6:.1f}" '
                f'height="{down - 0.6:.1f}" style="fill:var(--{colour})" '
                f'fill-opacity="{min(1.0, abs(value)):.2f}"/>'
            )
            if grid.texts:
                middle = x + across / 2
                text = _label(middle, y + down / 2 + 3.5, grid.texts[at][column], "middle")
                parts.append(text.replace("<text", '<text style="fill:var(--ink)"'))
    parts.append(_label((left + WIDTH) / 2, high - 5, grid.x_label, "middle"))
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {high}" role="img" '
        f'aria-label="{escape(grid.title)}">{"".join(parts)}</svg>'
    )


def _label(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def compared() -> list[Plot]:
    """Precision over the bits and over k, on CIFAR at the paper's size: means over the seeds."""
    text = (DOCS / "results" / "sup-comparison.json").read_text("utf-8")
    results = [one for one in json.loads(text)["results"] if one["method"] in COMPARED]
    by_bits = Plot("Precision at 100", "bits", "precision", _each(results, "bits", None, "100"))
    by_k = Plot("32 bits", "k", "precision at k", _each(results, "k", 32, None), x_log=True)
    return [by_bits, by_k]


def _each(
    results: list[dict[str, Any]], over: str, bits: int | None, k: str | None
) -> list[Series]:
    """One series per method over bits or over k, the other one fixed."""
    series = []
    for method, words in COMPARED.items():
        points = [
            (one["bits"] if over == "bits" else int(rank), float(np.mean(precision)))
            for one in results
            if one["method"] == method and bits in (None, one["bits"])
            for rank, precision in one["precision"].items()
            if k in (None, rank)
        ]
        x, y = zip(*sorted(points), strict=True)
        series.append(Series(words, style(method), x, y))
    return series


REAL = ("cifar10-efficientnet", "debian-minilm", "wordnet-minilm")  # embeddings
NEAREST = {
    "NeighborHash, network": Style("vermillion", "circle"),
    "NeighborHash, linear": Style("orange", "diamond"),
    "ITQ": Style("blue", "square", "5 3"),
    "LSH": Style("muted", "", "2 3"),
    "PQ (faiss)": Style("green", "up-open", "6 3"),
    "OPQ (faiss)": Style("purple", "square-open", "8 2 2 2"),
}


def nearest() -> list[Panel]:
    """The share of the 10 nearest among the first 100, by bits: Hamming distances, outputs."""
    own = [
        one
        for one in records("neighbors.jsonl")
        if (one["data"], one["train"], one["base"]) == ("glove-100", 100_000, 100_000)
    ]
    plots: list[Panel] = []
    for title, kind in (("Hamming distances", "hamming"), ("Outputs against codes", "asymmetric")):
        series = []
        for method, line in NEAREST.items():
            shares: dict[int, list[float]] = {}
            for one in own:
                if one["method"] == method and one.get(kind):
                    shares.setdefault(one["bits"], []).append(one[kind]["100"])
            if shares:
                x = sorted(shares)
                y = [float(np.mean(shares[bits])) for bits in x]
                series.append(Series(method, line, x, y))
        plots.append(Plot(title, "bits", "of the 10 nearest, in 100", series))
    return plots


def bits() -> list[Panel]:
    """The share of the 10 nearest among the first 10 over the bytes, one plot per data set.

    Vectors of texts and pictures come first. One curve per method, by the best of its distances:
    means over the seeds, as many as the title says. NeighborHash's is that of a GPU.
    """
    every = [
        {**one, "distance": "best", **max(one["by"].values(), key=lambda own: own["10@10"])}
        for one in means(of_best_quality(learnt_from_all(files.read(BITS_FILE))))
    ]
    every.sort(key=lambda row: row["bytes"])
    methods = sorted({row["method"] for row in every})
    plots = []
    for data in sorted({row["data"] for row in every}, key=lambda name: (name not in REAL, name)):
        own = [row for row in every if row["data"] == data]
        fewest, most = (of(row["seeds"] for row in own) for of in (min, max))
        seeds = count(most, "seed") if fewest == most else f"{fewest} to {count(most, 'seed')}"
        curves = bit_curves(own, "10@10", methods)
        label = "of the 10 nearest, in the first 10"
        plots.append(Plot(f"{data}, {seeds}", "bytes", label, curves, x_log=True))
    return plots


ASKED = {  # by whom, in the records of both studies
    "vectors": Style("muted", dashes="2 3"),
    "codes of documents: outputs": Style("orange", "circle"),
    "pairs: tables": Style("blue", "square"),
    "pairs and the codes' model: tables": Style("green", "up"),
    "new model's own codes: outputs": Style("orange", "circle"),
    "old vectors: least squares": Style("muted", "diamond-open", "6 4"),
    "old codes: tables": Style("blue", "square"),
    "new documents among old: tables": Style("purple", "up"),
}


def asking() -> list[Panel]:
    """Shares of queries whose row is among the first 1, 10 and 100, and among the first 10.

    Of the large sets, with 128 bits, seed 0, which all have.
    """
    plots: list[Panel] = []
    every = [
        one
        for one in records("queries.jsonl")
        if (one["bits"], one["seed"], one.get("device")) == (128, 0, "cuda")
    ]
    for one in sorted((r for r in every if r["study"] == "pairs"), key=lambda r: r["data"]):
        lines = [
            Series(name, drawn, [1, 10, 100], one["found"][name])
            for name, drawn in ASKED.items()
            if name in one["found"]
        ]
        plots.append(Plot(one["data"], "first", "of queries", lines, x_log=True))
    for data in sorted({r["data"] for r in every if r["study"] == "change"}):
        own = sorted((r for r in every if r["data"] == data), key=lambda r: r["common"] or 0)
        own = [r for r in own if r["study"] == "change"]
        lines = []
        for name, drawn in ASKED.items():
            known = [r for r in own if name in r["found"]]
            if known:
                shares = [r["found"][name][1] for r in known]
                lines.append(Series(name, drawn, [r["common"] for r in known], shares))
        plots.append(Plot(data, "common documents", "in first 10", lines, x_log=True))
    return plots


def optima() -> list[Panel]:
    """Loss and precision over the bits, from the main table of that page."""
    lines = (DOCS / "tables" / "optima.md").read_text("utf-8").splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = [row for row in rows if row[0].isdigit()]
    plots: list[Panel] = []
    for title, label, column in (("L(h)", "loss", 2), ("Precision at 100", "precision", 4)):
        series = []
        for method, line in (("MACrefined",) * 2, ("MACcut",) * 2, ("CCA-ITQ", "CCAITQ")):
            own = [row for row in rows if row[1] == method]
            x, y = [int(row[0]) for row in own], [float(row[column]) for row in own]
            series.append(Series(method, style(line), x, y))
        plots.append(Plot(title, "bits", label, series))
    return plots


OF_NETWORKS = {
    "linear": Style("blue", "square", "5 3"),
    "rbf": Style("green", "up-open", "6 3"),
    "network": Style("vermillion", "circle"),
    "network, rank": Style("purple", "diamond-open", "3 2"),
}
RANKS = (100, 500, 1000, 2000)  # at which those records have precision


def networks() -> list[Panel]:
    """Precision over k with 32 bits, one plot per data set; over the bits on CIFAR-10's features.

    Means over the seeds.
    """
    titles = {
        "cifar10-gist": "CIFAR-10, GIST",
        "mnist": "MNIST",
        "infinite-mnist": "Infinite MNIST",
    }
    means: dict[tuple[str, str, int], list[float]] = {}
    for one in records("networks.jsonl"):
        place = one["data"], one["method"], one["bits"]
        own = [r for r in records("networks.jsonl") if (r["data"], r["method"], r["bits"]) == place]
        means[place] = np.mean([r["precision"] for r in own], axis=0).tolist()
    plots: list[Panel] = []
    for data, title in titles.items():
        lines = [
            Series(method, line, RANKS, means[data, method, 32])
            for method, line in OF_NETWORKS.items()
            if (data, method, 32) in means
        ]
        plots.append(Plot(f"{title}, 32 bits", "k", "precision at k", lines, x_log=True))
    lines = []
    for method, line in OF_NETWORKS.items():
        sizes = sorted(b for data, m, b in means if (data, m) == ("cifar10-gist", method))
        y = [means["cifar10-gist", method, b][0] for b in sizes]
        lines.append(Series(method, line, sizes, y))
    return [*plots, Plot("CIFAR-10, GIST", "bits", "precision at 100", lines)]


UNSEEN = {  # methods by the number of bits that learn from labels, or by how much neighbours count
    "network beside PCARR: 0, 8, 16, 24, 32 bits by labels": (
        Style("vermillion", "circle"),
        ("PCARR", *(f"network, ksh, beside PCARR, {s}" for s in (0.25, 0.5, 0.75)), "network, ksh"),
    ),
    "linear MACrefined beside PCARR, the same": (
        Style("blue", "square", "5 3"),
        ("PCARR", *(f"MACrefined beside PCARR, {s}" for s in (0.25, 0.5, 0.75)), "MACrefined"),
    ),
    "rank of classes and neighbours: 0, .5, .8, .9": (
        Style("purple", "diamond-open", "3 2"),
        ("rank of the classes", *(f"rank, neighbors={s}" for s in (0.5, 0.8, 0.9))),
    ),
    "MACcut": (Style("ink", "down", joined=False), ("MACcut",)),
    "ITQ": (Style("green", "up", joined=False), ("ITQ",)),
    "NeighborHash, linear": (Style("orange", "up-open", joined=False), ("NeighborHash, linear",)),
}


def unseen() -> list[Panel]:
    """Unseen classes over seen ones, each point a method: means over the seeds."""
    plots: list[Panel] = []
    for title, measure in (("Precision at 100", "100"), ("At 1,000", "1000"), ("mAP", "mAP")):
        lines = []
        for label, (drawn, methods) in UNSEEN.items():
            own = [[r for r in records("unseen.jsonl") if r["method"] == m] for m in methods]
            x, y = (
                [float(np.mean([r[part][measure] for r in runs])) for runs in own]
                for part in ("seen", "unseen")
            )
            lines.append(Series(label, drawn, x, y))
        plots.append(Plot(title, "classes seen", "unseen", lines))
    return plots


SIMPLE = {
    "product quantisation": Style("purple", "down"),  # in parts of 8 bits
    "LSH": Style("muted", "", "2 3"),
    "PCARR": Style("sky", "", "8 2 2 2"),
    "ITQ": Style("green", "up", "5 3"),
    "NeighborHash, network": Style("indigo", "square"),
    "MACHash, from Euclidean neighbours, linear": Style("ink", "diamond-open", "6 3"),
    "MACHash, from labels, linear": Style("orange", "diamond"),
    "MACHash, from labels, rbf": Style("vermillion", "circle"),
}


def comparison() -> list[Panel]:
    """Results of the same class, and nearest points, over the bits: from the table of that page."""
    lines = (DOCS / "tables" / "comparison.md").read_text("utf-8").splitlines()
    heads, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)
    plots: list[Panel] = []
    for column in (heads.index(h) for h in heads[2:-1]):
        series = []
        for method, line in SIMPLE.items():
            own = [row for row in rows if method in row[1] and "of 4 bits" not in row[1]]
            x, y = [int(row[0]) for row in own], [float(row[column]) for row in own]
            series.append(Series(method, line, x, y))
        plots.append(Plot(heads[column].capitalize(), "bits", "share", series))
    return plots


def verdicts() -> list[Panel]:
    """Every claim of every figure: held (blue), not held (vermillion), neither (empty).

    Paler where runs are missing that would say something about it. A panel for each order and h
    step that most figures were run with.
    """
    made = runpy.run_path(str(DOCS / "verdicts.py"))
    every = {name: made["results_of"](one, name) for name, one in made["FIGURES"].items()}
    panels: list[Panel] = []
    shades = {"held": -0.8, "not held": 0.8, "so far held": -0.35, "so far not held": 0.35}
    for kind, words_of_kind in made["COLUMNS"].items():
        if 2 * sum(kind in results for results in every.values()) < len(every):
            continue
        rows = {}
        for name, figure in made["FIGURES"].items():
            results = every[name].get(kind, {"verdicts": []})
            words = {verdict["claim"]: verdict["verdict"] for verdict in results["verdicts"]}
            rows[name] = [shades.get(words.get(claim.words, ""), 0.0) for claim in figure.claimed]
        most = max(map(len, rows.values()))
        values = [row + [0.0] * (most - len(row)) for row in rows.values()]
        setting = words_of_kind.removeprefix("blocks in ").removesuffix(" h step")
        panels.append(Grid(setting, list(rows), values, "claims"))
    return panels


def standalone(plots: Sequence[Plot]) -> str:
    """The plots side by side above one legend: an SVG file that brings its own colours."""
    panels = [
        f'<svg x="{at * WIDTH}" width="{WIDTH}" height="{HEIGHT}">{draw(plot)}</svg>'
        for at, plot in enumerate(plots)
    ]
    wide, line, across = len(plots) * WIDTH, 18, 3
    legend = []
    for at, series in enumerate(plots[0].series):
        x, y = LEFT + (at % across) * (wide - LEFT) // across, HEIGHT + 8 + (at // across) * line
        piece = f'<svg x="{x}" y="{y}" width="36" height="14">{key(series.style)}</svg>'
        legend.append(f'{piece}<text x="{x + 42}" y="{y + 11}">{escape(series.label)}</text>')
    high = HEIGHT + 16 + -(-len(legend) // across) * line
    colours = {**COLOURS, "edge": EDGE, "paper": PAPER}
    light, dark = ("".join(f"--{n}:{v[at]};" for n, v in colours.items()) for at in (0, 1))
    rules = f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}{look()}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}"><style>{rules}</style>'
        '<rect fill="var(--paper)" width="100%" height="100%"/>'
        f"{''.join(panels)}{''.join(legend)}</svg>\n"
    )


DRAWN: dict[str, Callable[[], Sequence[Panel]]] = {
    "compared": compared,
    "path": path,
    "maps": maps,
    "maps-mnist": mnist,
    "curves": curves,
    "sketch": sketch,
    "refined": refined,
    "setting-couples": couples,
    "setting-codes": codes,
    "setting-sweeps": sweeps,
    "setting-paths": paths,
    "setting-ways": ways,
    "neighbors": nearest,
    "bits": bits,
    "asking": asking,
    "optima": optima,
    "networks": networks,
    "unseen": unseen,
    "comparison": comparison,
    "verdicts": verdicts,
}


def main(names: Sequence[str]) -> None:
    for name in names or (*DRAWN, README):
        if name == README:
            (PICTURES / f"{name}.svg").write_text(standalone(compared()), "utf-8")
        else:
            (PICTURES / f"{name}.html").write_text(html(DRAWN[name]()), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
