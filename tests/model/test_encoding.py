"""Values as JSON and arrays, and back."""

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LogisticRegression

from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import Scaled, SVMHash
from auxhash.mac.loop import State
from auxhash.model import encoding
from auxhash.model.encoding import TYPES, decode, encode, fingerprint


@register("test.Pair")
class Pair(NamedTuple):
    left: object
    right: object = None


arrays = hnp.arrays(
    st.sampled_from([*TYPES, "<U1", "<U5", ">f8", ">i4"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.text(),
    arrays,
    arrays.map(np.asfortranarray),
    arrays.filter(lambda a: a.ndim and a.dtype.kind != "U").map(lambda a: a[::-2]),
    hnp.from_dtype(np.dtype("float32")),
    hnp.from_dtype(np.dtype("int16")),
)
keys = st.one_of(st.text(), st.integers(), st.booleans(), st.tuples(st.integers(), st.text()))
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(), inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=12,
)


def through_json(value):
    coded, arrays = encode(value)
    return decode(json.loads(json.dumps(coded, allow_nan=False)), arrays)


def same(a, b):
    """Equal in value and type, NaN and all; arrays in type, shape and order in memory, too."""
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=")
            and a.shape == b.shape
            and all(same(x, y) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    return a == b or (a != a and b != b)


@given(values)
def test_what_goes_in_comes_out(value):
    assert same(through_json(value), value)


def test_the_order_in_memory_is_kept():
    C = np.arange(12.0).reshape(3, 4)
    for array in (C, C.T, np.asfortranarray(C)):
        decoded = through_json(array)
        assert decoded.flags.c_contiguous == array.flags.c_contiguous
        assert decoded.flags.f_contiguous == array.flags.f_contiguous
        assert decoded.flags.writeable


def test_numbers_of_half_precision_take_its_room():
    for kind in (np.float32, np.float64):
        value = np.array([[0.5, -0.0, 1 / 1024], [65504, np.inf, -3]], kind)
        coded, stored = encode(value)
        assert stored["value"].dtype == np.float16
        back = decode(coded, stored)
        assert back.dtype == kind
        np.testing.assert_array_equal(np.signbit(back), np.signbit(value))
        np.testing.assert_array_equal(back, value)
        assert encode(value + kind(1e-7))[1]["value"].dtype == kind


def test_a_fingerprint_does_not_depend_on_what_files_take_for_numbers(monkeypatch):
    X = np.arange(24.0).reshape(12, 2)
    classifier = LogisticRegression().fit(X, X[:, 0] > 7)
    classifier.coef_ = np.array([[0.5, -2.0]])
    values = [classifier, {"halves": X}, np.random.default_rng(0)]
    expected = [fingerprint(value) for value in values]
    monkeypatch.setattr(encoding, "_in_half", lambda array: array)
    assert [fingerprint(value) for value in values] == expected
    assert encode(X)[1]["value"].dtype == np.float64


def test_arrays_of_objects():
    names = np.array(["a", "b\0", None, [1, 2]], object).reshape(2, 2)
    decoded = through_json(names)
    assert decoded.dtype == object
    assert decoded.tolist() == names.tolist()


def test_registered_classes_and_where_their_arrays_are():
    h = SVMHash(Scaled(1.0, 2.0), 3.0, np.ones((2, 3)))
    coded, arrays = encode({"h": h, "pair": Pair(1, (2,))}, "model")
    assert list(arrays) == ["model.h.W"]
    decoded = decode(coded, arrays)
    assert decoded["h"].map == h.map
    np.testing.assert_array_equal(decoded["h"].W, h.W)
    assert decoded["pair"] == Pair(1, (2,))
    # A field added since has its default; one that is gone is an error.
    assert decode({"object": ["test.Pair", {"left": 3}]}, {}) == Pair(3)
    with pytest.raises(ValueError, match="no field 'up'"):
        decode({"object": ["test.Pair", {"left": 3, "up": 1}]}, {})
    with pytest.raises(ValueError, match="missing 1 required"):
        decode({"object": ["test.Pair", {}]}, {})


def test_the_state_of_an_algorithm():
    Z = np.ones((3, 2), np.int8)
    state = State(SVMHash(Scaled(), W=np.eye(2)), Z, -Z, Z, None)
    decoded = through_json(state)
    assert decoded.multipliers is None
    for name in ("H", "Z", "trained"):
        np.testing.assert_array_equal(getattr(decoded, name), getattr(state, name))


def test_registering():
    with pytest.raises(TypeError, match="must be a dataclass or a NamedTuple"):
        register("test.list")(list)
    with pytest.raises(ValueError, match=r"'test\.Pair' is registered already, for Pair"):

        @register("test.Pair")
        @dataclass(frozen=True)
        class Other:
            left: int


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "SFC64", "MT19937", "Philox"])
def test_generators_go_on_as_they_would_have(kind):
    rng = np.random.Generator(getattr(np.random, kind)(7))
    rng.normal(size=5), rng.integers(10, dtype=np.int32), rng.spawn(2)
    decoded = through_json(rng)
    [child], [expected] = decoded.spawn(1), rng.spawn(1)
    np.testing.assert_array_equal(child.normal(size=3), expected.normal(size=3))
    np.testing.assert_array_equal(decoded.normal(size=3), rng.normal(size=3))
    integers = [r.integers(10, size=3, dtype=np.int32).tolist() for r in (decoded, rng)]
    assert integers[0] == integers[1]


