"""Search over partitions gives what one index of all codes gives, ties included."""

from uuid import UUID

import dask.array as da
import numpy as np
import pytest

from auxhash import HammingIndex
from auxhash.dask import DaskIndex


@pytest.mark.parametrize("chunks", [100, 7, (3, 0, 60, 37)])
@pytest.mark.parametrize("k", [1, 9, 200])
def test_results_are_those_of_one_index(client, chunks, k):
    codes = np.random.default_rng(0).integers(0, 16, (100, 1), np.uint8)  # many ties
    index = DaskIndex(da.from_array(codes, chunks=(chunks, -1)), n_bits=4)
    assert len(index) == 100
    want = HammingIndex(4).add(codes).search(codes[:5], k)
    hits = index.search(codes[:5], k)
    for some, other in zip(hits, want, strict=True):
        np.testing.assert_array_equal(some, other)
        assert some.dtype == other.dtype
    assert "100 codes of 4 bits" in repr(index)


@pytest.mark.parametrize("kind", ["number", "text", "uuid", "series"])
@pytest.mark.parametrize("chunks", [100, (3, 0, 60, 37)])
def test_ids_of_any_kind(client, kind, chunks):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 16, (100, 1), np.uint8)
    numbers = rng.permutation(100) + 2**60
    ids = {
        "number": numbers,
        "text": np.array([f"doc/ü-{i}" for i in numbers.tolist()], object),
        "uuid": np.array([UUID(int=i) for i in numbers.tolist()], object),
        "series": np.array([f"doc {i}" for i in numbers.tolist()], object),
    }[kind]
    lazy = da.from_array(ids, chunks=50 if kind != "series" else chunks)
    if kind == "series":
        dd = pytest.importorskip("dask.dataframe")
        lazy = dd.from_dask_array(lazy)
    index = DaskIndex(da.from_array(codes, chunks=(chunks, -1)), n_bits=4, ids=lazy)
    distances, rows = HammingIndex(4).add(codes).search(codes[:5], 9)
    hits = index.search(codes[:5], 9)
    np.testing.assert_array_equal(hits[0], distances)
    expected = ids if kind == "number" else np.array([str(each) for each in ids], object)
    assert hits[1].tolist() == expected[rows].tolist()
    assert hits[1].dtype == (np.int64 if kind == "number" else object)


def test_wrong_ids(client):
    codes = da.from_array(np.zeros((4, 1), np.uint8), chunks=(2, -1))
    for ids, says in (
        (["a"] * 4, "ids must be a dask array or series"),
        (da.from_array(np.arange(3), chunks=2), r"partitions of \[2, 1\] ids and \[2, 2\] codes"),
        (da.from_array(np.array(["a", "", "b", "c"], object), chunks=2), "none of it empty"),
        (da.from_array(np.array(["a", "b", 1, 2], object), chunks=2), "and are mixed"),
    ):
        with pytest.raises(ValueError, match=says):
            DaskIndex(codes, 8, ids=ids)


def test_what_cannot_be_searched(client):
    with pytest.raises(ValueError, match="dask array of packed codes"):
        DaskIndex(np.zeros((3, 1), np.uint8), 8)
    with pytest.raises(ValueError, match="2 bytes"):
        DaskIndex(da.zeros((3, 1), dtype=np.uint8), 16)
    index = DaskIndex(da.zeros((0, 1), dtype=np.uint8), 8)
    with pytest.raises(ValueError, match="empty"):
        index.search(np.zeros((1, 1), np.uint8), 1)
    with pytest.raises(ValueError, match="k must"):
        DaskIndex(da.zeros((3, 1), dtype=np.uint8), 8).search(np.zeros((1, 1), np.uint8), 0)
