"""A module in refinement: outputs forward, the pull of an objective backward.

The steepness s of tanh(s a) is meant for outputs of unit deviation. No layer of a module is ours to
scale, so that its outputs are divided by their deviation over a sample of the points, bit by bit,
which is measured anew from time to time. Signs, and so codes, do not depend on it.
"""

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.hashfunctions.smooth import Moment
from auxhash.refine.gradient import RATE
from auxhash.torch.learning import (
    Batches,
    HowToLearn,
    Place,
    Stepper,
    encoded,
    forward_in_training,
    repeatable,
    seeded,
)

SAMPLE = 1024  # points whose outputs tell the deviation


class SmoothModule:
    """A module that is moved down any `refine.gradient.Objective`; it is changed in place."""

    normalize_every = 25  # steps

    def __init__(
        self, module: Any, X: NDArray[Any], how: HowToLearn, rng: np.random.Generator
    ) -> None:
        self.module, self.how = module, how
        self.place = Place.of(module)
        self.batches = Batches(X, self.place)
        self.stepper = Stepper(module, how)
        self.sample = np.arange(0, len(X), max(1, len(X) // SAMPLE))
        self.kept: tuple[Numbers, Any] | None = None  # rows of a batch, and their outputs
        self.begin(rng)
        self.normalize()

    def begin(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        a = encoded(self.module, self.batches, rows, self.how)
        return (a / self.deviation).astype(np.float32)

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        self.module.train()
        seed = int(self.rng.integers(1 << 62))
        with repeatable(), seeded(seed, self.place.device) as generator:
            raw = self.batches.take(rows)
            outputs = forward_in_training(self.module, raw, self.how, self.place, generator)
        self.kept = rows, outputs
        a = outputs.detach().cpu().numpy()
        normalized: Single = (a / self.deviation).astype(np.float32)
        return normalized

    def move(self, rows: Numbers, pull: Single, moment: Moment, run: threads.Run) -> None:
        if self.kept is None or self.kept[0] is not rows:  # an objective of all outputs
            self.batch(rows, run)
        _, outputs = cast("tuple[Numbers, Any]", self.kept)
        self.kept = None
        back = torch.from_numpy(np.ascontiguousarray(pull / self.deviation))
        with repeatable():
            outputs.backward(back.to(self.place.device, outputs.dtype))
        self.stepper.step(moment.done, moment.rate / RATE)

    def normalize(self) -> None:
        deviation = encoded(self.module, self.batches, self.sample, self.how).std(axis=0)
        fine = np.isfinite(deviation) & (deviation > 0)
        self.deviation = np.where(fine, deviation, 1).astype(np.float32)

    def weights(self) -> list[NDArray[Any]]:
        return [t.detach().cpu().numpy().copy() for t in self.module.state_dict().values()]

    def state(self) -> tuple[list[Single], list[Single], list[Single]]:
        steps = np.array([self.stepper.n_steps], np.float32)
        return [steps, self.deviation, *self.weights()], *self.stepper.state()

    def restore(self, *state: list[Single]) -> None:
        [steps, deviation, *weights], mean, square = state
        names = self.module.state_dict()
        arrays = dict(zip(names, map(torch.from_numpy, weights), strict=True))
        self.module.load_state_dict(arrays)
        self.deviation = deviation
        self.stepper.restore(int(steps[0]), mean, square)
