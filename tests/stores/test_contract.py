"""The contract of every store, run on each engine that is installed.

The truth is NumPy's: all distances, ordered by distance and then id.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

from auxhash import HammingIndex, stores
from auxhash.codes import hamming, pack, unpack
from auxhash.stores import NoStoreError
from auxhash.stores.sqlite import SqliteStore

BITS = (7, 16, 64, 100, 256)
LARGEST = 2**63 - 1
SOAK = bool(os.environ.get("AUXHASH_SOAK"))


def random_codes(rng, n, n_bits, tied=False):
    """Packed codes; `tied` draws them from only 5, so that nearly all distances tie."""
    if tied:
        few = rng.choice([-1, 1], (5, n_bits))
        return pack(few[rng.integers(0, len(few), n)])
    return pack(rng.choice([-1, 1], (n, n_bits)))


def random_ids(rng, n):
    """Distinct ids of all sizes, in no order, the smallest and the largest among them."""
    small, large = rng.choice(5 * n, n // 2, replace=False), rng.integers(2**40, LARGEST, n)
    some = np.unique(np.concatenate([[0, LARGEST], small, large]))
    kept = np.concatenate([[0, LARGEST], rng.choice(some[1:-1], n - 2, replace=False)])
    return rng.permutation(kept)


def truth(ids, packed, query):
    distances = hamming(query[None], packed)[0]
    order = np.lexsort((ids, distances))
    return distances[order], np.asarray(ids)[order]


def check(store, ids, packed, queries, ks=(1, 10), radii=(0, 3)):
    """The store holds these codes, and finds what is right."""
    assert store.count() == len(store) == len(ids)
    read = list(store.batches(97))
    order = np.argsort(ids)
    got = [np.concatenate([part[i] for part in read]) for i in (0, 1)] if read else None
    if got is not None:
        np.testing.assert_array_equal(got[0], np.asarray(ids)[order])
        np.testing.assert_array_equal(got[1], packed[order])
    assert (got is None) == (len(ids) == 0)
    expected = [truth(ids, packed, query) for query in queries]
    for k in ks:
        distances, hits = store.search(queries, k)
        assert (distances.dtype, hits.dtype) == (np.int32, np.int64)
        np.testing.assert_array_equal(distances, [near[:k] for near, _ in expected])
        np.testing.assert_array_equal(hits, [names[:k] for _, names in expected])
    for r in radii:
        distances, hits = store.search_radius(queries, r)
        for near, names, (right, ours) in zip(distances, hits, expected, strict=True):
            assert (near.dtype, names.dtype) == (np.int32, np.int64)
            np.testing.assert_array_equal(near, right[right <= r])
            np.testing.assert_array_equal(names, ours[right <= r])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_bits", BITS)
def test_search_is_exact_to_the_last_tie(url, n_bits, tied):
    rng = np.random.default_rng(n_bits)
    packed, queries = (random_codes(rng, n, n_bits, tied) for n in (400, 3))
    ids = random_ids(rng, 400)
    if tied:
        queries[1] = packed[7]
    with stores.open(url, n_bits=n_bits) as store:
        store.upsert(ids[:150], packed[:150])
        store.upsert(ids[150:], packed[150:])
        check(store, ids, packed, queries, (1, 10, 130, 400, 2**70), (0, n_bits // 3, n_bits, 9999))


def test_the_same_as_the_index(url):
    rng = np.random.default_rng(1)
    packed, queries = random_codes(rng, 300, 16), random_codes(rng, 4, 16)
    index = HammingIndex(16).add(packed)
    with stores.open(url, n_bits=16) as store:
        store.upsert(np.arange(300), packed)
        for ours, theirs in zip(index.search(queries, 20), store.search(queries, 20), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        both = zip(index.radius_search(queries, 4), store.search_radius(queries, 4), strict=True)
        for ours, theirs in both:
            assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


@pytest.mark.parametrize("n_bits", [12, 64])
def test_search_by_tables(url, n_bits):
    """SQLite looks at all codes; the others at a shortlist by Hamming distance, then by tables."""
    rng = np.random.default_rng(n_bits)
    packed, queries = random_codes(rng, 400, n_bits), random_codes(rng, 3, n_bits)
    ids = random_ids(rng, 400)
    # Whole numbers of a small range, so that many distances tie.
    tables = rng.integers(-3, 4, (3, packed.shape[1], 256)).astype(np.float32)
    with stores.open(url, n_bits=n_bits) as store:
        store.upsert(ids, packed)
        store.upsert(ids[:9], packed[:9])  # in SQLite's small index now
        store.delete(ids[20:25])
        left = np.delete(np.arange(400), np.s_[20:25])
        few = left[::7]
        cases = ((10, 50, left), (400, 400, left), (5, 20, few), (3, None, few))
        for k, candidates, rows in cases:
            among = None if rows is left else ids[rows]
            near, hits = store.search_tables(tables, k, among, queries, candidates)
            assert (near.dtype, hits.dtype) == (np.float32, np.int64)
            n = len(rows) if store.scans_tables or candidates is None else candidates
            for q, query in enumerate(queries):
                by_code = truth(ids[rows], packed[rows], query)[1][:n]
                at = rows[np.isin(ids[rows], by_code)]
                right = np.take_along_axis(tables[q].T, packed[at].astype(int), 0).sum(axis=1)
                order = np.lexsort((ids[at], right))[:k]
                np.testing.assert_array_equal(near[q], right[order])
                np.testing.assert_array_equal(hits[q], ids[at][order])
        assert store.search_tables(tables, 3, [], queries)[0].shape == (3, 0)
        if not store.scans_tables:
            with pytest.raises(ValueError, match="codes must be those of the queries, got None"):
                store.search_tables(tables, 3)
            with pytest.raises(ValueError, match="tables must be of 2 queries, as codes; got 3"):
                store.search_tables(tables, 3, codes=queries[:2])
            with pytest.raises(ValueError, match="candidates must be a whole number of at least 3"):
                store.search_tables(tables, 3, codes=queries, candidates=2)


def test_upserts_and_deletes(url):
    """Random ones, in turns, against a dictionary; and what stays after the store is closed."""
    rng = np.random.default_rng(2)
    codes_by_name: dict[int, bytes] = {}
    queries = random_codes(rng, 2, 64)

    def compare(store):
        ids = np.array(list(codes_by_name), np.int64)
        packed = np.frombuffer(b"".join(codes_by_name.values()), np.uint8).reshape(-1, 8)
        check(store, ids, packed, queries)

    with stores.open(url, n_bits=64) as store:
        for turn in range(8):
            ids = rng.choice(120, 40, replace=False)
            packed = random_codes(rng, 40, 64, tied=turn % 2 == 0)
            store.upsert(ids, packed)
            codes_by_name |= dict(zip(ids.tolist(), map(bytes, packed), strict=True))
            gone = rng.choice(200, 30, replace=False)
            there = [name for name in gone.tolist() if name in codes_by_name]
            assert store.delete(gone) == len(there)
            for name in there:
                del codes_by_name[name]
            compare(store)
    with stores.open(url) as store:
        assert store.n_bits == 64
        compare(store)
        assert store.delete(list(codes_by_name)) == len(codes_by_name)
        codes_by_name.clear()
        compare(store)


def test_empty(url):
    with stores.open(url, n_bits=12) as store:
        queries = np.ones((2, 12))
        check(store, np.empty(0, np.int64), np.empty((0, 2), np.uint8), pack(queries))
        assert store.search(queries, 3)[0].shape == (2, 0)
        assert [len(ids) for ids in store.search_radius(queries, 12)[1]] == [0, 0]
        assert store.delete([4]) == 0
        store.upsert([], np.empty((0, 2), np.uint8))
        assert store.delete([]) == len(store) == 0
        assert store  # an empty store is true
        store.upsert([4], [[1] * 12])
        assert store.search(np.empty((0, 2), np.uint8), 3)[1].shape[0] == 0


def test_forms_of_codes(url):
    """+-1 codes and packed ones are the same, and one axis is one query."""
    rng = np.random.default_rng(3)
    packed = random_codes(rng, 20, 12)
    with stores.open(url, n_bits=12) as store:
        store.upsert(range(20), unpack(packed, 12))
        check(store, np.arange(20), packed, packed[:2])
        for query in (packed[3], unpack(packed, 12)[3]):
            assert store.search(query, 1)[0].tolist() == [[0]]
    packed = random_codes(rng, 20, 24)[:, :1]  # the first bits of longer codes, strided
    with stores.open(f"{url}{'&' if '?' in url else '?'}table=first", n_bits=8) as store:
        store.upsert(range(20), packed)
        check(store, np.arange(20), packed, packed[:2])


def test_deleting_twice_in_one_call_counts_once(url):
    with stores.open(url, n_bits=8) as store:
        store.upsert([1, 2], np.zeros((2, 1), np.uint8))
        assert store.delete([1, 1, 9]) == 1


def test_wrong_bits_for_a_store_that_is_there(url):
    stores.open(url, n_bits=16).close()
    with pytest.raises(ValueError, match=r"n_bits must be 16, as of the codes in .*; got 12"):
        stores.open(url, n_bits=12)
    with stores.open(url) as store:
        assert store.n_bits == 16


def test_no_store_and_no_bits(url):
    with pytest.raises(NoStoreError, match=r"there is no store at .*open with n_bits, makes one"):
        stores.open(url)


def test_tables_are_apart(url):
    other = f"{url}{'&' if '?' in url else '?'}table=other_one"
    with stores.open(url, n_bits=8) as store:
        store.upsert([1], np.full((1, 1), 7, np.uint8))
    with stores.open(other, n_bits=24) as second:
        assert len(second) == 0
        second.upsert([5], np.zeros((1, 3), np.uint8))
    with stores.open(url) as store:
        assert store.search([[1, 1, 1, -1, -1, -1, -1, -1]], 3)[1].tolist() == [[1]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.upsert([1, 2], [[1] * 9]), r"ids must be of shape \(1,\), one for each"),
        (lambda s: s.upsert([1, 1], [[1] * 9] * 2), "ids must not name a code twice, 1 does"),
        (lambda s: s.upsert([-1], [[1] * 9]), "ids must lie in 0..2"),
        (lambda s: s.upsert([2**63], [[1] * 9]), "ids must lie in 0..2"),
        (lambda s: s.upsert([0.5], [[1] * 9]), "ids must be a list of whole numbers"),
        (lambda s: s.upsert([1], [[1] * 8]), "codes of 9 bits must be"),
        (lambda s: s.upsert([1], np.full((1, 2), 255, np.uint8)), "padding bits beyond n_bits=9"),
        (lambda s: s.delete(["a", 1]), "ids must be all whole numbers or all text"),
        (lambda s: s.search([[1] * 8], 1), "codes of 9 bits must be"),
        (lambda s: s.search([[1] * 9], 0), "k must be a whole number of at least 1"),
        (lambda s: s.search([[1] * 9], 1.5), "k must be a whole number"),
        (
            lambda s: s.search_tables(np.zeros((1, 1, 256), np.float32), 1),
            "for codes of 9 bits must",
        ),
        (lambda s: s.search_tables(np.zeros((1, 2, 256)), 1), "must be float32 .* got float64"),
        (lambda s: s.search_tables(np.full((1, 2, 256), np.nan, np.float32), 1), "must be finite"),
        (lambda s: s.search_radius([[1] * 9], -1), "r must be a whole number of at least 0"),
        (lambda s: next(s.batches(0)), "size must be a whole number of at least 1"),
    ],
)
def test_wrong_arguments(tmp_path, call, says):
    """Checked before an engine is asked."""
    with stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=9) as store:
        with pytest.raises(ValueError, match=says):
            call(store)
        assert len(store) == 0


def test_closed(url):
    store = stores.open(url, n_bits=8)
    store.close()
    store.close()
    for call in (store.count, lambda: store.search([[1] * 8], 1), lambda: store.upsert([], [[1]])):
        with pytest.raises(ValueError, match=r"closed|must be"):
            call()


def test_another_connection_sees_what_is_acknowledged(url):
    """And a search sees what another connection has written since."""
    if url.startswith("milvus:"):
        pytest.skip("does not apply: one process, one connection")
    rng = np.random.default_rng(4)
    packed = random_codes(rng, 30, 16)
    with stores.open(url, n_bits=16) as one, stores.open(url) as two:
        one.upsert(range(20), packed[:20])
        check(two, np.arange(20), packed[:20], packed[:2])
        two.upsert(range(20, 30), packed[20:])
        one.upsert([5], packed[5:6])  # before it has seen what the other one did
        two.delete([0])
        check(one, np.arange(1, 30), packed[1:], packed[:2])


def test_threads(url):
    """Writers and searchers at once: no error, and a search finds whole batches or nothing."""
    rng = np.random.default_rng(5)
    packed = random_codes(rng, 50, 16)
    wrong = []
    with stores.open(url, n_bits=16) as store:

        def write(part):
            for turn in range(4):
                store.upsert(np.arange(50) + 50 * part, packed)
                if turn % 2 == 0:
                    store.delete(np.arange(50) + 50 * part)

        def look():
            for _ in range(8):
                result = store.search_radius(packed[:1], 16)[1][0]
                if len(result) % 50:
                    wrong.append(len(result))

        jobs = [threading.Thread(target=write, args=(part,)) for part in range(2)]
        jobs += [threading.Thread(target=look) for _ in range(2)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        ids = np.arange(100)
        check(store, ids, np.concatenate([packed, packed]), packed[:2])
    assert wrong == []


class Gate:
    """Lets calls of a method begin, each in a thread, only when two are in it at once."""

    def __init__(self, owner, name):
        self._owner, self._name, self._call = owner, name, getattr(owner, name)
        self._barrier = threading.Barrier(2)

    def __enter__(self):
        def wait(*arguments, **options):
            self._barrier.wait(30)
            return self._call(*arguments, **options)

        setattr(self._owner, self._name, wait)

    def __exit__(self, *error):
        setattr(self._owner, self._name, self._call)


def both(call, gate=None):
    """Return what a call gives in two threads that are at it together."""
    with gate or nullcontext(), ThreadPoolExecutor(2) as threads:
        return [each.result() for each in [threads.submit(call) for _ in range(2)]]


def test_reads_run_at_the_same_time(url):
    """Neither of two reads waits for the end of the other."""
    rng = np.random.default_rng(7)
    packed = random_codes(rng, 60, 16)
    with stores.open(url, n_bits=16) as store:
        store.upsert(np.arange(60), packed)
        ours = truth(np.arange(60), packed, packed[3])
        if isinstance(store, SqliteStore):  # searched in memory
            gates = [Gate(store._current(), "search")]
        else:
            gates = [Gate(store, name) for name in ("_nearest", "_nearest_among")]
        calls = [lambda: store.search(packed[3], 9), lambda: store.search(packed[3], 9, range(60))]
        for gate, call in zip(gates, calls, strict=False):
            for near, names in both(call, gate):
                np.testing.assert_array_equal(near, ours[0][None, :9])
                np.testing.assert_array_equal(names, ours[1][None, :9])


def test_more_threads_than_connections(url):
    """Searches, lists and reads of many threads, each with its own answer."""
    rng = np.random.default_rng(8)
    packed = random_codes(rng, 200, 16)
    ids = np.arange(200)
    with stores.open(url, n_bits=16) as store:
        store.upsert(ids, packed)

        def ask(i):
            near, names = store.search(packed[i], 7)
            expected = truth(ids, packed, packed[i])
            assert [near[0].tolist(), names[0].tolist()] == [part[:7].tolist() for part in expected]
            some = store.read(np.arange(i, i + 3))
            assert {name: point.code.tolist() for name, point in some.items()} == {
                name: packed[name].tolist() for name in range(i, min(i + 3, 200))
            }
            return sum(len(part) for part, _ in store.batches(90))

        with ThreadPoolExecutor(12) as threads:
            assert list(threads.map(ask, range(0, 200, 5))) == [200] * 40


def test_closing_lets_reads_end(url):
    with stores.open(url, n_bits=8) as store:
        store.upsert([1], np.zeros((1, 1), np.uint8))
        count, inside = store._count, threading.Event()

        def late():
            inside.set()
            while not store._closed:
                time.sleep(0.001)
            return count()

        store._count = late
        with ThreadPoolExecutor(2) as threads:
            counted = threads.submit(store.count)
            assert inside.wait(30)
            threads.submit(store.close).result()
            assert counted.result() == 1
        with pytest.raises(ValueError, match="is closed"):
            store.count()


def test_batches_see_what_has_changed(url):
    """From the next batch on, and no id twice."""
    packed = random_codes(np.random.default_rng(9), 30, 16)
    with stores.open(url, n_bits=16) as store:
        store.upsert(np.arange(30), packed)
        read = store.batches(10)
        first = next(read)[0].tolist()
        store.delete([3, 15])
        store.upsert([2, 25, 31], packed[:3])
        more = list(read)
        ids = np.concatenate([part for part, _ in more])
        assert first + ids.tolist() == [*range(15), *range(16, 30), 31]
        codes = np.concatenate([part for _, part in more])
        np.testing.assert_array_equal(codes[ids == 25], packed[1:2])


WRITER = """
import sys
import numpy as np
from auxhash import stores

