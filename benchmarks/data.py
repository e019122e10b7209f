"""Speed of making the data sets: GIST descriptors and deformed digits."""

from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from auxhash.experiments.datasets.infinite_mnist import InfiniteMNIST
from auxhash.files.gist import gist


def main(small: bool = False) -> None:
    """Time a share of each job and scale it up."""
    table = Table("made", "share", "seconds for all", "aim", "ratio to aim")
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (200 if small else 6_000, 32, 32), np.uint8)
    digits = rng.integers(0, 256, (50, 28, 28), np.uint8)
    endless = InfiniteMNIST(digits, np.arange(50) % 10)
    count = 500 if small else 50_000
    jobs = [
        ("60,000 GIST descriptors", lambda: gist(pictures), len(pictures) / 60_000, 100),
        ("1,000,000 digits", lambda: endless.images(np.arange(count)), count / 1e6, 180),
    ]
    for name, job, share, aim in jobs:
        job()  # compiles
        clock = perf_counter()
        job()
        seconds = (perf_counter() - clock) / share
        table.add_row(
            name, f"{share:.2%}", f"{seconds:.0f}", f"{aim} or less", f"{seconds / aim:.2f}"
        )
    Console().print(table)
