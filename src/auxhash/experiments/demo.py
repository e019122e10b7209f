"""The demonstration: several methods on scikit-learn's handwritten digits."""

from pathlib import Path

from auxhash.experiments import datasets
from auxhash.experiments.compare import Compared, Comparison
from auxhash.experiments.comparepage import PageHead, compare_on_page
from auxhash.experiments.entries import WITH_LABELS

K = (10, 100)
ABOUT = """\
cut is two-step hashing, MACcut is MAC from there with the paper's mu, MACrefined what MACHash does
by default, all with linear hash functions; kernels (hash_function="rbf") and a network
(hash_function="network") are slower to train and to encode with. ITQ knows no labels, CCAITQ is its
supervised form, and OneHot takes a classifier's answer as the code. Where b_eff is near 3.3 (ten
classes), a code says little more than the digit."""


def run(n_bits: int, seed: int, output: Path, verbose: int = 1) -> Comparison:
    """Train and measure every method; write a page about it to `output`."""
    compared = Compared(datasets.load("digits", seed=seed), WITH_LABELS, (n_bits,), (seed,), K)
    head = PageHead(
        "auxhash demo",
        "Codes for handwritten digits",
        f"Several methods learn {n_bits}-bit codes of the same images.",
        f"auxhash demo --bits {n_bits} --seed {seed}",
        ABOUT,
    )
    return compare_on_page(compared, output, head, verbose=verbose)
