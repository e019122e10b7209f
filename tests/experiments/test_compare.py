import re
import warnings
from io import StringIO

import matplotlib.colors
import numpy as np
import pytest
from rich.console import Console

import auxhash
from auxhash import MACHash
from auxhash.experiments import datasets, runs
from auxhash.experiments.cells import Cells
from auxhash.experiments.entries import WITH_LABELS
from auxhash.learn import baselines
from auxhash.learn.hasher import Hasher
from auxhash.mac import affinity, losses
from auxhash.search import metrics


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
    comparison = auxhash.compare(digits, ["MAC", "cut", "ITQ", "OneHot"], (8, 16), (0, 1), **SMALL)
    *rows, exact = comparison.rows
    assert len(rows) == 4 * 2 * 2
    assert exact["method"] == "vectors"
    assert not any(row["failed"] for row in comparison.rows)
    for row in rows:
        assert 0 < row["p@50"] <= 1
        assert 0 < row["b_eff"] <= row["bits"]
        assert row["train s"] > 0
        assert row["codes/s"] > 0
        assert row["model bytes"] > 100
    losses_of = {(r["method"], r["bits"], r["seed"]): r["L(h)"] for r in comparison.rows}
    assert losses_of["MAC", 16, 0] < losses_of["ITQ", 16, 0]
    text = str(comparison)
    for part in ("OneHot", "p@10", "expected value over all orders", digits.protocol[:20]):
        assert part in text
    frame = comparison.to_frame()
    assert len(frame) == 17
    assert frame.attrs["seeds"] == [0, 1]


def test_the_numbers_are_the_method_s_own(digits):
    row = auxhash.compare(digits, ["MAC"], (8,), (3,), **SMALL).rows[0]
    pairs = affinity.from_labels(digits.train.y, 10, 20, random_state=3)
    hasher = MACHash(n_bits=8, n_similar=10, n_dissimilar=20, refine=None, random_state=3)
    hasher.fit(digits.train.X, digits.train.y, affinity=pairs)
    assert row["L(h)"] == hasher.loss_
    base, query = hasher.transform(digits.base.X), hasher.transform(digits.query.X)
    np.testing.assert_allclose(
        row["p@10"], metrics.precision_at_k(query, base, digits.query.y, digits.base.y, 10)
    )
    assert row["L(h)"] == losses.total(hasher.transform(digits.train.X), pairs, "ksh")


def test_a_method_that_fails_says_why(digits):
    comparison = auxhash.compare(digits, [Broken(), "TPCA"], (100,), **SMALL)
    assert comparison.rows[0]["failed"] == "RuntimeError: no luck"
    assert "100" in comparison.rows[1]["failed"]  # more bits than features
    assert np.isnan(comparison.rows[0]["mAP"])
    assert "no luck" in str(comparison)


def test_nothing_is_trained_twice(digits, tmp_path, monkeypatch):
    first = auxhash.compare(digits, ["MAC", "ITQ"], (8,), (0,), folder=tmp_path, **SMALL)
    trained = []
    train = runs.train
    monkeypatch.setattr(
        runs, "train", lambda hasher, *rest: trained.append(hasher) or train(hasher, *rest)
    )
    again = auxhash.compare(digits, ["MAC", "ITQ"], (8,), (0,), folder=tmp_path, **SMALL)
    assert trained == []
    np.testing.assert_equal(again.rows, first.rows)
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
    comparison = auxhash.compare(digits, ["LSH", "PCARR", "ITQ"], (8,), folder=tmp_path, **SMALL)
    assert len(comparison.rows) == 3 + 1
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
    comparison = auxhash.compare(data, ["cut", "PCARR"], (6,), **SMALL)
    assert not any(row["failed"] for row in comparison.rows)


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


def mine(d, y, b):
    """A loss of one's own."""
    return np.abs(d / b - (1 - y) / 2)


QUICK = {"refine": None, "max_iter": 2, "n_similar": 10, "n_dissimilar": 20}


@pytest.fixture
def trained(monkeypatch):
    """The hashers that were trained, and the pairs they got."""
    result = []
    train = runs.train

    def kept(hasher, data, pairs):
        result.append((hasher, pairs))
        return train(hasher, data, pairs)

    monkeypatch.setattr(runs, "train", kept)
    return result


