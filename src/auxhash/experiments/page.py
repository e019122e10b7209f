"""A figure's report: one self-contained HTML page, in light and dark colours."""

import base64
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from auxhash.experiments.claims import Verdict
from auxhash.experiments.figures.figure import FigureContent, QueryExample, Section, Table
from auxhash.experiments.figures.styles import COLOURS
from auxhash.experiments.gallery import Gallery, Strip
from auxhash.experiments.svg import WIDER, WIDTH, Plot, Series, draw, key, look
from auxhash.files.png import write_png

MARKS = {
    "held": ("held", "✓"),
    "not held": ("failed", "✗"),
    "not tested": ("untested", "?"),
    "not judged": ("untested", "\N{EN DASH}"),
}
MAX_PLOTS_PER_ROW = 4  # five stand in two rows, three and two
SMOOTH_FROM_PIXELS = 48  # of height: smaller pictures are enlarged, their pixels sharp
NUMBER = re.compile(r"[-+]?[\d.,]+(%|[kMG]| [kMG]?B)?|-|")


def page(name: str, title: str, about: str, content: FigureContent, command: str) -> str:
    """The complete page; `command` is what made it."""
    body = [
        f"<header><h1>{escape(title)}</h1>",
        f'<p class="about">{escape(about)} Made by <code>{escape(command)}</code></p></header>',
        *(f'<p class="notice">{escape(note)}</p>' for note in content.notes),
        *(drawn_section(section) for section in content.sections),
        _verdicts(content.verdicts),
        *(_gallery(gallery, content.shown) for gallery in content.galleries),
        _examples(content.examples, content.shown),
        f"<section><h2>How it was run</h2>{_protocol(content.protocol)}</section>",
    ]
    return document(name, body)


def document(title: str, body: Iterable[str]) -> str:
    """A complete page of these parts, with the style of all."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(title)}</title><style>{_colours()}{_style()}</style></head>\n"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def fragment(sections: Sequence[Section], protocol: Sequence[tuple[str, str]]) -> str:
    """Sections and protocol inside another page, such as a notebook, whose style stays its own."""
    body = "".join(map(drawn_section, sections))
    return (
        f"<style>.auxhash{{{_colours_of(0)}--paper:#fdfdfc;--edge:#d8dbdf;color-scheme:light;"
        f"color:var(--ink);background:var(--paper);padding:0.5rem 1rem}}.auxhash{{{_style()}}}"
        f'</style><div class="auxhash">{body}<details><summary>How it was run</summary>'
        f"{_protocol(protocol)}</details></div>"
    )


def _style() -> str:
    return look() + files("auxhash.experiments").joinpath("page.css").read_text("utf-8")


def _colours() -> str:
    light, dark = map(_colours_of, (0, 1))
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def _colours_of(theme: int) -> str:
    return "".join(f"--{name}:{pair[theme]};" for name, pair in COLOURS.items())


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    rows = []
    for verdict in verdicts:
        kind, mark = MARKS[verdict.word]
        asked = ' <span class="asked">(asked by us)</span>' if verdict.ours else ""
        rows.append(
            f'<tr class="{kind}"><td class="verdict"><span aria-hidden="true">{mark}</span> '
            f"{verdict.word}</td><td>{escape(verdict.words)}{asked}</td>"
            f"<td>{escape(verdict.numbers)}</td></tr>"
        )
    return (
        '<section><h2>What the paper says, and what these runs say</h2><div class="wide">'
        '<table class="verdicts"><thead><tr><th>Verdict</th><th>Claim</th><th>Numbers</th></tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def drawn_section(section: Section) -> str:
    """A section as HTML: its plots with one legend, its table, the numbers folded away."""
    note = f'<p class="note">{escape(section.note)}</p>' if section.note else ""
    # One plot per row would be a column beside an empty page: then all stand in one row.
    columns = max(map(len, section.rows), default=0)
    columns = columns if columns > 1 else len(section.plots)
    columns = math.ceil(columns / math.ceil(columns / MAX_PLOTS_PER_ROW)) if columns else 0
    width = WIDER.get(columns, WIDTH)
    plots = "".join(f"<figure>{draw(plot, width)}</figure>" for plot in section.plots)
    tables = "".join(_behind(plot) for plot in section.plots if plot.listed)
    behind = f"<details><summary>The numbers</summary>{tables}</details>" if tables else ""
    table = _table(section.table) if section.table else ""
    grid = f'<div class="plots" style="--columns:{columns}">{plots}</div>' if plots else ""
    kind = "drawn alone" if columns == 1 else "drawn"
    drawn = f'<div class="{kind}">{_legend(section.plots)}{grid}</div>' if plots else ""
    return f"<section><h2>{escape(section.title)}</h2>{note}{drawn}{table}{behind}</section>"


def _legend(plots: Iterable[Plot]) -> str:
    looks = dict.fromkeys((s.label, s.style) for plot in plots for s in plot.series if s.keyed)
    items = "".join(f"<li>{key(style)}{escape(label)}</li>" for label, style in looks if label)
    return f'<ul class="legend">{items}</ul>' if items else ""


def _behind(plot: Plot) -> str:
    """The plot's numbers: one row per method and, if all have the same x, one column per x."""
    same = len({tuple(series.x) for series in plot.series}) == 1
    head = f"<h3>{escape(plot.title)}: {escape(plot.y_label)}</h3>"
    if same:
        columns = [plot.x_label, *map(_number, plot.series[0].x)]
        rows = [[s.label, *(_value(s, at) for at in range(len(s.y)))] for s in plot.series]
    else:
        columns = ["", f"({plot.x_label}, {plot.y_label})"]
        rows = [
            [
                s.label,
                "; ".join(f"{_number(x)}, {_number(y)}" for x, y in zip(s.x, s.y, strict=True)),
            ]
            for s in plot.series
        ]
    return head + _table(Table(columns, rows))


