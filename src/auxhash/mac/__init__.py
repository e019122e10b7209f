"""The method of the paper, one file or folder per noun.

affinity/        pairs of points, how similar they are, and their weights
losses           loss(d, y, b), and its table over the Hamming distance d
zstep/           L_P over the codes Z, by quadratic surrogate, graph cuts or descent
hashfunctions/   h: features, linear SVMs, networks, classifiers, and the h step
loop             MAC, the outer loop: a generator of steps
presets          the settings of the paper's experiments
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auxhash.mac.loop import MAC, Iterate, State, Step, lowest

__all__ = ["MAC", "Iterate", "State", "Step", "lowest"]


def __getattr__(name: str) -> Any:
    # At first use: who needs a hash function alone does not import the loop.
    if name in __all__:
        from auxhash.mac import loop

        return getattr(loop, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
