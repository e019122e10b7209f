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

from collections.abc import Sequence

import numpy as np

from auxhash.compute import threads
from auxhash.compute.arrays import Numbers, Single
from auxhash.compute.device import CPU, Device
from auxhash.compute.parts import Chunks
from auxhash.learn.smooth.gradient import Outputs, Shuffled, through_tanh
from auxhash.learn.smooth.similar import Similar, SimilarEntries
from auxhash.learn.smooth.slopes import Workspace, pulls

BATCH_SIZE = 1024  # points i per step
SAMPLE_SIZE = 4096  # points m per step
TASKS, POINTS_PER_TASK = 8, 256  # at least so many tasks, or at most so many points i in each
MIN_POINTS_PER_TASK = 64  # products of fewer take longer


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
        self.workspace = Workspace()
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
            part = U[:, :b]
            if self.device is CPU:
                part = np.ascontiguousarray(part)  # kernels take half the time
            pull[:, :b] += self.vector_pull(part, rows, run)
        return pull

    def vector_pull(self, U: Single, rows: Numbers, run: threads.Run) -> Single:
        """Return the gradient by U: vectors of the points i, of their j and of the sample."""
        size = self.batch
        one, other, sample = U[:size], U[size : 2 * size], U[2 * size :]
        similar, workspace = self._similar_to(rows), self.workspace
        least, weight = np.float32(1 / self.similar.n_points), np.float32(1 / size)
        pull: Single = np.empty_like(U)

        def part(chunk: slice) -> Single:
            """Set the rows of these points i and of their j; return what they add to the sample."""
            own, near = one[chunk], other[chunk]
            level = (own * near).sum(axis=1, keepdims=True)
            if self.device is CPU:
                S, contenders = workspace.tables(len(own), len(sample))
                np.matmul(own, sample.T, out=S)
            else:
                S, contenders = own @ sample.T, None
            similar.clear(S, chunk, to=-np.inf)
            of_own, of_sample, total = pulls(S, level, own, sample, least, weight, contenders)
            pull[:size][chunk] = of_own - total * near
            pull[size : 2 * size][chunk] = -total * own
            return of_sample

        points = max(MIN_POINTS_PER_TASK, min(POINTS_PER_TASK, size // TASKS))
        parts = Chunks(size, self.device.rows(points), run)
        pull[2 * size :] = parts.sum_here(part)
        return pull

    def _similar_to(self, rows: Numbers) -> SimilarEntries:
        """Find the points of the sample that are similar to the points i of a batch."""
        if self.known is None or self.known[0] is not rows:
            one, other, sample = np.split(rows, [self.batch, 2 * self.batch])
            self.known = rows, self.similar.among(one, other, sample)
        return self.known[1]
