"""Configuration of Sphinx for these pages; `make docs` runs it."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import auxhash

project = "auxhash"
author = "the auxhash authors"
copyright = author  # noqa: A001
version = release = auxhash.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "tables", "pictures", "results", "summary"]

html_theme = "furo"
html_title = f"auxhash {version}"
html_static_path = ["_static", "../src/auxhash/experiments/svg.css"]
html_css_files = ["svg.css", "plots.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"  # the browser's own: pages need no script and no network

autodoc_mock_imports = ["torch"]  # the pages of auxhash.torch are made without PyTorch
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 88
napoleon_use_ivar = True
napoleon_use_rtype = False
nitpicky = True
# Names that are other projects', or private to a module.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!auxhash\.).*"),
    (
        r"py:.*",
        r"auxhash\..*\.(Run|Graph|ComparedRows|FeatureMap|Coded|Class|Address|Computed|Device|Hyperplanes|Position|Shuffled)",
    ),
]


def plain_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: Any) -> None:
    """Docstrings here are plain text: names in single backticks, formulas indented."""
    plain: list[str] = []
    headed = False  # whether an indented line belongs to a heading such as "Args:"
    literal = False
    for line in lines:
        indented = line.startswith("    ")
        if line and not indented:
            headed, literal = (
                bool(re.fullmatch(r"(Args|Attributes|Raises|Examples?):", line)),
                False,
            )
        elif indented and not headed and not literal and not (plain and plain[-1].strip()):
            literal = True
            plain += ["::", ""]
        if not literal:
            line = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line)
            parts = re.split(r"(``.+?``)", line)
            parts[::2] = [
                re.sub(r"([*|])", r"\\\1", re.sub(r"_\b(?!\w)", r"\\_", part))
                for part in parts[::2]
            ]
            line = "".join(parts)
        plain.append(line)
    lines[:] = plain


def short_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: Any, returns: Any
) -> Any:
    """Shorten NumPy's types in signatures."""
    array = r"~numpy\.ndarray\[.*?, ~numpy\.dtype\[([^\]]+)\]\]"

    def short(text: str | None) -> str | None:
        return text and re.sub(array, r"NDArray[\1]", text.replace("~numpy.typing.", ""))

    return short(signature), short(returns)


def mathml(node: nodes.Node, block: bool) -> str:
    """The formula; brackets next to an exponent keep their size."""
    return re.sub(
        r"<mo[^>]*>([{}‖|])</mo>",
        r'<mo stretchy="false">\1</mo>',
        tex2mathml(node.astext(), as_block=block),
    )


def inline_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def block_math(self: Any, node: nodes.math_block) -> None:
    """The formula; each of its parts (between \\quad) may stand on a line of its own."""
    parts = re.split(r"\\q?quad", node.astext())
    drawn = "".join(mathml(nodes.math_block("", part.strip()), block=True) for part in parts)
    self.body.append(f'<div class="math">{drawn}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", short_signature)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
