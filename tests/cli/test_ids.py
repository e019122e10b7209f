"""--id, the column of ids of a table; and add --replace."""

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from auxhash.search import index


@pytest.fixture
def tables(here):
    """The digits in three kinds of tables, with a key of whole numbers that is no feature."""
    X = np.load("features.npy")[:, :6]
    columns = {f"pixel{i}": X[:, i] for i in range(6)}
    keys = np.arange(120)[::-1] * 7 + 5
    parquet.write_table(arrow.table({"key": keys, **columns}), "keys.parquet")
    text = [f"doc-{key}" for key in keys]
    parquet.write_table(arrow.table({"doc": text, "vector": list(X)}), "docs.parquet")
    lines = [f"{key},{','.join(map(str, x))}" for key, x in zip(keys, X, strict=True)]
    (here / "keys.csv").write_text("\n".join(["key," + ",".join(columns), *lines]))
    return X, keys


@pytest.mark.parametrize("table", ["keys.csv", "keys.parquet"])
def test_the_column_of_ids_is_no_feature_and_names_the_codes(tables, run, table):
    X, keys = tables
    np.save("plain.npy", X)
    common = ("--method", "LSH", "--bits", "16", "--json")
    assert run("fit", table, "-o", "m.safetensors", "--id", "key", *common)["features"] == 6
    run("encode", "m.safetensors", table, "--id", "key", "-o", "c.safetensors")
    run("index", "c.safetensors", "-o", "c.index", "--ids", table, "--id", "key")
    assert index.load("c.index").ids.tolist() == keys.tolist()
    # The vectors are found by their keys: the nearest of each point is itself.
    hits = run("search", "c.index", table, "--model", "m.safetensors", "-k", "1", "--rerank", table,
               "--id", "key", "--candidates", "120", "--json")  # fmt: skip
    nearest = [row[0] for row in hits["ids"]]
    assert [keys.tolist().index(key) for key in nearest] == [
        int(np.flatnonzero((X == x).all(axis=1))[0]) for x in X
    ]


def test_text_ids_of_any_name(tables, run):
    _, keys = tables
    run("fit", "docs.parquet", "-o", "m.safetensors", "--method", "LSH", "--bits", "16")
    run("encode", "m.safetensors", "docs.parquet", "-o", "c.safetensors")
    run("index", "c.safetensors", "-o", "c.index", "--ids", "docs.parquet", "--id", "doc")
    named = index.load("c.index")
    assert named.names == [f"doc-{key}" for key in keys]
    run("remove", "c.index", "--ids", "docs.parquet", "--id", "doc")
    assert len(index.load("c.index")) == 0


def test_a_column_that_is_not_there(tables, run):
    for command in ("fit keys.csv -o x.safetensors", "fit keys.parquet -o x.safetensors"):
        output = run(*command.split(), "--id", "doc", code=1).output
        assert "has no column 'doc' of ids, but 7 columns, key to pixel5" in output


@pytest.mark.parametrize("named", [False, True])
def test_replace_is_an_upsert(here, run, named):
    def called(numbers):
        np.save("ids.npy", np.array([f"n{i}" for i in numbers] if named else numbers))
        return ("--ids", "ids.npy")

    codes = np.arange(6, dtype=np.uint8)[:, None]
    np.save("old.npy", codes)
    np.save("new.npy", codes[:3] + 100)
    run("index", "old.npy", "-o", "c.index", *called(range(6)))
    common = ("add", "c.index", "new.npy", *called([4, 9, 2]))
    assert "taken" in run(*common, code=1).output or not named
    assert len(index.load("c.index")) == 6
    result = run(*common, "--replace", "--json")
    assert (result["added"], result["replaced"], result["codes"]) == (1, 2, 7)
    loaded = index.load("c.index")
    packed = loaded.index.packed if named else loaded.packed
    ids = loaded.names if named else loaded.ids.tolist()
    expected = {0: 0, 1: 1, 3: 3, 5: 5, 4: 100, 9: 101, 2: 102}
    expected = {f"n{i}" if named else i: code for i, code in expected.items()}
    assert dict(zip(ids, packed[:, 0].tolist(), strict=True)) == expected
    assert "c.index: 0 codes added, 3 replaced, 7 in all" in run(*common, "--replace").output
    assert "--replace needs --ids" in run("add", "c.index", "new.npy", "--replace", code=2).output
