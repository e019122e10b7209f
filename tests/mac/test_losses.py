from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.codes import hamming
from auxhash.compute import context, threads
from auxhash.mac import affinity, losses
from auxhash.mac.zstep.problem import Problem
from tests import oracle


@given(oracle.affinities(), st.integers(1, 70), st.sampled_from(list(oracle.ALL_LOSSES)))
def test_total_is_the_sum_over_pairs(A, b, name):
    Z = oracle.codes(np.random.default_rng(b), A.n_points, b)
    np.testing.assert_allclose(
        losses.total(Z, A, oracle.ALL_LOSSES[name]), oracle.loss(Z, A, name), rtol=1e-10
    )


@pytest.mark.parametrize("name", oracle.ALL_LOSSES)
@pytest.mark.parametrize("b", [5, 33])
def test_many_real_values_are_no_second_class(name, b):
    """More distinct (y, weight) than table rows: the loss is split into short sums instead."""
    rng = np.random.default_rng(0)
    i = rng.integers(0, 60, 1500)
    j = (i + rng.integers(1, 60, 1500)) % 60
    A = affinity.from_pairs(i, j, rng.uniform(-1, 1, 1500), 60, weight=rng.uniform(1, 2, 1500))
    Z = oracle.codes(rng, 60, b)
    table = losses.tabulate(A, oracle.ALL_LOSSES[name], b)
    rank = {"ksh": 2, "bre": 2, "ee": 2, "hinge": 2}
    assert len(table.basis) == rank.get(name, len(table.basis)) <= b
    np.testing.assert_allclose(
        losses.total(Z, A, oracle.ALL_LOSSES[name]), oracle.loss(Z, A, name), rtol=1e-10
    )


def test_a_loss_that_does_not_factorize_is_exact_too():
    def jagged(d, y, b):
        return np.sin(1000 * y) * np.sin(50 * y * d)

    rng = np.random.default_rng(0)
    i = rng.integers(0, 40, 800)
    j = (i + rng.integers(1, 40, 800)) % 40
    A = affinity.from_pairs(i, j, rng.uniform(-1, 1, 800), 40)
    Z = oracle.codes(rng, 40, 9)
    d = np.diag(hamming(Z[A.i], Z[A.j]))
    expected = (A.weight * jagged(d, A.y, 9)).sum()
    np.testing.assert_allclose(losses.total(Z, A, jagged), expected, rtol=1e-9)


def test_the_formulas():
    d, b = np.arange(5.0), 4
    s = b - 2 * d
    for y in (1.0, -1.0):
        np.testing.assert_allclose(losses.ksh(d, y, b), (s - b * y) ** 2 / b**2)
        np.testing.assert_allclose(losses.esplh(d, y, b), np.exp(-y * s / b))
        np.testing.assert_allclose(
            losses.bre(d, np.float64((1 - y) / 2), b) * 4, losses.ksh(d, y, b)
        )
    np.testing.assert_allclose(losses.ee(d, 1.0, b, scale=b), 4 * d)
    np.testing.assert_allclose(losses.ee(d, -1.0, b, lam=3.0, scale=b), 3 * np.exp(-4 * d))
    np.testing.assert_allclose(losses.hinge(d, 1.0, b), (d / b) ** 2)
    np.testing.assert_allclose(losses.hinge(d, -1.0, b), np.maximum(0, 0.5 - d / b) ** 2)


def summed(Z, A, y, formula):
    """A formula of the paper, over the pairs of an affinity."""
    codes = Z.astype(float)
    pairs = zip(A.i, A.j, y, A.weight, strict=True)
    return sum(w * formula(codes[i], codes[j], value) for i, j, value, w in pairs)


@given(st.integers(0, 99), st.integers(1, 40))
def test_the_literal_forms_are_the_paper_s_formulas(seed, b):
    rng = np.random.default_rng(seed)
    Z, X = oracle.codes(rng, 12, b), rng.standard_normal((12, 3))
    i, j = np.triu_indices(12, 1)
    similar = affinity.from_pairs(i, j, rng.choice([-1.0, 1.0], len(i)), 12)
    literal = {
        "ksh": partial(losses.ksh, scale=b),
        "esplh": losses.esplh,
        "ee": partial(losses.ee, lam=2.0, scale=b),
    }
    formulas = {**oracle.PAPER, "ee": partial(oracle.PAPER["ee"], lam=2.0)}
    for name, loss in literal.items():
        expected = summed(Z, similar, similar.y, formulas[name])
        np.testing.assert_allclose(losses.total(Z, similar, loss), expected, rtol=1e-10)
    half = np.square(X[i] - X[j]).sum(axis=1) / 2
    far = affinity.from_pairs(i, j, half, 12, "distance")  # y is half / max(half)
    loss = partial(losses.bre, scale=4, largest=half.max())
    expected = summed(Z, far, half, oracle.PAPER["bre"])
    np.testing.assert_allclose(losses.total(Z, far, loss), expected, rtol=1e-10)


