"""The outputs of a hash function as a smooth function of its parameters, for refinement.

Parameters are weights of the principal coordinates of the features, scaled to unit mean variance:
so the same step length suits any data, and Adam, which scales each coordinate by itself, works on
coordinates that are hardly correlated. Weight decay acts on these parameters, in units of the
steepest slope of the loss, so that it suits any loss and number of bits. Single precision is
enough: the gradients of a batch are far less exact.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np

from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import Array, Computed, Matrix, Numbers, Single, fits_single, in_memory
from auxhash.compute.device import Device
from auxhash.compute.parts import Chunks
from auxhash.compute.peers import peers

POINTS_PER_TASK = 2048  # points per task of a thread
POINTS_PER_GROUP = 125  # points of a batch that leave out the same units
N_POOLED_NUMBERS = 1 << 21  # normal numbers, of which groups take a part: to draw them takes long
HIDDEN_RATE = 0.1  # of the steps of a hidden layer, relative to those of a linear one


class Smooth(Protocol):
    """Outputs, and parameters to be changed in place; each bit's outputs have unit deviation."""

    parameters: list[Single]
    device: Device  # where the parameters are
    rates: Sequence[float]  # length of each parameter's steps, relative to each other
    normalize_every: int  # steps

    def begin(self, rng: np.random.Generator) -> None:
        """Draw the random numbers of the following steps from this generator."""

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        """Return the outputs a (rows, b) of these training points."""

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        """Return the outputs of the points of a step, with noise and dropout."""

    def gradients(self, rows: Numbers, pull: Single, run: threads.Run) -> list[Single]:
        """Return the gradients of sum(a * pull) plus the weight decay term, for each parameter."""

    def normalize(self) -> None:
        """Scale each bit's outputs to unit deviation again."""

    def weights(self) -> list[Array]:
        """Return the parameters as weights of the features themselves."""


class Moment(NamedTuple):
    """Progress of the gradient steps."""

    step: int  # from 0
    done: float  # share of all steps that are made
    rate: float  # length of the first step


@runtime_checkable
class SelfMoving(Protocol):
    """Outputs of parameters that are not NumPy's, with its own optimiser; see `Smooth`."""

    normalize_every: int  # steps

    def begin(self, rng: np.random.Generator) -> None:
        """Draw the random numbers of the following steps from this generator."""

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        """Return the outputs a (rows, b) of these training points."""

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        """Return the outputs of the points of a step, with noise and dropout."""

    def move(self, rows: Numbers, pull: Single, moment: Moment, run: threads.Run) -> None:
        """Make one step down sum(a * pull), a the outputs that `batch` returned for these rows."""

    def normalize(self) -> None:
        """Scale each bit's outputs to unit deviation again."""

    def weights(self) -> list[Array]:
        """Return the parameters, as the hash function's `moved` takes them."""

    def state(self) -> tuple[list[Single], list[Single], list[Single]]:
        """Return the state that the next step depends on, as three lists of arrays."""

    def restore(self, *state: list[Single]) -> None:
        """Go on from a `state`."""


@runtime_checkable
class Resumable(Protocol):
    """A `Smooth` or `SelfMoving` whose steps can go on after an interruption."""

    def drawn(self) -> list[Single] | None:
        """Return the random numbers drawn for more than one step; None if unavailable."""

    def redraw(self, drawn: list[Single]) -> None:
        """Use these random numbers for more than one step."""


