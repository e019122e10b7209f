"""build: from a table or a folder of pictures to a folder that `auxhash serve` searches."""

import contextlib
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from auxhash.cli.fit import fit
from auxhash.cli.options import Reading, jobs_option, json_option, points_options, seed_option
from auxhash.cli.output import as_json, number, show, tell
from auxhash.compute.version import __version__
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.compute.arrays import AnyArray
    from auxhash.files.rows import Rows
    from auxhash.model.model import Model
    from auxhash.stores.points import Payload

MODEL, STORE, NOTE = "model.safetensors", "store.db", "build.json"  # files of the folder
UNFINISHED = "learning.safetensors"  # becomes the model at the end; after Ctrl-C, the best so far


@click.command()
@click.argument("points", metavar="POINTS")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="The folder to make.")
@click.option("--model", metavar="FILE", help="Take this model; by default, one is learnt.")
@click.option("--bits", type=click.IntRange(1), help="Bits of the model that is learnt.")
@click.option(
    "--payload", metavar="COLUMNS", help="Columns that answers bring along, with commas between."
)
@click.option("--vectors", is_flag=True, help="Keep the vectors, to re-rank what codes find.")
@click.option("--force", is_flag=True, help="Replace FOLDER, if it was made by build.")
@points_options
@seed_option
@jobs_option
@json_option
def build(
    points: str,
    output: str,
    model: str | None,
    bits: int | None,
    payload: str | None,
    vectors: bool,
    force: bool,
    reading: Reading,
    seed: int,
) -> None:
    """Make a FOLDER with a model and a store of POINTS, which `auxhash serve FOLDER` searches.

    POINTS are a table or a folder of pictures, as for `auxhash fit`, which learns the model, from
    labels where there are any. Ids are the column that --id names, the names of pictures, or else
    the row numbers. Until all is done, the work lies in FOLDER.building: the same command goes on
    where it was stopped or killed.

    \b
    Examples:
      auxhash build table.csv --payload y -o search --bits 16
      auxhash build features.npy --model model.safetensors --vectors -o searched
      auxhash serve searched
    """
    from auxhash.cli import inputs
    from auxhash.files.writing import locked
    from auxhash.learn.encoder import load

    if model is not None and bits is not None:
        raise click.UsageError("--bits are those of a model that is learnt: leave out --model")
    folder = Path(output).expanduser()
    _check_replaceable(folder, force)
    clock = perf_counter()
    columns = [] if payload is None else [name.strip() for name in payload.split(",")]
    ids = inputs.own_ids(points, reading)
    payloads = inputs.payloads(points, columns, reading.header)
    reading = replace(reading, id_column=(reading.ids, *columns))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        learning: dict[str, object] = {"n_bits": bits, "seed": seed, **vars(reading)}
        sources = [_stamp(path) for path in (points, model) if path is not None]
        work = _begun(folder.with_name(f"{folder.name}.building"), [sources, learning])
        try:
            reached = _provide_model(work, points, model, learning)
            hasher = load(model or work / MODEL)
            rows = inputs.points_for(hasher, points, reading)
            _fill(work / STORE, hasher, rows, ids, payloads, vectors)
        except Exception:
            if model is not None or not any(work.rglob("*.safetensors")):  # nothing learnt is lost
                shutil.rmtree(work)
            raise
        result = {"folder": output, "points": len(rows), "bits": hasher.n_bits}
        result |= {"fingerprint": hasher.fingerprint, "vectors": vectors, "payload": columns}
        (work / NOTE).write_text(json.dumps({**(_note(work) or {}), **result}), "utf-8")
        _take_place(work, folder)
    result |= {"fit": reached, "seconds": perf_counter() - clock}
    message = f"{output}: {count(len(rows), 'point')}, codes of {count(hasher.n_bits, 'bit')}"
    message += f", in {number(result['seconds'])} s; `auxhash serve {output}` searches them"
    show(result, message)


