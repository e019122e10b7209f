"""fit-queries: a model of queries for codes that are there, from what is relevant to them."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.group import INTERRUPTED
from auxhash.cli.options import (
    Reading,
    bits_option,
    device_option,
    force_option,
    jobs_option,
    json_option,
    seed_option,
    table_options,
)
from auxhash.cli.output import as_json, number, show, tell
from auxhash.compute import clock
from auxhash.compute.words import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import coo_array

    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray
    from auxhash.files.rows import Rows
    from auxhash.learn.querytables import QueryTables
    from auxhash.stores.ids import Id


@click.command("fit-queries")
@click.argument("queries")
@click.argument("pairs", required=False)
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--index", metavar="INDEX", help="The index that is to be asked.")
@click.option("--store", metavar="URL", help="The store that is to be asked, in place of an index.")
@click.option("--codes", metavar="FILE", help="The codes, in place of an index; ids are rows.")
@bits_option
@click.option(
    "--init",
    metavar="MODEL",
    help="The model of the codes, if QUERIES have its features: training starts with its outputs.",
)
@click.option("--hash-function", help="network (the default) or linear.")
@click.option("--metric", help="cosine (the default) takes queries at length 1; or euclidean.")
@click.option("--steps", "n_steps", type=click.IntRange(1), help="Gradient steps, at most.")
@click.option("--validation", type=float, help="Share of the queries that is held out; 0.1.")
@click.option("--checkpoint", metavar="DIR", help="Keep what a killed run needs to go on here.")
@force_option
@table_options
@seed_option
@device_option
@jobs_option
@json_option
def fit_queries(
    queries: str,
    pairs: str | None,
    output: str,
    index: str | None,
    store: str | None,
    codes: str | None,
    bits: int | None,
    init: str | None,
    checkpoint: str | None,
    force: bool,
    reading: Reading,
    seed: int,
    device: str,
    **parameters: Any,
) -> None:
    """Learn to ask codes that are there with QUERIES of another kind, or of another model.

    QUERIES is a file of vectors, of any number of features. PAIRS say what is relevant to each of
    them: a .csv, .parquet or .npy file with columns query, id and, if pairs count differently,
    weight. A query is named by its id where QUERIES have a column of ids, or else by its row, from
    0; an id is as in the index or store.

    Without PAIRS the code with the id of a query, or else of its row, is relevant: for documents
    embedded by another model than the one that made the codes. MODEL then asks the old codes with
    new vectors, and encodes new documents so that their codes can be compared with the old ones.

    MODEL carries the fingerprint of the codes, and is refused for others. It is for --model of
    search, encode and serve, and for serve --query-model.

    \b
    Examples:
      auxhash fit-queries queries.npy asked.csv --index codes.index -o asker.safetensors
      auxhash fit-queries features.npy --codes codes.npy -o other.safetensors --hash-function linear
      auxhash search codes.index queries.npy --model asker.safetensors --by tables -k 3
    """
    import numpy as np

    from auxhash.cli import inputs, kinds
    from auxhash.compute import device as devices
    from auxhash.learn.encoder import load
    from auxhash.learn.querytables import QueryTables
    from auxhash.learn.training import interrupt

    devices.get(device)  # or raise before anything is read
    path = inputs.output_path(output, kinds.MODEL, queries, pairs, index, codes, force=force)
    source, packed, n_bits, ids, fingerprint = _codes(index, store, codes, bits)
    points = inputs.points(queries, reading)
    start = None if init is None else load(init)
    called = None if points.read_ids is None else points.read_ids().tolist()
    if pairs is None:
        rows: AnyArray | coo_array = _same(points, called, source, ids)
    else:
        rows = _paired(points, called, pairs, source, ids, reading.header)
    settings = {name: value for name, value in parameters.items() if value is not None}
    settings |= {"random_state": seed, "device": device, "verbose": int(not as_json())}
    asker = QueryTables(n_bits, **settings)
    warnings.simplefilter("ignore", interrupt.TrainingInterrupted)  # reported below
    began = clock.seconds()
    asker.fit(points.all(), rows, packed, fingerprint, checkpoint, start)
    seconds = clock.seconds() - began
    if points.columns is not None:
        asker.feature_names_in_ = np.array(points.columns, object)
    # How it was fitted is no part of the model: the file is the same on any number of threads.
    asker.set_params(verbose=0, device="cpu")
    asker.save(path)
    _show_learnt(output, asker, source, len(points), seconds)
    if asker.interrupted_:
        how = "the same command goes on" if checkpoint else "with --checkpoint it could go on"
        click.echo(f"Interrupted: {output} is the best model so far; {how}.", err=True)
        raise click.exceptions.Exit(INTERRUPTED)


def _show_learnt(output: str, asker: "QueryTables", source: str, n: int, seconds: float) -> None:
    """Show what was learnt, and what held-out queries find."""
    from auxhash.learn.training.asking import RANKS

    steps, features = asker.history_[-1].step, asker.n_features_in_
    result: dict[str, object] = {"model": output, "codes": source, "fingerprint": asker.made_for_}
    result |= {"bits": asker.n_bits, "queries": n, "features": features, "steps": steps}
    message = (
        f"{output}: {count(asker.n_bits, 'bit')}, for the codes of {source}, learnt from "
        f"{count(n, 'query')} of {count(features, 'feature')} in {number(seconds)} s and "
        f"{count(steps, 'step')}"
    )
    lines = [message]
    best = max((each.recall for each in asker.history_), key=sum)
    result |= {"recall": dict(zip(map(str, RANKS), best, strict=False)), "seconds": seconds}
    if best:
        shares = " / ".join(f"{share:.3f}" for share in best)
        ranks = " / ".join(map(str, RANKS))
        lines.append(
            f"Of what is relevant to queries held out, {shares} is among the first {ranks} by "
            "tables."
        )
    show(result, *lines)


def _codes(
    index: str | None, store: str | None, codes: str | None, bits: int | None
) -> "tuple[str, Packed, int, Sequence[Id], str | None]":
    """Return the name of the codes, they themselves, their bits, ids and fingerprint."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.learn.relevance import codes_of
    from auxhash.search.index import ApproximateIndex, NamedIndex, load

    places = {"--index": index, "--store": store, "--codes": codes}
    chosen = [place for place in places.values() if place is not None]
    if len(chosen) != 1:
        raise click.UsageError(f"give one of {', '.join(places)}: the codes that are to be asked")
    [source] = chosen
    if bits is not None and codes is None:
        raise click.UsageError("--bits is for --codes: an index and a store know theirs")
    if codes is not None:
        packed, n_bits, fingerprint, own = inputs.codes_and_ids(codes, bits)
        return codes, packed, n_bits, list(range(len(packed)) if own is None else own), fingerprint
    if index is not None:
        loaded = load(index)
        packed = codes_of(loaded, loaded.n_bits)
        inner = loaded.index if isinstance(loaded, NamedIndex) else loaded
        numbers = np.sort(inner.ids) if isinstance(inner, ApproximateIndex) else inner.ids
        ids = loaded.called(numbers) if isinstance(loaded, NamedIndex) else numbers.tolist()
        return source, packed, loaded.n_bits, ids, loaded.fingerprint
    from auxhash.stores import open as open_store

    with open_store(source) as opened:
        parts = list(opened.batches())
        if not parts:
            raise ValueError(f"{opened.url} holds no codes to ask")
        ids = [name for names, _ in parts for name in names.tolist()]
        packed = np.concatenate([part for _, part in parts])
        return opened.url, packed, opened.n_bits, ids, opened.fingerprint


