"""Ctrl-C in training: the first stops after the current step, a second one at once."""

import os
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from auxhash.learn.training.checkpoint import Checkpoint

AnyStep = TypeVar("AnyStep")

STOP_MESSAGE = b"\nStopping after this step; Ctrl-C again stops at once.\n"


class TrainingInterrupted(UserWarning):
    """Training was stopped by Ctrl-C; the model is the best found until then."""


class Watch:
    """Handler of Ctrl-C that notes that it was pressed, and raises at the second time."""

    def __init__(self) -> None:
        self.pressed = False

    def press(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
        os.write(2, STOP_MESSAGE)  # print is not safe in a signal handler: it may interrupt itself

    def until_pressed(self, steps: Iterable[AnyStep]) -> Iterator[AnyStep]:
        """Pass the steps on until Ctrl-C is pressed, at least the first."""
        for step in steps:
            yield step
            if self.pressed:
                break


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch for Ctrl-C, if this is the main thread and Python's own handler is in place.

    Other threads cannot, and a program that handles the signal itself continues to do so.
    """
    watch = Watch()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield watch
        return
    signal.signal(signal.SIGINT, watch.press)
    try:
        yield watch
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def warn(after: str, model: str, checkpoint: Checkpoint | None) -> None:
    """Warn after which step a training was stopped, what the model is, and how to go on."""
    on = "fit with checkpoint=... to be able to go on"
    if checkpoint is not None:
        folder = str(checkpoint.path.parent)
        on = f"fit with the same data, parameters and checkpoint={folder!r} to go on"
    warnings.warn(
        f"interrupted after {after}: the model is {model} so far; {on}",
        TrainingInterrupted,
        stacklevel=5,
    )
