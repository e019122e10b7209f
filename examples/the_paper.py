"""Follow the paper: MAC against the two-step method, on the same pairs, with a loss of one's own.

    python examples/the_paper.py --points 1000 --bits 16

MAC alternates a Z step (codes, by graph cuts) and an h step (a linear SVM per bit), with a penalty
mu that grows until the codes are those of the hash function: Z = h(X).
"""

import argparse

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from auxhash import affinity, losses, paper

Numbers = NDArray[np.float64]


def cubic(d: Numbers, y: Numbers, b: int) -> Numbers:
    """A loss of one's own: any function of distances d, affinities y and the number of bits b."""
    cube: Numbers = np.abs((b - 2 * d) / b - y) ** 3
    return cube


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--bits", type=int, default=16)
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    queries, X, y, y_queries = X[1500:], X[: options.points], y[: options.points], y[1500:]
    pairs = affinity.from_labels(y, n_similar=15, n_dissimilar=50, random_state=0)

    # Eq. (10): the loss L(h) over the pairs. The two-step method stops at mu = 0, MAC goes on.
    settings = {"n_bits": options.bits, "validation": None, "random_state": 0}
    two_step = paper.cut(**settings).fit(X, y, affinity=pairs)
    mac = paper.maccut(**settings).fit(X, y, affinity=pairs)
    print("     mu     L(h)  bits of Z that differ from h(X)")
    for step in mac.history_:
        print(f"{step.mu:7.3f} {step.loss:8.0f}  {step.violations:,}")

    for name, hasher in {"two-step": two_step, "MAC": mac}.items():
        L = losses.total(hasher.transform(X), pairs, "ksh")
        right = hasher.score(queries, y_queries, k=50)
        print(f"{name}: L(h) {L:.0f}, {right:.3f} of the first 50 are of the query's class")

    own = paper.maccut(**settings, loss=cubic).fit(X, y, affinity=pairs)
    print(f"MAC with a cubic loss: {own.score(queries, y_queries, k=50):.3f}")


if __name__ == "__main__":
    main()
