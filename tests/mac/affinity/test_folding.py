"""Pairs are held in few bytes, and folding draws into them takes little more."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

from auxhash.mac import affinity
from auxhash.mac.affinity import Affinity, folding
from auxhash.mac.affinity import affinity as columns
from auxhash.model.identity import in_words


def made(name):
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 40, (2, 500))
    i, j = i[i != j], j[i != j]
    y, weight = rng.normal(size=len(i)), rng.random(len(i)) + 0.1
    return {
        "labels": lambda: affinity.from_labels(np.arange(40) % 3, 4, 9, random_state=0),
        "neighbours": lambda: affinity.from_neighbors(y[:120].reshape(40, 3), 4, 9, random_state=0),
        "real": lambda: affinity.from_pairs(i, j, y, 40),
        "weighted": lambda: affinity.from_pairs(i, j, y, 40, weight=weight),
        "few": lambda: affinity.from_pairs(i, j, np.sign(y), 40, weight=np.ceil(3 * weight)),
        "unsorted": lambda: affinity.from_labels(np.arange(40) % 3, 4, 9).subset(
            rng.permutation(40)
        ),
        "most points alone": lambda: affinity.from_pairs(i, j, y, 10**6),
    }[name]()


NAMES = ("labels", "neighbours", "real", "weighted", "few", "unsorted", "most points alone")


@pytest.mark.parametrize("name", NAMES)
def test_any_part_of_the_columns(name, monkeypatch):
    A = made(name)
    parts = [slice(0, len(A)), slice(3, 3), slice(5, len(A) - 7), slice(len(A) - 1, len(A))]
    both = [(A.ends(part), A.values(part)) for part in parts]  # before the columns are kept
    monkeypatch.setattr(columns, "MAX_KEPT_PAIRS", 0)
    assert A.y is not A.y
    monkeypatch.setattr(columns, "MAX_KEPT_PAIRS", 10**9)
    assert A.y is A.y
    for part, (ends, values) in zip(parts, both, strict=True):
        for array, complete in zip((*ends, *values), (A.i, A.j, A.y, A.weight), strict=True):
            assert array.dtype == complete.dtype
            np.testing.assert_array_equal(array, complete[part])
    np.testing.assert_array_equal(A.distinct_y(), np.unique(A.y))
    assert A.total_weight() == pytest.approx(A.weight.sum(), rel=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_made_anew_from_its_columns(name):
    A = made(name)
    B = Affinity(A.i, A.j, A.y, A.weight, A.n_points, A.kind, A.groups)
    for column in ("i", "j", "y", "weight"):
        np.testing.assert_array_equal(getattr(A, column), getattr(B, column))


def test_an_affinity_is_the_same_whatever_was_asked_of_it():
    A, B = made("labels"), made("labels")
    assert A.i[0] < A.j[0]
    assert in_words(A) == in_words(B)
    for C in (pickle.loads(pickle.dumps(A)), copy.deepcopy(A)):
        assert in_words(C) == in_words(B)
        np.testing.assert_array_equal(C.y, B.y)


def test_columns_cannot_be_changed_in_vain():
    with pytest.raises(ValueError, match="read-only"):
        made("labels").y[0] = 3


def test_other_groups():
    A = made("labels")
    B = A.grouped(A.groups[::-1])
    np.testing.assert_array_equal(B.groups, A.groups[::-1])
    np.testing.assert_array_equal(B.j, A.j)
    with pytest.raises(ValueError, match="each of 40 points"):
        A.grouped([1, 2])


def test_a_pair_that_is_given_very_often():
    y = np.random.default_rng(0).integers(0, 3, 100_000)
    A = affinity.from_pairs(np.zeros(len(y), int), np.ones(len(y), int), y, 2)
    np.testing.assert_array_equal(A.y, [0, 1, 2])
    np.testing.assert_array_equal(A.weight, np.bincount(y))


def test_bytes_held_and_needed_on_the_way(monkeypatch):
    monkeypatch.setattr(folding, "DRAWS_PER_TASK", 1 << 14)
    labels = np.arange(20_000) % 10
    affinity.from_labels(labels[:100], 3, 7)  # compiles
    tracemalloc.start()
    A = affinity.from_labels(labels, 30, 70, random_state=0)
    n_bytes, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert A.nbytes < 5.3 * len(A)
    assert n_bytes < 1.1 * A.nbytes
    assert peak < 2.5 * A.nbytes  # the draws, four bytes each, are in it


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
def test_shares_of_the_points_change_nothing(n_jobs, monkeypatch):
    labels = np.random.default_rng(0).integers(0, 4, 50)
    labels[:3] = 9  # few similar points: the tables are padded
    with pytest.warns(UserWarning, match="fewer"):
        alone = affinity.from_labels(labels, 6, 11, random_state=1, n_jobs=1)
    monkeypatch.setattr(folding, "DRAWS_PER_TASK", 1)
    with pytest.warns(UserWarning, match="fewer"):
        shared = affinity.from_labels(labels, 6, 11, random_state=1, n_jobs=n_jobs)
    for name in ("i", "j", "y", "weight"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(shared, name))


@pytest.mark.parametrize("n", [1, 2, 5, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 64])
def test_shares_hold_every_point_once(n, count):
    shares = folding._shares(n, count)
    assert [point for own in shares for point in range(n)[own]] == list(range(n))
