"""Speed of the core beside plain loops and public libraries: python -m benchmarks core."""

import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console

from auxhash import MACHash
from auxhash.codes import pack, to_words
from auxhash.compute.threads import pool
from auxhash.experiments import datasets
from auxhash.learn.baselines import KSH
from auxhash.learn.baselines.ksh import similarity_of_pairs
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.mac import affinity, hashfunctions, loop, zstep
from auxhash.mac.hashfunctions import svm
from auxhash.mac.zstep import Penalty, Problem, z_step
from benchmarks import peers
from benchmarks.rows import Row, table, timed, turns

C = 100.0


@dataclass(frozen=True)
class Size:
    """Sizes of what is measured; `real` takes CIFAR and MNIST where they are in the cache."""

    points: int = 10_000
    features: int = 320
    pixels: int = 784
    bits: int = 48
    kappa: tuple[int, int] = (100, 500)
    peer_bits: int = 6  # that LIBLINEAR learns; its time is scaled up to all
    drawn: int = 58_000  # points for which pairs are drawn
    runs: int = 3
    real: bool = True


FULL = Size()
QUICK = Size(3_000, 120, 300, 16, (40, 200), 2, 10_000, 2, real=False)
SMALL = Size(600, 40, 60, 8, (20, 60), 2, 2_000, 1, real=False)


def main(small: bool = False) -> None:
    """Print one table: what was measured, ours, the peer's, the ratio, and the aim."""
    Console(width=150).print(table(list(rows(SMALL if small else FULL))))


def rows(size: Size) -> Iterator[Row]:
    """Every row of the core, one after the other."""
    source, X, y = gist(size)
    n, b = len(X), size.bits
    A = affinity.from_labels(y, *size.kappa, random_state=0)
    problem = Problem(A, "ksh", b)
    rng = np.random.default_rng(0)
    Z = (2 * rng.integers(0, 2, (n, b)) - 1).astype(np.int8)
    h = hashfunctions.linear(C).prepare(X, rng)
    F = h.features(X)
    warm_up(problem, Z, F)
    yield from bench_mac(problem, F, h, Z, source)  # first, so that the memory peak is its own
    free, measured = bench_free_codes(problem, Z)
    yield from measured
    yield from bench_descent(problem, Z, size.runs)
    yield bench_h_step("h step, all SVMs, cold, " + source, F, free, size, 100, 1e-3)
    yield from bench_separable(size)
    yield bench_fit(size)
    yield from bench_cut(problem, Z, free, size.runs)
    yield bench_quad(problem, Z)
    yield bench_ksh(A, size.runs)
    yield bench_ksh_fit(X, y, A, size)
    yield bench_checkpoint(X, y, size)
    yield bench_draws(size)


def gist(size: Size) -> tuple[str, Any, Any]:
    """CIFAR's GIST features if they are in the cache, or else synthetic ones."""
    if size.real and _present("cifar10-gist"):
        train = datasets.load("cifar10-gist", n_train=size.points).train
        return "CIFAR GIST", train.X.astype(np.float64), train.y
    return "made features", *peers.decaying(size.points, size.features, 0)


def pixels(size: Size) -> tuple[str, Any, Any]:
    """MNIST's pixels if they are in the cache, or else classes that lie as far apart."""
    if size.real and _present("mnist"):
        train = datasets.load("mnist", n_train=size.points).train
        return "MNIST pixels", train.X, train.y
    return "made pixels", *peers.apart(size.points, size.pixels, 0)


def _present(name: str) -> bool:
    return all(files.present() for files in datasets.entry(name).files)


def warm_up(problem: Problem, Z: Any, F: Any) -> None:
    """Compile every kernel."""
    for name in ("descent", "cut"):
        z_step(problem, Z[:, :], Penalty(Z, 0.0), zstep.get(name), 1, np.random.default_rng(0))
    svm.fit(F[:200], Z[:200], C)


def bench_draws(size: Size) -> Row:
    labels = np.random.default_rng(0).integers(0, 10, size.drawn)
    (seconds,) = turns(
        lambda: affinity.from_labels(labels, *size.kappa, random_state=0), runs=1, first=False
    )
    return Row(f"pairs of {size.drawn:,} points drawn", seconds, 10)