with stores.open(sys.argv[1], n_bits=64) as store:
    for turn in range(100_000):
        store.upsert(np.arange(20) + 20 * turn, np.full((20, 8), turn % 251, np.uint8))
        print(turn, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(url):
    """And no half of a write is there."""
    brief = 2 if url.startswith("sqlite") else 1
    for kill in range(30 if SOAK else brief):
        command = [sys.executable, "-c", WRITER, url]
        writer = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        reports = [int(writer.stdout.readline()) for _ in range(15 + 4 * (kill % 7))]
        writer.send_signal(signal.SIGKILL)
        reports += map(int, writer.communicate()[0].split())
        with stores.open(url) as store:
            batches = list(store.batches())
            ids = np.concatenate([part for part, _ in batches])
            packed = np.concatenate([part for _, part in batches])
            turns = len(ids) // 20
            assert turns >= max(reports) + 1
            np.testing.assert_array_equal(ids, np.arange(20 * turns))  # whole writes only
            np.testing.assert_array_equal(packed[:, 0], ids // 20 % 251)
            check(store, ids, packed, packed[:1])


@pytest.mark.parametrize("tied", [False, True])
def test_many(url, tied):
    """100,000 codes, of which `tied` makes nearly all the same distance, and one batch of them."""
    if not SOAK and tied is False and not url.startswith("sqlite"):
        pytest.skip("make soak runs it")
    rng = np.random.default_rng(6)
    n = 100_000 if SOAK or url.startswith(("sqlite", "duckdb")) else 20_000
    packed, queries = random_codes(rng, n, 64, tied), random_codes(rng, 2, 64)
    ids = rng.permutation(n)
    with stores.open(url, n_bits=64) as store:
        store.upsert(ids, packed)
        expected = [truth(ids, packed, query) for query in queries]
        distances, hits = store.search(queries, 100)
        np.testing.assert_array_equal(distances, [near[:100] for near, _ in expected])
        np.testing.assert_array_equal(hits, [names[:100] for _, names in expected])
        r = int(expected[0][0][n // 3])
        distances, hits = store.search_radius(queries, r)
        for near, names, (right, ours) in zip(distances, hits, expected, strict=True):
            np.testing.assert_array_equal(near, right[right <= r])
            np.testing.assert_array_equal(names, ours[right <= r])
        assert sum(len(part) for part, _ in store.batches()) == n
