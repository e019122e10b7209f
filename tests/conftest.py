"""make soak runs the same properties on many more examples."""

import os

import pytest
from hypothesis import settings

from auxhash.cli import group

settings.register_profile("brief", max_examples=30, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile("soak" if os.environ.get("AUXHASH_SOAK") else "brief")


@pytest.fixture(autouse=True, scope="session")
def no_word_of_compiling():
    """Whether something is compiled depends on what the machine has kept, not on a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "announce_compiling", lambda say: None)
        yield
