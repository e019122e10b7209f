"""One file of points into one file of codes: a .parquet file with the columns id and code."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, n_bytes
from auxhash.compute.arrays import AnyArray
from auxhash.files.parquetfiles import arrow_errors, values_of
from auxhash.files.shards.places import FileAt, folder_of, inside
from auxhash.files.shards.reading import Columns, chunks

if TYPE_CHECKING:
    import pyarrow as arrow

KEY = b"auxhash"  # of the file's metadata, which say what the codes were made of
CODES_PER_WRITE = 1 << 16

Origin = dict[str, Any]


class ForeignFileError(ValueError):
    """A file of something else, where codes of auxhash are expected."""


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
        raise ForeignFileError(f"{place} is no file of codes that auxhash wrote") from None
    return origin


class CodesInFolder(NamedTuple):
    """Codes of all files of a folder, by the names of the files, with their ids."""

    codes: Packed
    n_bits: int
    fingerprint: str | None
    ids: AnyArray


def read(address: str) -> CodesInFolder:
    """Read a folder of files of codes; ValueError unless one model has made them all."""
    from pyarrow import concat_tables, parquet

    everything = sorted(inside(folder_of(address)), key=lambda place: place.path)
    files = [place for place in everything if place.suffix == ".parquet"]
    if not files:
        raise ValueError(f"{address} holds no files of codes, which `auxhash encode` writes")
    origins = [origin_of(place) for place in files]
    made_by = [(int(origin["bits"]), origin.get("fingerprint")) for origin in origins]
    for place, made in zip(files, made_by, strict=True):
        if made != made_by[0]:
            raise ValueError(
                f"{place} holds codes of {made[0]} bits of model {made[1]}, and {files[0]} of "
                f"{made_by[0][0]} bits of model {made_by[0][1]}: encode both by one model"
            )
    tables = []
    for place in files:
        with arrow_errors(str(place)), place.open() as opened:
            tables.append(parquet.read_table(opened).select(["id", "code"]))
    table = concat_tables(tables)
    n_bits, fingerprint = made_by[0]
    packed = np.frombuffer(b"".join(table["code"].to_pylist()), np.uint8)
    codes = packed.reshape(len(table), n_bytes(n_bits))
    return CodesInFolder(codes, n_bits, fingerprint, values_of(table["id"], address, "id"))


def _table(batches: list["arrow.RecordBatch"], schema: "arrow.Schema") -> "arrow.Table":
    import pyarrow as arrow

    return arrow.Table.from_batches(batches).cast(schema).combine_chunks()


def _column(codes: NDArray[np.uint8], width: int) -> "arrow.FixedSizeBinaryArray":
    """Packed codes as Arrow's column of so many bytes each."""
    import pyarrow as arrow

    bits = arrow.py_buffer(np.ascontiguousarray(codes))
    return arrow.FixedSizeBinaryArray.from_buffers(arrow.binary(width), len(codes), [None, bits])
