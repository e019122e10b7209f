"""A comparison without labels as a page: recall over bytes, the table, and what queries find."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auxhash.compute.words import count
from auxhash.experiments.compareneighbors import (
    COLUMNS,
    EXACT,
    MEASURES,
    SHOWN,
    NeighborComparison,
)
from auxhash.experiments.figures.figure import FigureContent, HitList, QueryExample, Section, Table
from auxhash.experiments.figures.styles import LONG, SHORT, style
from auxhash.experiments.page import page
from auxhash.experiments.svg import Plot, Series
from auxhash.files.writing import writing

MAX_TEXT = 200  # characters of a point that are shown
SHOWN_BYTES = 16  # at most, of the codes whose hits are shown; larger where there are no smaller


def write_page(
    comparison: NeighborComparison,
    output: Path,
    command: str,
    names: Sequence[str] | None = None,
    query_names: Sequence[str] | None = None,
) -> None:
    """Write the page; points and queries are called by their names, or else by their rows."""
    columns, rows = comparison.texts()
    content = FigureContent(
        (),
        [
            Section("Recall over bytes", [_plots(comparison)], note=NOTE),
            Section("All figures", table=Table(columns, rows), note=COLUMNS),
        ],
        [(key, str(value)) for key, value in comparison.protocol.items()],
        comparison.rows,
        examples=_examples(comparison, names, query_names),
    )
    title = f"What codes of a few bytes cost on {comparison.search.data.name}"
    with writing(output) as temporary:
        text = page("auxhash compare", title, comparison.summary(), content, command)
        temporary.write_text(text, "utf-8")


NOTE = (
    "Solid: by outputs, or by the method's own distances. Short dashes: by Hamming distance; long "
    "ones: by learnt tables."
)
DASHES = {"Hamming": SHORT, "tables": LONG}


def _plots(comparison: NeighborComparison) -> list[Plot]:
    titles = {
        MEASURES[0]: "of the 10 nearest, among the first 10",
        MEASURES[1]: "among the first 100 (after re-ranking)",
    }
    return [
        Plot(title, "bytes per point", "share", curves(comparison.rows, measure), x_log=True)
        for measure, title in titles.items()
        if comparison.rows[0][measure] == comparison.rows[0][measure]  # the base is large enough
    ]


def curves(rows: Sequence[dict[str, Any]], measure: str) -> list[Series]:
    """Curves of a measure over the bytes, one per method and distance."""
    drawn = []
    for method, distance in dict.fromkeys((row["method"], row["distance"]) for row in rows):
        if method == EXACT:
            continue
        own = [row for row in rows if (row["method"], row["distance"]) == (method, distance)]
        look = replace(style(method), dashes=DASHES.get(distance, ""))
        label = f"{method}, {distance}" if look.dashes else method
        x, y = [row["bytes"] for row in own], [row[measure] for row in own]
        drawn.append(Series(label, look, x, y, keyed=not look.dashes))
    return drawn


def _examples(
    comparison: NeighborComparison, names: Sequence[str] | None, query_names: Sequence[str] | None
) -> Sequence[QueryExample]:
    """The first queries, and what each method finds by its best distance at one size."""
    search = comparison.search
    best: dict[str, tuple[str, str, int]] = {}
    for row in comparison.rows:  # by size, the best first within each
        key = row["method"], row["distance"], row["bytes"]
        known = best.get(row["method"])
        larger = known is not None and known[2] < row["bytes"] <= SHOWN_BYTES
        if key in comparison.first and (known is None or larger):
            best[row["method"]] = key

    def called(position: int) -> str:
        row = int(search.base_rows[position])
        return f"row {row}" if names is None else names[row][:MAX_TEXT]

    examples = []
    for at, row in enumerate(search.query_rows[:SHOWN]):
        near = search.neighbors[at].tolist()
        lists = [HitList("true neighbours", [(called(p), True) for p in near])]
        for method, distance, n in best.values():
            positions = comparison.first[method, distance, n][at].tolist()
            hits = [(called(p), p in near) for p in positions]
            right = sum(right for _, right in hits)
            by = "" if distance == "own" else f" by {distance}"
            label = f"{method}{by}, {count(n, 'byte')}: {right} of {len(hits)}"
            lists.append(HitList(label, hits))
        query = f"query: row {row}" if query_names is None else query_names[row][:MAX_TEXT]
        examples.append(QueryExample(query, lists))
    return examples
