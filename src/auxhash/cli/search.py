"""search: from queries to their nearest codes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auxhash.cli.options import Reading, jobs_option, json_option, points_options
from auxhash.cli.output import tell, tell_of_ties
from auxhash.cli.queries import (
    HAMMING,
    OUTPUTS,
    EncodedQueries,
    NamesOf,
    SearchHits,
    SearchOptions,
    answer,
    codes,
    encoded,
    search_options,
    tie_breaking,
)
from auxhash.compute.words import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from auxhash.compute.arrays import AnyArray
    from auxhash.compute.neighbors import Metric
    from auxhash.model.model import Model
    from auxhash.search.index import HammingIndex
    from auxhash.search.index.named import AnyIndex, NumberedIndex

CANDIDATES_PER_HIT = 10  # to re-rank
MAX_CANDIDATES = 10_000  # to re-rank, where more are taken as they are all equally far


@click.command()
@click.argument("index")
@click.argument("queries")
@search_options
@click.option(
    "--bits", type=int, help="Search by the first bits of all codes only: a multiple of 8, or all."
)
@click.option("--names", metavar="FILE", help="What to call the ids: a folder of pictures, a list.")
@click.option(
    "--rerank",
    metavar="VECTORS|outputs",
    help="Take more candidates, and order them by the distance of the vectors in this file (by its "
    "column of ids, or else row i for id i) or of this folder's pictures, or by the outputs of "
    "--model.",
)
@click.option(
    "--query-vectors",
    metavar="FILE",
    help="The vectors of QUERIES that are codes, for --rerank.",
)
@click.option(
    "--candidates",
    type=int,
    help=f"How many to re-rank; {CANDIDATES_PER_HIT} k by default, and more if they all tie.",
)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="Distance of vectors for --rerank: by default that which --model was learnt for, or else "
    "euclidean.",
)
@click.option(
    "--probe", type=int, help="Lists that an approximate index looks into; 16 by default."
)
@points_options
@jobs_option
@json_option
def search(
    index: str,
    queries: str,
    options: SearchOptions,
    bits: int | None,
    names: str | None,
    rerank: str | None,
    query_vectors: str | None,
    candidates: int | None,
    metric: "Metric | None",
    probe: int | None,
    reading: Reading,
) -> None:
    """Find the k codes of INDEX that are nearest to each of QUERIES, or all within a radius.

    QUERIES are codes or, with --model, points: whatever `auxhash encode` takes. Those of another
    model than that of the index are refused, where both say which it is. The ids are those that the
    index was given, or else the row numbers of its codes. Among equal Hamming distances, --model
    orders by the query's outputs, which tell all but equal codes apart; these, and all ties
    without --model, come in the order of the codes. If the index has fewer than k codes, all are
    found. An approximate index orders no ties and may find fewer: in FILE, what is missing is
    id -1.

    \b
    FILE holds distances and ids, (queries, k) each. With --radius, those of query i are
    distances[stops[i]:stops[i + 1]], and ids likewise. An index with names adds names.

    \b
    Examples:
      auxhash search codes.index codes.safetensors -k 3
      auxhash search codes.index codes.safetensors --radius 2
      auxhash search codes.index queries.npy --model model.safetensors -k 5 -o found.npz
      auxhash search codes.index queries.npy --model model.safetensors --rerank features.npy
      auxhash search codes.index queries.npy --model model.safetensors --rerank outputs
      auxhash search codes.index queries.npy --model model.safetensors --by outputs
      auxhash search codes.index codes.safetensors --bits 8
      auxhash search rough.index codes.safetensors --probe 4
      auxhash search photos.index photos --model photos.safetensors --names photos -k 3
      auxhash search named.index photos --model photos.safetensors --rerank photos -k 3
      auxhash search named.index photos --model photos.safetensors -k 3
    """
    from auxhash.cli import inputs
    from auxhash.search import chance
    from auxhash.search.index import ApproximateIndex, HammingIndex, NamedIndex, load

    model, radius = options.model, options.radius
    finer = _Rerank(rerank, query_vectors, candidates, metric, options, reading)
    finer.check_use()
    path = options.hits_path(index, queries)
    _check_index(index)
    loaded = load(index, n_probe=16 if probe is None else probe)
    inner = loaded.index if isinstance(loaded, NamedIndex) else loaded
    if probe is not None and not isinstance(inner, ApproximateIndex):
        raise ValueError(f"--probe is for approximate indexes, and {index} is exact")
    first = inner if bits is None else _prefix(index, inner, bits)
    called = _names(names, reading.header, loaded)

    def check(fingerprint: str | None) -> None:
        asking = f"the codes of {model}" if model else queries
        inputs.same_model(index, loaded.fingerprint, asking, fingerprint, options.any_model)

    if model is None:
        asked = codes(queries, loaded.n_bits, bits)
        check(asked.fingerprint)
    else:
        asked = encoded(model, queries, reading, inner, check, options.by, finer.by_points)
    if bits is not None:
        _note_prefix(model, asked.model, bits, loaded.n_bits)
        inner, asked = first, asked.prefix(bits)
    same = loaded.fingerprint is not None and loaded.fingerprint == asked.fingerprint
    if not same and chance.by_chance(inner, asked.codes):
        tell(
            f"{queries}: as far from the codes of {index} as chance has it, so that what is found "
            "means little: were both made by the same model, from the same columns?"
        )
    if radius is None:
        finer = finer.for_model(asked.model)
        hits = finer.search(loaded, inner, asked)
    else:
        hits = _within(inner, asked, radius)
    if not finer.by_vectors and isinstance(inner, HammingIndex) and _all_tied(hits.distances):
        tell_of_ties(index, inner.packed)
    result: dict[str, object] = {"index": index, "queries": len(asked.codes)}
    result["fingerprint"] = loaded.fingerprint
    result |= {"k": hits.k} if radius is None else {"radius": radius}
    result |= {} if bits is None else {"bits": bits}
    result |= {} if finer.metric is None else {"metric": finer.metric}
    message = (
        f"{count(len(asked.codes), 'query')}, {hits.description} of {count(len(loaded), 'code')}"
    )
    if options.output is not None:
        result["output"] = options.output
    advice = "" if bits is not None else _advice(asked, finer, radius)  # of all bits
    answer(hits, asked, result, message, path, called, advice)


@dataclass(frozen=True)
class _Rerank:
    """Options of --rerank: how the candidates of a search are ordered anew."""

    by: str | None  # "outputs", or a file of vectors
    query_vectors: str | None
    candidates: int | None
    metric: "Metric | None"
    options: SearchOptions  # of the search itself
    reading: Reading

    @property
    def by_vectors(self) -> bool:
        """True if candidates are ordered by vectors, which tell even equal codes apart."""
        return self.by not in (None, OUTPUTS)

    @property
    def by_points(self) -> str | None:
        """The part of encoded queries that re-ranking needs: "outputs", "vectors" or None."""
        if not self.by_vectors:
            return self.by
        return "vectors" if self.query_vectors is None else None

    def for_model(self, model: "Model | None") -> "_Rerank":
        """Return a copy with a metric for vectors: the one asked for, or else the model's."""
        if not self.by_vectors:
            return self
        learnt_for = None if model is None else model.metric
        return replace(self, metric=self.metric or learnt_for or "euclidean")

    def check_use(self) -> None:
        """Raise UsageError where options do not go together."""
        model, k = self.options.model, self.options.k
        if self.options.radius is not None and (k is not None or self.by is not None):
            other = "-k" if k is not None else "--rerank"
            raise click.UsageError(f"--radius finds all codes within it: leave out {other}")
        self.options.check_by()
        vectors = self.by_vectors
        of_vectors = {"--query-vectors": self.query_vectors, "--metric": self.metric}
        for option, value in of_vectors.items():
            if value is not None and not vectors:
                raise click.UsageError(f"{option} is for --rerank VECTORS")
        if self.candidates is not None and self.by is None:
            raise click.UsageError("--candidates is for --rerank")
        if self.by == OUTPUTS and model is None:
            raise click.UsageError("--rerank outputs needs the --model whose outputs they are")
        if vectors and model is None and self.query_vectors is None:
            raise click.UsageError(
                "--rerank VECTORS needs the queries' vectors: --query-vectors, or --model"
            )

    def search(
        self, outer: "AnyIndex", index: "NumberedIndex", asked: EncodedQueries
    ) -> SearchHits:
        """Find the k nearest; `index` is the numbered index in `outer`, which may have names."""
        from auxhash.compute import checks

        k = checks.integer("k", self.options.wanted_k, 1)
        if self.by is None:
            distances, ids = _scanned(index, asked, k)
        else:
            few = CANDIDATES_PER_HIT * k if self.candidates is None else self.candidates
            few = checks.integer("candidates", few, k)
            distances, ids = self._ordered(outer, index, asked, few, k)
        there = ids.shape[1]
        message = f"{there} nearest" if there == k else f"{there} nearest (all there are, not {k})"
        if (ids < 0).any():  # of an approximate index
            message += ", or fewer where the lists that are looked at hold fewer,"
        if self.options.by != HAMMING:
            message += f" by {self.options.by}"
        if self.by is not None:
            finer = self.by if self.metric is None else f"{self.metric} distance"
            message += f", re-ranked by {finer},"
        return SearchHits(distances, ids, message)

    def _ordered(
        self,
        outer: "AnyIndex",
        index: "NumberedIndex",
        asked: EncodedQueries,
        few: int,
        k: int,
    ) -> "tuple[AnyArray, AnyArray]":
        """Distances and ids of the k best of `few` candidates."""
        from auxhash.cli import inputs
        from auxhash.search.index import rerank

        distances, ids = _scanned(index, asked, few)
        while self.candidates is None and few < MAX_CANDIDATES and _all_tied(distances):
            few = min(CANDIDATES_PER_HIT * few, MAX_CANDIDATES)  # equal codes are in no order
            distances, ids = _scanned(index, asked, few)
        if self.by == OUTPUTS:
            assert asked.outputs is not None
            return rerank.by_outputs(ids, asked.outputs, index, k)
        points, columns = asked.vectors, asked.columns
        if self.query_vectors is not None:
            points, columns = inputs.vectors(self.query_vectors, self.reading.header)
        assert points is not None  # `check_use` has seen to it
        base = inputs.vectors_by_id(str(self.by), self.reading, columns, outer, asked.model)
        assert self.metric is not None  # `for_model` has seen to it
        return rerank.by_vectors(ids, points, base, k, self.metric)


