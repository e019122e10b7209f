"""index, add and remove: an index of codes, and what is in it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auxhash.cli.options import (
    Reading,
    any_model_option,
    bits_option,
    column_options,
    force_option,
    json_option,
)
from auxhash.cli.output import show, tell_of_ties
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray
    from auxhash.search.index.named import AnyIndex

MISSING_SHOWN = 10

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
@column_options
@json_option
def index(
    codes: str,
    output: str,
    bits: int | None,
    ids: str | None,
    approximate: bool,
    force: bool,
    reading: Reading,
) -> None:
    """Put CODES into an INDEX to search.

    CODES can be a folder that `auxhash encode` has made of many files: it has ids of its own.
    Without ids the codes are numbered 0, 1, 2, ...; ids that are text are kept in the index, and
    a search shows them. `auxhash add` and `auxhash remove` change the index later. The index keeps
    the fingerprint of the model, where CODES say it: .safetensors do, and .npy do not.

    \b
    Examples:
      auxhash index codes.safetensors -o codes.index
      auxhash index codes.npy -o tens.index --ids ids.npy
      auxhash index codes.safetensors -o rough.index --approximate
      auxhash index codes.safetensors -o called.index --ids documents.csv --id doc
      auxhash index photo-codes.safetensors -o named.index --ids photos
    """
    from auxhash.cli import inputs, kinds
    from auxhash.search.index import ApproximateIndex, HammingIndex, NamedIndex

    path = inputs.output_path(output, kinds.INDEX, codes, ids, force=force)
    packed, n_bits, fingerprint, own = inputs.codes_and_ids(codes, bits)
    called = inputs.called_by(ids, own, len(packed), reading)
    kind = ApproximateIndex if approximate else HammingIndex
    empty = kind(n_bits, fingerprint=fingerprint)
    filled: AnyIndex
    if called is not None and called.dtype.kind == "U":
        filled = NamedIndex(empty).add(packed, [str(name) for name in called.tolist()])
    else:
        filled = empty.add(packed, called)
    filled.save(path)
    tell_of_ties(output, packed)
    result = {"index": output, "codes": len(filled), "bits": n_bits, "fingerprint": fingerprint}
    show(result, f"{output}: {count(len(filled), 'code')} of {count(n_bits, 'bit')}")


@click.command()
@click.argument("index")
@click.argument("codes")
@ids_option
@click.option("--replace", is_flag=True, help="Codes whose ids are there take the old ones' place.")
@changed_option
@force_option
@any_model_option
@column_options
@json_option
def add(
    index: str,
    codes: str,
    ids: str | None,
    replace: bool,
    output: str | None,
    force: bool,
    any_model: bool,
    reading: Reading,
) -> None:
    """Add CODES to an INDEX.

    CODES can be a folder, with ids of its own, as for `auxhash index`. Without ids the numbering
    goes on from the largest id that there ever was. Codes of an index with names need names. An id
    that is there already is refused, or with --replace takes the new code. Codes of another model
    than that of the index are refused, where both say which it is. INDEX is replaced only when all
    is written.

    \b
    Examples:
      auxhash add codes.index codes.safetensors
      auxhash add codes.index codes.npy --ids new-ids.npy -o larger.index
      auxhash add tens.index codes.safetensors --ids ids.npy --replace
    """
    from auxhash.cli import inputs
    from auxhash.search.index import NamedIndex

    if replace and ids is None and not Path(codes).is_dir():
        raise click.UsageError("--replace needs --ids, which say whose codes they are")
    path = _target(index, output, force, codes, ids)
    with _changing(index, path) as changed:
        packed, _, fingerprint, own = inputs.codes_and_ids(codes, changed.n_bits)
        pair = index, changed.fingerprint, codes, fingerprint
        changed.fingerprint = inputs.same_model(*pair, any_model)
        n_before = len(changed)
        named = isinstance(changed, NamedIndex)
        called = inputs.called_by(ids, own, len(packed), reading, named)
        _add(changed, packed, index, ids or codes, called, replace)
        changed.save(path)
    name, n_replaced = output or index, n_before + len(packed) - len(changed)
    result = {"index": name, "added": len(packed) - n_replaced, "codes": len(changed)}
    result |= {"bits": changed.n_bits, "fingerprint": changed.fingerprint}
    message = f"{count(len(packed) - n_replaced, 'code')} added, "
    if replace:
        result["replaced"] = n_replaced
        message += f"{n_replaced:,} replaced, "
    show(result, f"{name}: {message}{len(changed):,} in all")


def _add(
    changed: "AnyIndex",
    packed: "Packed",
    index: str,
    source: str,
    called: "AnyArray | None",
    replace: bool,
) -> None:
    """Add the codes under ids from `source`, in place of those of the same ids if `replace`."""
    from auxhash.compute import checks
    from auxhash.search.index import NamedIndex

    if isinstance(changed, NamedIndex):
        if called is None:
            raise ValueError(f"{index} calls its codes by names: give --ids for the new ones")
        names = called.tolist()
        if replace:
            changed.remove(names)
        changed.add(packed, names)
        return
    if called is not None and called.dtype.kind == "U":
        raise ValueError(f"{index} calls its codes by numbers, and {source} holds text")
    if replace and called is not None:
        changed.remove(checks.ids("ids", called))
    changed.add(packed, called)


@click.command()
@click.argument("index")
@click.argument("ids", nargs=-1)
@click.option("--ids", "file", metavar="FILE", help="The ids to remove, in a file.")
@changed_option
@force_option
@column_options
@json_option
def remove(
    index: str,
    ids: tuple[str, ...],
    file: str | None,
    output: str | None,
    force: bool,
    reading: Reading,
) -> None:
    """Remove the codes of IDS, numbers or names, from an INDEX.

    The others keep their ids. Ids that are not in the index are listed, and are no error. INDEX is
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
    with _changing(index, path) as changed:
        n_removed, missing = _removed(changed, ids, file, index, reading)
        if n_removed or output is not None:
            changed.save(path)
    name = output or index
    result = {"index": name, "removed": n_removed, "codes": len(changed), "missing": missing}
    message = f"{name}: {count(n_removed, 'code')} removed, {len(changed):,} left"
    if missing:
        few = ", ".join(map(str, missing[:MISSING_SHOWN]))
        more = ", ..." if len(missing) > MISSING_SHOWN else ""
        message += f"; {count(len(missing), 'id')} not there: {few}{more}"
    show(result, message)


