"""Codes by products in the precision of X are the signs of the outputs, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash import MACHash
from auxhash.codes import pack, pack_bits, sign
from auxhash.compute import context
from auxhash.learn import encoder
from auxhash.learn.baselines import LSH
from auxhash.mac.hashfunctions import NetworkHash, Scaled, SVMHash, Unit, encoded, outputs, step
from auxhash.mac.hashfunctions.signs import (
    CACHE_BYTES,
    DOUBLE,
    FEATURES_PER_BLOCK,
    MIN_POINTS,
    PRODUCTS_COMPARED,
    SINGLE,
    Hyperplanes,
    Room,
)
from tests.programs import run_python

TYPES = ["f4", "f8", "f2", "u1", "i1", "i2", "u2", "i4", "i8", ">f4"]


def take_hyperplanes(patch):
    """No set of points is too small for them."""
    patch.setattr(step, "MIN_QUICK_POINTS", 1)
    patch.setattr(step, "MIN_QUICK_POINTS_COLD", 1)


@pytest.fixture
def at_once(monkeypatch):
    take_hyperplanes(monkeypatch)


def made(n, n_features, n_bits, scale, offset, dtype, seed):
    """Points of a type, and a hash function with zeros, repeats and very uneven weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X[rng.random(X.shape) < 0.2] = 0
    integers = np.dtype(dtype).kind in "iu"
    if integers:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        X = rng.integers(max(low, -(2**40)), min(high, 2**40), X.shape, endpoint=True)
    with np.errstate(over="ignore"):
        X = (X if integers else X * scale + offset).astype(dtype)
    low = float(X.min())
    width = float(X.max()) - low or 1.0
    W = rng.normal(size=(n_features + 1, n_bits)) * 10.0 ** rng.integers(-8, 8, n_bits)
    W[rng.random(W.shape) < 0.1] = 0
    if n_bits > 2:
        W[:, 0], W[:, 1] = 0, rng.integers(-1, 2, n_features + 1)
    return X, SVMHash(Scaled(low, width), W=W)


def expected(h, X):
    return pack(sign(outputs(h, X if X.dtype in step.FLOATS else X.astype(np.float64))))


@given(
    st.tuples(st.integers(1, 40), st.integers(1, 30), st.integers(1, 20)),
    st.floats(-300, 300),
    st.sampled_from([0.0, 1.0, 1e3, -1e6, 1e12]),
    st.sampled_from(TYPES),
    st.integers(0, 10**6),
)
def test_they_are_the_signs_of_the_outputs(shape, power, relative, dtype, seed):
    if dtype == "f2":
        power %= 3
    scale = 10.0 ** (power % 30 if "f4" in dtype else power)
    X, h = made(*shape, scale, relative * scale, dtype, seed)
    if not np.isfinite(X).all() or not np.isfinite(h.map.width):
        return
    hyperplanes = h.hyperplanes()
    result = None if hyperplanes is None else hyperplanes.codes(X)
    if result is not None:
        np.testing.assert_array_equal(result, expected(h, X))
    with pytest.MonkeyPatch.context() as patch:
        take_hyperplanes(patch)
        np.testing.assert_array_equal(encoded(h, X), expected(h, X))


def to_zero(h, X, bit):
    """h with a bias that makes the outputs of one bit 0, or the least beside it, at some points."""
    W = h.W.copy()
    W[-1, bit] = 0
    values = outputs(SVMHash(h.map, W=W), X.astype(np.float64))[:, bit]
    W[-1, bit] = -values[len(values) // 2]
    return SVMHash(h.map, W=W)


@given(
    st.integers(1, 500), st.sampled_from(["f4", "f8", "u1"]), st.integers(-2, 2), st.integers(0, 99)
)
def test_outputs_at_zero_and_beside_it(n_features, dtype, beside, seed):
    X, h = made(60, n_features, 7, 3.0, 5.0, dtype, seed)
    X[29:32] = X[30]  # the output of row 30 is 0, and so are theirs: few enough to be looked at
    h = to_zero(h, X, 4)
    for _ in range(abs(beside)):
        h.W[-1, 4] = np.nextafter(h.W[-1, 4], np.sign(beside) * np.inf)
    with pytest.MonkeyPatch.context() as patch:
        take_hyperplanes(patch)
        np.testing.assert_array_equal(encoded(h, X), expected(h, X))


@pytest.mark.parametrize("scale", [1e-45, 1e-42, 1e-38, 1e-30, 1e-19, 1e19, 1e30, 1e38])
def test_the_ends_of_single_precision(at_once, scale):
    X, h = made(50, 12, 9, scale, 0.0, "f4", 0)
    np.testing.assert_array_equal(encoded(h, X), expected(h, X))


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-160, 1e150, 1e300])
@pytest.mark.parametrize("steepness", [1e-310, 1e-150, 1.0, 1e150])
def test_the_ends_of_double_precision(at_once, scale, steepness):
    X, h = made(50, 12, 9, scale, 0.0, "f8", 0)
    h = SVMHash(h.map, W=h.W * 1e-8 * steepness)
    np.testing.assert_array_equal(encoded(h, X), expected(h, X))


