"""KSH: supervised hashing with kernels (Liu et al. 2012).

The inner products of the codes should be b S, with S_ij = +-1 for similar and dissimilar points.
Bit by bit, with R = b S - sum of y y' over the bits so far,

    max y'Ry   over y = sign(K a),   a'K'Ka = n

K holds centred kernels of the points with a few anchors, or the centred points themselves. Without
the sign this is an eigenproblem. Gradient ascent, with the sign smoothed to 2 / (1 + exp(-x)) - 1,
starts from its solution, and its result is taken if y'Ry, with the sign itself, is then higher.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from auxhash.codes import sign
from auxhash.compute import checks, threads
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.distances import squared_distances
from auxhash.compute.kernels import kernel
from auxhash.compute.random import RandomState
from auxhash.learn.baselines.method import Pairwise
from auxhash.mac.affinity import Affinity, from_labels
from auxhash.model.functions import Centred, KernelMap, WeightedHash

Product = Callable[[Array], Array]  # with a symmetric matrix

EIGENVALUE_ROUNDING = 1e-10  # eigenvalue of K'K, relative to the largest: rounding
N_DRAWN = 100, 500  # similar and dissimilar points per point, where not all pairs are learnt from
MIN_GAIN = 2e-4  # relative gain that a step needs to be accepted
LENGTH_FACTOR = 1.2  # factor of the step length after an accepted step
MIN_LENGTH = 1e-2  # step length at which the ascent stops, relative to the first
ROWS_PER_TASK = 512  # of S, for one thread
DENSE_SHARE = 1 / 50  # of the entries of S: above, products with many vectors are dense ones
MAX_LISTED_VALUES = 8  # distinct values of S up to which each has a list of its places


@dataclass(eq=False, repr=False)
class KSH(Pairwise):
    """Supervised hashing with kernels. Any number of bits.

    With labels (n,), all pairs are learnt from; with several labels per point, 100 similar and 500
    dissimilar points are drawn for each point. With an affinity, all other pairs have S = 0.

    Args:
        n_bits: length of the codes.
        hash_function: "rbf" (the authors' kernels) or "linear" (hyperplanes).
        n_anchors: number of kernel centres, drawn at random from the training points.
        max_iter: maximum number of steps of the gradient ascent.
        random_state: seed of the anchors.
        n_jobs: threads; None takes every core that this process may use, not 1.

    Attributes:
        anchors_: (n_anchors, D); kernels only.
        width_: sigma of the kernel exp(-d^2 / (2 sigma)), the mean squared distance; kernels only.
        center_: mean kernel of each anchor, or mean of X.
        weights_: a of each bit, (n_anchors, n_bits) or (D, n_bits).
        objective_: y'Ry of each bit, for the eigenvector and at the end, (n_bits, 2).
        n_iter_: accepted steps of the ascent, the start included: the most of all bits.
    """

    n_bits: int = 32
    n_anchors: int = 300
    max_iter: int = 500
    random_state: RandomState = None
    hash_function: Literal["rbf", "linear"] = "rbf"
    n_jobs: int | None = None

    anchors_: Array = field(init=False)
    width_: float = field(init=False)
    center_: Array = field(init=False)
    weights_: Array = field(init=False)
    objective_: Array = field(init=False)
    n_iter_: int = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("n_anchors", self.n_anchors, 1)
        checks.integer("max_iter", self.max_iter, 0)
        checks.one_of("hash_function", self.hash_function, ("rbf", "linear"))

    def _learn(
        self, X: Array, y: AnyArray | None, affinity: Affinity | None, rng: np.random.Generator
    ) -> None:
        if self.hash_function == "rbf":
            self.anchors_ = X[np.sort(rng.permutation(len(X))[: self.n_anchors])]
            self.width_ = float(squared_distances(X, self.anchors_).mean()) or 1.0
        K = X if self.hash_function == "linear" else KernelMap(self.anchors_, self.width_)(X)
        self.center_ = K.mean(axis=0)
        U, T = whitened(K - self.center_)
        with threads.pool() as run:
            if affinity is None and y is not None and y.ndim == 1:
                S = similarity_of_labels(y)
            else:
                if affinity is None:
                    affinity = from_labels(np.asarray(y), *N_DRAWN, rng)
                S = similarity_of_pairs(affinity, run)
            weights, self.objective_ = self._bits(U, S)
        self.weights_ = T @ weights

    def _bits(self, U: Array, S: Product) -> tuple[Array, Array]:
        """Weights (., b) of the columns of U, and each bit's objective before and after ascent."""
        b = self.n_bits
        self.n_iter_ = 0
        weights, objective = np.empty((U.shape[1], b)), np.empty((b, 2))
        Y = np.empty((len(U), b))
        M = U.T @ (b * S(U))
        single = U.astype(np.float32)
        for k in range(b):
            past = Y[:, :k]

            def residual(v: Array, past: Array = past) -> Array:
                return b * S(v) - past @ (past.T @ v)

            last = len(M) - 1
            start = eigh(M, subset_by_index=(last, last))[1][:, 0]
            steps = ascend(single, residual, start, self.max_iter)
            self.n_iter_ = max(self.n_iter_, len(steps))
            end = steps[-1][0]
            candidates = [(float(z @ residual(z)), z, a) for z, a in _codes(U, (start, end))]
            objective[k] = candidates[0][0], max(candidates[0][0], candidates[1][0])
            _, Y[:, k], weights[:, k] = candidates[candidates[1][0] > candidates[0][0]]
            projected = U.T @ Y[:, k]
            M = M - np.outer(projected, projected)
        return weights, objective

    def _learnt_function(self) -> WeightedHash:
        if self.hash_function == "linear":
            return WeightedHash(Centred(self.center_), self.weights_)
        kernels = KernelMap(self.anchors_, self.width_, kernel_mean=self.center_)
        return WeightedHash(kernels, self.weights_)


def _codes(U: Array, weights: tuple[Array, ...]) -> list[tuple[Array, Array]]:
    return [(sign(U @ a).astype(np.float64), a) for a in weights]


def whitened(K: Array) -> tuple[Array, Array]:
    """U = K T with U'U = n I, and T: the constraint a'K'Ka = n becomes a unit length."""
    size, directions = np.linalg.eigh(K.T @ K)
    nonzero = size > EIGENVALUE_ROUNDING * max(size[-1], np.finfo(float).tiny)
    if not nonzero.any():
        return np.zeros((len(K), 1)), np.zeros((K.shape[1], 1))
    T = directions[:, nonzero] * np.sqrt(len(K) / size[nonzero])
    return K @ T, T


# Some BLAS kernels report an invalid operation on finite numbers. Were it a real one, the new value
# would be no number, and no step to it is accepted.
@np.errstate(invalid="ignore")
def ascend(U: AnyArray, R: Product, start: Array, max_iter: int) -> list[tuple[Array, float]]:
    """Nesterov's accelerated gradient ascent on phi(Ua)'R phi(Ua), phi(x) = 2/(1+exp(-x)) - 1.

    Returns weights and objective of the accepted steps, the start included; the objective always
    rises. U may be in single precision, which halves the time: gains below MIN_GAIN do not count.
    """

    def smooth(*outputs: Array) -> list[tuple[float, Array]]:
        """For each U a, the objective there, and its gradient with respect to U a."""
        Z = np.tanh(np.stack(outputs, axis=1) / 2)
        RZ = R(Z)
        pulls = RZ * (1 - Z * Z)
        return [(float(Z[:, k] @ RZ[:, k]), pulls[:, k]) for k in range(len(outputs))]

    # Products with R and U cost the most time: U a is updated along with every a, and where the
    # next step goes on from, if this one is accepted, is multiplied by R along with it.
    a, Ua = start, (U @ start.astype(U.dtype)).astype(np.float64)
    value, pull = smooth(Ua)[0]
    steps = [(a, value)]
    length = longest = 1.0 / max(abs(float(Ua @ R(Ua))), np.finfo(float).tiny)
    ahead, U_ahead, a_pull, momentum = a, Ua, pull, 1.0
    for _ in range(max_iter):
        slope = U.T @ pull.astype(U.dtype)
        new, U_new = ahead + length * slope, U_ahead + length * (U @ slope)
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        beyond = (momentum - 1) / grown
        U_next = U_new + beyond * (U_new - Ua)
        (new_value, new_pull), (_, next_pull) = smooth(U_new, U_next)
        if new_value - value > MIN_GAIN * abs(value):
            ahead, U_ahead, pull = new + beyond * (new - a), U_next, next_pull
            a, Ua, a_pull, value, momentum = new, U_new, new_pull, new_value, grown
            steps.append((a, value))
            length *= LENGTH_FACTOR
        elif ahead is not a:  # the momentum overshot: restart from the best point without it
            ahead, U_ahead, pull, momentum = a, Ua, a_pull, 1.0
        elif length > MIN_LENGTH * longest:
            length /= 4
        else:
            break
    return steps


def similarity_of_labels(y: AnyArray) -> Product:
    """The product with S, S_ij = +1 where labels agree and -1 elsewhere; S is never formed."""
    groups = np.unique(y, return_inverse=True)[1]
    member = csr_array((np.ones(len(y)), (groups, np.arange(len(y)))))

    def product(V: Array) -> Array:
        result: Array = 2 * (member @ V)[groups] - V.sum(axis=0)
        return result

    return product


def similarity_of_pairs(affinity: Affinity, run: threads.Run) -> Product:
    """The product with S of an affinity: y for its pairs, +1 on the diagonal, 0 elsewhere.

    The ascent is made of these products, some thousands of millions of additions per bit, and
    memory is what they wait for. With few distinct y, as for similar and dissimilar pairs, each has
    a list of its places in S: two bytes per pair where twelve would hold its place and value. A
    product with two vectors reads the list once. One with many is left to matrix products, S made
    dense row by row, unless S has few entries.
    """
    n = affinity.n_points
    y = affinity.read_as("similarity")
    upper = csr_array((y, (affinity.i, affinity.j)), shape=(n, n))
    S = upper + upper.T
    rows = threads.chunks(n, ROWS_PER_TASK)
    levels = np.unique(S.data[S.data != 0])
    few = len(levels) <= MAX_LISTED_VALUES
    places = [(level, *_places(S, level)) for level in levels] if few else []

    def product(V: Array) -> Array:
        columns = np.array(V, np.float64, order="C").reshape(n, -1)
        result = columns.copy()
        listed = columns.shape[1] <= 2 and few
        dense = S.nnz > DENSE_SHARE * n**2

        def part(at: slice) -> None:
            if not listed:
                block = S[at].toarray() if dense else S[at]
                result[at] += block @ columns
                return
            add = _add if columns.shape[1] == 1 else _add_two
            for level, start, place in places:
                add(level, start, place, columns, at.start, at.stop, result)

        run(part, rows)
        return result.reshape(V.shape)

    return product


def _places(S: csr_array, level: float) -> tuple[Numbers, AnyArray]:
    """Places of S that hold `level`: where each row starts in the column numbers, and these."""
    here = level == S.data
    start = np.append(0, np.cumsum(here))[S.indptr].astype(np.int64)
    short = np.uint16 if S.shape[1] <= 1 << 16 else np.uint32
    return start, S.indices[here].astype(short)


@kernel
def _add(
    level: float,
    start: AnyArray,
    place: AnyArray,
    V: AnyArray,
    first: int,
    last: int,
    result: AnyArray,
) -> None:
    """Add level * (sum of V (n, 1) over a row's places) to the rows first..last-1 of `result`.

    Four sums at a time: each addition waits for the one before it.
    """
    for n in range(first, last):
        a = b = c = d = 0.0
        end = start[n + 1]
        unrolled_end = end - (end - start[n]) % 4
        for e in range(start[n], unrolled_end, 4):
            a += V[place[e], 0]
            b += V[place[e + 1], 0]
            c += V[place[e + 2], 0]
            d += V[place[e + 3], 0]
        for e in range(unrolled_end, end):
            a += V[place[e], 0]
        result[n, 0] += level * ((a + b) + (c + d))


@kernel
def _add_two(
    level: float,
    start: AnyArray,
    place: AnyArray,
    V: AnyArray,
    first: int,
    last: int,
    result: AnyArray,
) -> None:
    """Add level * (sum of V (n, 2) over a row's places), as `_add` does for V (n, 1)."""
    for n in range(first, last):
        a = b = c = d = 0.0
        end = start[n + 1]
        unrolled_end = end - (end - start[n]) % 2
        for e in range(start[n], unrolled_end, 2):
            at, after = place[e], place[e + 1]
            a += V[at, 0]
            b += V[at, 1]
            c += V[after, 0]
            d += V[after, 1]
        for e in range(unrolled_end, end):
            a += V[place[e], 0]
            b += V[place[e], 1]
        result[n, 0] += level * (a + c)
        result[n, 1] += level * (b + d)
