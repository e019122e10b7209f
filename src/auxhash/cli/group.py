"""Behaviour that all commands share: errors in one line, and suggestions for misspelt names."""

import errno
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import click

from auxhash.compute.clock import announce_compiling
from auxhash.compute.fingerprint import UnknownModelWarning

COMPILING = "Compiling, once on this machine; no time below counts it."
INTERRUPTED = 130  # exit code, as of any program that Ctrl-C stops


class Commands(click.Group):
    """A group of commands that suggests a command if a name is misspelt."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which they are needed, not by name."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            near = get_close_matches(args[0], self.commands, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.parent is not None:
            return super().invoke(ctx)
        # On stderr, in a log as well: who reads it sees why the first fit took so long.
        quiet = "--json" in ctx.args
        announce_compiling(None if quiet else lambda: click.echo(COMPILING, err=True))
        with problems_in_one_line(debug=ctx.params["debug"]):
            return super().invoke(ctx)


@contextmanager
def problems_in_one_line(debug: bool) -> Iterator[None]:
    """Turn errors into messages, and warnings into notes; with `debug`, errors stay what they are.

    Wrong input raises one of a few kinds of errors. Any other kind is a fault of
    auxhash, and the message says so.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _note  # type: ignore[assignment]
        warnings.simplefilter("default", UnknownModelWarning)  # a note, whatever -W says
        warnings.filterwarnings("always", "interrupted after")  # see `_note`
        try:
            yield
        except click.exceptions.Exit:
            raise
        except KeyboardInterrupt:
            if debug:
                traceback.print_exc()
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            if debug or isinstance(error, (click.ClickException, click.Abort)):
                raise
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of the output has gone: click handles it
            raise click.ClickException(_message(error)) from error


def _message(error: Exception) -> str:
    from auxhash.experiments.datasets.fetch.sources import DataError

    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, DataError):
        return str(error)  # a line for each source that was tried
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return (str(error) or type(error).__name__).splitlines()[0]
    return (
        f"this is a fault of auxhash, not yours: {type(error).__name__}: {error} "
        "(auxhash --debug shows where)"
    )


def _note(message: Warning | str, category: type[Warning], *where: object) -> None:
    # By its name: to import it takes as long as all of training.
    if category.__name__ == "TrainingInterrupted":  # `fit`, which keeps the model, ignores it
        raise KeyboardInterrupt
    click.echo(f"Note: {str(message).splitlines()[0]}", err=True)
