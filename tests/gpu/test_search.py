"""Search and metrics on a GPU give what the processor gives, to the last tie."""

import numpy as np
import pytest

from auxhash import HammingIndex
from auxhash.compute import device as devices
from auxhash.search import metrics


def packed(rng, n, b):
    return np.packbits(rng.integers(0, 2, (n, b), np.uint8), axis=1, bitorder="little")


@pytest.mark.parametrize("b", [7, 16, 64, 100])
@pytest.mark.parametrize("k", [1, 7, 600, 1000])
def test_the_nearest_are_the_same(gpu, rng, b, k):
    base, queries = packed(rng, 700, b), packed(rng, 5, b)
    base[100:160] = base[3]  # ties
    queries[0] = base[3]
    here = HammingIndex(b).add(base)
    there = HammingIndex(b, device="cuda").add(base)
    for expected, actual in zip(here.search(queries, k), there.search(queries, k), strict=True):
        np.testing.assert_array_equal(actual, expected)
    ids = 5 * np.arange(20) + 3
    for index in (here, there):
        index.add(queries[:1].repeat(20, axis=0), ids=700 + ids)
        index.remove([3, 120])
    for expected, actual in zip(here.search(queries, k), there.search(queries, k), strict=True):
        np.testing.assert_array_equal(actual, expected)


def agree(expected, actual):
    for one, other in zip(expected, actual, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("b", [7, 16, 64, 100, 300])
@pytest.mark.parametrize("k", [1, 7, 600, 1000])
def test_the_nearest_by_tables_are_the_same(gpu, rng, b, k):
    base = packed(rng, 700, b)
    base[100:160] = base[3]  # ties
    tables = rng.standard_normal((5, base.shape[1], 256)).astype(np.float32)
    tables[1] = 0  # all tie
    tables[2] = np.rint(tables[2])
    tables[3] *= 1e-38
    here, there = (HammingIndex(b, device=device).add(base) for device in ("cpu", "cuda"))
    agree(here.search_tables(tables, k), there.search_tables(tables, k))
    for index in (here, there):
        index.remove([3, 120])
    agree(here.search_tables(tables, k), there.search_tables(tables, k))
    some = np.arange(100, 400, 7)
    agree(here.search_tables(tables, k, among=some), there.search_tables(tables, k, among=some))
    first = here.prefix(b // 8 * 8 or b), there.prefix(b // 8 * 8 or b)
    agree(*(index.search_tables(tables[:, : max(1, b // 8)], k) for index in first))


def test_tables_of_a_gpu_are_answered_there(gpu, rng, monkeypatch):
    monkeypatch.setattr("auxhash.search.index.gpu.TABLES_PER_CALL", 4)  # two queries per call
    base, tables = packed(rng, 50, 16), rng.random((5, 2, 256)).astype(np.float32)
    index = HammingIndex(16, device="cuda").add(base)
    distances, ids = index.search_tables(gpu.put(tables), 4)
    assert devices.of(distances) == devices.of(ids) == gpu
    agree(index.search_tables(tables, 4), (gpu.fetch(distances), gpu.fetch(ids)))
    monkeypatch.setattr("auxhash.search.index.gpu.MAX_TABLE_CODES", 49)
    with pytest.raises(ValueError, match="at most 49 codes are searched by tables, got 50"):
        index.search_tables(tables, 4)


def test_an_index_from_a_file_searches_there(gpu, rng, tmp_path):
    base, queries = packed(rng, 90, 16), packed(rng, 5, 16)
    here = HammingIndex(16).add(base, ids=np.arange(90) * 3)
    here.save(tmp_path / "codes.index")
    there = HammingIndex.load(tmp_path / "codes.index", device="cuda")
    assert there.device == "cuda"
    for expected, actual in zip(here.search(queries, 7), there.search(queries, 7), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_too_many_codes_at_one_distance_are_sorted_whole(gpu, rng, monkeypatch):
    monkeypatch.setattr("auxhash.search.index.gpu.MAX_CANDIDATES", 64)
    base = packed(rng, 300, 8)
    base[50:250] = base[0]
    here, there = (HammingIndex(8, device=device).add(base) for device in ("cpu", "cuda"))
    for expected, actual in zip(here.search(base[:4], 20), there.search(base[:4], 20), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_answers_come_on_the_device_of_the_question(gpu, rng):
    base = packed(rng, 50, 16)
    index = HammingIndex(16, device="cuda").add(gpu.put(base))
    distances, ids = index.search(gpu.put(base[:3]), 4)
    assert devices.of(distances) == devices.of(ids) == gpu
    np.testing.assert_array_equal(gpu.fetch(ids), index.search(base[:3], 4)[1])


@pytest.mark.parametrize("b", [8, 64, 90])
@pytest.mark.parametrize("kind", ["labels", "sets", "neighbors"])
def test_all_measures_are_the_same(gpu, rng, b, kind):
    base, queries = packed(rng, 300, b), packed(rng, 4, b)
    truth = {
        "labels": lambda: (rng.integers(0, 3, 4), rng.integers(0, 3, 300)),
        "sets": lambda: (rng.integers(0, 2, (4, 9)), rng.integers(0, 2, (300, 9))),
        "neighbors": lambda: (None, None),
    }[kind]()
    near = np.stack([rng.permutation(300)[:6] for _ in range(4)]) if kind == "neighbors" else None
    here, there = (
        metrics.evaluate(queries, base, *truth, neighbors=near, n_bits=b, device=device)
        for device in ("cpu", "cuda")
    )
    for name, value in vars(here).items():
        np.testing.assert_array_equal(getattr(there, name), value)


def test_auto_takes_the_processor_for_what_a_gpu_does_not_do(gpu, rng, monkeypatch):
    base, labels = packed(rng, 20, 600), np.arange(20) % 3
    here, there = (
        metrics.distance_histogram(base, base, labels, labels, device=device)
        for device in ("cpu", "auto")
    )
    np.testing.assert_array_equal(here, there)
    metrics.precision_at_k(base, base, labels, labels, 3, ties="index", device="auto")
    assert HammingIndex(600, device="auto").add(base).search(base, 1)[1].ravel().tolist() == [
        *range(20)
    ]
    index = HammingIndex(16, device="auto").add(base[:, :2])
    monkeypatch.setattr(devices.Device, "free", lambda self: 0)
    expected = HammingIndex(16).add(base[:, :2]).search(base[:, :2], 3)
    for actual, right in zip(index.search(base[:, :2], 3), expected, strict=True):
        np.testing.assert_array_equal(actual, right)
    with pytest.raises(MemoryError, match="free"):
        HammingIndex(16, device="cuda").add(base[:, :2]).search(base[:, :2], 3)
    metrics.distance_histogram(base[:, :2], base[:, :2], labels, labels, device="auto")


def test_what_a_gpu_does_not_count_is_refused(gpu, rng):
    base = packed(rng, 20, 600)
    with pytest.raises(ValueError, match="511"):
        metrics.distance_histogram(base, base, np.arange(20), np.arange(20), device="cuda")
    with pytest.raises(ValueError, match="index"):
        metrics.precision_at_k(
            base[:, :2], base[:, :2], np.arange(20), np.arange(20), 3, ties="index", device="cuda"
        )
    with pytest.raises(ValueError, match="512"):
        HammingIndex(600, device="cuda").add(base).search(base, 1)
