"""Files of packed codes: .npy, plain NumPy, or .safetensors, which says which model made them.

A .safetensors file holds one array of uint8, `codes` (n, n_bytes), and these metadata, all text:

    auxhash.codes   "1", the version of this format
    n_bits          length of a code, which its bytes alone do not tell
    fingerprint     of the model; left out where it is not known

Any library of safetensors reads it. Both kinds are written chunk by chunk, and mapped.
"""

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, n_bytes
from auxhash.compute.arrays import AnyArray
from auxhash.compute.fingerprint import checked
from auxhash.files.npyfiles import map_npy
from auxhash.files.tables import checked_path
from auxhash.files.writing import writing

SUFFIXES = (".npy", ".safetensors")
KEY, FORMAT = "auxhash.codes", "1"
LENGTH_BYTES = 8  # bytes that say how long the header is


class CodesInFile(NamedTuple):
    """Codes, mapped, and what their file says of them; a .npy file may hold any array."""

    codes: AnyArray
    n_bits: int | None = None
    fingerprint: str | None = None


def write(
    path: str | Path,
    n: int,
    n_bits: int,
    fingerprint: str | None,
    chunks: Iterable[NDArray[np.uint8]],
) -> None:
    """Write n packed codes chunk by chunk; the file appears whole or not at all."""
    shape = n, n_bytes(n_bits)
    start = _npy(shape) if Path(path).suffix == ".npy" else _header(shape, n_bits, fingerprint)
    with writing(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(start)
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk).data)


def read(path: str | Path) -> CodesInFile:
    """Map the codes of a file; ValueError for a .safetensors file that is damaged or foreign."""
    path = checked_path(path, "codes", SUFFIXES)
    if path.suffix == ".npy":
        return CodesInFile(map_npy(path))
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            if KEY not in metadata:
                raise ValueError(f"it has no metadata {KEY}")
            if metadata[KEY] != FORMAT:
                raise ValueError(f"it is of format {metadata[KEY]}, of a later auxhash")
            stated, part = metadata.get("n_bits", ""), file.get_slice("codes")
            n_bits = int(stated) if stated.isdecimal() else 0
            shape, kind = part.get_shape(), part.get_dtype()
            fits = 1 <= n_bits <= MAX_BITS and shape[0] and shape[1:] == [n_bytes(n_bits)]
            if not fits or kind != "U8" or file.keys() != ["codes"]:
                raise ValueError(f"codes of {n_bits} bits cannot be {kind} of shape {shape}")
            fingerprint = checked("fingerprint", metadata.get("fingerprint"))
    except (SafetensorError, ValueError, LookupError) as error:
        raise ValueError(f"{path} is no whole file of codes: {error}") from error
    with path.open("rb") as opened:
        offset = LENGTH_BYTES + int.from_bytes(opened.read(LENGTH_BYTES), "little")
    return CodesInFile(np.memmap(path, np.uint8, "r", offset, tuple(shape)), n_bits, fingerprint)


def _npy(shape: tuple[int, int]) -> bytes:
    start = BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(start, header)
    return start.getvalue()


def _header(shape: tuple[int, int], n_bits: int, fingerprint: str | None) -> bytes:
    metadata = {KEY: FORMAT, "n_bits": str(n_bits)}
    if fingerprint is not None:
        metadata["fingerprint"] = fingerprint
    array = {"dtype": "U8", "shape": shape, "data_offsets": [0, shape[0] * shape[1]]}
    fields = {"__metadata__": metadata, "codes": array}
    header = json.dumps(fields, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # as the format asks for
    return len(header).to_bytes(LENGTH_BYTES, "little") + header
