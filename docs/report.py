"""Make the results of the reproduction as one document: python docs/report.py, or make report.

Writes docs/_build/report.html, which needs no network: abstract, question, setting, what held, what
did not and why, then every figure with its curves and verdicts, and what differs. All of it is made
of docs/results; the words are those of docs/verdicts.md and docs/setting.md, the tables of claims
those of docs/summary.py.
"""

import re
import runpy
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from auxhash.compute.version import __version__
from auxhash.experiments.figures.figure import GroupFigure
from auxhash.experiments.groups import PAPERS
from auxhash.experiments.page import document, drawn_section

DOCS = Path(__file__).parent
OUTPUT = DOCS / "_build" / "report.html"
TITLE = "Affinity-based binary hashing by auxiliary coordinates: what holds when it is done again"
CITATION = (
    "R. Raziperchikolaei and M. Á. Carreira-Perpiñán, “Optimizing affinity-based binary hashing "
    "using auxiliary coordinates”, NIPS 2016."
)
SUMMARY = runpy.run_path(str(DOCS / "summary.py"))
VERDICTS: dict[str, Any] = SUMMARY["VERDICTS"]
COLUMNS: dict[Any, str] = VERDICTS["COLUMNS"]
WHERE_MAC_STARTS, DIFFERS = "Where MAC starts", "Appendix: what differs from the paper"
GAINS, WHY = "What MAC gains", "Why claims fail"
FIGURE_TITLES = {
    name: f"{figure.number}, {name}. {figure.title}" for name, figure in VERDICTS["FIGURES"].items()
}
# Sections of the report that links of the pages lead to; other links are words here.
LINKS = {
    "#how-to-read-the-tables": "how-the-claims-are-judged",
    "#the-h-step": "the-h-step",
    "#what-differs": "appendix-what-differs-from-the-paper",
    "setting.md": "where-mac-starts",
    **{f"#{SUMMARY['anchor'](SUMMARY['heading_of'](name))}": name for name in VERDICTS["FIGURES"]},
    **{f"#{SUMMARY['anchor'](name)}": SUMMARY["anchor"](name) for name in SUMMARY["REASONS"]},
}
STYLE = """<style>
section p, section ul, section ol { max-width: 50rem }
.contents { columns: 2 18rem; column-gap: 2.5rem; max-width: 60rem; padding-left: 1.2rem }
.contents li { font-size: 0.9rem }
td:first-child { min-width: 4.5rem }
</style>"""


def main(output: Path = OUTPUT) -> None:
    """Write the report."""
    results = {name: _results(figure) for name, figure in VERDICTS["FIGURES"].items()}
    verdicts, setting = (parts((DOCS / f"{name}.md").read_text("utf-8")) for name in PAGES)
    numbered = {
        "Question": verdicts["Question"],
        "Setting": f"{verdicts['Setting']}\n\n{data_table(results)}",
        "How the claims are judged": verdicts["How to read the tables"],
        GAINS: verdicts[GAINS],
        "What held": unfolded(verdicts["What holds in every setting"]),
        "What held in some settings alone": unfolded(verdicts["What holds in some settings alone"]),
        "What did not hold": unfolded(verdicts["What fails in every setting"]),
        WHY: reasons(verdicts),
        "The h step": verdicts["The h step"],
        WHERE_MAC_STARTS: f"{setting['Question']}\n\n{setting['Answer']}",
    }
    figures = f"{len(numbered) + 1}. The figures"
    titles = [f"{n}. {name}" for n, name in enumerate(numbered, 1)]
    body = [
        STYLE,
        f"<header><h1>{TITLE}</h1><p class='about'>A reproduction of {CITATION} Made by <code>make "
        f"report</code> from the results that auxhash {__version__} keeps.</p></header>",
        section("Abstract", f"{ABSTRACT}\n\n{verdicts['Answer']}"),
        contents([*titles, figures, *FIGURE_TITLES.values(), DIFFERS]),
        *map(section, titles, numbered.values()),
        section(figures, "Curves and verdicts of every setting that was run."),
        *(_figure(name, own, verdicts) for name, own in results.items()),
        section(DIFFERS, verdicts["What differs"]),
    ]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(document(TITLE, body), "utf-8")


ABSTRACT = (
    "We ran the figures of the paper again with a program of our own, and turned what it says "
    "about them into tests of the numbers, which can fail. They were run with the blocks of `cut` "
    "in one order or in random order, of which the paper says nothing, and with two forms of MAC's "
    "h step: ours, “monotone”, and the paper's, “plain”."
)


def unfolded(text: str) -> str:
    return text.replace("<details>", "<details open>", 1)


def reasons(verdicts: dict[str, str]) -> str:
    """The section on why claims fail, with its parts, to which the tables lead."""
    parts = (
        f"<h3 id='{SUMMARY['anchor'](name)}'>{name}</h3>\n\n{verdicts[name]}"
        for name in SUMMARY["REASONS"]
    )
    return "\n\n".join([verdicts[WHY], *parts])


def contents(titles: Sequence[str]) -> str:
    """Links to the sections."""
    items = "".join(f"<li><a href='#{place(title)}'>{escape(title)}</a></li>" for title in titles)
    return f"<nav><h2>Contents</h2><ul class='contents'>{items}</ul></nav>"


