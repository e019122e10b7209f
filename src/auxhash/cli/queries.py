"""Queries and their hits: code that searching an index and searching a store share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from auxhash.cli.options import Reading, any_model_option, force_option, gathered
from auxhash.cli.output import number, show, table
from auxhash.compute.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray
    from auxhash.model.model import Model

NamesOf = Callable[[Iterable[int]], list[str]]  # from ids to names

MAX_SHOWN = 10  # queries, and neighbours of each, on the terminal
DEFAULT_K = 10
HAMMING, OUTPUTS, TABLES = "hamming", "outputs", "tables"  # distances to search by
QUERIES_PER_SEARCH = 1024  # by tables, which take a kilobyte per byte of a code


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search: its distance and size, and a file for the hits."""

    k: int | None
    radius: int | None
    model: str | None
    by: str
    output: str | None
    force: bool
    any_model: bool

    @property
    def wanted_k(self) -> int:
        return DEFAULT_K if self.k is None else self.k

    def check_by(self) -> None:
        """Raise UsageError where --by does not go with the other options."""
        if self.by == HAMMING:
            return
        if self.radius is not None:
            raise click.UsageError("--radius counts bits: leave out --by")
        if self.model is None:
            raise click.UsageError(f"--by {self.by} needs the --model that makes them")

    def hits_path(self, *made_from: str) -> Path | None:
        """The .npz file to write the hits to, if there is to be one."""
        from auxhash.cli import inputs, kinds

        if self.output is None:
            return None
        suffixes = (".npz",)
        return inputs.output_path(
            self.output, kinds.HITS, *made_from, suffixes=suffixes, force=self.force
        )


search_options = gathered(
    "options",
    SearchOptions,
    click.option(
        "-k", type=int, help=f"How many neighbours of each query; {DEFAULT_K} by default."
    ),
    click.option(
        "-r", "--radius", type=int, help="All codes at this distance or less, in place of k."
    ),
    click.option("--model", help="The model that encodes QUERIES, where they are no codes."),
    click.option(
        "--by",
        type=click.Choice([HAMMING, OUTPUTS, TABLES]),
        default=HAMMING,
        show_default=True,
        help="Distance of all codes: hamming, or that of the outputs or the tables of --model.",
    ),
    click.option(
        "-o", "--output", metavar="FILE", help="Write distances and ids to this .npz file."
    ),
    force_option,
    any_model_option,
)


class Searched(Protocol):
    """An index or a store."""

    n_bits: int


@dataclass(frozen=True)
class SearchHits:
    """Distances and ids of each query's codes: arrays (n_queries, k), or a list of arrays."""

    distances: "AnyArray | list[AnyArray]"
    ids: "AnyArray | list[AnyArray]"
    description: str  # of the search, in words

    @property
    def k(self) -> int | None:
        """The number of ids per query; None where each query has its own number."""
        return None if isinstance(self.ids, list) else self.ids.shape[1]

    def plain(self) -> tuple[list[list[float]], list[list[Any]]]:
        """Convert to lists, without the ids of -1 that stand for hits an index did not find."""
        present = [slice(None) if ids.dtype == object else ids >= 0 for ids in self.ids]
        which = [ids[rows].tolist() for ids, rows in zip(self.ids, present, strict=True)]
        both = zip(self.distances, present, strict=True)
        return [near[rows].tolist() for near, rows in both], which

    def write(self, path: Path, called: "NamesOf | None") -> None:
        """Write arrays to a .npz file; those of a list are joined, with `stops` between them."""
        import numpy as np

        from auxhash.files.writing import writing

        distances, ids = self.distances, self.ids
        arrays: dict[str, Any] = {}
        if isinstance(ids, list):
            arrays["stops"] = np.cumsum([0, *map(len, ids)])
            ids, distances = np.concatenate(ids), np.concatenate(distances)
        arrays |= {"distances": distances, "ids": ids.astype(str) if ids.dtype == object else ids}
        if called is not None:
            names = np.array(["", *called(ids[ids >= 0])])
            arrays["names"] = np.full(ids.shape, "", names.dtype)
            arrays["names"][ids >= 0] = names[1:]
        with writing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)


