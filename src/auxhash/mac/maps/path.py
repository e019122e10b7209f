"""MAC for a continuous map F: Z step and regression step in turn while mu grows (sec. 5).

    min E(Z) such that Z = F(X), by the penalty   E(Z) + mu/n |Z - F(X)|^2

The Z step is a regularised embedding, by gradient steps (L-BFGS); the other is a regression of Z on
X. Neither raises this value. At mu = 0 stands what MAC is compared with: the direct embedding, and
the direct regression onto it. Other than codes, Z agrees with F(X) in the limit alone: the path
ends where both differ by little.

`Path.steps` is a generator, as `mac.loop` has it.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from auxhash.compute import clock
from auxhash.compute.arrays import Array
from auxhash.compute.checks import integer
from auxhash.compute.registry import register
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.maps.energy import Energy

START_DEVIATION = 1e-2  # of the first principal coordinate, where the direct embedding starts
FIRST_PENALTY_SHARE = 0.01  # of E(Z), that the penalty is at mu_1
N_STEPS_REMEMBERED = 10  # past steps that L-BFGS makes a step of
MIN_STEP_GAIN = 1e-6  # of a step, relative to the value; with less, the Z step ends


@register("MapStep")
@dataclass(frozen=True)
class MapStep:
    """Numbers of one iteration."""

    iteration: int  # 0: the direct embedding, and the regression onto it
    mu: float
    loss: float  # E(F(X))
    free_loss: float  # E(Z)
    penalized_loss: float  # with the penalty, after the regression step
    distance: float  # root mean square of Z - F(X), relative to that of Z around its mean
    seconds: float  # NaN in a model that was loaded: equal models are equal files

    def check_read(self) -> None:
        integer("iteration", self.iteration, 0)
        numbers = self.mu, self.loss, self.free_loss, self.penalized_loss, self.distance
        if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
            raise ValueError(f"a step must hold finite numbers, got {numbers}")


@dataclass(frozen=True, eq=False)
class MapState:
    """State of the algorithm: a mapping, F(X) and Z."""

    mapping: HashFunction
    F: Array  # (n, m)
    Z: Array  # (n, m)


# The regression step: Z (n, m) -> a mapping nearer to it than the last one, and its outputs F(X)
Regression = Callable[[Array], tuple[HashFunction, Array]]


@dataclass(frozen=True)
class Path:
    """The algorithm's settings; `mu` is mu_1, "auto" the mu at which the penalty is 1% of E(Z)."""

    mu: float | Literal["auto"] = "auto"
    alpha: float = 1.4
    max_iter: int = 50
    tol: float = 0.01  # distance at which Z and F(X) agree
    first_steps: int = 1000  # gradient steps of the direct embedding, at most
    z_steps: int = 30  # of the other Z steps

    def steps(
        self, energy: Energy, regress: Regression, Z: Array
    ) -> Iterator[tuple[MapStep, MapState]]:
        """Run from a map Z; yield each step and its state."""
        began, n, mu = clock.seconds(), len(Z), 0.0
        Z, free_loss = z_step(energy, Z, Z, mu, self.first_steps)
        for iteration in range(self.max_iter + 1):
            mapping, F = regress(Z)
            apart = float(np.square(Z - F).sum())
            distance = math.sqrt(apart / (np.square(Z - Z.mean(axis=0)).sum() or 1.0))
            penalized = free_loss + mu / n * apart
            seconds = clock.seconds() - began
            loss = energy.value(F)
            step = MapStep(iteration, mu, loss, free_loss, penalized, distance, seconds)
            yield step, MapState(mapping, F, Z)
            if distance <= self.tol:
                return
            began, mu = clock.seconds(), self._next_mu(mu, free_loss * n / apart)
            Z, free_loss = z_step(energy, Z, F, mu, self.z_steps)

    def _next_mu(self, mu: float, even: float) -> float:
        """Return the next mu; `even` is the one at which penalty and E(Z) are equal."""
        if mu:
            return mu * self.alpha
        return FIRST_PENALTY_SHARE * even if self.mu == "auto" else float(self.mu)


def z_step(energy: Energy, Z: Array, F: Array, mu: float, n_steps: int) -> tuple[Array, float]:
    """Lower E(Z) + mu/n |Z - F|^2 by `n_steps` gradient steps at most; return Z and E(Z)."""
    n, shape = len(Z), Z.shape

    def value(flat: Array) -> tuple[float, Array]:  # times n: numbers of about 1
        new = flat.reshape(shape)
        free_loss, slope = energy(new)
        apart = new - F
        slope = n * slope + 2 * mu * apart
        return n * free_loss + mu * float(np.square(apart).sum()), slope.ravel()

    options = {"maxiter": n_steps, "maxcor": N_STEPS_REMEMBERED, "gtol": 0.0, "ftol": MIN_STEP_GAIN}
    result = minimize(value, Z.ravel(), jac=True, method="L-BFGS-B", options=options)
    Z = result.x.reshape(shape)
    return Z, energy.value(Z)


def lowest(steps: Iterable[tuple[MapStep, MapState]]) -> tuple[MapStep, MapState]:
    """Return the step with the lowest E(F(X)), the direct regression included."""
    return min(steps, key=lambda pair: pair[0].loss)


def principal(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Return the first principal coordinates (n, n_components), small; with a little noise.

    They are approximate, in a time in proportion to the size of X. Equal points would stay together
    for ever without noise, and further dimensions be empty.
    """
    from sklearn.utils.extmath import randomized_svd  # imported for training alone

    known = min(n_components, *X.shape)
    U, S, _ = randomized_svd(X - X.mean(axis=0), known, random_state=int(rng.integers(1 << 31)))
    places = U * S
    Z = START_DEVIATION * START_DEVIATION * rng.standard_normal((len(X), n_components))
    Z[:, :known] += START_DEVIATION / (places[:, 0].std() or 1.0) * places
    return Z