def bench_mac(problem: Problem, F: Any, h: Any, Z: Any, source: str) -> Iterator[Row]:
    algorithm = loop.MAC(zstep.get("descent"), mu=0.3)
    steps = list(islice(algorithm.steps(problem, F, h, Z, np.random.default_rng(0)), 6))
    seconds = tuple(step.seconds for step, _ in steps[1:])
    shape = f"{F.shape[0]:,} x {F.shape[1] - 1} {source}, {Z.shape[1]} bits"
    yield Row(f"one MAC iteration, descent, {shape}", seconds, 5, "120 s, the paper")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gigabytes = peak / (1e9 if sys.platform == "darwin" else 1e6)
    yield Row("peak memory", (gigabytes,), 2, unit="GB")


def bench_free_codes(problem: Problem, Z: Any) -> tuple[Any, list[Row]]:
    """Free codes at mu = 0 from the same random start, and the two rows about them."""
    at_zero = Penalty(Z, 0.0)

    def solve(solver: Any, sweeps: int) -> Any:
        return z_step(problem, Z, at_zero, solver, sweeps, np.random.default_rng(1))

    points, points_time = timed(lambda: solve(zstep.get("descent"), 20))
    cut, cut_time = timed(lambda: solve(peers.MaxFlowCut(), 2))
    name = "free codes, descent until it stops"
    peer = "cut with SciPy's max-flow, 2 sweeps"
    return points.Z, [
        Row(f"{name}: E(Z)", (points.value,), 1, peer, (cut.value,), ""),
        Row(f"{name}: time", (points_time,), 1, peer, (cut_time,)),
    ]


def bench_descent(problem: Problem, Z: Any, runs: int) -> Iterator[Row]:
    def sweep(name: str) -> Any:
        at_zero = Penalty(Z, 0.0)
        return z_step(problem, Z, at_zero, zstep.get(name), 1, np.random.default_rng(1))

    seconds = turns(lambda: sweep("descent"), lambda: sweep("descent-bits"), runs=runs)
    yield Row("a sweep of descent, point by point", seconds[0], 2, "bit by bit", seconds[1])


def bench_h_step(title: str, F: Any, Z: Any, size: Size, aim: float, tol: float) -> Row:
    """Our SVMs of all bits, beside LinearSVC on some bits, its time scaled up to all."""
    results = [timed(lambda: svm.fit(F, Z, C)) for _ in range(size.runs)]
    W, ours = results[0][0], tuple(seconds for _, seconds in results)
    theirs, worst = 0.0, 0.0
    for k in range(size.peer_bits):
        w, seconds = timed(lambda k=k: peers.liblinear(F, Z[:, k], C, tol))
        theirs += seconds * Z.shape[1] / size.peer_bits
        z = Z[:, k : k + 1]
        objective = svm.objective(W[:, k : k + 1], F, z, C) / svm.objective(w, F, z, C)
        worst = max(worst, float(objective[0]))
    peer = f"LIBLINEAR, tol {tol:g}, {size.peer_bits} bits, scaled"
    note = f"objective {worst:.6f} of LIBLINEAR's, worst bit"
    return Row(title, ours, aim, peer, (theirs,) * len(ours), note=note)


def bench_separable(size: Size) -> Iterator[Row]:
    """Bits of which each is one for half of the classes, few points off: as MAC's last h steps.

    LIBLINEAR's tolerance is a hundredth of that in the other row: with the same it stops here at
    twice the objective.
    """
    source, X, y = pixels(size)
    rng = np.random.default_rng(0)
    F = hashfunctions.linear(C).prepare(X, rng).features(X)
    halves = np.argsort(rng.random((size.bits, 10)), axis=1) < 5
    W = svm.fit(F, np.where(halves[:, y].T, 1, -1).astype(np.int8), C)
    Z = np.where(F @ W >= 0, 1, -1).astype(np.int8)
    title = f"h step, separable, cold, {F.shape[0]:,} x {F.shape[1] - 1} {source}"
    yield bench_h_step(title, F, Z, size, 10, 1e-5)


