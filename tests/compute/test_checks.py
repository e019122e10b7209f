import warnings

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array

from auxhash.compute import checks


@pytest.mark.parametrize("value", [True, 1.0, "3", None, 0, 11, np.float64(2)])
def test_whole_refuses(value):
    with pytest.raises(checks.ArgumentError, match="n_bits must be a whole number from 1 to 10"):
        checks.integer("n_bits", value, 1, 10)


@pytest.mark.parametrize("value", [3, np.uint8(3), np.int64(3)])
def test_whole_gives_a_plain_int(value):
    assert type(checks.integer("n_bits", value, 1)) is int


@pytest.mark.parametrize("value", [0, np.nan, np.inf, "1", False, None, 10**400])
def test_number_refuses(value):
    with pytest.raises(checks.ArgumentError, match="C must be a number above 0"):
        checks.number("C", value, 0, strict=True)


def test_argument_errors_are_of_both_kinds():
    for kind in (ValueError, TypeError):
        with pytest.raises(kind):
            checks.flag("flag", 1)


@pytest.mark.parametrize(
    "values", [[-1], [0.5], [[1]], np.array([2**63], np.uint64), np.array([2**64 - 1], np.uint64)]
)
def test_ids_refuse(values):
    with pytest.raises(checks.ArgumentError, match="ids"):
        checks.ids("ids", values)


def test_ids_too_large_for_any_array():
    for wrong in (10**20, -(10**20)):
        with pytest.raises(checks.ArgumentError, match=rf"0\.\.2\^63 - 1, got {wrong}"):
            checks.ids("ids", [1, wrong])


def test_ids_up_to_the_largest():
    assert checks.ids("ids", np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]
    assert checks.ids("ids", []).dtype == np.int64


def test_a_column_of_labels_is_its_labels():
    assert checks.labels("y", [[3], [1], [3]]).tolist() == [3, 1, 3]


def test_labels_of_several_kinds():
    several = np.array([[0, 1], [1, 1]])
    assert checks.labels("y", csr_array(several)).tolist() == several.tolist()
    assert checks.labels("y", several.astype(object)).dtype == np.int8
    text = checks.labels("y", np.array(["a", "bc"], object))
    assert text.dtype.kind == "U"
    assert text.tolist() == ["a", "bc"]
    assert checks.labels("y", np.array([1, 2], object)).dtype.kind == "i"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], "row 1 is NaN"),
        (np.array(["2020", "NaT"], "datetime64[D]"), "row 1 is NaN"),
        (np.array(["a", None], object), "row 1"),
        (np.array(["a", float("nan")], object), "row 1"),
        (np.array(["a", 1], object), "mixed"),
        (["1", 1], "mixed"),
        ([2**63 + 1, -1], "9223372036854775809: give them as text"),
        (np.array([2**53 + 1, 0.5], object), "give them as text"),
        (pandas.Series(["a", None], dtype="string"), "row 1 is <NA>"),
        (np.ma.array([1, 2], mask=[False, True]), "row 1 is masked"),
        (np.ma.array([[1, 0], [0, 1]], mask=[[False, False], [True, False]]), "row 1 is masked"),
        ([[0, 2], [1, 0]], "only 0 and 1"),
        (np.zeros((2, 2, 2)), "shape"),
        ([1j, 2j], "numbers or text"),
        ([1], "one row for each of 2 points"),
    ],
)
def test_labels_refuse(values, message):
    with pytest.raises(checks.ArgumentError, match=message):
        checks.labels("y", values, n=2)


def test_labels_in_lists_keep_their_kind():
    for values in ([1, 2], [0.5, 2], ["a", "b"], [True, False], (2**63, 2**63 + 1)):
        expected = np.asarray(values)
        result = checks.labels("y", values)
        assert result.dtype == expected.dtype
        assert result.tolist() == expected.tolist()


def test_a_mask_that_masks_nothing():
    assert checks.ids("ids", np.ma.array([1, 2], mask=False)).tolist() == [1, 2]
    with pytest.raises(checks.ArgumentError, match="ids must not be missing; row 0 is masked"):
        checks.ids("ids", np.ma.array([1, 2], mask=[True, False]))


@pytest.mark.parametrize(
    ("y", "n_messages"),
    [
        ([0, 1, 2, -1], True),
        ([0.0, 1.0, 2.0, -1.0, -1.0], True),
        ([-1, 1, -1, 1], False),
        ([-1, 0, 1], False),  # three classes may well be called so
        ([-2, -1, 0, 1, 2], False),
        ([-1, 1, 2, 3], False),
        ([0, 1, 2, 3], False),
        (["-1", "0", "1", "2"], False),
    ],
)
def test_minus_one_that_marks_points_without_labels_is_told(y, n_messages):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checks.classes("y", np.array(y))
    assert [str(one.message) for one in caught] == n_messages * [
        "y holds -1, which is taken for a class: leave out points that have no label"
    ]
