"""The demonstration: several methods on scikit-learn's handwritten digits."""

from collections.abc import Mapping
from pathlib import Path

from auxhash.experiments import datasets
from auxhash.experiments.compare import Comparison
from auxhash.experiments.comparepage import Compared, PageHead
from auxhash.experiments.entries import MethodLike
from auxhash.learn.estimators import MACHash

# Two-step hashing and MAC started from it, what is best here, and three to be measured against.
METHODS: Mapping[str, MethodLike] = {
    "cut": "cut",
    "MACcut": "MACcut",
    "MACrefined": "MACrefined",
    "MACrefined, kernels": MACHash(hash_function="rbf"),
    "ITQ": "ITQ",
    "CCAITQ": "CCAITQ",
    "OneHot": "OneHot",
}
K = (10, 100)
ABOUT = """\
L(h) is the loss that cut, MACcut and MACrefined minimise; p@k the share of a query's k nearest that
are the same digit, mAP the same over all ranks; b_eff how many bits are effective. cut is two-step
hashing, MACcut is MAC from there with the paper's mu, MACrefined what MACHash does by default, all
with linear hash functions; with kernels (hash_function="rbf") it is best here, and slower to train
and to encode with. ITQ knows no labels, CCAITQ is its supervised form, and OneHot takes a
classifier's answer as the code. Where b_eff is near 3.3 (ten classes), a code says little more than
the digit."""


def run(
    n_bits: int, seed: int, output: Path, n_jobs: int | None = None, verbose: int = 1
) -> Comparison:
    """Train and measure every method; write a page about it to `output`."""
    compared = Compared(datasets.load("digits", seed=seed), METHODS, (n_bits,), (seed,), K)
    head = PageHead(
        "auxhash demo",
        "Codes for handwritten digits",
        f"Several methods learn {n_bits}-bit codes of the same images.",
        f"auxhash demo --bits {n_bits} --seed {seed}",
        ABOUT,
    )
    return compared.run(output, head, n_jobs=n_jobs, verbose=verbose)
