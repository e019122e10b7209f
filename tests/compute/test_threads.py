import contextvars
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from auxhash.compute import context, threads
from tests.programs import run_python


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
def test_results_come_in_order(n_jobs):
    with context.using(n_jobs=n_jobs), threads.pool() as run:
        assert run(lambda x: x * x, range(20)) == [x * x for x in range(20)]


def test_chunks_cover_the_range():
    assert threads.chunks(10, 4) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert threads.chunks(0, 4) == []


def test_zero_threads_is_an_error():
    with pytest.raises(ValueError, match="n_jobs"), context.using(n_jobs=0):
        threads.count()


def test_errors_come_through():
    with context.using(n_jobs=2), threads.pool() as run, pytest.raises(ZeroDivisionError):
        run(lambda x: 1 // x, [1, 0])


@pytest.mark.parametrize("late", [0, 1])
def test_the_first_error_is_told(late):
    """Whichever thread fails sooner, and whichever has the first item."""
    meeting, other = threading.Barrier(2, timeout=20), threading.Event()

    def fail(item):
        meeting.wait()
        if item == late:
            other.wait(20)
        other.set()
        raise KeyError(item)

    with context.using(n_jobs=2), threads.pool() as run, pytest.raises(KeyError, match="0"):
        run(fail, range(2))


def test_an_error_of_another_thread_comes_through():
    meeting = threading.Barrier(2, timeout=20)

    def fail_elsewhere(_):
        meeting.wait()
        if threading.current_thread() is not threading.main_thread():
            raise KeyError("elsewhere")

    with context.using(n_jobs=2), threads.pool() as run, pytest.raises(KeyError, match="elsewhere"):
        run(fail_elsewhere, range(2))


def test_all_threads_have_the_context_of_the_caller():
    """Such as NumPy's errors: no item is computed otherwise than the next."""
    meeting, kind = threading.Barrier(3, timeout=20), contextvars.ContextVar("kind", default="")

    def nested(_):
        meeting.wait()
        return kind.get()

    with context.using(n_jobs=3), threads.pool() as run:
        kind.set("the caller's")
        assert run(nested, range(3)) == ["the caller's"] * 3


def test_a_pool_works_on_after_an_error():
    with context.using(n_jobs=3), threads.pool() as run:
        with pytest.raises(ZeroDivisionError):
            run(lambda x: 1 // x, [1, 0, 1, 1])
        assert run(str, range(5)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_calling_thread_works_too(n_jobs):
    """All meet, which takes as many threads as were asked for, and one of them is the caller's."""
    meeting = threading.Barrier(n_jobs, timeout=20)

    def meet(_):
        meeting.wait()
        return threading.get_ident()

    with context.using(n_jobs=n_jobs), threads.pool() as run:
        result = run(meet, range(n_jobs))
    assert len(set(result)) == n_jobs
    assert threading.get_ident() in result


def test_a_thread_that_is_not_needed_is_not_waited_for():
    """The only other thread is busy, and the caller does it all."""
    done, busy = threading.Event(), threading.Event()

    def keep(_):
        if threading.current_thread() is not threading.main_thread():
            busy.set()
            return done.wait(20)
        busy.wait(20)
        result = run(str, range(5))
        done.set()
        return result

    with context.using(n_jobs=2), threads.pool() as run:
        result = run(keep, range(2))
    assert ["0", "1", "2", "3", "4"] in result
    assert True in result  # and the other thread was busy until then


def blas_threads():
    result = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.filepath: library.num_threads for library in result}


@pytest.mark.parametrize("n_jobs", [True, 1.5, "2"])
def test_n_jobs_must_be_a_whole_number(n_jobs):
    wrong = pytest.raises(ValueError, match="n_jobs must be a whole number")
    with wrong, context.using(n_jobs=n_jobs):
        threads.count()


def test_overlapping_pools_keep_and_then_lift_the_limit():
    before = blas_threads()
    first, second = threads.pool(), threads.pool()
    first.__enter__()
    assert set(blas_threads().values()) == {1}
    second.__enter__()
    first.__exit__(None, None, None)  # not the last to go: the limit stays
    assert set(blas_threads().values()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_the_limit_is_lifted_after_an_error():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), context.using(n_jobs=2), threads.pool():
        raise ZeroDivisionError
    assert blas_threads() == before


def test_many_threads_leave_the_limits_as_they_were():
    before = blas_threads()

    def work(_):
        for _ in range(20):
            with context.using(n_jobs=2), threads.pool() as run:
                run(abs, range(4))
                assert set(blas_threads().values()) == {1}

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(work, range(8)))
    assert blas_threads() == before


def test_libraries_that_are_loaded_later_are_held_too():
    """SciPy brings a BLAS library of its own."""
    run_python(
        """
        import os
        os.environ["OPENBLAS_NUM_THREADS"] = "2"
        from auxhash.compute import context, threads
        from threadpoolctl import threadpool_info
        def blas(): return [d["num_threads"] for d in threadpool_info() if d["user_api"] == "blas"]
        import numpy
        with context.using(n_jobs=1), threads.pool():
            assert blas() == [1], blas()
        import scipy.linalg
        with context.using(n_jobs=1), threads.pool():
            assert blas() == [1, 1], blas()
            with context.using(n_jobs=1), threads.pool():
                pass
            assert blas() == [1, 1], blas()
        assert blas() == [2, 2], blas()
        """
    )


def test_a_forked_child_is_not_limited():
    run_python(
        """
        import os
        os.environ["OPENBLAS_NUM_THREADS"] = "2"
        import numpy
        from auxhash.compute import context, threads
        from threadpoolctl import threadpool_info
        def blas(): return [d["num_threads"] for d in threadpool_info() if d["user_api"] == "blas"]
        with context.using(n_jobs=1), threads.pool():
            child = os.fork()
            if child == 0:
                with context.using(n_jobs=1), threads.pool():
                    fine = blas() == [1]
                os._exit(0 if fine and blas() == [2] else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert blas() == [2]
        """
    )


def count(n_jobs):
    with context.using(n_jobs=n_jobs):
        return threads.count()


def test_quota_of_a_container(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "CGROUP", tmp_path)
    assert threads._quota() > 10**6
    for text, cores in (("150000 100000", 2), ("20000 100000", 1), ("400000 100000", 4)):
        (tmp_path / "cpu.max").write_text(text)
        assert threads._quota() == cores
    (tmp_path / "cpu.max").write_text("20000 100000")
    assert threads.count() == count(-1) == 1
    for text in ("max 100000", "1 0", ""):
        (tmp_path / "cpu.max").write_text(text)
        assert threads._quota() > 10**6
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    assert threads._quota() > 10**6
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("300000")
    assert threads._quota() == 3


def test_workers_take_their_share(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # Dask leaves it in a cluster's client
    assert threads.count() == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # as joblib and Dask set it in their processes
    assert threads.count() == 3
    assert count(-1) == 8
    monkeypatch.delenv("OMP_NUM_THREADS")
    nested = joblib.Parallel(2, prefer="threads")(joblib.delayed(threads.count)() for _ in range(2))
    assert nested == [1, 1]


class PerThread:
    """A stand-in for MKL, whose limit belongs to the thread that sets it."""

    internal_api = "mkl"
    filepath = "mkl.so"

    def __init__(self):
        self.limits = threading.local()

    @property
    def num_threads(self):
        return getattr(self.limits, "n", 8)

    def set_num_threads(self, n):
        self.limits.n = n


def test_limits_of_a_thread_are_set_in_every_worker(monkeypatch):
    library = PerThread()
    monkeypatch.setattr(threads._blas, "libraries", [library])
    monkeypatch.setattr(threads._blas, "modules", len(sys.modules))
    meeting = threading.Barrier(2, timeout=20)  # neither thread takes both

    def limit(_):
        meeting.wait()
        return library.num_threads

    with context.using(n_jobs=2), threads.pool() as run:
        assert run(limit, range(2)) == [1, 1]
        assert library.num_threads == 1
    assert library.num_threads == 8
    first, second = threads.pool(), threads.pool()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # not the last to go, as generators may do
    assert library.num_threads == 1
    second.__exit__(None, None, None)
    assert library.num_threads == 8


def test_a_limit_of_the_user_is_put_back():
    before = blas_threads()
    with threadpool_limits(1, user_api="blas"):
        with context.using(n_jobs=1), threads.pool():
            assert set(blas_threads().values()) == {1}
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize(("items", "n_jobs"), [([3], None), ([1, 2, 3], 1)])
def test_kernels_that_need_no_threads_get_no_pool(items, n_jobs, monkeypatch):
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    with context.using(n_jobs=n_jobs):
        assert threads.run_kernels(lambda item: 2 * item, items) == [2 * i for i in items]


def test_kernels_on_several_threads():
    with context.using(n_jobs=2):
        assert threads.run_kernels(lambda item: 2 * item, [1, 2, 3]) == [2, 4, 6]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_kernels_that_fail_are_told_and_no_more_are_begun(n_jobs):
    begun = []

    def fails_once(item):
        begun.append(item)
        time.sleep(0.01)
        if item == 0:
            raise KeyError(item)

    with context.using(n_jobs=n_jobs):
        with pytest.raises(KeyError):
            threads.run_kernels(fails_once, range(100))
        assert len(begun) < 50  # each thread may have begun with another
        assert threads.run_kernels(str, []) == []
