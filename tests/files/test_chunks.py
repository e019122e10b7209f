import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash import TwoStepHash
from auxhash.experiments.datasets import from_chunks


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=12).filter(any),
    width=st.sampled_from([None, 1, 7]),
    dtype=st.sampled_from(["u1", "<f2", "<f4", ">f8", "i8", "?", "U3"]),
    order=st.sampled_from("CF"),
)
def test_they_are_what_they_were(tmp_path_factory, sizes, width, dtype, order):
    rng = np.random.default_rng(len(sizes))
    shapes = [(n,) if width is None else (n, width) for n in sizes]
    chunks = [np.asarray(rng.integers(0, 9, shape).astype(dtype), order=order) for shape in shapes]
    path = tmp_path_factory.mktemp("chunks") / "X.npy"
    result = from_chunks(iter(chunks), path)
    np.testing.assert_array_equal(result, np.concatenate(chunks))
    assert result.dtype == chunks[0].dtype
    np.testing.assert_array_equal(np.load(path), np.concatenate(chunks))


def test_many_rows_do_not_grow_the_header(tmp_path):
    result = from_chunks(
        (np.full((100_000, 1), i, np.uint8) for i in range(101)), tmp_path / "X.npy"
    )
    assert result.shape == (10_100_000, 1)
    assert (result[[0, 99_999, 100_000, -1], 0] == [0, 0, 1, 100]).all()


def test_they_can_be_learnt_from(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = (rng.normal(size=(300, 5)) + 3 * np.eye(3, 5)[y]).astype(np.float32)
    parts = np.array_split(np.arange(300), 7)
    mapped = (from_chunks((a[rows] for rows in parts), tmp_path / f"{a.ndim}.npy") for a in (X, y))
    settings = {"n_bits": 4, "n_similar": 5, "n_dissimilar": 10, "random_state": 0}
    codes = (TwoStepHash(**settings).fit(*arguments).codes_ for arguments in (mapped, (X, y)))
    np.testing.assert_array_equal(*codes)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([], "at least one point"),
        ([np.empty((0, 3))], "at least one point"),
        (
            [np.ones((2, 3)), np.ones((2, 4))],
            r"chunk 1 .* shape \(2, 4\), .* and 3 columns",
        ),
        ([np.ones(2), np.ones((2, 1))], "chunk 1 .* no columns"),
        ([np.ones((2, 3)), np.ones((2, 3), int)], "chunk 1 is of int64"),
        ([np.ones((2, 3, 4))], "one axis or two"),
        ([np.float64(3)], "one axis or two"),
        (np.ones((4, 3)), "several arrays, got one"),
        (np.ones(4), "several arrays, got one"),
        ([np.array(["a", None])], "of numbers"),
        ([np.ma.masked_equal(np.eye(3), 1)], "chunk 0 must not be missing; row 0 is masked"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_left(chunks, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        from_chunks(chunks, tmp_path / "X.npy")
    assert not list(tmp_path.iterdir())


def test_a_file_of_before_stays_where_chunks_fail(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(3))

    def failing():
        yield np.arange(5)
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError, match="gone"):
        from_chunks(failing(), path)
    assert np.load(path).tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_the_name_says_what_it_is(tmp_path):
    with pytest.raises(ValueError, match=r"\.npy"):
        from_chunks([np.ones((2, 2))], tmp_path / "X.csv")
