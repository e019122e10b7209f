"""reproduce: the figures of the paper."""

from typing import Any

import click

from auxhash.cli.options import force_option, jobs_option, json_option
from auxhash.cli.output import progress_wanted, show, table


@click.command()
@click.argument("figure", required=False)
@click.option("--list", "listing", is_flag=True, help="List the figures.")
@click.option(
    "--scale",
    type=click.Choice(["paper", "small", "tiny"]),
    default="small",
    show_default=True,
    help="The paper's sizes, minutes, or seconds.",
)
@click.option(
    "--order",
    type=click.Choice(["fixed", "random"]),
    default="random",
    show_default=True,
    help="Of the blocks of cut: one for all bits, or a new one for each.",
)
@click.option(
    "--h-step",
    type=click.Choice(["plain", "monotone"]),
    default="plain",
    show_default=True,
    help="Of MAC: fit all classifiers, as the paper; or keep a bit's old one where it is better.",
)
@click.option(
    "--iterate",
    type=click.Choice(["last", "lowest"]),
    default="last",
    show_default=True,
    help="That MAC returns: the last, as the paper; or that of the lowest loss.",
)
@click.option("--seeds", type=click.IntRange(1), help="Seeds to run; by default the scale's.")
@click.option("--data", help="Only the panels on this data set.")
@click.option("--bits", multiple=True, type=int, help="Only this number of bits; may be repeated.")
@click.option("-m", "--method", "methods", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--without", multiple=True, help="Not this method, nor its two-step form; may be repeated."
)
@click.option(
    "--own",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Also a method of yours: a hasher, or a function that returns one; may be repeated.",
)
@click.option("--folder", default="results", show_default=True, help="Where runs are kept.")
@click.option("--run-only", is_flag=True, help="Train, and write no page.")
@click.option("--report-only", is_flag=True, help="Write the page from what was run before.")
@click.option("--output", help="The page; by default FIGURE-SCALE.html in the folder.")
@click.option("--numbers", help="Also write numbers and verdicts to this file, as JSON.")
@force_option
@jobs_option
@json_option
def reproduce(
    figure: str | None,
    listing: bool,
    data: str | None,
    bits: tuple[int, ...],
    methods: tuple[str, ...],
    without: tuple[str, ...],
    own: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Make FIGURE of the paper from runs of your own; FIGURE is a name of --list, or all.

    Runs are kept and never repeated, so that an interrupted command goes on where it stopped.

    \b
    Examples:
      auxhash reproduce --list
      auxhash reproduce free-codes --scale tiny --order fixed
    """
    from auxhash.cli import inputs, kinds
    from auxhash.experiments import reproduce
    from auxhash.experiments.figures.figure import Part

    if listing or figure is None:
        figures = reproduce.listed()
        show({"figures": figures}, table(figures))
        return
    for name, kind in (("output", kinds.PAGE), ("numbers", kinds.NUMBERS)):
        if options[name] is not None:
            options[name] = str(inputs.output_path(options[name], kind, force=force))
    part = Part(data, bits, methods, without, own)
    reports = reproduce.main(figure, part=part, verbose=progress_wanted(), **options)
    shown = [
        part
        for one in reports
        for part in (
            f"{one['figure']} ({one['paper']} of the paper). {one['scale']}",
            table(one["verdicts"]),
            *one["notes"],
            f"The page: {one['page']}",
        )
    ]
    show({"reports": reports}, *shown)
