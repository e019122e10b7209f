"""Codes and a query's tables, learnt together, as an objective of the smooth core.

A query q has a vector a(q), and a code c, of bytes c_g, stands for the vector Y(c): the sum over g
of the rows C[g, c_g] of a codebook. Their inner product says how near the code is to the query, so
that

    tables[g, v] = -a(q)'C[g, v]

is what the value v of byte g adds to a distance: the index needs the codes alone. Minimised is the
soft rank of `rank`, of vectors a(x_i), Y(c_j) and Y(c_m) in place of u, beside the rank by Hamming
distance, so that the code stays a code. a, C and the hash function move in the same steps. The
codes are hard in them; a bit's gradient is by how much the loss would change if it were flipped, as
if Y were linear in between.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from auxhash.codes import n_bytes
from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Numbers, Single
from auxhash.compute.device import CPU
from auxhash.compute.kernels import kernel
from auxhash.compute.parts import Chunks
from auxhash.learn.smooth.gradient import (
    N_WARM_STEPS,
    Adam,
    DescentState,
    GradientDescent,
    Outputs,
    through_tanh,
    warmed,
)
from auxhash.learn.smooth.rank import Rank, RankBatches
from auxhash.learn.smooth.similar import Similar
from auxhash.mac.hashfunctions.smooth import Moment, Smooth

N_VALUES = 256  # of a byte
STEEPNESS = 1.0, 10.0  # of tanh for the codes of queries, in the first step and in the last
STEPS_PER_WARM_STEP = 10  # of queries' own, one in so many is warm: there may be few of them
RIVAL_SHARE = 0.5  # of a sample, where codes stay as they are
START_SIZE = 0.01  # deviation of the codebook at the start, in coordinates that are no bit's
POINTS_PER_TASK = 512

AsBytes = AnyArray  # packed codes, uint8 (n, n_bytes)


def codebook_of_bits(n_bits: int, n_dims: int, rng: np.random.Generator) -> Single:
    """Return the codebook (n_bytes * 256, n_dims) with which Y(c) begins as the bits, each +-1.

    Coordinates beyond the bits begin near 0.
    """
    C = START_SIZE * rng.standard_normal((n_bytes(n_bits) * N_VALUES, n_dims)).astype(np.float32)
    for k in range(n_bits):
        of_bit = C[k // 8 * N_VALUES : (k // 8 + 1) * N_VALUES, k]
        of_bit[:] = np.where(np.arange(N_VALUES) >> k % 8 & 1, 1, -1)
        C[:, k][: k // 8 * N_VALUES] = 0
        C[:, k][(k // 8 + 1) * N_VALUES :] = 0
    return C


class Asker:
    """The query's side: a(q), by a hash function's outputs, and the codebook; it moves by Adam.

    As `Adam` wants it, it has parameters with a rate for each.
    """

    def __init__(self, smooth: Smooth, codebook: Single) -> None:
        self.smooth = smooth
        self.device = smooth.device
        self.codebook: Single = self.device.put(codebook)
        self.parameters = [*smooth.parameters, self.codebook]
        self.rates = (*smooth.rates, 1.0)
        self.adam = Adam(self)  # type: ignore[arg-type]

    def vectors(self, codes: AsBytes, run: threads.Run) -> Single:
        """Return Y(c) (n, n_dims) of codes."""
        C = self.codebook
        if self.device is not CPU:
            summed: Single = C[_rows(codes)].sum(axis=1)
            return summed
        Y: Single = np.empty((len(codes), C.shape[1]), np.float32)
        Chunks(len(codes), POINTS_PER_TASK, run).each(lambda rows: _add_up(codes[rows], C, Y[rows]))
        return Y

    def through_bits(self, pull: Single, codes: AsBytes, b: int, run: threads.Run) -> Single:
        """Return the gradient (n, b) by each bit as -1..1, of that by Y, `pull`."""
        C = self.codebook
        if self.device is CPU:
            out: Single = np.empty((len(codes), b), np.float32)

            def part(rows: slice) -> None:
                _flip(pull[rows], codes[rows], C, out[rows])

            Chunks(len(codes), POINTS_PER_TASK, run).each(part)
            return out
        products = pull @ C.T  # with all rows of the codebook: what a GPU does soonest
        bits = np.arange(b)
        put = self.device.put
        own, first = codes[:, put(bits // 8)].astype(np.int64), bits // 8 * N_VALUES
        mask = 1 << bits % 8
        point = put(np.arange(len(codes)))[:, None]
        upper = products[point, put(first) + (own | put(mask))]
        lower = products[point, put(first) + (own & put(~mask))]
        difference: Single = upper - lower
        difference *= np.float32(0.5)
        return difference

    def gather(self, pull: Single, codes: AsBytes, run: threads.Run) -> Single:
        """Return the gradient by the codebook, of that by Y."""
        C = self.codebook
        slope: Single = np.zeros_like(C)
        if self.device is CPU:

            def of_byte(g: int) -> None:
                _add_rows(pull, np.ascontiguousarray(codes[:, g]), slope[g * N_VALUES :][:N_VALUES])

            run(of_byte, range(codes.shape[1]))
            return slope
        # As a product, whose sums are always in the same order.
        used = np.zeros_like(C, shape=(len(codes), len(C)))
        used[self.device.put(np.arange(len(codes)))[:, None], _rows(codes)] = 1
        return used.T @ pull

    def move(
        self, rows: Numbers, pull: Single, slope: Single, at: Moment, run: threads.Run
    ) -> None:
        """Make one step, down the gradients by a of these rows and by the codebook."""
        self.adam.follow([*self.smooth.gradients(rows, pull, run), slope], at)


def hamming_weight(n_bits: int) -> float:
    """Return the weight of the rank by Hamming distance, where that by tables has 1.

    Few bits lose more of it: with 16 and a weight of 1/2, .03 of the nearest among the first 100.
    """
    return max(0.5, 32 / n_bits)


class TableRank(Rank):
    """The rank by tables, and the rank by Hamming distance at `hamming_weight`."""

    warm_steps = N_WARM_STEPS

    def __init__(
        self,
        similar: Similar,
        asker: Asker,
        n_steps: int,
        rate: float,
        batch: int,
        sample: int,
        prefixes: Sequence[int],
    ) -> None:
        super().__init__(similar, batch, sample, prefixes, asker.device)
        self.asker, self.n_steps, self.rate, self.step = asker, n_steps, rate, 0

    def batches(self, rng: np.random.Generator) -> RankBatches:
        self.asker.smooth.begin(rng)  # the noise of queries, too
        return RankBatches(self, rng)

    def state(self) -> list[Single]:
        return [*chain(*self.asker.adam.state()), np.array([self.step], np.float32)]

    def restore(self, state: list[Single]) -> None:
        n = len(self.asker.parameters)
        self.asker.adam.restore(state[:n], state[n : 2 * n], state[2 * n : 3 * n])
        self.step = int(state[-1][0])

    def pull(self, outputs: Outputs, rows: Numbers, s: np.float32, run: threads.Run) -> Single:
        A = outputs(rows)
        U = np.tanh(s * A)
        pull = self.prefix_pull(U, rows, run)
        pull *= np.float32(hamming_weight(self.prefixes[-1]))
        pull[self.batch :] += self.ask(packed(A[self.batch :]), rows, run)
        return through_tanh(pull, U, s)

    def ask(self, codes: AsBytes, rows: Numbers, run: threads.Run, joint: bool = True) -> Single:
        """Make one step of the query's side for the codes of the points j and of the sample.

        Return the gradient by the bits of these codes; if they are not learnt, `joint` is False,
        and it is 0.
        """
        asker, asking = self.asker, rows[: self.batch]
        asked = asker.smooth.batch(asking, run)
        of_asked, slope, of_bits = self.table_pull(asked, codes, rows, run, joint)
        asker.move(asking, of_asked, slope, self._moment(), run)
        return of_bits

    def table_pull(
        self, asked: Single, codes: AsBytes, rows: Numbers, run: threads.Run, joint: bool = False
    ) -> tuple[Single, Single, Single]:
        """Return the gradients by the vectors of queries, by the codebook and by bits of codes."""
        asker = self.asker
        of_asked, slope = np.zeros_like(asked), np.zeros_like(asker.codebook)
        of_bits = np.zeros_like(asked, shape=(len(codes), self.prefixes[-1]))
        for b in self.prefixes:
            part = codes[:, : n_bytes(b)]
            vectors = np.concatenate([asked, asker.vectors(part, run)])
            pull = self.vector_pull(vectors, rows, run)
            of_asked += pull[: self.batch]
            slope += asker.gather(pull[self.batch :], part, run)
            if joint:
                of_bits[:, :b] += asker.through_bits(pull[self.batch :], part, b, run)
        return of_asked, slope, of_bits

    def _moment(self) -> Moment:
        t, self.step = self.step, self.step + 1
        return Moment(t, t / self.n_steps, warmed(self.rate, t, self.warm_steps))


class Rivals(NamedTuple):
    """Codes near to those of some rows: of all others, queries confuse these with them."""

    rows: Numbers  # rising
    near: Numbers  # (rows, k)

    def draw(self, rows: Numbers, size: int, rng: np.random.Generator) -> Numbers:
        """Draw at most `size` rivals of these rows, of each of them about as many, each once."""
        near = self.near[np.searchsorted(self.rows, rows)]
        each = max(1, size // len(rows))
        at = rng.integers(0, near.shape[1], (len(rows), each))
        drawn = rng.permutation(np.unique(np.take_along_axis(near, at, axis=1)))
        return drawn[:size]


class RivalBatches(RankBatches):
    """Batches in which half of the sample, `RIVAL_SHARE`, are rivals of the points j."""

    def __init__(self, rank: "QueryRank", rng: np.random.Generator) -> None:
        super().__init__(rank, rng)
        self.rivals = rank.rivals

    def __next__(self) -> Numbers:
        rows, drawn, sample = np.split(super().__next__(), [self.size, 2 * self.size])
        rivals = self.rivals.draw(drawn, int(RIVAL_SHARE * len(sample)), self.rng)
        others = sample[~np.isin(sample, rivals)][: len(sample) - len(rivals)]
        return np.concatenate([rows, drawn, rivals, others])


class QueryRank(TableRank):
    """The ranks by tables and by Hamming distance of rows whose codes stay as they are.

    The first b outputs of the query's side are those of its code; the others are its vector.
    """

    def __init__(self, rivals: Rivals, *settings: Any) -> None:
        super().__init__(*settings)
        self.rivals, self.warm_steps = rivals, max(1, self.n_steps // STEPS_PER_WARM_STEP)

    def batches(self, rng: np.random.Generator) -> RivalBatches:
        self.asker.smooth.begin(rng)
        return RivalBatches(self, rng)

    def ask(self, codes: AsBytes, rows: Numbers, run: threads.Run, joint: bool = False) -> Single:
        asker, asking, b = self.asker, rows[: self.batch], self.prefixes[-1]
        asked = asker.smooth.batch(asking, run)
        of_vector, slope, of_bits = self.table_pull(asked[:, b:], codes, rows, run)
        low, high = STEEPNESS
        s = np.float32(low * (high / low) ** (self.step / self.n_steps))
        U = np.tanh(s * asked[:, :b])
        pull = self.prefix_pull(np.concatenate([U, signs(codes, b)]), rows, run)[: self.batch]
        pull = through_tanh(pull, U, s)
        asker.move(asking, np.hstack([pull, of_vector]), slope, self._moment(), run)
        return of_bits


def signs(codes: AsBytes, b: int) -> Single:
    """Return the first b bits of codes as -1 and +1."""
    put, bits = devices.of(codes).put, np.arange(b)
    shifted = codes[:, put(bits // 8)] >> put(bits % 8).astype(np.uint8)
    values: Single = (shifted & 1).astype(np.float32)
    values *= np.float32(2)
    values -= np.float32(1)
    return values


class FixedCodes:
    """Steps of the query's side alone, for codes that stay as they are; see `GradientDescent`.

    `before` are the steps that the codes were learnt in, if any: their state is kept.
    """

    def __init__(
        self, rank: TableRank, codes: AsBytes, before: GradientDescent | None = None
    ) -> None:
        self.rank, self.codes, self.before = rank, codes, before

    def begin(self, rng: np.random.Generator) -> None:
        self.batches = self.rank.batches(rng)

    def move(self, t: int, run: threads.Run) -> None:
        rows = next(self.batches)
        asked = self.rank.device.put(rows[self.rank.batch :])
        self.rank.ask(self.codes[asked], rows, run, joint=False)

    def state(self) -> DescentState:
        return ([], [], []) if self.before is None else self.before.state()

    def restore(self, *state: list[Single]) -> None:
        if self.before is not None:
            self.before.restore(*state)


def packed(outputs: Single) -> AsBytes:
    """Return the codes of these outputs, bit k at byte k // 8, bit k % 8."""
    bits = outputs >= 0
    if devices.of(outputs) is CPU:
        return np.packbits(bits, axis=1, bitorder="little")
    n, b = bits.shape
    padded = np.zeros_like(bits, shape=(n, n_bytes(b) * 8))
    padded[:, :b] = bits
    weights = devices.of(outputs).put(1 << np.arange(8))
    codes: AsBytes = (padded.reshape(n, -1, 8) * weights).sum(axis=2).astype(np.uint8)
    return codes


