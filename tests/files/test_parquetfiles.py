"""Features in a .parquet file: which columns they are, and their values."""

import decimal
import json

import numpy as np
import pytest

from auxhash.files import rows, tables

arrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from auxhash.files.parquetfiles import choose, features_of  # noqa: E402

X = np.random.default_rng(0).normal(size=(10, 3))
LISTS = {
    "list": arrow.list_(arrow.float64()),
    "large_list": arrow.large_list(arrow.float64()),
    "fixed_size_list": arrow.list_(arrow.float64(), 3),
}
if int(arrow.__version__.partition(".")[0]) >= 23:  # older ones do not write them
    LISTS["list_view"] = arrow.list_view(arrow.float64())
    LISTS["large_list_view"] = arrow.large_list_view(arrow.float64())


def tensors(values):
    kind = arrow.fixed_shape_tensor(arrow.float64(), [values.shape[1]])
    lists = arrow.array(values.tolist(), kind.storage_type)
    return arrow.ExtensionArray.from_storage(kind, lists)


@pytest.fixture
def write(tmp_path):
    def written(columns, **options):
        table = columns if isinstance(columns, arrow.Table) else arrow.table(columns)
        parquet.write_table(table, tmp_path / "a.parquet", **options)
        return tmp_path / "a.parquet"

    return written


@pytest.mark.parametrize("kind", [*LISTS, "tensor"])
def test_lists_are_the_features_whatever_stands_beside(write, kind, monkeypatch):
    monkeypatch.setattr(rows, "PARQUET_ROWS_PER_CHUNK", 3)
    lists = tensors(X) if kind == "tensor" else arrow.array(X.tolist(), LISTS[kind])
    columns = {"id": range(10), "score": X[:, 0], "embedding": lists, "note": ["a"] * 10}
    path = write(columns | {"y": range(10)}, row_group_size=4)
    features, labels = tables.read_features(path)
    np.testing.assert_array_equal(features, X)
    assert features.dtype == np.float64
    assert labels.tolist() == list(range(10))
    streamed = rows.of_file(path)
    np.testing.assert_array_equal(streamed.all(), X)
    assert streamed.summary == (
        f"{path}: 10 points of 3 features, float64; column embedding; labels: column y; "
        "passed over: id, score, note"
    )


@pytest.mark.parametrize("kind", [*LISTS, "tensor"])
def test_parts_of_arrays_and_several_of_them(kind):
    lists = tensors(X) if kind == "tensor" else arrow.array(X.tolist(), LISTS[kind])
    table = arrow.table({"x": arrow.chunked_array([lists[1:4], lists[4:4], lists[7:]])})
    chosen = choose(table.schema, "a.parquet", "y")
    np.testing.assert_array_equal(features_of(table, chosen, "a.parquet"), X[[1, 2, 3, 7, 8, 9]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (arrow.float16(), np.float16),
        (arrow.float32(), np.float32),
        (arrow.int8(), np.int8),
        (arrow.uint64(), np.uint64),
        (arrow.bool_(), np.uint8),
    ],
)
def test_numbers_keep_their_type(write, kind, expected):
    values = np.array([[0, 1], [1, 1], [1, 0]]).astype(expected)
    cast = values.astype(bool) if kind == arrow.bool_() else values
    for columns in (
        {"x": arrow.array([list(row) for row in cast], arrow.list_(kind))},
        {"a": arrow.array(cast[:, 0], kind), "b": arrow.array(cast[:, 1], kind)},
    ):
        result = rows.of_file(write(columns)).all()
        assert result.dtype == expected
        np.testing.assert_array_equal(result, values)


def test_columns_of_numbers_but_no_ids(write):
    columns = {"ID": range(10), "a": X[:, 0], "name": ["n"] * 10, "b": X[:, 1]}
    path = write(columns | {"__index_level_0__": range(10)})
    points = rows.of_file(path)
    np.testing.assert_array_equal(points.all(), X[:, :2])
    assert points.summary.endswith("columns a, b; passed over: ID, name, __index_level_0__")


