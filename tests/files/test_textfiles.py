"""Tables of text: which cells are numbers, which line is names, and where the cells are cut."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.files import tables, textfiles


@pytest.fixture
def write(tmp_path):
    def written(text, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["3", "-1", "0"], "i"),
        (["9223372036854775807", "-9223372036854775808"], "i"),
        (["0.5", "2"], "f"),
        (["1e-05", "0.25"], "f"),
        (["9223372036854775808", "9223372036854775809"], "U"),  # one float
        (["9007199254740993", "0.5"], "U"),  # not exact as a float
        (["1_1", "11", "011"], "U"),
        (["007", "7"], "U"),
        (["1.0", "1.00"], "U"),
        (["1.0", "1"], "U"),
        (["-0.0", "0.0"], "U"),
        (["+1", "1"], "U"),
        (["1e999", "2"], "U"),
        (["\u0661", "1"], "U"),  # a digit, but not one of ours
        (["cat", "1", "nan"], "U"),
        (["nan", "Nancy"], "U"),
    ],
)
def test_labels_that_a_conversion_would_change_stay_text(write, cells, kind):
    for name in ("a.csv", "a.txt"):
        result = tables.read_labels(write("\n".join(cells), name))
        assert result.dtype.kind == kind
        assert len(np.unique(result)) == len(cells)
        if kind == "U":
            assert result.tolist() == cells
        else:
            assert result.tolist() == [(int if kind == "i" else float)(cell) for cell in cells]
    inside = "x,y\n" + "".join(f"1,{cell}\n" for cell in cells)
    assert tables.read_features(write(inside))[1].tolist() == result.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NA\n1\n2\n", r"a\.csv: line 1, column '0': 'NA' is no label \(if line 1 holds names"),
        ("1\nnan\n2\n", r"a\.csv: line 2, column '0': 'nan' is no label$"),
        ("x,y\n1,a\n2,\n", r"a\.csv: line 3, column 'y' is empty"),
        ("a\n\nb\n", r"a\.csv: line 2 is empty, and others follow"),
        ('a\n"b\nc\n', r"a\.csv is not a \.csv file: unexpected end of data"),
        (b"a\0b\nc\n", r"a\.csv is not a \.csv file: it holds a NUL byte"),
        ("a" * 200_000, r"a\.csv is not a \.csv file: field larger than field limit"),
        ("a;b,c\nd;e,f\n", r"it is not clear whether ',' or ';' separates the cells"),
    ],
)
def test_labels_that_are_missing_or_unclear_are_refused(write, text, message):
    with pytest.raises(ValueError, match=message):
        tables.read_labels(write(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,1_1\n", r"line 2, column 'b': '1_1' is no number$"),
        ("a,b\n1,nan\n", r"line 2, column 'b': 'nan' is no number$"),
        ("title,b\nred,1\n", r"'red' is no number \(if these are names of the points: --id title"),
        ("a,b\n1,-inf\n", r"line 2, column 'b': '-inf' is no number"),
        ("a,b\n1,1e999\n", r"line 2, column 'b': '1e999' is no number"),
        ("a,b\n1,0x10\n", r"line 2, column 'b': '0x10' is no number"),
        ("a,b\n1,\n", r"line 2, column 'b': '' is no number"),
        ("a,b\n1,\u0661\n", r"is no number"),
        ("a;b\n1;1,5\n", r"'1,5' is no number \(decimals are written with a point\)"),
        ("1,5;2,5\n1,5;3,5\n", r"'5;2' is no number \(is that what separates the cells\?\)"),
        ('a,"b\nc"\n1,2\n3,x\n', r"line 4, column 'b\\nc': 'x' is no number"),
        ("NA,1\n2,3\n", r"line 1, column '0': 'NA' is no number \(if line 1 holds names: --header"),
        ("NA,nan\n2,3\n", r"line 1, column '0': 'NA' is no number"),
        ("id,0,1\n5,2,3\n", r"line 1, column '0': 'id' is no number \(if line 1 holds names"),
        ("0,1,2\n2,3,4\n", r"line 1 counts 0, 1, 2, \.\.\.: say whether .*--header or --no-header"),
        (",a\n0,2\n", r"column 1 has no name in line 1; .*to_csv\(index=False\)"),
        ("id,y\n1,2\n", r"holds no features, but only id, y"),
        ("a,a\n1,2\n", r"two columns called 'a'"),
        ("a,b\n1,2\n\n3,4\n", r"line 3 is empty, and others follow"),
    ],
)
def test_features_that_are_no_numbers_are_refused(write, text, message):
    with pytest.raises(ValueError, match=message):
        tables.read_features(write(text))


@pytest.mark.parametrize(
    ("text", "header", "expected"),
    [
        ("a,b\n1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("RI,Na\n1,2\n", None, [[1, 2]]),  # sodium, not a missing value
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", True, [[3, 4]]),
        ("0,1,2\n3,4,5\n", True, [[3, 4, 5]]),
        ("0,1,2\n3,4,5\n", False, [[0, 1, 2], [3, 4, 5]]),
        ("Id,a\n7,2\n8,4\n", None, [[2], [4]]),  # an id is no feature
        ("\ufeffa,b\r\n1,2\r\n", None, [[1, 2]]),
        ("a, b\n1, +2.50\n", None, [[1, 2.5]]),
        ('"a,1";"b"\n1;2\n', None, [[1, 2]]),
        ('"a\nb",c\n1,2\n', None, [[1, 2]]),
        ('\ufeff"a\r\nb",c\r\n"1"," 2 "\r\n3, 4\r\n\r\n \r\n', None, [[1, 2], [3, 4]]),
        ("a;b,c\n1;2\n", None, [[1, 2]]),  # only ; cuts both lines alike
    ],
)
def test_the_first_line_and_the_delimiter(write, text, header, expected):
    features, labels = tables.read_features(write(text), header=header)
    assert features.tolist() == expected
    assert labels is None


@pytest.mark.parametrize(
    ("text", "label", "header", "expected"),
    [
        ("kind\n1\n2\n", "y", None, ["kind", "1", "2"]),  # the first may be any text
        ("kind\n1\n2\n", "kind", None, [1, 2]),
        ("kind\n1\n2\n", "y", True, [1, 2]),
        ("y\nn\ny\n", "y", None, ["n", "y"]),
        ("y\nn\ny\n", "y", False, ["y", "n", "y"]),
        ("1,7\n2,8\n", "1", False, [7, 8]),  # columns without names are counted
        ("1,7\n2,8\n", "1", None, [7, 8]),  # a cell that is 1 is no name
    ],
)
def test_the_first_line_of_labels(write, text, label, header, expected):
    assert tables.read_labels(write(text), label, header=header).tolist() == expected


def test_names_never_shift_and_stay_as_they_are(write):
    for text, expected in [
        ("first\n2\n3\n", ["first", "2", "3"]),
        ("007\n1_1\n1.50\n", ["007", "1_1", "1.50"]),
        ("name\nb\n", ["b"]),
        ("name,x\nb,1\n", ["b"]),
        ('"a, b"\nc\n', ["a, b", "c"]),
    ]:
        assert tables.read_names(write(text)) == expected
    with pytest.raises(ValueError, match="line 2 is empty"):
        tables.read_names(write("a\n\nb\n"))


def test_names_in_other_files(tmp_path):
    for name, values, expected in [
        ("text.npy", np.array(["a", "b"]), ["a", "b"]),
        ("bytes.npy", np.array([b"a", b"b"]), ["a", "b"]),
        ("whole.npy", np.array([7, 8]), ["7", "8"]),
    ]:
        np.save(tmp_path / name, values)
        assert tables.read_names(tmp_path / name) == expected
    np.save(tmp_path / "two.npy", np.zeros((3, 2), int))
    with pytest.raises(ValueError, match=r"one name per row, got shape \(3, 2\)"):
        tables.read_names(tmp_path / "two.npy")


def test_pairs_are_exact(write):
    i, j, y = tables.read_pairs(write("i,j,y,note\n9007199254740993,1.0,1,x\n"))
    assert (i.tolist(), j.tolist(), y.tolist()) == ([9007199254740993], [1], [1.0])
    for cell in ("1_1", "0.5", "1e3", "nan", "", "99999999999999999999"):
        with pytest.raises(ValueError, match=f"i must be whole numbers.*line 2 has {cell!r}"):
            tables.read_pairs(write(f"i,j,y\n{cell},1,1\n"))
    with pytest.raises(ValueError, match="three columns, for i, j and y"):
        tables.read_pairs(write("1,2\n"))


def test_pairs_beyond_what_floats_hold(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[2.0**60, 1, 1]]))
    with pytest.raises(ValueError, match="i must be whole numbers"):
        tables.read_pairs(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("name", "key"),
    [("doc_id", True), ("docId", True), ("Row-Index", True), ("uuid", True), ("grid", False)],
)
def test_a_column_that_may_be_a_key_is_told(tmp_path, name, key):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},a,y\n1,2,3\n4,5,6\n")
    result = tables.take_features(path)
    assert result.columns == [name, "a"]
    assert (
        f"{name} is taken for a feature; if it is a key, call it id or --id {name}" in result.doubt
    ) == key
    path.write_text("1,2,3\n4,5,6\n")
    assert tables.take_features(path).columns is None


@given(st.lists(st.text("0123456789+-.eE_naif \t\xa0\u0661x#", max_size=6), min_size=1, max_size=3))
def test_the_same_cells_are_numbers_to_both_readers(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("cells") / "a.csv"
    path.write_text("a,b\n" + "".join(f"0,{cell}\n" for cell in cells), "utf-8")
    if all(textfiles.is_number(cell.strip()) for cell in cells):
        X, _ = tables.read_features(path)
        assert X[:, 1].tolist() == [float(cell) for cell in cells]
    else:
        with pytest.raises(ValueError, match="is no number"):
            tables.read_features(path)


def test_numbers_are_never_held_as_text(write):
    n, d = 2_000, 100
    path = write("\n".join([",".join(["1.5"] * d + ["cat"])] * n))
    tracemalloc.start()
    try:
        X, y = tables.read_features(path, str(d), header=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.shape == (n, d)
    assert y.tolist() == ["cat"] * n
    assert peak < 2 * X.nbytes
