"""Checkpoints: a folder that holds what an interrupted run needs to go on.

After each step of MAC the file is written anew, whole or not at all. It holds the numbers of all
steps so far, the states after the first, the best and the last of them, and the random generators:
the next run goes on after the last step as if nothing had happened. Of a refinement it is written
after each report of L(h), with where its gradient steps stand. (On a GPU a network's dropout hangs
on numbers that cannot be read: there, an interrupted refinement starts over.)

The file says which run it belongs to. One run at a time holds the folder's lock, which the system
releases when a process is killed.
"""

import math
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.compute.device import Device
from auxhash.compute.registry import register
from auxhash.compute.version import __version__
from auxhash.files.writing import LockedError, locked
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.loop import State, Step
from auxhash.model import modelfile
from auxhash.model.encoding import decode, encode
from auxhash.model.identity import DIGEST
from auxhash.model.modelfile import ModelFileError, StoredModel

RunIdentity = dict[str, str]  # all that a result depends on, by name, each as a text

NAME = "checkpoint.safetensors"
LOCK = "lock"
KIND = "checkpoint"


@register("Checkpoint")
@dataclass(frozen=True)
class Saved:
    """Content of the checkpoint file of a run of MAC."""

    run: RunIdentity
    generators: list[np.random.Generator]  # one per part, as the run began
    rng: np.random.Generator  # MAC's, as the last step left it
    history: list[Step]
    pairs: list[tuple[Step, State]]  # the first, the best and the last, each once
    finished: bool

    def after(self, step: Step, state: State) -> "Saved":
        """The content after one more step."""
        best = min((pair for pair in self.pairs if pair[0].accepted), key=_loss, default=None)
        if best is None or (step.accepted and step.loss < best[0].loss):
            best = step, state
        earlier = [(past, replace(old, position=None)) for past, old in (*self.pairs[:1], best)]
        by_iteration = {pair[0].iteration: pair for pair in (*earlier, (step, state))}
        return replace(self, history=[*self.history, step], pairs=list(by_iteration.values()))

    def ended(self) -> "Saved":
        """The content at the end of the run."""
        pairs = [(step, replace(state, position=None)) for step, state in self.pairs]
        return replace(self, pairs=pairs, finished=True)


class Checkpoint:
    """Checkpoint of a run, locked by this process; `saved` is the content of the file before.

    It is a `Saved`, or that of another kind of training, which has `run` and `generators`, too.
    """

    def __init__(self, folder: Path, run: RunIdentity, unstored: Mapping[str, object]) -> None:
        self.path = folder / NAME
        self.run, self.unstored = run, unstored
        self.saved: Any = _read(self.path, run, unstored) if self.path.exists() else None
        self.began: list[np.random.Generator] = []
        self.failed = False

    def generators(self, fresh: list[np.random.Generator]) -> list[np.random.Generator]:
        """Return the generators to begin with: those of the interrupted run, if there was one."""
        self.began = fresh if self.saved is None else self.saved.generators
        return deepcopy(self.began)

    def keep(
        self,
        steps: Iterable[tuple[Step, State]],
        rng: np.random.Generator,
        device: Device,
    ) -> Iterator[tuple[Step, State]]:
        """Pass the steps on, once those that another run could go on from are on disk.

        `rng` is MAC's generator; `device` is that of the run, from which states are brought.
        """
        saved = self.saved or Saved(self.run, self.began, rng, [], [], False)
        for step, state in steps:
            if step.iteration >= len(saved.history):  # else it comes from the file
                saved = saved.after(step, device.bring(state))
                if step.iteration == 0:
                    self.check(device.bring(state.h))  # again: fitted, it holds more
                if step.mu < math.inf or state.position is not None:
                    self.write(saved)
            yield step, state
        if not saved.finished:
            self.write(saved.ended())

    def check(self, h: HashFunction) -> None:
        """Raise if this hash function could not be read back."""
        coded, arrays = encode(h, "hash_function")
        try:
            decode(coded, arrays, unstored=self.unstored)
        except ValueError as error:
            raise ValueError(f"no checkpoint can hold this hash_function: {error}") from error

    def write(self, saved: object) -> None:
        """Write the content of the file anew; warn the first time that this fails."""
        coded, arrays = encode(saved, KIND)
        try:
            modelfile.write(self.path, StoredModel(KIND, coded, arrays))
        except OSError as error:
            if not self.failed:
                past = "the last one stays as it is" if self.path.exists() else "there is none yet"
                warnings.warn(
                    f"the checkpoint in {self.path.parent} could not be written "
                    f"({error.strerror or error}): {past}, and training goes on",
                    stacklevel=2,
                )
            self.failed = True


