"""One file of points into one file of codes: a .parquet file with the columns id and code."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, n_bytes
from auxhash.compute.arrays import AnyArray
from auxhash.files.parquetfiles import arrow_errors
from auxhash.files.shards.places import FileAt
from auxhash.files.shards.reading import Columns, chunks

KEY = b"auxhash"  # of the file's metadata, which say what the codes were made of
CODES_PER_WRITE = 1 << 16

Origin = dict[str, Any]


class Encodes(Protocol):
    """A fitted model, as far as files of codes are concerned."""

    @property
    def n_bits(self) -> int: ...

    @property
    def n_features_in_(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def encode(self, X: AnyArray) -> Packed: ...


@dataclass(frozen=True)
class Coding:
    """A file of points, and the file of codes that is to be made of it."""

    source: FileAt
    target: FileAt
    columns: Columns
    first_id: int  # of the points of a .npy file
    origin: Origin  # what the codes depend on: they are made anew when it is another


def coded(coding: Coding, model: Encodes, tell: Callable[[int], None]) -> int:
    """Write the codes of a file, completely or not at all; return how many.

    `tell` is called with the number of points that were encoded, from time to time.
    """
    import pyarrow as arrow
    from pyarrow import parquet

    width, rows = n_bytes(model.n_bits), 0
    metadata = {KEY: json.dumps(coding.origin).encode()}
    writer, batches = None, []
    with coding.target.writing() as out:
        try:
            for X, ids in chunks(coding.source, coding.columns, coding.first_id):
                codes = _column(model.encode(X), width)
                batches.append(arrow.record_batch([ids, codes], ["id", "code"]))
                rows += len(X)
                if writer is None:
                    schema = batches[0].schema.with_metadata(metadata)
                    writer = parquet.ParquetWriter(out, schema)
                if sum(map(len, batches)) >= CODES_PER_WRITE:
                    writer.write_table(_table(batches, schema))
                    batches.clear()
                tell(len(X))
            if batches and writer is not None:
                writer.write_table(_table(batches, schema))
        finally:
            if writer is not None:
                writer.close()
        if coding.source.mark() != coding.origin["mark"]:
            raise ValueError(
                f"{coding.source} changed while it was encoded: give the command again"
            )
    return rows


def origin_of(place: FileAt) -> Origin:
    """Origin of the codes of a file, as it states; ValueError if it is no file of codes."""
    from pyarrow import parquet

    try:
        with arrow_errors(str(place)), place.open() as opened:
            stated = (parquet.ParquetFile(opened).schema_arrow.metadata or {}).get(KEY, b"")
        origin: Origin = json.loads(stated)
    except (ValueError, TypeError):
        raise ValueError(
            f"{place} is no file of codes that auxhash wrote, and would be replaced: give another "
            "folder with -o, or remove it"
        ) from None
    return origin


def _table(batches: list[Any], schema: Any) -> Any:
    import pyarrow as arrow

    return arrow.Table.from_batches(batches).cast(schema).combine_chunks()


def _column(codes: NDArray[np.uint8], width: int) -> Any:
    """Packed codes as Arrow's column of so many bytes each."""
    import pyarrow as arrow

    bits = arrow.py_buffer(np.ascontiguousarray(codes))
    return arrow.FixedSizeBinaryArray.from_buffers(arrow.binary(width), len(codes), [None, bits])
