"""The model file: a safetensors file whose metadata says, in JSON, what its arrays are.

    "auxhash": {"format": 2, "kind": "MACHash", "package": "0.1.0", "content": ...,
                "arrays": {"model.hash_function.W": "...", ...}, "sha256": "..."}

`content` is a value, encoded by `encoding`. `arrays` has a checksum of the name, type, shape and
bytes of each array, and `sha256` covers all other fields: so some arrays can be read, and checked,
without the others. In format 1 a single checksum covers all. Reading executes nothing from the
file, and refuses a file that is damaged; its peak of memory is twice the file's own size, whatever
the header says. Writing takes twice that size beside the model.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from auxhash.compute.arrays import AnyArray
from auxhash.compute.version import __version__
from auxhash.files.writing import check_regular, writing
from auxhash.model.encoding import Arrays, Json

FORMAT = 2
KEY = "auxhash"
LENGTH_BYTES = 8  # bytes that say how long the header is
MAX_HEADER_BYTES = 1 << 26
TYPES = {  # of arrays, as safetensors names them
    "BOOL": "?",
    **{f"F{8 * n}": f"<f{n}" for n in (2, 4, 8)},
    **{f"{kind}{8 * n}": f"<{kind.lower()}{n}" for kind in "IU" for n in (1, 2, 4, 8)},
}


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
        "arrays": {name: _sum({}, {name: model.arrays[name]}) for name in sorted(model.arrays)},
    }
    header = json.dumps({**fields, "sha256": _sum(fields, {})}, allow_nan=False)
    # One entry only: safetensors writes several entries of the metadata in arbitrary order.
    data: bytes = save(model.arrays, metadata={KEY: header})
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(
            f"the model's header would take {length} bytes, and {MAX_HEADER_BYTES} is the most: "
            "give long lists as NumPy arrays"
        )
    return data


def read(path: str | os.PathLike[str], part: str = "") -> StoredModel:
    """Read a model file; of its arrays, from format 2 on, those whose names begin with `part`.

    Raises ModelFileError for a file that is foreign, truncated, damaged or of a newer format, and
    OSError where it cannot be opened.
    """
    check_regular(path, "a model")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start, header = _read_header(file, size, path)
        fields = _read_fields(header, path)
        places = _places(header, size - start, path)
        wanted = [name for name in places if fields["format"] == 1 or name.startswith(part)]
        try:
            arrays = {name: _read_array(file, start, places[name]) for name in wanted}
        except (ValueError, OverflowError) as error:  # a shape beyond all arrays
            raise ModelFileError(f"{path} is damaged: {error}") from error
    if not _is_right(fields, arrays, set(places)):
        raise ModelFileError(f"{path} is damaged: its content does not match its checksum")
    if not all(isinstance(fields.get(name), str) for name in ("kind", "package")):
        raise ModelFileError(f"{path} does not say what it holds")
    return StoredModel(fields["kind"], fields.get("content"), arrays, fields["package"])


@contextmanager
def reading(path: str | os.PathLike[str], model: StoredModel) -> Iterator[None]:
    """Turn errors, of whatever type, of making something of a file into a ModelFileError."""
    try:
        yield
    except (ImportError, ModelFileError):
        raise
    except Exception as error:  # parts that do not fit together fail anywhere
        written = f" (of auxhash {model.package})" if model.package != __version__ else ""
        raise ModelFileError(f"{path}{written} cannot be loaded: {error}") from error


def _is_right(fields: dict[str, Json], arrays: Arrays, names: set[str]) -> bool:
    """Compare the checksums with those of the fields and of the arrays that were read."""
    rest = {name: value for name, value in fields.items() if name != "sha256"}
    if fields["format"] == 1:
        return _sum(rest, arrays) == fields.get("sha256")
    sums = fields.get("arrays")
    if _sum(rest, {}) != fields.get("sha256") or not isinstance(sums, dict) or {*sums} != names:
        return False
    return all(_sum({}, {name: array}) == sums[name] for name, array in arrays.items())


def _read_header(
    file: BinaryIO, size: int, path: str | os.PathLike[str]
) -> tuple[int, dict[str, Json]]:
    """Read the first bytes of the file, up to the arrays; return their number and their JSON."""
    start = file.read(LENGTH_BYTES + 1)
    if not start:
        raise ModelFileError(f"{path} is empty")
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if start[LENGTH_BYTES:] != b"{" or length > MAX_HEADER_BYTES:
        raise ModelFileError(f"{path} is not a model file (a safetensors file written by auxhash)")
    if length > size - LENGTH_BYTES:
        raise ModelFileError(
            f"{path} is truncated: its header takes {length} bytes, and "
            f"{size - LENGTH_BYTES} are there"
        )
    start += file.read(length - 1)
    try:
        header = _parsed(start[LENGTH_BYTES:])
    except ValueError as error:
        raise ModelFileError(f"{path} has a damaged header ({error})") from error
    return len(start), header


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


class _Place(NamedTuple):
    """Type and shape of an array, and its first byte, counted from the end of the header."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int

    @property
    def end(self) -> int:
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def _places(
    header: dict[str, Json], actual: int, path: str | os.PathLike[str]
) -> dict[str, _Place]:
    """Read where the arrays are; raise unless they fill the bytes that follow the header."""
    places = {}
    for name, part in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (start, end) = (part[key] for key in ("dtype", "shape", "data_offsets"))
            place = _Place(np.dtype(TYPES[dtype]), tuple(shape), start)
            numbers = [*shape, start, end]
            fine = all(type(n) is int and n >= 0 for n in numbers) and place.end == end
        except (TypeError, KeyError, ValueError) as error:
            raise ModelFileError(f"{path} has a damaged header (an array with no place)") from error
        if not fine:
            raise ModelFileError(f"{path} has a damaged header (an array in a wrong place)")
        places[name] = place
    expected = max((place.end for place in places.values()), default=0)
    if expected != actual:
        what = "truncated" if expected > actual else "damaged"
        raise ModelFileError(
            f"{path} is {what}: its arrays take {expected} bytes, and {actual} are there"
        )
    before = 0
    for place in sorted(places.values(), key=lambda place: (place.start, place.end)):
        if place.start != before:
            raise ModelFileError(f"{path} is damaged: its arrays overlap, or leave gaps")
        before = place.end
    return places


def _read_array(file: BinaryIO, start: int, place: _Place) -> AnyArray:
    file.seek(start + place.start)
    data = file.read(place.end - place.start)
    return np.frombuffer(data, place.dtype).reshape(place.shape)


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
