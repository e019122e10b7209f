"""The four methods of the paper, set as the paper sets them.

R. Raziperchikolaei and M. A. Carreira-Perpinan, "Optimizing affinity-based binary hashing using
auxiliary coordinates", NIPS 2016.

The defaults of `MACHash` and `TwoStepHash` are what we found best. These are what the paper says,
as far as it says it; its figures are reproduced with them. Each argument stands beside the words
that it follows. Where the paper is silent, the comment says so.
"""

from typing import Any, Literal

from auxhash.compute.random import RandomState
from auxhash.learn.estimators import MACHash, TwoStepHash
from auxhash.mac.zstep import Cut, Quad

Order = Literal["fixed", "random"]

# Our ksh is eq. (3) over b^2: the same loss on another scale, on which mu is measured, too. Whether
# the paper's mu is for eq. (3) as it stands, it does not say; then these would be divided by b^2.
FIRST_MU_CUT = 0.3  # Sec. 4: "Starting from mu_1 = 0.3 (MACcut)
FIRST_MU_QUAD = 0.01  # or 0.01 (MACquad),
ALPHA = 1.4  # we multiply mu by 1.4 after each iteration (Z and h step)"
N_SIMILAR = 100  # Sec. 4.1: "we use kappa+ = 100 positive (similar)
N_DISSIMILAR = 500  # and kappa- = 500 negative (dissimilar) neighbors"
# Fig. 1: "until no change in Z or maxit cycles ran". The paper does not give maxit; 2 is ours.
MAX_SWEEPS = 2
# Fig. 1 stops at Z = h(X) and nowhere else. Sec. 4.3: "They stop after 10-20 iterations". This many
# lead from the first mu beyond any at which something could change.
MAX_ITER = 100
# Sec. 3.1: "We use a small validation set to evaluate the precision [...] If the precision
# decreases over that of the previous step, we ignore the step and skip to the next value of mu".
# The paper gives neither its size nor the number of neighbours; a tenth of the points is held out.
VALIDATION = 0.1
# Sec. 4: "linear SVMs (trained with LIBLINEAR)"; Sec. 3.2: "using a high penalty for misclassified
# patterns". The paper gives no value.
C = 100.0

# Sec. 3.3: "the eigenvector corresponding to the smallest eigenvalue of B", eq. (9), in which mu
# stands: at every mu. "We use the truncated eigenvector as the initialization": Sec. 2 and the
# abstract have codes "truncated" where they become binary. "which we solve using L-BFGS-B": no
# limit of iterations is named.
QUAD = Quad(start="eigenvector", truncate="sign", max_iter=None)


def maccut(
    n_bits: int = 32,
    hash_function: Any = "linear",
    loss: Any = "ksh",
    order: Order = "fixed",
    validation: Any = VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> MACHash:
    """MACcut: the method of auxiliary coordinates with graph cuts in the Z step.

    Args:
        hash_function: "linear" or "rbf" (500 radial basis functions on random training points, as
            wide as the first 300 points are apart on average), the paper's two.
        loss: "ksh" or "esplh", the paper's two.
        order: of the blocks, in which the paper is silent: "then proceed with the next block".
            "fixed" takes the classes in turn, "random" in another order for every bit.
        validation: as for `MACHash`; None for none.
        others: further parameters of `MACHash`, such as n_jobs; they replace what is set here.
    """
    settings = _settings(_cut(order), hash_function, loss, validation, random_state)
    return MACHash(n_bits, **{**settings, **_mac(FIRST_MU_CUT), **others})


def macquad(
    n_bits: int = 32,
    hash_function: Any = "linear",
    loss: Any = "ksh",
    validation: Any = VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> MACHash:
    """MACquad: the method of auxiliary coordinates with the quadratic surrogate in the Z step.

    Its parameters are those of `maccut`, but for `order`.
    """
    settings = _settings(QUAD, hash_function, loss, validation, random_state)
    return MACHash(n_bits, **{**settings, **_mac(FIRST_MU_QUAD), **others})


def cut(
    n_bits: int = 32,
    hash_function: Any = "linear",
    loss: Any = "ksh",
    order: Order = "fixed",
    validation: Any = VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> TwoStepHash:
    """cut: two-step hashing by graph cuts (FastHash's codes), where `maccut` starts.

    `validation` judges nothing here, but holds out the same points as for `maccut`: with the same
    seed, this is the first step of `maccut`, to the bit.
    """
    settings = _settings(_cut(order), hash_function, loss, validation, random_state)
    return TwoStepHash(n_bits, **{**settings, **others})


def quad(
    n_bits: int = 32,
    hash_function: Any = "linear",
    loss: Any = "ksh",
    validation: Any = VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> TwoStepHash:
    """quad: two-step hashing by the quadratic surrogate (TSH's codes), where `macquad` starts."""
    settings = _settings(QUAD, hash_function, loss, validation, random_state)
    return TwoStepHash(n_bits, **{**settings, **others})


def _cut(order: Order) -> Cut:
    # Sec. 3.3: "putting points with the same label in one block". Blocks are "possibly
    # overlapping"; where blocks are classes, they do not.
    return Cut(order)


def _settings(
    solver: Cut | Quad, hash_function: Any, loss: Any, validation: Any, random_state: RandomState
) -> dict[str, Any]:
    return {
        "z_step": solver,
        "hash_function": hash_function,
        "loss": loss,
        "n_similar": N_SIMILAR,
        "n_dissimilar": N_DISSIMILAR,
        "max_sweeps": MAX_SWEEPS,
        "start": "random",  # Fig. 1: "Initialize Z": the paper does not say how
        "validation": validation,
        "C": C,
        "random_state": random_state,
    }


def _mac(first_mu: float) -> dict[str, Any]:
    return {
        "mu": first_mu,
        "alpha": ALPHA,
        "max_iter": MAX_ITER,
        "penalty": "quadratic",  # Sec. 3: "We discuss here the former [the quadratic penalty]"
        "refine": None,  # ours, not the paper's
    }