def _rows(codes: AsBytes) -> Numbers:
    """Return the rows of the codebook that these codes add up."""
    first = devices.of(codes).put(np.arange(codes.shape[1]) * N_VALUES)
    return codes.astype(np.int64) + first


@kernel(fastmath={"contract"})
def _add_up(codes: AsBytes, C: Single, Y: Single) -> None:
    """Y(c) of each code."""
    for i in range(len(codes)):
        for d in range(Y.shape[1]):
            Y[i, d] = 0
        for g in range(codes.shape[1]):
            row = C[g * N_VALUES + np.int64(codes[i, g])]
            for d in range(Y.shape[1]):
                Y[i, d] += row[d]


@kernel(fastmath={"contract", "reassoc"})
def _flip(pull: Single, codes: AsBytes, C: Single, out: Single) -> None:
    """Half of what the loss, by its slope, gains where a bit is 1 in place of 0."""
    n_dims = C.shape[1]
    for i in range(len(codes)):
        own = pull[i]
        for k in range(out.shape[1]):
            value, mask = np.int64(codes[i, k // 8]), np.int64(1) << np.int64(k % 8)
            upper = C[k // 8 * N_VALUES + (value | mask)]
            lower = C[k // 8 * N_VALUES + (value & ~mask)]
            total = np.float32(0)
            for d in range(n_dims):
                total += own[d] * (upper[d] - lower[d])
            out[i, k] = np.float32(0.5) * total


@kernel(fastmath={"contract"})
def _add_rows(pull: Single, values: AsBytes, slope: Single) -> None:
    """Add each row of `pull` to the row of its value."""
    for i in range(len(values)):
        row = slope[values[i]]
        for d in range(pull.shape[1]):
            row[d] += pull[i, d]
