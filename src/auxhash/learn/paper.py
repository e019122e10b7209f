"""The four methods of the paper as estimators, set as the paper sets them.

The defaults of `MACHash` and `TwoStepHash` are what we found best. These are what the paper says,
as far as it says it (`auxhash.mac.presets` has its words); its figures are reproduced with them.
"""

from typing import Any

from auxhash.compute.random import RandomState
from auxhash.learn.estimators import MACHash, TwoStepHash
from auxhash.learn.training.validation import ValidationLike
from auxhash.mac import presets
from auxhash.mac.losses import LossLike
from auxhash.mac.presets import Order


def maccut(
    n_bits: int = 32,
    hash_function: object = "linear",
    loss: LossLike = "ksh",
    order: Order = presets.ORDER,
    validation: ValidationLike = presets.VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> MACHash:
    """MACcut: the method of auxiliary coordinates with graph cuts in the Z step.

    Args:
        hash_function: "linear" or "rbf" (500 radial basis functions on random training points, as
            wide as the first 300 points are apart on average), the paper's two.
        loss: "ksh" or "esplh", the paper's two.
        order: of the blocks, in which the paper is silent: "then proceed with the next block".
            "fixed" takes the classes in turn, "random" in another order for every bit, as the
            program of FastHash's authors does, which starts from codes of all +1, not random ones.
        validation: as for `MACHash`; None for none.
        others: further parameters of `MACHash`, such as n_jobs; they replace what is set here.
    """
    settings = presets.two_step(presets.cut(order), hash_function, loss, validation, random_state)
    return MACHash(n_bits, **{**settings, **presets.path(presets.FIRST_MU_CUT), **others})


def macquad(
    n_bits: int = 32,
    hash_function: object = "linear",
    loss: LossLike = "ksh",
    validation: ValidationLike = presets.VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> MACHash:
    """MACquad: the method of auxiliary coordinates with the quadratic surrogate in the Z step.

    Its parameters are those of `maccut`, but for `order`.
    """
    settings = presets.two_step(presets.QUAD, hash_function, loss, validation, random_state)
    return MACHash(n_bits, **{**settings, **presets.path(presets.FIRST_MU_QUAD), **others})


def cut(
    n_bits: int = 32,
    hash_function: object = "linear",
    loss: LossLike = "ksh",
    order: Order = presets.ORDER,
    validation: ValidationLike = presets.VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> TwoStepHash:
    """cut: two-step hashing by graph cuts (FastHash's codes), where `maccut` starts.

    `validation` judges nothing here, but holds out the same points as for `maccut`: with the same
    seed, this is the first step of `maccut`, to the bit.
    """
    settings = presets.two_step(presets.cut(order), hash_function, loss, validation, random_state)
    return TwoStepHash(n_bits, **{**settings, **others})


def quad(
    n_bits: int = 32,
    hash_function: object = "linear",
    loss: LossLike = "ksh",
    validation: ValidationLike = presets.VALIDATION,
    random_state: RandomState = None,
    **others: Any,
) -> TwoStepHash:
    """quad: two-step hashing by the quadratic surrogate (TSH's codes), where `macquad` starts."""
    settings = presets.two_step(presets.QUAD, hash_function, loss, validation, random_state)
    return TwoStepHash(n_bits, **{**settings, **others})