def _scanned(index: "NumberedIndex", asked: EncodedQueries, k: int) -> "tuple[AnyArray, AnyArray]":
    """Distances and ids of the k nearest, by tables if the queries have them.

    Tables of Hamming distances order ties: the distances themselves are whole numbers.
    """
    if asked.tables is None:
        return index.search(asked.codes, k)
    distances, ids = asked.by_tables(lambda tables, _: index.search_tables(tables, k))
    return _hamming(distances) if asked.by == HAMMING else distances, ids


def _check_index(path: str) -> None:
    """Raise ValueError, with a hint, for a folder of `build` in place of an index."""
    from auxhash.cli.build import is_built, served_files

    if is_built(Path(path)):
        _, store = served_files(path)
        raise ValueError(
            f"{path} is a folder that `auxhash build` made, and no index: `auxhash serve {path}` "
            f"or `auxhash store search {store}` searches it"
        )


def _prefix(path: str, index: "NumberedIndex", bits: int) -> "HammingIndex":
    """The index of the first bits of its codes."""
    from auxhash.search.index import HammingIndex

    if not isinstance(index, HammingIndex):
        raise ValueError(f"--bits is for exact indexes, and {path} is approximate")
    if bits != index.n_bits and (not 0 < bits < index.n_bits or bits % 8):
        raise ValueError(
            f"--bits must be a multiple of 8 below {index.n_bits}, or all of the bits of {path}; "
            f"got {bits}"
        )
    return index.prefix(bits)