def _same(
    points: "Rows", called: "Sequence[Id] | None", source: str, ids: "Sequence[Id]"
) -> "AnyArray":
    """The rows of the codes of the same ids, or of the same row numbers."""
    import numpy as np

    if called is None and len(points) != len(ids):
        raise ValueError(
            f"{points.name} holds {count(len(points), 'query')} without ids, and {source} "
            f"{count(len(ids), 'code')}: PAIRS, or a column of ids, would say which is whose"
        )
    if called is None:
        return np.arange(len(ids))
    return np.array(_places(points.name, called, source, ids))


def _paired(
    points: "Rows",
    called: "Sequence[Id] | None",
    pairs: str,
    source: str,
    ids: "Sequence[Id]",
    header: bool | None,
) -> "coo_array":
    """A sparse matrix of weights: a row per query, and a column per code."""
    import numpy as np
    from scipy.sparse import coo_array

    from auxhash.files import tables

    asking, relevant, weights = tables.read_relevant(pairs, header)
    names = tables.column_names(pairs, header) if Path(pairs).suffix != ".npy" else []
    order = "" if not names or "query" in names else f", query and id by order: {', '.join(names)}"
    weighted = "" if weights is None else " with weights"
    tell(f"{pairs}: {count(len(asking), 'pair')}{weighted}{order}")
    numbers: Sequence[object] = range(len(points)) if called is None else called
    i = _places(pairs, asking, points.name, numbers)
    j = _places(pairs, relevant, source, ids)
    without = np.setdiff1d(np.arange(len(points)), i)
    if len(without):
        raise ValueError(
            f"{pairs}: nothing is relevant to {count(len(without), 'query')} of {points.name}, "
            f"such as {numbers[without[0]]}: leave them out"
        )
    try:
        values = np.ones(len(i)) if weights is None else np.array(weights, np.float64)
    except ValueError as error:
        raise ValueError(f"{pairs}: weight must hold numbers: {error}") from error
    if not (np.isfinite(values) & (values > 0)).all():
        wrong = int(np.argmin(np.isfinite(values) & (values > 0)))
        raise ValueError(f"{pairs}: weight must be positive, pair {wrong} has {values[wrong]:g}")
    return coo_array((values, (i, j)), shape=(len(points), len(ids)))


def _places(
    path: str, wanted: "Sequence[object]", name: str, there: "Sequence[object]"
) -> list[int]:
    """The rows of these ids; ValueError, with one of them, where some are not there."""
    place = {_key(each): row for row, each in enumerate(there)}
    absent = [each for each in wanted if _key(each) not in place]
    if absent:
        known = f"{there[0]} to {there[-1]}" if len(there) > 1 else f"{there[0]}"
        raise ValueError(
            f"{path}: {count(len(absent), 'id')} not in {name}, such as {absent[0]}; it has {known}"
        )
    return [place[_key(each)] for each in wanted]


def _key(name: object) -> str:
    """An id as text: 7 and 7.0 and "7" are the same."""
    if isinstance(name, float) and name.is_integer():
        return str(int(name))
    return name.decode() if isinstance(name, bytes) else str(name)