def served_files(path: str) -> tuple[str, str]:
    """The model, and the URL of the store, in a folder that `build` has finished."""
    from auxhash.stores import file_url

    folder = Path(path).expanduser()
    if not folder.is_dir():
        unfinished = folder.with_name(f"{folder.name}.building").is_dir()
        hint = ": its build has not ended, and goes on with the same command" if unfinished else ""
        raise ValueError(f"there is no folder {path}{hint}")
    if not is_built(folder):
        raise ValueError(f"{path} is no folder that `auxhash build` has finished")
    return str(folder / MODEL), file_url("sqlite", folder / STORE)


def is_built(folder: Path) -> bool:
    """Return True if `build` has made, and finished, this folder."""
    return "fingerprint" in (_note(folder) or {})


def _note(folder: Path) -> dict[str, object] | None:
    """Read the note of `build` in its folder; None if the folder is not one of its own."""
    try:
        note = json.loads((folder / NOTE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and "auxhash" in note else None


def _check_replaceable(folder: Path, force: bool) -> None:
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        if not folder.is_dir() or _note(folder) is None:
            raise ValueError(f"{folder} is there, and not made by `auxhash build`: give another")
        if not force:
            raise ValueError(f"{folder} holds a search already: --force builds it anew")


def _stamp(path: str) -> list[str | int]:
    """Path, size and time of a file or folder, by which a build that goes on knows it again."""
    about = Path(path).expanduser().stat()
    return [str(Path(path).expanduser().absolute()), about.st_size, about.st_mtime_ns]


def _begun(work: Path, settings: list[object]) -> Path:
    """The folder of a build that is under way: as it was left with these settings, or empty."""
    note = {"auxhash": __version__, "settings": json.loads(json.dumps(settings))}
    if work.exists():
        left = _note(work)
        if left is None:
            raise ValueError(f"{work} is there, and not made by `auxhash build`: it would be lost")
        if left.items() >= note.items():
            tell(f"{work}: going on with what was begun")
            return work
        shutil.rmtree(work)
    work.mkdir(parents=True)
    (work / NOTE).write_text(json.dumps(note), "utf-8")
    return work


def _provide_model(
    work: Path, points: str, model: str | None, learning: dict[str, object]
) -> dict[str, object] | None:
    """Put a model into the folder, learnt unless one was given; return what `fit` says of it."""
    if (work / MODEL).exists():
        return None
    if model is not None:
        shutil.copy(Path(model).expanduser(), work / UNFINISHED)
        (work / UNFINISHED).replace(work / MODEL)
        return None
    said = io.StringIO()
    with contextlib.redirect_stdout(said) if as_json() else contextlib.nullcontext():
        click.get_current_context().invoke(
            fit,
            features=points,
            output=str(work / UNFINISHED),
            checkpoint=str(work / "checkpoint"),
            force=True,
            as_json=as_json(),
            **learning,
        )
    (work / UNFINISHED).replace(work / MODEL)
    shutil.rmtree(work / "checkpoint", ignore_errors=True)
    return dict(json.loads(said.getvalue())) if as_json() else None


def _fill(
    path: Path,
    hasher: "Model",
    rows: "Rows",
    ids: "AnyArray | None",
    payloads: "Sequence[Payload] | None",
    vectors: bool,
) -> None:
    """Encode the points into a new store; without ids, these are the row numbers."""
    import numpy as np

    from auxhash.compute.bars import new_bar
    from auxhash.stores import file_url
    from auxhash.stores import open as open_store

    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()  # of a build that was killed
    with (
        open_store(file_url("sqlite", path), hasher.n_bits) as store,
        new_bar(disable=as_json()) as bar,
    ):
        task, first = bar.add_task("points", total=len(rows), stage="storing"), 0
        for chunk in rows.chunks():
            part = slice(first, first + len(chunk))
            store.upsert(
                np.arange(part.start, part.stop) if ids is None else ids[part],
                hasher.encode(chunk),
                chunk if vectors else None,
                None if payloads is None else payloads[part],
                hasher.fingerprint,
            )
            first = part.stop
            bar.advance(task, len(chunk))


def _take_place(work: Path, folder: Path) -> None:
    """Put the finished folder into its place; what was there before goes away."""
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    work.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
