"""The command line. Everything heavy is imported inside a command: --help must be quick."""

from typing import Any

import click

from auxhash import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Learn short binary codes for similarity search.

    \b
    Example:
      auxhash demo          learn codes for handwritten digits and compare methods
      auxhash data list     the data sets that can be had
      auxhash reproduce sup-nestederr --scale small     a figure of the paper, from your own runs
    """


@main.command()
@click.option("--bits", default=32, show_default=True, help="Length of the codes.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
def demo(bits: int, seed: int) -> None:
    """Learn codes for handwritten digits with each solver, and compare."""
    from auxhash.demo import run

    run(bits, seed)


@main.command()
@click.argument("figure", required=False)
@click.option("--list", "listing", is_flag=True, help="List the figures.")
@click.option(
    "--scale",
    type=click.Choice(["paper", "small", "tiny"]),
    default="small",
    show_default=True,
    help="The paper's sizes, minutes, or seconds.",
)
@click.option("--seeds", type=click.IntRange(1), help="Seeds to run; by default the scale's.")
@click.option("--data", "only", help="Only the panels on this data set.")
@click.option("--folder", default="results", show_default=True, help="Where runs are kept.")
@click.option("--run-only", is_flag=True, help="Train, and write no page.")
@click.option("--report-only", is_flag=True, help="Write the page from what was run before.")
@click.option("--output", help="The page; by default FIGURE.html in the folder.")
@click.option("--json", "numbers", help="Also write numbers and verdicts to this file.")
@click.option("--jobs", type=click.IntRange(1), help="Threads; by default all cores.")
def reproduce(figure: str | None, listing: bool, **options: Any) -> None:
    """Make FIGURE of the paper from runs of your own; FIGURE is a name of --list, or all.

    What was run before is kept and not run again, so an interrupted run goes on.
    """
    from auxhash.experiments import reproduce

    if listing or figure is None:
        reproduce.show_list()
        return
    try:
        reproduce.main(figure, **options)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.group()
def data() -> None:
    """Data sets: fetch them, check them, and say where they are."""


@data.command("list")
def list_data() -> None:
    """List the data sets, and which of them are on this machine."""
    from rich.console import Console
    from rich.table import Table

    from auxhash.datasets import REGISTRY, cache

    table = Table("name", "what", "state")
    for name, entry in REGISTRY.items():
        files = entry.files
        if files is None:
            state = "needs no files"
        elif not files.present():
            state = "to fetch"
        elif files.name == name or any((cache.folder() / name).glob("*.npy")):
            state = "here"
        else:
            state = "to make"
        table.add_row(name, entry.about, state)
    Console().print(table)


@data.command()
@click.argument("name")
def get(name: str) -> None:
    """Fetch data set NAME, make what is derived from it, and check it.

    Files in the cache that are wrong are replaced.
    """
    from auxhash import datasets

    try:
        files = datasets.entry(name).files
        if files is not None:
            files.obtain(repair=True)
        found = datasets.load(name)
    except (datasets.DataError, ImportError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if files is not None:
        for file in files.files:
            click.echo(f"{files.home / file.name}  {'md5 right' if file.md5 else 'size right'}")
    click.echo(found.protocol)


@data.command()
@click.argument("names", nargs=-1)
def verify(names: tuple[str, ...]) -> None:
    """Check the files of the data sets NAMES, or of all that are in the cache, by their sums."""
    from auxhash import datasets
    from auxhash.datasets import cache

    try:
        entries = {name: datasets.entry(name) for name in names or datasets.REGISTRY}
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    collections = {entry.files.name: entry.files for entry in entries.values() if entry.files}
    wrong = 0
    for files in collections.values():
        if not names and not files.begun():
            continue
        faults = files.faults()
        wrong += len(faults)
        for file in files.files:
            click.echo(f"{files.name}/{file.name}: {faults.get(file.name, 'right')}")
    for path in sorted(cache.folder().glob("*/*.npy")):  # made here: no sum, but it must be whole
        if not names or path.parent.name in names:
            fault = cache.fault(path)
            wrong += fault is not None
            click.echo(f"{path.parent.name}/{path.name}: {fault or 'whole'}")
    if wrong:
        raise click.ClickException(f"{wrong} wrong or missing; `auxhash data get NAME` mends files")


@data.command()
def where() -> None:
    """Print the cache folder (AUXHASH_DATA, or the platform's)."""
    from auxhash.datasets import cache

    click.echo(cache.folder())
