"""One look per method in all figures: colours near Okabe and Ito's, and markers."""

from collections.abc import Iterable
from dataclasses import replace

from auxhash.experiments.svg import Style

COLOURS = {
    "vermillion": ("#d55e00", "#ff6a1a"),  # light, dark
    "blue": ("#0061a8", "#3f8ff0"),
    "purple": ("#cc79a7", "#e39ac4"),
    "sky": ("#45b4e8", "#7fd4f5"),
    "green": ("#009e73", "#22c096"),
    "orange": ("#f0a800", "#ffb833"),
    "yellow": ("#9aa800", "#d6ea3c"),  # darker than theirs, which cannot be seen on white
    "wine": ("#8a1c4a", "#d0487e"),
    "indigo": ("#5b2fc4", "#a48bff"),
    "brown": ("#7a4a1e", "#a87b4f"),
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#6b7280", "#9aa3ae"),
    # For pages with many methods: as far as can be from those above, and from each other.
    "magenta": ("#b020cc", "#c43be0"),
    "forest": ("#055b10", "#408b42"),
    "plum": ("#4e326d", "#8a74a7"),
    "pink": ("#e44be4", "#f960f8"),
    "olive": ("#567914", "#adce85"),
    "teal": ("#01555e", "#3f838d"),
    "brick": ("#b71d00", "#cc361e"),
    "lime": ("#02b827", "#32cc3f"),
    "ochre": ("#9f8237", "#bfa157"),
    "rose": ("#f53d75", "#f96b8c"),
    "lilac": ("#9f61ad", "#f3beff"),
    "aubergine": ("#851286", "#c36dc1"),
    "azure": ("#457ec9", "#75b0ff"),
    "fuchsia": ("#d806a1", "#ed30b4"),
    "sand": ("#c6957c", "#e7b49a"),
    "violet": ("#844ae3", "#965ef8"),
}

LONG, SHORT, MIXED = "8 3", "3 2", "8 2 2 2"

# Methods that stand in one panel of the paper have a colour each. Dashed lines are drawn above
# solid ones, so that of two equal curves both are seen.
STYLES = {
    "MACcut": Style("vermillion", "circle"),
    "cut": Style("blue", "circle-open", SHORT),
    "MACquad": Style("purple", "square"),
    "quad": Style("ink", "square-open", SHORT),
    "MACrefined": Style("wine", "diamond"),
    "MAC": Style("brown", "up-open", LONG),
    "MACrefined, kernels": Style("ink", "diamond"),
    "KSH": Style("sky", "down"),
    "ITQ": Style("green", "up"),
    "NeighborHash": Style("indigo", "square"),
    "CCAITQ": Style("indigo", "down-open", LONG),
    "BRE": Style("orange", "diamond-open", LONG),
    "STH": Style("yellow", "up-open", SHORT),
    "OneHot": Style("muted", "cross", MIXED),
    "TPCA": Style("sky", "up"),
    "SH": Style("orange", "square"),
    "AGH": Style("blue", "cross", MIXED),
    "SPH": Style("yellow", "square-open", LONG),
    "BinaryAutoencoder": Style("brown", "up"),
    "TSH": Style("sky", "circle-open", SHORT),
    "FastHash": Style("ink", "up", MIXED),
    "LSH": Style("muted", "square"),
    "PCARR": Style("green", "square-open", LONG),
    "LogitLSH": Style("muted", "diamond-open", LONG),
    "SDH": Style("indigo", "circle"),
    "ILH": Style("wine", "down-open", SHORT),
    "free codes": Style("green", "diamond"),
    "NeighborHash, network": Style("vermillion", "diamond"),
    "NeighborHash, linear": Style("indigo", "up"),
    "signs": Style("ink", "cross"),
    "PQ": Style("blue", "down"),
    "OPQ": Style("sky", "diamond"),
    "RaBitQ": Style("orange", "square-open"),
    "RQ": Style("brown", "circle"),
    "LSQ": Style("purple", "diamond-open"),
    "MACrefined, network": Style("violet", "circle"),
    "vectors": Style("muted", "", SHORT),
}
OTHERS = [
    Style("muted", marker)
    for marker in ("down-open", "circle", "square-open", "up", "diamond-open", "square")
]

DASHES = {"rbf": "", "linear": "5 3", "bound": "1.5 3", "many centres": MIXED, "LIBSVM": SHORT}
KINDS = {
    "linear": "linear",
    "rbf": "kernel",
    "many centres": "kernel, many centres",
    "LIBSVM": "kernel, LIBSVM",
}


def looks(methods: Iterable[str]) -> dict[str, Style]:
    """The look of each method of a page; no two have one colour while there are colours left."""
    every = dict.fromkeys(methods)
    free = [colour for colour in COLOURS if colour not in {style(m).colour for m in every}]
    shown: dict[str, Style] = {}
    for method in sorted(every, key=lambda method: method not in STYLES):
        look = style(method)
        if method not in STYLES:
            look = OTHERS[len(shown) % len(OTHERS)]
        if free and (method not in STYLES or look.colour in {s.colour for s in shown.values()}):
            look = replace(look, colour=free.pop(0))
        shown[method] = look
    return shown


def style(method: str) -> Style:
    """A method's look, wherever its colour is not that of another method of the page."""
    return STYLES.get(method, OTHERS[0])


def dashed(look: Style, kind: str) -> Style:
    """The look with the dashes of a hash function, where the figure shows several."""
    return replace(look, dashes=DASHES[kind]) if kind else look


def label(method: str, kind: str = "") -> str:
    """A method's name in legends and tables."""
    return f"{method}, {KINDS[kind]}" if kind else method
