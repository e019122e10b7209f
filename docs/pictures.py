"""The pictures of the documentation: python docs/pictures.py [NAME ...].

Writes docs/pictures/NAME.html, SVG that takes its colours from the page.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

import numpy as np

from auxhash import MACHash, datasets, losses
from auxhash.experiments.figures.sketch import Draw, plane_plot, space_plot
from auxhash.experiments.svg import Plot, Series, Style, draw, key

PICTURES = Path(__file__).parent / "pictures"


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


DRAWN: dict[str, Callable[[], list[Plot]]] = {
    "path": path,
    "curves": curves,
    "sketch": sketch,
    "refined": refined,
}


def html(plots: Iterable[Plot]) -> str:
    """The plots side by side, and one legend for them all."""
    plots = list(plots)
    looks = dict.fromkeys((s.label, s.style) for plot in plots for s in plot.series if s.keyed)
    legend = "".join(f"<li>{key(look)}{escape(label)}</li>" for label, look in looks)
    drawn = "\n".join(draw(plot) for plot in plots)
    return f'<div class="plots">\n{drawn}\n</div>\n<ul class="plot-legend">{legend}</ul>\n'


def main(names: Sequence[str]) -> None:
    for name in names or DRAWN:
        (PICTURES / f"{name}.html").write_text(html(DRAWN[name]()), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
