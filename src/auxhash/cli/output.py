"""Results on the terminal: for people, or as JSON."""

import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from auxhash.codes import Packed

MESSAGES = "auxhash.messages"  # where click's context keeps the lines of `tell`
WIDE_COLUMNS = 160  # columns, if the output is no terminal


def as_json() -> bool:
    """Return True if the current command prints JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


def show(result: Mapping[str, object], *shown: "RenderableType") -> None:
    """Print `result` with --json, and the lines of `tell` in it; or else print `shown`."""
    if as_json():
        messages = click.get_current_context().meta.get(MESSAGES)
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
    if as_json():
        click.get_current_context().meta.setdefault(MESSAGES, []).append(line)
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


def progress_wanted() -> int:
    """The value for `verbose`: 1 if the output is a terminal and not JSON, else 0."""
    return int(sys.stdout.isatty() and not as_json())


def table(rows: Sequence[Mapping[str, object]], title: str | None = None) -> "Table":
    """A table of rows with the same keys, which are its headings; numbers to the right."""
    from rich.table import Table

    drawn = Table(title=title, title_justify="left")
    for name in rows[0]:
        numbers = all(isinstance(row[name], (int, float)) for row in rows)
        drawn.add_column(name, justify="right" if numbers else "left")
    for row in rows:
        drawn.add_row(*(number(value) for value in row.values()))
    return drawn


def number(value: object) -> str:
    """A number short enough to read; anything else as it is."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if math.isnan(value):
        return ""
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3f}"


def _plain(value: object) -> object:
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
