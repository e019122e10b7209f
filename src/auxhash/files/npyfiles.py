"""NumPy's files, .npy and .npz, from anyone: nothing in them is run, and only what is asked for
is unpacked.
"""

import math
import os
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from auxhash.compute.arrays import AnyArray


def map_npy(path: Path) -> AnyArray:
    """The array of a .npy file, left on the disk until it is used."""
    with path.open("rb") as file:
        start = file.read(len(np.lib.format.MAGIC_PREFIX))
        if start != np.lib.format.MAGIC_PREFIX:  # np.load would take it for a pickle or an archive
            why = "it begins otherwise" if start else "it is empty"
            raise ValueError(f"{path} is not a whole .npy file: {why}")
        file.seek(0)
        checked_header(file, path.stat().st_size, f"{path} is not a whole .npy file", str(path))
    mapped: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


class Archive:
    """The arrays of a .npz file, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
            raise ValueError(f"{path} is not a whole .npz file of arrays: {error}") from error
        arrays = [info for info in members if info.filename.endswith(".npy")]
        self.members = {info.filename.removesuffix(".npy"): info for info in arrays}
        if len(self.members) < len(arrays):
            raise ValueError(f"{path} holds two arrays of one name")

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in their order."""
        return list(self.members)

    def read(self, name: str) -> AnyArray:
        """Read one array; its size is checked before anything is unpacked."""
        info = self.members[name]
        fault = f"{self.path} is not a whole .npz file of arrays"
        if info.file_size > (memory := _memory()):
            raise ValueError(
                f"{self.path}: array {name} takes {info.file_size:,} bytes, and this machine has "
                f"a memory of {memory:,}"
            )
        try:
            with zipfile.ZipFile(self.path) as archive:
                with archive.open(info) as file:
                    checked_header(file, info.file_size, fault, f"{self.path}: array {name}")
                with archive.open(info) as file:
                    array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
                    file.read()  # to the end, where the checksum is compared
                    return array
        except (PermissionError, MemoryError):
            raise
        except Exception as error:  # each compression has its own errors for damaged data
            if isinstance(error, ValueError) and str(error).startswith(str(self.path)):
                raise
            raise ValueError(f"{fault}: array {name}: {error}") from error


def checked_header(
    file: IO[bytes], size: int, fault: str, name: str
) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is stored column by column, and type; the file is at its first number.

    Raises unless the header is whole, of plain values, and states as many bytes as there are.
    """
    try:
        version = np.lib.format.read_magic(file)
        first = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
    except Exception as error:  # the parser of a damaged header fails in any of many ways
        raise ValueError(f"{fault}: its header is damaged") from error
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds Python objects, and reading those could run anything: save "
            "y.astype(str), or numbers, instead"
        )
    if dtype.kind == "V":
        raise ValueError(f"{name} holds records of {dtype}, and one array of numbers is needed")
    stated, present = math.prod(shape) * dtype.itemsize, size - file.tell()
    if stated != present or min(shape, default=0) < 0:
        raise ValueError(
            f"{fault}: it states an array of shape {shape}, {stated:,} bytes, and holds {present:,}"
        )
    return shape, by_columns, dtype


def _memory() -> int:
    """Bytes of memory that this machine has; if unknown, no bound."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**63
