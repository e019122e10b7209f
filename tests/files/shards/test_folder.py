"""Many files of points become as many files of codes, whole, and none of them twice."""

import json
import os
import shutil
import tracemalloc

import fsspec
import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from auxhash import MACHash
from auxhash.compute.fingerprint import OtherModelError, UnknownModelWarning
from auxhash.files.shards import coding, reading
from auxhash.files.shards.coding import Coding
from auxhash.files.shards.places import FileAt, is_pattern, remove_leftovers
from tests.files.shards.conftest import N, encode, read, write


def test_codes_are_the_model_s_and_ids_those_of_the_files(folder, points, model):
    done, counts = encode(model, folder)
    assert done == (3, 3, 150)
    assert counts[0] == (150, 0)
    assert sum(counts[1:]) == 150
    for part in range(3):
        ids, codes, _ = read(folder / "codes" / f"{part}.parquet")
        assert ids == list(range(1000 + part * N, 1000 + (part + 1) * N))
        np.testing.assert_array_equal(codes, model.encode(points[part * N :][:N]))
    assert sorted(os.listdir(folder / "codes")) == ["0.parquet", "1.parquet", "2.parquet"]


def test_the_same_command_goes_on_file_by_file(folder, points, model, monkeypatch):
    made = coding.coded

    def stopped(one, *more):
        if one.source.name == "2.parquet":
            raise KeyboardInterrupt
        return made(one, *more)

    with monkeypatch.context() as patch:
        patch.setattr(coding, "coded", stopped)
        with pytest.raises(KeyboardInterrupt):
            encode(model, folder)
    assert encode(model, folder)[0].encoded == 1
    assert encode(model, folder) == ((3, 0, 150), [(150, 150)])


def test_what_has_changed_is_encoded_anew(folder, points, model):
    encode(model, folder)
    before = written(folder / "codes" / "0.parquet")
    write(folder / "points" / "1.parquet", points[:20] + 1)
    write(folder / "points" / "new.parquet", points[:10])
    assert encode(model, folder)[0] == (4, 2, 130)
    codes = read(folder / "codes" / "1.parquet")[1]
    np.testing.assert_array_equal(codes, model.encode(points[:20] + 1))
    assert written(folder / "codes" / "0.parquet") == before


