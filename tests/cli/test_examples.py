"""Every example in a help text runs, in the order in which the commands are listed."""

import shlex
import sys
from functools import partial

import numpy as np
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.experiments.datasets import digits
from tests.cli.test_start import commands


def examples():
    """The lines of the help texts that begin with auxhash, the chain of the first page first."""
    for _, command in commands():
        for line in command.help.splitlines():
            if line.strip().startswith("auxhash "):
                yield line.strip()


def test_every_example_runs(here, monkeypatch):
    monkeypatch.setenv("AUXHASH_DATA", str(here / "cache"))
    monkeypatch.setattr(digits, "load", partial(digits.load, n_train=150))  # the demo, quick
    # A server would go on for ever, and the page has models of its own: all but that.
    monkeypatch.setattr(sys.modules["auxhash.cli.serve"], "_show", lambda: None)
    monkeypatch.setattr("auxhash.serve.server.run", lambda app, work, *more: work._opened().close())
    seen = set()
    missing = {  # made by no example
        "auxhash evaluate table.csv": "auxhash fit table.csv -o table.safetensors --bits 8",
        "auxhash search photos.index": "auxhash index photo-codes.safetensors -o photos.index",
    }
    for example in examples():
        for begin, made_by in missing.items():
            if example.startswith(begin):
                ran(made_by)
        ran(example)
        seen.add(example.split()[1])
    assert seen == set(main.commands)
    assert np.load("found.npz")["ids"].shape == (40, 5)


def ran(example):
    arguments = shlex.split(example)[1:]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, f"{example}\n{result.output}"
