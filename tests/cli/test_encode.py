"""encode and export."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

import auxhash
from tests.cli.conftest import FEW_PAIRS
from tests.programs import run_python


def test_encode_every_kind_of_file(here, run, model):
    expected = auxhash.load(model).encode(np.load("features.npy"))
    for name in ("features.npy", "features.npz", "features.fvecs", "table.csv"):
        result = run("encode", model, name, "-o", "out.npy", "--json")
        stored = np.load("out.npy")
        assert stored.dtype == np.uint8
        np.testing.assert_array_equal(stored, expected)
        assert (result["points"], result["bits"], result["bytes"]) == (120, 12, 2)


def test_a_fault_in_the_middle_leaves_no_codes(here, run, model, monkeypatch):
    monkeypatch.setattr("auxhash.files.rows.NUMBERS_PER_CHUNK", 64 * 10)
    X = np.load("features.npy")
    X[57, 3] = np.nan
    np.save("hole.npy", X)
    result = run("encode", model, "hole.npy", "-o", "none.npy", code=1)
    assert "hole.npy must not hold NaN or infinity; row 57 does" in result.output
    assert not (here / "none.npy").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX, to measure memory")
@pytest.mark.parametrize("suffix", [".npy", ".fvecs", ".parquet"])
def test_encoding_takes_constant_memory(made, model, tmp_path, suffix):
    """100 MB of features raise the peak by less than a quarter of them, codes included."""
    code = f"""
        import resource, sys
        import numpy as np
        from auxhash.cli import main

        def encoded(n):
            path = {str(tmp_path)!r} + f"/{{n}}{suffix}"
            if path.endswith(".npy"):
                np.lib.format.open_memmap(path, "w+", np.float32, (n, 64))[0] = 1
            elif path.endswith(".parquet"):
                import pyarrow
                from pyarrow import parquet

                part = pyarrow.table(dict.fromkeys(map(str, range(64)), np.zeros(4000, "f4")))
                with parquet.ParquetWriter(path, part.schema) as out:
                    for _ in range(n // 4000):
                        out.write_table(part)
            else:
                record = np.dtype([("dimension", "<i4"), ("vector", "<f4", (64,))])
                with open(path, "wb") as out:
                    for _ in range(n // 1000):
                        part = np.zeros(1000, record)
                        part["dimension"] = 64
                        out.write(part.tobytes())
            arguments = ["encode", {str(model)!r}, path, "-o", path + ".codes.npy", "--jobs", "1"]
            main(arguments, standalone_mode=False)
            assert np.load(path + ".codes.npy", mmap_mode="r").shape == (n, 2)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        small, large = encoded(40_000), encoded(400_000)
        unit = 1 if sys.platform == "darwin" else 1024
        print((large - small) * unit / 2**20)
    """
    assert float(run_python(code).splitlines()[-1]) < 25


def test_export(here, run, model):
    runtime = pytest.importorskip("onnxruntime")
    result = run("export", model, "--onnx", "m.onnx", "--json")
    assert result == {"onnx": "m.onnx", "features": 64, "bits": 12}
    session = runtime.InferenceSession("m.onnx")
    X = np.load("features.npy")
    [name] = [each.name for each in session.get_inputs()]
    np.testing.assert_array_equal(
        session.run(None, {name: X.astype(np.float32)})[0], auxhash.load(model).encode(X)
    )


def test_labels_may_be_missing_where_points_are_encoded(here, run, model):
    head, *lines = (here / "table.csv").read_text().splitlines()
    unknown = [line.rpartition(",")[0] + "," for line in lines]
    (here / "unknown.csv").write_text("\n".join([head, *unknown]))
    answer = run("encode", model, "unknown.csv", "-o", "u.npy", "--json")
    assert answer["read"][0].startswith("unknown.csv: 120 points of 64 features")
    np.testing.assert_array_equal(
        np.load("u.npy"), auxhash.load(model).encode(np.load("features.npy"))
    )
    result = run("fit", "unknown.csv", "-o", "u.safetensors", code=1)
    assert "unknown.csv: line 2, column 'y' is empty" in result.output


@pytest.fixture
def named(here, run):
    """A model that was learnt from the columns pixel0 to pixel63 of table.csv."""
    run("fit", "table.csv", "-o", "named.safetensors", "--bits", "12", *FEW_PAIRS)
    return "named.safetensors"


def frame(order=None):
    """The columns of table.csv, in this order."""
    X, names = np.load("features.npy"), [f"pixel{i}" for i in range(64)]
    return {names[i]: X[:, i] for i in (range(64) if order is None else order)}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_are_found_by_their_names(here, run, named, suffix):
    columns = {"more": np.ones(120), **frame(np.random.default_rng(0).permutation(64))}
    write_table(f"other{suffix}", columns)
    result = run("encode", named, f"other{suffix}", "-o", "out.npy")
    assert "the order that the model was learnt from, without column more" in result.stderr
    np.testing.assert_array_equal(np.load("out.npy"), auxhash.load(named).codes_)


def test_columns_that_are_missing_or_have_no_names(here, run, named):
    columns = frame()
    del columns["pixel7"]
    write_table("less.csv", columns)
    said = run("encode", named, "less.csv", "-o", "none.npy", code=1).output
    assert "less.csv lacks what the model was learnt from, column pixel7" in said
    result = run("encode", named, "features.npy", "-o", "out.npy")
    assert "columns without names, taken for 64 columns, pixel0 to pixel63" in result.stderr
    np.testing.assert_array_equal(np.load("out.npy"), auxhash.load(named).codes_)
    result = run("evaluate", "table.csv", "table.csv", "--model", named, "-k", "1")
    assert "UserWarning" not in result.stderr


def test_columns_of_many_files_have_the_order_of_the_model(here, run, named, tmp_path):
    for order, code in ((range(64), 0), (range(63, -1, -1), 1)):
        write_table(str(tmp_path / "part.parquet"), {"id": np.arange(120), **frame(order)})
        result = run("encode", named, f"{tmp_path}/*.parquet", "-o", tmp_path / "codes", code=code)
        assert ("in this order" in result.output) == bool(code)


def write_table(path, columns):
    if path.endswith(".parquet"):
        parquet.write_table(arrow.table(columns), path)
        return
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines))


def test_many_files(here, run, model, tmp_path):
    expected = auxhash.load(model).encode(np.load("features.npy"))
    result = run("encode", model, "parts/*.parquet", "-o", tmp_path / "codes", "--json")
    assert [result[name] for name in ("files", "encoded", "points", "bits")] == [3, 3, 120, 12]
    table = parquet.read_table(tmp_path / "codes")
    assert table["id"].to_pylist() == [f"point {i}" for i in range(120)]
    np.testing.assert_array_equal([list(code) for code in table["code"].to_pylist()], expected)
    again = run("encode", model, "parts/*.parquet", "-o", tmp_path / "codes")
    assert "120 codes of 12 bits in 3 files, 0 of them encoded now" in again.output


def test_many_files_that_cannot_be_encoded(here, run, model, tmp_path, monkeypatch):
    def error(*arguments):
        return run("encode", model, *arguments, "-o", tmp_path / "codes", code=1).output

    assert "Error: no files match none/*.parquet" in error("none/*.parquet")
    assert "has no column 'id'" not in error("parts/*.parquet", "--id", "vector")
    assert "no column 'name' of ids" in error("parts/*.parquet", "--id", "name")
    assert "not for many" in error("parts/*.parquet", "--header")
    assert "not known" in error("nonsense://parts/*.parquet")
    monkeypatch.setattr("auxhash.files.shards.fleet.CONNECT_TIMEOUT_SECONDS", 0.3)
    said = error("parts/*.parquet", "--scheduler", "tcp://127.0.0.1:9")
    assert "Error: no scheduler answers at tcp://127.0.0.1:9 within 0.3 seconds" in said
