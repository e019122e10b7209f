"""MACHash and TwoStepHash: the algorithm as scikit-learn estimators."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from auxhash.codes import MAX_BITS, Codes, as_codes, pack
from auxhash.compute import checks, context
from auxhash.compute import device as devices
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.random import RandomState, generator
from auxhash.learn.hasher import Hasher, check_pairs, check_queries, fingerprint, learning
from auxhash.learn.smooth import Refine
from auxhash.learn.training import Settings, Training, interrupt
from auxhash.learn.training import checkpoint as checkpoints
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.learn.training.run import N_GENERATORS
from auxhash.learn.training.validation import TrainingPoints, Validation, ValidationLike
from auxhash.mac import hashfunctions, loop, losses, zstep
from auxhash.mac.affinity import Affinity
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.losses import LossLike
from auxhash.model.fitted import check_stored
from auxhash.model.identity import in_words

WARN_BITS = 1024  # per code, beyond which a warning says what training costs,
WARN_TOTAL_BITS = 10**6  # if all codes together have more than so many
MEMORY_ADVICE = "learn from fewer points, or from fewer pairs (n_similar, n_dissimilar)"
GPU_BYTES_PER_EDGE, GPU_BYTES_PER_BIT = 5, 64  # per end of a pair; per bit of a point
BYTES_PER_BIT = 130  # per bit of a point, on the processor, as measured
PARAMETERS_WITHOUT_EFFECT = ("device", "n_jobs", "verbose")  # a run can go on with others


def run_in_words(
    hasher: Hasher,
    data: Mapping[str, object],
    model: object = None,
    without: Sequence[str] = PARAMETERS_WITHOUT_EFFECT,
) -> checkpoints.RunIdentity:
    """Describe everything that a fit's result depends on, each by its name and as a text.

    `model` is what the fit goes on from; parameters of the names `without` are left out.
    """
    parts = {"method": type(hasher).__name__, **data, **hasher.get_params(deep=False)}
    if model is not None:
        parts["the model to go on from"] = model
    return {name: in_words(value) for name, value in parts.items() if name not in without}


class AffinityHash(Hasher):
    """A hasher that minimises an affinity-based loss, over pairs drawn from labels or given.

    A subclass returns in `_settings` what its training is to do.
    """

    _needs_labels = _takes_several_labels = True

    loss: LossLike
    z_step: str | zstep.Solver
    hash_function: object
    n_similar: int | None
    n_dissimilar: int | None
    max_sweeps: int
    C: float
    random_state: RandomState
    device: devices.DeviceName = "cpu"  # also of what was pickled before there was a choice

    hash_function_: HashFunction
    loss_: float
    history_: list[loop.Step]
    n_iter_: int
    n_learnt_: int
    device_: str
    interrupted_: bool

    @learning
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        affinity: Affinity | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from features X (n, D) and labels y, or from an affinity of the n points.

        With both, the affinity is learnt from and y only serves validation and `score`.

        X may be a memory map, and of bytes, half or single precision: no copy of it is made. Where
        its features would take more than 256 MB, they are computed from it when needed.

        Args:
            checkpoint: a folder to keep the state of the training in. If the process is killed,
                the same call with the same data and parameters goes on where it stopped and ends
                with the same codes, to the last bit; after the end it gives the result at once.
                It is written after each step of MAC, and ten times in a refinement (but for a
                network on a GPU, whose refinement starts over). A loss, a solver or a hash function
                of your own counts as the same if its code and the values it holds are the same.

        Ctrl-C stops after the current step with the best hash function so far, and a
        `TrainingInterrupted` warning; a second one stops at once.
        """
        self._check_parameters()
        checked = check_pairs(self, X, y, affinity, reset=not self._going_on(), short=True)
        points = TrainingPoints(*checked, affinity, self._first_codes(len(checked[0])))
        _warn_of_cost(len(points.X), int(self.n_bits))
        if affinity is not None:
            _warn_of_likeness(affinity)
        if checkpoint is None:
            return self._train(points, None)
        # Before any generator among the parameters is drawn from.
        run = self._in_words(points)
        h = hashfunctions.get(self.hash_function, self.C)
        unstored = hashfunctions.with_defaults(h).unstored()
        with checkpoints.opened(checkpoint, run, unstored) as run_checkpoint:
            return self._train(points, run_checkpoint)

    def _train(self, points: TrainingPoints, run_checkpoint: Checkpoint | None) -> Self:
        # One generator per part, so that no part's draws depend on another's.
        generators = generator(self.random_state).spawn(N_GENERATORS)
        settings, mark = self._settings(), fingerprint(points.X, points.y)
        needed = self._bytes_on_gpu(points)
        device = devices.get(self.device, needed, self._gpu_refusal())
        if device is not devices.CPU:
            device.check_room(needed, "this training")
        settings = replace(settings, device=device)
        if settings.going_on:
            these = len(self.codes_) if mark == self.data_fingerprint_ else 0
            settings = replace(settings, learnt_from=self._learnt_from() - these)
        # A GPU is used by one thread, with its device and its stream.
        n_jobs = None if device is devices.CPU else 1
        with context.using(n_jobs=n_jobs), devices.telling(settings.device, needed, MEMORY_ADVICE):
            result = Training(settings, points, generators, run_checkpoint).run()
        self.device_ = settings.device.name
        self.hash_function_ = result.h
        self.loss_ = result.loss
        self.two_step_ = result.two_step
        self.history_ = result.history
        self.n_iter_ = len(result.history)
        self.affinity_ = result.affinity
        self.codes_ = pack(result.codes)
        self.labels_ = result.labels
        self.n_learnt_ = len(result.codes) + settings.learnt_from
        self.data_fingerprint_ = mark
        self.interrupted_ = result.interrupted
        if self.interrupted_:
            interrupt.warn(f"iteration {result.history[-1].iteration}", "the best", run_checkpoint)
        return self

    def _bytes_on_gpu(self, points: TrainingPoints) -> float:
        """Estimate the GPU memory that training takes, in bytes; points need not be held there."""
        n = len(points.X)
        if points.affinity is not None:
            edges = 2 * len(points.affinity)
        else:
            edges = (
                2 * n * sum(n if k is None else int(k) for k in (self.n_similar, self.n_dissimilar))
            )
        return GPU_BYTES_PER_EDGE * edges + GPU_BYTES_PER_BIT * n * int(self.n_bits)

    def _gpu_refusal(self) -> str:
        """Return the reason why no GPU can do this training; "" where one can."""
        return ""

    def _settings(self) -> Settings:
        raise NotImplementedError

    def _first_codes(self, n: int) -> Codes | None:
        """Return the codes `init` of n points to start from, checked; None if there are none."""
        return None

    def _learnt_from(self) -> int:
        """Number of points that the hash function was learnt from, in earlier fits, too."""
        return int(getattr(self, "n_learnt_", len(self.codes_)))

    def _in_words(self, points: TrainingPoints) -> checkpoints.RunIdentity:
        """Describe everything that the result depends on, each by its name and as a text."""
        data = points._asdict()
        data.pop("init")  # as it is among the parameters, if it is
        if not self._going_on():
            return run_in_words(self, data)
        return run_in_words(self, data, (self.hash_function_, self.codes_, self._learnt_from()))

    def _check_parameters(self) -> None:
        check_stored(self)
        losses.get(self.loss)
        zstep.get(self.z_step)
        hashfunctions.get(self.hash_function, self.C)
        checks.integer("n_bits", self.n_bits, 1, MAX_BITS)
        checks.integer("max_sweeps", self.max_sweeps, 1)
        checks.number("C", self.C, 0, strict=True)