def _note_prefix(path: str | None, model: "Model | None", bits: int, n_bits: int) -> None:
    """Say that the model has learnt no such prefix, where it is known."""
    if model is None or bits in (*model.prefixes, n_bits):
        return
    others = f", but the first {' and '.join(map(str, model.prefixes))}" if model.prefixes else ""
    tell(
        f"{path}: not trained for the first {bits} bits as a code of their own{others}: they may "
        "find less than a code of so many bits would"
    )


def _hamming(distances: "AnyArray") -> "AnyArray":
    """Hamming distances of those that `tie_breaking` makes, up to rounding."""
    import numpy as np

    return np.floor(distances + 0.25).astype(np.int32)


def _within(index: "NumberedIndex", asked: EncodedQueries, radius: int) -> SearchHits:
    """All codes within the radius; equal distances by outputs, if the queries have tables."""
    from auxhash.search.index import rerank

    distances, ids = index.radius_search(asked.codes, radius)
    if asked.tables is not None:
        assert asked.outputs is not None
        real = tie_breaking(asked.outputs)
        for q, own in enumerate(ids):
            if len(own) > 1:
                ordered = rerank.by_outputs(own[None], real[q : q + 1], index)
                distances[q], ids[q] = _hamming(ordered[0][0]), ordered[1][0]
    return SearchHits(distances, ids, f"all within {count(radius, 'bit')}")


