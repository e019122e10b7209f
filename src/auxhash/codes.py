"""Binary codes: +-1 int8 in formulas, packed bytes in files and indexes, 64-bit words in kernels.

Bit k of a code is bit k % 8 of byte k // 8 (little-endian), as in faiss and most other libraries;
+1 is packed as 1, -1 as 0, and padding bits are 0.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks
from auxhash.compute import device as devices
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.kernels import intrinsic

Codes = NDArray[np.int8]
Packed = NDArray[np.uint8]
Words = NDArray[np.uint64]
BitOrder = Literal["little", "ubinary", "binary"]
ORDERS = ("little", "ubinary", "binary")

# Index and metrics take codes of up to this many bits: their kernels keep a distance, together with
# whether the point is relevant, in 16 bits.
MAX_BITS = (1 << 15) - 1

N_SHARED, MIN_POINTS = 10, 1000  # codes that `shared` counts, and the points that it takes

# Each byte with its bits in the other order.
_FLIPPED = np.packbits(np.arange(256, dtype=np.uint8)[:, None] >> np.arange(8) & 1, axis=1)[:, 0]


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits in a uint64, as a uint64; Numba does not compile np.bitwise_count.

    Kernels index with unsigned integers where they can: a signed index needs a test for negative
    values. An expression that mixes the two would become a float.
    """
    from llvmlite import ir
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        ctpop = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(ctpop, args)

    return types.uint64(types.uint64), emit


def as_codes(codes: ArrayLike, name: str = "codes") -> Codes:
    """Check that `codes` is an (n, b) array of -1 and +1 and return it as int8."""
    array = np.asarray(codes)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be of shape (n, n_bits), got shape {array.shape}")
    if not (np.issubdtype(array.dtype, np.number) and ((array == 1) | (array == -1)).all()):
        raise ValueError(f"{name} must hold only -1 and +1")
    return np.ascontiguousarray(array.real, dtype=np.int8)


def sign(values: NDArray[np.floating[Any]]) -> Codes:
    """Sign as +-1 int8, with sign(0) = +1."""
    return np.where(values >= 0, np.int8(1), np.int8(-1))


def pack(codes: ArrayLike) -> Packed:
    """Pack +-1 codes (n, b) into uint8 (n, ceil(b / 8))."""
    plain = as_codes(codes) if devices.on_processor(codes) else devices.native(codes)
    return pack_bits(plain > 0)


