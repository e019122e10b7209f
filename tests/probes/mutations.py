"""Damage to files, at random: what disks, networks and attackers do to bytes."""

import numpy as np

EXTREMES = (0, 1, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes; half of them in the first bytes, where headers are."""
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(0, 8)
        size = max(1, len(data))
        at = int(rng.integers(0, min(size, 300) if rng.random() < 0.5 else size))
        length = int(rng.integers(1, 1 + min(64, size)))
        changed = bytearray(data)
        if kind <= 1 and data:
            changed[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 2:
            changed = changed[:at]
        elif kind == 3:
            changed += rng.bytes(length)
        elif kind == 4:
            changed[at : at + length] = rng.bytes(length)
        elif kind == 5:
            changed[at : at + length] = b""
        elif kind == 6:
            changed[at:at] = changed[at : at + length]
        else:
            width = int(rng.choice([2, 4, 8]))
            value = int(rng.choice(np.array(EXTREMES, dtype=object))) % 2 ** (8 * width)
            changed[at : at + width] = value.to_bytes(width, "little")
        data = bytes(changed)
    return data