def _all_tied(distances: "Sequence[AnyArray] | AnyArray") -> bool:
    """True if the hits of most queries are all equally far, as those of equal codes are."""
    tied = sum(len(row) > 1 and bool(row[0] == row[-1]) for row in distances)
    return 2 * tied > len(distances)


def _advice(asked: EncodedQueries, finer: _Rerank, radius: int | None) -> str:
    """Say what finds more of the nearest, by what the model promises; "" if nothing is known."""
    expected = [] if asked.model is None else asked.model.learnt.expected
    if not expected or finer.by_vectors or radius is not None:
        return ""
    last = expected[-1]
    vectors = "--rerank VECTORS finds more, by the distance of the vectors themselves"
    if finer.options.by != HAMMING or finer.by is not None:
        return f"{vectors}."
    learnt = asked.model is not None and asked.model.table_function is not None
    tables = "--by tables still more; " if learnt else ""
    return (
        f"--by outputs finds {last.outputs:.3f} of the 10 nearest where this search finds "
        f"{last.hamming:.3f} (of points held out); {tables}{vectors}."
    )


def _names(path: str | None, header: bool | None, index: "AnyIndex") -> NamesOf | None:
    """The function from ids to names: the index's own, or of a file with the names of 0, 1, ..."""
    from auxhash.cli import inputs
    from auxhash.search.index import NamedIndex

    if isinstance(index, NamedIndex):
        if path is not None:
            raise ValueError("the index has names of its own: leave out --names")
        return index.called
    if path is None:
        return None
    names, last = inputs.names(path, header), max(index.ids.tolist(), default=-1)
    if len(names) <= last:
        raise ValueError(
            f"{path} holds {count(len(names), 'name')}, and the index has an id {last}"
        )
    text = Path(path).suffix in (".csv", ".txt")
    if text and header is None and last == len(index) - 1 == len(names) - 2:
        raise ValueError(
            f"{path} holds {count(len(names), 'name')} for the ids 0..{last}: does line 1 "
            "name the column? --header or --no-header says so"
        )
    return lambda ids: [names[i] for i in ids]