def test_hashers_of_one_class_are_all_there(digits, trained):
    hashers = [MACHash(loss=mine, **QUICK), MACHash(z_step="cut", **QUICK), "MAC"]
    comparison = auxhash.compare(digits, (hasher for hasher in hashers), 8, **SMALL)
    assert [row["method"] for row in comparison.rows] == [
        "MACHash(loss=mine)",
        "MACHash(z_step='cut')",
        "MAC",
        "vectors",
    ]
    assert len(trained) == 3
    assert len({row["L(h)"] for row in comparison.rows[:3]}) == 3
    assert [row["own"] for row in comparison.rows[:3]] == [
        "loss=mine, max_iter=2, refine=None",
        "z_step='cut', max_iter=2, refine=None",
        "",
    ]
    assert "MACHash(loss=mine" in " ".join(str(comparison).split())
    own = "MACHash(z_step='cut'): z_step='cut', max_iter=2, refine=None"
    assert comparison.protocol["own parameters"].endswith(own)


def test_a_hasher_keeps_its_own_loss(digits, trained):
    own = MACHash(loss=mine, **QUICK)
    methods = {"own": own, "MAC": MACHash(**QUICK)}
    first, second, _ = auxhash.compare(digits, methods, 8, loss="hinge", **SMALL).rows
    assert [hasher.loss for hasher, _ in trained] == [mine, "ksh"]
    assert (first["own"], second["own"]) == (
        "loss=mine, max_iter=2, refine=None",
        "loss='ksh', max_iter=2, refine=None",
    )
    pairs = affinity.from_labels(digits.train.y, 10, 20, random_state=0)
    own.set_params(n_bits=8, random_state=0).fit(digits.train.X, digits.train.y, affinity=pairs)
    codes = own.transform(digits.train.X)
    assert first["L(h)"] == losses.total(codes, pairs, "hinge")  # the shared one in every row
    assert first["L(h)"] != second["L(h)"]


def test_a_hasher_keeps_its_own_numbers_of_pairs(digits, trained):
    methods = [MACHash(**{**QUICK, "n_similar": 5}), MACHash(**QUICK), "MAC", "KSH"]
    comparison = auxhash.compare(digits, methods, 8, 1, **SMALL)
    [few, *shared] = [pairs for _, pairs in trained]
    same = affinity.from_labels(digits.train.y, 5, 20, random_state=1)
    np.testing.assert_array_equal(few.j, same.j)
    assert all(pairs is shared[0] for pairs in shared)
    assert "n_similar=5" in comparison.rows[0]["own"]
    assert "n_similar" not in comparison.rows[1]["own"]
    message = comparison.protocol["pairs"]
    assert message.startswith(
        "10 similar and 20 dissimilar for each training point, the same for all"
    )
    assert message.endswith("; but MACHash(n_similar=5) from 5 similar and 20 dissimilar")
    every = affinity.from_labels(digits.train.y, 10, 20, random_state=1)
    codes = trained[0][0].transform(digits.train.X)
    assert comparison.rows[0]["L(h)"] == losses.total(codes, every, "ksh")