@contextmanager
def opened(
    folder: str | os.PathLike[str], run: RunIdentity, unstored: Mapping[str, object] | None = None
) -> Iterator[Checkpoint]:
    """Open the checkpoint in this folder, or make one, for as long as the run takes.

    `unstored` holds what the hash function needs and no file holds; see `BaseHash.unstored`.

    Raises ValueError for a folder that another run holds, or whose checkpoint is damaged or of
    another run, and OSError where nothing can be written.
    """
    if not os.fspath(folder):  # which Path takes for the current folder
        raise ValueError('checkpoint must name a folder, got ""; "." is the current one')
    path = Path(folder).expanduser()
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"checkpoint must be a folder, and {path} is a file")
    path.mkdir(parents=True, exist_ok=True)
    for name in (NAME, LOCK):
        if (path / name).exists() and not (path / name).is_file():
            raise ValueError(
                f"{path / name} is no file, as it would be in a checkpoint: take another folder"
            )
    try:
        with locked(path / LOCK):
            for left in path.glob(f".{NAME}.*"):  # by a run killed as it wrote
                left.unlink()
            _check_writable(path)
            yield Checkpoint(path, run, unstored or {})
    except LockedError as error:
        raise ValueError(
            f"the checkpoint folder {path} is in use by another run: wait for its end, or take "
            "another folder"
        ) from error


def seconds_before(folder: str | os.PathLike[str]) -> float:
    """Seconds that the steps of an interrupted run took; 0 where none can be read."""
    path = Path(folder).expanduser() / NAME
    try:
        content = modelfile.read(path)
        return float(sum(step.seconds for step in decode(content.content, content.arrays).history))
    except (OSError, ValueError, AttributeError):  # `opened` says what is wrong with it
        return 0.0


def _check_writable(folder: Path) -> None:
    """Raise OSError if nothing can be written there: better before training than after."""
    try:
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"whether there is permission, and room")
    except OSError as error:
        message = f"no checkpoint can be written here: {error.strerror}"
        raise OSError(error.errno, message, str(folder)) from error


def _read(path: Path, run: RunIdentity, unstored: Mapping[str, object]) -> Any:
    """Read the checkpoint; raise ValueError if it is damaged or of another run."""
    anew = f"delete {path} to start anew"
    try:
        content = modelfile.read(path)
        if content.kind != KIND:
            raise ModelFileError(f"{path} holds {content.kind}, and no checkpoint")
        if content.package == __version__:
            saved = decode(content.content, content.arrays, unstored=unstored)
    except ValueError as error:
        raise ValueError(f"{error}; {anew}") from error
    if content.package != __version__:
        raise ValueError(
            f"{path} was written by auxhash {content.package}, and this is auxhash {__version__}: "
            f"go on with that version, or {anew}"
        )
    differing = [name for name in {**saved.run, **run} if saved.run.get(name) != run.get(name)]
    if differing:
        differences = ", ".join(
            _describe(name, saved.run.get(name), run.get(name)) for name in differing
        )
        raise ValueError(f"{path} belongs to another run: {differences}; change it back, or {anew}")
    return saved


def _describe(name: str, was: str | None, now: str | None) -> str:
    if was is None or now is None or was.startswith(DIGEST) or now.startswith(DIGEST):
        return f"{name} is not the same"
    return f"{name} was {was} and is {now}"


def _loss(pair: tuple[Step, State]) -> float:
    return pair[0].loss
