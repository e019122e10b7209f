"""store: codes in a database: put there, searched there, and compared with what they should be."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.group import Commands
from auxhash.cli.output import (
    any_model_option,
    bits_option,
    force_option,
    header_option,
    jobs_option,
    json_option,
    label_option,
    own_feature_option,
    progress_wanted,
    seed_option,
    show,
)
from auxhash.cli.queries import (
    DEFAULT_K,
    EncodedQueries,
    SearchHits,
    answer,
    by_option,
    check_by,
    codes,
    encoded,
    hits_path,
)
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.search.index import HammingIndex
    from auxhash.search.index.state import Ids
    from auxhash.stores import Store

ids_option = click.option(
    "--ids", metavar="FILE", help="The ids of the codes, whole numbers, one per code."
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
@any_model_option
@header_option
@json_option
def push(
    url: str,
    codes: str,
    bits: int | None,
    ids: str | None,
    any_model: bool,
    header: bool | None,
    as_json: bool,
) -> None:
    """Put CODES into the store at URL, which is made if it is not there.

    With --ids, codes that an id had before are replaced. Without, the store must be empty, and
    the ids are the row numbers. Codes go there in batches; a push that was interrupted is repeated
    with --ids. Codes of another model than the store's are refused.

    \b
    Examples:
      auxhash store push sqlite:///codes.db codes.npy
      auxhash store push "sqlite:///codes.db?table=tens" codes.npy --ids ids.npy
    """
    from auxhash.cli import inputs
    from auxhash.stores import NoStoreError
    from auxhash.stores import open as open_store

    n_bits = bits
    if bits is None:  # as many as the store has, where there is one
        try:
            with open_store(url) as there:
                n_bits = there.n_bits
        except NoStoreError:
            pass
    packed, n_bits, fingerprint = inputs.codes(codes, n_bits)
    names = _ids(ids, header, len(packed))
    with open_store(url, n_bits) as opened:
        if ids is None and len(opened):
            raise ValueError(
                f"{opened.url} holds {count(len(opened), 'code')} already: give the --ids of the "
                "new ones"
            )
        for rows in _parts(len(packed)):
            opened.upsert(names[rows], packed[rows], fingerprint=fingerprint, force=any_model)
        result = {"store": opened.url, "pushed": len(packed), "codes": len(opened), "bits": n_bits}
        result["fingerprint"] = opened.fingerprint
    message = f"{count(len(packed), 'code')} of {count(n_bits, 'bit')} pushed"
    show(result, as_json, f"{result['store']}: {message}, {result['codes']:,} in all")


@store.command()
@click.argument("url")
@click.argument("queries")
@click.option("-k", type=int, help=f"How many neighbours of each query; {DEFAULT_K} by default.")
@click.option("-r", "--radius", type=int, help="All codes at this distance or less, in place of k.")
@click.option("--model", help="The model that encodes QUERIES, where they are no codes.")
@by_option
@click.option("-o", "--output", metavar="FILE", help="Write distances and ids to this .npz file.")
@force_option
@any_model_option
@own_feature_option
@label_option
@header_option
@jobs_option
@json_option
def search(
    url: str,
    queries: str,
    k: int | None,
    radius: int | None,
    model: str | None,
    by: str,
    output: str | None,
    force: bool,
    any_model: bool,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    as_json: bool,
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

    if k is not None and radius is not None:
        raise click.UsageError("--radius finds all codes within it: leave out -k")
    check_by(by, radius, model)
    path = hits_path(output, force, queries)
    with open_store(url, n_jobs=jobs) as opened, opened.of_one_model():
        if model is None:
            asked = codes(queries, opened.n_bits)
            opened.check_model(queries, asked.fingerprint, any_model)
        else:

            def check(fingerprint: str) -> None:
                opened.check_model(model, fingerprint, any_model)

            asked = encoded(model, queries, own, label, header, jobs, opened, None, check, by)
        if radius is None:
            hits = _nearest(opened, asked, DEFAULT_K if k is None else k, by)
        else:
            description = f"all within {count(radius, 'bit')}"
            hits = SearchHits(*opened.search_radius(asked.codes, radius), description)
        result: dict[str, Any] = {"store": opened.url, "queries": len(asked.codes)}
        message = f"{count(len(asked.codes), 'query')}, {hits.description} of "
        message += count(len(opened), "code")
    result |= {"k": hits.ids.shape[1]} if radius is None else {"radius": radius}
    if output is not None:
        result["output"] = output
    answer(hits, asked, result, message, path, as_json=as_json)


def _nearest(opened: "Store", asked: EncodedQueries, k: int, by: str) -> SearchHits:
    """Find the k nearest by code or, if the queries have them, by tables."""
    from auxhash.stores.store import n_candidates

    if asked.tables is None:
        near, ids = opened.search(asked.codes, k)
        return SearchHits(near, ids, f"{ids.shape[1]} nearest")
    near, ids = asked.by_tables(
        lambda tables, packed: opened.search_tables(tables, k, codes=packed)
    )
    among = "" if opened.scans_tables else f", among {n_candidates(k):,} nearest by code,"
    return SearchHits(near, ids, f"{ids.shape[1]} nearest by {by}{among}")


@store.command("encode-again")
@click.argument("url")
@click.option("--model", required=True, metavar="FILE", help="The model of the new codes.")
@click.option(
    "--vectors", metavar="FILE", help="The points, as for `encode`, if the store keeps no vectors."
)
@click.option("--ids", metavar="FILE", help="The ids of VECTORS; by default, the row numbers.")
@own_feature_option
@label_option
@header_option
@jobs_option
@json_option
def reencode(
    url: str,
    model: str,
    vectors: str | None,
    ids: str | None,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Replace the codes at URL by those of another MODEL, while the old ones are searched.

    The vectors that the store keeps are encoded, or else those of --vectors. The new codes take the
    place of the old ones all at once, at the end. After an interruption at any point, the same
    command goes on; with the model of the old codes, it is given up.

    \b
    Examples:
      auxhash store encode-again sqlite:///codes.db --model model.safetensors --vectors features.npy
    """
    from auxhash.cli import inputs
    from auxhash.compute.bars import new_bar
    from auxhash.learn.encoder import load
    from auxhash.stores import encode_again
    from auxhash.stores import open as open_store

    if ids is not None and vectors is None:
        raise click.UsageError("--ids are those of --vectors: give both")
    hasher = load(model, jobs)
    with open_store(url, n_jobs=jobs) as opened:
        X = names = None
        if vectors is not None:
            X = inputs.points_for(hasher, vectors, own, label, header).all()
            names = _ids(ids, header, len(X), "vectors")
        with new_bar(disable=not progress_wanted(as_json)) as bar:
            task = bar.add_task("codes", total=len(opened), stage="encoding again")
            n = encode_again(
                opened, hasher, names, X, notify=lambda done: bar.update(task, completed=done)
            )
        result = {"store": opened.url, "encoded": n, "codes": len(opened)}
        result["fingerprint"] = opened.fingerprint
    message = f"{count(n, 'code')} encoded again, all are of model {result['fingerprint']}"
    show(result, as_json, f"{result['store']}: {message}")


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
@header_option
@jobs_option
@json_option
def verify(
    url: str,
    codes: str | None,
    ids: str | None,
    queries: int,
    seed: int,
    header: bool | None,
    jobs: int | None,
    as_json: bool,
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
    from auxhash.cli import inputs
    from auxhash.search.index import HammingIndex
    from auxhash.stores import open as open_store

    if ids is not None and codes is None:
        raise click.UsageError("--ids are those of CODES: give both")
    with open_store(url, n_jobs=jobs) as opened:
        index = HammingIndex(opened.n_bits, jobs)
        for names, packed in opened.batches():  # by id, so that our ties are the store's
            index.add(packed, names)
        checked = "read"
        if codes is not None:
            expected = inputs.codes(codes, opened.n_bits)[0]
            _check_content(index, _ids(ids, header, len(expected)), expected, opened.url, codes)
            checked = f"as in {codes}"
        n_asked = _check_searches(opened, index, queries, seed)
        result = {"store": opened.url, "codes": len(index), "bits": opened.n_bits}
    result |= {"compared": codes is not None, "queries": n_asked}
    message = f"{count(len(index), 'code')} {checked}, {count(n_asked, 'query')} found the same"
    show(result, as_json, f"{result['store']}: {message}")


def _ids(path: str | None, header: bool | None, n: int, what: str = "codes") -> "Ids":
    """Ids from a file, or the row numbers."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.compute import checks

    if path is None:
        return np.arange(n)
    values = inputs.ids(path, header)
    if values.dtype.kind == "U":
        raise ValueError(f"{path} holds text, and the ids of a store are whole numbers")
    numbers = checks.ids(path, values)
    if len(numbers) != n:
        raise ValueError(f"{path} holds {count(len(numbers), 'id')}, and there are {n:,} {what}")
    return numbers


def _parts(n: int) -> Iterator[slice]:
    from auxhash.stores.store import CODES_PER_BATCH

    return (slice(start, start + CODES_PER_BATCH) for start in range(0, n, CODES_PER_BATCH))


def _check_content(
    index: "HammingIndex", ids: "Ids", packed: "Packed", url: str, path: str
) -> None:
    """Raise ValueError unless the index holds just these codes."""
    import numpy as np

    from auxhash.search.index.state import first_twice

    twice = first_twice(ids)
    if twice is not None:
        raise ValueError(f"ids must not name a code twice, {twice} does")
    stored = index.ids
    missing, more = np.setdiff1d(ids, stored), np.setdiff1d(stored, ids)
    for which, problem in ((missing, f"missing from {url}"), (more, f"not in {path}")):
        if len(which):
            raise ValueError(f"{count(len(which), 'id')} {problem}, the first is {which[0]}")
    other = (index.codes(ids) != packed).any(axis=1)
    if other.any():
        first = ids[other].min()
        raise ValueError(
            f"{count(int(other.sum()), 'code')} in {url} not as in {path}, the first has id {first}"
        )


def _check_searches(opened: "Store", index: "HammingIndex", n: int, seed: int) -> int:
    """Raise ValueError if the store finds other codes than our index; return the number asked."""
    import numpy as np

    if not len(index):
        return 0
    rng = np.random.default_rng(seed)
    chosen = index.packed[rng.integers(0, len(index), n)]
    # Beside codes that are there, some that most likely are not: another first bit.
    chosen[n // 2 :, 0] ^= 1
    near, ids = index.search(chosen, DEFAULT_K)
    theirs = opened.search(chosen, DEFAULT_K)
    if not (np.array_equal(near, theirs[0]) and np.array_equal(ids, theirs[1])):
        raise ValueError(f"{opened.url} finds other neighbours than our own index does")
    radius = int(near[:, -1].min())
    ours, there = index.radius_search(chosen, radius), opened.search_radius(chosen, radius)
    for q in range(n):
        if not all(np.array_equal(ours[i][q], there[i][q]) for i in (0, 1)):
            raise ValueError(f"{opened.url} finds others within {radius} bits than our own index")
    return n
