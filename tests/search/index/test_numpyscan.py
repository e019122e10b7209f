"""Search without kernels gives what the kernels give."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.codes import pack
from auxhash.search.index import numpyscan, scan
from tests.programs import run_python


def drawn(rng, n, n_bits, tied):
    codes = rng.choice([-1, 1], (min(n, 3) if tied else n, n_bits))
    return pack(codes[rng.integers(len(codes), size=n)])


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 300),
    n_queries=st.integers(0, 3),
    n_bits=st.one_of(st.integers(1, 70), st.sampled_from([255, 256, 257, 4096])),
    k=st.integers(1, 400),
    tied=st.booleans(),
)
def test_results_are_those_of_the_kernels(seed, n, n_queries, n_bits, k, tied):
    rng = np.random.default_rng(seed)
    planes = scan.to_planes(drawn(rng, n + 5, n_bits, tied))  # five behind the first n
    queries = drawn(rng, n_queries, n_bits, tied) if n_queries else planes.T[:0]
    radius = int(rng.integers(n_bits + 1))
    result = [*numpyscan.nearest(planes, n, queries, k)]
    expected = [*scan.nearest(planes, n, queries, k)]
    for results, by in ((result, numpyscan), (expected, scan)):
        near, where = by.within(planes, n, queries, radius)
        results += [*near, *where]
    for one, other in zip(result, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_all_bits_differ():
    planes = scan.to_planes(np.full((3, 4095), 255, np.uint8))
    distances, _ = numpyscan.nearest(planes, 3, np.zeros((1, 4095), np.uint8), 2)
    assert distances.tolist() == [[8 * 4095] * 2]


def test_many_small_searches_load_the_kernels():
    code = (
        "import sys, json, numpy as np;"
        "from auxhash import HammingIndex;"
        "rng = np.random.default_rng(0);"
        "index = HammingIndex(64).add(rng.integers(0, 256, (4096, 8), np.uint8));"
        "search = lambda: index.search(index.packed[:100], 3)[1].tolist();"
        "first = search(), 'numba' in sys.modules;"
        "last = [search() for _ in range(10)][-1], 'numba' in sys.modules;"
        "print(json.dumps([first, last]))"
    )
    (first, before), (last, after) = json.loads(run_python(code))
    assert (before, after) == (False, True)
    assert first == last


@pytest.mark.parametrize("n_queries", [1, 1000])
def test_no_more_once_kernels_are_loaded(monkeypatch, n_queries):
    monkeypatch.setattr(numpyscan, "_bytes_left", numpyscan.MAX_NUMPY_BYTES)
    monkeypatch.setattr(numpyscan.kernels, "loaded", lambda: False)
    assert numpyscan.suffices(100, 4, n_queries)
    assert not numpyscan.suffices(numpyscan.MAX_NUMPY_BYTES, 4, 1)
    monkeypatch.setattr(numpyscan, "_bytes_left", numpyscan.MAX_NUMPY_BYTES)
    monkeypatch.setattr(numpyscan.kernels, "loaded", lambda: True)
    assert not numpyscan.suffices(100, 4, n_queries)
