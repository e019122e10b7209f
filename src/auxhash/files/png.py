"""Just enough PNG: read the images of a mirror, write small pictures for a page.

Only 8 bits per channel, not interlaced.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.kernels import kernel

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = ">IIBBBBB"  # width, height, depth, colour type, packing, filter, interlacing
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by colour type: grey, RGB, grey + alpha, RGB + alpha


def read_png(data: bytes) -> NDArray[np.uint8]:
    """Pixels (height, width, channels) of a PNG file."""
    if not data.startswith(SIGNATURE):
        raise ValueError("not a PNG file")
    chunks = list(_chunks(data))
    if not chunks or chunks[0][0] != b"IHDR" or chunks[-1][0] != b"IEND":
        raise ValueError("PNG file is truncated")
    if len(chunks[0][1]) != struct.calcsize(HEADER):
        raise ValueError("PNG file is damaged")
    width, height, depth, colour, _, _, interlaced = struct.unpack(HEADER, chunks[0][1])
    if depth != 8 or interlaced or colour not in CHANNELS:
        raise ValueError("only PNG of 8 bits per channel, no palette and not interlaced, is read")
    channels = CHANNELS[colour]
    packed = b"".join(content for kind, content in chunks if kind == b"IDAT")
    stride = width * channels
    right = height * (stride + 1)
    try:
        raw = np.frombuffer(zlib.decompressobj().decompress(packed, right + 1), np.uint8)
    except zlib.error as error:
        raise ValueError("PNG file is damaged") from error
    if len(raw) != right:
        held = "more" if len(raw) > right else len(raw)
        raise ValueError(f"PNG holds {held} bytes where {right} are right")
    lines = raw.reshape(height, stride + 1)
    if lines[:, 0].max(initial=0) > 4:
        raise ValueError("PNG names an unknown filter")
    pixels = np.empty((height, stride), np.uint8)
    _unfilter(lines, channels, pixels)
    return pixels.reshape(height, width, channels)


def write_png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of grey (height, width) or RGB (height, width, 3) pixels."""
    height, width = pixels.shape[:2]
    colour = 0 if pixels.ndim == 2 else 2
    lines = np.ascontiguousarray(pixels).reshape(height, -1)
    raw = np.hstack([np.zeros((height, 1), np.uint8), lines]).tobytes()  # filter 0: none
    header = struct.pack(HEADER, width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + length]
        if data[at + 8 + length : at + 12 + length] != struct.pack(
            ">I", zlib.crc32(kind + content)
        ):
            raise ValueError("PNG file is damaged")
        yield kind, content
        at += 12 + length


@kernel
def _unfilter(lines: Any, channels: int, pixels: Any) -> None:
    """Undo the filter of each line: a byte was stored minus a guess from its neighbours."""
    height, stride = pixels.shape
    for row in range(height):
        kind = lines[row, 0]
        for x in range(stride):
            left: Any = np.int64(pixels[row, x - channels]) if x >= channels else 0
            above: Any = np.int64(pixels[row - 1, x]) if row else 0
            corner: Any = np.int64(pixels[row - 1, x - channels]) if row and x >= channels else 0
            guess: Any = 0
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = above
            elif kind == 3:
                guess = (left + above) // 2
            elif kind == 4:  # whichever of the three is nearest to left + above - corner
                to_left, to_above = abs(above - corner), abs(left - corner)
                to_corner = abs(left + above - 2 * corner)
                if to_left <= to_above and to_left <= to_corner:
                    guess = left
                elif to_above <= to_corner:
                    guess = above
                else:
                    guess = corner
            pixels[row, x] = np.uint8((np.int64(lines[row, x + 1]) + guess) & 255)
