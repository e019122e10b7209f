"""Alternatives to refinement, tried and not built in: see the last table of `optima`."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from auxhash import MACHash
from auxhash.codes import pack, sign
from auxhash.learn.hasher import Hasher
from auxhash.learn.smooth import Refine
from auxhash.mac import affinity, hashfunctions, loop, zstep
from auxhash.mac.affinity import Affinity


class Lead(Hasher):
    """A method that ends with a `hash_function_`, found in any way."""

    def __init__(self, n_bits: int = 32, n_steps: int = 1000, random_state: int = 0) -> None:
        self.n_bits, self.n_steps, self.random_state = n_bits, n_steps, random_state

    def encode(self, X: Any) -> Any:
        h = self.hash_function_
        return pack(sign(h.decision(h.features(X))))

    def _machash(self, seed: int) -> MACHash:
        return MACHash(self.n_bits, refine=Refine(n_steps=self.n_steps), random_state=seed)

    def _refined(
        self, problem: zstep.Problem, F: Any, h: Any, rng: np.random.Generator
    ) -> list[tuple[float, Any]]:
        """L(h) and h at each report of a refinement that starts from h."""
        H = sign(h.decision(F))
        loss = problem.loss(H)
        step = loop.Step(0, np.inf, loss, loss, loss, 0, float("nan"), True, 0.0)
        state = loop.State(h, H, H, H, None)
        steps = Refine(n_steps=self.n_steps).steps(step, state, problem, F, rng)
        return [(step.loss, state.h) for step, state in steps]


class Restarted(Lead):
    """The lowest L(h) of three runs with different seeds."""

    def fit(self, X: Any, y: Any, affinity: Affinity) -> "Restarted":
        runs = [
            self._machash(self.random_state + 1000 * k).fit(X, y, affinity=affinity)
            for k in range(3)
        ]
        self.hash_function_ = min(runs, key=lambda run: run.loss_).hash_function_
        return self


class Again(Lead):
    """Refined, changed, and refined again; the lowest L(h) is kept.

    The change is noise of half the weights' own size, or random directions for the quarter of the
    bits that correlate most with another.
    """

    def __init__(
        self,
        change: Literal["noise", "fresh bits"] = "noise",
        n_bits: int = 32,
        n_steps: int = 1000,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_bits, n_steps, random_state)
        self.change = change

    def fit(self, X: Any, y: Any, affinity: Affinity) -> "Again":
        first = self._machash(self.random_state).fit(X, y, affinity=affinity)
        rng = np.random.default_rng(self.random_state)
        problem = zstep.Problem(affinity, "ksh", self.n_bits)
        F = first.hash_function_.features(X)
        h = self._changed(first.hash_function_, F, rng)
        tried = [(first.loss_, first.hash_function_), *self._refined(problem, F, h, rng)]
        self.hash_function_ = min(tried, key=lambda one: one[0])[1]
        return self

    def _changed(self, h: Any, F: Any, rng: np.random.Generator) -> Any:
        W = h.W.copy()
        if self.change == "noise":
            return replace(h, W=W + 0.5 * W.std(axis=0) * rng.standard_normal(W.shape))
        alike = np.abs(np.corrcoef(sign(h.decision(F)).T))
        np.fill_diagonal(alike, 0)
        worst = np.argsort(-alike.max(axis=1))[: self.n_bits // 4]
        W[:-1, worst] = rng.standard_normal((len(W) - 1, len(worst)))
        W[-1, worst] = -F[:, :-1].mean(axis=0) @ W[:-1, worst]
        return replace(h, W=W)


class Redrawn(Lead):
    """MAC with other pairs, drawn from the same labels, at each mu; then refined or not."""

    def __init__(
        self,
        refine: bool = False,
        n_similar: int = 100,
        n_dissimilar: int = 500,
        n_bits: int = 32,
        n_steps: int = 1000,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_bits, n_steps, random_state)
        self.refine, self.n_similar, self.n_dissimilar = refine, n_similar, n_dissimilar

    def fit(self, X: Any, y: Any, affinity: Affinity) -> "Redrawn":
        rng = np.random.default_rng(self.random_state)
        problem = zstep.Problem(affinity, "ksh", self.n_bits)
        h = hashfunctions.get("linear", 100.0).prepare(X, rng)
        F = h.features(X)
        Z = rng.choice(np.array([-1, 1], np.int8), (len(X), self.n_bits))
        algorithm = loop.MAC(zstep.get("descent"))
        step, state = next(algorithm.steps(problem, F, h, Z, rng, free=True))
        tried = [(step.loss, state.h)]
        while not state.ended and step.iteration < algorithm.max_iter:
            one = replace(algorithm, max_iter=step.iteration + 1)
            step, state = next(one.path(self._draw(y, rng), F, step, state, rng))
            tried.append((problem.loss(state.H), state.h))
        self.hash_function_ = min(tried, key=lambda one: one[0])[1]
        if self.refine:
            tried += self._refined(problem, F, self.hash_function_, rng)
            self.hash_function_ = min(tried, key=lambda one: one[0])[1]
        return self

    def _draw(self, y: Any, rng: np.random.Generator) -> zstep.Problem:
        pairs = affinity.from_labels(y, self.n_similar, self.n_dissimilar, rng)
        return zstep.Problem(pairs, "ksh", self.n_bits)


def leads() -> dict[str, Hasher]:
    """Everything that was tried: one change at a time."""
    return {
        "MAC": MACHash(refine=None),
        "MAC, alpha 1.1": MACHash(alpha=1.1, max_iter=150, refine=None),
        "MAC, augmented": MACHash(penalty="augmented", refine=None),
        "MAC, redrawn": Redrawn(),
        "MAC, redrawn, refined": Redrawn(refine=True),
        "MACcut, refined": MACHash(z_step="cut", mu=0.3),
        "one iteration, refined": MACHash(max_iter=1),
        "best of 3, refined": Restarted(),
        "refined, noise, refined": Again(),
        "refined, fresh bits, refined": Again("fresh bits"),
        "refined, given pairs": MACHash(refine=Refine(pairs="given")),
        "refined, 250 steps": MACHash(refine=Refine(n_steps=250)),
        "refined, 4,000 steps": MACHash(refine=Refine(n_steps=4_000)),
        "refined, no decay": MACHash(hash_function=replace(hashfunctions.linear(), decay=0.0)),
        "refined, flat to steep": MACHash(refine=Refine(steepness=(1.0, 12.0))),
    }
