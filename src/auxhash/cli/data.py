"""data: fetch data sets, check them, and say where they are."""

import click

from auxhash.cli.group import Commands
from auxhash.cli.options import json_option
from auxhash.cli.output import as_json, show, table


@click.group(cls=Commands)
def data() -> None:
    """Data sets: fetch them, check them, and say where they are.

    \b
    Examples:
      auxhash data list
      auxhash data get digits
      auxhash data where
    """


@data.command("list")
@json_option
def list_data() -> None:
    """List the data sets, and which of them are on this machine."""
    from auxhash.experiments.datasets import REGISTRY

    rows = []
    for name, entry in REGISTRY.items():
        files = entry.files
        if not files:
            state = "needs no files"
        elif not all(part.present() for part in files):
            state = "to fetch"
        elif files[0].name == name or _made(name):
            state = "here"
        else:
            state = "to make"
        rows.append({"name": name, "what": entry.about, "state": state})
    show({"data_sets": rows}, table(rows))


@data.command()
@click.argument("name")
@json_option
def get(name: str) -> None:
    """Fetch data set NAME, make what is derived from it, and check it.

    Files in the cache that are wrong are replaced. Vectors of texts and pictures are computed here,
    once; if that is interrupted, the same command goes on.
    """
    from auxhash.experiments import datasets

    entry = datasets.entry(name)
    if not _made(name):  # before anything is fetched
        entry.check_installed()
    for part in entry.files:
        part.obtain(repair=True)
    dataset = datasets.load(name)
    files = {part.home / file.name: file for part in entry.files for file in part.files}
    if not as_json():
        for path, file in files.items():
            click.echo(f"{path}  {file.checked_by} right")
    result = {"name": name, "files": list(files), "protocol": dataset.protocol}
    show(result, dataset.protocol)


@data.command()
@click.argument("names", nargs=-1)
@json_option
def verify(names: tuple[str, ...]) -> None:
    """Check the files of the data sets NAMES, or of all in the cache, by their checksums."""
    from auxhash.experiments import datasets
    from auxhash.experiments.datasets.fetch import cache

    entries = {name: datasets.entry(name) for name in names or datasets.REGISTRY}
    collections = {files.name: files for entry in entries.values() for files in entry.files}
    wrong, states = 0, {}
    for files in collections.values():
        if not names and not files.begun():
            continue
        faults = files.faults()
        wrong += len(faults)
        for file in files.files:
            states[f"{files.name}/{file.name}"] = faults.get(file.name, "right")
    for path in sorted(cache.folder().glob("*/*.npy")):  # made here: no sum, but it must be whole
        name = f"{path.parent.name}/{path.name}"
        if name not in states and (not names or path.parent.name in names):
            fault = cache.fault(path)
            wrong += fault is not None
            states[name] = fault or "whole"
    show(
        {"files": states, "wrong": wrong},
        *(f"{name}: {state}" for name, state in states.items()),
    )
    if wrong:
        raise click.ClickException(f"{wrong} wrong or missing; `auxhash data get NAME` mends files")


@data.command()
@json_option
def where() -> None:
    """Print the cache folder: AUXHASH_DATA, or else the platform's."""
    from auxhash.experiments.datasets.fetch import cache

    folder = str(cache.folder())
    show({"folder": folder}, folder)


def _made(name: str) -> bool:
    """Return True if there are files made from those of the data set, and none is half made."""
    from auxhash.experiments.datasets.fetch import cache

    home = cache.folder() / name
    return any(home.glob("*.npy")) and not any(home.glob("*.part"))
