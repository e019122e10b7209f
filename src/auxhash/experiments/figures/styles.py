"""One look per method in all figures: colours near Okabe and Ito's, and markers."""

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
}
OTHERWISE = Style("muted", "down-open")

DASHES = {"rbf": "", "linear": "5 3", "bound": "1.5 3", "many centres": MIXED, "LIBSVM": SHORT}
KINDS = {
    "linear": "linear",
    "rbf": "kernel",
    "many centres": "kernel, many centres",
    "LIBSVM": "kernel, LIBSVM",
}


def style(method: str, kind: str = "") -> Style:
    """A method's look; where the figure shows several hash functions, `kind` makes the dashes."""
    known = STYLES.get(method, OTHERWISE)
    return replace(known, dashes=DASHES[kind]) if kind else known


def label(method: str, kind: str = "") -> str:
    """A method's name in legends and tables."""
    return f"{method}, {KINDS[kind]}" if kind else method
