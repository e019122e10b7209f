"""Loops under way, as whoever listens is told of them."""

import threading

import numpy as np
import pytest

from auxhash import MACHash, NeighborHash
from auxhash.compute import context, threads, underway
from auxhash.mac import affinity


@pytest.fixture
def now(monkeypatch):
    """The time by the clock, in a list, to be changed."""
    clock = [100.0]
    monkeypatch.setattr(context.time, "monotonic", lambda: clock[0])
    return clock


def test_how_far_and_how_long(now):
    messages = []
    with underway.listening() as listener:
        assert not listener.describe()
        for _ in underway.each("Z step", range(4)):
            messages.append(listener.describe())
            now[0] += 30
        assert not listener.describe()
    assert messages == [
        "",  # it may be over in no time
        "Z step 25%, 0:01:30 left",
        "Z step 50%, 0:01:00 left",
        "Z step 75%, 0:00:30 left",
    ]


def test_before_anything_is_done_only_what_it_is(now):
    with underway.listening() as listener, underway.loop("h step", 1.0) as loop:
        now[0] += 5
        assert listener.describe() == "h step"
        loop.done = 1e-13  # nothing to reckon with
        assert listener.describe() == "h step"
        loop.done = float("nan")
        assert listener.describe() == "h step"
        loop.done = 2.0  # a guess that was wrong
        assert listener.describe() == "h step 100%, 0:00:00 left"


def test_the_outermost_loop_is_told(now):
    with underway.listening() as listener:
        for _ in underway.each("outer", range(2)):
            for _ in underway.each("inner", range(3)):
                now[0] += 1
                assert listener.describe().startswith("outer")
        for _ in underway.each("inner", range(1)):
            now[0] += 1
            assert listener.describe() == "inner"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_tell_of_all_their_items(n_jobs, now):
    with underway.listening() as listener:
        seen = []

        def item(number):
            loop = listener.loop
            seen.append(loop)
            return number

        with context.using(n_jobs=n_jobs):
            with threads.pool() as run:
                assert run(item, range(50)) == list(range(50))
            assert threads.run_kernels(item, range(50)) == list(range(50))
        assert listener.loop is None
    first, second = {id(loop): loop for loop in seen}.values()
    assert (first.total, first.done, second.total, second.done) == (50, 50, 50, 50)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_ends_the_loop(n_jobs):
    with underway.listening() as listener, context.using(n_jobs=n_jobs):
        with pytest.raises(ZeroDivisionError) as raised, threads.pool() as run:
            run(lambda item: 1 / item, [1, 0])
        assert listener.loop is None
        with pytest.raises(ZeroDivisionError) as raised_by_kernels:
            threads.run_kernels(lambda item: 1 / item, [1, 0])
        assert listener.loop is None
        assert raised.value is not raised_by_kernels.value  # whose frames are alive


def test_only_those_who_listen_are_told():
    with underway.listening() as outer:
        with underway.listening() as inner, underway.loop("here", 1):
            assert outer.loop is None
            assert inner.loop.what == "here"
            other = threading.Thread(target=lambda: list(underway.each("there", [1])))
            other.start()
            other.join()
            assert inner.loop.what == "here"
        with underway.loop("after", 1):
            assert outer.loop.what == "after"
            assert inner.loop is None
    with underway.loop("nobody", 1):
        assert outer.loop is None


@pytest.fixture
def loops(monkeypatch):
    """All loops that a listener is told of."""
    messages = []

    def recorded(listener, name, value):
        object.__setattr__(listener, name, value)
        if name == "loop" and value is not None:
            messages.append(value)

    monkeypatch.setattr(context.Listener, "__setattr__", recorded)
    return messages


def points():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    return (rng.normal(size=(300, 8)) + 2 * np.eye(3, 8)[y]).astype(np.float32), y


@pytest.mark.parametrize("z_step", ["descent", "cut", "quad"])
def test_every_long_part_of_a_training_tells(z_step, loops):
    MACHash(8, z_step=z_step, max_iter=2, random_state=0, verbose=1).fit(*points())
    names = {loop.what for loop in loops}
    assert names >= {"", "Z step", "h step", "gradient steps"}
    assert ("colours of points" in names) == (z_step == "descent")
    for loop in loops:
        assert loop.done == pytest.approx(loop.total)


def test_neighbours_tell(loops):
    NeighborHash(8, n_steps=20, random_state=0, verbose=1).fit(points()[0])
    assert {loop.what for loop in loops} >= {"", "gradient steps"}
    assert all(loop.done == loop.total for loop in loops)


def test_nobody_listens_to_a_training_that_says_nothing(loops):
    X, y = points()
    MACHash(8, max_iter=2, random_state=0).fit(X, y)
    affinity.from_neighbors(X, 5, 10)
    assert not loops
