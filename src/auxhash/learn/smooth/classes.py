"""Codes of classes as an objective of the smooth core: all pairs of a batch, to where they can be.

With u = tanh(s a), the mean squared error of u_i'u_j / b to 1 for points of one class, and to
-1/(C - 1) for points of two of the C classes: no C codes can all be further apart from each other
than that. A cross-entropy can be added to it, of a linear classifier of u that is learnt beside,
whose targets are smoothed: classifiers that may be sure of all they have seen overfit.
"""

import numpy as np

from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU, Device
from auxhash.compute.peers import peers
from auxhash.learn.smooth.gradient import MEAN_DECAY, SQUARE_DECAY, Outputs, Shuffled, through_tanh

BATCH_SIZE = 512  # points per step
HEAD_RATE = 0.01  # length of the classifier's steps
SMOOTHING = 0.1  # share of the cross-entropy's target that all classes have alike


class ClassCodes:
    """Inner products of codes, as far apart as C classes can be, plus a cross-entropy."""

    def __init__(
        self,
        classes: Numbers,
        n_bits: int,
        batch: int = BATCH_SIZE,
        cross_entropy: float = 0.0,
        device: Device = CPU,
    ) -> None:
        self.classes, self.n_bits, self.batch = classes, n_bits, batch
        n_classes = peers().most(int(classes.max()) + 1)
        self.apart = np.float32(-1 / max(n_classes - 1, 1))
        self.head = Head(n_classes, n_bits, device) if cross_entropy else None
        self.cross_entropy = np.float32(cross_entropy)

    def batches(self, rng: np.random.Generator) -> Shuffled:
        return Shuffled(len(self.classes), self.batch, rng)

    def state(self) -> list[Single]:
        return [] if self.head is None else self.head.state()

    def restore(self, state: list[Single]) -> None:
        if self.head is not None:
            self.head.restore(state)

    def scale(self, rows: Numbers) -> float:
        return self.n_bits / 4  # one over the steepest slope of (u_i'u_j / b - target)^2

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        U: Single = np.tanh(s * outputs(rows))
        classes = devices.of(U).put(self.classes[rows])
        pull = self.slope(U, classes)
        if self.head is not None:
            pull += self.cross_entropy * self.head.slope(U, classes)
        return through_tanh(pull, U, s)

    def slope(self, U: Single, classes: Numbers) -> Single:
        """The gradient, for U (n, b), of the mean over all ordered pairs of different points."""
        n, b = U.shape
        error: Single = U @ U.T / np.float32(b)
        error -= np.where(classes[:, None] == classes, np.float32(1), self.apart)
        np.fill_diagonal(error, 0)
        return np.float32(4 / (b * n * max(n - 1, 1))) * (error @ U)


class Head:
    """A linear classifier of u, learnt by Adam while it is asked: its slope moves the outputs."""

    def __init__(self, n_classes: int, n_bits: int, device: Device = CPU) -> None:
        self.W: Single = device.zeros((n_bits + 1, n_classes), np.float32)
        self.mean, self.square, self.n_steps = np.zeros_like(self.W), np.zeros_like(self.W), 0
        self.device = device

    def state(self) -> list[Single]:
        arrays = [self.device.fetch(part) for part in (self.W, self.mean, self.square)]
        return [*arrays, np.array([self.n_steps])]

    def restore(self, state: list[Single]) -> None:
        *arrays, n_steps = state
        self.W, self.mean, self.square = (self.device.put(part.copy()) for part in arrays)
        self.n_steps = int(n_steps[0])

    def slope(self, U: Single, classes: Numbers) -> Single:
        """The gradient, for U (n, b), of the mean cross-entropy; then one step of the weights."""
        logits = U @ self.W[:-1] + self.W[-1]
        logits -= logits.max(axis=1, keepdims=True)
        wrong = np.exp(logits)
        wrong /= wrong.sum(axis=1, keepdims=True)
        wrong -= np.float32(SMOOTHING / wrong.shape[1])
        wrong[devices.of(U).put(np.arange(len(U))), classes] -= np.float32(1 - SMOOTHING)
        wrong /= np.float32(len(U))
        slope: Single = wrong @ self.W[:-1].T
        self._move(np.vstack([U.T @ wrong, wrong.sum(axis=0)]))
        return slope

    def _move(self, gradient: Single) -> None:
        self.n_steps += 1
        self.mean += np.float32(1 - MEAN_DECAY) * (gradient - self.mean)
        self.square += np.float32(1 - SQUARE_DECAY) * (gradient * gradient - self.square)
        mean = self.mean / np.float32(1 - MEAN_DECAY**self.n_steps)
        root = np.sqrt(self.square / np.float32(1 - SQUARE_DECAY**self.n_steps))
        self.W -= np.float32(HEAD_RATE) * mean / (root + np.float32(1e-12))
