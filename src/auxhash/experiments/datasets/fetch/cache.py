"""The cache folder: where data sets live. A file gets there whole or not at all.

By hand, since what is made from the files is kept here, too; pooch keeps only what it fetched.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from rich.console import Console

from auxhash.compute.arrays import AnyArray
from auxhash.files.writing import writing

VARIABLE = "AUXHASH_DATA"
BLOCK_BYTES = 1 << 20  # read at once


def folder() -> Path:
    """The folder named by AUXHASH_DATA, or `auxhash` in the platform's cache folder."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    if sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "auxhash"


def obtain(path: Path, make: Callable[[Path], None]) -> AnyArray:
    """The array stored in `path`, memory-mapped; made first, by `make(temporary)`, if missing."""
    if not path.exists():
        console = Console(stderr=True)
        text = f"making {path.parent.name}/{path.name}, once"
        shown = console.status(text) if console.is_terminal else nullcontext()
        with shown, writing(path) as temporary:
            make(temporary)
    return stored(path)


def stored(path: Path) -> AnyArray:
    """The array of a .npy file, memory-mapped, never unpickled."""
    if problem := fault(path):
        raise ValueError(f"{path} is {problem}; delete it")
    array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def fault(path: Path) -> str | None:
    """Fault of a .npy file in words, or None."""
    try:
        np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        return f"not a whole .npy file ({error})"
    return None


def checksum(path: Path, kind: str) -> str:
    """The sum of a file's bytes by `kind`, md5 or sha256, in hexadecimal."""
    total = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            total.update(block)
    return total.hexdigest()