def test_a_hasher_of_one_s_own_gets_the_pairs_of_all(digits, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "from auxhash import MACHash\ndef mac():\n    return MACHash(refine=None, max_iter=1)"
    (tmp_path / "ownpairs.py").write_text(text)
    methods = ["MAC", MACHash(refine=None), "ownpairs:mac"]  # n_similar is the default, 100
    comparison = auxhash.compare(digits, methods, 8, **SMALL)
    [first, *others] = [pairs for _, pairs in trained]
    assert all(pairs is first for pairs in others)
    assert {(hasher.n_similar, hasher.n_dissimilar) for hasher, _ in trained} == {(10, 20)}
    assert "but" not in comparison.protocol["pairs"]
    owns = [row["own"] for row in comparison.rows]
    assert owns == ["", "refine=None", "max_iter=1, refine=None", ""]
    assert comparison.rows[0]["mAP"] == comparison.rows[1]["mAP"]  # the same method
    assert comparison.rows[2]["method"] == "ownpairs:mac"
    with pytest.raises(ValueError, match="module ownpairs has no function"):
        auxhash.compare(digits, ["ownpairs:MACHas"], 8, **SMALL)


def test_what_is_not_shared_is_told(digits):
    methods = {"own": MACHash(loss=mine, n_similar=None, n_dissimilar=5, refine=None, max_iter=1)}
    comparison = auxhash.compare(digits, {**methods, "MAC": "MAC"}, 8, **SMALL)
    assert comparison.protocol["loss"] == (
        "'ksh'; L(h) is this loss over these pairs in every row; but own minimises mine"
    )
    assert comparison.protocol["pairs"].endswith("; but own from all similar and 5 dissimilar")
    assert comparison.rows[0]["own"].startswith("loss=mine, n_similar=None, n_dissimilar=5")
    assert comparison.rows[1]["own"] == ""


def test_everything_given_reaches_the_hasher(digits, trained):
    start = np.where(np.random.default_rng(0).random((200, 8)) < 0.5, -1, 1)
    queries = digits.query.X, digits.query.y
    own = MACHash(init=start, validation=queries, warm_start=True, verbose=0, **QUICK)
    [row, _] = auxhash.compare(digits, own, 8, **SMALL).rows
    assert row["own"].startswith("max_iter=2, validation=(uint8 array (50, 64), ")
    [(hasher, _)] = trained
    np.testing.assert_array_equal(hasher.init, start)
    np.testing.assert_array_equal(hasher.validation[0], queries[0])
    assert (hasher.n_bits, hasher.random_state) == (8, 0)
    assert (own.n_bits, own.random_state) == (32, None)
    assert not hasattr(own, "hash_function_")
    [row, _] = auxhash.compare(digits, own, 4, **SMALL).rows
    assert "init must be of shape (200, 4)" in row["failed"]


def test_names_stay_apart(digits):
    methods = [baselines.LSH(), "LSH", baselines.LSH(), baselines.ITQ(n_iter=1), Broken()]
    comparison = auxhash.compare(digits, methods, 8, **SMALL)
    names = [row["method"] for row in comparison.rows]
    assert names == ["LSH #2", "LSH", "LSH #3", "ITQ", "Broken", "vectors"]
    two = [
        lambda d, y, b: d / b * (y > 0) + (1 - d / b) * (y < 0),
        lambda d, y, b: (d / b - y) ** 2,
    ]
    hashers = [MACHash(loss=loss, **QUICK) for loss in two]
    comparison = auxhash.compare(digits, hashers, 8, **SMALL)
    names = [row["method"] for row in comparison.rows]
    assert names[1] == f"{names[0]} #2"
    assert comparison.rows[0]["L(h)"] != comparison.rows[1]["L(h)"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["MAC", "ITQ", "MAC"]}, "methods must be named once each, got 'MAC' twice"),
        ({"methods": []}, "methods must hold at least one name or hasher, got none"),
        ({"methods": [MACHash]}, r"names or hashers, got MACHash: write MACHash\(\)"),
        ({"methods": ["ITQ", np.eye(2)]}, r"names or hashers, got float64 array \(2, 2\)"),
        ({"methods": 5}, "methods must be names or hashers, got 5"),
        ({"methods": {1: MACHash()}}, "methods must have names for keys, got 1"),
        ({"methods": {"MAC": MACHash}}, "names or hashers, got MACHash"),
        ({"seeds": -1}, "seeds must be a whole number of at least 0, got -1"),
        ({"seeds": ()}, "seeds must be a whole number or several, got none"),
        ({"seeds": (0, 1, 0)}, "seeds must be given once each, got 0 twice"),
        ({"bits": (32, 32)}, "bits must be given once each, got 32 twice"),
        ({"bits": 1.5}, "bits must be a whole number from 1 to 32767, got 1.5"),
        ({"bits": "32"}, "bits must be a whole number from 1 to 32767, got '32'"),
        ({"bits": 40_000}, "bits must be a whole number from 1 to 32767, got 40000"),
        ({"loss": lambda d, y, b: d * np.nan}, "the loss is not finite"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": (5, 5)}, "k must be given once each, got 5 twice"),
        ({"loss": "hinges"}, "did you mean 'hinge'"),
        ({"dataset": 3}, r"dataset must be a name, a Dataset or points \(n, D\), got int"),
        ({"seconds": 3}, "seconds is for points without labels, or with n_bytes"),
        ({"metric": "euclidean"}, "metric is for points without labels, or with n_bytes"),
        ({"n_bytes": 4}, "k is for labels, and neighbours are compared"),
        ({"n_similar": 0}, "n_similar"),
    ],
)
def test_wrong_arguments_are_told_before_training(digits, trained, changes, message):
    arguments = {"dataset": digits, "methods": ["ITQ"], **SMALL, **changes}
    with pytest.raises(ValueError, match=message):
        auxhash.compare(**arguments)
    assert not trained


