"""Results on the terminal: for people, or as JSON."""

import json
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from auxhash.codes import Packed

Command = TypeVar("Command", bound=Callable[..., object])

MESSAGES = "auxhash.messages"  # where click's context keeps the lines of `tell`
WIDE_COLUMNS = 160  # columns, if the output is no terminal

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
jobs_option = click.option("--jobs", type=int, help="Threads; by default, all cores.")
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
DEFAULT_LABEL = "y"
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


def points_options(command: Command) -> Command:
    """Add the options that say how points are read: --features, --label, --id and --header."""
    for option in (header_option, id_option, label_option, own_feature_option):
        command = option(command)
    return command


def show(result: Mapping[str, Any], as_json: bool, *shown: "RenderableType") -> None:
    """Print `result` as JSON, with the lines of `tell`; or else print `shown`."""
    if as_json:
        context = click.get_current_context(silent=True)
        messages = context.meta.get(MESSAGES) if context else None
        click.echo(
            json.dumps(
                _plain({**result, "read": messages} if messages else result), allow_nan=False
            )
        )
        return
    for part in shown:
        if isinstance(part, str):
            click.echo(part)
        else:
            _draw(part)


def _draw(table: "RenderableType") -> None:
    from rich.console import Console  # here: it takes longer to import than codes to be made

    width = None if sys.stdout.isatty() else WIDE_COLUMNS
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def tell(line: str) -> None:
    """Say on stderr, at once, what was read; with --json, `show` prints it later, as "read"."""
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        context.meta.setdefault(MESSAGES, []).append(line)
    else:
        click.echo(line, err=True)


def tell_of_ties(name: str, packed: "Packed") -> None:
    """Say that most of the codes coincide, if they do, and what orders them."""
    from auxhash.codes import shared

    if line := shared(packed):
        tell(f"{name}: {line}; `auxhash search --rerank VECTORS|FOLDER` orders them")


def used_command() -> str:
    """The current command line, quoted so that it can be typed again."""
    context = click.get_current_context()
    words = ["auxhash", str(context.info_name)]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        entered = context.params[name]
        values = entered if parameter.multiple else [entered]
        for value in values:
            option = parameter.opts[-1] if isinstance(parameter, click.Option) else ""
            if value is False:
                option = parameter.secondary_opts[-1]
            words += [option] if isinstance(value, bool) else [*filter(None, [option]), str(value)]
    return shlex.join(words)


def progress_wanted(as_json: bool) -> int:
    """The value for `verbose`: 1 if the output is a terminal and not JSON, else 0."""
    return int(sys.stdout.isatty() and not as_json)


def table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> "Table":
    """A table of rows with the same keys, which are its headings; numbers to the right."""
    from rich.table import Table

    drawn = Table(title=title, title_justify="left")
    for name in rows[0]:
        numbers = all(isinstance(row[name], (int, float)) for row in rows)
        drawn.add_column(name, justify="right" if numbers else "left")
    for row in rows:
        drawn.add_row(*(number(value) for value in row.values()))
    return drawn


def number(value: Any) -> str:
    """A number short enough to read; anything else as it is."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if math.isnan(value):
        return ""
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3f}"


def _plain(value: Any) -> Any:
    """The value in the types that JSON has; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):  # NumPy's
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
