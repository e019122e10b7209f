"""The model file: a safetensors file whose metadata says, in JSON, what its arrays are.

    "auxhash": {"format": 1, "kind": "MACHash", "package": "0.1.0", "content": ..., "sha256": "..."}

`content` is a value, encoded by `encoding`. The checksum covers every other field and the name,
type, shape and bytes of every array. Reading executes nothing from the file, and refuses a file
that is not whole; its peak of memory is twice the file's own size, whatever the header says.
Writing takes twice that size beside the model.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from auxhash.compute.version import __version__
from auxhash.files.writing import check_regular, writing
from auxhash.model.encoding import Arrays, Json

FORMAT = 1
KEY = "auxhash"
LENGTH = 8  # bytes that say how long the header is
MAX_HEADER_BYTES = 1 << 26


class ModelFileError(ValueError):
    """A file that is not a model, or is damaged, or of a newer format than this package reads."""


class StoredModel(NamedTuple):
    kind: str
    content: Json
    arrays: Arrays
    package: str = __version__  # the version of auxhash that wrote the file


def write(path: str | os.PathLike[str], model: StoredModel) -> None:
    """Write a model file, whole or not at all."""
    data = to_bytes(model)
    with writing(Path(path)) as temporary:
        temporary.write_bytes(data)


def to_bytes(model: StoredModel) -> bytes:
    """The content of a model file; equal models give equal bytes."""
    from safetensors.numpy import save

    fields = {
        "format": FORMAT,
        "kind": model.kind,
        "package": model.package,
        "content": model.content,
    }
    header = json.dumps({**fields, "sha256": _sum(fields, model.arrays)}, allow_nan=False)
    # One entry only: safetensors writes several entries of the metadata in arbitrary order.
    data: bytes = save(model.arrays, metadata={KEY: header})
    length = int.from_bytes(data[:LENGTH], "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(
            f"the model's header would take {length} bytes, and {MAX_HEADER_BYTES} is the most: "
            "give long lists as NumPy arrays"
        )
    return data


def read(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file.

    Raises ModelFileError for a file that is foreign, truncated, damaged or of a newer format, and
    OSError where it cannot be opened.
    """
    check_regular(path, "a model")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start, header = _read_header(file, size, path)
        fields = _read_fields(header, path)
        _check_size(header, size - len(start), path)
        data = start + file.read(size - len(start))
    arrays = _read_arrays(data, path)
    stated = fields.pop("sha256", None)
    if _sum(fields, arrays) != stated:
        raise ModelFileError(f"{path} is damaged: its content does not match its checksum")
    if not all(isinstance(fields.get(name), str) for name in ("kind", "package")):
        raise ModelFileError(f"{path} does not say what it holds")
    return StoredModel(fields["kind"], fields.get("content"), arrays, fields["package"])


def _read_header(
    file: BinaryIO, size: int, path: str | os.PathLike[str]
) -> tuple[bytes, dict[str, Json]]:
    """Read the first bytes of the file, up to the arrays, and parse the JSON in them."""
    start = file.read(LENGTH + 1)
    if not start:
        raise ModelFileError(f"{path} is empty")
    length = int.from_bytes(start[:LENGTH], "little")
    if start[LENGTH:] != b"{" or length > MAX_HEADER_BYTES:
        raise ModelFileError(f"{path} is not a model file (a safetensors file written by auxhash)")
    if length > size - LENGTH:
        raise ModelFileError(
            f"{path} is truncated: its header takes {length} bytes, and {size - LENGTH} are there"
        )
    start += file.read(length - 1)
    try:
        header = _parsed(start[LENGTH:])
    except ValueError as error:
        raise ModelFileError(f"{path} has a damaged header ({error})") from error
    return start, header


def _read_fields(header: dict[str, Json], path: str | os.PathLike[str]) -> dict[str, Json]:
    """Read auxhash's part of the header; raise unless it is of a known format."""
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get(KEY), str):
        raise ModelFileError(f"{path} is a safetensors file, but no model of auxhash")
    try:
        fields = _parsed(metadata[KEY])
    except ValueError as error:
        raise ModelFileError(f"{path} has a damaged header ({error})") from error
    if json.dumps(fields) != metadata[KEY]:  # which the checksum would not tell: 1E-05 for 1e-05
        raise ModelFileError(f"{path} has a damaged header (not as auxhash writes it)")
    version = fields.get("format")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path} has a damaged header (format {version!r})")
    if version > FORMAT:
        raise ModelFileError(
            f"{path} is of format {version}, written by auxhash {fields.get('package')}; this is "
            f"auxhash {__version__}, which reads formats up to {FORMAT}: upgrade auxhash"
        )
    return fields


def _check_size(header: dict[str, Json], actual: int, path: str | os.PathLike[str]) -> None:
    """Raise unless the arrays take all the bytes that follow the header, and no more."""
    try:
        ends = [part["data_offsets"][1] for name, part in header.items() if name != "__metadata__"]
        expected = max(ends, default=0)
        short = expected > actual
    except (TypeError, KeyError, IndexError) as error:
        raise ModelFileError(f"{path} has a damaged header (an array without a place)") from error
    if expected != actual:
        what = "truncated" if short else "damaged"
        raise ModelFileError(
            f"{path} is {what}: its arrays take {expected} bytes, and {actual} are there"
        )


def _read_arrays(data: bytes, path: str | os.PathLike[str]) -> Arrays:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: Arrays = load(data)
    except (SafetensorError, KeyError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    return arrays


def _parsed(text: str | bytes) -> dict[str, Json]:
    """Parse a JSON object; raise if a key occurs twice, or a number is NaN or infinite."""
    try:
        parsed = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(parsed, dict):
        raise ValueError("no JSON object")
    return parsed


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    parsed = dict(pairs)
    if len(parsed) != len(pairs):
        raise ValueError("a key occurs twice")
    return parsed


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _sum(fields: dict[str, Json], arrays: Arrays) -> str:
    """SHA-256 of header fields and arrays, in hexadecimal."""
    digest = hashlib.sha256(json.dumps(fields).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.name, arrays[name].shape]).encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()
