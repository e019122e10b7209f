"""A deadline: parts that have not begun do not begin, in whatever thread."""

import pytest

from auxhash.compute import context, deadline, threads


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_part_begins_after_it(n_jobs):
    begun = []
    with context.using(n_jobs=n_jobs):
        with pytest.raises(deadline.DeadlineError), deadline.within(-1):
            threads.run_kernels(begun.append, range(5))
        assert begun == []
        threads.run_kernels(begun.append, range(5))  # it was for that work alone
    assert sorted(begun) == list(range(5))


def test_a_loop_ends_at_it():
    with deadline.within(1000):
        loop = deadline.each(range(3))
        assert next(loop) == 0
        with deadline.within(-1), pytest.raises(deadline.DeadlineError):
            next(loop)