class Principal:
    """Principal coordinates X of features F (n, D + 1); the last feature, a constant 1, is kept.

    X = `points` @ turn: for features that are computed when needed, `points` are centred features,
    since it takes less to `turn` weights than points; else they are X itself.
    """

    turning: Single | None = None  # (D, D), from centred features to coordinates

    def __init__(self, F: Matrix) -> None:
        self.device = devices.of(F)
        array = in_memory(F)
        if array is None:
            assert isinstance(F, Computed)
            self._of_parts(F)
            return
        body, n = array[:, :-1], peers().sum(len(F))
        self.mean = peers().sum(body.sum(axis=0)) / n
        centred = body - self.mean
        self._set_axes(peers().sum(centred.T @ centred) / n)
        X = centred @ (self.axes / self.scale)
        self.X: Single | Computed = np.hstack([X, np.ones_like(X[:, :1])]).astype(np.float32)
        self.points: Single | Computed = self.X

    def _set_axes(self, covariance: Array) -> None:
        variance, self.axes = np.linalg.eigh(covariance)
        variance = np.maximum(variance, 0)
        self.scale = float(np.sqrt(variance.mean())) or 1.0
        self.variance = (variance / self.scale**2).astype(np.float32)

    def _of_parts(self, F: Computed) -> None:
        """Set the coordinates for features that are computed when needed, as X then is, too."""
        parts = threads.chunks(len(F), self.device.rows(POINTS_PER_TASK, F.shape[1]))
        n = peers().sum(len(F))
        total = self.device.zeros(F.shape[1] - 1)
        for part in parts:
            total += F[part][:, :-1].sum(axis=0)
        self.mean = peers().sum(total) / n
        covariance = self.device.zeros((F.shape[1] - 1, F.shape[1] - 1))
        for part in parts:
            centred = F[part][:, :-1] - self.mean
            covariance += centred.T @ centred
        self._set_axes(peers().sum(covariance) / n)
        turning = self.turning = (self.axes / self.scale).astype(np.float32)

        mean = np.concatenate([self.mean, np.zeros_like(self.mean[:1])])
        rough = mean.astype(np.float32)
        # Rounding before the mean is taken off loses no digits that X had.
        single = F.single if F.like is not None and fits_single(F.like) else None

        def centred_features(rows: Numbers | slice) -> Single:
            if single is None:
                exact: Single = (F[rows] - mean).astype(np.float32)
                return exact
            return single(rows) - rough

        def coordinates(rows: Numbers | slice) -> Single:
            points = centred_features(rows)
            points[:, :-1] = points[:, :-1] @ turning
            return points

        self.points = Computed(F.shape, centred_features, F.like)
        self.X = Computed(F.shape, coordinates, F.like)

    def parts(
        self, of: Single | Computed, rows: Numbers | slice, size: int, run: threads.Run
    ) -> tuple[Chunks, Callable[[slice], Single]]:
        """Cut rows of X or `points` into parts of `size`; return them and a reader of one part."""
        size = self.device.rows(size, of.shape[1])
        if isinstance(of, Computed):
            if isinstance(rows, slice) and rows == slice(None):  # need not be gathered
                return Chunks(len(of), size, run), lambda part: of[part]
            all_rows = np.arange(len(of))[rows] if isinstance(rows, slice) else rows
            return Chunks(len(all_rows), size, run), lambda part: self._rows(of, all_rows[part])
        chosen = self._rows(of, rows)
        return Chunks(len(chosen), size, run), lambda part: chosen[part]

    def take(self, rows: Numbers | slice) -> Single:
        """Return the coordinates of these points."""
        return self._rows(self.X, rows)

    def _rows(self, of: Single | Computed, rows: Numbers | slice) -> Single:
        return of[rows if isinstance(rows, slice) else self.device.put(rows)]

    def turn(self, V: Single) -> Single:
        """Return weights U with points @ U = X @ V."""
        return V if self.turning is None else np.vstack([self.turning @ V[:-1], V[-1:]])

    def turn_back(self, slope: Single) -> Single:
        """Return X' pull, computed from points' pull."""
        if self.turning is None:
            return slope
        return np.vstack([self.turning.T @ slope[:-1], slope[-1:]])

    def enter(self, W: Array) -> Single:
        """Convert weights W (D + 1, any) of the features to weights of the coordinates."""
        bias = W[-1] + self.mean @ W[:-1]
        return np.vstack([self.scale * (self.axes.T @ W[:-1]), bias]).astype(np.float32)

    def leave(self, V: Single) -> Array:
        """Convert weights of the coordinates to weights of the features: the reverse of `enter`."""
        W = self.axes @ V[:-1].astype(np.float64) / self.scale
        return np.vstack([W, V[-1].astype(np.float64) - self.mean @ W])