@pytest.mark.parametrize("size", [1.2e154, 1.3e154, 1.34e154, 1.35e154])
def test_squared_lengths_at_the_end_of_double_precision(at_once, size):
    X, h = made(50, 8, 9, 1.0, 0.0, "f8", 0)
    X[3] = 0
    X[3, 0] = size
    np.testing.assert_array_equal(encoded(h, X), expected(h, X))


def test_points_of_another_number_of_features_are_refused(at_once):
    _, h = made(5, 4, 9, 1.0, 0.0, "f4", 0)
    X = np.random.default_rng(0).normal(size=(600, 7)).astype("f4")
    with pytest.raises(ValueError, match="matmul"):
        encoded(h, X)


@pytest.mark.parametrize(("n_features", "n_bits"), [(1, 4096), (2, 1), (3000, 70)])
def test_the_products_held_at_once_are_few(n_features, n_bits):
    room = Room(n_bits, n_features, SINGLE)
    assert room.n_points >= MIN_POINTS
    assert room.products.nbytes <= max(CACHE_BYTES, 4 * MIN_POINTS * n_bits) + 4 * PRODUCTS_COMPARED


def test_numbers_too_large_are_told_as_before(at_once):
    wrong = step.POINTS_PER_TASK + 500
    X, h = made(wrong + 500, 3, 4, 1.0, 0.0, "f8", 0)
    h = SVMHash(Scaled(0.0, 1e-300), W=h.W)
    X[wrong] = 1e300
    raised = pytest.raises(ValueError, match=f"too far from the training points: row {wrong} has")
    with raised, np.errstate(all="ignore"), context.using(n_jobs=1):
        encoded(h, X)


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_few_products_are_computed_anew(dtype, monkeypatch):
    """Points as they come are decided by products in their own precision: no outputs at all."""
    X, h = made(3000, 2 * FEATURES_PER_BLOCK + 7, 24, 1.0, 3.0, dtype, 1)
    h = SVMHash(h.map, W=np.random.default_rng(0).normal(size=h.W.shape))
    take_hyperplanes(monkeypatch)
    monkeypatch.setattr(step, "outputs", None)
    codes = encoded(h, X)
    monkeypatch.undo()
    np.testing.assert_array_equal(codes, expected(h, X))


def test_what_single_precision_cannot_tell_double_precision_does(monkeypatch):
    X, h = made(600, 9, 8, 1.0, 1e7, "f4", 0)
    seen = []
    codes = Hyperplanes._codes
    monkeypatch.setattr(
        Hyperplanes,
        "_codes",
        lambda self, X, dtype, *of: seen.append(dtype) or codes(self, X, dtype, *of),
    )
    take_hyperplanes(monkeypatch)
    monkeypatch.setattr(step, "outputs", None)
    result = encoded(h, X)
    monkeypatch.undo()
    assert seen == [SINGLE, DOUBLE]
    np.testing.assert_array_equal(result, expected(h, X))


def test_bits_that_do_not_depend_on_the_points(monkeypatch):
    X, h = made(700, 5, 4, 1.0, 0.0, "f4", 0)
    W = np.zeros_like(h.W)
    W[-1] = 0.0, -0.0, 2.0, -1e-300
    h = SVMHash(h.map, W=W)
    take_hyperplanes(monkeypatch)
    monkeypatch.setattr(step, "outputs", None)
    np.testing.assert_array_equal(encoded(h, X), np.full((700, 1), 0b0111, np.uint8))


@pytest.mark.parametrize("n_bits", [1, 8, 15, 16, 17, 24, 33, 40, 48, 64, 65, 130])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_any_number_of_bits(n_bits, dtype, monkeypatch):
    """Sixteen are compared at a time; the last bit is one that has to be computed anew."""
    X, h = made(300, 40, n_bits, 3.0, 5.0, dtype, 0)
    h = to_zero(h, X, n_bits - 1)
    take_hyperplanes(monkeypatch)
    codes = encoded(h, X)
    np.testing.assert_array_equal(codes, expected(h, X))
    assert codes.flags.c_contiguous


def test_the_codes_do_not_depend_on_threads_order_and_chunks(at_once, tmp_path):
    X, h = made(2 * step.POINTS_PER_TASK + 800, 20, 50, 1.0, 1.0, "f4", 3)
    h = to_zero(h, X, 37)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for points in (X, np.asfortranarray(X), np.hstack([X, X])[:, :20], mapped):
        for n_jobs in (1, 2, 3):
            with context.using(n_jobs=n_jobs):
                np.testing.assert_array_equal(encoded(h, points), expected(h, X))


