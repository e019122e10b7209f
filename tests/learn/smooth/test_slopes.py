"""Slopes of the soft rank and the gradients by lists, against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auxhash.learn.smooth import slopes
from auxhash.learn.smooth.slopes import FAR, MOST_CONTENDERS, Workspace, pulls, soft_rank


def test_slopes_of_all_sizes_of_differences():
    """From those where a sigmoid is nearly 0 or 1 to those where an exponential would overflow."""
    differences = np.concatenate([np.linspace(-30, 30, 4001), [-1e4, -90, -60, 60, 90, 1e4]])
    level = np.array([[0.0], [3.0], [-7.5]], np.float32)
    S = (differences + level).astype(np.float32)
    exact = S.astype(np.float64) - level
    slope, total = soft_rank(S.copy(), level, np.float32(1e-4), np.float32(0.25))
    with np.errstate(over="ignore"):
        nearer = 1 / (1 + np.exp(-exact))
    expected = 0.25 * nearer * (1 - nearer) / len(exact[0])
    expected /= nearer.mean(axis=1, keepdims=True) + 1e-4
    far = exact <= 0
    np.testing.assert_allclose(slope[far & (exact > -40)], expected[far & (exact > -40)], rtol=1e-5)
    near = far & (exact > -3)
    np.testing.assert_allclose(slope[near], expected[near], rtol=1.5e-6)
    # Near 1, the sigmoid's 1 + e is rounded by 2^-24, its inverse and its square by 2^-25 each: by
    # 2^-23 in all, where s(1 - s) is 1/4 at most.
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=2**-21 * expected.max())
    np.testing.assert_allclose(total[:, 0], expected.sum(axis=1), rtol=1e-5)


def exact_pulls(S, level, own, sample, least, weight):
    """The gradients by the definition, in double precision."""
    S, own, sample = (part.astype(np.float64) for part in (S, own, sample))
    nearer = 1 / (1 + np.exp(level - S))
    slope = weight * nearer * (1 - nearer) / S.shape[1]
    slope /= nearer.mean(axis=1, keepdims=True) + least
    return slope @ sample, slope.T @ own, slope.sum(axis=1, keepdims=True)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 2500), st.sampled_from([3, 16, 40]))
def test_gradients_by_lists_are_those_by_all_of_the_sample(seed, n_rows, n, b):
    """Samples of which few contend, of which all do, and of which nobody does."""
    rng = np.random.default_rng(seed)
    own, sample = (np.tanh(rng.normal(0, 2, (size, b))).astype(np.float32) for size in (n_rows, n))
    level = rng.uniform(-b, 1.5 * b, (n_rows, 1)).astype(np.float32)
    least, weight = np.float32(1e-4), np.float32(0.25)
    products = own @ sample.T
    products[rng.random(products.shape) < 0.1] = -np.inf  # similar points
    nearer = 1 / (1 + np.exp(level - products.astype(np.float64)))
    contends = nearer > least / FAR
    few = contends.mean() <= MOST_CONTENDERS
    left_out = np.where(contends, products, -np.inf) if few else products
    S, contenders = Workspace().tables(n_rows, n)
    for table, used in ((None, products), (contenders, left_out)):
        S[:] = products
        computed = pulls(S, level, own, sample, least, weight, table)
        expected = exact_pulls(used, level, own, sample, least, weight)
        for each, right in zip(computed, expected, strict=True):
            np.testing.assert_allclose(each, right, rtol=1e-4, atol=1e-5 * weight)
    for each, right in zip(
        exact_pulls(left_out, level, own, sample, least, weight),
        exact_pulls(products, level, own, sample, least, weight),
        strict=True,
    ):
        assert np.abs(each - right).max() <= 2 * weight * n_rows / FAR


def test_few_contenders_are_listed_and_many_are_not(monkeypatch):
    listed = []
    monkeypatch.setattr(slopes, "_gather", lambda *arguments: listed.append(arguments))
    rng = np.random.default_rng(0)
    sample = np.sign(rng.normal(size=(200, 64))).astype(np.float32)
    own, least = sample[:5], np.float32(1e-4)
    for level in (60.0, -60.0):
        S, contenders = Workspace().tables(5, 200)
        np.matmul(own, sample.T, out=S)
        levels = np.full((5, 1), level, np.float32)
        pulls(S, levels, own, sample, least, np.float32(1), contenders)
        assert len(listed) == 1


def test_tables_of_a_thread_grow_and_are_kept():
    workspace = Workspace()
    large = workspace.tables(7, 30)[0]
    small, columns = workspace.tables(3, 11)
    assert (small.shape, columns.shape) == ((3, 11), (3, 11))
    assert np.shares_memory(small, large)
    assert not np.shares_memory(workspace.tables(8, 30)[0], large)
