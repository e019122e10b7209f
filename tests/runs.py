"""Runs of the suite: its order, which may be shuffled, and the skipped tests, which are counted.

With CI=true, a run fails where a test is skipped for a reason that this run does not expect.
"""

import argparse
import gc
import os
import random
from collections import Counter

import pytest

# Reasons that lie in the machine or in the test, and may come up in any run.
ANYWHERE = (
    "does not apply",
    "needs Linux, to measure memory",
    "needs POSIX",
    "needs a processor with SVE",
    "root may",
    "SCIPY_ARRAY_API is not set",  # of scikit-learn's checks of estimators
)
# Reasons that lie in what a run has at hand: a make target names those it expects (--may-skip), and
# a workflow those of its machines (PYTEST_ADDOPTS).
NAMED = {
    "browser": "needs a browser",
    "data": "is not in the cache",
    "dist": "make dist builds it",
    "docs": "could not import 'docutils",
    "gpu": "needs a GPU",
    "namespaces": "make namespaces",
    "soak": "make soak runs it",
    "stores": "(make test-stores)",
    "torch": "PyTorch is not installed",
}

# Half of the tests, of what trains, and then search: two processes, of which each starts with a
# half of the tests, compile kernels of their own, in place of the same ones at the same time.
FIRST = ["learn", "mac", "model", "dask", "search"]


def reasons(names):
    try:
        return [NAMED[name] for name in names.split(",")]
    except KeyError as name:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(NAMED)}") from None


def pytest_addoption(parser):
    parser.addoption(
        "--may-skip",
        type=reasons,
        action="extend",
        default=[],
        help=f"reasons to skip a test that are expected in this run: {','.join(NAMED)}",
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run in this random order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Order the rooms; or shuffle the files, and the tests of each file."""
    if (seed := config.getoption("shuffle")) is not None:
        chance = random.Random(seed)
        files = {item.path: chance.random() for item in items}
        items.sort(key=lambda item: (files[item.path], chance.random()))
    else:
        items.sort(key=lambda item: _place(item.nodeid))


def _place(name):
    """Place of a test's room among those that come first."""
    room = name.split("/")[1] if name.count("/") > 1 else ""
    return FIRST.index(room) if room in FIRST else len(FIRST)


def pytest_collection_finish():
    """Spare the garbage collector what is there for good: it took 3% of a run."""
    gc.freeze()


def skipped(config):
    """Return how many tests, or files of tests, were skipped for each reason."""
    reports = config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped", ())
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)


def unexpected(config):
    """Return the reasons that this run does not expect; none unless CI is true."""
    expected = (*ANYWHERE, *config.getoption("may_skip"))
    reasons = skipped(config) if os.environ.get("CI") == "true" else ()
    return [reason for reason in reasons if not any(part in reason for part in expected)]


def pytest_sessionfinish(session):
    worker = hasattr(session.config, "workerinput")  # of xdist; its reports go to the controller
    if not worker and session.exitstatus == pytest.ExitCode.OK and unexpected(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if counts := skipped(config):
        message = ", ".join(f"{reason} x {count}" for reason, count in counts.most_common())
        terminalreporter.write_line(f"{counts.total()} skipped: {message}")
    for reason in unexpected(config):
        terminalreporter.write_line(f"skipped unexpectedly, which fails the run: {reason}")
