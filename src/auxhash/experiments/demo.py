"""The demonstration: several methods on scikit-learn's handwritten digits."""

from pathlib import Path

from auxhash.experiments import datasets
from auxhash.experiments.compare import Compared, Comparison
from auxhash.experiments.comparepage import PageHead, compare_on_page
from auxhash.experiments.entries import WITH_LABELS
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
    compared = Compared(datasets.load("digits", seed=seed), METHODS, (n_bits,), (seed,), K)
    head = PageHead(
        "auxhash demo",
        "Codes for handwritten digits",
        f"Several methods learn {n_bits}-bit codes of the same images.",
        f"auxhash demo --bits {n_bits} --seed {seed}",
        ABOUT,
    )
    return compare_on_page(compared, output, head, verbose=verbose)
