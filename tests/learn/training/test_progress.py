import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from rich import progress as rich_progress

from auxhash import MACHash, NeighborHash, TwoStepHash
from auxhash.learn.training import progress
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.mac.loop import Step

X = np.random.default_rng(0).normal(size=(60, 5))
y = np.arange(60) % 3


@pytest.fixture
def bar(monkeypatch):
    """Reports to the bars, in order: before the first step, and of the steps."""
    calls = SimpleNamespace(ready=[], steps=[])

    class Recorded(rich_progress.Progress):
        def update(self, task, **values):
            (calls.steps if "stage" in values else calls.ready).append(values)
            super().update(task, **values)

    monkeypatch.setattr(rich_progress, "Progress", Recorded)
    return calls


@pytest.fixture
def updates(bar):
    return bar.steps


def test_what_is_made_before_the_first_step_is_named(bar):
    hasher = MACHash(n_bits=4, n_similar=5, n_dissimilar=10, n_jobs=1)
    hasher.fit(X, y)
    assert bar.ready == []
    hasher.set_params(verbose=1).fit(X, y)
    made = [values["description"] for values in bar.ready]
    assert made == ["pairs", "features", "lists of partners"]
    NeighborHash(4, n_steps=2, verbose=1).fit(X)
    assert bar.ready[3]["description"] == "nearest neighbours"


@pytest.mark.parametrize("settings", [{}, {"alpha": 3.0}, {"max_iter": 2}, {"refine": None}])
def test_the_stage_is_named_and_the_total_only_shrinks(updates, settings):
    hasher = MACHash(n_bits=4, n_similar=5, n_dissimilar=10, random_state=0, n_jobs=1, verbose=1)
    hasher.set_params(**settings).fit(X, y)
    totals = [values["total"] for values in updates]
    assert totals == sorted(totals, reverse=True)
    done = [values["completed"] for values in updates]
    assert done == sorted(done)
    assert done[-1] == totals[-1] == len(hasher.history_)
    stages = [values["stage"] for values in updates]  # of what comes after each step
    assert stages[0] == "MAC"
    assert stages[-1] == ("MAC" if "refine" in settings else "refining")
    assert stages == sorted(stages)
    refined = [step.mu == math.inf for step in hasher.history_]
    assert [stage == "refining" for stage in stages[:-1]] == refined[1:]


def test_two_step_hashing_is_one_step(updates):
    TwoStepHash(n_bits=4, n_similar=5, n_dissimilar=10, n_jobs=1, verbose=1).fit(X, y)
    [update] = updates
    assert (update["completed"], update["total"], update["stage"]) == (1, 1, "two-step")


def test_a_step_in_words():
    step = Step(3, 0.25, 12.5, 10.0, 11.0, 1234, 0.5, False, 1.0)
    message = progress.describe(step)
    assert (
        message == "mu 0.25  L(h) 12.5  1,234 bits of Z differ from h(X)  precision 0.500 (skipped)"
    )
    refined = Step(4, math.inf, 12.5, 12.5, 12.5, 0, math.nan, True, 1.0)
    assert re.fullmatch(r"L\(h\) 12\.5", progress.describe(refined))


def test_a_run_that_goes_on_in_its_refinement_ends_at_its_total(updates, tmp_path, monkeypatch):
    hasher = MACHash(n_bits=4, n_similar=5, n_dissimilar=10, random_state=0, n_jobs=1, verbose=1)
    write = Checkpoint.write

    def interrupted(self, saved):
        write(self, saved)
        if saved.history[-1].mu == math.inf and saved.pairs[-1][1].position.reports == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hasher.fit(X, y, checkpoint=tmp_path)
    before = updates[-1]["completed"]
    updates.clear()
    hasher.fit(X, y, checkpoint=tmp_path)
    assert [update["completed"] for update in updates][-4:] == [before + k for k in (1, 2, 3, 4)]
    assert updates[-1]["completed"] == updates[-1]["total"] == len(hasher.history_)


@pytest.mark.parametrize("query_function", [None, "linear"])
def test_the_bar_of_neighbours_ends_at_its_total(monkeypatch, query_function):
    totals = []

    class Recorded(rich_progress.Progress):
        def add_task(self, *args, **values):
            totals.append(values["total"])
            return super().add_task(*args, **values)

    monkeypatch.setattr(rich_progress, "Progress", Recorded)
    settings = {"hash_function": "linear", "query_function": query_function, "n_steps": 20}
    hasher = NeighborHash(8, **settings, verbose=1).fit(X)
    assert totals[-1] == hasher.history_[-1].step
