"""One look per method in all figures: the paper's colours, in the palette of Okabe and Ito."""

from auxhash.experiments.svg import Style

COLOURS = {
    "vermillion": ("#d55e00", "#ff7a1f"),  # light, dark
    "blue": ("#0072b2", "#4aa8e0"),
    "purple": ("#cc79a7", "#e39ac4"),
    "sky": ("#3ba0da", "#56b4e9"),
    "green": ("#009e73", "#22c096"),
    "orange": ("#e69f00", "#f2b632"),
    "yellow": ("#b5a400", "#f0e442"),  # darker than theirs, which cannot be seen on white
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#6b7280", "#9aa3ae"),
}

STYLES = {
    "MACcut": ("vermillion", "circle"),
    "cut": ("blue", "circle-open"),
    "MACquad": ("purple", "square"),
    "quad": ("ink", "square-open"),
    "KSH": ("sky", "diamond"),
    "ITQ": ("green", "up"),
    "CCAITQ": ("green", "down-open"),
    "BRE": ("orange", "diamond-open"),
    "STH": ("yellow", "up-open"),
    "OneHot": ("muted", "cross"),
    "MAC": ("vermillion", "up-open"),
    "MACrefined": ("vermillion", "diamond-open"),
    "TPCA": ("sky", "down"),
    "SH": ("orange", "square"),
    "AGH": ("blue", "cross"),
    "SPH": ("yellow", "square-open"),
    "BinaryAutoencoder": ("purple", "up"),
    "free codes": ("green", "diamond"),
}
OTHERWISE = ("muted", "down-open")

DASHES = {"linear": "5 3", "bound": "1.5 3"}
KINDS = {"linear": "linear", "rbf": "kernel"}


def style(method: str, kind: str = "") -> Style:
    """A method's look; `kind` is the hash function where the figure shows several."""
    colour, marker = STYLES.get(method, OTHERWISE)
    return Style(colour, marker, DASHES.get(kind, ""))


def label(method: str, kind: str = "") -> str:
    """A method's name in legends and tables."""
    return f"{method}, {KINDS[kind]}" if kind else method