def test_a_legacy_random_state():
    state = np.random.RandomState(3)
    state.normal()  # leaves one in hand
    assert through_json(state).normal() == state.normal()


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        len,
        lambda d, y, b: d,
        object(),
        Colour.RED,
        {1, 2},
        b"bytes",
        1j,
        2**2000,
        np.array([1j]),
        np.array([1], "timedelta64[D]"),
        np.ma.array([1, 2], mask=[0, 1]),
        [{"deep": (len,)}],
        SVMHash,
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        encode(value)


def test_the_error_says_where():
    with pytest.raises(TypeError, match=r"model\.a\.1 is of type builtin_function_or_method"):
        encode({"a": [1, len]}, "model")


ONE = {"x": np.arange(6.0).reshape(2, 3)}


@pytest.mark.parametrize(
    ("coded", "message"),
    [
        ({"array": ["x", "float64", [3, 2], "C"]}, "ought to be float64 of shape"),
        ({"array": ["x", "float64", [2, 3], "F"]}, "ought to be"),
        ({"array": ["x", "float64", [2, 3], "A"]}, "ought to be"),
        ({"array": ["x", "float32", [2, 3], "C"]}, "ought to be float32"),
        ({"array": ["x", "<U3", [2], "C"]}, "holds no text"),
        ({"array": ["x", "object", [2, 3], "C"]}, "ought to be object"),
        ({"array": ["z", "float64", [2, 3], "C"]}, "'z' is missing"),
        ({"array": ["x"]}, "not enough values"),
        ([{"array": ["x", "float64", [2, 3], "C"]}] * 2, "referred to twice"),
        (3, "nothing refers to the array 'x'"),
        ({"classifier": "x"}, "holds no classifier"),
        ({"estimator": ["system", {"dict": {}}]}, "'system' of scikit-learn in a form"),
        ({"estimator": ["Pipeline", {"dict": {}}]}, "malformed"),
        ({"estimator": ["Pipeline"]}, "not enough values"),
        ({"pickle": "x"}, "unknown kind 'pickle'"),
        ({"object": ["os.system", {}]}, "'os.system' is unknown"),
        ({"object": ["SVMHash", {"map": 1, "__class__": 2}]}, "no field '__class__'"),
        ({"float": "1e9"}, "is no float"),
        ({"scalar": ["object", 3]}, "unknown type 'object'"),
        ({"scalar": ["int8", 300]}, "300|out of bounds"),
        ({"objects": [[3], ["a"]]}, "do not fill"),
        ({"objects": [[2**62], ["a"]]}, "do not fill"),
        ({"items": [[[1], 2]]}, "unhashable"),
        ({"tuple": 3}, "malformed"),
        ({"dict": 3}, "malformed"),
        ({"float": "nan", "tuple": []}, "does not say what it is"),
        ({}, "does not say what it is"),
        (
            {"generator": {"dict": {"state": {"dict": {"bit_generator": "os"}}}}},
            "unknown kind 'os'",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(coded, message):
    with pytest.raises(ValueError, match=message):
        decode(coded, ONE)


def test_a_state_that_points_outside_is_refused():
    coded, arrays = encode(np.random.RandomState(1))
    coded["random state"]["dict"]["state"]["dict"]["pos"] = 10**6
    with pytest.raises(ValueError, match="pos is 1000000, beyond 624"):
        decode(coded, arrays)


def test_deep_nesting_is_refused():
    deep = 3
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="recursion"):
        decode(deep, {})


@pytest.mark.parametrize("unit", ["Y", "D", "s", "ns"])
def test_dates(unit):
    dates = np.array([["2020-01-01", "1969-07-20"], ["2000-02-29", "NaT"]], f"datetime64[{unit}]")
    decoded = decode(*encode(dates))
    assert decoded.dtype == dates.dtype
    np.testing.assert_array_equal(decoded, dates)


@pytest.mark.parametrize("name", ["datetime64", "datetime64[x]", "O", "float64", 3])
def test_dates_of_a_forged_type(name):
    coded, arrays = encode(np.array(["2020-01-01"], "datetime64[D]"))
    coded["dates"][0] = name
    with pytest.raises(ValueError, match=r"dates|malformed"):
        decode(coded, arrays)