@dataclass(eq=False, repr=False)
class MACHash(AffinityHash):
    """Learn a hash function by minimising an affinity-based loss with auxiliary coordinates.

    Args:
        n_bits: length b of the codes.
        loss: "ksh", "esplh", "bre", "ee", "hinge" or a function of (d, y, b).
        z_step: "descent", "cut", "quad" or a solver (see `auxhash.zstep`).
        hash_function: "linear", "rbf", "network" (one hidden layer; with `validation`, its dropout
            and noise are chosen on the points held out), "trees", a scikit-learn classifier,
            cloned for every bit, or an `auxhash.torch.ModuleHash`, which takes X of any shape
            (pictures).
        n_similar, n_dissimilar: kappa+ and kappa-, drawn for each point; None takes all.
        mu: mu_1, the first positive mu, or "auto".
        alpha: factor from one mu to the next.
        max_iter: the most iterations, after the two-step solution.
        tol: MAC ends after an iteration that lowers L(h) by less than this share of it; None, as in
            the paper, when Z = h(X). "auto" is 0.001 where refinement follows, which gains far
            more (`docs/optima.md`), else None.
        max_sweeps: the most sweeps over the bits per Z step, that of `start` included.
        penalty: "quadratic" or "augmented" (Lagrangian).
        h_step: "monotone" lets a bit keep its old classifier where the new one misclassifies more
            of Z, so that L_P never rises; "plain" fits every classifier without this condition, as
            the paper does (sec. 3.2, fig. 1). With refine=None and 10,000 points, "plain" mostly
            ends with a lower L(h); with refinement both end alike (`docs/verdicts.md`).
        iterate: which of the accepted steps MAC ends with, and refinement starts from: "lowest",
            that of the lowest L(h), the two-step solution included; or, as in the paper (fig. 1),
            the "last".
        validation: None; the fraction of the points to hold out; (X, y) held out already; or an
            `auxhash.Validation`. These are queries among the training points: a step that lowers
            their precision at 100 is not accepted. Without y, pairs of the affinity judge: of the
            nearest R of a held-out point's partners, the share that is similar, R being the number
            of its similar partners.
        C: the SVM's cost of a margin violation.
        refine: "auto" refines the hash function after MAC wherever it has a gradient ("linear",
            "rbf", "network"); `auxhash.Refine(...)` does so with settings of your own;
            None leaves it as MAC made it. With "auto", a hash function refined on fresh pairs,
            drawn from classes, is kept even where its L(h) on the given pairs is higher: it ranks
            new points better. Otherwise refinement never raises L(h).
        init: codes (n, n_bits) of -1 and +1 of all points of X to start from, in place of the free
            codes of mu = 0. Those of points that `validation` holds out are left out with them.
        start: where the free codes of mu = 0 start from: "random" codes; or codes made in a first
            sweep, bit after bit, each bit from all +1 by the Z step's solver: "bitwise" minimises
            the loss of the bits so far, as codes of so many bits; "zeros" that of all n_bits, in
            which later bits count as zero (so the loss is evaluated at half distances, too). No
            effect where fitting goes on from a hash function learnt before.
        warm_start: whether fitting again goes on from the hash function learnt before. On other
            points than before, the result is the average of the old and the new hash function,
            weighted by the numbers of points they were learnt from, so that nothing is forgotten;
            it gives other codes than the old one, and codes made before must be made again.
        device: "cpu"; "cuda", a GPU by way of CuPy; or "auto", a GPU where there is one with room
            that can do what is wanted. On a GPU the Z step is "descent" from start="random", and
            the hash function "linear", "rbf" or "network".
        random_state: seed, Generator or RandomState. The same seed gives the same codes on any
            number of threads; on a GPU, where other points are visited at the same time, others
            than on the processor.
        n_jobs: threads; None takes every core that this process may use, not 1.
        verbose: 1 shows a progress bar.

    Attributes:
        hash_function_: the learnt hash function: refined, or of the accepted step that `iterate`
            names.
        loss_: its L(h) on the training affinities.
        two_step_: the hash function at mu = 0, which is what two-step hashing would have found.
        history_: list of `loop.Step`, one per iteration; those of the refinement, where Z = h(X),
            have an infinite mu.
        device_: where it was trained, "cpu" or "cuda".
        n_learnt_: points learnt from, those of the fits that `warm_start` went on from included.
        n_iter_: steps made, the one at mu = 0 included.
        affinity_: the training affinities; neither files nor pickles hold them.
        codes_: packed codes of the training points, in their order.
        interrupted_: whether Ctrl-C stopped the training; the model is the best found until then.
    """

    n_bits: int = 32
    loss: LossLike = "ksh"
    z_step: str | zstep.Solver = "descent"
    hash_function: object = "linear"
    n_similar: int | None = 100
    n_dissimilar: int | None = 500
    mu: float | Literal["auto"] = "auto"
    alpha: float = 1.4
    max_iter: int = 50
    max_sweeps: int = 2
    penalty: Literal["quadratic", "augmented"] = "quadratic"
    validation: ValidationLike = None
    C: float = 100.0
    refine: Refine | Literal["auto"] | None = "auto"
    init: ArrayLike | None = None
    start: zstep.Start = "random"
    tol: float | Literal["auto"] | None = "auto"
    h_step: loop.HStep = "monotone"
    iterate: loop.Returned = "lowest"
    warm_start: bool = False
    device: devices.DeviceName = "cpu"
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    def _settings(self) -> Settings:
        going_on = self._going_on()
        h = hashfunctions.get(self.hash_function, float(self.C))
        return Settings(
            n_bits=int(self.n_bits),
            loss=self.loss,
            algorithm=loop.MAC(
                zstep.get(self.z_step),
                # Plain numbers: those of NumPy wrap where they are small, and round.
                "auto" if self.mu == "auto" else float(self.mu),
                float(self.alpha),
                int(self.max_iter),
                int(self.max_sweeps),
                self.penalty,
                "random" if going_on else self.start,
                h_step=self.h_step,
                iterate=self.iterate,
            ),
            hash_function=hashfunctions.renewed(self.hash_function_, h) if going_on else h,
            n_similar=self.n_similar,
            n_dissimilar=self.n_dissimilar,
            refine=self.refine,
            tol=self.tol if self.tol in ("auto", None) else float(self.tol),
            going_on=going_on,
            validation=self._checked_validation(),
            verbose=self.verbose,
        )

    def _first_codes(self, n: int) -> Codes | None:
        if self.init is None:
            return None
        codes, shape = as_codes(self.init, "init"), (n, int(self.n_bits))
        if codes.shape != shape:
            raise ValueError(
                f"init must be of shape {shape} (all points of X, n_bits), got {codes.shape}"
            )
        return codes

    def _checked_validation(self) -> Validation | None:
        """Return the validation, its points as checked arrays."""
        validation = _as_validation(self.validation)
        if validation is None or not hasattr(validation.points, "__len__"):
            return validation
        points = validation.points
        X, y = points if isinstance(points, tuple) else (points, None)
        queries = check_queries(self, X)
        if y is not None:
            y = checks.labels("the labels of validation", y, len(queries))
        return replace(validation, points=(queries, y))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.integer("max_iter", self.max_iter, 1)
        checks.number("alpha", self.alpha, 1, strict=True)
        if self.mu != "auto":
            checks.number("mu", self.mu, 0, strict=True, instead=' or "auto"')
        if self.tol is not None and not (isinstance(self.tol, str) and self.tol == "auto"):
            checks.number("tol", self.tol, 0, instead=' or "auto"')
        if not (self.refine in ("auto", None) or isinstance(self.refine, Refine)):
            raise ValueError(f'refine must be "auto", None or a Refine, got {self.refine!r}')
        checks.one_of("penalty", self.penalty, ("quadratic", "augmented"))
        checks.one_of("start", self.start, zstep.STARTS)
        checks.one_of("h_step", self.h_step, loop.H_STEPS)
        checks.one_of("iterate", self.iterate, loop.RETURNED)
        zstep.check_start(self.start, zstep.get(self.z_step))
        if self.start != "random" and self.init is not None:
            raise ValueError(f"init takes the place of the codes that start={self.start!r} makes")
        validation = _as_validation(self.validation)
        if validation is not None:
            validation.check_points()
        checks.flag("warm_start", self.warm_start)
        checks.one_of("device", self.device, devices.NAMES)
        if self.device == "cuda" and (refusal := self._gpu_refusal()):
            raise ValueError(refusal)
        self._check_gradient(hashfunctions.get(self.hash_function, self.C))

    def _check_gradient(self, h: HashFunction) -> None:
        """Raise TypeError if h has no gradient and the training that is asked for needs one."""
        if isinstance(self.refine, Refine):
            self.refine.check_gradient(h)

    def _gpu_refusal(self) -> str:
        h = hashfunctions.get(self.hash_function, self.C)
        if hashfunctions.is_shared(h):
            return (
                "device is for hash functions of NumPy: a PyTorch module computes where it is; "
                f'leave it at "cpu", got {self.device!r}'
            )
        if not hashfunctions.is_smooth(h):
            return (
                f'{type(h).__name__} is trained on the processor: use device="cpu", got '
                f"{self.device!r}"
            )
        if self.z_step != "descent" or self.start != "random":
            return (
                f'on device={self.device!r} the Z step is z_step="descent" from '
                f'start="random"; got {self.z_step!r} from {self.start!r}'
            )
        return ""


