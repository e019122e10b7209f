"""KSH: supervised hashing with kernels (Liu et al. 2012).

The inner products of the codes should be b S, with S_ij = +-1 for similar and dissimilar points.
Bit by bit, with R = b S - sum of y y' over the bits so far,

    max y'Ry   over y = sign(K a),   a'K'Ka = n

K holds centred kernels of the points with a few anchors, or the centred points themselves. Without
the sign this is an eigenproblem. Gradient ascent, with the sign smoothed to 2 / (1 + exp(-x)) - 1,
starts from its solution, and its result is taken if y'Ry, with the sign itself, is then higher.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

from auxhash import checks
from auxhash.affinity import Affinity, from_labels
from auxhash.affinity.distances import squared_distances
from auxhash.affinity.draws import RandomState
from auxhash.baselines.method import Pairwise
from auxhash.codes import sign
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.kernels import kernel

Product = Callable[[Array], Array]  # with a symmetric matrix

NOTHING = 1e-10  # eigenvalue of K'K, relative to the largest: rounding
DRAWN = 100, 500  # similar and dissimilar points per point, where not all pairs are learnt from
GAIN = 2e-4  # relative gain that a step needs to be accepted
LONGER = 1.2  # factor of the step length after an accepted step
SHORTEST = 1e-2  # step length at which the ascent stops, relative to the first
ROWS = 1024  # of S, per task of a thread
FEW = 8  # distinct values of S that are kept apart, each as a list of places without values


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

    anchors_: Array
    width_: float
    center_: Array
    weights_: Array
    objective_: Array
    n_iter_: int

    def __init__(
        self,
        n_bits: int = 32,
        n_anchors: int = 300,
        max_iter: int = 500,
        random_state: RandomState = None,
        hash_function: Literal["rbf", "linear"] = "rbf",
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.max_iter = max_iter
        self.random_state = random_state
        self.hash_function = hash_function
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole("n_anchors", self.n_anchors, 1)
        checks.whole("max_iter", self.max_iter, 0)
        if self.hash_function not in ("rbf", "linear"):
            raise checks.unknown("hash_function", self.hash_function, ("rbf", "linear"))

    def _learn(
        self,
        X: Array,
        y: NDArray[Any] | None,
        affinity: Affinity | None,
        rng: np.random.Generator,
    ) -> None:
        if self.hash_function == "rbf":
            self.anchors_ = X[np.sort(rng.permutation(len(X))[: self.n_anchors])]
            self.width_ = float(squared_distances(X, self.anchors_).mean()) or 1.0
        K = self._features(X)
        self.center_ = K.mean(axis=0)
        U, T = whitened(K - self.center_)
        with threads.pool(self.n_jobs) as run:
            if affinity is None and y is not None and y.ndim == 1:
                S = similarity_of_labels(y)
            else:
                if affinity is None:
                    affinity = from_labels(np.asarray(y), *DRAWN, rng)
                S = similarity_of_pairs(affinity, run)
            weights, self.objective_ = self._bits(U, S)
        self.weights_ = T @ weights

    def _features(self, X: NDArray[Any]) -> Array:
        """What a bit is a weighted sum of, before centring: kernels with the anchors, or X."""
        points = np.asarray(X, np.float64)
        if self.hash_function == "linear":
            return points
        kernels: Array = np.exp(squared_distances(points, self.anchors_) / (-2 * self.width_))
        return kernels

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
                product: Array = b * S(v) - past @ (past.T @ v)
                return product

            last = len(M) - 1
            start = eigh(M, subset_by_index=(last, last))[1][:, 0]
            steps = ascend(single, residual, start, self.max_iter)
            self.n_iter_ = max(self.n_iter_, len(steps))
            end = steps[-1][0]
            found = [(float(z @ residual(z)), z, a) for z, a in _codes(U, (start, end))]
            objective[k] = found[0][0], max(found[0][0], found[1][0])
            _, Y[:, k], weights[:, k] = found[found[1][0] > found[0][0]]
            projected = U.T @ Y[:, k]
            M = M - np.outer(projected, projected)
        return weights, objective

    def _outputs(self, X: NDArray[Any]) -> Array:
        outputs: Array = (self._features(X) - self.center_) @ self.weights_
        return outputs


def _codes(U: Array, weights: tuple[Array, ...]) -> list[tuple[Array, Array]]:
    return [(sign(U @ a).astype(np.float64), a) for a in weights]


def whitened(K: Array) -> tuple[Array, Array]:
    """U = K T with U'U = n I, and T: the constraint a'K'Ka = n becomes a unit length."""
    size, directions = np.linalg.eigh(K.T @ K)
    kept = size > NOTHING * max(size[-1], np.finfo(float).tiny)
    if not kept.any():
        return np.zeros((len(K), 1)), np.zeros((K.shape[1], 1))
    T = directions[:, kept] * np.sqrt(len(K) / size[kept])
    return K @ T, T


