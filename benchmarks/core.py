"""Speed of the core beside plain loops and public libraries: python -m benchmarks core."""

import resource
import sys
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash import affinity, datasets, hashfunctions, mac, zstep
from auxhash.codes import pack, to_words
from auxhash.compute.threads import pool
from auxhash.hashfunctions import svm
from auxhash.zstep import Penalty, Problem, z_step
from benchmarks import peers

C = 100.0


def timed(function: Any) -> tuple[Any, float]:
    clock = perf_counter()
    result = function()
    return result, perf_counter() - clock


def main(small: bool = False) -> None:
    """Print one table: what was measured, ours, the peer's, the ratio, and the aim."""
    b, kappa = (8, (20, 60)) if small else (48, (100, 500))
    source, X, y = features(small)
    n = len(X)
    A = affinity.from_labels(y, *kappa, random_state=0)
    problem = Problem(A, "ksh", b)
    rng = np.random.default_rng(0)
    Z = (2 * rng.integers(0, 2, (n, b)) - 1).astype(np.int8)
    h = hashfunctions.linear(C).prepare(X, rng)
    F = h.features(X)
    table = Table("measured", "ours", "peer", "ratio", "aim")
    warm_up(problem, Z, F)
    bench_mac(table, problem, F, h, Z)  # first, so that the memory peak is its own
    free = bench_free_codes(table, problem, Z)
    bench_h_step(table, F, free, 2 if small else 6)
    bench_cut(table, problem, Z, free)
    bench_quad(table, problem, Z)
    bench_draws(table, 2_000 if small else 58_000, kappa)
    console = Console(width=110)
    console.print(f"{source}: {X.shape}, {b} bits, kappa {kappa}, ksh, {len(A)} pairs, seed 0")
    console.print(table)


def features(small: bool) -> tuple[str, Any, Any]:
    """CIFAR's GIST features if they are in the cache, or else synthetic ones."""
    if small:
        return "made features", *peers.decaying(600, 40, 0)
    files = datasets.entry("cifar10-gist").files
    if files is None or not files.present():
        return "made features", *peers.decaying(10_000, 320, 0)
    train = datasets.load("cifar10-gist", n_train=10_000).train
    return "cifar10-gist", train.X.astype(np.float64), train.y


def warm_up(problem: Problem, Z: Any, F: Any) -> None:
    """Compile every kernel."""
    for name in ("descent", "cut"):
        z_step(problem, Z[:, :], Penalty(Z, 0.0), zstep.get(name), 1, np.random.default_rng(0))
    svm.fit(F[:200], Z[:200], C)


def bench_draws(table: Table, n: int, kappa: tuple[int, int]) -> None:
    labels = np.random.default_rng(0).integers(0, 10, n)
    _, seconds = timed(lambda: affinity.from_labels(labels, *kappa, random_state=0))
    table.add_row(f"pairs of {n} points drawn (s)", f"{seconds:.1f}", "", "", "seconds")


