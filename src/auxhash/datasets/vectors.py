"""Files of vectors as the TEXMEX corpora store them: fvecs, bvecs, ivecs.

Each vector is its dimension, a little-endian int32, followed by that many float32, bytes or int32.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES: dict[str, np.dtype[Any]] = {
    ".fvecs": np.dtype("<f4"),
    ".bvecs": np.dtype("u1"),
    ".ivecs": np.dtype("<i4"),
}
HEADER = 4  # bytes


def read_vectors(path: str | Path, count: int | None = None) -> NDArray[Any]:
    """The vectors (n, d) of a file, or its first `count`; the file's ending says of what type.

    Raises ValueError where the file is empty, ends inside a vector, or mixes dimensions.
    """
    path = Path(path)
    if path.suffix not in TYPES:
        raise ValueError(f"{path.name} must end in {', '.join(TYPES)}")
    kind = TYPES[path.suffix]
    size = path.stat().st_size
    if size < HEADER:
        raise ValueError(f"{path} is empty" if not size else f"{path} is truncated: {size} bytes")
    d = int(np.fromfile(path, "<i4", 1)[0])
    width = HEADER + d * kind.itemsize
    if d < 1:
        raise ValueError(f"{path} begins with dimension {d}: not a file of {path.suffix[1:]}")
    data = np.memmap(path, np.uint8, "r")
    rows = data[: size - size % width].reshape(-1, width)
    dims = np.ascontiguousarray(rows[:, :HEADER]).view("<i4")[:, 0]
    if (dims != d).any():
        at = int(np.flatnonzero(dims != d)[0])
        raise ValueError(
            f"{path} mixes dimensions: vector 0 has {d}, but {dims[at]} stands before vector {at}"
        )
    if size % width:
        raise ValueError(
            f"{path} is truncated: {size} bytes are no multiple of {width}, a vector of {d}"
        )
    if count is not None:
        if not 1 <= count <= len(rows):
            raise ValueError(f"count must be from 1 to {len(rows)}, got {count}")
        rows = rows[:count]
    vectors: NDArray[Any] = np.ascontiguousarray(rows[:, HEADER:]).view(kind)
    return vectors.astype(kind.newbyteorder("="), copy=False)


def write_vectors(path: str | Path, vectors: NDArray[Any]) -> None:
    """Store vectors (n, d) in the format that the file's ending names."""
    path = Path(path)
    if path.suffix not in TYPES:
        raise ValueError(f"{path.name} must end in {', '.join(TYPES)}")
    content = np.ascontiguousarray(vectors, TYPES[path.suffix])
    if content.ndim != 2 or not content.size:
        raise ValueError(f"vectors must be of shape (n, d), got shape {content.shape}")
    header = np.full((len(content), 1), content.shape[1], "<i4").view(np.uint8)
    np.hstack([header, content.view(np.uint8)]).tofile(path)
