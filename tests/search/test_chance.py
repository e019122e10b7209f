"""Queries that have nothing to do with the codes they are searched among."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

from auxhash import HammingIndex, MACHash
from auxhash.learn import baselines
from auxhash.search import chance
from auxhash.search.chance import MIN_CODES, MIN_QUERIES, by_chance
from tests.conftest import SOAK

X, y = load_digits(return_X_y=True)
BASE, QUERIES = X[:1500], X[1500:]


def model(kind, b, seed):
    if kind == "MAC":
        few = {"n_similar": 20, "n_dissimilar": 60, "max_iter": 1, "refine": None}
        return MACHash(b, **few, random_state=seed).fit(BASE, y[:1500])
    return getattr(baselines, kind)(b, random_state=seed).fit(BASE)


@pytest.mark.parametrize(
    ("kind", "b"), [*product(["ITQ", "LSH"], [16, 64]), ("MAC", 16), *[("MAC", 64)] * SOAK]
)
def test_models_of_one_size_are_told_apart(kind, b):
    own, other = model(kind, b, 0), model(kind, b, 1)
    index = HammingIndex(b).add(own.encode(BASE))
    assert not by_chance(index, own.encode(QUERIES))
    assert by_chance(index, other.encode(QUERIES))


def test_columns_in_another_order():
    rng = np.random.default_rng(0)
    own = model("ITQ", 32, 0)
    index = HammingIndex(32).add(own.encode(BASE))
    assert by_chance(index, own.encode(QUERIES[:, rng.permutation(64)]))


def test_where_nothing_can_be_told():
    own, other = model("LSH", 64, 0), model("LSH", 64, 1).encode(QUERIES)
    codes = own.encode(BASE)
    index = HammingIndex(64).add(codes)
    assert by_chance(index, other[:MIN_QUERIES])
    assert not by_chance(index, other[: MIN_QUERIES - 1])
    assert not by_chance(index, other[:0])
    assert not by_chance(HammingIndex(64), other)
    assert by_chance(HammingIndex(64).add(codes[:MIN_CODES]), other)
    assert not by_chance(HammingIndex(64).add(codes[: MIN_CODES - 1]), other)
    rng = np.random.default_rng(0)
    short = rng.integers(0, 256, (3000, 1), np.uint8)
    assert not by_chance(HammingIndex(8).add(short), short[:100])  # each code has one nearby


@pytest.mark.parametrize("b", [16, 64])
@pytest.mark.parametrize("kind", ["ITQ", "LSH"])
def test_points_without_neighbours_say_nothing(kind, b):
    """Of noise, the codes of the model's own queries are no nearer than chance."""
    noise = np.random.default_rng(0).normal(size=(3300, 100))
    own = getattr(baselines, kind)(b, random_state=0).fit(noise[:3000])
    assert not by_chance(HammingIndex(b).add(own.encode(noise[:3000])), own.encode(noise[3000:]))


def test_a_part_of_many_codes_is_looked_at(monkeypatch):
    own, other = model("LSH", 64, 0), model("LSH", 64, 1).encode(QUERIES)
    ids = np.arange(1500) * 7 + 3
    index = HammingIndex(64).add(own.encode(BASE), ids)
    monkeypatch.setattr(chance, "MAX_CODES", 400)
    assert not by_chance(index, own.encode(QUERIES))
    assert by_chance(index, other)


def test_copies_are_near():
    own = model("LSH", 16, 0)
    codes = own.encode(BASE)
    assert not by_chance(HammingIndex(16).add(codes), codes[:300])
