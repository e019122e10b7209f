"""The demonstration: several methods on scikit-learn's handwritten digits."""

import signal
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from auxhash.compute.clock import also_when_compiling
from auxhash.experiments import datasets, runs
from auxhash.experiments.compare import Compared, Comparison, compare_labels
from auxhash.experiments.comparepage import PageHead, compare_on_page
from auxhash.experiments.entries import WITH_LABELS
from auxhash.experiments.gallery import pictures
from auxhash.experiments.mappage import map_section
from auxhash.learn.estimators import MACHash
from auxhash.learn.hasher import Hasher
from auxhash.learn.smooth import Refine

K = (10, 100)
# With so few points, a third of the usual gradient steps finds codes as good: who tries the package
# is not kept waiting.
SHORT = Refine(n_steps=300, keep="refined")
METHODS: dict[str, str | Hasher] = {
    **{name: name for name in WITH_LABELS},
    "MACrefined, kernels": MACHash(hash_function="rbf", refine=SHORT),
    "MACrefined, network": MACHash(hash_function="network", refine=SHORT),
}
ABOUT = """\
cut is two-step hashing, MACcut is MAC from there with the paper's mu, MACrefined what MACHash does
by default, all with linear hash functions; kernels (hash_function="rbf") and a network
(hash_function="network"), here refined in 300 steps, are slower to train and to encode with. ITQ
knows no labels, CCAITQ is its supervised form, and OneHot takes a classifier's answer as the code.
Where b_eff is near 3.3 (ten classes), a code says little more than the digit."""


def run(n_bits: int, seed: int, output: Path, verbose: int = 1) -> Comparison:
    """Train and measure every method; write a page about it to `output`."""
    # The first run on a machine compiles for longer than it learns: two processes share that.
    other = get_context("spawn").Process(target=compile_from_the_end, daemon=True)
    also_when_compiling(other.start)
    compared = Compared(datasets.load("digits", seed=seed), METHODS, (n_bits,), (seed,), K)
    head = PageHead(
        "auxhash demo",
        "Codes for handwritten digits",
        f"Several methods learn {n_bits}-bit codes of the same images.",
        f"auxhash demo --bits {n_bits} --seed {seed}",
        ABOUT,
    )
    return compare_on_page(compared, output, head, verbose=verbose)


def compile_from_the_end() -> None:
    """Run the kernels that a demonstration needs last: of scores, of refinement, and of its page.

    Says nothing, and leaves Ctrl-C to the process that learns, which ends this one.
    """
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    digits = datasets.load("digits")
    parts = {"base": digits.base, "query": digits.query}
    codes = {name: np.zeros((len(part), 4), np.uint8) for name, part in parts.items()}
    runs.measure(codes, 32, digits, K)
    pictures("", digits, {"": codes}, 32)
    refined = {"MACrefined": MACHash(refine=Refine(n_steps=1))}
    compare_labels(Compared(digits, refined, 32, 0, K), verbose=0)
    map_section(digits.base, digits.query)
