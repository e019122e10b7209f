"""Files of results, one JSON object per line, from which a stopped benchmark goes on; tables."""

import argparse
import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]

DOCS = Path(__file__).parents[1] / "docs"
RESULTS, TABLES = DOCS / "results", DOCS / "tables"
QUALITY = {"cpu": "default", "cuda": "best"}  # that NeighborHash takes on a device by itself


def parsed(
    parser: argparse.ArgumentParser, options: Sequence[str], file: Path
) -> argparse.Namespace:
    """Options of a benchmark and, after its own, those of its file of results."""
    parser.add_argument("--results", type=Path, default=file)
    parser.add_argument("--tables", action="store_true")
    return parser.parse_args(list(options))


def read(path: Path) -> list[Record]:
    """All records of a file; none where there is no file."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def known(path: Path, key: Callable[[Record], Hashable]) -> set[Hashable]:
    """The keys of what a file has already, without a line that a stopped run has cut off."""
    drop_cut_line(path)
    return {key(record) for record in read(path)}


def append(path: Path, record: Record) -> None:
    """Add a record to the file, which is made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")


def drop_cut_line(path: Path) -> None:
    """Remove the last line of a file if a run was stopped while it wrote it."""
    text = path.read_text("utf-8") if path.exists() else ""
    if text and not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1], "utf-8")


def markdown(
    head: Sequence[str], rows: Iterable[Sequence[object]], line: Sequence[str] | None = None
) -> str:
    """A table in Markdown; `line` is the one below the head, by default left-aligned columns."""
    lines = [head, line or ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in lines)


def write_tables(texts: dict[str, str]) -> None:
    """Write tables, by file name, to the documentation."""
    for name, text in texts.items():
        (TABLES / name).write_text(text, "utf-8")
        print(f"wrote {TABLES / name}")
