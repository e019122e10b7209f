import numpy as np
import pytest

from auxhash.experiments.datasets import write_vectors
from auxhash.files import rows

X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(rows, "NUMBERS", 21)
    monkeypatch.setattr(rows, "BATCH", 7)


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
        found = rows.of_file(tmp_path / name)
        chunks = list(found.chunks())
        assert max(len(chunk) for chunk in chunks) == 7
        np.testing.assert_array_equal(np.concatenate(chunks), X)
        assert len(found) == 50
    for name in ("c.npz", "c.parquet"):
        assert rows.of_file(tmp_path / name).labels.tolist() == list(range(50))


def test_faults_are_found_in_their_chunk(tmp_path):
    write_vectors(tmp_path / "a.fvecs", X)
    content = bytearray((tmp_path / "a.fvecs").read_bytes())
    content[16 * 30] = 9  # the dimension before vector 30
    (tmp_path / "a.fvecs").write_bytes(content)
    found = rows.of_file(tmp_path / "a.fvecs").chunks()
    assert len([next(found) for _ in range(4)]) == 4
    with pytest.raises(ValueError, match="but 9 stands before vector 30"):
        next(found)


def test_codes_are_written_as_they_come(tmp_path):
    codes = np.arange(20, dtype=np.uint8).reshape(10, 2)
    rows.write_npy(tmp_path / "c.npy", (10, 2), (codes[at : at + 4] for at in range(0, 10, 4)))
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), codes)

    def broken():
        yield codes
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        rows.write_npy(tmp_path / "d.npy", (20, 2), broken())
    assert [path.name for path in tmp_path.iterdir()] == ["c.npy"]
