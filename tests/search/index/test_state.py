"""A search sees one consistent state of the index, whatever other threads do."""

import copy
import os
import pickle
import sys
import threading

import numpy as np
import pytest

from auxhash import HammingIndex
from auxhash.codes import hamming
from auxhash.search.index import ApproximateIndex

ROUNDS = 600 if os.environ.get("AUXHASH_SOAK") else 30


def code_of(ids):
    """Codes (n, 3) that spell the ids in binary."""
    ids = np.asarray(ids)
    return np.stack([(ids >> shift) & 255 for shift in (0, 8, 16)], axis=-1).astype(np.uint8)


def check_pairs(query, distances, ids):
    ids, distances = ids[ids >= 0], distances[distances >= 0]
    np.testing.assert_array_equal(hamming(query[None], code_of(ids))[0], distances)


@pytest.fixture
def hurried():
    """Let Python switch between threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def hammer(index, reads):
    """Add and remove in one thread for ROUNDS rounds, while other threads read."""
    index.add(code_of(np.arange(3000)), np.arange(3000))
    failures, over = [], threading.Event()

    def change():
        rng, top = np.random.default_rng(0), 3000
        try:
            for _ in range(ROUNDS):
                new = np.arange(top, top + 200)
                index.add(code_of(new), new)
                top += 200
                index.remove(rng.choice(top, 300, replace=False))
        except Exception as error:
            failures.append(error)
        over.set()

    def read(what):
        try:
            while not over.is_set():
                what()
        except Exception as error:
            failures.append(error)
            over.set()

    workers = [threading.Thread(target=change)]
    workers += [threading.Thread(target=read, args=(what,)) for what in reads]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


def test_searches_while_the_index_changes(hurried, tmp_path, monkeypatch):
    monkeypatch.setattr("auxhash.search.index.multiindex.MIN_CODES", 100)
    monkeypatch.setattr("auxhash.search.index.multiindex.SCANS_PER_TABLE", 1)
    index = HammingIndex(24, n_jobs=1)
    query = code_of(np.arange(50))

    def search():
        distances, ids = index.search(query, 40)
        for q in range(len(query)):
            check_pairs(query[q], distances[q], ids[q])

    def within():
        for q, (distances, ids) in enumerate(zip(*index.radius_search(query, 1), strict=True)):
            check_pairs(query[q], distances, ids)

    def everything():
        index.save(tmp_path / "i")
        loaded = HammingIndex.load(tmp_path / "i", mmap=False)
        np.testing.assert_array_equal(loaded.packed, code_of(loaded.ids))
        some = copy.copy(index)
        np.testing.assert_array_equal(some.codes(some.ids), code_of(some.ids))

    hammer(index, [search, within, everything])
    np.testing.assert_array_equal(index.packed, code_of(index.ids))
    np.testing.assert_array_equal(index.codes(index.ids), index.packed)


def test_approximate_searches_while_the_index_changes(hurried):
    index = ApproximateIndex(24, n_lists=16, n_probe=4, n_jobs=1)
    query = code_of(np.arange(50))

    def search():
        index.n_probe = 1 + index.n_probe % 16
        distances, ids = index.search(query, 40)
        for q in range(len(query)):
            check_pairs(query[q], distances[q], ids[q])

    def within():
        for q, (distances, ids) in enumerate(zip(*index.radius_search(query, 1), strict=True)):
            check_pairs(query[q], distances, ids)

    hammer(index, [search, search, within])


def test_what_is_added_by_many_threads_is_all_there(hurried):
    index = HammingIndex(24)

    def add(first):
        for start in range(first, first + 2000, 50):
            index.add(code_of(np.arange(start, start + 50)), np.arange(start, start + 50))

    workers = [threading.Thread(target=add, args=(first,)) for first in (0, 10_000, 20_000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(index) == len(np.unique(index.ids)) == 6000
    np.testing.assert_array_equal(index.packed, code_of(index.ids))


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda i: pickle.loads(pickle.dumps(i))]
)
@pytest.mark.parametrize("ids", [None, np.arange(5) * 3])
def test_copies_grow_apart(again, ids):
    codes = code_of(np.arange(10))
    index = HammingIndex(24).add(codes[:3], None if ids is None else ids[:3])
    index.add(codes[3:5], None if ids is None else ids[3:])  # leaves room
    other = again(index)
    index.add(codes[5:6])
    other.add(codes[8:9])
    np.testing.assert_array_equal(index.packed, codes[:6])
    np.testing.assert_array_equal(other.packed, codes[[0, 1, 2, 3, 4, 8]])
    np.testing.assert_array_equal(index.ids, other.ids)


def test_what_is_given_out_is_a_copy():
    index = HammingIndex(8).add(np.arange(3, dtype=np.uint8)[:, None], [5, 6, 7])
    index.packed[:] = 9
    index.ids[:] = 9
    index.codes([5])[:] = 9
    assert index.packed.ravel().tolist() == [0, 1, 2]
    assert index.ids.tolist() == [5, 6, 7]


def test_more_neighbours_than_codes():
    """k is capped: no memory is allocated for 10^9 neighbours among 100 codes."""
    codes = code_of(np.arange(100))
    for index in (HammingIndex(24), ApproximateIndex(24, n_lists=2, n_probe=2)):
        distances, ids = index.add(codes).search(codes[:2], 10**9)
        assert distances.shape == ids.shape == (2, 100)
        assert (np.sort(ids, axis=1) == np.arange(100)).all()
    distances, ids = HammingIndex(24).add(codes).search(codes[:2], 2**70)
    assert ids.shape == (2, 100)


@pytest.mark.parametrize("kind", [HammingIndex, lambda b: ApproximateIndex(b, n_lists=1)])
def test_ids_that_do_not_fit(kind):
    codes = code_of(np.arange(3))
    index = kind(24).add(codes, [1, 2, 2**63 - 2])
    largest = 2**63 - 1
    wrong = [
        (np.array([2**63], np.uint64), "must lie in"),
        (np.array([2**64 - 1], np.uint64), "must lie in"),
        ([-1], "must lie in"),
        ([2**70], "must lie in"),
        ([2], "ids must be new, 2 is taken"),
        ([0.0], "whole numbers"),
        ([[0]], "whole numbers"),
    ]
    for ids, message in wrong:
        with pytest.raises(ValueError, match=message):
            index.add(codes[:1], ids)
        if "taken" not in message:
            with pytest.raises(ValueError, match=message):
                index.remove(ids)
    with pytest.raises(ValueError, match="must not name a code twice, 5"):
        index.add(codes, [5, 4, 5])
    with pytest.raises(ValueError, match="2 codes cannot be numbered on from id 92233720368547758"):
        index.add(codes[:2])
    assert len(index) == 3
    index.add(codes[:1])
    index.add(codes[:0])
    assert largest in index.search(codes[:1], 9)[1]
    with pytest.raises(ValueError, match="1 codes cannot be numbered on"):
        index.add(codes[:1])
    assert index.remove([largest]) == 1
    with pytest.raises(ValueError, match="1 codes cannot be numbered on"):
        index.add(codes[:1])  # an id is not given twice
    index.add(codes[:1], [0])
    assert len(index) == 4


def test_an_emptied_index():
    codes = code_of(np.arange(3))
    index = HammingIndex(24).add(codes)
    assert index.remove([0, 1, 2]) == 3
    assert index.codes([]).shape == (0, 3)
    assert index.packed.shape == (0, 3)
    assert index.ids.tolist() == []
    assert index.remove([1]) == 0
    with pytest.raises(ValueError, match="ids must be in the index; 1 is not"):
        index.codes([1])
    with pytest.raises(ValueError, match="index is empty"):
        index.search(codes, 1)
    assert len(HammingIndex.from_faiss(index.to_faiss(), 24)) == 0
    assert index.add(codes[:1]).ids.tolist() == [3]


@pytest.mark.parametrize("own", [None, [7, 5, 3]])
def test_codes_of_ids_that_are_none(own):
    index = HammingIndex(24).add(code_of(np.arange(3)), own)
    wrong = [[-1], [0.5], np.array([2**64 - 1], np.uint64), [99], [[0, -2]], ["1"]]
    for ids in wrong:
        with pytest.raises(ValueError, match="ids must"):
            index.codes(ids)
    known = index.ids[1]
    assert index.codes(known).tolist() == [1, 0, 0]
    assert index.codes([[known]]).shape == (1, 1, 3)


def test_faiss_indexes_that_do_not_fit():
    import faiss

    flat = faiss.IndexBinaryFlat(24)
    mapped = faiss.IndexBinaryIDMap(flat)
    mapped.add_with_ids(code_of(np.arange(3)), np.array([4, 4, 5]))
    with pytest.raises(ValueError, match="twice, 4"):
        HammingIndex.from_faiss(mapped)
    negative = faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(24))
    negative.add_with_ids(code_of(np.arange(1)), np.array([-1]))
    with pytest.raises(ValueError, match="must lie in"):
        HammingIndex.from_faiss(negative)
    flat.add(np.full((1, 3), 255, np.uint8))
    with pytest.raises(ValueError, match="padding bits"):
        HammingIndex.from_faiss(flat, 23)
