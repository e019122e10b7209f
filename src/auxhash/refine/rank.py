"""The rank of a similar point, as an objective of the smooth core.

For a point i, a similar point j and a random sample M of all points, the soft rank of j is the
share of the sample that is nearer to i than j is,

    R = mean over m in M of sigmoid((d_ij - d_im) / tau),   d_ij = (b - u_i'u_j) / 2

where points that are themselves similar to i count as not nearer. Minimised is the mean of
log(R + 1/n): going from rank 10 to 1 counts as much as from 1,000 to 100, so that what is learnt
serves short lists and long ones. Unlike a loss over pairs it has no target distance, and leaves
the code all its freedom.
"""

from collections.abc import Iterator

import numpy as np

from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU, Device
from auxhash.refine.gradient import Outputs, shuffled, through_tanh
from auxhash.refine.similar import Known, Similar

BATCH = 1024  # points i per step
SAMPLE = 4096  # points m per step
TAU = 0.5  # bits
CHUNK = 64  # points i per task of a thread: their distances from the sample fit a core's cache


class Rank:
    """The mean log of the soft rank of a similar point."""

    def __init__(
        self,
        similar: Similar,
        batch: int = BATCH,
        sample: int = SAMPLE,
        device: Device = CPU,
    ) -> None:
        self.device = device
        self.similar = similar
        self.points = similar.usable()
        self.batch, self.sample = min(batch, len(self.points)), min(sample, similar.n_points)

    def batches(self, rng: np.random.Generator) -> Iterator[Numbers]:
        """The points i, a similar j for each, and the sample, one after the other."""
        for chosen in shuffled(len(self.points), self.batch, rng):
            rows = self.points[chosen]
            sample = rng.choice(self.similar.n_points, self.sample, replace=False, shuffle=False)
            yield np.concatenate([rows, self.similar.draw(rows, rng), sample])

    def scale(self, rows: Numbers) -> float:
        return 1.0

    def typical(self, outputs: Outputs, rows: Numbers) -> float:
        """The geometric mean of the rank, 1 for the nearest of all, with codes in place of u."""
        U = np.where(outputs(rows) < 0, np.float32(-1), np.float32(1))
        one, other, sample = np.split(U, [self.batch, 2 * self.batch])
        S = one @ sample.T - (one * other).sum(axis=1, keepdims=True)
        nearer = (S > 0) + 0.5 * (S == 0)
        self._similar_to(rows).clear(nearer, slice(0, self.batch))
        rank = nearer.mean(axis=1) * self.similar.n_points + 1
        return float(np.exp(np.log(rank).mean()))

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        U = np.tanh(s * outputs(rows))
        size = self.batch
        one, other, sample = U[:size], U[size : 2 * size], U[2 * size :]
        similar = self._similar_to(rows)
        least = np.float32(1 / self.similar.n_points)

        def part(chunk: slice) -> tuple[Single, Single]:
            own = one[chunk]
            S: Single = own @ sample.T
            S -= (own * other[chunk]).sum(axis=1, keepdims=True)
            slope, total = _soft_rank(S, similar, chunk, least)
            slope *= np.float32(1 / size)
            total *= np.float32(1 / size)
            pulled = np.concatenate([slope @ sample - total * other[chunk], -total * own])
            return pulled, slope.T @ own

        parts = run(part, threads.chunks(size, self.device.rows(CHUNK)))
        halves = [np.split(pulled, 2) for pulled, _ in parts]
        pull = np.concatenate(
            [*(half[0] for half in halves), *(half[1] for half in halves), sum(p for _, p in parts)]
        )
        return through_tanh(pull, U, s)

    def _similar_to(self, rows: Numbers) -> Known:
        """Who of the sample is similar to the points i of a batch."""
        return self.similar.among(rows[: self.batch], rows[2 * self.batch :])


def _soft_rank(S: Single, similar: Known, rows: slice, least: np.float32) -> tuple[Single, Single]:
    """Slopes of log(R + least) for S = u_i'u_m - u_i'u_j (rows, sample), and their sums (rows, 1).

    S is overwritten.
    """
    S *= np.float32(-0.5 / TAU)
    np.minimum(S, np.float32(60), out=S)  # exp stays in range
    np.exp(S, out=S)
    S += np.float32(1)
    np.reciprocal(S, out=S)
    similar.clear(S, rows)
    rank = S.mean(axis=1, keepdims=True)
    slope = S - S * S
    slope *= np.float32(0.5 / TAU / S.shape[1]) / (rank + least)
    return slope, slope.sum(axis=1, keepdims=True)
