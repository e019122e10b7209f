"""Search by tables of distances against its definition."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.codes import n_bytes, pack, sign
from auxhash.search.index import (
    ApproximateIndex,
    HammingIndex,
    NamedIndex,
    cascade,
    numpyscan,
    rerank,
    scan,
    tables_from_outputs,
    tablescan,
)


def random_codes(rng, n, n_bits, tied=False):
    codes = rng.choice([-1, 1], (5 if tied else n, n_bits))
    return pack(codes[rng.integers(5, size=n)] if tied else codes)


def random_tables(rng, m, n_bits, kind="any"):
    """Tables: any numbers, those of outputs ("sums" over bits), or whole ones, many tied."""
    if kind == "sums":
        return tables_from_outputs(rng.standard_normal((m, n_bits)))
    tables = rng.standard_normal((m, n_bytes(n_bits), 256)) * 10.0 ** rng.integers(-3, 4)
    return (np.rint(tables) if kind == "whole" else tables).astype(np.float32)


def definition(tables, packed, k):
    """Distances and positions of the k nearest: sums in float32, byte 0 first, ties by position."""
    distance = np.zeros((len(tables), len(packed)), np.float32)
    for g in range(packed.shape[1]):
        distance += tables[:, g, packed[:, g]]
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distance, order, axis=1), order


def agree(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


sizes = given(
    seed=st.integers(0, 2**32),
    n=st.one_of(st.integers(1, 400), st.sampled_from([513, 4096, 9001])),
    m=st.integers(0, 3),
    n_bits=st.integers(1, 150),
    k=st.one_of(st.integers(1, 500), st.just(10_000)),
    kind=st.sampled_from(["any", "sums", "whole"]),
    tied=st.booleans(),
)


@sizes
def test_kernels_and_numpy_equal_the_definition(seed, n, m, n_bits, k, kind, tied):
    rng = np.random.default_rng(seed)
    base, tables = random_codes(rng, n + 5, n_bits, tied), random_tables(rng, m, n_bits, kind)
    planes, expected = scan.to_planes(base), definition(tables, base[:n], k)
    agree(tablescan.nearest(planes, n, tables, k), expected)  # five codes behind the first n
    agree(numpyscan.nearest_by_tables(planes, n, tables, k), expected)


@sizes
def test_the_nearest_of_own_codes(seed, n, m, n_bits, k, kind, tied):
    rng = np.random.default_rng(seed)
    n, k = min(n, 513), min(n, k, 513)
    codes = random_codes(rng, m * n, n_bits, tied).reshape(m, n, n_bytes(n_bits))
    tables, present = random_tables(rng, m, n_bits, kind), rng.random((m, n)) < rng.random()
    near, places = np.full((m, k), np.inf, np.float32), np.full((m, k), -1)
    for q in range(m):
        (some,) = present[q].nonzero()
        distance, order = definition(tables[q : q + 1], codes[q, some], k)
        near[q, : len(some)], places[q, : len(some)] = distance, some[order]
    for scanned in (tablescan, numpyscan):
        agree(scanned.nearest_own(codes, tables, present, k), (near, places))


@pytest.mark.parametrize("n_bits", [8, 60, 64, 104, 256])
@pytest.mark.parametrize("k", [1, 10, 3000])
@pytest.mark.parametrize("kind", ["any", "sums", "whole"])
def test_large_searches_equal_the_definition(n_bits, k, kind):
    rng = np.random.default_rng(n_bits)
    base, tables = random_codes(rng, 30_000, n_bits), random_tables(rng, 3, n_bits, kind)
    base[3000:3100] = base[40]
    base[20_000:] = base[:10_000]  # ties
    agree(tablescan.nearest(scan.to_planes(base), 30_000, tables, k), definition(tables, base, k))


@pytest.mark.parametrize(
    ("kind", "k", "forms"),
    [
        ("sums", 10, {tablescan.FORMS}),
        ("any", 10, {tablescan.FULL if tablescan.NEON else tablescan.EXACT}),
        ("any", 3000, {tablescan.EXACT}),
        ("whole", 1, {tablescan.EXACT, tablescan.FULL}),
    ],
)
@pytest.mark.parametrize("n_bits", [60, 64, 104])
def test_bounds_exclude_none_of_the_nearest(kind, k, forms, n_bits):
    rng = np.random.default_rng(n_bits)
    base, tables = random_codes(rng, 5000, n_bits), random_tables(rng, 1, n_bits, kind)
    planes = scan.read_only(scan.to_planes(base))
    near, order = definition(tables, base, 5000)
    limit, bounds = near[0, k - 1], np.empty(scan.CODES_PER_BLOCK, np.uint8)
    levels, terms = np.empty((len(planes), 256), np.uint8), tablescan._bound_terms(tables)
    starts = np.empty(scan.CODES_PER_BLOCK // tablescan.LANES, np.int64)
    form, unit, zero = tablescan._choose(
        planes, 0, scan.read_only(tables)[0], terms, 0, limit, levels, starts, bounds
    )
    assert form in forms
    if form != tablescan.EXACT:
        more = terms[-1][0], np.uint8(tablescan.MAX_LEVEL + 1), starts, bounds
        tablescan._bounds(planes, 3, 4999, levels, form, *more)  # no multiple of 16
        hits = bounds[:4996] <= tablescan.MAX_LEVEL
        first = order[0][near[0] <= limit]
        assert hits[first[(first >= 3) & (first < 4999)] - 3].all()
        assert hits.sum() < 1000
        exact = near[0][np.argsort(order[0])][3:4999]
        assert (unit * bounds[:4996][hits] + zero <= exact[hits]).all()


def test_bounds_are_sums_of_levels():
    """A bound sums all that are below the level in question; the others are at it or above."""
    rng = np.random.default_rng(0)
    planes = scan.read_only(rng.integers(0, 256, (7, 1000), np.uint8))
    for most in (20, 256):  # the latter go beyond 255
        levels = rng.integers(0, most, (7, 256), np.uint8)
        sums = {
            tablescan.FULL: sum(t[p].astype(int) for t, p in zip(levels, planes, strict=True)),
            tablescan.HALVES: sum(
                t[p % 16].astype(int) + t[16 + p // 16] for t, p in zip(levels, planes, strict=True)
            ),
        }
        for form in range(1, tablescan.FORMS + 1):
            if form == tablescan.FULL and not tablescan.NEON:
                continue
            right = np.minimum(sums[form], 255)[5:990]
            for level in (0, min(255, right.min() + 1), min(255, right.min() + 9), 255):
                out, starts = np.empty(scan.CODES_PER_BLOCK, np.uint8), np.empty(64, np.int64)
                more = rng.permutation(7), np.uint8(level), starts, out
                tablescan._bounds(planes, 5, 990, levels, form, *more)
                below = right < level
                assert (out[:985] < level).tolist() == below.tolist()
                np.testing.assert_array_equal(out[:985][below], right[below])


@pytest.mark.parametrize("here", [True, False])
def test_kernels_hold_no_instructions_of_another_processor(here, monkeypatch):
    """All bounds are in the kernels, whichever of them run."""
    if not here:
        for name, value in (("NEON", False), ("SSSE3", False), ("FORMS", tablescan.EXACT)):
            monkeypatch.setattr(tablescan, name, value)
    full, halves, four = tablescan._add_full, tablescan._add_halves, tablescan._add_four_halves

    def call(levels, planes, out):
        full(levels, planes, 0, 0, out, np.array([0, 16]), 2)
        halves(levels, planes, 0, 0, out)
        four(levels, planes, 0, 0, out)

    compiled, out = numba.njit(call), np.zeros(32, np.uint8)
    compiled(np.ones((4, 256), np.uint8), np.zeros((4, 32), np.uint8), out)
    text = "".join(compiled.inspect_llvm().values())
    used = {name for name in ("llvm.aarch64.neon", "llvm.x86.ssse3") if name in text}
    mine = [("llvm.aarch64.neon", tablescan.NEON), ("llvm.x86.ssse3", tablescan.SSSE3)]
    assert used == {name for name, has in mine if has}
    assert (out > 0).all() == bool(used)


@pytest.mark.parametrize("m", [1, 3, 40])
def test_number_of_threads_changes_nothing(m, monkeypatch):
    monkeypatch.setattr(scan, "DISTANCES_PER_THREAD", 1000)  # so that small work is shared, too
    rng = np.random.default_rng(0)
    base = random_codes(rng, 30_000, 40)
    base[29_000:] = base[:1000]
    for kind in ("any", "whole"):
        tables = random_tables(rng, m, 40, kind)
        for n_jobs in (1, 2, 4):
            index = HammingIndex(40, n_jobs=n_jobs).add(base)
            for k in (7, 20_000):
                agree(index.search_tables(tables, k), definition(tables, base, k))


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    base, ids = random_codes(rng, 300, 20), rng.permutation(1000)[:300]
    return HammingIndex(20).add(base, ids), base, ids, random_tables(rng, 4, 20)


def test_ids_single_queries_and_among(small):
    index, base, ids, tables = small
    near, order = definition(tables, base, 9)
    agree(index.search_tables(tables, 9), (near, ids[order]))
    agree(index.search_tables(tables[2], 9), (near[2:3], ids[order[2:3]]))
    assert index.search_tables(tables, 400)[1].shape == (4, 300)
    chosen = np.sort(np.random.default_rng(1).permutation(300)[:50])
    near, order = definition(tables, base[chosen], 9)
    among = np.random.default_rng(2).permutation(ids[chosen]).repeat(2)  # in any order, and twice
    agree(index.search_tables(tables, 9, among=among), (near, ids[chosen][order]))
    assert index.search_tables(tables, 9, among=[])[1].shape == (4, 0)
    with pytest.raises(ValueError, match="ids must be in the index; 5000"):
        index.search_tables(tables, 9, among=[5000])


def test_outputs_as_tables_are_the_asymmetric_distance(small):
    index, *_ = small
    outputs = np.random.default_rng(1).standard_normal((4, 20))
    outputs[0, 3] = 0
    every = np.tile(index.ids, (4, 1))
    expected, order = rerank.by_outputs(every, outputs, index, 30)
    distances, ids = index.search_tables(tables_from_outputs(outputs), 30)
    np.testing.assert_allclose(distances, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_array_equal(
        tables_from_outputs(outputs[1]), tables_from_outputs(outputs)[1:2]
    )
    hamming = index.search(sign(outputs), 300)
    agree(
        index.search_tables(tables_from_outputs(sign(outputs)), 300),
        (hamming[0].astype(np.float32), hamming[1]),
    )


def test_named_and_approximate_indexes(small):
    index, base, ids, tables = small
    expected = index.search_tables(tables, 9)
    named = NamedIndex(HammingIndex(20)).add(base, [f"n{i}" for i in ids])
    distances, names = named.search_tables(tables, 9)
    np.testing.assert_array_equal(distances, expected[0])
    assert names == [[f"n{i}" for i in row] for row in expected[1]]
    lists = ApproximateIndex.from_exact(index, n_lists=8, n_probe=8)
    agree(lists.search_tables(tables, 9), expected)  # all lists; no ties among these
    agree(lists.search_tables(tables[0], 400), index.search_tables(tables[0], 400))
    lists.n_probe = 1
    distances, result = lists.search_tables(tables, 300)
    assert result.shape == (4, 300)
    assert (np.isinf(distances) == (result == -1)).all()
    assert (result == -1).any(axis=1).all()
    assert (np.diff(distances[:, :5]) >= 0).all()
    again, order = rerank.by_tables(result, tables, index, 5)
    np.testing.assert_array_equal(order, result[:, :5])
    np.testing.assert_array_equal(again, distances[:, :5])
    names = NamedIndex(ApproximateIndex(20, n_lists=8, n_probe=1))
    hits = names.add(base, [f"n{i}" for i in ids]).search_tables(tables, 300)[1]
    assert all(0 < len(row) < 300 for row in hits)


def test_by_tables_reranks_candidates(small):
    index, base, ids, tables = small
    candidates = np.tile(ids[:100], (4, 1))
    candidates[:, 7] = -1
    kept = np.delete(np.arange(100), 7)
    near, order = definition(tables, base[kept], 12)
    agree(rerank.by_tables(candidates, tables, index, 12), (near.astype(float), ids[kept][order]))
    many = rerank.by_tables(candidates.repeat(40, axis=0), tables.repeat(40, axis=0), index, 12)
    agree([part[::40] for part in many], (near.astype(float), ids[kept][order]))
    distances, missing = rerank.by_tables([[-1, -1]], tables[:1], index)
    assert missing.tolist() == [[-1, -1]]
    assert np.isinf(distances).all()


def test_a_prefix_is_an_index_of_its_own(small):
    index, base, ids, tables = small
    first = index.prefix(16)
    codes = base[:3, :2]
    agree(first.search(codes, 9), HammingIndex(16).add(base[:, :2], ids).search(codes, 9))
    agree(first.search_tables(tables[:, :2], 9), definition_ids(tables[:, :2], base[:, :2], ids))
    index.add(base[:1], [5000]).remove(ids[:1])
    assert len(first) == 300
    np.testing.assert_array_equal(first.ids, ids)
    grown = HammingIndex(16).add(np.zeros((4, 2), np.uint8)).add(np.zeros((1, 2), np.uint8))
    assert grown._state.capacity > len(grown)  # where both could write
    grown.prefix(8).add(np.full((1, 1), 255, np.uint8))
    assert grown.add(np.full((1, 2), 7, np.uint8)).packed[-1].tolist() == [7, 7]
    before = grown.prefix(8)
    grown.add(np.full((1, 2), 9, np.uint8))
    assert before.add(np.full((1, 1), 1, np.uint8)).packed[:, 0].tolist() == [0] * 5 + [7, 1]
    assert grown.packed[-1].tolist() == [9, 9]
    assert index.prefix(20).n_bits == 20
    for wrong, message in ((12, "multiple of 8, got 12"), (24, "from 1 to 20"), (0, "from 1 to")):
        with pytest.raises(ValueError, match=message):
            index.prefix(wrong)


def definition_ids(tables, packed, ids):
    near, order = definition(tables, packed, 9)
    return near, ids[order]


def test_cascade_is_its_passes():
    rng = np.random.default_rng(0)
    X, queries = rng.standard_normal((400, 12)), rng.standard_normal((6, 12))
    W = rng.standard_normal((12, 40))
    index = HammingIndex(40).add(sign(X @ W))
    codes, tables = sign(queries @ W), tables_from_outputs(queries @ W)
    _, first = index.prefix(16).search(pack(codes)[:, :2], 60)
    second = rerank.by_tables(first, tables, index, 20)
    agree(cascade(index, codes, tables, 5, 16, (60, 20)), [part[:, :5] for part in second])
    result = cascade(index, codes, tables, 5, 16, (60, 20), queries, X)
    agree(result, rerank.by_vectors(second[1], queries, X, 5))
    full = cascade(index, codes, tables, 5, 16, (400, 400))
    np.testing.assert_array_equal(full[1], index.search_tables(tables, 5)[1])
    for arguments, message in (
        (((4, 20),), "candidates must be a whole number of at least 5, got 4"),
        (((60, 20), None, X), "queries must be"),
    ):
        with pytest.raises(ValueError, match=message):
            cascade(index, codes, tables, 5, 16, *arguments)


def test_wrong_tables_are_named(small):
    index, _, ids, tables = small
    huge = np.full((1, 3, 256), 3e38, np.float32)
    wrong = [
        (tables[:, :2], r"20 bits must be float32 of shape \(n_queries, 3, 256\); got .*2, 256"),
        (tables[..., :16], r"float32 of shape \(n_queries, 3, 256\)"),
        (tables.astype(float), "got float64 of shape"),
        (tables[None], "got float32 of shape"),
        (np.insert(tables[:2], 2, np.nan, axis=0), "not so for query 2"),
        (np.where(tables > 0, np.float32(np.inf), tables), "must be finite"),
        (huge, "and so must their sums: not so for query 0"),
    ]
    approximate = ApproximateIndex.from_exact(index, n_lists=4)
    for bad, message in wrong:
        for call in (index.search_tables, approximate.search_tables):
            with pytest.raises(ValueError, match=message):
                call(bad, 3)
    with pytest.raises(ValueError, match=r"float32 of shape \(1, 3, 256\); got float32 .*4, 3"):
        rerank.by_tables(ids[None, :5], tables, index)
    with pytest.raises(ValueError, match="k must be"):
        index.search_tables(tables, 0)
    for empty in (HammingIndex(20), ApproximateIndex(20)):
        with pytest.raises(ValueError, match="index is empty"):
            empty.search_tables(tables, 1)
    for bad, message in (([[np.nan]], "finite"), ([[[1.0]]], "shape"), ([[]], "shape")):
        with pytest.raises(ValueError, match=f"outputs must be .*{message}"):
            tables_from_outputs(bad)
