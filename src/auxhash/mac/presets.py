"""The settings of the paper's experiments, each beside the words that it follows.

R. Raziperchikolaei and M. A. Carreira-Perpinan, "Optimizing affinity-based binary hashing using
auxiliary coordinates", NIPS 2016. Where the paper is silent, the comment says so. `auxhash.paper`
makes estimators of them.
"""

from typing import Any, Literal

from auxhash.compute.random import RandomState
from auxhash.mac.losses import LossLike
from auxhash.mac.zstep import Cut, Quad

Order = Literal["fixed", "random"]
# Of the blocks of cut. The paper does not say; the program of FastHash's authors, whose codes these
# are, draws one for every bit.
ORDER: Order = "random"

# Our ksh is eq. (3) over b^2: the same loss on another scale, on which mu is measured, too. Sec. 4
# and 4.4 name eq. (3) itself: read to the letter, these are for it, and b^2 times too large here.
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


def cut(order: Order) -> Cut:
    """Return graph cuts, as the paper uses them in the Z step."""
    # Sec. 3.3: "putting points with the same label in one block". Blocks are "possibly
    # overlapping"; where blocks are classes, they do not. The program of FastHash's authors starts
    # from codes of all +1.
    return Cut(order)


def two_step(
    solver: Cut | Quad,
    hash_function: object,
    loss: LossLike,
    validation: object,
    random_state: RandomState,
) -> dict[str, Any]:
    """Return the parameters of two-step hashing, MAC's start."""
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


def path(first_mu: float) -> dict[str, Any]:
    """Return the parameters of the path that follows: mu grows from `first_mu` until Z = h(X)."""
    return {
        "mu": first_mu,
        "alpha": ALPHA,
        "max_iter": MAX_ITER,
        "penalty": "quadratic",  # Sec. 3: "We discuss here the former [the quadratic penalty]"
        # Sec. 3.2, fig. 1: "h_i <- fit hash function to (X, Z_i)", without a condition
        "h_step": "plain",
        "iterate": "last",  # Fig. 1: "return h, Z = h(X)"
        "refine": None,  # ours, not the paper's
    }
