"""Search over partitions gives what one index of all codes gives, ties included."""

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
    found = index.search(codes[:5], k)
    for some, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(some, other)
        assert some.dtype == other.dtype
    assert "100 codes of 4 bits" in repr(index)


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
