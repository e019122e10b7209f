"""Fingerprints: equal, different, missing, forced."""

import warnings

import pytest

from auxhash.compute.fingerprint import (
    OtherModelError,
    UnknownModelWarning,
    checked,
    digest,
    match,
)

ONE, TWO = digest([b"one"]), digest([b"two"])


def test_the_same_model_is_accepted_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert match("a.index", ONE, "b.index", ONE) == ONE


def test_two_models_are_refused_by_name():
    with pytest.raises(OtherModelError, match=f"a.index was made by model {ONE} and b.index by"):
        match("a.index", ONE, "b.index", TWO)
    assert match("a.index", ONE, "b.index", TWO, force=True) == ONE


@pytest.mark.parametrize(
    ("first", "second", "known"), [(ONE, None, ONE), (None, TWO, TWO), (None, None, None)]
)
def test_what_carries_none_is_accepted_with_a_warning(first, second, known):
    with pytest.warns(UnknownModelWarning, match="not say which model"):
        assert match("a.index", first, "b.index", second) == known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert match("a.index", first, "b.index", second, force=True) == known


def test_parts_are_told_apart():
    assert digest([b"ab", b"c"]) != digest([b"a", b"bc"])
    assert digest([b"ab", b""]) != digest([b"ab"])
    assert digest([b"one"]) == "d87f6914ee2e62d4"  # files carry it: it must never change


@pytest.mark.parametrize("wrong", ["", "abc", ONE.upper(), ONE + "0", 7, b"0" * 16])
def test_anything_else_is_no_fingerprint(wrong):
    with pytest.raises(ValueError, match="fingerprint must be"):
        checked("fingerprint", wrong)


def test_a_fingerprint_is_accepted():
    assert checked("fingerprint", ONE) == ONE
    assert checked("fingerprint", None) is None