def place(title: str) -> str:
    """The id of a section: its title without its number, or the name of its figure."""
    figures = {title: name for name, title in FIGURE_TITLES.items()}
    words = re.sub(r"^\d+\. ", "", title)
    return figures.get(title, re.sub(r"[^a-z0-9]+", "-", words.lower()))


PAGES = ("verdicts", "setting")


def parts(text: str) -> dict[str, str]:
    """The parts of a page by their headings."""
    _, *pieces = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def section(title: str, text: str) -> str:
    return f"<section id='{place(title)}'><h2>{escape(title)}</h2>{html(text)}</section>"


def html(text: str) -> str:
    """A part of a page as HTML, with the files that it includes; see `LINKS`."""
    text = re.sub(r"```\{include\} (\S+)\n```", lambda m: (DOCS / m[1]).read_text("utf-8"), text)
    pictures = r"```\{raw\} html\n:file: (\S+)\n```"
    text = re.sub(pictures, lambda m: (DOCS / m[1]).read_text("utf-8"), text)
    text = re.sub(r"\[([^]]+)\]\((?!http)([^)]*)\)", _link, text)
    text = re.sub(r"\$([^$\n]+)\$", lambda m: m[1].replace(r"\mu", "μ"), text)
    text = text.replace("plot-legend", "legend").replace(
        '<div class="plots">', '<div class="plots" style="--columns:2">'
    )
    text = re.sub(r"\*\*((so far )?(not )?held)\*\*", _verdict, text)
    made: str = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return made.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )


def _link(match: re.Match[str]) -> str:
    """A link inside of the report, or words."""
    words, to = match.groups()
    return f"[{words}](#{LINKS[to]})" if to in LINKS else words


def _verdict(match: re.Match[str]) -> str:
    colour = "failed" if match[3] else "held"
    return f'<strong style="color:var(--{colour})">{match[1]}</strong>'


def _results(figure: Any) -> dict[str, Any]:
    """All results of a figure by the name of the panels: of data sets apart, too."""
    names = [figure.name, *(f"{figure.name}-{data}" for data in VERDICTS["APART"])]
    by_name = {name: VERDICTS["results_of"](figure, name) for name in names}
    return {name: results for name, results in by_name.items() if results}


def data_table(results: dict[str, dict[str, Any]]) -> str:
    """Data, points, bits and methods of each figure, and how many runs MAC had in each setting."""
    rows = []
    for name, panels in results.items():
        figure = VERDICTS["FIGURES"][name]
        if not isinstance(figure, GroupFigure):
            continue
        groups = figure.groups(VERDICTS["SCALE"])
        data = dict.fromkeys(f"{g.data.name}, {g.data.n_train:,} points" for g in groups)
        bits = dict.fromkeys(str(b) for g in groups for b in g.bits)
        methods = dict.fromkeys(m for g in groups for m in g.methods)
        runs: dict[Any, int] = {}
        for own in panels.values():
            for kind, result in own.items():
                macs = [record for record in result["records"] if record.method in PAPERS]
                runs[kind] = runs.get(kind, 0) + len(macs)
        counts = [str(runs.get(kind, 0)) for kind in COLUMNS]
        cells = (
            SUMMARY["link"](name),
            "; ".join(data),
            ",\u00a0".join(bits),
            ", ".join(methods),
            *counts,
        )
        rows.append(f"| {' | '.join(cells)} |")
    settings = (f"MAC, {name}" for name in SUMMARY["COLUMNS"].values())
    head = ["figure", "data", "bits", "methods", *settings]
    return f"| {' | '.join(head)} |\n{'|---' * len(head)}|\n" + "\n".join(rows)


def _figure(name: str, panels: dict[str, Any], verdicts: dict[str, str]) -> str:
    """Curves of a figure, of every order and h step, and its verdicts."""
    figure = VERDICTS["FIGURES"][name]
    drawn = [
        _curves(
            f"{COLUMNS[kind]}{' (' + panel + ')' if panel != name else ''}", figure, own["records"]
        )
        for panel, results in panels.items()
        for kind, own in results.items()
        if isinstance(figure, GroupFigure)
    ]
    if drawn:
        drawn[0] = unfolded(drawn[0])
    else:
        drawn = [html("```{raw} html\n:file: pictures/sketch.html\n```")]
    return (
        f"<section id='{name}'><h2>{escape(FIGURE_TITLES[name])}</h2>{''.join(drawn)}"
        f"{html(verdicts[SUMMARY['heading_of'](name)])}</section>"
    )


def _curves(title: str, figure: GroupFigure, records: Sequence[Any]) -> str:
    groups = [g for g in figure.groups(VERDICTS["SCALE"]) if g.name in {r.group for r in records}]
    shown = "".join(drawn_section(each) for each in figure.sections(groups, records))
    shown = shown.replace("<h2>", "<h3>").replace("</h2>", "</h3>")
    return f"<details><summary>{escape(title)}</summary>{shown}</details>"


if __name__ == "__main__":
    main()
    print(f"wrote {OUTPUT}")
