"""One of something is told as one."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash import HammingIndex
from auxhash.cli import main
from auxhash.compute.words import count


def test_count():
    assert [count(n, "bit") for n in (0, 1, 2, 3000)] == ["0 bits", "1 bit", "2 bits", "3,000 bits"]
    assert [count(n, "query") for n in (1, 2)] == ["1 query", "2 queries"]
    assert [count(n, "class") for n in (1, 2)] == ["1 class", "2 classes"]


def test_an_index():
    index = HammingIndex(1)
    assert repr(index) == "HammingIndex(0 codes of 1 bit)"
    assert repr(index.add([[1]])) == "HammingIndex(1 code of 1 bit)"


@pytest.fixture
def one(tmp_path, monkeypatch):
    """A code of one bit."""
    monkeypatch.chdir(tmp_path)
    np.save("one.npy", np.ones((1, 1), np.int8))
    np.save("label.npy", np.zeros(1, int))
    (tmp_path / "name.txt").write_text("a\n")


LINES = (
    "index one.npy -o one.index",
    "inspect one.index",
    "inspect one.npy",
    "search one.index one.npy -k 1",
    "search one.index one.npy --radius 1",
    "add one.index one.npy",
    "remove one.index 1 7",
    "search one.index one.npy --names name.txt",
    "evaluate one.npy one.npy --labels label.npy --base-labels label.npy -k 1",
)


def test_no_command_says_1_codes(one):
    for line in LINES:
        result = CliRunner().invoke(main, line.split())
        assert result.exit_code == 0, f"{line}\n{result.output}"
        assert not re.search(r"\b1 (?!class\b)\w+s\b", result.output), f"{line}\n{result.output}"
