import numpy as np
import pytest

import auxhash
from auxhash import MACHash, affinity, baselines, datasets, losses, metrics
from auxhash.experiments import runs
from auxhash.experiments.cells import Cells
from auxhash.hasher import Hasher


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits", n_train=200, n_query=50)


SMALL = {"k": (10, 50), "n_similar": 10, "n_dissimilar": 20, "verbose": 0}


class Broken(Hasher):
    """A method that fails."""

    def __init__(self, n_bits=8):
        self.n_bits = n_bits

    def fit(self, X, y=None):
        raise RuntimeError("no luck")


def test_one_row_each(digits):
    found = auxhash.compare(digits, ["MAC", "cut", "ITQ", "OneHot"], (8, 16), (0, 1), **SMALL)
    assert len(found.rows) == 4 * 2 * 2
    assert not any(row["failed"] for row in found.rows)
    for row in found.rows:
        assert 0 < row["p@50"] <= 1
        assert 0 < row["b_eff"] <= row["bits"]
        assert row["train s"] > 0
        assert row["codes/s"] > 0
        assert row["model bytes"] > 100
    losses_of = {(r["method"], r["bits"], r["seed"]): r["L(h)"] for r in found.rows}
    assert losses_of["MAC", 16, 0] < losses_of["ITQ", 16, 0]
    text = str(found)
    for part in ("OneHot", "p@10", "expected value over all orders", digits.protocol[:20]):
        assert part in text
    frame = found.to_frame()
    assert len(frame) == 16
    assert frame.attrs["seeds"] == [0, 1]


def test_the_numbers_are_the_method_s_own(digits):
    row = auxhash.compare(digits, ["MAC"], (8,), (3,), **SMALL).rows[0]
    pairs = affinity.from_labels(digits.train.y, 10, 20, random_state=3)
    hasher = MACHash(n_bits=8, n_similar=10, n_dissimilar=20, random_state=3)
    hasher.fit(digits.train.X, digits.train.y, affinity=pairs)
    assert row["L(h)"] == hasher.loss_
    base, query = hasher.transform(digits.base.X), hasher.transform(digits.query.X)
    np.testing.assert_allclose(
        row["p@10"], metrics.precision_at_k(query, base, digits.query.y, digits.base.y, 10)
    )
    assert row["L(h)"] == losses.total(hasher.transform(digits.train.X), pairs, "ksh")


def test_a_method_that_fails_says_why(digits):
    found = auxhash.compare(digits, [Broken(), "TPCA"], (100,), **SMALL)
    assert found.rows[0]["failed"] == "RuntimeError: no luck"
    assert "100" in found.rows[1]["failed"]  # more bits than features
    assert np.isnan(found.rows[0]["mAP"])
    assert "no luck" in str(found)


def test_nothing_is_trained_twice(digits, tmp_path, monkeypatch):
    first = auxhash.compare(digits, ["MAC", "ITQ"], (8,), (0,), folder=tmp_path, **SMALL)
    trained = []
    train = runs.train
    monkeypatch.setattr(
        runs, "train", lambda hasher, *rest: trained.append(hasher) or train(hasher, *rest)
    )
    again = auxhash.compare(digits, ["MAC", "ITQ"], (8,), (0,), folder=tmp_path, **SMALL)
    assert trained == []
    assert again.rows == first.rows
    # Other ranks need no training; another method, or another parameter, does.
    auxhash.compare(digits, ["MAC"], (8,), (0,), folder=tmp_path, **{**SMALL, "k": (3,)})
    assert trained == []
    more = [MACHash(alpha=1.6), "MAC", baselines.LSH()]
    auxhash.compare(digits, more, (8,), (0,), folder=tmp_path, **SMALL)
    assert [type(hasher).__name__ for hasher in trained] == ["MACHash", "LSH"]


def test_an_interrupted_run_goes_on(digits, tmp_path, monkeypatch):
    train = runs.train
    calls = []

    def killed(hasher, *rest):
        calls.append(hasher)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(hasher, *rest)

    monkeypatch.setattr(runs, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        auxhash.compare(digits, ["LSH", "PCARR", "ITQ"], (8,), folder=tmp_path, **SMALL)
    found = auxhash.compare(digits, ["LSH", "PCARR", "ITQ"], (8,), folder=tmp_path, **SMALL)
    assert len(found.rows) == 3
    assert len(calls) == 4  # LSH was kept


def test_neighbours_as_ground_truth():
    X = np.random.default_rng(0).normal(size=(300, 6))
    data = datasets.Dataset(
        "blob",
        datasets.Points(X[:100]),
        datasets.Points(X[:250]),
        datasets.Points(X[250:], neighbors=np.arange(50 * 5).reshape(50, 5) % 250),
        "made",
    )
    found = auxhash.compare(data, ["cut", "PCARR"], (6,), **SMALL)
    assert not any(row["failed"] for row in found.rows)


def test_unknown_methods(digits):
    with pytest.raises(ValueError, match="did you mean 'MACcut'"):
        auxhash.compare(digits, ["MACcat"], **SMALL)


def test_cells(tmp_path):
    cells = Cells(tmp_path / "new")
    one, two = {"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]}
    cells.write(one, {"seconds": 1.5}, {"base": np.arange(4, dtype=np.uint8)})
    assert one in cells
    assert two not in cells
    facts, arrays = cells.read(one)
    assert facts == {"seconds": 1.5}
    np.testing.assert_array_equal(arrays["base"], np.arange(4))
    cells.path(two).write_bytes(b"PK but no more")
    with pytest.raises(ValueError, match="is no result of a run"):
        cells.read(two)
