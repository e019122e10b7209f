"""The rank of a similar point, as an objective of the smooth core.

For a point i, a similar point j and a random sample M of all points, the soft rank of j is the
share of the sample that is nearer to i than j is,

    R = mean over m in M of sigmoid((d_ij - d_im) / tau),   d_ij = (b - u_i'u_j) / 2

where points that are themselves similar to i count as not nearer; if the similar points have an
order, those before j. Minimised is the mean of
log(R + 1/n): going from rank 10 to 1 counts as much as from 1,000 to 100, so that what is learnt
serves short lists and long ones. Unlike a loss over pairs it has no target distance, and leaves
the code all its freedom.
"""

import math
from collections.abc import Sequence

import numpy as np

from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU, Device
from auxhash.compute.kernels import kernel
from auxhash.compute.parts import Chunks
from auxhash.learn.smooth.gradient import Outputs, Shuffled, through_tanh
from auxhash.learn.smooth.similar import Similar, SimilarEntries

BATCH_SIZE = 1024  # points i per step
SAMPLE_SIZE = 4096  # points m per step
TAU = 0.5  # bits
POINTS_PER_TASK = 128  # points i, for one thread: products of fewer take longer
STEEPEST = np.float32(np.log2(np.e) / (2 * TAU))  # of the sigmoid, as an exponent of 2
FARTHEST = np.float32(86)  # exponent of 2: beyond it a sigmoid is as good as 0 or 1
# 2^f for f from -1/2 to 1/2: Taylor's series, whose error is less than 2e-7.
C1, C2, C3, C4, C5, C6 = (np.float32(np.log(2) ** k / math.factorial(k)) for k in range(1, 7))


class RankBatches(Shuffled):
    """Points i, a similar j for each, and the sample, one after the other."""

    def __init__(self, rank: "Rank", rng: np.random.Generator) -> None:
        super().__init__(len(rank.points), rank.batch, rng)
        self.rank = rank

    def __next__(self) -> Numbers:
        rank, rng = self.rank, self.rng
        rows = rank.points[super().__next__()]
        sample = rng.choice(rank.similar.n_points, rank.sample, replace=False, shuffle=False)
        return np.concatenate([rows, rank.similar.draw(rows, rng), sample])


class Rank:
    """The mean log of the soft rank of a similar point."""

    def __init__(
        self,
        similar: Similar,
        batch: int = BATCH_SIZE,
        sample: int = SAMPLE_SIZE,
        prefixes: Sequence[int] = (),
        device: Device = CPU,
    ) -> None:
        self.device, self.prefixes = device, prefixes
        self.similar = similar
        self.points = similar.usable()
        self.batch, self.sample = min(batch, len(self.points)), min(sample, similar.n_points)
        self.known: tuple[Numbers, SimilarEntries] | None = None  # of the last batch

    def batches(self, rng: np.random.Generator) -> Shuffled:
        return RankBatches(self, rng)

    def scale(self, rows: Numbers) -> float:
        return 1.0

    def vector_rank(self, U: Single, rows: Numbers) -> float:
        """Return the geometric mean of the rank, 1 for the nearest of all, by inner products of U.

        U holds vectors of the points i, of their j and of the sample, as in `vector_pull`.
        """
        one, other, sample = np.split(U, [self.batch, 2 * self.batch])
        S = one @ sample.T - (one * other).sum(axis=1, keepdims=True)
        nearer = (S > 0) + 0.5 * (S == 0)
        self._similar_to(rows).clear(nearer, slice(0, self.batch))
        rank = nearer.mean(axis=1) * self.similar.n_points + 1
        return float(np.exp(np.log(rank).mean()))

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        U = np.tanh(s * outputs(rows))
        return through_tanh(self.prefix_pull(U, rows, run), U, s)

    def prefix_pull(self, U: Single, rows: Numbers, run: threads.Run) -> Single:
        """Return the gradient by U of the ranks by each prefix of the codes, added up."""
        pull: Single = np.zeros_like(U)
        for b in self.prefixes or (U.shape[1],):
            pull[:, :b] += self.vector_pull(U[:, :b], rows, run)
        return pull

    def vector_pull(self, U: Single, rows: Numbers, run: threads.Run) -> Single:
        """Return the gradient by U: vectors of the points i, of their j and of the sample."""
        size = self.batch
        one, other, sample = U[:size], U[size : 2 * size], U[2 * size :]
        similar = self._similar_to(rows)
        least, weight = np.float32(1 / self.similar.n_points), np.float32(1 / size)
        pull: Single = np.empty_like(U)

        def part(chunk: slice) -> Single:
            """Set the rows of these points i and of their j; return what they add to the sample."""
            own, near = one[chunk], other[chunk]
            level = (own * near).sum(axis=1, keepdims=True)
            slope, total = _soft_rank(own @ sample.T, level, similar, chunk, least, weight)
            pull[:size][chunk] = slope @ sample - total * near
            pull[size : 2 * size][chunk] = -total * own
            return slope.T @ own

        parts = Chunks(size, self.device.rows(POINTS_PER_TASK), run)
        pull[2 * size :] = parts.sum_here(part)
        return pull

    def _similar_to(self, rows: Numbers) -> SimilarEntries:
        """Find the points of the sample that are similar to the points i of a batch."""
        if self.known is None or self.known[0] is not rows:
            one, other, sample = np.split(rows, [self.batch, 2 * self.batch])
            self.known = rows, self.similar.among(one, other, sample)
        return self.known[1]


