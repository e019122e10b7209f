"""The engines that are installed, each started for the tests; others are skipped by name."""

import importlib.util

import pytest

NEEDS = {
    "sqlite": (),
}


def missing(engine):
    return [name for name in NEEDS[engine] if importlib.util.find_spec(name) is None]


def url_for(engine, request, folder):
    """The URL of a place where no store is yet."""
    if missing(engine):
        pytest.skip(f"{engine} is not tested: {missing(engine)[0]} is missing (make test-stores)")
    return f"{engine}:///{folder}/{engine}.db"
