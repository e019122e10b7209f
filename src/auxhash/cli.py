"""The command line. Everything heavy is imported inside a command: --help must be quick."""

import click

from auxhash import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Learn short binary codes for similarity search.

    \b
    Example:
      auxhash demo          learn codes for handwritten digits and compare methods
    """


@main.command()
@click.option("--bits", default=32, show_default=True, help="Length of the codes.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
def demo(bits: int, seed: int) -> None:
    """Learn codes for handwritten digits with each solver, and compare."""
    from auxhash.demo import run

    run(bits, seed)
