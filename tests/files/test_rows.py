import tracemalloc

import numpy as np
import pytest

from auxhash.experiments.datasets import write_vectors
from auxhash.files import rows

X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(rows, "NUMBERS_PER_CHUNK", 21)
    monkeypatch.setattr(rows, "PARQUET_ROWS_PER_CHUNK", 7)


def test_chunks_are_the_whole(tmp_path):
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(X))
    np.savez(tmp_path / "c.npz", X=X, y=np.arange(50))
    write_vectors(tmp_path / "c.fvecs", X)
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table({"x": list(X), "y": np.arange(50)})
    parquet.write_table(table, tmp_path / "c.parquet", row_group_size=20)
    for name in ("c.npy", "fortran.npy", "c.npz", "c.fvecs", "c.parquet"):
        points = rows.of_file(tmp_path / name)
        chunks = list(points.chunks())
        assert max(len(chunk) for chunk in chunks) == 7
        np.testing.assert_array_equal(np.concatenate(chunks), X)
        assert len(points) == 50
    for name in ("c.npz", "c.parquet"):
        assert rows.of_file(tmp_path / name).labels.tolist() == list(range(50))


@pytest.mark.parametrize("name", ["c.npy", "fortran.npy", "c.fvecs"])
def test_a_file_that_can_be_mapped_is_not_copied(tmp_path, name):
    if name == "c.fvecs":
        write_vectors(tmp_path / name, X)
    else:
        np.save(tmp_path / name, np.asfortranarray(X) if name == "fortran.npy" else X)
    result = rows.of_file(tmp_path / name).all()
    assert isinstance(result, np.memmap)
    np.testing.assert_array_equal(result, X)
    if name == "c.npy":
        broken = X.copy()
        broken[33, 1] = np.nan
        np.save(tmp_path / name, broken)
        with pytest.raises(ValueError, match="row 33 does"):
            rows.of_file(tmp_path / name).all()


def test_what_is_read_in_chunks_is_held_once():
    file = rows.Rows("pictures", 40_000, lambda: (np.full((400, 8), n) for n in range(100)))
    tracemalloc.start()
    try:
        result = file.all()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result[::400, 0].tolist() == list(range(100))
    assert peak < 1.5 * result.nbytes


def test_chunks_of_several_types_become_the_larger():
    chunks = [X[:20], X[20:].astype(np.float64) + 1e-12]
    result = rows.Rows("pictures", 50, lambda: chunks).all()
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.concatenate(chunks))


def test_faults_are_found_in_their_chunk(tmp_path):
    write_vectors(tmp_path / "a.fvecs", X)
    content = bytearray((tmp_path / "a.fvecs").read_bytes())
    content[16 * 30] = 9  # the dimension before vector 30
    (tmp_path / "a.fvecs").write_bytes(content)
    result = rows.of_file(tmp_path / "a.fvecs").chunks()
    assert len([next(result) for _ in range(4)]) == 4
    with pytest.raises(ValueError, match="but 9 stands before vector 30"):
        next(result)
