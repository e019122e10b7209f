import pytest

from auxhash import threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
def test_results_come_in_order(n_jobs):
    with threads.pool(n_jobs) as run:
        assert run(lambda x: x * x, range(20)) == [x * x for x in range(20)]


def test_chunks_cover_the_range():
    assert threads.chunks(10, 4) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert threads.chunks(0, 4) == []


def test_zero_threads_is_an_error():
    with pytest.raises(ValueError, match="n_jobs"):
        threads.count(0)


def test_errors_come_through():
    with threads.pool(2) as run, pytest.raises(ZeroDivisionError):
        run(lambda x: 1 // x, [1, 0])
