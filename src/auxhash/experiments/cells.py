"""Results on disk, one cell a file, named after what was run: never the same run twice.

A cell's name is a digest of its configuration, so that a changed setting is another cell, and an
interrupted run goes on where it stopped. A cell is written whole or not at all.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.files import writing

Arrays = dict[str, NDArray[Any]]


class Cells:
    """The cells of one folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, configuration: dict[str, Any]) -> Path:
        text = json.dumps(configuration, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.npz"

    def __contains__(self, configuration: dict[str, Any]) -> bool:
        return self.path(configuration).exists()

    def write(self, configuration: dict[str, Any], facts: dict[str, Any], arrays: Arrays) -> None:
        """Keep what a run measured (`facts`, as JSON) and made (`arrays`)."""
        record = json.dumps({"configuration": configuration, "facts": facts})
        with writing(self.path(configuration)) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, record=np.array(record), **arrays)

    def read(self, configuration: dict[str, Any]) -> tuple[dict[str, Any], Arrays]:
        """Facts and arrays of a cell written before."""
        path = self.path(configuration)
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            record = json.loads(str(arrays.pop("record")))
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{path} is no result of a run ({error}); delete it") from error
        return record["facts"], arrays
