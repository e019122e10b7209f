"""Probes that fail in their third case, to show that the harness notices."""

import ctypes
import time
from pathlib import Path


def crash(seed: int, folder: Path) -> None:
    if seed == 2:
        ctypes.string_at(0)


def wrong(seed: int, folder: Path) -> None:
    assert seed != 2


def hang(seed: int, folder: Path) -> None:
    if seed == 2:
        time.sleep(600)
