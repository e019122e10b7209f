"""The demonstration: several methods on scikit-learn's handwritten digits."""

from auxhash import datasets
from auxhash.experiments.compare import Comparison, compare

# The paper's two-step method and its MAC, what is best here, and three to be measured against.
METHODS = ("cut", "MACcut", "MAC", "ITQ", "CCAITQ", "OneHot")
K = (10, 100)
ABOUT = """\
L(h) is the loss that cut, MACcut and MAC minimise; p@k the share of a query's k nearest that are
the same digit, mAP the same over all ranks; b_eff how many bits are effective. cut is two-step
hashing, MACcut the paper's method, MAC the same with a faster solver; ITQ knows no labels, CCAITQ
is its supervised form, and OneHot takes a classifier's answer as the code."""


def run(n_bits: int, seed: int, n_jobs: int | None = None, verbose: int = 1) -> Comparison:
    """Train and measure every method."""
    data = datasets.load("digits", seed=seed)
    return compare(data, METHODS, (n_bits,), (seed,), K, n_jobs=n_jobs, verbose=verbose)
