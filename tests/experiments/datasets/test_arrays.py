import re
import sys

import numpy as np
import pytest

from auxhash.compute.extras import install
from auxhash.experiments.datasets import from_arrays, write_vectors

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = np.arange(40) % 4


def test_arrays_are_split_at_random():
    data = from_arrays(X, y=Y, n_train=10, n_query=8, seed=5)
    assert [len(part) for part in (data.train, data.base, data.query)] == [10, 32, 8]
    rows = np.vstack([data.base.X, data.query.X])
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(X, axis=0))
    assert "drawn at random, none of them in the base" in data.protocol
    assert len(from_arrays(X).query) == 4  # a tenth


def test_points_are_held_once(tmp_path):
    data = from_arrays(X, y=Y)
    assert data.train.X is data.base.X
    write_vectors(tmp_path / "a.fvecs", X)
    np.save(tmp_path / "a.npy", X)
    for name in ("a.fvecs", "a.npy"):
        data = from_arrays(tmp_path / name, X[:5])
        assert isinstance(data.base.X, np.memmap)
        np.testing.assert_array_equal(data.train.X, X)


def test_parts_as_given():
    data = from_arrays(
        X[:20], X[20:30], X[30:], y=Y[:20], query_y=Y[20:30], train_y=Y[30:], cosine=True
    )
    assert [len(part) for part in (data.train, data.base, data.query)] == [10, 20, 10]
    np.testing.assert_array_equal(data.query.y, Y[20:30])
    assert "given apart from the base" in data.protocol
    assert "queries (as given)" in data.protocol
    assert "Cosine" in data.protocol


def save_parquet(path, columns):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), path)


def test_every_kind_of_file(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X, y=Y, other=Y)
    np.savez(tmp_path / "only.npz", features=X)
    write_vectors(tmp_path / "a.fvecs", X)
    for name in ("a.npy", "a.npz", "only.npz", "a.fvecs"):
        data = from_arrays(str(tmp_path / name), X)
        np.testing.assert_array_equal(data.base.X, X)
    np.testing.assert_array_equal(from_arrays(tmp_path / "a.npz", X).base.y, Y)
    small = X.astype(np.uint8)
    write_vectors(tmp_path / "a.bvecs", small)
    np.testing.assert_array_equal(from_arrays(tmp_path / "a.bvecs", small).base.X, small)
    np.save(tmp_path / "labels.npy", Y)
    labelled = from_arrays(tmp_path / "a.npy", X, y=tmp_path / "labels.npy")
    np.testing.assert_array_equal(labelled.base.y, Y)
    truth = np.zeros((40, 5), np.int32)
    write_vectors(tmp_path / "truth.ivecs", truth)
    result = from_arrays(X, X, neighbors=tmp_path / "truth.ivecs", n_query=30).query
    assert result.neighbors.shape == (30, 5)


def test_parquet(tmp_path):
    save_parquet(tmp_path / "lists.parquet", {"embedding": list(X), "y": Y, "name": ["a"] * 40})
    save_parquet(tmp_path / "columns.parquet", {"a": X[:, 0], "b": X[:, 1], "class": Y})
    data = from_arrays(tmp_path / "lists.parquet", X)
    np.testing.assert_array_equal(data.base.X, X)
    np.testing.assert_array_equal(data.base.y, Y)
    data = from_arrays(tmp_path / "columns.parquet", X[:, :2], label="class")
    np.testing.assert_array_equal(data.base.X, X[:, :2])
    np.testing.assert_array_equal(data.base.y, Y)
    save_parquet(tmp_path / "uneven.parquet", {"embedding": [[1.0], [1.0, 2.0]]})
    with pytest.raises(ValueError, match="differ in length"):
        from_arrays(tmp_path / "uneven.parquet")
    save_parquet(tmp_path / "words.parquet", {"name": ["a", "b"]})
    with pytest.raises(ValueError, match="one column of lists, or columns of numbers"):
        from_arrays(tmp_path / "words.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=re.escape(install("data"))):
        from_arrays(tmp_path / "a.parquet")


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"code": "runs"}]), allow_pickle=True)
    with pytest.raises(ValueError, match="holds Python objects"):
        from_arrays(tmp_path / "a.npy")


def test_faults_are_named(tmp_path):
    cases = [
        ({"base": X[0]}, r"base must be of shape \(n, D\)"),
        ({"base": np.array([["a"]])}, "base must hold real numbers"),
        ({"base": X, "y": Y[:3]}, "base has 40 points but 3 labels"),
        ({"base": X, "query": X[:, :2]}, "query has 2 features, base has 3"),
        ({"base": X, "train": X[:, :2]}, "train has 2 features, base has 3"),
        ({"base": X, "neighbors": [[0]]}, "which is not given"),
        ({"base": X, "query": X[:1], "neighbors": [[40]]}, r"must lie in 0\.\.39"),
        ({"base": X, "query": X[:1], "neighbors": [[0.5]]}, "whole numbers"),
        ({"base": X, "n_query": 0}, "n_query must be a whole number from 1"),
        ({"base": tmp_path / "a.xls"}, r"base: a\.xls must end in \.npy, \.npz"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            from_arrays(**arguments)
    with pytest.raises(FileNotFoundError, match="query: there is no file"):
        from_arrays(X, tmp_path / "a.npy")
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(ValueError, match="must hold an array X; it holds a, b"):
        from_arrays(tmp_path / "two.npz")