@pytest.mark.parametrize("n_features", [20, FEATURES_PER_BLOCK + 20])
def test_points_far_longer_than_others(at_once, n_features):
    X, h = made(9000, n_features, 12, 1.0, 1.0, "f4", 3)
    X[[5000, 6000]] *= np.array([[1e30], [1e-30]], np.float32)
    X[7000:] *= np.geomspace(1e-20, 1e20, 2000, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(encoded(h, X), expected(h, X))


@pytest.mark.parametrize(
    ("dtype", "n_features"), [("f4", 300), ("f8", 150), ("f4", FEATURES_PER_BLOCK + 20)]
)
def test_bounds_change_within_a_part(at_once, dtype, n_features, monkeypatch):
    """Lengths far apart, of which all fit the precision: what is done stays, the rest goes on.

    They are not mixed among what is multiplied at once, or much would be computed anew.
    """
    n = 3 * Room(12, n_features, np.dtype(dtype)).n_points
    assert 3 * n < step.POINTS_PER_TASK
    X, h = made(4 * n, n_features, 12, 1.0, 1.0, dtype, 3)
    X *= np.repeat(np.array([1.0, 1e6, 1e-6, 30.0]), n).astype(dtype)[:, None]
    made_for = []
    set_bounds = Room.set_bounds

    def watched(room, length, *bounds):
        made_for.append((room.products.dtype, length))
        set_bounds(room, length, *bounds)

    monkeypatch.setattr(Room, "set_bounds", watched)
    np.testing.assert_array_equal(encoded(h, X, 1), expected(h, X))
    assert {kind for kind, _ in made_for} == {np.dtype(dtype)}
    assert len(made_for) >= 4


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_points_at_odd_addresses(at_once, dtype):
    X, h = made(500, 7, 5, 1.0, 1.0, dtype, 3)
    odd = np.frombuffer(b"?" + X.tobytes(), X.dtype, offset=1).reshape(X.shape)
    assert not odd.flags.aligned
    np.testing.assert_array_equal(encoded(h, odd), expected(h, X))


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_no_points(dtype):
    planes = Hyperplanes.of(np.ones((4, 5)), 0.0, 1.0)
    assert planes.codes(np.empty((0, 3), dtype)).shape == (0, 1)


@pytest.mark.parametrize("scaled", [Unit(), Scaled()])
def test_other_hash_functions_encode_as_before(at_once, scaled):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(600, 4)), rng.choice([-1, 1], (600, 5)).astype(np.int8)
    for h in (SVMHash(scaled), NetworkHash(6, map=scaled)):
        ready = h.prepare(X, rng)
        fitted = ready.refit(ready.features(X), Z, np.arange(5))
        np.testing.assert_array_equal(encoded(fitted, X), expected(fitted, X))


def test_weights_that_no_plane_has():
    bad = np.ones((3, 2))
    assert Hyperplanes.of(bad * 1e308, 0.0, 1e300) is None
    assert Hyperplanes.of(bad * 5e-324, 0.0, 1.0) is None
    assert Hyperplanes.of(bad[:1], 0.0, 1.0) is None


def test_few_points_are_encoded_without_numba():
    """Its import takes longer than the outputs of some thousands of points."""
    code = (
        "import sys, numpy as np\n"
        "from auxhash.mac.hashfunctions import SVMHash, Scaled, encoded\n"
        "h = SVMHash(Scaled(0.0, 1.0), W=np.eye(4)[:, :3])\n"
        "for n in (5_000, 40_000): print(len(encoded(h, np.ones((n, 3)))), 'numba' in sys.modules)"
    )
    assert run_python(code).split() == ["5000", "False", "40000", "True"]


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 16, 33])
def test_bits_are_packed_as_codes_are(n_bits):
    codes = np.random.default_rng(n_bits).choice([-1, 1], (11, n_bits))
    wanted = np.packbits(codes > 0, axis=1, bitorder="little")
    np.testing.assert_array_equal(pack_bits(codes > 0), wanted)
    np.testing.assert_array_equal(pack(codes), wanted)
    assert pack_bits(codes[:0] > 0).shape == wanted[:0].shape


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [20, step.POINTS_PER_TASK + 2000])
@pytest.mark.parametrize("made_by", ["estimator", "encoder", "baseline"])
def test_what_is_not_finite_is_told_in_the_same_words(made_by, n, wrong, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(step.POINTS_PER_TASK + 2000, 3)).astype(np.float32)
    few = {"n_bits": 4, "max_iter": 1, "refine": None, "n_similar": 3, "n_dissimilar": 3}
    model = MACHash(**few).fit(X[:40], np.arange(40) % 2)
    # All weights of one sign: infinity gives outputs that are infinite, and no NaN.
    model.hash_function_ = replace(model.hash_function_, W=np.ones_like(model.hash_function_.W))
    if made_by == "baseline":
        model = LSH(n_bits=4).fit(X[:40])
    points = X[:n].copy()
    points[n - 1, 1] = wrong
    model.save(tmp_path / "model")
    if made_by == "encoder":
        model = encoder.load(tmp_path / "model")
    with pytest.raises(ValueError) as raised:
        model.decision_function(points)
    with pytest.raises(ValueError) as said:
        model.encode(points)
    assert str(said.value) == str(raised.value)
    of_model = f"X must be finite; row {n - 1} is not"
    assert (of_model if made_by == "encoder" else "Input X contains") in str(said.value)
