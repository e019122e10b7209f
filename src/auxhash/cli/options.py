"""Options that commands share: how files are read, on how many threads, and what is printed."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TypeVar

import click

from auxhash.compute import context

Command = TypeVar("Command", bound=Callable[..., object])

DEFAULT_LABEL = "y"


@dataclass(frozen=True)
class Reading:
    """Options of reading the user's files: --features, --label, --id and --header."""

    own: str | None = None  # MODULE:FUNCTION, the user's feature of pictures
    label: str = DEFAULT_LABEL
    id_column: str | tuple[str, ...] = "id"  # and further columns that are no features
    header: bool | None = None  # None: line 1 is looked at

    @property
    def ids(self) -> str:
        """The column of ids alone."""
        return self.id_column if isinstance(self.id_column, str) else self.id_column[0]


device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "auto"]),
    default="cpu",
    help="cpu (the default); cuda, a GPU by way of CuPy; or auto, a GPU where there is one.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of everything random.",
)
bits_option = click.option(
    "--bits", type=click.IntRange(1), help="Bits of packed codes; by default, of all bytes."
)
label_option = click.option(
    "--label",
    default=DEFAULT_LABEL,
    show_default=True,
    help="What labels are called inside .npz, .csv and .parquet files.",
)
header_option = click.option(
    "--header/--no-header",
    default=None,
    help="Whether line 1 of .csv and .txt files names the columns; by default it is looked at.",
)
id_option = click.option(
    "--id", "id_column", default="id", show_default=True, help="The column of ids in a table."
)
force_option = click.option(
    "--force", is_flag=True, help="Replace the output file even if it is of another kind."
)
any_model_option = click.option(
    "--any-model",
    is_flag=True,
    help="Do not ask whether the codes were made by the same model.",
)
own_feature_option = click.option(
    "--features",
    "own",
    metavar="MODULE:FUNCTION",
    help="Your feature of pictures, in place of GIST: from a list of uint8 arrays "
    "(height, width, 3) to an array (n, D).",
)


def gathered(
    name: str, kind: Callable[..., object], *options: Callable[[Command], Command]
) -> Callable[[Command], Callable[..., object]]:
    """Add these options; the command takes them as one argument `name`, a dataclass `kind`."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]

    def add(command: Command) -> Callable[..., object]:
        @wraps(command)
        def with_one(**values: object) -> object:
            chosen = {field: values.pop(field) for field in names & values.keys()}
            return command(**{name: kind(**chosen)}, **values)

        for option in reversed(options):
            with_one = option(with_one)
        return with_one

    return add


points_options = gathered(
    "reading", Reading, own_feature_option, label_option, id_option, header_option
)
table_options = gathered("reading", Reading, label_option, id_option, header_option)
column_options = gathered("reading", Reading, id_option, header_option)


def jobs_option(command: Command) -> Callable[..., object]:
    """Add --jobs: the threads of everything that the command does."""

    @wraps(command)
    def on_threads(*, jobs: int | None, **values: object) -> object:
        if jobs == 0:
            raise ValueError("--jobs must not be 0; leave it out for all cores")
        with context.using(n_jobs=jobs):
            return command(**values)

    return click.option("--jobs", type=int, help="Threads; by default, all cores.")(on_threads)


def json_option(command: Command) -> Callable[..., object]:
    """Add --json, which `output` looks up: commands need not hand it on."""

    @wraps(command)
    def shown(*, as_json: bool, **values: object) -> object:
        return command(**values)

    option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
    return option(shown)
