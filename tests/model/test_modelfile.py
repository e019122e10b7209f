"""The file format: whole, known and of this version, or one clear error."""

import json
import os
import pickle
import resource
import sys

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import auxhash
from auxhash.learn import baselines
from auxhash.model import modelfile
from auxhash.model.modelfile import ModelFileError, StoredModel
from tests.conftest import SOAK

X = np.random.default_rng(0).normal(size=(8, 3))
CONTENT = StoredModel("thing", {"dict": {"a": [1, 2.5]}}, {"W": np.eye(2), "e": np.empty((0, 3))})


@pytest.fixture
def path(tmp_path):
    """A small model: 8 points of 3 features, 2 bits."""
    baselines.LSH(n_bits=2, random_state=0).fit(X).save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def split(data):
    """The safetensors header, our header inside, and the bytes of the arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    return header, json.loads(header["__metadata__"]["auxhash"]), data[end:]


def joined(header, fields, body):
    header["__metadata__"]["auxhash"] = json.dumps(fields)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def summed(fields, data):
    """The fields with the sum that the content has now, whatever it was."""
    from safetensors.numpy import load

    rest = {name: value for name, value in fields.items() if name != "sha256"}
    rest["arrays"] = {name: modelfile._sum({}, {name: array}) for name, array in load(data).items()}
    return {**rest, "sha256": modelfile._sum(rest, {})}


def test_what_is_written_is_read(tmp_path):
    modelfile.write(tmp_path / "file", CONTENT)
    result = modelfile.read(tmp_path / "file")
    assert result.kind == "thing"
    assert result.content == CONTENT.content
    assert result.package == auxhash.__version__
    np.testing.assert_array_equal(result.arrays["W"], np.eye(2))
    assert result.arrays["e"].shape == (0, 3)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_equal_models_give_equal_bytes():
    assert modelfile.to_bytes(CONTENT) == modelfile.to_bytes(CONTENT)


def test_other_tools_can_open_it(path):
    with safe_open(path, "numpy") as file:
        assert file.get_tensor("model.hash_function.W").shape == (3, 2)
        assert json.loads(file.metadata()["auxhash"])["kind"] == "LSH"


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        modelfile.write(path, CONTENT)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_header_too_long_is_not_written(monkeypatch):
    monkeypatch.setattr(modelfile, "MAX_HEADER_BYTES", 200)
    with pytest.raises(ValueError, match="header would take"):
        modelfile.to_bytes(CONTENT)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x00", "is not a model file"),
        (pickle.dumps({"W": [1, 2, 3]}), "is not a model file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "is not a model file"),
        ((2**62).to_bytes(8, "little") + b"{}", "is not a model file"),
        ((2**20).to_bytes(8, "little") + b"{}", "truncated: its header takes 1048576 bytes"),
        ((5).to_bytes(8, "little") + b"{nope", "damaged header"),
        ((8).to_bytes(8, "little") + b'{"a":NaN', "damaged header"),
        ((9).to_bytes(8, "little") + b'{"a":1e9}', "no model of auxhash"),
        ((13).to_bytes(8, "little") + b'{"a":1,"a":1}', "a key occurs twice"),
        ((30_000).to_bytes(8, "little") + b'{"a":' + b"[" * 29_995, "damaged header"),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        auxhash.load(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)


def test_somebody_else_s_safetensors(tmp_path):
    save_file({"W": np.eye(2)}, tmp_path / "file")
    with pytest.raises(ModelFileError, match="a safetensors file, but no model of auxhash"):
        auxhash.load(tmp_path / "file")


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        auxhash.load(tmp_path / "nothing.safetensors")
    with pytest.raises(IsADirectoryError):
        auxhash.load(tmp_path)
    with pytest.raises(IsADirectoryError):
        modelfile.write(tmp_path, CONTENT)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_no_permission(path):
    path.chmod(0)
    with pytest.raises(PermissionError):
        auxhash.load(path)


def test_a_newer_format(path):
    header, fields, body = split(path.read_bytes())
    fields |= {"format": 3, "package": "9.1"}
    path.write_bytes(joined(header, fields, body))
    with pytest.raises(ModelFileError, match=r"format 3, written by auxhash 9\.1.*upgrade"):
        auxhash.load(path)


def test_a_number_written_otherwise(tmp_path):
    """One flipped bit that leaves every value as it was."""
    path = tmp_path / "thing"
    data = modelfile.to_bytes(StoredModel("thing", 1e-05, {}))
    assert data.count(b"1e-05") == 1
    path.write_bytes(data.replace(b"1e-05", b"1E-05"))
    with pytest.raises(ModelFileError, match="damaged header"):
        modelfile.read(path)


def test_every_truncation(path):
    content = path.read_bytes()
    for end in range(0, len(content), 1 if SOAK else 5):
        path.write_bytes(content[:end])
        with pytest.raises(ModelFileError, match=r"empty|truncated|damaged|not a model file"):
            auxhash.load(path)


def lying(**changes):
    """The file with the safetensors header of one array changed, and the sum as it was."""

    def change(data):
        header, fields, body = split(data)
        header["model.hash_function.W"] |= changes
        return joined(header, fields, body)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lying(data_offsets=[8, 56]),
        lying(data_offsets=[1, 49]),
        lying(data_offsets=[48, 0]),
        lying(data_offsets=[-48, 0]),
        lying(data_offsets=[2**63, 2**63 + 48]),
        lying(shape=[2**32, 2**32, 3, 2]),
        lying(shape=[2**63, 2]),
        lying(shape=[-3, -2]),
        lying(shape=[3, 2, 2**64]),
        lying(shape=[0, 2**62]),
        lying(dtype="F4096"),
        lying(dtype="BF16", shape=[24]),
        lying(dtype="F8_E4M3", shape=[48]),
        lying(dtype="BOOL", shape=[48]),
        lying(dtype="I8", shape=[48]),
    ],
)
def test_a_header_that_lies(change, path):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelFileError):
        auxhash.load(path)


def flipped(data, rng):
    changed = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[at] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut(data, rng):
    start, end = np.sort(rng.integers(len(data) + 1, size=2))
    return data[:start] + data[end:]


def inserted(data, rng):
    at = rng.integers(len(data) + 1)
    return data[:at] + rng.bytes(rng.integers(1, 20)) + data[at:]


def swapped(data, rng):
    """Two stretches of equal length in each other's place."""
    n = int(rng.integers(1, 40))
    a, b = np.sort(rng.integers(len(data) - n, size=2))
    if b < a + n:
        return flipped(data, rng)
    return data[:a] + data[b : b + n] + data[a + n : b] + data[a : a + n] + data[b + n :]