@dataclass(frozen=True)
class EncodedQueries:
    """Codes of queries, and what else a search needs of them."""

    codes: "Packed"
    names: list[str] | None = None  # of pictures
    vectors: "AnyArray | None" = None
    outputs: "AnyArray | None" = None
    tables: "Callable[[slice], AnyArray] | None" = None  # of some queries, to search by
    by: str = HAMMING  # the distance that tables are of
    columns: list[str] | None = None  # what the features of the vectors are called
    fingerprint: str | None = None  # of the model that made the codes
    model: "Model | None" = None  # that model, where it is at hand

    def prefix(self, n_bits: int) -> "EncodedQueries":
        """Return the queries for the first bits of codes: whole bytes, or all bits."""
        from auxhash.codes import n_bytes

        tables, width = self.tables, n_bytes(n_bits)
        return replace(
            self,
            codes=self.codes[:, :width],
            outputs=None if self.outputs is None else self.outputs[:, :n_bits],
            tables=None if tables is None else lambda rows: tables(rows)[:, :width],
        )

    def by_tables(
        self, search: "Callable[[AnyArray, Packed], tuple[AnyArray, AnyArray]]"
    ) -> "tuple[AnyArray, AnyArray]":
        """Return distances and ids that `search` finds by tables and codes, part by part."""
        import numpy as np

        from auxhash.compute import threads

        assert self.tables is not None
        steps = threads.chunks(len(self.codes), QUERIES_PER_SEARCH)
        parts = [search(self.tables(rows), self.codes[rows]) for rows in steps]
        distances, ids = (np.concatenate(part) for part in zip(*parts, strict=True))
        return distances, ids


def codes(queries: str, n_bits: int, prefix: int | None = None) -> EncodedQueries:
    """Queries that are codes already, of n_bits; or, for a prefix, of that many bits."""
    from auxhash.cli import inputs
    from auxhash.codes import n_bytes

    try:
        packed, stated, fingerprint = inputs.codes(
            queries, n_bits if prefix is None else None, single=True
        )
    except inputs.NoCodesError as error:
        raise ValueError(f"{error}, or --model MODEL here") from error
    if prefix is not None and stated not in (prefix, n_bits, 8 * n_bytes(n_bits)):
        raise ValueError(
            f"{queries} holds codes of {count(stated, 'bit')}, not of {n_bits} or {prefix}"
        )
    return EncodedQueries(packed, fingerprint=fingerprint)


def encoded(
    model: str,
    queries: str,
    reading: Reading,
    index: Searched,
    check: Callable[[str], object],
    by: str,
    also: str | None = None,
) -> EncodedQueries:
    """The queries' codes, names if they are pictures, and `also` their vectors or outputs.

    `check` is called with the fingerprint of the model, before anything is encoded; `by` is the
    distance to search by. In an exact index, equal Hamming distances are ordered by outputs.
    """
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.codes import as_packed, pack, sign
    from auxhash.learn.encoder import load
    from auxhash.search.index import HammingIndex

    hasher = load(model)
    fingerprint = hasher.fingerprint
    check(fingerprint)
    if hasher.n_bits != index.n_bits:  # an index of whole bytes fits if its padding is zeros
        message = (
            f"the index holds codes of {count(index.n_bits, 'bit')}, and {model} makes codes of "
            f"{hasher.n_bits}: give the model that its codes were made with, or, if that is it, "
            f"make it by `auxhash index --bits {hasher.n_bits}`"
        )
        if OUTPUTS in (also, by) or by == TABLES or not isinstance(index, HammingIndex):
            raise ValueError(message)
        try:
            as_packed(index.packed, n_bits=hasher.n_bits)
        except ValueError as error:
            raise ValueError(message) from error
    if by == TABLES and hasher.table_function is None:
        raise ValueError(f"{model} has no tables: --by outputs ranks by its outputs")
    ordered = isinstance(index, HammingIndex) and hasher.n_bits == index.n_bits
    needs_outputs = OUTPUTS in (also, by) or (by == HAMMING and ordered)
    points = inputs.points_for(hasher, queries, reading)
    vectors = points.all() if also == "vectors" else None
    codes, outputs, tables = [], [], []
    for chunk in points.chunks() if vectors is None else [vectors]:
        if needs_outputs:
            outputs.append(hasher.decision_function(chunk))
            codes.append(pack(sign(outputs[-1])))
        else:
            codes.append(hasher.encode(chunk))
        if by == TABLES:
            tables.append(hasher.tables(chunk))
    return EncodedQueries(
        np.concatenate(codes),
        points.names,
        vectors,
        np.concatenate(outputs) if outputs else None,
        _tables(by, outputs, tables) if ordered or by != HAMMING else None,
        by,
        points.columns,
        fingerprint,
        hasher,
    )


