"""What held of the paper's claims: python docs/verdicts.py.

Writes docs/results/FIGURE.md, a table for readers, for every figure: from docs/results/FIGURE.json,
of runs with the blocks of cut in random order, and FIGURE-fixed.json, with the blocks in one order.
Where the first says nothing of a claim, FIGURE-earlier.json may: runs in random order of before the
preset of the paper. FIGURE-later.json and FIGURE-later-fixed.json hold runs that were made after
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
ENDINGS = {"fixed": "-fixed", "random": "", "earlier": "-earlier"}
COLUMNS = ("fixed", "random")
APART = ("infinite-mnist",)  # data sets whose panels have files of their own
SCALE = replace(PAPER, descriptors=replace(PAPER.descriptors, name=STAND_IN))  # no run had SIFT1M
EMPTY: dict[str, Any] = {"results": []}
MISSING = "runs are missing"  # what a note says that does not hold with later runs
NOT_RUN, NOT_TESTED = "**not run**", "not tested"
EARLIER = (
    "‡ is of earlier runs in random order, not of the paper's preset: without "
    "validation, quad started from the eigenvector at mu = 0 only, KSH with kernels throughout, "
    "BRE and STH learning from labels, and on SIFT 1,000 of the 10,000 queries judged."
)

Results = dict[str, dict[str, Any]]


def tables() -> dict[Path, str]:
    """Each table, by where it belongs."""
    return {RESULTS / f"{name}.md": text(figure) for name, figure in FIGURES.items()}


def text(figure: Figure) -> str:
    """The table of a figure, and those of data sets that have files of their own."""
    parts = [table(figure, found(figure, figure.name))]
    for data in APART:
        if results := found(figure, f"{figure.name}-{data}"):
            parts.append(f"On {data}:\n\n{table(figure, results)}")
    return "\n".join(parts)


def found(figure: Figure, name: str) -> Results:
    """The results of a figure that there are, by the ending of their file."""
    results = {}
    for kind, ending in ENDINGS.items():
        first, later = (_read(f"{name}{part}{ending}.json") for part in ("", "-later"))
        ours = kind in COLUMNS and isinstance(figure, GroupFigure)
        if later and not (first and ours):
            raise ValueError(f"{name}-later{ending}.json has nothing to be joined with")
        if first:
            results[kind] = together(figure, first, later) if ours else first
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
    told = {verdict["claim"]: verdict for verdict in first["verdicts"]}
    verdicts = [
        told[after.words]
        if after.words in told and (after.held is None or _same(before, after))
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


def _same(one: claims.Verdict, other: claims.Verdict) -> bool:
    return (one.held, one.numbers) == (other.held, other.numbers)


def _alike(records: Sequence[Record]) -> list[Record]:
    """All with whole curves, or none: a claim about all radii is of all runs."""
    whole = all(record.whole for record in records)
    return [replace(record, whole=whole) for record in records]


def _records(groups: Sequence[Group], result: dict[str, Any]) -> list[Record]:
    """The records of a file, with the points that older files do not tell."""
    points = {group.name: group.data.n_train for group in groups}
    return [
        replace(record, points=record.points or points[record.group])
        for record in numbers.records(result["results"])
    ]


def _missing(groups: Sequence[Group], records: Sequence[Record]) -> str:
    """What has no record of the panels on the data sets that were run."""
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
            *(_cell(results, column, claim.words) for column in COLUMNS),
        ]
        for claim in figure.claimed
    ]
    shown = dict(results)
    if not any("‡" in cell for row in rows for cell in row):
        shown.pop("earlier", None)
    if not shown:
        head = f"Not run at the paper's size: `auxhash reproduce {figure.name} --scale paper`.\n\n"
    else:
        commands = "\n".join(
            f"$ {result['command']}{'  # ‡' if kind == 'earlier' else ''}"
            for kind, result in shown.items()
        )
        told = "".join(f"{note}\n\n" for note in notes(shown))
        head = f"```text\n{commands}\n```\n\n{told}"
    columns = ["claim", *(ORDERS[order] for order in COLUMNS)]
    lines = [_line(columns), "|---|---|---|", *map(_line, rows)]
    return head + "\n".join(lines) + "\n"


def notes(results: Results) -> list[str]:
    """What a reader has to know of the runs; each once, with its setting if only one has it."""
    told: dict[str, list[str]] = {}
    for kind, result in results.items():
        if kind == "earlier":
            told[EARLIER] = list(results)
        else:
            for note in result["notes"]:
                told.setdefault(note, []).append(kind)
    new = [kind for kind in results if kind != "earlier"]
    return [
        note if set(kinds) >= set(new) else f"{_named(kinds)}: {note}"
        for note, kinds in told.items()
    ]


def _named(orders: list[str]) -> str:
    return " and ".join(ORDERS[order] for order in orders).capitalize()


def _cell(results: Results, column: str, claim: str) -> str:
    verdict = _verdict(results, column, claim)
    earlier = _verdict(results, "earlier", claim) if column == "random" else None
    if earlier is not None and (verdict is None or verdict["verdict"] == NOT_TESTED):
        return f"‡ {_told(earlier)}"
    return NOT_RUN if verdict is None else _told(verdict)


def _verdict(results: Results, kind: str, claim: str) -> dict[str, Any] | None:
    verdicts = results.get(kind, {"verdicts": []})["verdicts"]
    return next((verdict for verdict in verdicts if verdict["claim"] == claim), None)


def _told(verdict: dict[str, Any]) -> str:
    return f"**{verdict['verdict']}**. {verdict['numbers']}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path, made in tables().items():
        path.write_text(made, "utf-8")
