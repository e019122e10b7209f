"""Tests of the data sets need no network: made-up files, fake package clients, a local server.

Tests over real data run only where the cache already holds it.
"""

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from auxhash.experiments.datasets import entry, mnist
from auxhash.experiments.datasets.fetch import cache
from auxhash.experiments.datasets.fetch.sources import Collection, File
from tests.experiments.datasets.made import idx_of

REAL_CACHE = cache.folder()


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache folder of the test's own."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def real(monkeypatch) -> Callable[..., None]:
    """Skip unless the user's cache holds the files of a data set, and what was made of them."""

    def needed(name: str, made: bool = False) -> None:
        monkeypatch.setenv(cache.VARIABLE, str(REAL_CACHE))
        present = all(files.present() for files in entry(name).files)
        if not present or (made and not any((REAL_CACHE / name).glob("*.npy"))):
            pytest.skip(f"{name} is not in the cache")

    return needed


@pytest.fixture
def client(tmp_path, monkeypatch) -> Callable[[str, str], None]:
    """Put a fake package client, given as Python source, first on PATH (and nothing else)."""
    home = tmp_path / "bin"
    home.mkdir()
    monkeypatch.setenv("PATH", str(home))

    def add(name: str, source: str) -> None:
        script = home / name
        script.write_text(f"#!{sys.executable}\nimport os, sys, shutil\n{source}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    return add


@pytest.fixture
def tiny_mnist(folder, monkeypatch):
    """Fifty training images and twenty tests in MNIST's form, in the cache."""
    rng = np.random.default_rng(0)
    home = folder / "mnist"
    home.mkdir(parents=True)
    for (images, labels), n in (((mnist.NAMES[:2]), 50), ((mnist.NAMES[2:]), 20)):
        (home / images).write_bytes(idx_of(rng.integers(0, 256, (n, 28, 28))))
        (home / labels).write_bytes(idx_of(np.arange(n) % 10))
    files = Collection("mnist", tuple(File(name) for name in mnist.NAMES), ())
    monkeypatch.setattr(mnist, "FILES", files)
    return files