class SmoothLinear:
    """a = W'x, with decay/2 |W|^2, biases left out, added to the loss."""

    rates: Sequence[float] = (1.0,)
    normalize_every = 1

    def __init__(
        self,
        F: Matrix,
        W: Array,
        decay: float,
        rng: np.random.Generator,
        principal: Principal | None = None,
    ) -> None:
        self.decay, self.principal = np.float32(decay), principal or Principal(F)
        self.device = device = self.principal.device
        self.W = self.principal.enter(W)
        self.parameters = [self.W]
        # A bit that is the same for all points starts anew, in a random direction.
        dead = np.flatnonzero(~(self._deviation() > 1e-6 * np.abs(self.W[-1])))
        shape = len(self.W) - 1, len(dead)
        random = peers().by(0, lambda: rng.standard_normal(shape))
        self.W[:-1, dead] = device.put(random.astype(np.float32))
        self.W[-1, dead] = 0
        self.normalize()

    def begin(self, rng: np.random.Generator) -> None:
        pass  # nothing is random here

    def drawn(self) -> list[Single] | None:
        return []

    def redraw(self, drawn: list[Single]) -> None:
        pass

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        parts, points = self.principal.parts(self.principal.points, rows, POINTS_PER_TASK, run)
        W = self.principal.turn(self.W)
        return parts.join(lambda part: points(part) @ W)

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        return self.outputs(rows, run)

    def gradients(self, rows: Numbers, pull: Single, run: threads.Run) -> list[Single]:
        parts, points = self.principal.parts(self.principal.points, rows, len(rows), run)
        slope = self.principal.turn_back(parts.sum_here(lambda part: points(part).T @ pull[part]))
        slope[:-1] += self.decay * self.W[:-1]
        return [slope]

    def normalize(self) -> None:
        deviation = self._deviation()
        self.W /= np.where(deviation > 0, deviation, np.float32(1))

    def weights(self) -> list[Array]:
        return [self.principal.leave(self.W)]

    def _deviation(self) -> Single:
        deviation: Single = np.sqrt(self.principal.variance @ np.square(self.W[:-1]))
        return deviation


Kept = tuple[Numbers, Single, Single]  # rows of a batch, their x and their hidden layer


