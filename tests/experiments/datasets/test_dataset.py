import numpy as np
import pytest

from auxhash.compute import neighbors
from auxhash.experiments.datasets import Dataset, Points, dataset
from auxhash.experiments.datasets.dataset import draw, ground_truth, split


def test_draws_nest_and_rise():
    small, large = draw(100, 10, 3, "n_base"), draw(100, 40, 3, "n_base")
    assert set(small) < set(large)
    assert (np.diff(large) > 0).all()
    np.testing.assert_array_equal(draw(5, None, 0, "n_base"), np.arange(5))
    for seed, name in ((4, "n_base"), (3, "n_train")):
        assert not np.array_equal(draw(100, 10, seed, name), small)
    for seed in (-1, 0.5, None):
        with pytest.raises(ValueError, match="seed must be a whole number of 0 or more"):
            draw(100, 10, seed, "n_base")


@pytest.mark.parametrize("size", [0, 101, -1, 2.5, True, "7"])
def test_impossible_sizes_are_named(size):
    with pytest.raises(ValueError, match="n_base must be a whole number from 1 to 100"):
        draw(100, size, 0, "n_base")


def test_split_keeps_queries_out_of_the_base():
    train, base, query = split(100, 20, None, 30, seed=0)
    assert len(base) == 70
    assert not set(base) & set(query)
    assert set(train) < set(base)
    assert len(split(100, None, 40, 30, 0)[0]) == 40
    with pytest.raises(ValueError, match="leaves nothing to search"):
        split(100, None, None, 100, 0)


def test_points_must_fit_together():
    with pytest.raises(ValueError, match="y has 3 rows, X has 2"):
        Points(np.ones((2, 2)), np.arange(3))
    points = Points(np.arange(6).reshape(3, 2), np.arange(3))
    assert repr(points) == "Points(3 x 2 int64, y)"
    np.testing.assert_array_equal(points.take([2, 0]).X, [[4, 5], [0, 1]])


def test_texts_and_names_stay_with_their_points():
    words = np.array(["a", "b", "c"], object)
    points = Points(np.arange(6).reshape(3, 2), texts=words, names=words + "!").take([2, 0])
    assert repr(points) == "Points(2 x 2 int64, texts, names)"
    assert (list(points.texts), list(points.names)) == (["c", "a"], ["c!", "a!"])
    with pytest.raises(ValueError, match="texts has 3 rows, X has 2"):
        Points(np.ones((2, 2)), texts=words)


def some(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    base, query = Points(rng.integers(0, 255, (n, d), np.uint8)), rng.integers(0, 255, (7, d))
    queries = Points(query, neighbors=ground_truth(base.X, query, 4))
    return Dataset("some", base.take(np.arange(n // 2)), base, queries, "Some points.")


def test_cosine_centres_by_the_training_mean_and_finds_neighbours_anew():
    data = some()
    cosine = data.cosine()
    mean = data.train.X.mean(axis=0)
    expected = neighbors.normalized(data.query.X - mean)
    assert cosine.query.X.dtype == np.float32
    np.testing.assert_allclose(cosine.query.X, expected, atol=1e-6)
    truth, _ = neighbors.nearest(data.base.X - mean, data.query.X - mean, 4, "cosine")
    np.testing.assert_array_equal(cosine.query.neighbors, truth)
    assert cosine.name == "some-cosine"
    assert str(cosine).startswith("Some points. Cosine: ")


def test_a_large_base_on_disk_stays_there(folder, tmp_path, monkeypatch):
    data = some()
    np.save(tmp_path / "base.npy", data.base.X)
    mapped = Points(np.load(tmp_path / "base.npy", mmap_mode="r"))
    on_disk = Dataset("some", data.train, mapped, data.query, "")
    monkeypatch.setattr(dataset, "MAX_NUMBERS_IN_MEMORY", 10)
    result = on_disk.cosine()
    assert isinstance(result.base.X, np.memmap)
    np.testing.assert_array_equal(result.base.X, data.cosine().base.X)
    again = on_disk.cosine()
    assert again.base.X.filename == result.base.X.filename
    # Another part of the same file is not mistaken for it.
    part = Dataset("some", data.train, Points(mapped.X[1:]), data.query, "").cosine()
    np.testing.assert_array_equal(part.base.X, data.cosine().base.X[1:])


def test_ground_truth_that_takes_long_is_kept(folder, monkeypatch):
    data = some()
    monkeypatch.setattr(dataset, "MIN_KEPT_DISTANCES", 1)
    monkeypatch.setattr(dataset, "QUERIES_PER_CHUNK", 2)  # fewer than there are queries
    ids = ground_truth(data.base.X, data.query.X, 4)
    assert isinstance(ids, np.memmap)
    np.testing.assert_array_equal(ids, data.query.neighbors)
    monkeypatch.setattr(neighbors, "nearest", None)  # cannot be called again
    np.testing.assert_array_equal(ground_truth(data.base.X, data.query.X, 4), ids)


def test_nearest_is_the_same_in_any_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    X, Q = rng.integers(0, 3, (150, 6)), rng.integers(0, 3, (30, 6))  # ties everywhere
    exact = ((Q[:, None] - X[None]) ** 2).sum(axis=2)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2).astype(float)
    np.fill_diagonal(squares, np.inf)
    for block in (1, 64, 1000):
        monkeypatch.setattr(neighbors, "POINTS_PER_BLOCK", block)
        for k in (1, 10, 60, 149):
            ids, distance = neighbors.nearest(X, Q, k)
            order = np.argsort(exact, axis=1, kind="stable")[:, :k]
            np.testing.assert_array_equal(ids, order)
            np.testing.assert_array_equal(distance, np.take_along_axis(exact, order, 1))
            order = np.argsort(squares, axis=1, kind="stable")[:, :k]
            np.testing.assert_array_equal(neighbors.nearest(X, None, k)[0], order)


def test_nearest_refuses_what_is_not_finite():
    X = np.ones((5, 2))
    X[3] = np.nan
    with pytest.raises(ValueError, match="finite"):
        neighbors.nearest(X, np.ones((2, 2)), 5)
