"""Recall to expect of codes, and whether it still holds."""

from dataclasses import replace

import numpy as np
import pytest

from auxhash.codes import pack, sign
from auxhash.compute.neighbors import nearest
from auxhash.search import metrics
from auxhash.search.index import tables_from_outputs
from auxhash.search.metrics.ranks import NeighborRanks
from auxhash.search.metrics.recall import (
    Drift,
    ExpectedRecall,
    checked_points,
    drift,
    expected_recall,
    figures,
    n_held_out,
)

W = np.random.default_rng(1).normal(size=(8, 32))
X = np.random.default_rng(0).normal(size=(1500, 8))


def outputs(points):
    return points @ W


def encode(points):
    return pack(sign(outputs(points)))


def test_what_is_expected_is_measured():
    held_out = np.arange(1400, 1500)
    recall = expected_recall(encode, outputs, X, held_out, "euclidean")
    assert [each.n_base for each in recall] == [100, 300, 1000, 1400]
    assert recall[-1].n_queries == 100
    base, queries = X[:1400], X[1400:]
    near = nearest(base, queries, 10)[0]
    share = metrics.recall_at_k(encode(queries), encode(base), neighbors=near, k=10)
    assert recall[-1].hamming == pytest.approx(share)
    assert recall[-1].outputs > recall[-1].hamming > recall[-1].hamming_error > 0
    recalls = [each.hamming for each in recall]
    assert recalls == sorted(recalls, reverse=True)  # more points, fewer of the nearest come first
    assert "0." in str(recall[-1])
    known = expected_recall(encode, outputs, X, held_out, "euclidean", encode(X))
    assert known == recall


def test_tables_are_measured_where_there_are_any():
    def tables(queries):
        return tables_from_outputs(outputs(queries))

    recall = expected_recall(encode, outputs, X, metric="euclidean", tables=tables)
    for each in recall:  # the same distances by another way
        assert (each.tables, each.tables_error) == (each.outputs, each.outputs_error)
    assert f"{recall[-1].tables:.3f} by tables (standard errors at most 0." in str(recall[-1])
    [without, *_] = expected_recall(encode, outputs, X, metric="euclidean")
    assert without.tables is None
    assert "tables" not in str(without)
    with pytest.raises(ValueError, match="tables must be a number"):
        replace(recall[0], tables="0.5").check_read()


def test_queries_are_not_searched():
    recall = expected_recall(encode, outputs, X[:200])
    assert [(each.n_queries, each.n_base) for each in recall] == [(10, 100), (10, 190)]
    assert n_held_out(200) == 10
    assert expected_recall(encode, outputs, X[:199]) == []


def test_drift():
    expected = expected_recall(encode, outputs, X, metric="euclidean")
    rng = np.random.default_rng(5)
    same = expected_recall(encode, outputs, rng.normal(size=(400, 8)), metric="euclidean")
    change = drift(expected, same)
    assert change.now.n_base == change.expected.n_base == 300  # figures of one size compare
    assert not change.lower
    assert "not lower" in str(change)
    moved = expected_recall(encode, outputs, rng.normal(size=(1500, 8)) + 4, metric="euclidean")
    change = drift(expected, moved)
    assert change.now.n_base == 1425
    assert change.lower
    assert change.change < -0.1
    assert "recall is lower than expected" in str(change)
    assert drift([], moved) is None


def test_drift_is_by_tables_where_the_model_has_them():
    plain = ExpectedRecall(100, 20, 0.5, 0.01, 0.6, 0.01)
    learnt = replace(plain, tables=0.8, tables_error=0.03)
    change = Drift(learnt, replace(learnt, tables=0.6, tables_error=0.04))
    assert (change.by, change.shares, change.lower) == ("tables", (0.8, 0.6), True)
    assert change.error == pytest.approx(0.05)
    assert "0.600 of the 10 nearest by tables among 100 points, and 0.800" in str(change)
    assert Drift(plain, learnt).by == "hamming"


def test_figures():
    result = figures(NeighborRanks(np.array([[0, 5], [9, 99]]), np.ones((2, 2), int)), 500)
    assert result["10@10"] == 0.75
    assert result["10@100"] == 1
    assert np.isnan(result["10@1000"])
    assert (result["R@1"], result["R@10"], result["R@100"]) == (0.5, 1, 1)
    assert result["error"] == pytest.approx(0.25)
    assert ExpectedRecall(1, 1, 0.5, 0.1, 0.6, 0.1).n_base == 1


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (X[:2], "X must hold at least 20 points, for 10 neighbours of held-out queries, got 2"),
        (X[0], r"X must be numbers of shape \(n, D\), got float64 of shape \(8,\)"),
        (X.astype(str), r"X must be numbers of shape \(n, D\), got <U"),
        (np.column_stack([X, np.arange(1500)]), r"column 8 of X numbers the rows \(0, 1, ...\)"),
        (np.column_stack([np.arange(1, 1501), X]), r"column 0 of X numbers the rows \(1, 2, ...\)"),
    ],
)
def test_points_that_have_no_neighbours(points, message):
    with pytest.raises(ValueError, match=message):
        checked_points(points, "X")
    assert checked_points(X, "X") is X


def test_whole_numbers_may_be_features():
    """A column of few values, numbers that are whole in all columns, and few queries are no ids."""
    few_values = np.column_stack([X, np.arange(1500) // 2])
    all_integers = np.column_stack([np.arange(0, 3000, 2), np.rint(X)])
    for points in (few_values, all_integers):
        assert checked_points(points, "X") is points
    queries = np.column_stack([X, np.arange(1500)])[:3]
    assert checked_points(queries, "queries", 1) is queries
    for keys in (np.arange(1500) + 1_000, np.random.default_rng(0).permutation(10**6)[:1500]):
        with pytest.raises(ValueError, match="column 8 of X numbers the rows"):
            checked_points(np.column_stack([X, keys]), "X")
