"""Files of codes: what is written comes back, mapped, and anything else is refused."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from auxhash.compute.fingerprint import digest
from auxhash.files import codefiles

ONE = digest([b"one"])
CODES = np.arange(20, dtype=np.uint8).reshape(10, 2) % 16
FINGERPRINTS = st.none() | st.binary(min_size=8, max_size=8).map(bytes.hex)


def chunks():
    return (CODES[at : at + 4] for at in range(0, 10, 4))


@pytest.mark.parametrize("suffix", codefiles.SUFFIXES)
def test_codes_are_written_as_they_come_and_whole_or_not_at_all(tmp_path, suffix):
    path = tmp_path / f"c{suffix}"
    codefiles.write(path, 10, 12, ONE, chunks())
    codes = codefiles.read(path)
    assert isinstance(codes.codes, np.memmap)
    np.testing.assert_array_equal(codes.codes, CODES)
    assert codes[1:] == ((None, None) if suffix == ".npy" else (12, ONE))

    def broken():
        yield CODES
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        codefiles.write(tmp_path / f"d{suffix}", 20, 12, ONE, broken())
    assert [path.name for path in tmp_path.iterdir()] == [f"c{suffix}"]


def test_other_libraries_read_and_write_them(tmp_path):
    path = tmp_path / "c.safetensors"
    codefiles.write(path, 10, 12, ONE, chunks())
    np.testing.assert_array_equal(load_file(path)["codes"], CODES)
    with safe_open(path, "numpy") as file:
        stated = file.metadata()
    assert stated == {"auxhash.codes": "1", "n_bits": "12", "fingerprint": ONE}
    save_file({"codes": CODES}, path, stated)
    assert codefiles.read(path)[1:] == (12, ONE)
    codefiles.write(tmp_path / "c.npy", 10, 12, ONE, chunks())
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), CODES)


@given(FINGERPRINTS, st.integers(1, 70), st.integers(1, 30))
def test_bits_and_fingerprint_come_back(tmp_path_factory, fingerprint, n_bits, n):
    path = tmp_path_factory.mktemp("codes") / "c.safetensors"
    codes = np.full((n, -(-n_bits // 8)), 7, np.uint8)
    codefiles.write(path, n, n_bits, fingerprint, [codes])
    result = codefiles.read(path)
    np.testing.assert_array_equal(result.codes, codes)
    assert result[1:] == (n_bits, fingerprint)


def forged(path, array=CODES, name="codes", **fields):
    stated = {"auxhash.codes": "1", "n_bits": "12", "fingerprint": ONE, **fields}
    save_file({name: array}, path, {key: text for key, text in stated.items() if text is not None})


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        ({"auxhash.codes": None}, "it has no metadata auxhash.codes"),
        ({"auxhash.codes": "2"}, "it is of format 2, of a later auxhash"),
        ({"n_bits": None}, "codes of 0 bits cannot be"),
        ({"n_bits": "twelve"}, "codes of 0 bits cannot be"),
        ({"n_bits": "17"}, r"codes of 17 bits cannot be U8 of shape \[10, 2\]"),
        ({"fingerprint": "one"}, "fingerprint must be"),
        ({"name": "Z"}, "codes"),
        ({"array": CODES[0]}, r"of shape \[2\]"),
        ({"array": CODES[:0]}, r"of shape \[0, 2\]"),
        ({"array": CODES.astype(np.int8)}, "cannot be I8"),
    ],
)
def test_forged_files_are_refused(tmp_path, forge, message):
    forged(tmp_path / "c.safetensors", **forge)
    with pytest.raises(ValueError, match=rf"c\.safetensors is no whole file of codes: .*{message}"):
        codefiles.read(tmp_path / "c.safetensors")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    codefiles.write(path, 10, 12, ONE, chunks())
    all_bytes = path.read_bytes()
    for content in (b"", b"codes", all_bytes[:7], all_bytes[:50], all_bytes[:-1], all_bytes + b"0"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no whole file of codes"):
            codefiles.read(path)
    header = json.loads(all_bytes[8 : 8 + int.from_bytes(all_bytes[:8], "little")])
    header["more"] = {**header["codes"], "data_offsets": [20, 40]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + all_bytes[-20:] * 2)
    with pytest.raises(ValueError, match="is no whole file of codes"):
        codefiles.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.write_bytes(all_bytes)
        codefiles.read(path)
