"""Results on disk, one file per cell, named after what was run, so that no run is made twice.

A cell's name is a digest of its configuration, so that a changed setting is another cell, and an
interrupted run goes on where it stopped. A cell is written whole or not at all; a damaged one
counts as missing, and its run is made again.
"""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.files.writing import writing
from auxhash.model.encoding import Arrays

Configuration = dict[str, Any]
Facts = dict[str, Any]
Cell = tuple[Facts, Arrays]


class Cells:
    """The cells of one folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"folder must be a folder, and {self.folder} is a file")
        self._looked_at: dict[Path, tuple[int, int, bool]] = {}  # time, size, completeness

    def path(self, configuration: Configuration) -> Path:
        return self.folder / f"{hashlib.sha256(text(configuration).encode()).hexdigest()[:24]}.npz"

    def __contains__(self, configuration: Configuration) -> bool:
        path = self.path(configuration)
        if not path.exists():
            return False
        now = path.stat()
        seen = self._looked_at.get(path)
        if seen is None or seen[:2] != (now.st_mtime_ns, now.st_size):
            seen = now.st_mtime_ns, now.st_size, self._is_complete(configuration)
            self._looked_at[path] = seen
        return seen[2]

    def write(self, configuration: Configuration, facts: Facts, arrays: Arrays) -> None:
        """Keep what a run measured (`facts`, as JSON) and made (`arrays`)."""
        record = {"configuration": configuration, "facts": facts, "arrays": sorted(arrays)}
        kept: dict[str, Any] = {"record": np.array(json.dumps(record)), **arrays}
        with writing(self.path(configuration)) as temporary, temporary.open("wb") as file:
            np.savez(file, **kept)
        self._looked_at.pop(self.path(configuration), None)

    def read(self, configuration: Configuration) -> Cell:
        """Facts and arrays of a cell written before. Raises ValueError for a damaged one."""
        path = self.path(configuration)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            record = json.loads(str(arrays.pop("record")))
            if text(record["configuration"]) != text(configuration):
                raise ValueError("it belongs to another run")
            if sorted(arrays) != record.get("arrays", sorted(arrays)):  # older cells do not tell
                raise ValueError(f"it holds {sorted(arrays)} of {record['arrays']}")
            return record["facts"], arrays
        except Exception as error:  # damage shows in many ways: zip's, NumPy's, JSON's, memory's
            raise ValueError(f"{path} is no result of a run ({error}); delete it") from error

    def _is_complete(self, configuration: Configuration) -> bool:
        try:
            self.read(configuration)
        except ValueError as error:
            warnings.warn(f"{error}, or it is replaced when its run is made again", stacklevel=3)
            return False
        return True


class Memory:
    """Cells in memory, for as long as this object lives."""

    def __init__(self) -> None:
        self.kept: dict[str, Cell] = {}

    def __contains__(self, configuration: Configuration) -> bool:
        return text(configuration) in self.kept

    def write(self, configuration: Configuration, facts: Facts, arrays: Arrays) -> None:
        self.kept[text(configuration)] = facts, arrays

    def read(self, configuration: Configuration) -> Cell:
        return self.kept[text(configuration)]


def text(configuration: Configuration) -> str:
    """A configuration as JSON, whatever the order of its keys."""
    return json.dumps(configuration, sort_keys=True)
