import numpy as np
import pytest

from auxhash.experiments import datasets
from auxhash.experiments.datasets import mnist
from tests.experiments.datasets.made import idx_of


def test_queries_come_from_the_tests(tiny_mnist):
    data = datasets.load("mnist", n_train=10, n_query=15)
    assert [len(part) for part in (data.train, data.base, data.query)] == [10, 50, 15]
    assert data.base.images.shape == (50, 28, 28)
    np.testing.assert_array_equal(data.base.y, np.arange(50) % 10)
    tests = {row.tobytes() for row in mnist.held_out_images(tiny_mnist.home).X}
    assert all(row.tobytes() in tests for row in data.query.X)


def test_idx_faults_are_named(tmp_path):
    path = tmp_path / "x"
    content = idx_of(np.zeros((3, 4)))
    path.write_bytes(content)
    assert mnist.read_idx(path).shape == (3, 4)
    for data, message in (
        (b"", "not an idx file"),
        (b"\0\0\x0d\x01", "not an idx file of unsigned bytes"),
        (content[:7], "truncated inside its header"),
        (content[:-1], r"holds 11 bytes, which do not make \(3, 4\)"),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            mnist.read_idx(path)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_real_set(real, name):
    real(name)
    data = datasets.load(name)
    assert [len(part) for part in (data.train, data.base, data.query)] == [10_000, 60_000, 2_000]
    assert data.base.X.shape == (60_000, 784)
    counts = np.bincount(data.base.y)
    assert len(counts) == 10
    assert counts.min() > 5_000
