"""make soak runs the same properties on many more examples."""

import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings

from auxhash.cli import group
from auxhash.learn import neighborhash
from auxhash.learn.smooth import Refine
from auxhash.learn.training import ranking
from tests.runs import (  # noqa: F401
    pytest_addoption,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_sessionfinish,
    pytest_terminal_summary,
)

# Other examples in every run: hypothesis itself would repeat the same ones where CI is set.
settings.register_profile("brief", max_examples=20, deadline=None, derandomize=False)
settings.register_profile("soak", max_examples=1000, deadline=None, derandomize=False)
SOAK = bool(os.environ.get("AUXHASH_SOAK"))
settings.load_profile("soak" if SOAK else "brief")

BRIEF = 20  # gradient steps

# Where a program was started in the background by a shell, Ctrl-C is ignored by all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _process():
    """Settings of the process that a test must leave as they were."""
    own = {name: value for name, value in os.environ.items() if name.startswith("AUXHASH")}
    return own, os.getcwd(), np.geterr(), np.get_printoptions()


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path_factory):
    """Forget modules of folders of a test's own, and fail where it leaves other traces."""
    path, modules, before = sys.path[:], set(sys.modules), _process()
    yield
    sys.path[:] = path
    folder = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
            del sys.modules[name]
    assert _process() == before


@pytest.fixture(autouse=True, scope="session")
def no_word_of_compiling():
    """Say nothing of compiling, which depends on what the machine has kept, not on a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "announce_compiling", lambda say: None)
        yield


@pytest.fixture
def keeps_tables(monkeypatch):
    """Tables that few points and steps make no better than outputs are kept."""
    monkeypatch.setattr(ranking.Judge, "prefers", lambda *args: True)


def refine_briefly(patch):
    """Let refinement by default, and NeighborHash, take few steps, and maps of pages few points.

    For tests of what is done with the codes.
    """
    if SOAK:
        return
    suited = Refine.suited_to.__func__

    def brief(cls, *arguments):
        return replace(suited(cls, *arguments), n_steps=BRIEF)

    patch.setattr(Refine, "suited_to", classmethod(brief))
    patch.setattr(neighborhash, "MIN_STEPS", BRIEF)
    patch.setattr("auxhash.experiments.mappage.N_BASE", 60)
    asked = neighborhash.NeighborHash._settings

    def few(self, n, n_features):
        settings = asked(self, n, n_features)
        steps = {name: min(getattr(settings, name), BRIEF) for name in ("n_steps", "table_steps")}
        return replace(settings, **steps)

    patch.setattr(neighborhash.NeighborHash, "_settings", few)


@pytest.fixture
def briefly_refined(monkeypatch):
    refine_briefly(monkeypatch)