ODD = [None, True, -1, 0, 1, 3, 2**31, 2**62, 2**70, 1.5, "", "x", [], {}, [2**62], "\ud800"]


def places(value):
    """Every container inside a JSON value, with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def edited(value, rng):
    """Put something odd in the place of one part of a JSON value, remove it, or double it."""
    every = list(places(value))
    container, key = every[rng.integers(len(every))]
    choice = rng.integers(4)
    if choice == 0:
        del container[key]
    elif choice == 1 and isinstance(container, list):
        container.append(container[key])
    else:
        container[key] = ODD[rng.integers(len(ODD))]
    return value


def with_edited_header(data, rng):
    """The safetensors header edited: shapes, types, offsets, names; lengths put right."""
    header, _, body = split(data)
    text = json.dumps(edited(header, rng)).encode()
    return len(text).to_bytes(8, "little") + text + body


def with_edited_fields(data, rng):
    header, fields, body = split(data)
    return joined(header, edited(fields, rng), body)


def with_edited_content_and_sum(data, rng):
    """Edit the file as someone would who knows how the sum is taken."""
    header, fields, body = split(data)
    fields["content"] = edited({"content": fields["content"]}, rng).get("content")
    return joined(header, summed(fields, data), body)


def with_edited_shapes_and_sum(data, rng):
    """Other shapes of the same size, in both headers; or arrays that grow at others' cost."""
    header, fields, body = split(data)
    names = [name for name in header if name != "__metadata__"]
    entry = header[name := names[rng.integers(len(names))]]
    size = int(np.prod(entry["shape"]))
    shapes = [[size], [1, size], [size, 1], [1, 1, size], entry["shape"][::-1]]
    shapes = [shape for shape in shapes if shape != entry["shape"]]
    entry["shape"] = shapes[rng.integers(len(shapes))]
    if rng.integers(2):
        for container, key in places(fields):
            if key == "array" and container[key][0] == name:
                container[key][2] = entry["shape"]
    remade = joined(header, fields, body)
    return joined(header, summed(fields, remade), body)


WAYS = [
    (flipped, 3000),
    (cut, 1500),
    (inserted, 1000),
    (swapped, 500),
    (with_edited_header, 1500),
    (with_edited_fields, 1000),
    (with_edited_content_and_sum, 1000),
    (with_edited_shapes_and_sum, 500),
]


@pytest.mark.parametrize(("way", "times"), WAYS, ids=[way.__name__ for way, _ in WAYS])
def test_mutated_files(way, times, path):
    """10,000 in soak: each is refused in one way, or is the same model still."""
    times = times if SOAK else times // 5
    content = path.read_bytes()
    original = auxhash.load(path)
    codes, parameters = original.encode(X), original.get_params()
    rng = np.random.default_rng(1)
    loaded = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(times):
        path.write_bytes(way(content, rng))
        try:
            model = auxhash.load(path)
        except ModelFileError:
            continue
        loaded += 1
        if way is with_edited_content_and_sum:  # a parameter can well be another, on purpose
            if model.n_features_in_ == X.shape[1]:
                np.testing.assert_array_equal(model.encode(X), codes)
            continue
        np.testing.assert_array_equal(model.encode(X), codes)
        assert model.get_params() == parameters
    assert loaded < times / 4
    if sys.platform == "linux":  # elsewhere not in kilobytes
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64_000
