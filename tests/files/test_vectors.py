import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxhash.experiments.datasets import read_vectors, write_vectors

KINDS = {".fvecs": np.float32, ".bvecs": np.uint8, ".ivecs": np.int32}


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 9),
    d=st.integers(1, 40),
    ending=st.sampled_from(list(KINDS)),
    seed=st.integers(0),
)
def test_round_trip(tmp_path_factory, n, d, ending, seed):
    vectors = np.random.default_rng(seed).integers(0, 256, (n, d)).astype(KINDS[ending])
    path = tmp_path_factory.mktemp("v") / f"x{ending}"
    write_vectors(path, vectors)
    assert path.stat().st_size == n * (4 + d * vectors.itemsize)
    result = read_vectors(path)
    assert result.dtype == KINDS[ending]
    np.testing.assert_array_equal(result, vectors)
    np.testing.assert_array_equal(read_vectors(path, count=1), vectors[:1])


def write(path, *parts):
    path.write_bytes(b"".join(np.asarray(part).tobytes() for part in parts))
    return path


def test_faults_are_named(tmp_path):
    path = tmp_path / "x.fvecs"
    three = np.int32(3), np.ones(3, np.float32)
    four = np.int32(4), np.ones(4, np.float32)
    with pytest.raises(ValueError, match="is empty"):
        read_vectors(write(path))
    with pytest.raises(ValueError, match="truncated: 2 bytes"):
        read_vectors(write(path, np.int16(3)))
    with pytest.raises(ValueError, match="truncated: 28 bytes are no multiple of 16"):
        read_vectors(write(path, *three, np.int32(3), np.ones(2, np.float32)))
    with pytest.raises(ValueError, match="truncated: 12 bytes"):
        read_vectors(write(path, np.int32(3), np.ones(2, np.float32)))
    with pytest.raises(ValueError, match=r"mixes dimensions: vector 0 has 3, but 4 .* vector 1"):
        read_vectors(write(path, *three, *four, *three))
    for dimension in (0, -1):
        with pytest.raises(ValueError, match=f"begins with dimension {dimension}"):
            read_vectors(write(path, np.int32(dimension), np.ones(3, np.float32)))
    with pytest.raises(ValueError, match="count must be from 1 to 1, got 2"):
        read_vectors(write(path, *three), count=2)
    with pytest.raises(ValueError, match=r"must end in \.fvecs, \.bvecs, \.ivecs"):
        read_vectors(tmp_path / "x.vec")
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / "none.fvecs")


def test_only_matrices_are_written(tmp_path):
    with pytest.raises(ValueError, match="shape"):
        write_vectors(tmp_path / "x.fvecs", np.ones(3))
    with pytest.raises(ValueError, match="must end in"):
        write_vectors(tmp_path / "x.txt", np.ones((3, 3)))
    for name, value in (("x.bvecs", 256), ("x.bvecs", -1), ("x.bvecs", 0.5), ("x.ivecs", 2**31)):
        with pytest.raises(ValueError, match="holds whole numbers from"):
            write_vectors(tmp_path / name, np.full((3, 3), value))
    assert not list(tmp_path.iterdir())
