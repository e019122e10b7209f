"""Files made up for the tests."""

import io
import os
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np


def tar_of(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    """A .tar.gz of these members, and symbolic links, under any names at all."""
    with tarfile.open(path, "w:gz") as tar:
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def png_of(pixels: np.ndarray, filters: list[int] | None = None, colour: int = 2) -> bytes:
    """A PNG of pixels (height, width, channels), each line with its own filter (0..4)."""
    height, width, channels = pixels.shape
    lines = pixels.reshape(height, -1).astype(int)
    out = bytearray()
    for row, line in enumerate(lines):
        kind = filters[row % len(filters)] if filters else 0
        left = np.concatenate([np.zeros(channels, int), line[:-channels]])
        above = lines[row - 1] if row else np.zeros_like(line)
        corner = np.concatenate([np.zeros(channels, int), above[:-channels]])
        p = left + above - corner
        to = np.abs(np.stack([p - left, p - above, p - corner]))
        paeth = np.choose(to.argmin(axis=0), [left, above, corner])
        guess = [0 * left, left, above, (left + above) // 2, paeth][kind]
        out += bytes([kind]) + ((line - guess) % 256).astype(np.uint8).tobytes()

    def chunk(kind: bytes, content: bytes) -> bytes:
        size, crc = struct.pack(">I", len(content)), struct.pack(">I", zlib.crc32(kind + content))
        return size + kind + content + crc

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(out)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def idx_of(array: np.ndarray) -> bytes:
    """An idx file of unsigned bytes."""
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    return b"\0\0\x08" + bytes([array.ndim]) + shape + array.astype(np.uint8).tobytes()


def everything_in(folder: Path) -> list[str]:
    """All files below a folder, hidden ones included."""
    paths = (Path(home) / name for home, _, names in os.walk(folder) for name in names)
    return sorted(str(path.relative_to(folder)) for path in paths)
