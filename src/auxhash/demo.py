"""The demonstration: two-step hashing and MAC on scikit-learn's handwritten digits."""

from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from auxhash import progress
from auxhash.estimators import MACHash, TwoStepHash

SOLVERS = ("cut", "descent")
QUERIES = 297  # of 1,797 digits


def run(n_bits: int, seed: int) -> None:
    """Train, measure, and print one table."""
    console = Console()
    X, y = load_digits(return_X_y=True)
    split = train_test_split(X, y, test_size=QUERIES, random_state=seed, stratify=y)
    X, queries, y, labels = split
    console.print(
        f"Digits: {len(X)} training points, {len(queries)} queries, {X.shape[1]} features; "
        f"{n_bits} bits, loss ksh, linear hash function, seed {seed}."
    )
    table = Table("method", "Z step", "L(h)", "precision at 100", "iterations", "seconds")
    for solver in SOLVERS:
        for name, Method in (("two-step", TwoStepHash), ("MAC", MACHash)):
            clock = perf_counter()
            hasher = Method(n_bits=n_bits, z_step=solver, random_state=seed).fit(X, y)
            seconds = perf_counter() - clock
            score = hasher.score(queries, labels)
            table.add_row(
                name,
                solver,
                f"{hasher.loss_:.0f}",
                f"{score:.3f}",
                str(hasher.n_iter_ - 1),
                f"{seconds:.1f}",
            )
    console.print(table)
    console.print("Precision: the 100 nearest training points, ties by their expected value.")
    console.print("\nThe path of MAC with descent:")
    for step in hasher.history_:
        console.print("  " + progress.describe(step), highlight=False)
    example = hasher.encode(queries[:1])
    console.print(
        f"\nThe first query, a {labels[0]}, packed into {example.nbytes} bytes: "
        + " ".join(f"{byte:02x}" for byte in np.ravel(example)),
        highlight=False,
    )
