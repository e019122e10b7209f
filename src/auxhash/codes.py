"""Binary codes: +-1 int8 in the mathematics, packed bytes at the edges, 64-bit words in kernels.

Bit k of a code sits at byte k // 8, bit k % 8 (little), which is what faiss and most others take;
+1 packs to bit 1 and padding bits are 0.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

Codes = NDArray[np.int8]
Packed = NDArray[np.uint8]
Words = NDArray[np.uint64]


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits in a uint64, as a uint64; Numba does not compile np.bitwise_count.

    Kernels index with unsigned integers where they can: a signed index costs a test for negative
    ones. Mixing the two in one expression would make it a float.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        ctpop = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(ctpop, args)

    return types.uint64(types.uint64), emit


def as_codes(codes: ArrayLike, name: str = "codes") -> Codes:
    """Check that `codes` is an (n, b) array of -1 and +1 and return it as int8."""
    array = np.asarray(codes)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be of shape (n, n_bits), got shape {array.shape}")
    if not (np.issubdtype(array.dtype, np.number) and np.all(np.abs(array) == 1)):
        raise ValueError(f"{name} must hold only -1 and +1")
    return np.ascontiguousarray(array, dtype=np.int8)


def sign(values: NDArray[np.floating[Any]]) -> Codes:
    """Sign as +-1 int8, with sign(0) = +1."""
    return np.where(values >= 0, np.int8(1), np.int8(-1))


def pack(codes: ArrayLike) -> Packed:
    """Pack +-1 codes (n, b) into uint8 (n, ceil(b / 8))."""
    return np.packbits(as_codes(codes) > 0, axis=1, bitorder="little")


def unpack(packed: ArrayLike, n_bits: int) -> Codes:
    """Unpack uint8 (n, ceil(n_bits / 8)) into +-1 codes (n, n_bits)."""
    array = np.asarray(packed)
    width = -(-n_bits // 8)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
        raise ValueError(
            f"packed codes of {n_bits} bits must be uint8 of shape (n, {width}), "
            f"got {array.dtype} of shape {array.shape}"
        )
    bits = np.unpackbits(array, axis=1, count=n_bits, bitorder="little")
    return (2 * bits.astype(np.int8) - 1).astype(np.int8)


def as_packed(codes: ArrayLike, name: str = "codes") -> Packed:
    """Take packed uint8 codes as they are, and pack +-1 codes on the way in."""
    array = np.asarray(codes)
    if array.dtype != np.uint8:
        return pack(as_codes(array, name))
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be of shape (n, n_bytes), got shape {array.shape}")
    return np.ascontiguousarray(array)


def to_words(packed: Packed) -> Words:
    """Widen packed bytes (n, n_bytes) to uint64 (n, ceil(n_bytes / 8)), zero-padded."""
    n, width = packed.shape
    wide = np.zeros((n, -(-width // 8) * 8), np.uint8)
    wide[:, :width] = packed
    # "<u8" keeps bit k of the code at word k // 64, bit k % 64, whatever the machine's byte order.
    return wide.view("<u8").astype(np.uint64, copy=False)


def hamming(a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """Hamming distances (n_a, n_b) of two sets of codes, packed or +-1."""
    a_packed, b_packed = as_packed(a, "a"), as_packed(b, "b")
    if a_packed.shape[1] != b_packed.shape[1]:
        raise ValueError(
            f"codes of {a_packed.shape[1]} and {b_packed.shape[1]} bytes cannot be compared"
        )
    differ = to_words(a_packed)[:, None, :] ^ to_words(b_packed)[None, :, :]
    distance: NDArray[np.int64] = np.bitwise_count(differ).sum(axis=2, dtype=np.int64)
    return distance
