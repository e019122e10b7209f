"""Vectors computed block after block, with interruptions; by NumPy in place of a model."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from auxhash.compute import bars
from auxhash.compute.extras import install
from auxhash.experiments.datasets import embedded
from auxhash.experiments.datasets.embedded import ROWS_PER_BLOCK

N, WIDTH = 5 * ROWS_PER_BLOCK + 7, 3
RIGHT = np.arange(N * WIDTH, dtype=np.float32).reshape(N, WIDTH)


@pytest.fixture
def device(monkeypatch):
    """A device that needs no PyTorch."""
    monkeypatch.setattr(embedded, "check_installed", lambda: None)
    monkeypatch.setattr(embedded, "best_device", lambda: "abacus")


class Model:
    """Looks vectors up, and is interrupted at the given row."""

    def __init__(self, stops_at=None):
        self.stops_at, self.rows = stops_at, []

    def __call__(self, device):
        assert device == "abacus"
        return self.embed

    def embed(self, rows):
        if self.stops_at is not None and rows.stop > self.stops_at:
            raise KeyboardInterrupt
        self.rows += range(N)[rows]
        return RIGHT[rows]


def test_computed_once(device, tmp_path, capsys):
    path, model = tmp_path / "set" / "x.npy", Model()
    for _ in range(2):
        np.testing.assert_array_equal(embedded.vectors(path, N, WIDTH, model), RIGHT)
    assert model.rows == list(range(N))
    assert [file.name for file in path.parent.iterdir()] == ["x.npy"]
    said = capsys.readouterr().err
    assert said.startswith(f"set on abacus: {N - 2 * ROWS_PER_BLOCK} rows left, about 0 s. ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("cut", [0, 1, 4 * WIDTH, 4 * WIDTH * ROWS_PER_BLOCK - 1, 10**9])
def test_goes_on_where_it_was(device, tmp_path, cut):
    """Also where the last row, or even the header, was not written to its end."""
    path, part = tmp_path / "x.npy", tmp_path / "x.npy.part"
    with pytest.raises(KeyboardInterrupt):
        embedded.vectors(path, N, WIDTH, Model(stops_at=3 * ROWS_PER_BLOCK))
    assert not path.exists()
    size = part.stat().st_size
    with part.open("r+b") as stream:
        stream.truncate(max(10, size - cut))
    model = Model()
    np.testing.assert_array_equal(embedded.vectors(path, N, WIDTH, model), RIGHT)
    first = max(0, 3 * ROWS_PER_BLOCK - -(-cut // (4 * WIDTH)))
    assert model.rows == list(range(first, N))
    assert not part.exists()


def test_progress_in_a_log_is_of_the_rows_that_were_left(device, tmp_path, capsys, monkeypatch):
    path = tmp_path / "set" / "x.npy"
    with pytest.raises(KeyboardInterrupt):
        embedded.vectors(path, N, WIDTH, Model(stops_at=3 * ROWS_PER_BLOCK))
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.02)

    def slowly(rows):
        time.sleep(0.05)
        return RIGHT[rows]

    embedded.vectors(path, N, WIDTH, lambda device: slowly)
    *_, last = capsys.readouterr().err.splitlines()
    left = N - 3 * ROWS_PER_BLOCK
    assert re.fullmatch(f"{left} of {left} set on abacus; 0:00:\\d\\d taken", last)


SLOW = """
import sys, time
from pathlib import Path
import numpy as np
from auxhash.experiments.datasets import embedded
embedded.check_installed, embedded.best_device = (lambda: None), (lambda: "abacus")
def embed(rows):
    time.sleep(0.05)
    return np.arange({n} * {width}, dtype=np.float32).reshape({n}, {width})[rows]
embedded.vectors(Path(sys.argv[1]), {n}, {width}, lambda device: embed)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_goes_on_after_a_kill(device, tmp_path, number):
    path, part = tmp_path / "x.npy", tmp_path / "x.npy.part"
    command = [sys.executable, "-c", SLOW.format(n=N, width=WIDTH), str(path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        for _ in range(2000):
            if part.exists() and part.stat().st_size > 4 * WIDTH * ROWS_PER_BLOCK:
                break
            time.sleep(0.02)
        process.send_signal(number)
    assert process.returncode
    assert not path.exists()
    model = Model()
    np.testing.assert_array_equal(embedded.vectors(path, N, WIDTH, model), RIGHT)
    assert 0 < len(model.rows) < N


def test_without_pytorch_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match="tokenizers.*" + re.escape(install("embeddings"))):
        embedded.vectors(tmp_path / "set" / "x.npy", N, WIDTH, Model())
    assert not list(tmp_path.iterdir())
