"""LAPACK without the interpreter's lock, beside SciPy's wrappers, which hold it."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from auxhash.compute import lapack, threads


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 3), (40, 70), (130, 1)])
def test_results_are_those_of_scipy_to_the_last_bit(n, k):
    rng = np.random.default_rng(n)
    A, right = rng.normal(size=(k, n)).T, rng.normal(size=n)
    with threads.one_blas_thread():
        total = np.asfortranarray(rng.normal(size=(n, n)))
        added = dsyrk(-2.5, A, 1.0, total, lower=1)
        lapack.add_squares(-2.5, A, total)
        np.testing.assert_array_equal(total, added)
        np.testing.assert_array_equal(lapack.squares(A), dsyrk(1.0, A, trans=1, lower=1))
        S = np.asfortranarray(A @ A.T + np.eye(n))
        factor = S.copy("F")
        assert lapack.factor(factor)
        np.testing.assert_array_equal(factor, dpotrf(S, lower=1, clean=0)[0])
        result = lapack.solve(factor, right)
        np.testing.assert_array_equal(result, dpotrs(factor, right, lower=1)[0])
        np.testing.assert_allclose(S @ result, right, atol=1e-8)


def test_a_matrix_that_has_no_factor():
    assert not lapack.factor(np.asfortranarray(np.diag([1.0, -1.0])))


@pytest.mark.parametrize("bad", [np.ones((3, 2)), np.ones((3, 3), np.float32)])
def test_other_matrices_are_refused(bad):
    with pytest.raises(ValueError, match="Fortran's order"):
        lapack.squares(bad)
    with pytest.raises(ValueError, match="Fortran's order"):
        lapack.add_squares(1.0, np.ones((3, 1)), bad)
    with pytest.raises(ValueError, match="Fortran's order"):
        lapack.factor(bad)
    with pytest.raises(ValueError, match="Fortran's order"):
        lapack.solve(bad, np.ones(3))


def test_shapes_that_do_not_fit_are_refused():
    S = np.asfortranarray(np.eye(3))
    with pytest.raises(ValueError, match="shape"):
        lapack.add_squares(1.0, np.asfortranarray(np.ones((4, 2))), S)
    with pytest.raises(ValueError, match="shape"):
        lapack.factor(np.asfortranarray(np.ones((3, 2))))
    with pytest.raises(ValueError, match="shape"):
        lapack.solve(S, np.ones(2))


def test_other_threads_go_on_meanwhile():
    """The interpreter runs while a factor is made: the lock is not held."""
    n = 2000
    factor, info = np.asfortranarray(n * np.eye(n) + 1.0), np.zeros(1, lapack.INTEGER)
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.set()
        lapack._call("lapack", "dpotrf", lapack.LOWER, n, factor, n, info)
        ended.set()

    moments = [time.perf_counter()]
    with threads.one_blas_thread():
        other = threading.Thread(target=work)
        other.start()
        begun.wait()
        while not ended.is_set():
            time.sleep(0.001)
            moments.append(time.perf_counter())
        other.join()
    assert info[0] == 0
    # Were the lock held, all of the time would pass between two of these.
    assert np.diff(moments).max() < 0.5 * (moments[-1] - moments[0])
