"""index, add and remove: an index of codes, and what is in it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.output import bits_option, force_option, header_option, json_option, show
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.search.index.named import AnyIndex

SHOWN = 10  # ids that were not there

ids_option = click.option(
    "--ids",
    metavar="FILE",
    help="What to call the codes by, one per code: whole numbers, or names (text); a folder of "
    "pictures stands for their names.",
)
changed_option = click.option(
    "-o", "--output", metavar="FILE", help="Write the changed index here, and leave INDEX alone."
)


@click.command()
@click.argument("codes")
@click.option("-o", "--output", required=True, metavar="INDEX", help="The index to write.")
@bits_option
@ids_option
@click.option(
    "--approximate",
    is_flag=True,
    help="For tens of millions of codes: quicker to search, and may miss some (needs faiss).",
)
@force_option
@header_option
@json_option
def index(
    codes: str,
    output: str,
    bits: int | None,
    ids: str | None,
    approximate: bool,
    force: bool,
    header: bool | None,
    as_json: bool,
) -> None:
    """Put CODES into an INDEX to search.

    Without --ids the codes are numbered 0, 1, 2, ...; ids that are text are kept in the index, and
    a search shows them. `auxhash add` and `auxhash remove` change the index later.

    \b
    Examples:
      auxhash index codes.npy -o codes.index
      auxhash index codes.npy -o tens.index --ids ids.npy
      auxhash index codes.npy -o rough.index --approximate
      auxhash index photos.npy -o named.index --ids photos
    """
    from auxhash.cli import inputs, kinds
    from auxhash.search.index import ApproximateIndex, HammingIndex, NamedIndex

    path = inputs.output_path(output, kinds.INDEX, codes, ids, force=force)
    packed, n_bits = inputs.codes(codes, bits)
    called = None if ids is None else inputs.ids(ids, header)
    empty = ApproximateIndex(n_bits) if approximate else HammingIndex(n_bits)
    found: AnyIndex
    if called is not None and called.dtype.kind == "U":
        found = NamedIndex(empty).add(packed, [str(name) for name in called.tolist()])
    else:
        found = empty.add(packed, called)
    found.save(path)
    result = {"index": output, "codes": len(found), "bits": n_bits}
    show(result, as_json, f"{output}: {count(len(found), 'code')} of {count(n_bits, 'bit')}")


@click.command()
@click.argument("index")
@click.argument("codes")
@ids_option
@changed_option
@force_option
@header_option
@json_option
def add(
    index: str,
    codes: str,
    ids: str | None,
    output: str | None,
    force: bool,
    header: bool | None,
    as_json: bool,
) -> None:
    """Add CODES to an INDEX.

    Without --ids the numbering goes on from the largest id that there ever was. Codes of an index
    with names need names. INDEX is replaced only when all is written.

    \b
    Examples:
      auxhash add codes.index codes.npy
      auxhash add codes.index codes.npy --ids new-ids.npy -o larger.index
    """
    from auxhash.cli import inputs
    from auxhash.search.index import NamedIndex

    path = _target(index, output, force, codes, ids)
    with _changing(index, path) as found:
        packed, _ = inputs.codes(codes, found.n_bits)
        if isinstance(found, NamedIndex):
            if ids is None:
                raise ValueError(f"{index} calls its codes by names: give --ids for the new ones")
            found.add(packed, inputs.text_ids(ids, header))
        else:
            called = None if ids is None else inputs.ids(ids, header)
            if called is not None and called.dtype.kind == "U":
                raise ValueError(f"{index} calls its codes by numbers, and {ids} holds text")
            found.add(packed, called)
        found.save(path)
    name = output or index
    result = {"index": name, "added": len(packed), "codes": len(found), "bits": found.n_bits}
    show(result, as_json, f"{name}: {count(len(packed), 'code')} added, {len(found):,} in all")


@click.command()
@click.argument("index")
@click.argument("ids", nargs=-1)
@click.option("--ids", "file", metavar="FILE", help="The ids to remove, in a file.")
@changed_option
@force_option
@header_option
@json_option
def remove(
    index: str,
    ids: tuple[str, ...],
    file: str | None,
    output: str | None,
    force: bool,
    header: bool | None,
    as_json: bool,
) -> None:
    """Remove the codes of IDS, numbers or names, from an INDEX.

    The others keep their ids. Ids that are not in the index are told, and no error. INDEX is
    replaced only when all is written.

    \b
    Examples:
      auxhash remove codes.index 3 17
      auxhash remove named.index across/01.png
      auxhash remove tens.index --ids ids.npy -o empty.index
    """
    if not ids and file is None:
        raise click.UsageError("say which: IDS, or --ids FILE")
    path = _target(index, output, force, file)
    with _changing(index, path) as found:
        n_removed, missing = _removed(found, ids, file, header, index)
        if n_removed or output is not None:
            found.save(path)
    name = output or index
    result = {"index": name, "removed": n_removed, "codes": len(found), "missing": missing}
    said = f"{name}: {count(n_removed, 'code')} removed, {len(found):,} left"
    if missing:
        few = ", ".join(map(str, missing[:SHOWN]))
        more = ", ..." if len(missing) > SHOWN else ""
        said += f"; {count(len(missing), 'id')} not there: {few}{more}"
    show(result, as_json, said)


def _target(index: str, output: str | None, force: bool, *made_from: str | None) -> Path:
    """Where a changed index goes: to `output`, or else to where it was read from."""
    from auxhash.cli import inputs, kinds

    if output is None:
        return inputs.output_path(index, None, *made_from)
    return inputs.output_path(output, kinds.INDEX, *made_from, force=force)


@contextmanager
def _changing(index: str, target: Path) -> "Iterator[AnyIndex]":
    """The index, to be changed and written to `target`.

    Of several processes that change one file, each waits for the others, or it would undo what
    they do.
    """
    from auxhash.files.writing import check_regular, locked
    from auxhash.search.index import load

    source = Path(index).expanduser()
    check_regular(source, "an index")
    real = target.resolve()
    in_place = real == source.resolve()
    lock = locked(real.with_name(f"{real.name}.lock"), wait=True) if in_place else nullcontext()
    with lock:
        yield load(source)


def _removed(
    found: "AnyIndex", ids: Sequence[str], file: str | None, header: bool | None, index: str
) -> tuple[int, list[Any]]:
    """Remove what is there; how many that were, and the ids that are not there."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.compute import checks
    from auxhash.search.index import NamedIndex

    if isinstance(found, NamedIndex):
        names = [*ids, *(() if file is None else inputs.text_ids(file, header))]
        missing = [name for name in names if name not in found]
        return found.remove(names), missing
    given = [*ids, *(() if file is None else inputs.ids(file, header).tolist())]
    numbers = checks.ids("ids", [_number(each, index) for each in given])
    absent = numbers[~np.isin(numbers, found.ids)].tolist()
    return found.remove(numbers), absent


def _number(given: Any, index: str) -> int:
    if isinstance(given, str) and given.isascii() and given.isdigit():
        return int(given)
    if not isinstance(given, int):
        raise ValueError(f"ids must be whole numbers, as those of {index} are, got {given!r}")
    return given
