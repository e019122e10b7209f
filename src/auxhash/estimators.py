"""MACHash and TwoStepHash: the scikit-learn face of the algorithm."""

import os
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from auxhash import affinity as affinities
from auxhash import checkpoint as checkpoints
from auxhash import hashfunctions, interrupt, losses, mac, metrics, progress, zstep
from auxhash.affinity import Affinity
from auxhash.checkpoint import Checkpoint
from auxhash.codes import Codes, as_codes, pack, sign
from auxhash.draws import RandomState, generator
from auxhash.hasher import (
    SCORE_K,
    Hasher,
    check_number,
    check_pairs,
    check_stored,
    fingerprint,
)
from auxhash.hashfunctions import HashFunction
from auxhash.refine import REPORTS, Refine

# Of no consequence to the result: a run can go on with others.
NOT_OF_THE_RUN = ("n_jobs", "verbose")


class MACHash(Hasher):
    """Learn a hash function by minimising an affinity-based loss with auxiliary coordinates.

    Args:
        n_bits: length b of the codes.
        loss: "ksh", "esplh", "bre", "ee", "hinge" or a function of (d, y, b).
        z_step: "descent", "cut", "quad" or a solver (see `auxhash.zstep`).
        hash_function: "linear", "rbf", "network" (one hidden layer), "trees", or a scikit-learn
            classifier, cloned for every bit.
        n_similar, n_dissimilar: kappa+ and kappa-, drawn for each point; None takes all.
        mu: mu_1, the first positive mu, or "auto".
        alpha: factor from one mu to the next.
        max_iter: iterations at most, after the two-step solution.
        max_sweeps: sweeps over the bits in a Z step at most.
        penalty: "quadratic" or "augmented" (Lagrangian).
        validation: None; the fraction of the points to hold out; or (X, y) held out already.
            A step that lowers precision at 100 of these queries among the training points is
            not accepted.
        C: the SVM's cost of a margin violation.
        refine: "auto" refines the hash function after MAC wherever it has a gradient ("linear",
            "rbf", "network"); `auxhash.refine.Refine(...)` does so with settings of your own;
            None leaves it as MAC made it, as in the paper. Refinement never raises L(h).
        init: codes (n, n_bits) of -1 and +1 to begin with, in place of those of mu = 0.
        warm_start: whether fitting again goes on from the hash function learnt before.
        random_state: seed, Generator or RandomState. The same seed gives the same codes on any
            number of threads.
        n_jobs: threads; None takes every core.
        verbose: 1 shows a progress bar.

    Attributes:
        hash_function_: the learnt hash function, of the lowest L(h) among the accepted steps.
        loss_: its L(h) on the training affinities.
        two_step_: the hash function at mu = 0, which is what two-step hashing would have found.
        history_: list of `mac.Step`, one an iteration; those of the refinement, where Z = h(X),
            have an infinite mu.
        n_iter_: steps made, the one at mu = 0 included.
        affinity_: the training affinities.
        codes_: packed codes of the training points, in their order.
        interrupted_: whether Ctrl-C stopped the training; what was learnt is the best up to there.
    """

    hash_function_: HashFunction
    loss_: float
    history_: list[mac.Step]
    n_iter_: int
    interrupted_: bool

    def __init__(
        self,
        n_bits: int = 32,
        loss: Any = "ksh",
        z_step: Any = "descent",
        hash_function: Any = "linear",
        n_similar: int | None = 100,
        n_dissimilar: int | None = 500,
        mu: float | Literal["auto"] = "auto",
        alpha: float = 1.4,
        max_iter: int = 50,
        max_sweeps: int = 2,
        penalty: Literal["quadratic", "augmented"] = "quadratic",
        validation: float | tuple[ArrayLike, ArrayLike] | None = None,
        C: float = 100.0,
        refine: Refine | Literal["auto"] | None = "auto",
        init: ArrayLike | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.z_step = z_step
        self.hash_function = hash_function
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.mu = mu
        self.alpha = alpha
        self.max_iter = max_iter
        self.max_sweeps = max_sweeps
        self.penalty = penalty
        self.validation = validation
        self.C = C
        self.refine = refine
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        affinity: Affinity | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from features X (n, D) and labels y, or from an affinity of the n points.

        With both, the affinity is learnt from and y only serves validation and `score`.

        Args:
            checkpoint: a folder to keep the state of the training in. If the process is killed,
                the same call with the same data and parameters goes on where it stopped and ends
                with the same codes, to the last bit; after the end it gives the result at once.
                A refinement that was interrupted starts over. A loss, a solver or a
                hash function of your own is recognised by name, and must not have changed.

        Ctrl-C stops after the current step with the best hash function so far, and a
        `TrainingInterrupted` warning; a second one stops at once.
        """
        self._check_parameters()
        points, labels = self._check_data(X, y, affinity)
        if checkpoint is None:
            return self._learn(points, labels, affinity, None)
        # Before any generator among the parameters is drawn from.
        run = self._in_words(points, labels, affinity)
        with checkpoints.opened(checkpoint, run) as kept:
            return self._learn(points, labels, affinity, kept)

    def _learn(
        self,
        points: NDArray[Any],
        labels: NDArray[Any] | None,
        affinity: Affinity | None,
        kept: Checkpoint | None,
    ) -> Self:
        mark = fingerprint(points, labels)
        # One generator a part, so that no part's draws depend on another's.
        generators = generator(self.random_state).spawn(6)
        if kept is not None:
            generators = kept.generators(generators)
        draws, random, centres, solving, holding, refining = generators
        points, labels, affinity, queries = self._hold_out(points, labels, affinity, holding)
        if affinity is None:
            affinity = affinities.from_labels(
                labels, self.n_similar, self.n_dissimilar, draws, self.n_jobs
            )
        going_on = self.warm_start and hasattr(self, "hash_function_") and self.init is None
        h, Z, free = self._start(points, random, centres)
        F = h.features(points, self.n_jobs)
        problem = zstep.Problem(affinity, self.loss, self.n_bits, self.n_jobs)
        validate = None
        if queries is not None:
            validate = _Precision(
                F, labels, h.features(queries[0], self.n_jobs), queries[1], self.n_jobs
            )
        steps = self._steps(problem, F, h, Z, free, solving, refining, validate, kept)
        history: list[mac.Step] = []
        if kept is not None and kept.saved is not None:
            history = list(kept.saved.history)
        with interrupt.watching() as watch:
            step, state = mac.lowest(self._record(watch.until_pressed(steps), history))
        found = step.loss, state.h, state.H
        if going_on and problem.loss(Z) <= step.loss:
            found = problem.loss(Z), h, Z
        self.loss_, self.hash_function_, codes = found
        self.history_ = history
        self.n_iter_ = len(history)
        self.affinity_ = affinity
        self.codes_ = pack(codes)
        self.labels_ = labels
        self.fingerprint_ = mark
        self.interrupted_ = watch.pressed
        if self.interrupted_:
            _warn_interrupted(history[-1], kept)
        return self

    def _steps(
        self,
        problem: zstep.Problem,
        F: NDArray[np.float64],
        h: HashFunction,
        Z: Codes,
        free: bool,
        solving: np.random.Generator,
        refining: np.random.Generator,
        validate: mac.Validate | None,
        kept: Checkpoint | None,
    ) -> Iterable[tuple[mac.Step, mac.State]]:
        """MAC and refinement, from the beginning or from where an interrupted run stopped."""
        algorithm, refine = self._algorithm(), self._refinement(h)
        saved = None if kept is None else kept.saved
        steps: Iterable[tuple[mac.Step, mac.State]]
        if saved is None:
            steps = algorithm.steps(problem, F, h, Z, solving, free, validate)
        else:
            solving = saved.rng
            later = algorithm.path(problem, F, *saved.pairs[-1], solving, validate)
            steps = chain(saved.pairs, later)
        if refine is not None:
            steps = refine.after(steps, problem, F, refining, validate)
        steps = self._limit(steps)
        if saved is not None and saved.finished:
            steps = saved.pairs
        if kept is not None:
            kept.check(h)
            steps = kept.keep(steps, solving)
        if self.verbose:
            more = 0 if refine is None else REPORTS
            steps = progress.show(steps, problem.last_mu, self.alpha, self.max_iter, more)
        return steps

    def _in_words(
        self, X: NDArray[Any], y: NDArray[Any] | None, affinity: Affinity | None
    ) -> checkpoints.Run:
        """All that the result depends on."""
        parts: dict[str, Any] = {
            "method": type(self).__name__,
            "X": X,
            "y": y,
            "affinity": affinity,
        }
        parts |= self.get_params(deep=False)
        if self.warm_start and hasattr(self, "hash_function_"):
            parts["the model to go on from"] = (self.hash_function_, self.codes_)
        return {
            name: checkpoints.in_words(value)
            for name, value in parts.items()
            if name not in NOT_OF_THE_RUN
        }

    def _outputs(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return self.hash_function_.decision(
            self.hash_function_.features(X, self.n_jobs), self.n_jobs
        )

    def _algorithm(self) -> mac.MAC:
        solver = zstep.get(self.z_step)
        return mac.MAC(solver, self.mu, self.alpha, self.max_iter, self.max_sweeps, self.penalty)

    def _refinement(self, h: HashFunction) -> Refine | None:
        if self.refine == "auto":
            return Refine() if hashfunctions.is_smooth(h) else None
        if self.refine is not None and not hashfunctions.is_smooth(h):
            raise TypeError(f"{type(h).__name__} has no gradient to refine it by; set refine=None")
        return self.refine

    def _limit(
        self, steps: Iterable[tuple[mac.Step, mac.State]]
    ) -> Iterable[tuple[mac.Step, mac.State]]:
        return steps

    def _record(
        self, steps: Iterable[tuple[mac.Step, mac.State]], history: list[mac.Step]
    ) -> Iterator[tuple[mac.Step, mac.State]]:
        """Pass the steps on; append those that an interrupted run has not made to the history."""
        for step, state in steps:
            if step.iteration == 0:
                self.two_step_ = state.h
            if step.iteration >= len(history):
                history.append(step)
            yield step, state

    def _start(
        self, X: NDArray[Any], codes: np.random.Generator, centres: np.random.Generator
    ) -> tuple[HashFunction, Codes, bool]:
        """The hash function to begin with, the codes, and whether these are only a start."""
        if self.init is not None:
            Z = as_codes(self.init, "init")
            if Z.shape != (len(X), self.n_bits):
                raise ValueError(
                    f"init must be of shape {(len(X), self.n_bits)} (points learnt from, n_bits), "
                    f"got {Z.shape}"
                )
        if self.warm_start and hasattr(self, "hash_function_"):
            h: HashFunction = self.hash_function_
            old = sign(h.decision(h.features(X, self.n_jobs), self.n_jobs))
            if old.shape[1] != self.n_bits:
                raise ValueError(
                    f"warm_start goes on from {old.shape[1]} bits; n_bits is {self.n_bits} now"
                )
            return h, (old if self.init is None else Z), self.init is None
        h = hashfunctions.get(self.hash_function, self.C).prepare(X, centres)
        if self.init is not None:
            return h, Z, False
        random = codes.integers(0, 2, (len(X), self.n_bits), dtype=np.int8)
        return h, (2 * random - 1).astype(np.int8), True

    def _hold_out(
        self,
        X: NDArray[Any],
        y: NDArray[Any] | None,
        affinity: Affinity | None,
        rng: np.random.Generator,
    ) -> tuple[Any, Any, Affinity | None, tuple[Any, Any] | None]:
        """The training points, and the (X, y) to validate on."""
        if self.validation is None:
            return X, y, affinity, None
        if y is None:
            raise ValueError("validation measures precision and needs y")
        if isinstance(self.validation, tuple):
            queries = validate_data(self, self.validation[0], reset=False)
            labels = np.asarray(self.validation[1])
            if len(queries) != len(labels):
                raise ValueError(f"validation has {len(queries)} points but {len(labels)} labels")
            return X, y, affinity, (queries, labels)
        order = rng.permutation(len(X))
        n_held = round(self.validation * len(X))
        if not 1 <= n_held <= len(X) - 2:
            raise ValueError(
                f"validation={self.validation} of {len(X)} points would hold out {n_held}"
            )
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        if affinity is not None:
            affinity = affinity.subset(kept)
        return X[kept], y[kept], affinity, (X[held], y[held])

    def _check_data(
        self, X: ArrayLike, y: ArrayLike | None, affinity: Affinity | None
    ) -> tuple[Any, Any]:
        going_on = self.warm_start and hasattr(self, "hash_function_")
        return check_pairs(self, X, y, affinity, reset=not going_on)

    def _check_parameters(self) -> None:
        check_stored(self)
        losses.get(self.loss)
        zstep.get(self.z_step)
        hashfunctions.get(self.hash_function, self.C)
        check_number("n_bits", self.n_bits, int, 1)
        check_number("max_iter", self.max_iter, int, 1)
        check_number("max_sweeps", self.max_sweeps, int, 1)
        check_number("alpha", self.alpha, float, 1, strict=True)
        check_number("C", self.C, float, 0, strict=True)
        if self.mu != "auto":
            check_number("mu", self.mu, float, 0, strict=True, instead=' or "auto"')
        if not (self.refine in ("auto", None) or isinstance(self.refine, Refine)):
            raise ValueError(f'refine must be "auto", None or a Refine, got {self.refine!r}')
        if self.penalty not in ("quadratic", "augmented"):
            raise ValueError(f'penalty must be "quadratic" or "augmented", got {self.penalty!r}')
        if isinstance(self.validation, tuple):
            if len(self.validation) != 2:
                raise ValueError("validation must be a fraction or a pair (X, y)")
        elif self.validation is not None:
            check_number("validation", self.validation, float, 0, strict=True)
            if self.validation >= 1:
                raise ValueError(
                    f"validation must be a fraction below 1 or a pair (X, y), got {self.validation}"
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class TwoStepHash(MACHash):
    """Two-step hashing: codes first, then a hash function for them. MAC that stops at mu = 0.

    With z_step="quad" this is TSH, with "cut" FastHash. The parameters are MACHash's, and those of
    the iterations after mu = 0 are of no consequence.
    """

    def _limit(
        self, steps: Iterable[tuple[mac.Step, mac.State]]
    ) -> Iterable[tuple[mac.Step, mac.State]]:
        return islice(steps, 1)


def _warn_interrupted(last: mac.Step, kept: Checkpoint | None) -> None:
    on = "fit with checkpoint=... to be able to go on"
    if kept is not None:
        on = f"fit with the same data, parameters and checkpoint={str(kept.path.parent)!r} to go on"
    warnings.warn(
        f"interrupted after iteration {last.iteration}: the model is the best so far; {on}",
        interrupt.TrainingInterrupted,
        stacklevel=4,
    )


class _Precision:
    """Precision at k of held-out queries among the training points, for any hash function."""

    def __init__(
        self,
        base: NDArray[np.float64],
        base_labels: NDArray[Any],
        queries: NDArray[np.float64],
        query_labels: NDArray[Any],
        n_jobs: int | None,
    ) -> None:
        self.base, self.queries = base, queries
        self.labels = query_labels, base_labels
        self.n_jobs = n_jobs

    def __call__(self, h: HashFunction) -> float:
        queries, base = (sign(h.decision(F, self.n_jobs)) for F in (self.queries, self.base))
        k = min(SCORE_K, len(base))
        return metrics.precision_at_k(queries, base, *self.labels, k, self.n_jobs)