def bench_mac(table: Table, problem: Problem, F: Any, h: Any, Z: Any) -> None:
    algorithm = mac.MAC(zstep.get("descent"), mu=0.3)
    steps = list(islice(algorithm.steps(problem, F, h, Z, np.random.default_rng(0)), 6))
    seconds = median(step.seconds for step, _ in steps[1:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gigabytes = peak / (1e9 if sys.platform == "darwin" else 1e6)
    table.add_row(
        "one MAC iteration, descent (s)", f"{seconds:.2f}", "120 (paper)", "", "5 or less"
    )
    table.add_row("peak memory (GB)", f"{gigabytes:.2f}", "", "", "below 2")


def bench_free_codes(table: Table, problem: Problem, Z: Any) -> Any:
    """Free codes at mu = 0 from the same random start."""
    at_zero = Penalty(Z, 0.0)

    def solve(solver: Any, sweeps: int) -> Any:
        return z_step(problem, Z, at_zero, solver, sweeps, np.random.default_rng(1))

    points, points_time = timed(lambda: solve(zstep.get("descent"), 20))
    cut, cut_time = timed(lambda: solve(peers.MaxFlowCut(), 2))
    table.add_row(
        "E(Z): descent / cut with max-flow, 2 sweeps",
        f"{points.value:.5g}",
        f"{cut.value:.5g}",
        f"{points.value / cut.value:.4f}",
        "below 1",
    )
    table.add_row(
        "   and its time (s)",
        f"{points_time:.1f}",
        f"{cut_time:.1f}",
        f"{cut_time / points_time:.1f}",
        "1 or more",
    )
    ratios = []
    for _ in range(3):
        _, one_time = timed(lambda: solve(zstep.get("descent"), 1))
        _, bits_time = timed(lambda: solve(zstep.get("descent-bits"), 1))
        ratios.append((bits_time / one_time, one_time, bits_time))
    ratio, one_time, bits_time = sorted(ratios)[1]
    table.add_row(
        "a sweep of descent: points / bits (s)",
        f"{one_time:.2f}",
        f"{bits_time:.2f}",
        f"{ratio:.1f}",
        "2 or more",
    )
    return points.Z


def bench_h_step(table: Table, F: Any, Z: Any, n_bits: int) -> None:
    """Our SVMs of all bits, beside LinearSVC on some bits, its time scaled up to all."""
    results = [timed(lambda: svm.fit(F, Z, C)) for _ in range(3)]
    W = results[0][0]
    ours = median(seconds for _, seconds in results)
    theirs, worst = 0.0, 0.0
    for k in range(n_bits):
        w, seconds = timed(lambda k=k: peers.liblinear(F, Z[:, k], C))
        theirs += seconds
        z = Z[:, k : k + 1]
        objective = svm.objective(W[:, k : k + 1], F, z, C) / svm.objective(w, F, z, C)
        worst = max(worst, float(objective[0]))
    theirs *= Z.shape[1] / n_bits
    table.add_row(
        f"h step, cold / LinearSVC ({n_bits} bits, scaled) (s)",
        f"{ours:.2f}",
        f"{theirs:.1f}",
        f"{theirs / ours:.0f}",
        "100 or more",
    )
    table.add_row("   objective, worst bit", "", "", f"{worst:.8f}", "1 or less")


def bench_cut(table: Table, problem: Problem, Z: Any, free: Any) -> None:
    """Our cut beside max-flow: every bit once, the same blocks and order, from the same codes."""
    for name, start in (("random codes", Z), ("free codes", free)):
        ours = theirs = 0.0
        gap = 0.0
        for k in range(problem.n_bits):
            with pool(None) as run:
                bit = problem.bit(to_words(pack(start)), k, np.zeros(len(start)), 0.0, run)
                z = start[:, k]
                fast, seconds = timed(lambda: zstep.get("cut")(bit, z, np.random.default_rng(k)))  # type: ignore[operator]  # noqa: B023
                ours += seconds
                plain, seconds = timed(
                    lambda: peers.MaxFlowCut()(bit, z, np.random.default_rng(k))  # noqa: B023
                )
                theirs += seconds
                gap = max(gap, abs(bit.energy(fast) / bit.energy(plain) - 1))
        table.add_row(
            f"cut / max-flow for every block, {name} (s)",
            f"{ours:.2f}",
            f"{theirs:.2f}",
            f"{theirs / ours:.1f}",
            "10 or more",
        )
        table.add_row("   energies differ by at most", "", "", f"{gap:.1e}", "rounding")


def bench_quad(table: Table, problem: Problem, Z: Any) -> None:
    _, seconds = timed(
        lambda: z_step(problem, Z, Penalty(Z, 0.0), zstep.get("quad"), 1, np.random.default_rng(0))
    )
    table.add_row("a sweep of quad at mu = 0 (s)", f"{seconds:.1f}", "", "", "60 or less")