class TwoStepHash(MACHash):
    """Two-step hashing: codes first, then a hash function for them. MAC that stops at mu = 0.

    With z_step="quad" this is TSH, with "cut" FastHash. The parameters are those of MACHash; mu,
    alpha, max_iter, tol, penalty, h_step, iterate and refine, which are for the time after mu = 0,
    have no effect.
    """

    def _settings(self) -> Settings:
        return replace(super()._settings(), two_step=True)

    def _check_gradient(self, h: HashFunction) -> None:
        """Accept every hash function: nothing is refined."""


class EndToEndHash(MACHash):
    """Train a hash function by gradient steps alone, from labels: no codes Z, no MAC.

    What `refine` does after MAC is all that is done here, from the hash function's own start: a
    PyTorch module's weights, or projections of the features. With "auto" that is
    `Refine(objective="classes")`: all pairs of a batch, in about 30 rounds over the points. The
    parameters are those of MACHash; those of the Z step and of mu have no effect.

    `two_step_` is the hash function as it started, `history_` begins with its L(h).
    """

    def _settings(self) -> Settings:
        return replace(super()._settings(), end_to_end=True)

    def _check_gradient(self, h: HashFunction) -> None:
        hashfunctions.check_started(h)

    def _first_codes(self, n: int) -> None:
        super()._first_codes(n)  # or raise; there are no codes Z to start from


def _warn_of_likeness(affinity: Affinity) -> None:
    """Warn where all pairs are similar, so that nothing keeps codes apart."""
    y = affinity.y if affinity.rows is None else affinity.rows[:, 0]
    if affinity.kind == "similarity" and len(y) and (y == 1).all():
        warnings.warn(
            "all pairs of affinity are similar (y = 1): without dissimilar ones (y = -1), codes "
            "that are all the same have the lowest loss",
            stacklevel=4,
        )


def _as_validation(value: ValidationLike) -> Validation | None:
    return value if value is None or isinstance(value, Validation) else Validation(value)


def _warn_of_cost(n: int, b: int) -> None:
    if b > WARN_BITS and n * b > WARN_TOTAL_BITS:
        size = f"{max(0.1, BYTES_PER_BIT * n * b / 1e9):,.1f} GB"
        warnings.warn(
            f"{b:,} bits of {n:,} points: training needs about {size} of memory, and takes about "
            f"{b // 32:,} times as long as for 32 bits",
            stacklevel=4,
        )
