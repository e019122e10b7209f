"""What held of the paper's claims: python docs/verdicts.py.

Writes docs/results/FIGURE.md, a table for readers, from docs/results/FIGURE.json.
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def tables() -> dict[Path, str]:
    """Each table, by where it belongs."""
    return {
        path.with_suffix(".md"): table(json.loads(path.read_text("utf-8")))
        for path in sorted(RESULTS.glob("*.json"))
    }


def table(found: dict[str, Any]) -> str:
    """The command, what is missing, and the verdicts."""
    notes = "".join(f"{note}\n\n" for note in found["notes"])
    rows = "\n".join(_row(verdict) for verdict in found["verdicts"])
    head = "| | claim | numbers |\n|---|---|---|"
    return f"```text\n$ {found['command']}\n```\n\n{notes}{head}\n{rows}\n"


def _row(verdict: dict[str, Any]) -> str:
    claim = verdict["claim"] + (" †" if verdict["ours"] else "")
    cells = (f"**{verdict['verdict']}**", claim, verdict["numbers"])
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path, text in tables().items():
        path.write_text(text, "utf-8")
