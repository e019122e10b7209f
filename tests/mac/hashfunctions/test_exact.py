"""Newton steps of single bits beside the plain definition."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from auxhash.compute import context, threads
from auxhash.mac.hashfunctions import exact, svm

C = 10.0


def newton_step(F, D, gradient):
    hessian = np.eye(F.shape[1]) + 2 * C * (F * D[:, None]).T @ F
    return -np.linalg.solve(hessian, gradient)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("kept", [exact.MAX_KEPT_BYTES, 0])
@pytest.mark.parametrize("n", [30, 100, 400])  # fewer points than features; some more; many more
def test_steps_are_those_of_the_hessian_while_points_come_and_go(n, kept, n_jobs, monkeypatch):
    """All inside, nearly all, half, some fewer, few, one, none, and many again."""
    monkeypatch.setattr(exact, "MAX_KEPT_BYTES", kept)
    monkeypatch.setattr(exact, "ROWS_PER_TASK", 32)
    rng = np.random.default_rng(n)
    F = rng.normal(size=(n, 40))
    weight = np.column_stack([np.ones(n), rng.uniform(0.1, 3.0, n), np.ones(n)])
    order = rng.permutation(n)
    bits = np.array([0, 2, 5])
    with context.using(n_jobs=n_jobs), threads.pool() as run:
        steps = exact.ExactSteps(F, F.T @ F, C, run)
        for share in (1, 0.95, 0.5, 0.45, 0.1, 1 / n, 0, 0.6):
            inside = np.zeros((n, 3))
            inside[order[: round(share * n)]] = weight[order[: round(share * n)]]
            gradient = rng.normal(size=(40, 3))
            solution = steps.solve(bits, gradient, inside)
            for k in range(3):
                best = newton_step(F, inside[:, k], gradient[:, k])
                np.testing.assert_allclose(solution[:, k], best, rtol=1e-8, atol=1e-11)
        assert bool(steps.sums) == (kept > 0 and n > 40)


def test_known_products_are_solved_in_memory_that_is_kept():
    """New memory for each step would take a worker of Dask twice the time of the step."""
    rng = np.random.default_rng(0)
    F, gradient = rng.normal(size=(800, 500)), rng.normal(size=500)
    rows = np.arange(0, 800, 2)
    with context.using(n_jobs=1), threads.pool() as run:
        steps = exact.ExactSteps(F, F.T @ F, C, run)
        first = steps.by_points(rows, np.ones(400), gradient)
        tracemalloc.start()
        again = steps.by_points(rows, np.ones(400), gradient)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_array_equal(first, again)
    assert peak < 400 * 400 * 8 / 4


def test_a_huge_cost_of_collinear_features_still_goes_down():
    """Rounding makes the sum over the points indefinite: the step is shorter, not refused."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 30)) * 1e3
    gradient = rng.normal(size=(30, 1))
    with context.using(n_jobs=1), threads.pool() as run:
        steps = exact.ExactSteps(F, F.T @ F, 1e12, run)
        solution = steps.solve(np.zeros(1, np.int64), gradient, np.ones((200, 1)))
    assert np.isfinite(solution).all()
    assert (solution * gradient).sum() < 0


@pytest.mark.parametrize("kept", [exact.MAX_KEPT_BYTES, 0])
def test_bits_that_conjugate_gradients_are_slow_on(kept, monkeypatch):
    """Rare features, and classes apart: CG gives up, and the optimum is LIBLINEAR's."""
    monkeypatch.setattr(exact, "MAX_KEPT_BYTES", kept)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 1500)
    X = np.maximum(0, rng.normal(size=(6, 120))[y] + rng.normal(size=(1500, 120)) - 1)
    X *= rng.random(120) ** 4
    F = np.column_stack([X, np.ones(1500)])
    Z = np.where(np.column_stack([y < 3, y % 2, y == 1]), 1, -1).astype(np.int8)
    solved = []
    solve = exact.ExactSteps.solve

    def counted(self, bits, gradient, inside):
        solved.extend(bits.tolist())
        return solve(self, bits, gradient, inside)

    monkeypatch.setattr(exact.ExactSteps, "solve", counted)
    W, again = (context.using(n_jobs=n)(svm.fit)(F, Z, 1000.0) for n in (1, 4))
    assert set(solved) == {0, 1, 2}
    np.testing.assert_array_equal(W, again)
    for k in range(3):
        model = LinearSVC(C=1000.0, dual=False, tol=1e-6, max_iter=100_000).fit(X, Z[:, k])
        peer = np.append(model.coef_, model.intercept_)[:, None]
        one, z = W[:, k : k + 1], Z[:, k : k + 1]
        best = svm.objective(peer, F, z, 1000.0)[0]
        assert svm.objective(one, F, z, 1000.0)[0] <= 1.00005 * best


def test_the_first_fit_of_a_process_is_as_every_other():
    """SciPy's library, which is loaded for it, is held to one thread from the start."""
    code = (
        "import numpy as np\n"
        "from auxhash.mac.hashfunctions import svm\n"
        "rng = np.random.default_rng(0)\n"
        "F = rng.normal(size=(2000, 600))\n"
        "Z = np.where(F @ rng.normal(size=(600, 3)) >= 0, 1, -1).astype(np.int8)\n"
        "W = svm.fit(F, Z, 1.0)\n"
        "print(np.array_equal(W, svm.fit(F, Z, 1.0)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == ["True"]
