"""A folder with everything that the examples of the help texts name, small."""

import json
import shutil

import numpy as np
import pyarrow as arrow
import pytest
from click.testing import CliRunner
from PIL import Image
from pyarrow import parquet
from sklearn.datasets import load_digits

from auxhash.cli import main
from auxhash.experiments.datasets import write_vectors
from tests.conftest import refine_briefly

OWN_FEATURE = """
import numpy as np


def colours(pictures):
    return np.array([[*p.mean(axis=(0, 1)), *p.std(axis=(0, 1))] for p in pictures])
"""


def make_photos(folder, n=24):
    """Stripes one way or the other, of uneven sizes, half PNG and half JPEG."""
    rng = np.random.default_rng(0)
    for i in range(n):
        kind = folder / ("across" if i % 2 else "down")
        kind.mkdir(parents=True, exist_ok=True)
        height, width = 20 + i % 5, 24
        wave = np.sin(np.arange(width) * 1.2)[None, :] * np.ones((height, 1))
        if i % 2:
            wave = np.sin(np.arange(height) * 1.2)[:, None] * np.ones((1, width))
        pixels = 127 + 90 * wave[..., None] + rng.normal(0, 10, (height, width, 3))
        suffix = "png" if i % 3 else "jpg"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(kind / f"{i:02}.{suffix}")


def make_parts(folder, X):
    """The points in three .parquet files, with ids."""
    folder.mkdir()
    ids = [f"point {i}" for i in range(len(X))]
    for part, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        columns = {"id": [ids[i] for i in rows], "vector": list(X[rows])}
        parquet.write_table(arrow.table(columns), folder / f"{part}.parquet")


@pytest.fixture(scope="package", autouse=True)
def briefly_refined():
    with pytest.MonkeyPatch.context() as patch:
        refine_briefly(patch)
        yield


@pytest.fixture(scope="package")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:160], y[:160]
    np.save(folder / "features.npy", X[:120])
    np.save(folder / "labels.npy", y[:120])
    np.save(folder / "queries.npy", X[120:])
    np.save(folder / "query-labels.npy", y[120:])
    np.save(folder / "new.npy", X[40:])
    np.save(folder / "new-labels.npy", y[40:])
    np.save(folder / "ids.npy", np.arange(120) * 10)
    np.save(folder / "new-ids.npy", np.arange(1000, 1120))
    write_vectors(folder / "features.fvecs", X[:120])
    np.savez(folder / "features.npz", X=X[:120], y=y[:120])
    names = ",".join(f"pixel{i}" for i in range(64))
    lines = [f"{','.join(map(str, x))},{'abcd'[label]}" for x, label in zip(X, y, strict=True)]
    (folder / "table.csv").write_text(f"{names},y\n" + "\n".join(lines[:120]) + "\n")
    pairs = [f"{i},{i + 1},{1 if y[i] == y[i + 1] else -1}" for i in range(119)]
    (folder / "pairs.csv").write_text("i,j,y\n" + "\n".join(pairs) + "\n")
    nearest = ((X[120:, None] - X[None, :120]) ** 2).sum(axis=2).argsort(axis=1)[:, :2]
    asked = [
        f"{i},{row},{2 - place}" for i, rows in enumerate(nearest) for place, row in enumerate(rows)
    ]
    (folder / "asked.csv").write_text("query,id,weight\n" + "\n".join(asked) + "\n")
    documents = "\n".join(f"{i},doc-{i}" for i in range(120))
    (folder / "documents.csv").write_text(f"year,doc\n{documents}\n")
    (folder / "mine.py").write_text(OWN_FEATURE)
    make_photos(folder / "photos")
    make_parts(folder / "parts", X[:120])
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of the made folder, as the working directory: no test leaves files for another."""
    folder = shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run():
    """Run a command and return its result; with --json, what it printed."""

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        if "--json" in arguments and code == 0:
            return json.loads(result.stdout)
        return result

    return invoke


FEW_PAIRS = ("--similar", "10", "--dissimilar", "20", "--jobs", "1")


@pytest.fixture(scope="package")
def model(made):
    """A model of 12 bits, learnt from features.npy."""
    path = made / "small.safetensors"
    arguments = ["fit", str(made / "features.npy"), str(made / "labels.npy"), "-o", str(path)]
    result = CliRunner().invoke(main, [*arguments, "--bits", "12", *FEW_PAIRS])
    assert result.exit_code == 0, result.output
    return path
