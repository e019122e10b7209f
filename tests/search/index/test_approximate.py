"""ApproximateIndex: used like HammingIndex, and exact when it searches every list."""

import copy
import pickle

import faiss
import numpy as np
import pytest

from auxhash import HammingIndex
from auxhash.search.index import ApproximateIndex


@pytest.fixture(scope="module")
def base():
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (50, 5), dtype=np.uint8)
    noise = np.packbits(rng.random((4000, 40)) < 0.05, axis=1)
    return centres[rng.integers(0, 50, 4000)] ^ noise


def test_all_lists_give_the_exact_result(base):
    ids = np.random.default_rng(1).permutation(9000)[:4000]
    exact = HammingIndex(40).add(base, ids)
    index = ApproximateIndex.from_exact(exact, n_lists=32, n_probe=32)
    distances, _ = index.search(base[:50], 20)
    np.testing.assert_array_equal(distances, exact.search(base[:50], 20)[0])
    for ours, theirs in zip(
        index.radius_search(base[:50], 4), exact.radius_search(base[:50], 4), strict=True
    ):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(np.sort(a), np.sort(b))


def test_few_lists_find_most(base):
    exact, index = HammingIndex(40).add(base), ApproximateIndex(40, n_probe=8).add(base)
    assert repr(index) == "ApproximateIndex(4,000 codes of 40 bits)"
    limit = exact.search(base[:200], 10)[0][:, -1:]
    distances, ids = index.search(base[:200], 10)
    assert (distances <= limit).mean() > 0.9
    assert ids.dtype == np.int64
    small = ApproximateIndex(40, n_lists=2, n_probe=1).add(base[:3])
    padded, none = small.search(base[:1], 5)
    assert padded.shape == none.shape == (1, 3)
    assert (padded[none < 0] == -1).all()
    assert -1 in none


def test_remove_save_and_load(base, tmp_path):
    cut = base & np.array([255, 255, 255, 255, 31], np.uint8)
    index = ApproximateIndex(37, n_lists=8, n_probe=8).add(cut)
    assert index.remove([0, 1, 99999]) == 2
    index.save(tmp_path / "lists")
    loaded = ApproximateIndex.load(tmp_path / "lists", n_bits=37, n_probe=8)
    assert len(loaded) == 3998
    queries = cut[:10]
    for a, b in zip(loaded.search(queries, 5), index.search(queries, 5), strict=True):
        np.testing.assert_array_equal(a, b)
    loaded.add(queries[:1])
    assert 4000 in loaded.search(queries[:1], 3999)[1]
    (tmp_path / "lists").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="damaged"):
        ApproximateIndex.load(tmp_path / "lists")
    faiss.write_index_binary(faiss.IndexBinaryFlat(8), str(tmp_path / "flat"))
    with pytest.raises(ValueError, match="its kind is 'IBxF', and must be 'IBwF'"):
        ApproximateIndex.load(tmp_path / "flat")


def test_wrong_arguments_are_named(base):
    index = ApproximateIndex(40, n_lists=4).add(base[:100])
    wrong = [
        (lambda: ApproximateIndex(40).search(base[:1], 1), "index is empty"),
        (lambda: ApproximateIndex(40).save("nowhere"), "index is empty"),
        (lambda: ApproximateIndex(40, n_lists=9).add(base[:8]), "n_lists=9"),
        (lambda: ApproximateIndex(40, n_probe=0), "n_probe must be"),
        (lambda: index.search(base[:1], 0), "k must be"),
        (lambda: index.radius_search(base[:1], -1), "r must be"),
        (lambda: index.search(base[:1, :4], 1), "codes of 40 bits"),
        (lambda: index.add(base[:2], [1]), "ids must be of shape"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_single_code_is_one_query(base):
    index = ApproximateIndex(40, n_lists=4, n_probe=4).add(base)
    distances, ids = index.search(base[3], 4)
    assert distances.shape == ids.shape == (1, 4)
    np.testing.assert_array_equal(distances, index.search(base[3:4], 4)[0])
    assert len(index.radius_search(base[3], 3)[0]) == 1


def test_codes_come_back(base):
    index = ApproximateIndex(40).add(base[:300], np.arange(300)[::-1] * 7)
    ids = np.array([[0, 7, 70], [2093, 7, 14]])
    np.testing.assert_array_equal(index.codes(ids), base[299 - ids // 7])
    for empty_or_not in (index, ApproximateIndex(40)):
        with pytest.raises(ValueError, match="ids must be in the index; 1 is not"):
            empty_or_not.codes([1])


def test_ids_and_the_next_one(base):
    index = ApproximateIndex(40)
    assert (index.ids.tolist(), index.next_id) == ([], 0)
    index.add(base[:20], np.arange(5, 25))
    assert sorted(index.ids.tolist()) == list(range(5, 25))
    assert index.next_id == 25


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda i: pickle.loads(pickle.dumps(i))]
)
def test_a_copy_is_an_index_of_its_own(base, copied):
    index = ApproximateIndex(40, n_lists=4, n_probe=4).add(base[:500])
    twin = copied(index)
    for grown in (index, twin):
        grown.add(base[500:700])
        assert len(grown) == 700
        np.testing.assert_array_equal(np.sort(grown._ids()), np.arange(700))
    for one, other in zip(index.search(base[:9], 5), twin.search(base[:9], 5), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(copied(ApproximateIndex(8))) == 0
