"""64 bytes of fields that end or begin a part of an index file, with their checksums.

    0   fields, then uint32: CRC-32 of the fields; zeros up to byte 48
    48  8 bytes   fingerprint of the model that made the codes
    56  uint32    1
    60  uint32    CRC-32 of bytes 0..59

Bytes 48..63 are zeros where no model is stated, as in all files before there were fingerprints.
"""

import struct
import zlib

from auxhash.compute.fingerprint import checked

BLOCK_BYTES = 64
FINGERPRINT_AT = 48  # where the fingerprint begins


def sealed(fields: bytes, fingerprint: str | None = None) -> bytes:
    """Return the 64 bytes of these fields and a fingerprint."""
    mark = checked("fingerprint", fingerprint)
    block = (fields + _sum(fields)).ljust(FINGERPRINT_AT, b"\0")
    if mark is None:
        return block.ljust(BLOCK_BYTES, b"\0")
    block += bytes.fromhex(mark) + struct.pack("<I", 1)
    return block + _sum(block)


def opened(block: bytes, size: int) -> tuple[bytes, str | None] | None:
    """Return the fields, of `size` bytes, and the fingerprint; None if the block is damaged."""
    if len(block) < BLOCK_BYTES:
        return None
    fields, mark = block[:size], block[FINGERPRINT_AT:]
    fingerprint = mark[:8].hex() if any(mark) else None
    return (fields, fingerprint) if sealed(fields, fingerprint) == block else None


def _sum(content: bytes) -> bytes:
    return struct.pack("<I", zlib.crc32(content))