def _tables(
    by: str, outputs: "list[AnyArray]", tables: "list[AnyArray]"
) -> "Callable[[slice], AnyArray]":
    """The tables of some queries: made of outputs when needed, as they are a kilobyte per byte."""
    import numpy as np

    from auxhash.search.index import tables_from_outputs

    every = np.concatenate(tables if by == TABLES else outputs)
    if by == TABLES:
        return lambda rows: every[rows]
    if by == OUTPUTS:
        return lambda rows: tables_from_outputs(every[rows])
    return lambda rows: tables_from_outputs(tie_breaking(every[rows]))


def tie_breaking(outputs: "AnyArray") -> "AnyArray":
    """Outputs of which a bit that differs costs 1, and all together at most 1/2 more.

    So the distance to a code is the Hamming distance, of which ties are ordered by outputs.
    """
    import numpy as np

    from auxhash.codes import sign

    size = np.abs(outputs, dtype=np.float64)
    every = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(sign(outputs) * (1 + size / (2 * every)))


def answer(
    hits: SearchHits,
    asked: EncodedQueries,
    result: dict[str, Any],
    message: str,
    output: Path | None = None,
    called: "NamesOf | None" = None,
    advice: str = "",
) -> None:
    """Write the hits to `output`, or else show them, with `result` and `message` before them."""
    if output is not None:
        hits.write(output, called)
        show(result, *filter(None, [f"{result['output']}: {message}", advice]))
        return
    near, which = hits.plain()
    result = {**result, "distances": near, "ids": which}
    if called is not None:
        result["names"] = [called(row) for row in which]
    if asked.names is not None:
        result["query_names"] = asked.names
    shown: list[RenderableType] = [message, _nearest(near, result.get("names", which), asked.names)]
    if line := _left_out(len(near), max(map(len, near))):
        shown.append(line)
    if advice:
        shown.append(advice)
    show(result, *shown)


def _left_out(n_queries: int, n_hits: int) -> str:
    """Say how much of the hits is not shown; "" if all is."""
    of = f"{MAX_SHOWN} of {n_queries:,} queries" if n_queries > MAX_SHOWN else ""
    each = f"{MAX_SHOWN} of up to {n_hits:,} hits of each" if n_hits > MAX_SHOWN else ""
    parts = " and ".join(filter(None, [of, each]))
    return f"The first {parts} are shown; -o or --json gives all." if parts else ""


def _nearest(
    near: list[list[float]], called: list[list[object]], asking: list[str] | None
) -> "Table":
    rows = []
    for query in range(min(MAX_SHOWN, len(near))):
        pairs = list(zip(called[query], near[query], strict=True))[:MAX_SHOWN]
        nearest = "  ".join(f"{name} ({number(distance)})" for name, distance in pairs)
        rows.append(
            {"query": asking[query] if asking else query, "nearest, with their distances": nearest}
        )
    return table(rows)
