"""HammingIndex against brute force, against faiss, and against damaged files."""

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from usearch.index import Index as USearchIndex

from auxhash import HammingIndex
from auxhash.codes import MAX_BITS, hamming, pack, unpack
from auxhash.compute import device as devices
from auxhash.compute.words import count
from auxhash.search.index import numpyscan, scan
from auxhash.search.index.multiindex import MultiIndex

BITS = (1, 7, 8, 9, 63, 64, 65, 128, 256)


@pytest.fixture(autouse=True, scope="module")
def by_kernels():
    """Searches are small here, and would be made without them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpyscan, "suffices", lambda *sizes: False)
        yield


def random_codes(rng, n, n_bits, tied=False):
    """Packed codes; `tied` draws them from only 5, so that nearly all distances tie."""
    if tied:
        few = rng.choice([-1, 1], (5, n_bits))
        return pack(few[rng.integers(0, len(few), n)])
    return pack(rng.choice([-1, 1], (n, n_bits)))


def brute_force(queries, base, k):
    """Distances and positions of the k nearest, equal distances by position."""
    distance = hamming(queries, base)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distance, order, axis=1), order


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_bits", BITS)
def test_search_equals_brute_force(n_bits, tied):
    rng = np.random.default_rng(n_bits)
    base, queries = (random_codes(rng, n, n_bits, tied) for n in (9000, 5))
    index = HammingIndex(n_bits).add(base)
    for k in (1, 10, 700, 9000):
        distances, ids = index.search(queries, k)
        expected = brute_force(queries, base, k)
        np.testing.assert_array_equal(distances, expected[0])
        np.testing.assert_array_equal(ids, expected[1])
        assert distances.dtype == np.int32
        assert ids.dtype == np.int64


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_bits", BITS)
def test_radius_search_equals_brute_force(n_bits, tied):
    rng = np.random.default_rng(n_bits)
    base, queries = (random_codes(rng, n, n_bits, tied) for n in (9000, 3))
    index = HammingIndex(n_bits).add(base)
    expected, order = brute_force(queries, base, len(base))
    for r in (0, 1, n_bits // 2, n_bits, 2 * n_bits):
        distances, ids = index.radius_search(queries, r)
        for q in range(len(queries)):
            inside = expected[q] <= r
            np.testing.assert_array_equal(distances[q], expected[q][inside])
            np.testing.assert_array_equal(ids[q], order[q][inside])


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 400),
    n_bits=st.integers(1, 300),
    k=st.integers(1, 500),
    tied=st.booleans(),
)
def test_search_properties(seed, n, n_bits, k, tied):
    rng = np.random.default_rng(seed)
    base, queries = (random_codes(rng, size, n_bits, tied) for size in (n, 3))
    distances, ids = HammingIndex(n_bits).add(base).search(queries, k)
    assert distances.shape == ids.shape == (3, min(n, k))
    expected = brute_force(queries, base, k)
    np.testing.assert_array_equal(distances, expected[0])
    np.testing.assert_array_equal(ids, expected[1])


def test_the_most_bits_there_may_be():
    codes = np.ones((3, MAX_BITS), np.int8)
    codes[1, :5], codes[2] = -1, -1
    index = HammingIndex(MAX_BITS).add(codes)
    distances, ids = index.search(codes[2:], 3)
    assert distances.tolist() == [[0, MAX_BITS - 5, MAX_BITS]]
    assert ids.tolist() == [[2, 1, 0]]
    assert index.radius_search(codes[2:], MAX_BITS)[1][0].tolist() == [2, 1, 0]
    assert index.radius_search(codes[2:], MAX_BITS - 1)[1][0].tolist() == [2, 1]


def test_sorted_base_that_misleads_the_guess():
    """Near codes only in the sampled runs (the guess is too low), or only outside (too high)."""
    n, k = 200_000, 2000
    place = np.arange(n) % (scan.RUNS_PER_SAMPLE * scan.CODES_PER_RUN)
    rng = np.random.default_rng(0)
    for near_in_sample in (True, False):
        near = (place < scan.CODES_PER_RUN) == near_in_sample
        base = np.where(near[:, None], rng.integers(0, 4, (n, 1)), rng.integers(0, 256, (n, 3)))
        packed = base.astype(np.uint8)
        query = np.zeros((1, 3), np.uint8)
        distances, ids = HammingIndex(24).add(packed).search(query, k)
        expected = brute_force(query, packed, k)
        np.testing.assert_array_equal(distances, expected[0])
        np.testing.assert_array_equal(ids, expected[1])


@pytest.mark.parametrize("n_queries", [1, 3, 40])
def test_number_of_threads_changes_nothing(n_queries, monkeypatch):
    monkeypatch.setattr(scan, "DISTANCES_PER_THREAD", 1000)  # so that small work is shared, too
    rng = np.random.default_rng(0)
    base, queries = random_codes(rng, 30_000, 32), random_codes(rng, n_queries, 32)
    results = []
    for n_jobs in (1, 2, 4):
        index = HammingIndex(32, n_jobs=n_jobs).add(base)
        near, where = index.radius_search(queries, 8)
        results.append([*index.search(queries, 700), *near, *where])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_bits", [16, 33, 64, 96])
def test_multi_index_equals_the_scan(n_bits):
    rng = np.random.default_rng(0)
    base = random_codes(rng, 20_000, n_bits)
    base[:500] = base[0]  # a crowded bucket, left to the scan
    queries = base[450:550] ^ (rng.random((100, base.shape[1])) < 0.2).astype(np.uint8)
    planes = scan.to_planes(base)
    multi = MultiIndex(planes, len(base))
    for r in range(multi.farthest + 1):
        a = multi.within(queries, r)
        b = scan.within(planes, len(base), queries, r)
        for ours, theirs in zip(a, b, strict=True):
            assert len(ours) == len(theirs) == len(queries)
            for x, y in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(x, y)


def test_radius_search_turns_to_tables_and_back(monkeypatch):
    monkeypatch.setattr("auxhash.search.index.multiindex.MIN_CODES", 100)
    rng = np.random.default_rng(0)
    base = random_codes(rng, 5000, 64)
    index = HammingIndex(64).add(base)
    first = index.radius_search(base[:200], 2)
    assert index._state.tables is not None
    second = index.radius_search(base[:200], 2)
    for a, b in zip(first[1], second[1], strict=True):
        np.testing.assert_array_equal(a, b)
    index.add(base[:1])
    assert index.radius_search(base[:1], 0)[1][0].tolist() == [0, 5000]


@pytest.mark.parametrize("n_bits", [8, 64, 72, 256])
def test_same_distances_as_faiss(n_bits):
    rng = np.random.default_rng(0)
    base, queries = random_codes(rng, 3000, n_bits), random_codes(rng, 20, n_bits)
    flat = faiss.IndexBinaryFlat(n_bits)
    flat.add(base)
    index = HammingIndex(n_bits).add(base)
    for k in (1, 50, 4000):
        theirs, ids = flat.search(queries, k)  # -1 where there are fewer
        ours = index.search(queries, k)[0]
        np.testing.assert_array_equal(ours, theirs[:, : len(index)])
        assert (ids[:, len(index) :] == -1).all()
    r = n_bits // 3
    stops, theirs, ids = flat.range_search(queries, r + 1)  # faiss's radius is strict
    ours, our_ids = index.radius_search(queries, r)
    for q in range(len(queries)):
        part = slice(stops[q], stops[q + 1])
        np.testing.assert_array_equal(ours[q], np.sort(theirs[part]))
        np.testing.assert_array_equal(np.sort(our_ids[q]), np.sort(ids[part]))


@pytest.mark.parametrize("n_bits", BITS)
def test_faiss_round_trip(n_bits):
    rng = np.random.default_rng(0)
    base = random_codes(rng, 100, n_bits)
    ids = rng.permutation(1000)[:100]
    index = HammingIndex(n_bits).add(base, ids)
    other = index.to_faiss()
    distances, hits = other.search(base[:5], 1)
    assert (distances == 0).all()
    np.testing.assert_array_equal(index.codes(hits[:, 0]), base[:5])
    back = HammingIndex.from_faiss(other, n_bits)
    np.testing.assert_array_equal(back.packed, base)
    np.testing.assert_array_equal(back.ids, ids)
    with pytest.raises(ValueError, match="n_bits"):
        HammingIndex.from_faiss(other, n_bits + 8)
    with pytest.raises(ValueError, match="IndexBinaryHNSW"):
        HammingIndex.from_faiss(faiss.IndexBinaryHNSW(8))


def test_packed_codes_in_usearch_and_numpy():
    rng = np.random.default_rng(0)
    codes = rng.choice(np.array([-1, 1], np.int8), (200, 64))
    packed = pack(codes)
    other = USearchIndex(ndim=64, metric="hamming", dtype="b1")
    other.add(np.arange(200), packed)
    distances, ids = HammingIndex(64).add(codes).search(codes[:10], 5)
    matches = other.search(packed[:10], 5, exact=True)
    np.testing.assert_array_equal(distances, matches.distances)
    np.testing.assert_array_equal(other.get(ids[:, 0]), packed[:10])
    bits = np.unpackbits(packed, axis=1, count=64, bitorder="little")
    np.testing.assert_array_equal(2 * bits.astype(int) - 1, codes)
    np.testing.assert_array_equal(unpack(packed, 64), codes)


def test_add_in_batches_with_ids_and_remove():
    rng = np.random.default_rng(0)
    base = random_codes(rng, 1000, 40)
    index = HammingIndex(40)
    for start in range(0, 1000, 130):
        index.add(base[start : start + 130])
    np.testing.assert_array_equal(index.packed, base)
    np.testing.assert_array_equal(index.ids, np.arange(1000))
    assert index.remove([3, 5, 5000]) == 2
    assert len(index) == 998
    assert not np.isin([3, 5], index.search(base[3:6], 998)[1]).any()
    index.add(base[3:4], ids=[3]).add(base[5:6])
    assert index.ids[-2:].tolist() == [3, 1000]
    np.testing.assert_array_equal(index.codes([[3], [1000]])[:, 0], base[[3, 5]])
    kept = np.delete(np.arange(1000), [3, 5])
    expected = brute_force(base[:4], base[[*kept, 3, 5]], 20)
    np.testing.assert_array_equal(index.search(base[:4], 20)[1], index.ids[expected[1]])


def test_plus_minus_one_codes_are_packed_on_the_way_in():
    codes = np.random.default_rng(0).choice([-1, 1], (50, 13))
    a, b = HammingIndex(13).add(codes), HammingIndex(13).add(pack(codes))
    for x, y in zip(a.search(codes[:5], 3), b.search(pack(codes[:5]), 3), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("n_bits", [1, 9, 64, 256])
def test_save_and_load(tmp_path, n_bits, with_ids, mmap):
    rng = np.random.default_rng(0)
    base = random_codes(rng, 333, n_bits)
    index = HammingIndex(n_bits).add(base, np.arange(333)[::-1] * 7 if with_ids else None)
    path = tmp_path / "codes.index"
    index.save(path)
    loaded = HammingIndex.load(path, mmap=mmap)
    assert repr(loaded) == repr(index) == f"HammingIndex(333 codes of {count(n_bits, 'bit')})"
    for a, b in zip(loaded.search(base[:9], 40), index.search(base[:9], 40), strict=True):
        np.testing.assert_array_equal(a, b)
    before = path.read_bytes()
    for each in (loaded, index):
        each.add(base[:2])
        each.remove([0])
    np.testing.assert_array_equal(loaded.ids, index.ids)
    np.testing.assert_array_equal(loaded.packed, index.packed)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["codes.index"]


def test_empty_index_is_saved_too(tmp_path):
    HammingIndex(12).save(tmp_path / "empty")
    assert len(HammingIndex.load(tmp_path / "empty")) == 0


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "codes.index"
    HammingIndex(20).add(random_codes(np.random.default_rng(0), 100, 20), range(1, 101)).save(path)
    good = path.read_bytes()
    damaged = {
        b"": "not an index",
        b"PK\x03\x04" + good[4:]: "not an index",
        good[:40]: "header",
        good[:9] + b"\xff" + good[10:]: "header",
        good[:-1]: "truncated",
        good + b"\0": "truncated",
    }
    for content, message in damaged.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            HammingIndex.load(path)
    path.write_bytes(good[:70] + bytes([good[70] ^ 1]) + good[71:])
    with pytest.raises(ValueError, match="sum"):
        HammingIndex.load(path, mmap=False)


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "codes.index"
    index = HammingIndex(8).add(np.ones((2, 1), np.uint8))
    index.save(path)
    before = path.read_bytes()

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        index.add(np.zeros((1, 1), np.uint8)).save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_wrong_arguments_are_named():
    codes = np.ones((4, 12), np.int8)
    index = HammingIndex(12).add(codes)
    wrong = [
        (lambda: HammingIndex(0), "n_bits must be"),
        (lambda: HammingIndex(2.5), "n_bits must be"),
        (lambda: HammingIndex(1 << 20), "n_bits must be a whole number from 1 to 32767"),
        (lambda: HammingIndex(12).search(codes, 1), "index is empty"),
        (lambda: HammingIndex(12).radius_search(codes, 1), "index is empty"),
        (lambda: index.search(codes, 0), "k must be"),
        (lambda: index.search(codes, 1.5), "k must be"),
        (lambda: index.radius_search(codes, -1), "r must be"),
        (lambda: index.search(codes[:, :8], 1), "codes of 12 bits must be"),
        (lambda: index.search(np.zeros((1, 3), np.uint8), 1), "codes of 12 bits must be"),
        (lambda: index.search(codes[None], 1), "codes must be of shape"),
        (lambda: index.search(0 * codes, 1), "only -1 and"),
        (lambda: index.add(np.full((1, 2), 255, np.uint8)), "padding bits"),
        (lambda: index.add(codes, [7, 8]), "ids must be of shape"),
        (lambda: index.add(codes, [7, 8, 8, 9]), "ids must not name a code twice, 8"),
        (lambda: index.add(codes, [7, 8, 9, 3]), "ids must be new, 3"),
        (lambda: index.add(codes, [-1, 7, 8, 9]), r"ids must lie in 0..2\^63 - 1, got -1"),
        (lambda: index.add(codes, [0.5, 7, 8, 9]), "ids must be a list of whole"),
        (lambda: index.codes([4]), "ids must be in the index; 4"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    assert len(index) == 4


def test_a_single_code_is_one_query():
    packed = np.random.default_rng(0).integers(0, 256, (50, 2), np.uint8)
    index = HammingIndex(16).add(packed)
    for asked in (packed[3], unpack(packed[3:4], 16)[0]):
        distances, ids = index.search(asked, 4)
        assert distances.shape == ids.shape == (1, 4)
        np.testing.assert_array_equal(ids, index.search(packed[3:4], 4)[1])
        assert index.radius_search(asked, 3)[1][0].tolist() == (
            index.radius_search(packed[3:4], 3)[1][0].tolist()
        )
    with pytest.raises(ValueError, match="of 16 bits must be"):
        index.search(packed[:, 0], 1)  # a column is no code


def test_auto_decides_once_where_to_search(monkeypatch):
    asked = []

    def none():
        asked.append("a GPU")
        raise devices.NoDeviceError("there is none")

    monkeypatch.setattr(devices, "_cuda", none)
    index = HammingIndex(8, device="auto").add(np.arange(20, dtype=np.uint8)[:, None])
    for _ in range(3):
        index.search(np.array([[3]], np.uint8), 1)
    assert len(asked) == 1
