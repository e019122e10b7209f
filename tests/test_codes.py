from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash import codes
from tests import oracle

BITS = [1, 7, 8, 9, 63, 64, 65, 128, 256]


@pytest.mark.parametrize("b", BITS)
def test_packing_round_trips(b):
    Z = oracle.codes(np.random.default_rng(b), 20, b)
    packed = codes.pack(Z)
    assert packed.shape == (20, -(-b // 8))
    np.testing.assert_array_equal(codes.unpack(packed, b), Z)


def test_bit_order_is_little_and_padding_zero():
    Z = -np.ones((1, 11), np.int8)
    Z[0, [0, 9]] = 1
    np.testing.assert_array_equal(codes.pack(Z), [[0b00000001, 0b00000010]])
    assert codes.to_words(codes.pack(Z))[0, 0] == 1 + 2**9


@given(st.integers(1, 140), st.integers(0, 2**32))
def test_hamming_counts_differing_bits(b, seed):
    rng = np.random.default_rng(seed)
    A, B = oracle.codes(rng, 4, b), oracle.codes(rng, 3, b)
    expected = (A[:, None, :] != B[None]).sum(2)
    np.testing.assert_array_equal(codes.hamming(A, B), expected)
    np.testing.assert_array_equal(codes.hamming(codes.pack(A), B), expected)


def test_sign_of_zero_is_plus_one():
    np.testing.assert_array_equal(codes.sign(np.array([-1.0, -0.0, 0.0, 2.0])), [-1, 1, 1, 1])


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (np.zeros((2, 3)), "-1 and \\+1"),
        (np.ones(3), "shape"),
        (np.ones((2, 0)), "shape"),
        ([["a"]], "-1 and \\+1"),
    ],
)
def test_what_are_no_codes(bad, says):
    with pytest.raises(ValueError, match=says):
        codes.as_codes(bad)


def test_unpack_wants_the_right_width():
    with pytest.raises(ValueError, match="uint8 of shape"):
        codes.unpack(np.zeros((2, 3), np.uint8), 9)


def test_codes_of_different_length_do_not_compare():
    with pytest.raises(ValueError, match="cannot be compared"):
        codes.hamming(np.zeros((1, 1), np.uint8), np.zeros((1, 2), np.uint8))


def test_codes_of_16_and_12_bits_do_not_compare():
    wide, narrow = np.ones((1, 16), np.int8), np.ones((1, 12), np.int8)
    with pytest.raises(ValueError, match="a of 16 bits and b of 12 bits cannot be compared"):
        codes.hamming(wide, narrow)
    with pytest.raises(ValueError, match="padding bits beyond n_bits=12"):
        codes.hamming(codes.pack(wide), narrow)
    assert codes.hamming(codes.pack(narrow), narrow).tolist() == [[0]]


def test_packed_codes_are_checked_for_width_and_padding():
    packed = np.array([[255, 15]], np.uint8)
    assert codes.as_packed(packed, n_bits=12) is not None
    for n_bits, message in [(11, "padding bits"), (8, "of 8 bits"), (0, "n_bits must be")]:
        with pytest.raises(ValueError, match=message):
            codes.as_packed(packed, "codes", n_bits)
        with pytest.raises(ValueError, match=message):
            codes.unpack(packed, n_bits)
    with pytest.raises(ValueError, match="mine of 12 bits must be"):
        codes.as_packed(np.ones((1, 11)), "mine", 12)
    assert codes.as_packed(packed[:0], n_bits=3 + 8).shape == (0, 2)


def test_bits_that_codes_have_in_common():
    plain, packed = np.ones((3, 12)), np.zeros((3, 2), np.uint8)
    assert codes.common_bits(a=plain) == codes.common_bits(a=packed, b=plain) == 12
    assert codes.common_bits(a=packed, b=packed) == 16