def bench_cut(problem: Problem, Z: Any, free: Any, runs: int) -> Iterator[Row]:
    """Our cut beside max-flow: every bit once, the same blocks and order, from the same codes."""
    for name, start in (("free codes", free), ("random codes", Z)):
        ours, theirs = np.zeros(runs), np.zeros(runs)
        gap = 0.0
        for k in range(problem.n_bits):
            with pool() as run:
                bit = problem.bit(to_words(pack(start)), k, np.zeros(len(start)), 0.0, run)
                z = start[:, k]

                def cut(solver: Any, bit: Any = bit, z: Any = z, k: int = k) -> Any:
                    return solver(bit, z, np.random.default_rng(k))

                for number in range(runs):
                    fast, seconds = timed(lambda cut=cut: cut(zstep.get("cut")))
                    ours[number] += seconds
                    plain, seconds = timed(lambda cut=cut: cut(peers.MaxFlowCut()))
                    theirs[number] += seconds
                gap = max(gap, abs(bit.energy(fast) / bit.energy(plain) - 1))
        yield Row(
            f"cut, from {name}",
            tuple(ours.tolist()),
            10,
            "SciPy's max-flow for every block",
            tuple(theirs.tolist()),
            note=f"energies differ by {gap:.0e} at most",
        )


def bench_quad(problem: Problem, Z: Any) -> Row:
    _, seconds = timed(
        lambda: z_step(problem, Z, Penalty(Z, 0.0), zstep.get("quad"), 1, np.random.default_rng(0))
    )
    return Row("a sweep of quad at mu = 0", (seconds,), 60)


def bench_ksh(A: affinity.Affinity, runs: int) -> Row:
    """Measure what KSH from pairs does some thousand times per bit: S times two vectors."""
    V = np.random.default_rng(0).standard_normal((A.n_points, 2))
    S = peers.similarity(A)
    with pool() as run:
        ours = similarity_of_pairs(A, run)
        np.testing.assert_allclose(ours(V), S @ V, atol=1e-9)
        seconds, theirs = turns(lambda: ours(V), lambda: S @ V, runs=5 * runs)
    title = f"KSH from {len(A):,} pairs, their matrix times two vectors"
    return Row(title, seconds, 2, "SciPy's sparse product, one thread", theirs)


def bench_ksh_fit(X: Any, y: Any, A: affinity.Affinity, size: Size) -> Row:
    """KSH as a whole, from pairs and from labels, whose products are sums over the classes."""
    bits = min(size.bits, 32)
    labels, pairs = (
        timed(lambda similarity=similarity: KSH(bits, random_state=0).fit(X, *similarity))[1]
        for similarity in ((y,), (None, A))
    )
    title = f"KSH from {len(A):,} pairs, {bits} bits"
    return Row(title, (pairs,), 0.1, "the same from labels", (labels,))


def bench_checkpoint(X: Any, y: Any, size: Size) -> Row:
    """Measure what checkpoints add to a training: all that is written, beside the rest."""
    written: list[float] = []
    write = Checkpoint.write

    def timing(self: Checkpoint, saved: Any) -> None:
        written.append(timed(lambda: write(self, saved))[1])

    similar, dissimilar = size.kappa
    hasher = MACHash(size.bits, n_similar=similar, n_dissimilar=dissimilar, random_state=0)
    with TemporaryDirectory() as folder, mock.patch.object(Checkpoint, "write", timing):
        _, seconds = timed(lambda: hasher.fit(X, y, checkpoint=folder))
    rest = seconds - sum(written)
    title = f"{len(written)} checkpoints of a fit by default, {size.bits} bits"
    return Row(title, (sum(written),), 10, "the training itself", (rest,))


def bench_fit(size: Size) -> Row:
    """A training as it is by default, on data that linear functions can tell apart."""
    source, X, y = pixels(size)
    hasher = MACHash(n_similar=size.kappa[0], n_dissimilar=size.kappa[1], random_state=0)
    _, seconds = timed(lambda: hasher.fit(X, y))
    shape = f"{len(X):,} x {X.shape[1]} {source}, {hasher.n_bits} bits"
    return Row(f"fit by default, {shape}", (seconds,), 40)