def written(path):
    """Tell which file this is, and when it was last written."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def test_a_file_that_changes_meanwhile_is_not_taken_for_encoded(folder, points, model, monkeypatch):
    made = reading.chunks

    def changing(place, *more):
        yield from made(place, *more)
        write(folder / "points" / "1.parquet", points[:20])

    monkeypatch.setattr(coding, "chunks", changing)
    with pytest.raises(ValueError, match=r"1\.parquet changed while it was encoded"):
        encode(model, folder)
    assert os.listdir(folder / "codes") == ["0.parquet"]


def test_rows_of_npy_files_are_numbered_through_all_files(tmp_path, points, model):
    for part, rows in enumerate(np.split(points, [30, 100])):
        np.save(tmp_path / f"{part}.npy", rows.astype(np.float32))
    done, _ = encode(model, tmp_path, pattern="*.npy")
    assert done == (3, 3, 150)
    parts = [read(tmp_path / "codes" / f"{part}.parquet") for part in range(3)]
    assert [i for ids, _, _ in parts for i in ids] == list(range(150))
    codes = np.concatenate([codes for _, codes, _ in parts])
    np.testing.assert_array_equal(codes, model.encode(points.astype(np.float32)))
    # One row more in the second file: the third has other numbers.
    np.save(tmp_path / "1.npy", points[29:100].astype(np.float32))
    assert encode(model, tmp_path, pattern="*.npy")[0].encoded == 2
    assert read(tmp_path / "codes" / "2.parquet")[0] == list(range(101, 151))


def test_any_address_that_fsspec_knows(points, model):
    memory = fsspec.filesystem("memory")
    for part in range(2):
        with memory.open(f"/shards/deep/{part}/a.npy", "wb") as out:
            np.save(out, points[part * N :][:N])
    try:
        assert encode(model, "memory://shards", pattern="deep/*/a.npy")[0] == (2, 2, 100)
        assert encode(model, "memory://shards", pattern="deep/*/a.npy")[0] == (2, 0, 100)
        names = sorted(memory.find("/shards/codes"))
        assert names == ["/shards/codes/0/a.parquet", "/shards/codes/1/a.parquet"]
        with memory.open(names[1]) as file:
            assert parquet.read_table(file)["id"].to_pylist() == list(range(50, 100))
    finally:
        memory.rm("/shards", recursive=True)


def test_columns_of_numbers_and_ids_of_text(tmp_path, points, model):
    for part in range(2):
        rows = points[part * N :][:N]
        columns = {f"x{i}": rows[:, i] for i in range(6)}
        columns |= {"key": [f"k{part}-{i}" for i in range(N)], "y": np.zeros(N)}
        (tmp_path / "points").mkdir(exist_ok=True)
        parquet.write_table(arrow.table(columns), tmp_path / "points" / f"{part}.parquet")
    with pytest.raises(ValueError, match=r"no column 'id' of ids.*it has x0, .*--id NAME"):
        encode(model, tmp_path)
    assert encode(model, tmp_path, id="key")[0].points == 100
    ids, codes, _ = read(tmp_path / "codes" / "1.parquet")
    assert ids[7] == "k1-7"
    np.testing.assert_array_equal(codes, model.encode(points[N : 2 * N]))


def test_numbers_called_otherwise_are_ids_and_no_feature(tmp_path, points, model):
    columns = {f"x{i}": points[:, i] for i in range(6)} | {"key": np.arange(150)}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    encode(model, tmp_path, pattern="*.parquet", id="key")
    np.testing.assert_array_equal(read(tmp_path / "codes" / "a.parquet")[1], model.encode(points))


def wrong_rows(folder, points):
    write(folder / "points" / "2.parquet", points[:10, :5])


def wrong_names(folder, points):
    columns = {"id": np.arange(10), "other": list(points[:10])}
    parquet.write_table(arrow.table(columns), folder / "points" / "2.parquet")


def wrong_ids(folder, points):
    columns = {"id": [str(i) for i in range(10)], "vector": list(points[:10])}
    parquet.write_table(arrow.table(columns), folder / "points" / "2.parquet")


def ids_of_floats(folder, points):
    columns = {"id": np.arange(50) / 2, "vector": list(points[:50])}
    parquet.write_table(arrow.table(columns), folder / "points" / "0.parquet")


def missing_ids(folder, points):
    columns = {"id": arrow.array([*range(49), None]), "vector": list(points[:50])}
    parquet.write_table(arrow.table(columns), folder / "points" / "0.parquet")


def a_hole(folder, points):
    rows = points[:50].copy()
    rows[31, 2] = np.nan
    write(folder / "points" / "0.parquet", rows)


def cut_short(folder, points):
    content = (folder / "points" / "1.parquet").read_bytes()
    (folder / "points" / "1.parquet").write_bytes(content[:-9])


def no_rows(folder, points):
    write(folder / "points" / "1.parquet", points[:0])


def foreign_codes(folder, points):
    (folder / "codes").mkdir()
    shutil.copy(folder / "points" / "1.parquet", folder / "codes" / "1.parquet")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (wrong_rows, r"columns differ between files: .*2\.parquet has 5 features in vector"),
        (wrong_names, r"columns differ between files: .*2\.parquet has 6 features in other"),
        (wrong_ids, r"columns differ between files: .*ids of string.*ids of int64"),
        (ids_of_floats, r"0\.parquet: column id must hold whole numbers or text, got double"),
        (missing_ids, r"0\.parquet: column id must not hold missing values; row 49 does"),
        (a_hole, r"0\.parquet.*row 31"),
        (cut_short, r"1\.parquet is not a whole \.parquet file"),
        (no_rows, r"1\.parquet"),
        (foreign_codes, r"1\.parquet is no file of codes that auxhash wrote"),
    ],
)
def test_what_does_not_fit_is_told_before_or_leaves_no_file(folder, points, model, spoil, said):
    spoil(folder, points)
    with pytest.raises(ValueError, match=said):
        encode(model, folder)
    left = sorted(os.listdir(folder / "codes")) if (folder / "codes").exists() else []
    assert left == (["1.parquet"] if spoil is foreign_codes else [])


def test_files_of_another_model_are_not_mixed(folder, points, model):
    encode(model, folder)
    other = MACHash(n_bits=12, refine=None, max_iter=1, random_state=1, n_similar=5, n_jobs=1)
    other.fit(points, np.arange(len(points)) % 5)
    names = rf"0\.parquet was made by model {model.fingerprint}, and this is model"
    with pytest.raises(OtherModelError, match=f"{names} {other.fingerprint}: give another folder"):
        encode(other, folder)
    assert json.loads(read(folder / "codes" / "0.parquet")[2])["fingerprint"] == model.fingerprint


def test_files_that_state_no_model_are_encoded_again(folder, points, model, monkeypatch):
    """They were written before there were fingerprints, with a digest of the model's file."""
    with monkeypatch.context() as patch:
        patch.setattr(
            "auxhash.files.shards.folder.Coding",
            lambda *parts: Coding(*parts[:-1], _without_fingerprint(parts[-1])),
        )
        encode(model, folder)
    with pytest.warns(UnknownModelWarning, match="3 files of codes of an unknown model") as said:
        assert encode(model, folder)[0].encoded == 3
    assert len(said) == 1
    assert encode(model, folder)[0].encoded == 0


