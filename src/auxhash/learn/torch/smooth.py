"""A module in refinement: outputs forward, the pull of an objective backward.

The steepness s of tanh(s a) is meant for outputs of unit size. No layer of a module is ours to
scale, so that its outputs are divided by their root mean square, bit by bit, over the last batches.
Signs, and so codes, do not depend on it. (Not by their deviation: the outputs of a fresh module are
nearly the same for all points, and far from 0 in units of it, where tanh is flat and nothing would
be learnt. Nor by what encoding gives: layers that normalise have yet to learn by what.)
"""

from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Numbers, Single
from auxhash.learn.smooth.gradient import RATE
from auxhash.learn.torch.learning import (
    Batches,
    Place,
    Stepper,
    encoded,
    forward_in_training,
    repeatable,
    seeded,
)
from auxhash.mac.hashfunctions.smooth import Moment

if TYPE_CHECKING:
    from auxhash.learn.torch.modulehash import ModuleHash

POINTS_SAMPLED = 1024  # points whose outputs tell their size before the first batch
NEW_SHARE = 0.1  # share of a batch in the mean of the sizes


class SmoothModule:
    """A module that is moved down any `refine.gradient.Objective`; it is changed in place."""

    normalize_every = 1 << 40  # never: every batch does it

    def __init__(
        self, module: torch.nn.Module, X: AnyArray, how: "ModuleHash", rng: np.random.Generator
    ) -> None:
        self.module, self.how = module, how
        self.place = Place.of(module)
        self.batches = Batches(X, self.place)
        self.stepper = Stepper(module, how)
        self.sample = np.arange(0, len(X), max(1, len(X) // POINTS_SAMPLED))
        self.last_batch: tuple[Numbers, Tensor] | None = None  # its rows and outputs
        self.size: Single  # (b,): of the outputs
        self.begin(rng)
        self.normalize()

    def begin(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def drawn(self) -> list[Single]:
        return []

    def redraw(self, drawn: list[Single]) -> None:
        pass

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        a = encoded(self.module, self.batches, rows, self.how)
        return (a / self.size).astype(np.float32)

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        self.module.train()
        seed = int(self.rng.integers(1 << 62))
        with repeatable(), seeded(seed, self.place.device) as generator:
            raw = self.batches.take(rows)
            outputs = forward_in_training(self.module, raw, self.how, self.place, generator)
        self.last_batch = rows, outputs
        a = outputs.detach().cpu().numpy()
        share = np.float32(NEW_SHARE if self.stepper.n_steps else 1)
        self.size = (1 - share) * self.size + share * _size(a)
        normalized: Single = (a / self.size).astype(np.float32)
        return normalized

    def move(self, rows: Numbers, pull: Single, moment: Moment, run: threads.Run) -> None:
        if self.last_batch is None or self.last_batch[0] is not rows:  # the objective takes all
            self.batch(rows, run)
        _, outputs = cast("tuple[Numbers, Tensor]", self.last_batch)
        self.last_batch = None
        back = torch.from_numpy(np.ascontiguousarray(pull / self.size))
        with repeatable():
            outputs.backward(back.to(self.place.device, outputs.dtype))
        self.stepper.step(moment.done, moment.rate / RATE)

    def normalize(self) -> None:
        self.size = _size(encoded(self.module, self.batches, self.sample, self.how))

    def weights(self) -> list[AnyArray]:
        return [t.detach().cpu().numpy().copy() for t in self.module.state_dict().values()]

    def state(self) -> tuple[list[Single], list[Single], list[Single]]:
        return [self.stepper.counts(), self.size, *self.weights()], *self.stepper.state()

    def restore(self, *state: list[Single]) -> None:
        [counts, size, *weights], mean, square = state
        names = self.module.state_dict()
        arrays = dict(zip(names, map(torch.from_numpy, weights), strict=True))
        self.module.load_state_dict(arrays)
        self.size = size
        self.stepper.restore(counts, mean, square)


def _size(a: AnyArray) -> Single:
    """The root mean square of each bit's outputs (n, b); 1 where it tells nothing."""
    size = np.sqrt(np.square(a).mean(axis=0))
    return np.where(np.isfinite(size) & (size > 0), size, 1).astype(np.float32)