class Fixed(Hasher):
    """A hasher that nothing can be set of."""


def test_hashers_that_cannot_be_trained_as_they_are(digits, trained):
    fitted = MACHash(warm_start=True, n_bits=4, **QUICK).fit(digits.train.X, digits.train.y)
    with pytest.raises(ValueError, match=r"MACHash is fitted and has warm_start=True"):
        auxhash.compare(digits, ["ITQ", fitted], **SMALL)
    with pytest.raises(ValueError, match=r"a parameter n_bits to be set, and Fixed has none"):
        auxhash.compare(digits, ["ITQ", Fixed()], **SMALL)
    assert not trained


def test_single_numbers(digits):
    comparison = auxhash.compare(digits, "LSH", 8, 1, 10, n_similar=10, n_dissimilar=20, verbose=0)
    [row, _] = comparison.rows
    assert (row["bits"], row["seed"]) == (8, 1)
    assert "p@10" in row


def test_ranks_beyond_the_base(digits):
    n = len(digits.base)
    for k in ((10, n, n + 1), (n + 1,)):
        comparison = auxhash.compare(digits, "LSH", 8, **{**SMALL, "k": k})
        for row in comparison.rows:
            assert not row["failed"]
            assert np.isnan(row[f"p@{n + 1}"])
            assert row["mAP"] > 0
            assert all(row[f"p@{rank}"] > 0 for rank in k if rank <= n)
        assert comparison.protocol["not measured"] == f"p@{n + 1}: the base has {n:,} points"
        assert " - " in str(comparison)


def test_some_seeds_may_fail(digits):
    class Sometimes(baselines.LSH):
        def fit(self, X, y=None):
            if self.random_state == 1:
                raise RuntimeError("not [/today]")
            return super().fit(X, y)

    text = " ".join(str(auxhash.compare(digits, Sometimes(), 8, (0, 1), **SMALL)).split())
    assert "seed 1: RuntimeError: not" in text
    assert "[/today]" in text


def two_halves(X, y):
    return datasets.Dataset(
        "made",
        datasets.Points(X[:100], y[:100]),
        datasets.Points(X, y),
        datasets.Points(X[:10], y[:10]),
        "made",
    )


def test_other_data_anywhere_is_another_run(tmp_path, trained):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), np.arange(5000) % 2
    changed, turned = X.copy(), y.copy()
    changed[4321, 1] += 1e-9
    turned[4322:4324] = turned[4322:4324][::-1]
    for data in (two_halves(X, y), two_halves(changed, y), two_halves(X, turned)):
        for _ in range(2):
            auxhash.compare(data, "LSH", 8, folder=tmp_path, **SMALL)
    assert len(trained) == 3


def own_loss(power):
    return lambda d, y, b: np.abs(d / b - (1 - y) / 2) ** power


def test_other_parameters_are_another_run(digits, tmp_path, trained):
    start = np.where(np.random.default_rng(0).random((200, 8)) < 0.5, -1, 1)
    other = start.copy()
    other[100, 4] *= -1
    for settings in [
        {"loss": own_loss(1)},
        {"loss": own_loss(2)},
        {"init": start},
        {"init": other},
    ]:
        for verbose in (0, 1):
            hasher = MACHash(**QUICK, **settings, verbose=verbose)
            auxhash.compare(digits, {"own": hasher}, 8, folder=tmp_path, **SMALL)
    assert len(trained) == 4
    for power in (1, 2, 1):
        methods = {"one": MACHash(loss=own_loss(power), **QUICK), "LSH": "LSH"}
        auxhash.compare(digits, methods, 8, folder=tmp_path, **SMALL)
    assert len(trained) == 5


