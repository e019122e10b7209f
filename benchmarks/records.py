"""A file of results, one JSON object per line: a benchmark that was stopped goes on from it."""

import json
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


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