def _soft_rank(
    S: Single,
    level: Single,
    similar: SimilarEntries,
    rows: slice,
    least: np.float32,
    weight: np.float32,
) -> tuple[Single, Single]:
    """Slopes of weight log(R + least) by S = u_i'u_m (rows, sample), and their sums (rows, 1).

    `level` is u_i'u_j (rows, 1). S is overwritten.
    """
    device = devices.of(S)
    if device is CPU:
        _sigmoids(S, level)
        similar.clear(S, rows)
        return S, _slopes(S, least, weight)
    similar.clear(S, rows, to=-np.inf)
    total: Single = np.empty_like(level)
    steepness = np.float32(0.5 / TAU)
    arrays, numbers = (S, level, total), (S.shape[1], steepness, least, weight)
    device.kernels(__file__)("soft_rank", len(S), *arrays, *numbers)
    return S, total


@kernel(fastmath={"contract"})
def _sigmoids(S: Single, level: Single) -> None:
    """sigmoid((S - level) / (2 tau)), in place.

    With an exponential of its own, which works on as many numbers at once as the processor can.
    """
    n_rows, n = S.shape
    fraction, power = np.empty(n, np.float32), np.empty(n, np.float32)
    exponent = power.view(np.int32)
    for i in range(n_rows):
        row, own = S[i], level[i, 0]
        for m in range(n):
            x = min(max((own - row[m]) * STEEPEST, -FARTHEST), FARTHEST)
            rounded = np.floor(x + np.float32(0.5))
            f = x - rounded
            fraction[m] = np.float32(1) + f * (
                C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6))))
            )
            # The bits of 2^rounded.
            exponent[m] = (np.int32(rounded) + np.int32(127)) << np.int32(23)
        for m in range(n):
            row[m] = np.float32(1) / (np.float32(1) + fraction[m] * power[m])


@kernel(fastmath={"contract", "reassoc"})
def _slopes(S: Single, least: np.float32, weight: np.float32) -> Single:
    """The slopes of weight log(R + least) in place of the sigmoids, and their sums (rows, 1)."""
    n_rows, n = S.shape
    sums = np.empty((n_rows, 1), np.float32)
    for i in range(n_rows):
        row = S[i]
        nearer = np.float32(0)
        for m in range(n):
            nearer += row[m]
        factor = np.float32(0.5 / TAU) * weight / (nearer + np.float32(n) * least)
        total = np.float32(0)
        for m in range(n):
            slope = factor * (row[m] - row[m] * row[m])
            row[m] = slope
            total += slope
        sums[i, 0] = total
    return sums
