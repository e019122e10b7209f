"""The command line. Heavy modules are imported inside the commands: --help must be quick."""

import click

from auxhash.cli.build import build
from auxhash.cli.compare import bench, compare, demo
from auxhash.cli.completion import completion
from auxhash.cli.data import data
from auxhash.cli.encode import encode, export
from auxhash.cli.evaluate import evaluate
from auxhash.cli.fit import fit
from auxhash.cli.fit_queries import fit_queries
from auxhash.cli.group import Commands
from auxhash.cli.index import add, index, remove
from auxhash.cli.inspect import inspect
from auxhash.cli.reproduce import reproduce
from auxhash.cli.search import search
from auxhash.cli.serve import serve
from auxhash.cli.store import store
from auxhash.compute.version import __version__

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Learn short binary codes for similarity search.

    \b
    See what it does, with no data of your own:
      auxhash demo
    \b
    From a matrix of features and labels to a search:
      auxhash fit features.npy labels.npy -o model.safetensors
      auxhash encode model.safetensors features.npy -o codes.safetensors
      auxhash index codes.safetensors -o codes.index
      auxhash search codes.index queries.npy --model model.safetensors -k 5
    \b
    The same from a folder of pictures, with one folder per class:
      auxhash fit photos -o photos.safetensors
      auxhash encode photos.safetensors photos -o photo-codes.safetensors
    \b
    From a table to a search over HTTP:
      auxhash build table.csv -o folder
      auxhash serve folder

    Files are .npy, .npz, .csv, .parquet, .fvecs or .bvecs. Every command has a --help with
    examples, and --json for results that machines read. Exit codes: 0 success, 1 an error, reported
    in one line, 2 wrong use of the command line, 130 stopped by Ctrl-C.
    """


for command in (
    demo,
    fit,
    encode,
    index,
    search,
    fit_queries,
    add,
    remove,
    store,
    build,
    serve,
    evaluate,
    inspect,
    export,
    compare,
    bench,
    reproduce,
    data,
    completion,
):
    main.add_command(command)
