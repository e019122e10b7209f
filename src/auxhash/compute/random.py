"""Random numbers: one generator per fit, and counter-based draws inside kernels.

In a kernel, each point has a range of counters of its own, so that any thread can draw for any
chunk of points, and the draws do not depend on the number of threads.
"""

import numpy as np

from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray
from auxhash.compute.kernels import kernel

RandomState = int | np.random.Generator | np.random.RandomState | None


def seed(random_state: RandomState) -> np.uint64:
    """Return a seed for kernels, drawn from `random_state`."""
    return generator(random_state).integers(0, 2**63, dtype=np.uint64)


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a Generator from a seed, a Generator, a RandomState or None (fresh entropy)."""
    if isinstance(random_state, (bool, np.bool_)):  # NumPy takes them for 1 and 0
        raise checks.ArgumentError(f"random_state must be a whole number, not {random_state!r}")
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "random_state must be None, a whole number of 0 or more, a Generator or a RandomState; "
            f"got {random_state!r}"
        ) from error


@kernel(inline="always")
def random_bits(seed: int, counter: int) -> np.uint64:
    """Return the counter-th 64 random bits of this seed (splitmix64)."""
    x = np.uint64(seed) + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(inline="always")
def random_below(seed: int, counter: int, m: int) -> np.int64:
    """Return the counter-th random integer in 0..m-1 of this seed."""
    x = random_bits(seed, counter) >> np.uint64(32)
    return np.int64((x * np.uint64(m)) >> np.uint64(32))


@kernel
def sample(m: int, k: int, seed: int, stream: int, taken: AnyArray, out: AnyArray) -> int:
    """Put min(m, k) distinct integers of 0..m-1 into `out` (Floyd's method); return how many.

    `taken` is a scratch array of at least m entries, all False before and after.
    """
    k = min(m, k)
    start = np.uint64(stream) << np.uint64(32)
    for t in range(k):
        top = m - k + t
        pick: int | np.int64 = random_below(seed, start + np.uint64(t), top + 1)
        if taken[pick]:
            pick = top
        taken[pick] = True
        out[t] = pick
    for t in range(k):
        taken[out[t]] = False
    return k
