"""The pictures of the documentation: python docs/pictures.py [NAME ...].

Writes docs/pictures/NAME.html, SVG that takes its colours from the page; `readme` writes README's,
docs/pictures/readme.svg, from the numbers in docs/results.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from auxhash import MACHash, datasets, losses
from auxhash.experiments.figures.sketch import Draw, plane_plot, space_plot
from auxhash.experiments.figures.styles import COLOURS, style
from auxhash.experiments.svg import HEIGHT, LEFT, WIDTH, Plot, Series, Style, draw, key, look

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
README = "readme"


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
        found = [round(facts[name][1], 6) for name in ("two-step", "MAC", "nearest realizable")]
        if found[1] < min(found[0], found[2]):
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
    "KSH": "KSH, kernels",
    "OneHot": "one-hot classifier",
}
EDGE, PAPER = ("#d8dbdf", "#343a40"), ("#fdfdfc", "#14171a")  # light, dark


def html(plots: Iterable[Plot]) -> str:
    """The plots side by side, and one legend for them all."""
    plots = list(plots)
    looks = dict.fromkeys((s.label, s.style) for plot in plots for s in plot.series if s.keyed)
    legend = "".join(f"<li>{key(look)}{escape(label)}</li>" for label, look in looks)
    drawn = "\n".join(draw(plot) for plot in plots)
    return f'<div class="plots">\n{drawn}\n</div>\n<ul class="plot-legend">{legend}</ul>\n'


def compared() -> list[Plot]:
    """Precision over the bits and over k, on CIFAR at the paper's size: means over the seeds."""
    text = (DOCS / "results" / "sup-comparison.json").read_text("utf-8")
    found = [one for one in json.loads(text)["results"] if one["method"] in COMPARED]
    by_bits = Plot("Precision at 100", "bits", "precision", _each(found, "bits", None, "100"))
    by_k = Plot("32 bits", "k", "precision at k", _each(found, "k", 32, None), x_log=True)
    return [by_bits, by_k]


def _each(found: list[dict[str, Any]], over: str, bits: int | None, k: str | None) -> list[Series]:
    """One series per method over bits or over k, the other one fixed."""
    series = []
    for method, told in COMPARED.items():
        points = [
            (one["bits"] if over == "bits" else int(rank), float(np.mean(precision)))
            for one in found
            if one["method"] == method and bits in (None, one["bits"])
            for rank, precision in one["precision"].items()
            if k in (None, rank)
        ]
        x, y = zip(*sorted(points), strict=True)
        series.append(Series(told, style(method), x, y))
    return series


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


DRAWN: dict[str, Callable[[], list[Plot]]] = {
    "compared": compared,
    "path": path,
    "curves": curves,
    "sketch": sketch,
    "refined": refined,
}


def main(names: Sequence[str]) -> None:
    for name in names or (*DRAWN, README):
        if name == README:
            (PICTURES / f"{name}.svg").write_text(standalone(compared()), "utf-8")
        else:
            (PICTURES / f"{name}.html").write_text(html(DRAWN[name]()), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
