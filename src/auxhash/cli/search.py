"""index and search: from codes to what is near."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.output import (
    bits_option,
    header_option,
    jobs_option,
    json_option,
    label_option,
    own_feature_option,
    show,
    table,
)

if TYPE_CHECKING:
    from auxhash.index import HammingIndex

SHOWN = 10  # queries and neighbours, on the terminal


@click.command()
@click.argument("codes")
@click.option("-o", "--output", required=True, metavar="INDEX", help="The index to write.")
@bits_option
@click.option("--ids", metavar="FILE", help="Whole numbers to call the codes by, one a code.")
@header_option
@json_option
def index(
    codes: str,
    output: str,
    bits: int | None,
    ids: str | None,
    header: bool | None,
    as_json: bool,
) -> None:
    """Put CODES into an INDEX to search.

    \b
    Examples:
      auxhash index codes.npy -o codes.index
      auxhash index codes.npy -o codes.index --ids ids.npy
    """
    from auxhash.cli import inputs
    from auxhash.index import HammingIndex

    path = inputs.output_path(output, codes, ids)
    packed, n_bits = inputs.codes(codes, bits)
    names = None if ids is None else inputs.labels(ids, "id", header, "ids")
    found = HammingIndex(n_bits).add(packed, names)
    found.save(path)
    result = {"index": output, "codes": len(found), "bits": n_bits}
    show(result, as_json, f"{output}: {len(found):,} codes of {n_bits} bits")


@click.command()
@click.argument("index")
@click.argument("queries")
@click.option("-k", default=10, show_default=True, help="How many neighbours of each query.")
@click.option("--model", help="The model that encodes QUERIES, where they are no codes.")
@click.option("--names", metavar="FILE", help="What to call the ids: a folder of pictures, a list.")
@click.option("-o", "--output", metavar="FILE", help="Write distances and ids to this .npz file.")
@own_feature_option
@label_option
@header_option
@jobs_option
@json_option
def search(
    index: str,
    queries: str,
    k: int,
    model: str | None,
    names: str | None,
    output: str | None,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Find the k codes of INDEX that are nearest to each of QUERIES.

    QUERIES are codes or, with --model, points: whatever `auxhash encode` takes. The ids are those
    that the index was given, or else the rows of its codes. Ties come in the order of the codes.
    Of an index with fewer than k codes, all are found.

    \b
    Examples:
      auxhash search codes.index codes.npy -k 3
      auxhash search codes.index queries.npy --model model.safetensors -k 5 -o found.npz
      auxhash search photos.index photos --model photos.safetensors --names photos -k 3
    """
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.index import HammingIndex
    from auxhash.storage.files import writing

    path = None if output is None else inputs.output_path(output, index, queries, suffix=".npz")
    found = HammingIndex.load(index, n_jobs=jobs)
    called = None if names is None else _names(names, header, found)
    asking = None
    if model is None:
        asked = inputs.codes(queries, found.n_bits)[0]
    else:
        asked, asking = _encoded(model, queries, own, label, header, jobs, found)
    distances, ids = found.search(asked, k)
    k = ids.shape[1]  # an index may hold fewer codes
    result: dict[str, Any] = {"index": index, "queries": len(asked), "k": k}
    said: list[Any] = [f"{len(asked):,} queries, {k} nearest of {len(found):,} codes"]
    if path is not None:
        with writing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, distances=distances, ids=ids)
        show({**result, "output": output}, as_json, f"{output}: {said[0]}")
        return
    result |= {"distances": distances, "ids": ids}
    if called is not None:
        result["names"] = [[called[i] for i in row] for row in ids.tolist()]
    if asking is not None:
        result["query_names"] = asking
    said.append(_nearest(distances, result.get("names", ids.tolist()), asking))
    if len(asked) > SHOWN or k > SHOWN:
        said.append(f"At most {SHOWN} are shown of each; -o or --json gives all.")
    show(result, as_json, *said)


def _encoded(
    model: str,
    queries: str,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    index: "HammingIndex",
) -> Any:
    """Codes of the queries and, if they are pictures, their names."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.codes import as_packed
    from auxhash.models.loading import load

    hasher = load(model)
    hasher.n_jobs = jobs
    if hasher.n_bits != index.n_bits:  # an index of whole bytes is right if it pads with zeros
        try:
            as_packed(index.packed, n_bits=hasher.n_bits)
        except ValueError as error:
            raise ValueError(
                f"the index holds codes of {index.n_bits} bits, and {model} makes codes of "
                f"{hasher.n_bits}"
            ) from error
    points = inputs.points_for(hasher, queries, own, label, header)
    return np.concatenate([hasher.encode(chunk) for chunk in points.chunks()]), points.names


def _names(path: str, header: bool | None, index: "HammingIndex") -> list[str]:
    """What the ids 0, 1, ... are called."""
    from auxhash.cli import inputs

    names, last = inputs.names(path, header), int(index.ids.max(initial=-1))
    if len(names) <= last:
        raise ValueError(f"{path} holds {len(names)} names, and the index has an id {last}")
    text = Path(path).suffix in (".csv", ".txt")
    if text and header is None and last == len(index) - 1 == len(names) - 2:
        raise ValueError(
            f"{path} holds {len(names)} names for the ids 0..{last}: does line 1 name the column? "
            "--header or --no-header says so"
        )
    return names


def _nearest(distances: Any, names: list[list[Any]], asking: list[str] | None) -> Any:
    rows = []
    for query, (near, called) in enumerate(zip(distances[:SHOWN], names, strict=False)):
        pairs = list(zip(called, near.tolist(), strict=True))[:SHOWN]
        told = "  ".join(f"{name} ({distance})" for name, distance in pairs)
        rows.append(
            {"query": asking[query] if asking else query, "nearest, with their distances": told}
        )
    return table(rows)