def test_a_partial_reads_what_its_function_reads():
    """Else bre would take a similarity of 1, two equal points, for the largest distance."""
    one = affinity.from_pairs([0], [1], [1.0], 2)
    same = partial(partial(losses.bre, scale=1.0), largest=1.0)
    assert losses.total(np.ones((2, 3), np.int8), one, same) == 0
    np.testing.assert_array_equal(losses.curves(same, [1], 3), losses.curves("bre", [1], 3))
    own = partial(losses.bre)
    own.reads = "similarity"
    assert losses.reads(own) == "similarity"


def test_the_literal_form_learns_the_same_with_mu_times_its_factor():
    from auxhash import MACHash

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(int)
    settings = {"n_similar": 5, "n_dissimilar": 10, "refine": None, "random_state": 0}
    scaled = MACHash(4, loss="ksh", mu=0.1, **settings).fit(X, y)
    literal = MACHash(4, loss=partial(losses.ksh, scale=4), mu=1.6, **settings).fit(X, y)
    np.testing.assert_array_equal(literal.codes_, scaled.codes_)
    assert literal.loss_ == pytest.approx(16 * scaled.loss_)


Z = np.ones((2, 3), np.int8)


def pair(y=1.0):
    return affinity.from_pairs([0], [1], [y], 2)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: losses.total(Z, pair(), "kshh"), "did you mean 'ksh'"),
        (lambda: losses.total(Z[:1], pair(), "ksh"), "1 codes do not fit"),
        (lambda: losses.total(Z * 2, pair(), "ksh"), "-1 and \\+1"),
        (lambda: losses.total(Z, pair(), lambda d, y, b: np.inf), "not finite"),
        (lambda: losses.total(Z, pair(), lambda d, y, b: np.ones(7)), "must broadcast"),
        (lambda: losses.total(Z, pair(3.0), "bre"), "bre reads y as distances"),
    ],
)
def test_bad_arguments(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "NoneType"),
        ("text", "text"),
        (np.full((2, 5), "a"), "text"),
        (1j, "complex128"),
        ([[1.0], [1.0, 2.0]], "list"),
        ({}, "dict"),
        (np.array([None, "a"]), "ndarray"),
    ],
)
def test_a_loss_that_returns_no_numbers(returned, message):
    says = f"a loss must return numbers, one for each d and y; it returned {message}$"
    with pytest.raises(ValueError, match=says):
        losses.curves(lambda d, y, b: returned, [-1, 1], 4)


def test_a_loss_that_does_not_depend_on_d():
    few = affinity.from_pairs([0, 1], [1, 2], [1, -1], 3)
    many = affinity.from_pairs(np.zeros(300, int), np.arange(1, 301), np.linspace(-1, 1, 300), 301)
    for pairs in (few, many):
        for loss in (lambda d, y, b: y**2, lambda d, y, b: 1.0):
            with pytest.warns(UserWarning, match="does not depend on the distance d"):
                losses.tabulate(pairs, loss, 4)


def apart(d, y, b):
    return np.abs((b - 2 * d) / b - y)


def test_much_memory_is_told_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(losses, "WARN_BYTES", 0)
    rng = np.random.default_rng(0)
    y = rng.uniform(-1, 1, 600)
    i, j = np.triu_indices(40, 1)

    def pairs(y):
        return affinity.Affinity(i[:600], j[:600], y, np.ones(600), 40)

    with pytest.warns(UserWarning, match=r"512 bytes for each of 600 .* Round y") as warned:
        problem = Problem(pairs(y), apart, 64)
    with context.using(n_jobs=1), threads.pool() as run:  # says no more
        problem.first_bits(problem.to_words(oracle.codes(rng, 40, 64)), 40, "absent", run)
    assert len(warned) == 1
    Problem(pairs(np.rint(100 * y) / 100), apart, 64)
    for name in losses.LOSSES:
        Problem(pairs(y), name, 64)
