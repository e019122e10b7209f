"""Draw a figure of the paper: the loss L(h) over the iterations of MAC, beside two-step hashing.

    python examples/paper_figure.py --points 1500 --bits 8 16 32

`auxhash reproduce` makes all figures of the paper at its size, with a verdict on each claim.
"""

import argparse

import matplotlib
from sklearn.datasets import load_digits

from auxhash import affinity, paper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1500)
    parser.add_argument("--bits", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("-o", "--output", default="loss.svg")
    options = parser.parse_args()
    matplotlib.use("svg")
    from matplotlib import pyplot

    X, y = (part[: options.points] for part in load_digits(return_X_y=True))
    pairs = affinity.from_labels(y, n_similar=15, n_dissimilar=50, random_state=0)
    figure, axes = pyplot.subplots()
    for bits in options.bits:
        mac = paper.maccut(n_bits=bits, validation=None, random_state=0)
        path = [step.loss for step in mac.fit(X, y, affinity=pairs).history_]
        [line] = axes.plot(path, marker=".", label=f"MACcut, {bits} bits")
        axes.axhline(path[0], color=line.get_color(), linestyle=":")  # mu = 0: the two-step method
        first, last = f"{path[0]:.0f} by two steps", f"{path[-1]:.0f} after {len(path) - 1} of MAC"
        print(f"{bits} bits: L(h) {first}, {last}")
    axes.set(xlabel="iteration", ylabel="L(h)", title="Dotted: two-step hashing")
    axes.legend()
    figure.savefig(options.output)
    print(f"drawn: {options.output}")


if __name__ == "__main__":
    main()