def pack_bits(bits: NDArray[np.bool_]) -> Packed:
    """Pack bits (n, b), True for +1, into uint8 (n, ceil(b / 8))."""
    if not devices.on_processor(bits):
        return _pack_on_gpu(bits)
    if bits.shape[1] % 8:
        return np.packbits(bits, axis=1, bitorder="little")
    packed = np.packbits(bits.ravel(), bitorder="little")  # several times as fast
    return packed.reshape(len(bits), bits.shape[1] // 8)


def _pack_on_gpu(bits: NDArray[np.bool_]) -> Packed:
    """Pack bits on a GPU, by array operations that CuPy has."""
    device, (n, b) = devices.of(bits), bits.shape
    wide = device.zeros((n, n_bytes(b) * 8), np.uint8)
    wide[:, :b] = bits
    place = device.put(1 << np.arange(8, dtype=np.uint8))
    packed: Packed = (wide.reshape(n, n_bytes(b), 8) * place).sum(axis=2, dtype=np.uint8)
    return packed


def unpack(packed: ArrayLike, n_bits: int) -> Codes:
    """Unpack uint8 (n, ceil(n_bits / 8)) into +-1 codes (n, n_bits)."""
    array = np.asarray(packed)
    if array.dtype != np.uint8:
        raise ValueError(
            f"packed codes of {n_bits} bits must be uint8 of shape (n, {n_bytes(n_bits)}), "
            f"got {array.dtype} of shape {array.shape}"
        )
    array = as_packed(array, "packed", n_bits)
    bits = np.unpackbits(array, axis=1, count=n_bits, bitorder="little")
    return (2 * bits.astype(np.int8) - 1).astype(np.int8)


def to_order(packed: ArrayLike, n_bits: int, order: BitOrder) -> NDArray[np.integer[Any]]:
    """Packed codes (n, n_bytes) in the bit order of another system.

    Args:
        order: "ubinary" has bit 0 of a code as the most significant bit of byte 0, as uint8:
            the order of numpy.packbits, sentence-transformers and Vespa (whose int8 cells are
            these bytes, `.view(np.int8)`). "binary" is sentence-transformers' other one: the same
            less 128, as int8. "little" is ours, faiss's and sqlite-vec's.
    """
    array = np.asarray(packed)
    if array.dtype != np.uint8:  # +-1 codes have no order of bits
        raise ValueError(f"packed must be uint8, got {array.dtype}")
    array = as_packed(array, "packed", n_bits)
    if checks.one_of("order", order, ORDERS) == "little":
        return array
    flipped = _FLIPPED[array]
    return flipped if order == "ubinary" else (flipped.astype(np.int16) - 128).astype(np.int8)


def from_order(codes: ArrayLike, n_bits: int, order: BitOrder) -> Packed:
    """Packed codes (n, n_bytes) of ours from those of another system; `order` as for `to_order`."""
    array = np.asarray(codes)
    if checks.one_of("order", order, ORDERS) == "binary":
        if array.dtype != np.int8:
            raise ValueError(f'codes in the order "binary" must be int8, got {array.dtype}')
        array = (array.astype(np.int16) + 128).astype(np.uint8)
    if array.dtype != np.uint8:
        raise ValueError(f'codes in the order "{order}" must be uint8, got {array.dtype}')
    return as_packed(array if order == "little" else _FLIPPED[array], n_bits=n_bits)


def n_bytes(n_bits: int) -> int:
    """Bytes per packed code."""
    return -(-n_bits // 8)


def as_packed(codes: ArrayLike, name: str = "codes", n_bits: int | None = None) -> Packed:
    """Packed codes (n, n_bytes), from packed codes (uint8) or from +-1 codes (any other type).

    With `n_bits` the codes must be of that many bits, and the padding bits of packed codes must be
    0: a padding bit that is set would count as a difference. Without, packed codes may use all of
    their bits. (Unpacked bits 0 and 1 as uint8 are read as packed codes of 8 times as many bits,
    at the same distances: only `n_bits` reveals the mistake.)
    """
    array = np.asarray(codes)
    plain = array.dtype != np.uint8
    if n_bits is None:
        if not plain and (array.ndim != 2 or array.shape[1] == 0):
            raise ValueError(f"{name} must be of shape (n, n_bytes), got shape {array.shape}")
        return pack(as_codes(array, name)) if plain else np.ascontiguousarray(array)
    n_bits = checks.integer("n_bits", n_bits, 1)
    if array.ndim != 2:
        raise ValueError(f"{name} must be of shape (n, n_bits), got shape {array.shape}")
    if array.shape[1] != (n_bits if plain else n_bytes(n_bits)):
        kind = f"+-1 of shape (n, {n_bits}) or packed uint8 of shape (n, {n_bytes(n_bits)})"
        raise ValueError(
            f"{name} of {n_bits} bits must be {kind}; got {array.dtype} of shape {array.shape}"
        )
    if plain:
        return pack(as_codes(array, name))
    if n_bits % 8 and len(array) and array[:, -1].max() >> (n_bits % 8):
        raise ValueError(f"{name} must be 0 in the padding bits beyond n_bits={n_bits}")
    return np.ascontiguousarray(array)


def common_bits(**sides: ArrayLike) -> int:
    """The number of bits of sets of codes that are to be compared, each given by its name.

    It is the width of the +-1 codes, which must agree. If all codes are packed, all of their bits
    count. Whether packed codes fit the number is for `as_packed` to check.
    """
    arrays = {name: np.asarray(codes) for name, codes in sides.items()}
    for name, array in arrays.items():
        if array.ndim != 2 or array.shape[1] == 0:
            raise ValueError(f"{name} must be of shape (n, n_bits), got shape {array.shape}")
    plain = {name: a.shape[1] for name, a in arrays.items() if a.dtype != np.uint8}
    bits = plain or {name: 8 * a.shape[1] for name, a in arrays.items()}
    if len(set(bits.values())) > 1:
        sizes = " and ".join(f"{name} of {b} bits" for name, b in bits.items())
        raise ValueError(f"{sizes} cannot be compared")
    return int(next(iter(bits.values())))


def shared(packed: Packed) -> str:
    """Describe how many points have one of the ten most frequent codes; "" if not most of them."""
    if len(packed) < MIN_POINTS:
        return ""
    words = to_words(packed)
    mixed = words[:, 0].copy()
    for column in words.T[1:]:  # codes that differ are as good as never mixed into one number
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) ^ column
    most = np.sort(np.unique(mixed, return_counts=True)[1])[-N_SHARED:]
    if 2 * most.sum() <= len(packed):
        return ""
    verb = "codes cover" if len(most) > 1 else "code covers"
    return (
        f"{len(most)} {verb} {most.sum():,} of {len(packed):,} points, whose order a search by "
        "codes alone leaves open"
    )


def to_words(packed: Packed) -> Words:
    """Widen packed bytes (n, n_bytes) to uint64 (n, ceil(n_bytes / 8)), zero-padded."""
    n, width = packed.shape
    wide = np.zeros((n, -(-width // 8) * 8), np.uint8)
    wide[:, :width] = packed
    # "<u8" keeps bit k of the code at word k // 64, bit k % 64, whatever the machine's byte order.
    return wide.view("<u8").astype(np.uint64, copy=False)


def codes_to_words(codes: Codes) -> Words:
    """+-1 codes (n, b) as uint64 (n, ceil(b / 64)): bit k at word k // 64, bit k % 64."""
    return to_words(pack(codes))


def words_to_codes(words: Words, n_bits: int) -> Codes:
    """The reverse of `codes_to_words`."""
    return unpack(words.astype("<u8").view(np.uint8)[:, : n_bytes(n_bits)], n_bits)


def hamming(a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """Hamming distances (n_a, n_b) of two sets of codes, packed or +-1."""
    n_bits = common_bits(a=a, b=b)
    a_packed, b_packed = as_packed(a, "a", n_bits), as_packed(b, "b", n_bits)
    differ = to_words(a_packed)[:, None, :] ^ to_words(b_packed)[None, :, :]
    distance: NDArray[np.int64] = np.bitwise_count(differ).sum(axis=2, dtype=np.int64)
    return distance
