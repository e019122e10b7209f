"""NumPy's files, damaged and hostile."""

import io
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from auxhash.files import npyfiles, tables

X = np.arange(12.0).reshape(4, 3)


def npy_of(array):
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)
    return content.getvalue()


def stating(header, content=b""):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def archive_of(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3)",  # TokenError
        "{'descr': '<f8' 'fortran_order': False, 'shape': (4, 3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }}",
        "{'descr': '<q9', 'fortran_order': False, 'shape': (4, 3), }",
        "{'descr': '<f8', 'fortran_order': 3, 'shape': (4, 3), }",
        "{[]: 1}",
        "(" * 100,
        "\0",
        "",
    ],
)
def test_damaged_headers(tmp_path, header):
    path = tmp_path / "a.npy"
    path.write_bytes(stating(header, bytes(96)))
    with pytest.raises(ValueError, match=r"a\.npy is not a whole \.npy file: its header is dam"):
        tables.read_features(path)
    archive_of(tmp_path / "a.npz", X=stating(header, bytes(96)))
    with pytest.raises(ValueError, match=r"a\.npz is not a whole \.npz file.*its header is dam"):
        tables.read_features(tmp_path / "a.npz")


def test_every_flipped_byte_of_a_header_is_read_or_told(tmp_path):
    content = npy_of(X)
    path = tmp_path / "a.npy"
    for at in range(len(content) - X.nbytes):
        for flip in (1, 16, 128):
            path.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
            with suppress(ValueError):  # and nothing else
                tables.read_features(path)


def test_shapes_must_fit_the_bytes(tmp_path):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"
    for shape in ("(5, 3)", "(3, 3)", "(-4, -3)", "(10000000000000, 3)"):
        content = stating(header % shape, X.tobytes())
        (tmp_path / "a.npy").write_bytes(content)
        archive_of(tmp_path / "a.npz", X=content)
        for name in ("a.npy", "a.npz"):
            with pytest.raises(ValueError, match=r"states an array of shape .* and holds 96"):
                tables.read_features(tmp_path / name)


def test_objects_are_refused_with_what_to_do(tmp_path):
    names = np.array(["a", "b"], object)
    np.save(tmp_path / "a.npy", names, allow_pickle=True)
    np.savez(tmp_path / "a.npz", y=names)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=r"holds Python objects.*save y\.astype\(str\)"):
            tables.read_labels(tmp_path / name)


@pytest.mark.parametrize(
    ("array", "features", "labels"),
    [
        (np.zeros(3, [("a", "f4")]), "records of", "records of"),
        (np.zeros((3, 1), complex), "must hold real numbers, got complex128", None),
        (np.zeros(3, complex), None, "must be numbers or text, got complex128"),
        (np.zeros((3, 1), "m8[s]"), r"must hold real numbers, got timedelta64\[s\]", None),
        (np.zeros((3, 1), "M8[s]"), r"must hold real numbers, got datetime64\[s\]", None),
        (np.zeros(3, "m8[s]"), None, r"must be numbers or text, got timedelta64\[s\]"),
        (np.zeros((3, 1), bool), "must hold real numbers, got bool", None),
        (np.array([1.0, np.nan]), None, "must not be missing; row 1 is NaN"),
        (np.zeros((2, 2, 2)), None, r"got shape \(2, 2, 2\)"),
        (np.full((2, 2), 7), None, "must hold only 0 and 1"),
    ],
)
def test_kinds_that_are_neither_features_nor_labels(tmp_path, array, features, labels):
    path = tmp_path / "a.npy"
    np.save(path, array)
    if features is not None:
        with pytest.raises(ValueError, match=features):
            tables.check_features(tables.read_features(path)[0], "features")
    if labels is not None:
        with pytest.raises(ValueError, match=labels):
            tables.read_labels(path)


def test_any_order_of_bytes_and_axes(tmp_path):
    for array in (np.asfortranarray(X), X.astype(">f8"), X.astype(np.float16)):
        np.save(tmp_path / "a.npy", array)
        np.savez_compressed(tmp_path / "a.npz", X=array)
        for name in ("a.npy", "a.npz"):
            np.testing.assert_array_equal(tables.read_features(tmp_path / name)[0], array)


def test_only_what_is_asked_for_is_unpacked(tmp_path, monkeypatch):
    path = archive_of(
        tmp_path / "a.npz", X=npy_of(X), y=npy_of(np.arange(4)), bomb=b"no array at all"
    )
    read = []
    monkeypatch.setattr(
        npyfiles.zipfile.ZipFile,
        "open",
        lambda self, info, *rest, kept=zipfile.ZipFile.open: (
            read.append(info.filename) or kept(self, info, *rest)
        ),
    )
    np.testing.assert_array_equal(tables.read_features(path)[0], X)
    assert tables.read_labels(path).tolist() == [0, 1, 2, 3]
    assert set(read) == {"X.npy", "y.npy"}


def test_what_is_larger_than_memory_is_not_unpacked(tmp_path, monkeypatch):
    path = archive_of(tmp_path / "a.npz", X=npy_of(np.zeros((1000, 1000))))
    monkeypatch.setattr(npyfiles, "_memory", lambda: 10**6)
    monkeypatch.setattr(npyfiles.zipfile.ZipFile, "open", None)
    with pytest.raises(ValueError, match=r"array X takes 8,000,128 bytes, and this machine has"):
        tables.read_features(path)


def test_damage_inside_an_archive(tmp_path):
    path = archive_of(tmp_path / "a.npz", X=npy_of(np.random.default_rng(0).normal(size=(99, 9))))
    content = bytearray(path.read_bytes())
    content[3000] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npz is not a whole \.npz file of arrays: array X"):
        tables.read_features(path)
