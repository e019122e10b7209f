"""Files of vectors as the TEXMEX corpora store them: fvecs, bvecs, ivecs.

Each vector is its dimension, a little-endian int32, followed by that many float32, bytes or int32.
"""

from pathlib import Path

import numpy as np

from auxhash.compute.arrays import AnyArray

TYPES: dict[str, np.dtype] = {
    ".fvecs": np.dtype("<f4"),
    ".bvecs": np.dtype("u1"),
    ".ivecs": np.dtype("<i4"),
}
HEADER_BYTES = 4


def read_vectors(path: str | Path, count: int | None = None) -> AnyArray:
    """The vectors (n, d) of a file, or its first `count`; the file's ending says of what type.

    Raises ValueError where the file is empty, ends inside a vector, or mixes dimensions.
    """
    mapped = map_vectors(path)
    if count is not None and not 1 <= count <= len(mapped):
        raise ValueError(f"count must be from 1 to {len(mapped)}, got {count}")
    check_dimensions(path, mapped)
    vectors = np.ascontiguousarray(mapped["vector"][:count])
    return vectors.astype(vectors.dtype.newbyteorder("="), copy=False)


def map_vectors(path: str | Path) -> AnyArray:
    """Records (n,) of `dimension` and `vector`, left on the disk until they are used.

    Only the first dimension has been looked at: `check_dimensions` compares the others.
    """
    path = Path(path)
    if path.suffix not in TYPES:
        raise ValueError(f"{path.name} must end in {', '.join(TYPES)}")
    kind = TYPES[path.suffix]
    size = path.stat().st_size
    if size < HEADER_BYTES:
        raise ValueError(f"{path} is empty" if not size else f"{path} is truncated: {size} bytes")
    d = int(np.fromfile(path, "<i4", 1)[0])
    width = HEADER_BYTES + d * kind.itemsize
    if d < 1:
        raise ValueError(f"{path} begins with dimension {d}: not a file of {path.suffix[1:]}")
    if width > size:
        raise ValueError(f"{path} is truncated: {size} bytes cannot hold a vector of {d}")
    record = np.dtype([("dimension", "<i4"), ("vector", kind, (d,))])
    records = np.memmap(path, record, "r", shape=(size // width,))
    if size % width:
        check_dimensions(path, records)  # raises if that is the fault, not a missing end
        raise ValueError(
            f"{path} is truncated: {size} bytes are no multiple of {width}, a vector of {d}"
        )
    return records


def check_dimensions(path: str | Path, records: AnyArray, first: int = 0) -> None:
    """Raise unless all records are of one dimension; `first` is the number of the first."""
    d = records.dtype["vector"].shape[0]
    wrong = np.flatnonzero(records["dimension"] != d)
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            f"{path} mixes dimensions: vector 0 has {d}, but {records['dimension'][at]} stands "
            f"before vector {first + at}"
        )


def write_vectors(path: str | Path, vectors: AnyArray) -> None:
    """Store vectors (n, d) in the format that the file's ending names.

    .fvecs rounds to float32; whole numbers must be in the range of .bvecs and .ivecs.
    """
    path = Path(path)
    if path.suffix not in TYPES:
        raise ValueError(f"{path.name} must end in {', '.join(TYPES)}")
    kind = TYPES[path.suffix]
    values = np.asarray(vectors)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"vectors must be of shape (n, d), got shape {values.shape}")
    if kind.kind in "iu":
        info = np.iinfo(kind)
        if not ((values >= info.min) & (values <= info.max) & (values == np.floor(values))).all():
            raise ValueError(
                f"{path.suffix} holds whole numbers from {info.min} to {info.max} alone"
            )
    content = np.ascontiguousarray(values, kind)
    header = np.full((len(content), 1), content.shape[1], "<i4").view(np.uint8)
    np.hstack([header, content.view(np.uint8)]).tofile(path)