def test_a_damaged_cell_is_trained_again(digits, tmp_path, trained):
    def compared():
        return auxhash.compare(digits, ["LSH"], 8, folder=tmp_path, **SMALL).rows[0]["mAP"]

    expected = compared()
    [path] = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=r"\.npz is no result of a run .*made again"):
        assert compared() == expected
    assert len(trained) == 2
    assert compared() == expected
    assert len(trained) == 2


def test_damage_never_gives_other_numbers(tmp_path):
    configuration = {"data": "one", "pairs": [1, 2]}
    kept = {"seconds": 1.5}, {"base": np.arange(40, dtype=np.uint8), "train": np.eye(3)}
    Cells(tmp_path).write(configuration, *kept)
    path = Cells(tmp_path).path(configuration)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [good[:n] for n in (0, 1, 4, 100, len(good) // 2, len(good) - 1)]
    listing = range(good.index(b"PK\1\2"), len(good))  # which arrays there are, and where
    for at in [*rng.integers(0, len(good), 300), *listing]:
        flipped = bytearray(good)
        flipped[at] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        cells = Cells(tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = configuration in cells
        if there:  # what was hit is of no consequence, such as a date
            facts, arrays = cells.read(configuration)
            assert facts == kept[0]
            np.testing.assert_equal(arrays, kept[1])
        else:
            refused += 1
            with pytest.raises(ValueError, match="is no result of a run"):
                cells.read(configuration)
    assert refused > 100
    other = {"data": "two", "pairs": [1, 2]}
    Cells(tmp_path).path(other).write_bytes(good)
    with pytest.warns(UserWarning, match="it belongs to another run"):
        assert other not in Cells(tmp_path)


def test_a_folder_that_cannot_be_written(digits, tmp_path, trained, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"must be a folder, and .*file is a file"):
        auxhash.compare(digits, ["LSH"], 8, folder=tmp_path / "file", **SMALL)
    assert not trained

    def full(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(Cells, "write", full)
    with pytest.warns(UserWarning, match="LSH could not be kept: No space left"):
        row = auxhash.compare(digits, ["LSH"], 8, folder=tmp_path, **SMALL).rows[0]
    assert row["mAP"] > 0


def test_bits_and_seeds_of_a_hasher_s_own_are_said_to_be_unused(digits):
    methods = [MACHash(n_bits=4, **QUICK), MACHash(random_state=7, **QUICK), "LSH"]
    comparison = auxhash.compare(digits, methods, bits=8, k=10, verbose=0)
    message = "n_bits=4 of MACHash, random_state=7 of MACHash #2"
    assert comparison.protocol["not used"].startswith(message)
    comparison = auxhash.compare(digits, MACHash(n_bits=8, **QUICK), bits=8, k=10, verbose=0)
    assert "not used" not in comparison.protocol


@pytest.fixture(scope="module")
def compared(digits):
    methods = {"few": baselines.LSH(), "ITQ": "ITQ", "CCAITQ": "CCAITQ", "Broken": Broken()}
    return auxhash.compare(digits, methods, (16, 8), (0, 1), **SMALL)


def test_the_table_is_sorted_and_marks_the_best(compared):
    columns, rows = compared.texts()
    assert columns[:3] == ["bits", "", "method"]
    lengths = [int(row[0].replace(",", "")) for row in rows]
    assert lengths == [8] * 4 + [16] * 4 + [64 * 32]
    means = compared.to_frame().groupby(["bits", "method"])["mAP"].mean()
    at = columns.index("mAP")
    for n, part in ((8, rows[:4]), (16, rows[4:8])):
        *good, broken = part
        assert [float(row[at]) for row in good] == sorted(means[n].dropna().round(3))[::-1]
        assert [row[1] for row in part] == ["★", "", "", ""]
        assert broken[2] == "Broken"
        assert set(broken[3:]) == {"-"}
    assert rows[-1][1:3] == ["", "vectors"]


def test_columns_are_explained(compared):
    columns, _ = compared.texts()
    for name in columns[3:]:
        assert ("p@k" if name.startswith("p@") else name) + ": " in compared.legend
    assert "Failed: Broken, 16 bits: RuntimeError: no luck" in compared.legend
    assert compared.legend in str(compared)


def test_exact_distances_are_the_last_row(digits):
    exact = auxhash.compare(digits, "LSH", 8, **SMALL).rows[-1]
    base, query = digits.base, digits.query
    apart = ((query.X[:, None].astype(float) - base.X[None]) ** 2).sum(axis=2)
    right = base.y[np.argsort(apart, axis=1, kind="stable")] == query.y[:, None]
    assert exact["p@10"] == pytest.approx(right[:, :10].mean())
    assert exact["bits"] == 64 * 32
    precision = right.cumsum(axis=1) / np.arange(1, len(base) + 1)
    average = [row[hits].mean() for row, hits in zip(precision, right, strict=True)]
    assert exact["mAP"] == pytest.approx(np.mean(average))
    near = np.argsort(apart, axis=1, kind="stable")[:, :20]
    by_neighbors = datasets.Dataset(
        "n", digits.train, base, datasets.Points(query.X, neighbors=near), "made"
    )
    exact = auxhash.compare(by_neighbors, "LSH", 8, **SMALL).rows[-1]
    assert exact["p@10"] == exact["mAP"] == 1
    assert exact["p@50"] == pytest.approx(20 / 50)


@pytest.mark.parametrize("width", [80, 60, 160])
@pytest.mark.parametrize("kind", ["labels", "neighbours"])
def test_tables_fit_the_terminal(compared, digits, width, kind):
    if kind == "neighbours":
        compared = auxhash.compare(digits.base.X, ["ITQ", "signs"], n_bytes=(4, 8), verbose=0)
    console = Console(width=width, file=StringIO())
    console.print(compared.table())
    text, _, left_out = console.file.getvalue().partition("No room here for ")
    left_out = left_out.partition(":")[0].split(", ")
    head, _, *lines = text.splitlines()
    assert max(map(len, [head, *lines])) <= width
    columns, rows = compared.texts()
    kept = [at for at, name in enumerate(columns) if name.strip() not in left_out or not name]
    for line, row in zip([head, *filter(str.strip, lines)], [columns, *rows], strict=True):
        assert line.split() == " ".join(row[at] for at in kept).split()  # nothing is cut
    assert left_out == {
        ("labels", 80): [""],
        ("labels", 60): ["model"],
        ("neighbours", 80): ["1M s", "R@100", "model", "codes"],
        ("neighbours", 60): ["1M s", "R@100", "model", "codes", "10@1000", "R@10"],
    }.get((kind, width), [""])


def test_the_text_is_as_wide_as_the_terminal(compared, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    lines = str(compared).splitlines()
    [head] = [line for line in lines if line.lstrip().startswith("bits ")]
    assert len(head) <= 50


def test_notebooks_show_it(compared):
    text = compared._repr_html_()
    assert text.count("★") == 2 + 1  # and what it means
    assert text.count('<svg class="plot"') == 3
    for part in ("<td>few</td>", "vectors", "Failed: Broken", "How it was run", "digits"):
        assert part in text
    style = text[text.index("<style>") : text.index("</style>")]
    outside = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", style)))
    assert set(outside.removeprefix("<style>").split()) <= {".auxhash.auxhash", ".auxhash"}


def test_plots_of_comparisons(compared, digits):
    figure = compared.plot()
    assert [axes.get_title() for axes in figure.axes] == ["8 bits", "16 bits", "k = 50"]
    assert figure.get_suptitle() == "Methods compared on digits"
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["few", "ITQ", "CCAITQ", "vectors"]
    for axes in figure.axes:
        colours = [matplotlib.colors.to_hex(line.get_color()) for line in axes.lines]
        assert len(set(colours)) == len(colours) == 4
    ticks = [text.get_text() for text in figure.axes[2].get_xticklabels()]
    assert ticks == ["8", "16"]
    by_neighbors = auxhash.compare(digits.base.X, ["ITQ", "LSH"], n_bytes=(4, 8), verbose=0)
    figure = by_neighbors.plot()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["4", "8"]
    assert "What codes of a few bytes cost" in figure.get_suptitle()


def test_the_default_methods(digits, trained, briefly_refined):
    comparison = auxhash.compare(digits, bits=8, **SMALL)
    assert [row["method"] for row in comparison.rows] == [*WITH_LABELS, "vectors"]
    assert {h.hash_function for h, _ in trained if isinstance(h, MACHash)} == {
        *("linear", "rbf", "network")
    }
    assert not any(row["failed"] for row in comparison.rows)
