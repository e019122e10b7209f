"""Learn with a loss of your own: any function of distance, affinity and number of bits.

python examples/own_loss.py --points 1000
"""

import argparse

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from auxhash import MACHash, losses


def margin(d: NDArray[np.float64], y: NDArray[np.float64], b: int) -> NDArray[np.float64]:
    """Similar pairs within an eighth of the bits, dissimilar ones beyond three eighths."""
    near, far = np.maximum(0, d / b - 1 / 8), np.maximum(0, 3 / 8 - d / b)
    out: NDArray[np.float64] = np.where(y > 0, near, 2 * far) ** 2
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--bits", type=int, default=16)
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    queries, X, y, y_queries = X[1500:], X[: options.points], y[: options.points], y[1500:]

    print("distance        ", *(f"{d:5}" for d in range(0, options.bits + 1, 4)))
    similar, dissimilar = losses.curves(margin, [1, -1], options.bits)
    for kind, row in {"similar": similar, "dissimilar": dissimilar}.items():
        print(f"loss, {kind:10}", *(f"{value:5.2f}" for value in row[::4]))
    for loss in ("ksh", margin):
        hasher = MACHash(options.bits, loss=loss, random_state=0).fit(X, y)
        name = loss if isinstance(loss, str) else loss.__name__
        right = hasher.score(queries, y_queries, k=10)
        print(f"{name}: {right:.2f} of the first 10 are of the query's class")


if __name__ == "__main__":
    main()