class SmoothNetwork:
    """a = W'[relu(V'x), x], with decay/2 (|V|^2 + |W|^2), biases left out, added to the loss.

    In training, `noise` is added to the coordinates of x (which have a mean variance of 1), and
    each hidden unit is left out of a point's outputs with probability `dropout`: what remains must
    do without it, and overfits less. The hidden layer may see fewer coordinates than there
    are, the principal ones: then V has as many rows less.
    """

    normalize_every = 20  # steps: outputs of a sample are needed for it

    def __init__(
        self,
        F: Matrix,
        V: Array,
        W: Array,
        decay: float,
        dropout: float,
        noise: float,
        rng: np.random.Generator,
        n_coordinates: int | None = None,
        principal: Principal | None = None,
    ) -> None:
        self.decay, self.dropout, self.noise = np.float32(decay), dropout, np.float32(noise)
        self.kept_of_256 = max(1, round(256 * (1 - dropout)))  # random bytes are quickly drawn
        self.grown = np.float32(256 / self.kept_of_256)
        self.principal = principal or Principal(F)
        self.device = self.principal.device
        self.begin(rng)
        self.first_seen = max(0, len(V) - 1 - n_coordinates) if n_coordinates else 0
        self.V = self.principal.enter(V)[self.first_seen :]
        hidden = V.shape[1]
        self.W = W[:hidden].astype(np.float32)
        self.L = self.principal.enter(W[hidden:])
        self.parameters = [self.V, self.W, self.L]
        self.rates: Sequence[float] = HIDDEN_RATE, HIDDEN_RATE, 1.0
        self.kept: Kept | None = None
        self.normalize()

    def begin(self, rng: np.random.Generator) -> None:
        self.random = self.device.generator(rng)

    def drawn(self) -> list[Single] | None:
        return [] if self.device is devices.CPU else None  # a GPU's generator has no state to keep

    def redraw(self, drawn: list[Single]) -> None:
        pass

    def outputs(self, rows: Numbers | slice, run: threads.Run) -> Single:
        parts, X = self.principal.parts(self.principal.X, rows, POINTS_PER_TASK // 8, run)

        def combined(part: slice) -> Single:
            own = X(part)
            return self._combined(own, self._hidden(own))

        return parts.join(combined)

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        X = self.principal.take(rows)
        if self.noise:
            X[:, :-1] += self.noise * self.random.standard_normal(X[:, :-1].shape, np.float32)
        hidden: Single = np.empty_like(X, shape=(len(X), self.V.shape[1]))
        outputs: Single = np.empty_like(X, shape=(len(X), self.W.shape[1]))
        stays = None
        if self.dropout:
            stays = self.random.integers(0, 256, hidden.shape, np.uint8) < self.kept_of_256

        def combined(part: slice) -> None:
            own = self._hidden(X[part])
            if stays is not None:
                own *= stays[part]
                own *= self.grown
            hidden[part] = own
            outputs[part] = self._combined(X[part], own)

        Chunks(len(X), self.device.rows(POINTS_PER_TASK // 8), run).each(combined)
        self.kept = rows, X, hidden
        return outputs

    def gradients(self, rows: Numbers, pull: Single, run: threads.Run) -> list[Single]:
        if self.kept is None or self.kept[0] is not rows:
            self.batch(rows, run)
        _, X, hidden = cast("Kept", self.kept)

        def part(chunk: slice) -> list[Single]:
            own, active = pull[chunk], hidden[chunk]
            back = own @ self.W.T
            back *= active > 0
            if self.dropout:
                back *= self.grown
            return [self._seen(X[chunk]).T @ back, active.T @ own, X[chunk].T @ own]

        parts = run(part, threads.chunks(len(X), self.device.rows(POINTS_PER_TASK // 2)))
        slopes = [sum(terms[1:], start=terms[0]) for terms in zip(*parts, strict=True)]
        slopes[0][:-1] += self.decay * self.V[:-1]
        slopes[1] += self.decay * self.W
        slopes[2][:-1] += self.decay * self.L[:-1]
        return slopes

    def normalize(self) -> None:
        sample = self.principal.X[:: max(1, len(self.principal.X) // 500)]
        deviation = _deviation(self._combined(sample, self._hidden(sample)))
        deviation = np.where(deviation > 0, deviation, np.float32(1))
        self.W /= deviation
        self.L /= deviation

    def weights(self) -> list[Array]:
        W = np.vstack([self.W.astype(np.float64), self.principal.leave(self.L)])
        V = np.zeros_like(self.V, shape=(len(self.L), self.V.shape[1]))
        V[self.first_seen :] = self.V
        return [self.principal.leave(V), W]

    def _seen(self, X: Single) -> Single:
        """Return the coordinates that the hidden layer sees: the last are the principal ones."""
        return X[:, self.first_seen :]

    def _hidden(self, X: Single) -> Single:
        hidden: Single = self._seen(X) @ self.V
        return np.maximum(hidden, 0, out=hidden)

    def _combined(self, X: Single, hidden: Single) -> Single:
        outputs: Single = hidden @ self.W
        outputs += X @ self.L
        return outputs


class Thinned(NamedTuple):
    """A group of points of a batch, and the part of the network that they use."""

    rows: slice  # in the batch
    X: Single  # with noise
    units: Numbers
    hidden: Single  # (rows, units)
    W: Single  # (units, b), larger in place of the units that are missing


class ThinnedNetwork(SmoothNetwork):
    """A network whose points leave out the same hidden units, POINTS_PER_GROUP of them at a time.

    What is left out need not be computed: with a dropout of 0.7, a step takes a third of the time.
    It learns as much as where each point leaves out units of its own.
    """

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        if self.device is devices.CPU:
            # A unit's weights beside each other: units are picked out of them.
            self.V = np.asfortranarray(self.V)
        self.parameters = [self.V, self.W, self.L]
        self.n_kept = max(1, round((1 - self.dropout) * self.V.shape[1]))
        self.groups: list[Thinned] = []
        self.thinned_for: Numbers | None = None

    def begin(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.normal: Single | None = None

    def drawn(self) -> list[Single] | None:
        return [] if self.normal is None else [self.device.fetch(self.normal)]

    def redraw(self, drawn: list[Single]) -> None:
        self.normal = self.device.put(drawn[0]) if drawn else None

    def batch(self, rows: Numbers, run: threads.Run) -> Single:
        X = self.principal.take(rows)
        if self.noise and self.normal is None:
            size = max(N_POOLED_NUMBERS, 2 * POINTS_PER_GROUP * X.shape[1])
            self.normal = self.device.generator(self.rng).standard_normal(size, np.float32)
        outputs: Single = np.empty_like(X, shape=(len(X), self.W.shape[1]))
        chunks = threads.chunks(len(X), POINTS_PER_GROUP)
        seeds = self.rng.integers(1 << 62, size=len(chunks))

        def thinned(which: int) -> Thinned:
            own = self._thinned(chunks[which], X[chunks[which]], int(seeds[which]))
            outputs[own.rows] = own.hidden @ own.W + own.X @ self.L
            return own

        self.groups = run(thinned, range(len(chunks)))
        self.thinned_for = rows
        return outputs

    def gradients(self, rows: Numbers, pull: Single, run: threads.Run) -> list[Single]:
        if self.thinned_for is not rows:
            self.batch(rows, run)
        grown = np.float32(self.V.shape[1] / self.n_kept)

        def part(group: Thinned) -> list[Single]:
            own = pull[group.rows]
            back = own @ group.W.T
            back *= group.hidden > 0
            of_W = group.hidden.T @ own
            of_W *= grown
            return [back.T @ self._seen(group.X), of_W, group.X.T @ own]

        slopes = [self.decay * parameter for parameter in self.parameters]
        slopes[0][-1] = 0
        slopes[2][-1] = 0
        by_unit = slopes[0].T
        for group, (of_V, of_W, of_L) in zip(self.groups, run(part, self.groups), strict=True):
            by_unit[group.units] += of_V
            slopes[1][group.units] += of_W
            slopes[2] += of_L
        return slopes

    def _thinned(self, rows: slice, X: Single, seed: int) -> Thinned:
        """Return these rows with noise, and their hidden layer, units left out."""
        rng = np.random.default_rng(seed)
        units = np.argpartition(rng.random(self.V.shape[1]), self.n_kept - 1)[: self.n_kept]
        units = self.device.put(np.sort(units))
        if self.normal is not None:
            size = len(X) * (X.shape[1] - 1)
            first = int(rng.integers(len(self.normal) - size))
            X[:, :-1] += self.noise * self.normal[first : first + size].reshape(len(X), -1)
        hidden: Single = self._seen(X) @ self.V.T[units].T
        np.maximum(hidden, 0, out=hidden)
        W = self.W[units]
        W *= np.float32(self.V.shape[1] / self.n_kept)
        return Thinned(rows, X, units, hidden, W)


def _deviation(outputs: Single) -> Single:
    """Return the standard deviation of each column, over all parts of the points."""
    if peers().n == 1:
        alone: Single = outputs.std(axis=0)
        return alone
    wide = outputs.astype(np.float64)
    n, mean, square = peers().sum(np.stack([np.ones_like(wide), wide, wide**2]).sum(axis=1))
    deviation: Single = np.sqrt(np.maximum(square / n - (mean / n) ** 2, 0)).astype(np.float32)
    return deviation
