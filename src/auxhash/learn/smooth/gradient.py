"""The smooth core: gradient descent on an objective over the parameters of a hash function.

Codes are replaced by u = tanh(s a(x)), where a(x) are the outputs of the hash function. The
steepness s grows from step to step, so that tanh approaches the sign. An objective chooses the
points of a step and gives the gradient for their outputs (the "pull"); the hash function (`Smooth`)
turns it into gradients for its parameters. Neither knows the other.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Protocol, TypeGuard, cast

import numpy as np

from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU, Device
from auxhash.compute.peers import peers
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.hashfunctions.position import Position
from auxhash.mac.hashfunctions.smooth import Moment, Resumable, SelfMoving, Smooth

RATE = 0.02  # length of the first step, unless something else is wanted
N_WARM_STEPS = 300  # over which the length of steps grows, if they do
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999  # Adam's, of the mean gradient and of its mean square

DescentState = tuple[list[Single], list[Single], list[Single]]
Outputs = Callable[[Numbers | slice], Single]  # a(x) of these training points, (points, b)


class Shuffled:
    """Batches of `size` of n points, without end: a new random order of all points per round.

    Points that are left over at the end of a round, fewer than `size`, are not used in it.
    """

    def __init__(self, n: int, size: int, rng: np.random.Generator, device: Device = CPU) -> None:
        self.size, self.rng, self.device = min(n, size), rng, device
        self.order: Numbers = device.put(np.arange(n))
        self.used = n  # of these: a round begins with an order of its own

    def __iter__(self) -> "Shuffled":
        return self

    def __next__(self) -> Numbers:
        if self.used + self.size > len(self.order):
            self.order, self.used = self.device.put(self.rng.permutation(len(self.order))), 0
        self.used += self.size
        return self.order[self.used - self.size : self.used]


class Objective(Protocol):
    """A smooth function of the outputs, with gradients for batches of points."""

    def batches(self, rng: np.random.Generator) -> Shuffled:
        """The points of each step, without end."""

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        """The gradient (rows, b) with respect to the outputs of a batch, at steepness s."""

    def scale(self, rows: Numbers) -> float:
        """Factor of `pull` that makes its mean over batches the gradient over all points.

        In units of the steepest slope of the loss, as is the weight decay of hash functions.
        """


class LearningObjective(Objective, Protocol):
    """An objective that learns something of its own from step to step."""

    def state(self) -> list[Single]:
        """Return what the objective has learnt so far, as arrays."""

    def restore(self, state: list[Single]) -> None:
        """Go on from a `state`."""


def learns(objective: Objective) -> TypeGuard[LearningObjective]:
    return hasattr(objective, "restore")


class Adam:
    """Adam's steps: each coordinate over its root mean square gradient.

    Their length falls linearly to 0.
    """

    def __init__(self, smooth: Smooth) -> None:
        self.smooth = smooth
        self.mean: list[Single] = [np.zeros_like(p) for p in smooth.parameters]
        self.square: list[Single] = [np.zeros_like(p) for p in smooth.parameters]

    def move(self, rows: Numbers, pull: Single, moment: Moment, run: threads.Run) -> None:
        self.follow(self.smooth.gradients(rows, pull, run), moment)

    def follow(self, gradients: list[Single], moment: Moment) -> None:
        """One step down these gradients."""
        smooth, t = self.smooth, moment.step
        length = moment.rate * (1 - moment.done) / (1 - MEAN_DECAY ** (t + 1))
        unbiased = np.float32(1 / (1 - SQUARE_DECAY ** (t + 1)))
        moving = zip(
            smooth.parameters, smooth.rates, gradients, self.mean, self.square, strict=True
        )
        for parameter, rate, gradient, mean, square in moving:
            size = np.float32(length * rate)
            _adam(smooth.device, parameter, gradient, mean, square, size, unbiased)

    def state(self) -> DescentState:
        """The parameters, and the means of the gradient and of its square."""
        lists = self.smooth.parameters, self.mean, self.square
        first, second, third = ([self.smooth.device.fetch(a) for a in arrays] for arrays in lists)
        return first, second, third

    def restore(self, *state: list[Single]) -> None:
        """Go on from a `state`."""
        lists = self.smooth.parameters, self.mean, self.square
        for arrays, values in zip(lists, state, strict=True):
            for array, value in zip(arrays, values, strict=True):
                array[...] = self.smooth.device.put(value)


def _adam(
    device: Device,
    parameter: Single,
    gradient: Single,
    mean: Single,
    square: Single,
    length: np.float32,
    unbiased: np.float32,
) -> None:
    """One step of this length; `unbiased` scales the mean square. Changes all but the gradient."""
    first, second = np.float32(1 - MEAN_DECAY), np.float32(1 - SQUARE_DECAY)
    if device is not CPU:  # in one pass
        arrays = parameter, gradient, mean, square
        numbers = length, unbiased, first, second
        device.kernels(__file__).over("adam", parameter.size, *arrays, *numbers, parameter.size)
        return
    _average(mean, gradient, first)
    _average(square, gradient * gradient, second)
    root = unbiased * square
    np.sqrt(root, out=root)
    root += root == 0  # where there never was a gradient, none is divided
    step = length * mean
    step /= root
    parameter -= step


def _average(mean: Single, new: Single, share: np.float32) -> None:
    """Move a running mean towards a new value by this share, in place."""
    change = new - mean
    change *= share
    mean += change


def through_tanh(pull: Single, U: Single, s: np.float32, factor: float = 1.0) -> Single:
    """The gradient for outputs a, of that for U = tanh(s a), times `factor`; `pull` is changed."""
    device = devices.of(U)
    if device is not CPU:
        numbers = np.float32(s * factor), U.size
        device.kernels(__file__).over("through_tanh", U.size, pull, U, *numbers)
        return pull
    if factor != 1.0:
        pull *= np.float32(factor)
    pull *= s * (1 - U * U)
    return pull


def warmed(rate: float, t: int, n_steps: int = N_WARM_STEPS) -> float:
    """Return the length of step t where steps grow at first: what was learnt before is kept."""
    return rate * min(1.0, (t + 1) / n_steps)


class GradientDescent:
    """Stochastic gradient steps, by Adam or by the hash function itself (`SelfMoving`).

    The steepness grows geometrically; with `warm`, so does the length of the first steps.
    """

    def __init__(
        self,
        smooth: Smooth | SelfMoving,
        objective: Objective,
        n_steps: int,
        steepness: tuple[float, float],
        rate: float,
        rng: np.random.Generator,
        warm: bool = False,
    ) -> None:
        self.smooth, self.objective = smooth, objective
        self.n_steps, self.steepness, self.rate, self.warm = n_steps, steepness, rate, warm
        self.moving = smooth if isinstance(smooth, SelfMoving) else Adam(smooth)
        self.begin(rng)

    def begin(self, rng: np.random.Generator) -> None:
        """Draw all that is random in the following steps from this generator."""
        self.smooth.begin(rng)
        self.batches = self.objective.batches(rng)

    def state(self) -> DescentState:
        """The parameters, and two more lists of what the next step depends on."""
        return self.moving.state()

    def restore(self, *state: list[Single]) -> None:
        """Go on from a `state`."""
        self.moving.restore(*state)

    def position(self, reports: int, h: HashFunction, rng: np.random.Generator) -> Position | None:
        """Position to resume from, h being the result so far; None where it cannot be resumed."""
        drawn = self.smooth.drawn() if isinstance(self.smooth, Resumable) else None
        if drawn is None or peers().n > 1:
            return None
        order, used = devices.fetched(self.batches.order), self.batches.used
        learnt = self.objective.state() if learns(self.objective) else []
        parts = deepcopy([*self.state(), drawn, learnt])  # the next steps change these arrays
        parameters, mean, square, drawn, learnt = parts
        return Position(
            reports, h, deepcopy(rng), parameters, mean, square, order, used, drawn, learnt
        )

    def go_on(self, position: Position, rng: np.random.Generator) -> None:
        """Go on from a position, and draw from this generator as it did there."""
        rng.bit_generator.state = position.rng.bit_generator.state
        self.restore(position.parameters, position.mean, position.square)
        if isinstance(self.smooth, Resumable):
            self.smooth.redraw(position.drawn)
        self.batches.order = self.batches.device.put(devices.fetched(position.order))
        self.batches.used = position.used
        if learns(self.objective):
            self.objective.restore(position.objective)

    def move(self, t: int, run: threads.Run) -> None:
        """Step t of 0..n_steps - 1."""
        self.moving.move(*self._pulled(t, run), self._moment(t), run)
        self._normalize(t)

    def gradients(self, t: int, run: threads.Run) -> list[Single]:
        """The gradients of step t, for others to follow as well."""
        return cast("Smooth", self.smooth).gradients(*self._pulled(t, run), run)

    def follow(self, t: int, gradients: list[Single]) -> None:
        """Step t, down gradients that were computed here or elsewhere."""
        cast("Adam", self.moving).follow(gradients, self._moment(t))
        self._normalize(t)

    def _pulled(self, t: int, run: threads.Run) -> tuple[Numbers, Single]:
        """The points of step t, and the gradient with respect to their outputs."""
        smooth, done = self.smooth, t / self.n_steps
        low, high = self.steepness
        s = np.float32(low * (high / low) ** done)
        rows = next(self.batches)

        def outputs(wanted: Numbers | slice) -> Single:
            return smooth.batch(rows, run) if wanted is rows else smooth.outputs(wanted, run)

        pull = self.objective.pull(outputs, rows, s, run)
        pull *= np.float32(self.objective.scale(rows))
        return rows, pull

    def _moment(self, t: int) -> Moment:
        return Moment(t, t / self.n_steps, warmed(self.rate, t) if self.warm else self.rate)

    def _normalize(self, t: int) -> None:
        if (t + 1) % self.smooth.normalize_every == 0:
            self.smooth.normalize()