def test_the_index_of_a_frame_is_no_feature(write):
    """pandas' set_index("key").to_parquet() writes the key as a column, and notes what it was."""
    table = arrow.table({"a": X[:, 0], "b": X[:, 1], "key": range(5000, 5010)})
    note = {"index_columns": ["key"], "columns": []}
    points = rows.of_file(write(table.replace_schema_metadata({"pandas": json.dumps(note)})))
    np.testing.assert_array_equal(points.all(), X[:, :2])
    assert points.summary.endswith("columns a, b; passed over: key")
    numbered = {"index_columns": [{"kind": "range", "start": 0, "stop": 10, "step": 1}]}
    for other in (json.dumps(numbered), "no JSON", "[]", '{"index_columns": 3}'):
        points = rows.of_file(write(table.replace_schema_metadata({"pandas": other})))
        assert points.all().shape == (10, 3)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [[1.0]], "b": [[2.0]], "id": [1]}, "2 columns of lists, a, b, and one is needed"),
        ({"v": [b"1234"], "n": [1]}, r"it holds v \(binary\)"),
        ({"v": [{"x": 1.0}], "n": [1]}, r"it holds v \(struct<x: double>\)"),
        ({"v": [[[1.0]]], "n": [1]}, r"it holds v \(list<"),
        ({"v": [["word"]], "n": [1]}, r"it holds v \(list<"),
        ({"v": [decimal.Decimal("1.5")], "n": [1]}, r"it holds v \(decimal128\(2, 1\)\)"),
        ({"id": [1], "y": [2]}, "one column of lists, or columns of numbers"),
        ({"v": [[1.0], None]}, "column v must not hold missing values; row 1 does"),
        ({"v": [[1.0, 2.0], [3.0, None]]}, "column v must not hold missing values; row 1 does"),
        ({"v": [1.0, 2.0, None]}, "column v must not hold missing values; row 2 does"),
        ({"v": [[1.0], [1.0, 2.0]]}, "lists in column v differ in length"),
        ({"v": arrow.array([[], []], LISTS["list"])}, r"must be of shape \(n, D\) and not empty"),
        ({"v": arrow.array([], arrow.float32())}, "holds no rows"),
    ],
)
def test_what_is_refused(write, columns, message, monkeypatch):
    path = write(columns)
    for batch in (1, 2, 100):
        monkeypatch.setattr(rows, "PARQUET_ROWS_PER_CHUNK", batch)
        with pytest.raises(ValueError, match=message):
            rows.of_file(path).all()
    with pytest.raises(ValueError, match=message):
        tables.check_features(tables.read_features(path)[0], "it")


def test_two_columns_of_one_name(write):
    table = arrow.table([arrow.array([1.0]), arrow.array([2.0])], names=["a", "a"])
    for read in (tables.read_features, tables.read_labels, rows.of_file):
        with pytest.raises(ValueError, match="two columns called 'a'"):
            read(write(table))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (arrow.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (arrow.array(["b", "a", "b"], arrow.large_string()), ["b", "a", "b"]),
        (arrow.array([3, 2**63, 3], arrow.uint64()), [3, 2**63, 3]),
        (arrow.array([True, False, True]), [True, False, True]),
        (arrow.array([7, 8, 7]).dictionary_encode(), [7, 8, 7]),
        (arrow.array([[0, 1], [1, 1], [0, 0]]), [[0, 1], [1, 1], [0, 0]]),
    ],
)
def test_labels(write, values, expected):
    path = write({"x": [[1.0]] * 3, "y": values}, row_group_size=2)
    assert tables.read_labels(path).tolist() == expected
    assert rows.of_file(path).labels.tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, None], "column y must not hold missing values; row 1 does"),
        (["a", None], "column y must not hold missing values; row 1 does"),
        ([1.0, float("nan")], "must not be missing; row 1 is NaN"),
        ([b"a", b"b"], "column y must hold numbers or text, got binary"),
        ([decimal.Decimal("1.5")] * 2, "column y must hold numbers or text, got decimal128"),
    ],
)
def test_labels_that_are_missing_do_not_hinder_encoding(write, values, message):
    path = write({"x": [[1.0]] * 2, "y": values})
    with pytest.raises(ValueError, match=message):
        tables.read_labels(path)
    points = rows.of_file(path)
    assert points.all().tolist() == [[1.0]] * 2
    with pytest.raises(ValueError, match=message):
        _ = points.labels


def test_pairs_must_not_be_missing(write):
    path = write({"i": [0, None], "j": [1, 2], "y": [1, 1]})
    with pytest.raises(ValueError, match="column i must not hold missing values; row 1 does"):
        tables.read_pairs(path)
    with pytest.raises(ValueError, match="column i must hold numbers, got string"):
        tables.read_pairs(write({"i": ["0"], "j": [1], "y": [1]}))


def test_damaged_pages(write):
    path = write({"x": X[:, 0]}, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[40:80] = bytes(40)
    path.write_bytes(content)
    for read in (tables.read_features, lambda path: rows.of_file(path).all()):
        with pytest.raises(ValueError, match=r"a\.parquet is not a whole \.parquet file"):
            read(path)


def test_pages_are_held_against_their_sums(tmp_path):
    path, X = tmp_path / "summed.parquet", np.random.default_rng(0).normal(size=(50, 2))
    parquet.write_table(
        arrow.table({"a": X[:, 0], "b": X[:, 1]}),
        path,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
    )
    content = bytearray(path.read_bytes())
    content[content.index(X[7, 0].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole"):
        tables.read_features(path)