@pytest.mark.parametrize("wrong", [[[1j]], [[True]], [[np.nan]], np.ones((1, 2), object)])
def test_numbers_that_are_no_bits(wrong):
    with pytest.raises(ValueError, match="only -1 and"):
        codes.as_packed(np.asarray(wrong))


def embeddings(n_bits):
    """Float embeddings, and the +-1 codes of their signs."""
    values = np.random.default_rng(n_bits).normal(size=(30, n_bits))
    return values, codes.sign(values)


@pytest.mark.parametrize("b", [7, 8, 16, 64, 100, 256])
def test_big_endian_bits_are_numpys(b):
    """Vespa's, and sentence-transformers' "ubinary": np.packbits(embeddings > 0), as it says."""
    values, Z = embeddings(b)
    ubinary = np.packbits(values > 0, axis=-1)
    np.testing.assert_array_equal(codes.to_order(codes.pack(Z), b, "ubinary"), ubinary)
    np.testing.assert_array_equal(codes.from_order(ubinary, b, "ubinary"), codes.pack(Z))


@pytest.mark.parametrize("b", [8, 64, 256])
def test_binary_is_sentence_transformers(b):
    """Its formula for "binary": (np.packbits(embeddings > 0).reshape(n, -1) - 128).astype(int8)."""
    values, Z = embeddings(b)
    binary = (np.packbits(values > 0).reshape(len(values), -1).astype(int) - 128).astype(np.int8)
    assert binary.min() < 0 < binary.max()
    ours = codes.to_order(codes.pack(Z), b, "binary")
    assert ours.dtype == np.int8
    np.testing.assert_array_equal(ours, binary)
    np.testing.assert_array_equal(codes.from_order(binary, b, "binary"), codes.pack(Z))


def test_little_is_ours():
    packed = codes.pack(embeddings(100)[1])
    np.testing.assert_array_equal(codes.to_order(packed, 100, "little"), packed)
    np.testing.assert_array_equal(codes.from_order(packed, 100, "little"), packed)


@given(st.integers(1, 140), st.integers(0, 2**32), st.sampled_from(codes.ORDERS))
def test_orders_round_trip(b, seed, order):
    packed = codes.pack(oracle.codes(np.random.default_rng(seed), 5, b))
    np.testing.assert_array_equal(
        codes.from_order(codes.to_order(packed, b, order), b, order), packed
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: codes.to_order(np.zeros((1, 1), np.uint8), 8, "big"), "order must be one of"),
        (lambda: codes.to_order(np.ones((1, 8)), 8, "ubinary"), "packed must be uint8"),
        (lambda: codes.from_order(np.ones((1, 1), np.uint8), 8, "binary"), "must be int8, got"),
        (lambda: codes.from_order(np.ones((1, 1), np.int8), 8, "ubinary"), "must be uint8, got"),
        # Bytes of the other order show in the padding, where there is any.
        (lambda: codes.from_order(np.ones((1, 1), np.uint8), 7, "ubinary"), "padding bits"),
        (lambda: codes.from_order(np.ones((1, 2), np.uint8), 8, "ubinary"), "of shape"),
    ],
)
def test_what_is_not_in_the_order(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_shared_codes_are_counted_exactly():
    rng = np.random.default_rng(0)
    for n_bytes in (1, 8, 13, 32):
        packed = rng.integers(0, 256, (1200, n_bytes), dtype=np.uint8)
        packed[:500] = packed[0]
        packed[500:700] = packed[500]
        counts = Counter(map(bytes, packed))
        covered = sum(n for _, n in counts.most_common(10))
        assert codes.shared(packed).startswith(f"10 codes cover {covered} of 1,200 points")
    assert codes.shared(packed[:999]) == ""  # too few points to say so
    assert codes.shared(rng.integers(0, 256, (1200, 8), dtype=np.uint8)) == ""
    assert codes.shared(np.zeros((1200, 2), np.uint8)).startswith(
        "1 code covers 1,200 of 1,200 points"
    )
