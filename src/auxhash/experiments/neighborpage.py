"""A comparison without labels as a page: recall over bytes, the table, and what queries find."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from auxhash.compute.words import count
from auxhash.experiments.compareneighbors import COLUMNS, N_SHOWN_QUERIES, NeighborComparison
from auxhash.experiments.datasets.dataset import MaybeArray
from auxhash.experiments.figures.figure import FigureContent, HitList, QueryExample, Section, Table
from auxhash.experiments.gallery import Gallery, differing, strip
from auxhash.experiments.mappage import map_section
from auxhash.experiments.page import page
from auxhash.files.writing import writing

ResultKey = tuple[str, str, int]  # method, distance and bytes
MAX_CHARACTERS = 200  # of a point that are shown
MAX_SHOWN_BYTES = 16  # of the codes whose hits are shown; larger where there are no smaller


def write_page(
    comparison: NeighborComparison,
    output: Path,
    command: str,
    names: Sequence[str] | None = None,
    query_names: Sequence[str] | None = None,
    images: MaybeArray = None,
    query_images: MaybeArray = None,
) -> None:
    """Write the page; points and queries are shown as pictures, else by their names, or rows."""
    columns, rows = comparison.texts()
    search = comparison.search
    by_tables = any(row["distance"] == "tables" for row in comparison.rows)
    note = NOTE + NOTE_TABLES * by_tables
    content = FigureContent(
        (),
        [
            Section("Recall over bytes", [comparison.plots()], note=note),
            Section("All figures", table=Table(columns, rows), note=COLUMNS),
            *map_section(search.data.base, search.data.query, search.metric == "cosine"),
        ],
        [(key, str(value)) for key, value in comparison.protocol.items()],
        comparison.rows,
        [] if images is None else [_gallery(comparison, images, query_images)],
        examples=_examples(comparison, names, query_names) if images is None else (),
        shown=SIZES,
    )
    with writing(output) as temporary:
        text = page("auxhash compare", comparison.title, comparison.summary(), content, command)
        temporary.write_text(text, "utf-8")


NOTE = "Solid: by outputs, or by the method's own distances. Dashed: by Hamming distance."
SIZES = (
    "Each method is shown by its best distance and at one size: the largest of at most "
    f"{MAX_SHOWN_BYTES} bytes, or its smallest where all are larger."
)
NOTE_TABLES = " Long dashes: by learnt tables."


def _best(comparison: NeighborComparison) -> list[ResultKey]:
    """Each method at one size, by its best distance."""
    best: dict[str, ResultKey] = {}
    for row in comparison.rows:  # by size, the best first within each
        key = row["method"], row["distance"], row["bytes"]
        known = best.get(row["method"])
        larger = known is not None and known[2] < row["bytes"] <= MAX_SHOWN_BYTES
        if key in comparison.first and (known is None or larger):
            best[row["method"]] = key
    return list(best.values())


def _called(key: ResultKey) -> str:
    method, distance, n = key
    by = "" if distance == "own" else f" by {distance}"
    return f"{method}{by}, {count(n, 'byte')}"


def _gallery(
    comparison: NeighborComparison, images: MaybeArray, query_images: MaybeArray
) -> Gallery:
    """Pictures of what each method finds for queries on which the methods differ most."""
    search, best = comparison.search, _best(comparison)
    near = search.neighbors[:N_SHOWN_QUERIES]
    hits = {_called(key): comparison.first[key] for key in best}
    right = {
        name: (rows[:, :, None] == near[:, None, :]).any(axis=2) for name, rows in hits.items()
    }
    counts = np.stack([marks.sum(axis=1) for marks in right.values()], axis=1)
    shown = []
    for at in differing(counts):
        strips = [strip("true", images, search.base_rows[near[at]], [True] * near.shape[1])]
        strips += [
            strip(name, images, search.base_rows[rows[at]], right[name][at].tolist())
            for name, rows in hits.items()
        ]
        shown.append((strip("query", query_images, search.query_rows[[at]], [True]), strips))
    return Gallery(search.data.name, shown)


def _examples(
    comparison: NeighborComparison, names: Sequence[str] | None, query_names: Sequence[str] | None
) -> Sequence[QueryExample]:
    """The first queries, and what each method finds by its best distance at one size."""
    search = comparison.search

    def called(position: int) -> str:
        row = int(search.base_rows[position])
        return f"row {row}" if names is None else names[row][:MAX_CHARACTERS]

    examples = []
    for at, row in enumerate(search.query_rows[:N_SHOWN_QUERIES]):
        near = search.neighbors[at].tolist()
        lists = [HitList("true neighbours", [(called(p), True) for p in near])]
        for key in _best(comparison):
            hits = [(called(p), p in near) for p in comparison.first[key][at].tolist()]
            right = sum(right for _, right in hits)
            lists.append(HitList(f"{_called(key)}: {right} of {len(hits)}", hits))
        query = f"query: row {row}" if query_names is None else query_names[row][:MAX_CHARACTERS]
        examples.append(QueryExample(query, lists))
    return examples