def ascend(U: NDArray[Any], R: Product, start: Array, max_iter: int) -> list[tuple[Array, float]]:
    """Nesterov's accelerated gradient ascent on phi(Ua)'R phi(Ua), phi(x) = 2/(1+exp(-x)) - 1.

    Returns weights and objective of the accepted steps, the start included; the objective always
    rises. U may be in single precision, which halves the time: gains below GAIN do not count.
    """

    def smooth(output: Array) -> tuple[float, Array]:
        """The objective at U a = output, and its gradient with respect to U a."""
        z = np.tanh(output / 2)
        Rz = R(z)
        return float(z @ Rz), Rz * (1 - z * z)

    # Products with U cost the most time: U a is updated along with every a.
    a, Ua = start, (U @ start.astype(U.dtype)).astype(np.float64)
    value, pull = smooth(Ua)
    steps = [(a, value)]
    length = longest = 1.0 / max(abs(float(Ua @ R(Ua))), np.finfo(float).tiny)
    ahead, U_ahead, a_pull, momentum = a, Ua, pull, 1.0
    for _ in range(max_iter):
        slope = U.T @ pull.astype(U.dtype)
        new, U_new = ahead + length * slope, U_ahead + length * (U @ slope)
        new_value, new_pull = smooth(U_new)
        if new_value - value > GAIN * abs(value):
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            beyond = (momentum - 1) / grown
            ahead, U_ahead = new + beyond * (new - a), U_new + beyond * (U_new - Ua)
            a, Ua, a_pull, value, momentum = new, U_new, new_pull, new_value, grown
            steps.append((a, value))
            pull = smooth(U_ahead)[1]
            length *= LONGER
        elif ahead is not a:  # the momentum overshot: restart from the best point without it
            ahead, U_ahead, pull, momentum = a, Ua, a_pull, 1.0
        elif length > SHORTEST * longest:
            length /= 4
        else:
            break
    return steps


def similarity_of_labels(y: NDArray[Any]) -> Product:
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
    a list of its places in S: two bytes per pair where twelve would hold its place and value.
    """
    n = affinity.n_points
    y = affinity.read_as("similarity")
    upper = csr_array((y, (affinity.i, affinity.j)), shape=(n, n))
    S = upper + upper.T
    rows = threads.chunks(n, ROWS)
    levels = np.unique(S.data[S.data != 0])
    places = [(level, *_places(S, level)) for level in levels] if len(levels) <= FEW else []

    def product(V: Array) -> Array:
        result = np.array(V, np.float64)
        vector = V.ndim == 1 and len(levels) <= FEW

        def part(at: slice) -> None:
            if not vector:
                result[at] += S[at] @ V
                return
            for level, start, place in places:
                _add(level, start, place, V, at.start, at.stop, result)

        run(part, rows)
        return result

    return product


def _places(S: csr_array, level: float) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Where S is `level`: the column numbers, row after row, and where each row starts in them."""
    here = level == S.data
    start = np.append(0, np.cumsum(here))[S.indptr].astype(np.int64)
    short = np.uint16 if S.shape[1] <= 1 << 16 else np.uint32
    return start, S.indices[here].astype(short)


@kernel
def _add(level: float, start: Any, place: Any, v: Any, first: int, last: int, result: Any) -> None:
    """Add level * (sum of v over a row's places) to the rows first..last-1 of `result`.

    Four sums at a time: each addition waits for the one before it.
    """
    for n in range(first, last):
        a = b = c = d = 0.0
        end = start[n + 1]
        whole = end - (end - start[n]) % 4
        for e in range(start[n], whole, 4):
            a += v[place[e]]
            b += v[place[e + 1]]
            c += v[place[e + 2]]
            d += v[place[e + 3]]
        for e in range(whole, end):
            a += v[place[e]]
        result[n] += level * ((a + b) + (c + d))
