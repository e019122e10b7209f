"""A clock that stands still while kernels are compiled.

A kernel is compiled at its first call on a machine, and kept on disk after that. These seconds
belong to no method: whatever is timed here does not count them.

By hand: Numba's own `TimingListener` has the same sum, and would save 20 lines. But while a kernel
is being compiled, for 0.9 s of a small one, it lacks that kernel; it has no lock against other
threads, and neither the calls when compiling begins nor a Ctrl-C that waits, the rest of this file.
"""

import signal
import threading
from collections.abc import Callable
from time import perf_counter
from types import FrameType


class _Compiling:
    """Time that kernels took to compile, on any number of threads, nested or not."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.began = 0.0
        self.total = 0.0
        self.calls: list[Callable[[], None]] = []  # of when it begins
        self.depth = 0  # of compilations inside each other, in the main thread
        self.pressed = False

    def start(self) -> None:
        self._defer_interrupt()
        with self.lock:
            calls, self.calls = self.calls, []
            if not self.running:
                self.began = perf_counter()
            self.running += 1
        for call in calls:
            call()

    def stop(self) -> None:
        with self.lock:
            self.running -= 1
            if not self.running:
                self.total += perf_counter() - self.began
        self._allow_interrupt()

    def _defer_interrupt(self) -> None:
        """Let Ctrl-C wait: LLVM's callbacks would swallow it, and leave a kernel half made."""
        if threading.current_thread() is threading.main_thread():
            self.depth += 1
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._press)

    def _allow_interrupt(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if not self.depth and signal.getsignal(signal.SIGINT) == self._press:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            pressed, self.pressed = self.pressed, False
            if pressed:
                raise KeyboardInterrupt

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True

    def until_now(self) -> float:
        with self.lock:
            return self.total + (perf_counter() - self.began if self.running else 0.0)


compiling = _Compiling()


def seconds() -> float:
    """Seconds since some moment, less those of compiling: for differences of two calls."""
    return perf_counter() - compiling.until_now()


def announce_compiling(say: Callable[[], None] | None) -> None:
    """Call `say` once, when the next kernel begins to be compiled; None calls nothing."""
    compiling.calls = [] if say is None else [say]


def also_when_compiling(do: Callable[[], None]) -> None:
    """Call `do` once as well, when the next kernel begins to be compiled."""
    compiling.calls.append(do)
