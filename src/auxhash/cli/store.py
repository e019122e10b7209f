"""store: codes in a database: put there, searched there, and compared with what they should be."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.group import Commands
from auxhash.cli.options import (
    Reading,
    any_model_option,
    bits_option,
    column_options,
    jobs_option,
    json_option,
    points_options,
    seed_option,
)
from auxhash.cli.output import progress_wanted, show
from auxhash.cli.queries import (
    DEFAULT_K,
    EncodedQueries,
    SearchHits,
    SearchOptions,
    answer,
    codes,
    encoded,
    search_options,
)
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray
    from auxhash.search.index import HammingIndex
    from auxhash.stores import Store
    from auxhash.stores.ids import AnyIds

ids_option = click.option(
    "--ids", metavar="FILE", help="The ids of the codes, whole numbers or text, one per code."
)


@click.group(cls=Commands)
def store() -> None:
    """Codes in a database: SQLite, PostgreSQL, DuckDB, LanceDB or Milvus.

    A URL says where: sqlite:///codes.db, postgresql://user@host/database, duckdb:///codes.duckdb,
    lancedb:///folder, milvus:///codes.db or milvus+http://host:19530. ?table=NAME at its end tells
    several stores in one database apart.

    \b
    Examples:
      auxhash store push sqlite:///items.db codes.npy
      auxhash store search sqlite:///items.db codes.npy -k 3
      auxhash store verify sqlite:///items.db codes.npy
      auxhash store encode-again sqlite:///items.db --model model.safetensors --vectors features.npy
    """


@store.command()
@click.argument("url")
@click.argument("codes")
@bits_option
@ids_option
@click.option(
    "--vectors", metavar="FILE", help="The points, as for `encode`: kept, for re-ranking."
)
@click.option(
    "--payload",
    metavar="COLUMNS",
    help="Columns of the table of --ids or --vectors, such as title,url: kept, for filters.",
)
@any_model_option
@column_options
@json_option
def push(
    url: str,
    codes: str,
    bits: int | None,
    ids: str | None,
    vectors: str | None,
    payload: str | None,
    any_model: bool,
    reading: Reading,
) -> None:
    """Put CODES into the store at URL, which is made if it is not there.

    The ids are those of --ids, or of the column --id of the table of --vectors, or the codes' own:
    a folder that `auxhash encode` has made of many files has them. What an id had before is
    replaced. Without ids, the store must be empty, and they are the row numbers. SQLite and
    PostgreSQL keep vectors and payloads. Codes go there in batches; a push with ids that was
    interrupted is repeated. Codes of another model than the store's are refused.

    \b
    Examples:
      auxhash store push sqlite:///codes.db codes.npy
      auxhash store push "sqlite:///codes.db?table=tens" codes.npy --ids ids.npy
      auxhash store push sqlite:///d.db codes.npy --ids documents.csv --id doc --payload year
    """
    from auxhash.cli import inputs
    from auxhash.stores import NoStoreError, class_at
    from auxhash.stores import open as open_store
    from auxhash.stores.address import Address

    if payload is not None and ids is None and vectors is None:
        raise click.UsageError("--payload are columns of a table: give it as --ids or --vectors")
    address = Address.of(url)
    if vectors or payload:
        class_at(address).check_keeps("vectors" if vectors else "payloads", str(address))
    n_bits, id_type = bits, None
    try:  # bits and ids are as the store has them, where there is one
        with open_store(url) as there:
            n_bits, id_type = bits or there.n_bits, there.id_type
    except NoStoreError:
        pass
    packed, n_bits, fingerprint, own = inputs.codes_and_ids(codes, n_bits)
    columns = [] if payload is None else payload.split(",")
    beside: dict[str, Any] = {}
    read = None
    if vectors is not None:
        beside["vectors"], read = inputs.vectors_and_ids(vectors, reading, columns)
        _check_rows(vectors, len(beside["vectors"]), len(packed))
        own = read if own is None else own
    if columns:
        table = str(vectors if ids is None else ids)
        payloads = beside["payloads"] = inputs.payloads(table, columns, reading.header) or []
        _check_rows(table, len(payloads), len(packed))
    names = _ids(ids, own, len(packed), reading, id_type == "text")
    if read is not None and names is not None and list(map(str, read)) != list(map(str, names)):
        raise ValueError(f"{vectors} has other ids than {ids or codes}, or in another order")
    with open_store(url, n_bits) as opened:
        if names is None and len(opened):
            raise ValueError(
                f"{opened.url} holds {count(len(opened), 'code')} already: give the --ids of the "
                "new ones"
            )
        for rows in _parts(len(packed)):
            called = range(len(packed))[rows] if names is None else names[rows]
            more = {kind: values[rows] for kind, values in beside.items()}
            opened.upsert(called, packed[rows], **more, fingerprint=fingerprint, force=any_model)
        result = {"store": opened.url, "pushed": len(packed), "codes": len(opened), "bits": n_bits}
        result["fingerprint"] = opened.fingerprint
    message = f"{count(len(packed), 'code')} of {count(n_bits, 'bit')} pushed"
    show(result, f"{result['store']}: {message}, {result['codes']:,} in all")


@store.command()
@click.argument("url")
@click.argument("queries")
@search_options
@points_options
@jobs_option
@json_option
def search(
    url: str,
    queries: str,
    options: SearchOptions,
    reading: Reading,
) -> None:
    """Find the k codes at URL that are nearest to each of QUERIES, or all within a radius.

    QUERIES are codes or, with --model, points, as for `auxhash search`, and FILE is the same.
    Codes at equal distance come by id, smallest first. --by outputs or tables looks at all codes
    of a SQLite store; the others order a shortlist by Hamming distance, and say how long it is.

    \b
    Examples:
      auxhash store search sqlite:///codes.db codes.npy -k 3
      auxhash store search sqlite:///codes.db codes.npy --radius 2
      auxhash store search sqlite:///codes.db queries.npy --model model.safetensors -o near.npz
      auxhash store search sqlite:///codes.db queries.npy --model model.safetensors --by outputs
    """
    from auxhash.stores import open as open_store

    model, radius = options.model, options.radius
    if options.k is not None and radius is not None:
        raise click.UsageError("--radius finds all codes within it: leave out -k")
    options.check_by()
    path = options.hits_path(queries)
    with open_store(url) as opened, opened.of_one_model():
        if model is None:
            asked = codes(queries, opened.n_bits)
            opened.check_model(queries, asked.fingerprint, options.any_model)
        else:

            def check(fingerprint: str) -> None:
                opened.check_model(model, fingerprint, options.any_model)

            asked = encoded(model, queries, reading, opened, check, options.by)
        if radius is None:
            hits = _nearest(opened, asked, options.wanted_k)
        else:
            description = f"all within {count(radius, 'bit')}"
            hits = SearchHits(*opened.search_radius(asked.codes, radius), description)
        result: dict[str, object] = {"store": opened.url, "queries": len(asked.codes)}
        message = f"{count(len(asked.codes), 'query')}, {hits.description} of "
        message += count(len(opened), "code")
    result |= {"k": hits.k} if radius is None else {"radius": radius}
    if options.output is not None:
        result["output"] = options.output
    answer(hits, asked, result, message, path)


def _nearest(opened: "Store", asked: EncodedQueries, k: int) -> SearchHits:
    """Find the k nearest by code or, if the queries have them, by tables."""
    from auxhash.stores.store import n_candidates

    if asked.tables is None:
        near, ids = opened.search(asked.codes, k)
        return SearchHits(near, ids, f"{ids.shape[1]} nearest")
    near, ids = asked.by_tables(
        lambda tables, packed: opened.search_tables(tables, k, codes=packed)
    )
    among = "" if opened.scans_tables else f", among {n_candidates(k):,} nearest by code,"
    return SearchHits(near, ids, f"{ids.shape[1]} nearest by {asked.by}{among}")


@store.command("encode-again")
@click.argument("url")
@click.option("--model", required=True, metavar="FILE", help="The model of the new codes.")
@click.option(
    "--vectors", metavar="FILE", help="The points, as for `encode`, if the store keeps no vectors."
)
@click.option(
    "--ids",
    metavar="FILE",
    help="The ids of VECTORS; by default, their column --id, or else the row numbers.",
)
@points_options
@jobs_option
@json_option
def reencode(
    url: str,
    model: str,
    vectors: str | None,
    ids: str | None,
    reading: Reading,
) -> None:
    """Replace the codes at URL by those of another MODEL, while the old ones are searched.

    The vectors that the store keeps are encoded, or else those of --vectors. The new codes take the
    place of the old ones all at once, at the end. After an interruption at any point, the same
    command goes on; with the model of the old codes, it is given up.

    \b
    Examples:
      auxhash store encode-again sqlite:///codes.db --model model.safetensors --vectors features.npy
    """
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.compute.bars import new_bar
    from auxhash.learn.encoder import load
    from auxhash.stores import encode_again
    from auxhash.stores import open as open_store

    if ids is not None and vectors is None:
        raise click.UsageError("--ids are those of --vectors: give both")
    hasher = load(model)
    with open_store(url) as opened:
        X = names = None
        if vectors is not None:
            points = inputs.points_for(hasher, vectors, reading)
            X, as_text = points.all(), opened.id_type == "text"
            read = None if points.read_ids is None else points.read_ids()
            names = _ids(ids, read, len(X), reading, as_text, "vectors")
            names = np.arange(len(X)) if names is None else names
        with new_bar(disable=not progress_wanted()) as bar:
            task = bar.add_task("codes", total=len(opened), stage="encoding again")
            n = encode_again(
                opened, hasher, names, X, notify=lambda done: bar.update(task, completed=done)
            )
        result = {"store": opened.url, "encoded": n, "codes": len(opened)}
        result["fingerprint"] = opened.fingerprint
    message = f"{count(n, 'code')} encoded again, all are of model {result['fingerprint']}"
    show(result, f"{result['store']}: {message}")


@store.command()
@click.argument("url")
@click.argument("codes", required=False)
@ids_option
@click.option(
    "--queries",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many searches to compare.",
)
@seed_option
@column_options
@jobs_option
@json_option
def verify(
    url: str,
    codes: str | None,
    ids: str | None,
    queries: int,
    seed: int,
    reading: Reading,
) -> None:
    """Compare the store at URL with CODES, and its searches with those of our own index.

    With CODES (and their --ids) each id and code is compared. Always, the whole store is read, and
    some searches by k and by radius are made there and here: distances and ids must be the same.
    The exit code is 1 where anything differs.

    \b
    Examples:
      auxhash store verify sqlite:///codes.db codes.npy
      auxhash store verify "sqlite:///codes.db?table=tens" codes.npy --ids ids.npy
      auxhash store verify sqlite:///codes.db
    """
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.search.index import HammingIndex
    from auxhash.stores import open as open_store

    if ids is not None and codes is None:
        raise click.UsageError("--ids are those of CODES: give both")
    with open_store(url) as opened:
        index, stored = HammingIndex(opened.n_bits), []
        for some, packed in opened.batches():  # by id, so that our ties are the store's
            index.add(packed)
            stored.append(some)
        names = np.concatenate(stored) if stored else np.arange(0)
        checked = "read"
        if codes is not None:
            expected, _, _, own = inputs.codes_and_ids(codes, opened.n_bits)
            as_text = opened.id_type == "text"
            called = _ids(ids, own, len(expected), reading, as_text)
            called = np.arange(len(expected)) if called is None else called
            _check_content(index, names, called, expected, opened.url, codes)
            checked = f"as in {codes}"
        n_asked = _check_searches(opened, index, names, queries, seed)
        result = {"store": opened.url, "codes": len(index), "bits": opened.n_bits}
    result |= {"compared": codes is not None, "queries": n_asked}
    message = f"{count(len(index), 'code')} {checked}, {count(n_asked, 'query')} found the same"
    show(result, f"{result['store']}: {message}")


def _ids(
    path: str | None,
    own: "AnyArray | None",
    n: int,
    reading: Reading,
    as_text: bool,
    what: str = "codes",
) -> "AnyIds | None":
    """Ids from a file, or else the codes' own; None if there are none."""
    from auxhash.cli import inputs
    from auxhash.compute import checks
    from auxhash.stores.ids import check_different

    values = inputs.called_by(path, own, n, reading, as_text, what)
    if values is None:
        return None
    name = "ids" if path is None else f"ids of {path}"
    ids = checks.any_ids(name, values)
    check_different(ids, name)
    return ids


