"""Verdicts on the paper's claims: python docs/verdicts.py.

Writes docs/results/FIGURE.md, a table for readers, for every figure: from docs/results/FIGURE.json,
of runs with the blocks of cut in random order, and FIGURE-fixed.json, with the blocks in one order.
FIGURE-later.json and FIGURE-later-fixed.json hold runs that were made after
the others, such as those of quad: a claim that these say something about is judged by all of them.
A figure with panels on a second data set may have them in files of their own, FIGURE-DATA.json and
FIGURE-DATA-fixed.json, and then in a second table.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from auxhash.experiments import claims, numbers
from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import Figure, GroupFigure, missing
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.scales import ORDERS, PAPER, STAND_IN

RESULTS = Path(__file__).parent / "results"
ENDINGS = {"fixed": "-fixed", "random": ""}
APART = ("infinite-mnist",)  # data sets whose panels have files of their own
SCALE = replace(PAPER, descriptors=replace(PAPER.descriptors, name=STAND_IN))  # no run had SIFT1M
EMPTY: dict[str, Any] = {"results": []}
MISSING = "runs are missing"  # what a note says that does not hold with later runs
NOT_RUN = "**not run**"

Results = dict[str, dict[str, Any]]


def tables() -> dict[Path, str]:
    """Each table, by where it belongs."""
    return {RESULTS / f"{name}.md": text(figure) for name, figure in FIGURES.items()}


def text(figure: Figure) -> str:
    """The table of a figure, and those of data sets that have files of their own."""
    parts = [table(figure, results_of(figure, figure.name))]
    for data in APART:
        if results := results_of(figure, f"{figure.name}-{data}"):
            parts.append(f"On {data}:\n\n{table(figure, results)}")
    return "\n".join(parts)


def results_of(figure: Figure, name: str) -> Results:
    """The results of a figure that there are, by the ending of their file."""
    results = {}
    for kind, ending in ENDINGS.items():
        first, later = (_read(f"{name}{part}{ending}.json") for part in ("", "-later"))
        if later and not (first and isinstance(figure, GroupFigure)):
            raise ValueError(f"{name}-later{ending}.json has nothing to be joined with")
        if first:
            many = isinstance(figure, GroupFigure)
            results[kind] = together(figure, first, later) if many else first
    return results


def _read(name: str) -> dict[str, Any]:
    path = RESULTS / name
    read: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return read


def together(
    figure: GroupFigure, first: dict[str, Any], later: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The first results, with the verdicts that the later ones change, and on newer claims.

    What they leave as it was keeps its words: it was judged before its numbers were rounded.
    """
    groups = figure.groups(SCALE)
    alone = _records(groups, first)
    every = {record.key: record for record in [*alone, *_records(groups, later or EMPTY)]}
    earlier = {verdict["claim"]: verdict for verdict in first["verdicts"]}
    verdicts = [
        earlier[after.words]
        if _stands(earlier.get(after.words), before, after)
        else {"claim": after.words, "verdict": after.word, "numbers": after.numbers}
        for before, after in zip(
            claims.judge(figure.claims, alone),
            claims.judge(figure.claims, _alike(list(every.values()))),
            strict=True,
        )
    ]
    if not later:
        return first | {"verdicts": verdicts}
    notes = [n for n in dict.fromkeys([*first["notes"], *later["notes"]]) if MISSING not in n]
    notes += filter(None, [_missing(groups, list(every.values()))])
    command = f"{first['command']}\n$ {later['command']}"
    return first | {"verdicts": verdicts, "notes": notes, "command": command}


def _stands(earlier: dict[str, Any] | None, before: claims.Verdict, after: claims.Verdict) -> bool:
    """Return True if the earlier verdict on a claim still stands."""
    if earlier is None or claims.UNTESTED[1] in earlier["numbers"]:
        return False
    unchanged = (before.holds, before.numbers) == (after.holds, after.numbers)
    return after.holds is None or unchanged


def _alike(records: Sequence[Record]) -> list[Record]:
    """Mark all records as having all radii, or none: a claim about all radii is of all runs."""
    all_radii = all(record.all_radii for record in records)
    return [replace(record, all_radii=all_radii) for record in records]


def _records(groups: Sequence[Group], result: dict[str, Any]) -> list[Record]:
    """The records of a file, with the points that older files do not tell."""
    points = {group.name: group.data.n_train for group in groups}
    return [
        replace(record, points=record.points or points[record.group])
        for record in numbers.records(result["results"])
    ]


def _missing(groups: Sequence[Group], records: Sequence[Record]) -> str:
    """Runs without a record in the panels on the data sets that were run."""
    seeds = 1 + max(record.seed for record in records)
    names = {record.group for record in records}
    data = {group.data.name for group in groups if group.name in names}
    asked = [
        replace(group, seeds=min(seeds, group.seeds)) for group in groups if group.data.name in data
    ]
    return missing(asked, records)


def table(figure: Figure, results: Results) -> str:
    """The commands, what is missing, and the verdicts in both settings."""
    rows = [
        [
            claim.words + (" †" if claim.ours else ""),
            *(_cell(results, column, claim.words) for column in ENDINGS),
        ]
        for claim in figure.claimed
    ]
    if not results:
        head = f"Not run at the paper's size: `auxhash reproduce {figure.name} --scale paper`.\n\n"
    else:
        commands = "\n".join(f"$ {result['command']}" for result in results.values())
        noted = "".join(f"{note}\n\n" for note in notes(results))
        head = f"```text\n{commands}\n```\n\n{noted}"
    columns = ["claim", *(ORDERS[order] for order in ENDINGS)]
    lines = [_line(columns), "|---|---|---|", *map(_line, rows)]
    return head + "\n".join(lines) + "\n"


def notes(results: Results) -> list[str]:
    """Notes on the runs for the reader; each once, with its setting if only one has it."""
    kinds_of: dict[str, list[str]] = {}
    for kind, result in results.items():
        for note in result["notes"]:
            kinds_of.setdefault(note, []).append(kind)
    return [
        note if len(kinds) == len(results) else f"{_named(kinds)}: {note}"
        for note, kinds in kinds_of.items()
    ]


def _named(orders: list[str]) -> str:
    return " and ".join(ORDERS[order] for order in orders).capitalize()


def _cell(results: Results, column: str, claim: str) -> str:
    verdicts = results.get(column, {"verdicts": []})["verdicts"]
    known = next((verdict for verdict in verdicts if verdict["claim"] == claim), None)
    return NOT_RUN if known is None else f"**{known['verdict']}**. {known['numbers']}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path, made in tables().items():
        path.write_text(made, "utf-8")
