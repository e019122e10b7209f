"""What held of the paper's claims: python docs/verdicts.py.

Writes docs/results/FIGURE.md, a table for readers, for every figure: from docs/results/FIGURE.json,
of runs with the blocks of cut in random order, and FIGURE-fixed.json, with the blocks in one order.
"""

import json
from pathlib import Path
from typing import Any

from auxhash.experiments.figures import FIGURES
from auxhash.experiments.figures.figure import Figure
from auxhash.experiments.scales import ORDERS

RESULTS = Path(__file__).parent / "results"
ENDINGS = {"fixed": "-fixed", "random": ""}
NOT_RUN = "**not run**"
EARLIER = (
    "The results in random order are of earlier runs, not of the paper's preset: without "
    "validation, quad started from the eigenvector at mu = 0 only, KSH with kernels throughout, "
    "BRE and STH learning from labels, and on SIFT 1,000 of the 10,000 queries judged."
)


def tables() -> dict[Path, str]:
    """Each table, by where it belongs."""
    return {RESULTS / f"{name}.md": table(figure, found(name)) for name, figure in FIGURES.items()}


def found(name: str) -> dict[str, dict[str, Any]]:
    """The results of a figure that there are, by the order of the blocks."""
    paths = {order: RESULTS / f"{name}{ending}.json" for order, ending in ENDINGS.items()}
    return {o: json.loads(path.read_text("utf-8")) for o, path in paths.items() if path.exists()}


def table(figure: Figure, results: dict[str, dict[str, Any]]) -> str:
    """The commands, what is missing, and the verdicts in both settings."""
    if not results:
        head = f"Not run at the paper's size: `auxhash reproduce {figure.name} --scale paper`.\n\n"
    else:
        commands = "\n".join(f"$ {result['command']}" for result in results.values())
        told = "".join(f"{note}\n\n" for note in notes(results))
        head = f"```text\n{commands}\n```\n\n{told}"
    judged = {
        order: {verdict["claim"]: verdict for verdict in result["verdicts"]}
        for order, result in results.items()
    }
    rows = [
        [
            claim.words + (" †" if claim.ours else ""),
            *(_cell(judged.get(order, {}).get(claim.words)) for order in ENDINGS),
        ]
        for claim in figure.claimed
    ]
    columns = ["claim", *(ORDERS[order] for order in ENDINGS)]
    lines = [_line(columns), "|---|---|---|", *map(_line, rows)]
    return head + "\n".join(lines) + "\n"


def notes(results: dict[str, dict[str, Any]]) -> list[str]:
    """What a reader has to know of the runs; each once, with its setting if only one has it."""
    told: dict[str, list[str]] = {}
    for order, result in results.items():
        # Files of before the preset do not name an order.
        for note in [*([] if "order" in result else [EARLIER]), *result["notes"]]:
            told.setdefault(note, []).append(order)
    return [
        note if note == EARLIER or len(orders) == len(results) else f"{_named(orders)}: {note}"
        for note, orders in told.items()
    ]


def _named(orders: list[str]) -> str:
    return " and ".join(ORDERS[order] for order in orders).capitalize()


def _cell(verdict: dict[str, Any] | None) -> str:
    return NOT_RUN if verdict is None else f"**{verdict['verdict']}**. {verdict['numbers']}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path, text in tables().items():
        path.write_text(text, "utf-8")