def _check_rows(path: str, n: int, n_codes: int) -> None:
    if n != n_codes:
        raise ValueError(f"{path} holds {count(n, 'row')}, and there are {n_codes:,} codes")


def _parts(n: int) -> Iterator[slice]:
    from auxhash.stores.store import CODES_PER_BATCH

    return (slice(start, start + CODES_PER_BATCH) for start in range(0, n, CODES_PER_BATCH))


def _check_content(
    index: "HammingIndex", stored: "AnyIds", ids: "AnyIds", packed: "Packed", url: str, path: str
) -> None:
    """Raise ValueError unless the index, of codes with the ids `stored`, holds just these codes."""
    import numpy as np

    from auxhash.stores.ids import is_among, is_text, rising

    if len(ids) and len(stored) and is_text(ids) != is_text(stored):
        raise ValueError(f"{path} has other ids than {url}: {ids[0]!r}, and {stored[0]!r} there")
    expected = rising(ids)
    missing, more = expected[~is_among(expected, stored)], stored[~is_among(stored, expected)]
    for which, problem in ((missing, f"missing from {url}"), (more, f"not in {path}")):
        if len(which):
            raise ValueError(f"{count(len(which), 'id')} {problem}, the first is {which[0]}")
    other = (index.codes(np.searchsorted(stored, ids)) != packed).any(axis=1)
    if other.any():
        first = rising(ids[other])[0]
        raise ValueError(
            f"{count(int(other.sum()), 'code')} in {url} not as in {path}, the first has id {first}"
        )


def _check_searches(
    opened: "Store", index: "HammingIndex", names: "AnyIds", n: int, seed: int
) -> int:
    """Raise ValueError if the store finds other codes than our index; return the number asked."""
    import numpy as np

    if not len(index):
        return 0
    rng = np.random.default_rng(seed)
    chosen = index.packed[rng.integers(0, len(index), n)]
    # Beside codes that are there, some that most likely are not: another first bit.
    chosen[n // 2 :, 0] ^= 1
    near, rows = index.search(chosen, DEFAULT_K)
    theirs = opened.search(chosen, DEFAULT_K)
    if not (np.array_equal(near, theirs[0]) and np.array_equal(names[rows], theirs[1])):
        raise ValueError(f"{opened.url} finds other neighbours than our own index does")
    radius = int(near[:, -1].min())
    ours, there = index.radius_search(chosen, radius), opened.search_radius(chosen, radius)
    for near, rows, theirs_near, theirs_ids in zip(*ours, *there, strict=True):
        if not (np.array_equal(near, theirs_near) and np.array_equal(names[rows], theirs_ids)):
            raise ValueError(f"{opened.url} finds others within {radius} bits than our own index")
    return n
