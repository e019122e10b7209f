import signal

import numpy as np
import pytest

from auxhash.compute import clock, kernels


@pytest.fixture
def fresh(monkeypatch):
    """A clock that has seen no compiling, and a time that passes when we say so."""
    time = [100.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: time[0])
    monkeypatch.setattr(clock, "compiling", clock._Compiling())
    return clock.compiling, time


def test_the_clock_stands_still_while_something_is_compiled(fresh):
    compiling, time = fresh
    began = clock.seconds()
    time[0] += 1
    compiling.start()
    time[0] += 10
    compiling.start()  # nested, or on another thread
    time[0] += 20
    compiling.stop()
    time[0] += 30
    assert clock.seconds() - began == 1
    compiling.stop()
    time[0] += 2
    assert clock.seconds() - began == 3
    assert compiling.total == 60


def test_compiling_a_kernel_stops_the_clock_and_is_announced_once():
    said = []
    clock.announce_compiling(lambda: said.append("compiling"))
    clock.also_when_compiling(lambda: said.append("this as well"))

    @kernels.numba().njit  # not kept on disk, so compiled in every run
    def add(x, y):
        return (x + y).sum()

    before = clock.compiling.total
    add(np.ones(3), np.ones(3))
    between = clock.compiling.total
    add(np.ones(3, np.float32), np.ones(3))
    assert said == ["compiling", "this as well"]
    assert before < between < clock.compiling.total
    last = clock.compiling.total
    add(np.ones(3), np.ones(3))  # compiled already
    assert clock.compiling.total == last


def test_an_interrupt_waits_for_the_kernel(fresh):
    """LLVM's callbacks would swallow it: a kernel were half made, and the program went on."""
    compiling, _ = fresh
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        compiling.start()
        compiling.start()
        signal.raise_signal(signal.SIGINT)
        compiling.stop()
        with pytest.raises(KeyboardInterrupt):
            compiling.stop()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        compiling.start()
        compiling.stop()  # it was raised once
    finally:
        signal.signal(signal.SIGINT, before)
