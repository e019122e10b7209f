"""Features, labels and pairs in files; the faults are in tests/test_bad_input.py."""

import numpy as np
import pytest

from auxhash.files import tables

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("named", [True, False])
def test_csv(tmp_path, delimiter, named):
    path = tmp_path / "a.csv"
    lines = [delimiter.join(map(str, row)) for row in X]
    head = [delimiter.join("abc")] if named else []
    path.write_text("\n".join(head + lines) + "\n\n")
    features, labels = tables.read_features(path)
    np.testing.assert_array_equal(features, X)
    assert labels is None


def test_labels_inside_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n1,cat,2\n3,dog,4\n")
    features, labels = tables.read_features(path)
    np.testing.assert_array_equal(features, [[1, 2], [3, 4]])
    assert labels.tolist() == ["cat", "dog"]
    assert tables.read_labels(path).tolist() == ["cat", "dog"]
    path.write_text("1,kind,2\n3,4,4\n")
    assert tables.read_features(path, "kind")[1].tolist() == [4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat\ndog\ncat\n", ["cat", "dog", "cat"]),  # no line of names
        ("y\ncat\ndog\n", ["cat", "dog"]),
        ("kind\n1\n2\n", ["kind", "1", "2"]),  # names are told from names by no guess
        ("1\n2\n", [1, 2]),
        ("0.5\n2\n", [0.5, 2.0]),
        ("\ufeffy\n7\n", [7]),  # as Excel begins a file
        ('"a, b"\n"c"\n', ["a, b", "c"]),
    ],
)
def test_a_list_of_labels(tmp_path, text, expected):
    for name in ("a.csv", "a.txt"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert tables.read_labels(tmp_path / name).tolist() == expected


def test_labels_in_other_files(tmp_path):
    y = np.array([3, 1, 2])
    np.save(tmp_path / "a.npy", y)
    np.savez(tmp_path / "a.npz", X=X[:3], y=y)
    np.savez(tmp_path / "only.npz", whatever=y)
    for name in ("a.npy", "a.npz", "only.npz"):
        assert tables.read_labels(tmp_path / name).tolist() == [3, 1, 2]
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"y": ["a", "b"], "x": [1, 2]}), tmp_path / "a.parquet")
    assert tables.read_labels(tmp_path / "a.parquet").tolist() == ["a", "b"]


def test_pairs(tmp_path):
    i, j, y = np.array([0, 1]), np.array([2, 3]), np.array([1.0, -0.5])
    np.save(tmp_path / "a.npy", np.column_stack([i, j, y]))
    np.savez(tmp_path / "a.npz", i=i, j=j, y=y)
    (tmp_path / "named.csv").write_text("y,i,j\n1,0,2\n-0.5,1,3\n")
    (tmp_path / "plain.csv").write_text("0,2,1\n1,3,-0.5\n")
    names = ["a.npy", "a.npz", "named.csv", "plain.csv"]
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"i": i, "j": j, "y": y}), tmp_path / "a.parquet")
    for name in [*names, "a.parquet"]:
        result = tables.read_pairs(tmp_path / name)
        for part, expected in zip(result, (i, j, y), strict=True):
            np.testing.assert_array_equal(part, expected)
        assert np.issubdtype(result[0].dtype, np.integer)