def _without_fingerprint(origin):
    return {**{name: part for name, part in origin.items() if name != "fingerprint"}, "model": "f0"}


def test_codes_of_files_that_are_gone_are_told(folder, points, model):
    encode(model, folder)
    (folder / "points" / "1.parquet").unlink()
    with pytest.warns(UserWarning, match=r"holds 1 file of no file that matches .*1\.parquet"):
        assert encode(model, folder)[0] == (2, 0, 100)


def test_patterns_that_are_wrong(folder, points, model):
    with pytest.raises(FileNotFoundError, match="no files match"):
        encode(model, folder, pattern="points/*.npy")
    with pytest.raises(ValueError, match=r"is a folder: give a pattern"):
        encode(model, folder, pattern="points")
    encode(model, folder)
    with pytest.raises(ValueError, match=r"in the folder .* of the codes"):
        encode(model, folder, pattern="*/*.parquet")
    np.save(folder / "points" / "9.npy", points)
    with pytest.raises(ValueError, match=r"one kind, got 0\.parquet and 9\.npy"):
        encode(model, folder, pattern="points/*")
    (folder / "points" / "9.npy").rename(folder / "points" / "9.txt")
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.npy"):
        encode(model, folder, pattern="points/*.txt")
    np.save(folder / "wide.npy", np.ones((3, 7)))
    with pytest.raises(ValueError, match="has 7 features, and the model was learnt from 6"):
        encode(model, folder, pattern="wide*.npy")
    np.save(folder / "columns.npy", np.asfortranarray(points))
    with pytest.raises(ValueError, match="stored column by column"):
        encode(model, folder, pattern="columns*.npy")
    np.save(folder / "flat.npy", points[0])
    with pytest.raises(ValueError, match=r"shape \(n, D\)"):
        encode(model, folder, pattern="flat*.npy")


def test_a_name_with_brackets_is_a_file_if_it_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a[1].npy").touch()
    assert not is_pattern("a[1].npy")
    assert is_pattern("a[2].npy")
    assert is_pattern("s3://bucket/a.npy")
    assert not is_pattern("a.npy")


def test_what_killed_writers_left_is_removed(folder, points, model):
    (folder / "codes").mkdir()
    for name in (".1.parquet.0123abcd", ".mine", ".9.parquet.0123abcd"):
        (folder / "codes" / name).touch()
    encode(model, folder)
    left = {name for name in os.listdir(folder / "codes") if name.startswith(".")}
    assert left == {".mine", ".9.parquet.0123abcd"}
    system = fsspec.filesystem("file")
    remove_leftovers(FileAt(system, str(folder / "none")), [])


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_memory_does_not_grow_with_the_file(tmp_path, model, kind):
    def peak(n):
        X = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
        folder = tmp_path / str(n)
        folder.mkdir()
        if kind == "npy":
            np.save(folder / "a.npy", X)
        else:
            write(folder / "a.parquet", X, size=n)  # one row group
        del X
        before = arrow.total_allocated_bytes()
        arrow.default_memory_pool().release_unused()
        most = []
        tracemalloc.start()
        made = model.encode

        def watched(chunk):
            most.append(arrow.total_allocated_bytes() - before)
            return made(chunk)

        model.encode = watched
        try:
            encode(model, folder, pattern=f"*.{kind}")
        finally:
            del model.encode
            n_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return n_bytes + max(most)

    peak(1_000)
    assert peak(300_000) < peak(100_000) + 2_000_000  # and the points take 4,800,000 bytes