def _value(series: Series, at: int) -> str:
    text = _number(series.y[at])
    if len(series.low):
        text += f" ({_number(series.low[at])} to {_number(series.high[at])})"
    return text


def _number(value: float) -> str:
    """Digits without an exponent, as tables on the terminal have them."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _table(table: Table) -> str:
    """The table; columns of numbers stand to the right."""
    right = [
        ' class="number"' if all(NUMBER.fullmatch(row[at]) for row in table.rows) else ""
        for at in range(len(table.columns))
    ]

    def cells(kind: str, texts: Sequence[str]) -> str:
        every = zip(right, texts, strict=True)
        return "".join(f"<{kind}{side}>{escape(text)}</{kind}>" for side, text in every)

    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    head = f"<thead><tr>{cells('th', table.columns)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>'


def _gallery(shown: Gallery, which: str) -> str:
    head = f"<section><h2>Queries and what comes first: {escape(shown.title)}</h2>"
    if shown.why_none:
        return f'{head}<p class="note">{escape(shown.why_none)}</p></section>'
    blocks = []
    for query, strips in shown.queries:
        rows = "".join(
            f"<tr><th>{escape(strip.label)}</th><td>{_strip(strip)}</td>"
            f"<td>{sum(strip.right)} of {len(strip.right)}</td></tr>"
            for strip in strips
        )
        blocks.append(
            f'<div class="query"><div class="asked-for">{_strip(query, marked=False)}'
            f"<div>query</div></div><table>{rows}</table></div>"
        )
    note = (
        "Queries on which the methods differ most, and the first ten retrieved, nearest first; the "
        f"bar below a picture says right or wrong. {which}"
    )
    return f'{head}<p class="note">{note}</p><div class="queries">{"".join(blocks)}</div></section>'


def _examples(examples: Sequence[QueryExample], which: str) -> str:
    """The first query is open; a reader unfolds the others."""
    blocks = []
    for at, example in enumerate(examples):
        lists = "".join(
            f"<div><h3>{escape(each.label)}</h3><ol>"
            + "".join(
                f'<li class="{"right" if right else "wrong"}" title="{escape(text)}">'
                f"{escape(text)}</li>"
                for text, right in each.hits
            )
            + "</ol></div>"
            for each in example.lists
        )
        opened = "" if at else " open=''"
        blocks.append(
            f'<details class="example"{opened}><summary>{escape(example.query)}</summary>'
            f'<div class="lists">{lists}</div></details>'
        )
    if not blocks:
        return ""
    note = "The first ten of each list, nearest first; faint ones are not among the true ten."
    return (
        f'<section><h2>Queries and what comes first</h2><p class="note">{note} {which}</p>'
        f"{''.join(blocks)}</section>"
    )


def _strip(strip: Strip, marked: bool = True) -> str:
    data = base64.b64encode(write_png(strip.pixels)).decode()
    marks = "".join(
        f'<i class="{"right" if right else "wrong"}">{"✓" if right else "✗"}</i>'
        for right in strip.right
    )
    right = f"{sum(strip.right)} of {len(strip.right)} right" if marked else strip.label
    sharp = ' class="sharp"' if strip.pixels.shape[0] < SMOOTH_FROM_PIXELS else ""
    image = f'<img{sharp} alt="{escape(right)}" src="data:image/png;base64,{data}"/>'
    below = f'<div class="marks">{marks}</div>' if marked else ""
    return f'<div class="strip" style="--n:{len(strip.right)}">{image}{below}</div>'


def _protocol(lines: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines)
    return f"<dl>{items}</dl>"