def _target(index: str, output: str | None, force: bool, *made_from: str | None) -> Path:
    """Path of the changed index: `output`, or else the file that it was read from."""
    from auxhash.cli import inputs, kinds

    if output is None:
        return inputs.output_path(index, None, *made_from)
    return inputs.output_path(output, kinds.INDEX, *made_from, force=force)


@contextmanager
def _changing(index: str, target: Path) -> "Iterator[AnyIndex]":
    """Load the index, to be changed and written to `target`.

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
    changed: "AnyIndex", ids: Sequence[str], file: str | None, index: str, reading: Reading
) -> tuple[int, list[str] | list[int]]:
    """Remove the codes of these ids; return how many were there, and the ids that were not."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.compute import checks
    from auxhash.search.index import NamedIndex

    if isinstance(changed, NamedIndex):
        names = [*ids, *(() if file is None else inputs.text_ids(file, reading))]
        missing = [name for name in names if name not in changed]
        return changed.remove(names), missing
    entries = [*ids, *(() if file is None else inputs.ids(file, reading).tolist())]
    numbers = checks.ids("ids", [_number(each, index) for each in entries])
    absent = numbers[~np.isin(numbers, changed.ids)].tolist()
    return changed.remove(numbers), absent


def _number(entry: object, index: str) -> int:
    if isinstance(entry, str) and entry.isascii() and entry.isdigit():
        return int(entry)
    if not isinstance(entry, int):
        raise ValueError(f"ids must be whole numbers, as those of {index} are, got {entry!r}")
    return entry
