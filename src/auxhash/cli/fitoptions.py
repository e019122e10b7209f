"""Options of `fit`, in one value."""

from dataclasses import dataclass
from typing import Any

import click

from auxhash.cli.options import device_option, gathered, seed_option

# Options that set parameters of hashers, as far as they are not called as the parameters are.
OPTIONS = {"z_step": "solver", "n_similar": "similar", "n_dissimilar": "dissimilar"}
OPTIONS |= {"n_bits": "bits", "hash_function": "hash-function", "query_function": "query-function"}


@dataclass(frozen=True)
class FitOptions:
    """Options of a training; None where one is left out."""

    n_bits: int | None
    loss: str | None
    hash_function: str | None
    metric: str | None
    query_function: str | None
    prefixes: tuple[int, ...] | None
    quality: str | None
    z_step: str | None
    n_similar: int | str | None
    n_dissimilar: int | str | None
    validation: float | None
    refined: bool | None
    pairs: str | None
    method: str | None
    steps: int | None
    sample: int | None
    auto: bool
    auto_seconds: float | None
    init: str | None
    checkpoint: str | None
    seed: int
    device: str

    def parameters(self) -> dict[str, Any]:
        """The parameters of hashers that these options set."""
        names = (*OPTIONS, "loss", "metric", "prefixes", "quality", "validation")
        chosen = {name: getattr(self, name) for name in names}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        chosen = {name: None if value == "all" else value for name, value in chosen.items()}
        if self.query_function == "none":
            chosen["query_function"] = None
        if self.refined is not None:
            chosen["refine"] = "auto" if self.refined else None
        return chosen

    def check(self) -> None:
        """Raise UsageError where options do not go together."""
        if self.auto_seconds is not None and not self.auto:
            raise click.UsageError("--auto-seconds is for --auto, which is not given")
        others = {"--init": self.init, "--auto": self.auto, "--checkpoint": self.checkpoint}
        others["--device"] = self.device != "cpu"
        for option, value in others.items():
            if self.method is not None and value:
                raise click.UsageError(f"{option} is not for --method")
        if self.init is not None and self.auto:
            raise click.UsageError(
                "--init goes on with a model's settings: there is none to --auto"
            )


def _count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """A whole number, or all."""
    if value is None or value == "all":
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a whole number nor all") from None


def _numbers(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Whole numbers between commas."""
    try:
        return None if value is None else tuple(map(int, value.split(",")))
    except ValueError:
        raise click.BadParameter(f"{value!r} must be whole numbers, such as 32,64") from None


fit_options = gathered(
    "options",
    FitOptions,
    click.option("--pairs", metavar="FILE", help="Pairs with columns i, j, y in place of labels."),
    click.option(
        "--bits",
        "n_bits",
        type=int,
        help="Length of the codes; 32 by default, 64 of pictures or without labels.",
    ),
    click.option("--loss", help="ksh (the default), esplh, bre, ee or hinge."),
    click.option(
        "--hash-function",
        help="linear (the default), rbf, network (the default without labels) or trees.",
    ),
    click.option(
        "--metric",
        help="Without labels, or of pictures: cosine (the default) or euclidean, of neighbours.",
    ),
    click.option(
        "--query-function",
        help="Without labels, or of pictures: network or linear learns tables of queries as well, "
        "none does not; auto (the default) takes a network from 1,000 points on, and none of "
        "pictures.",
    ),
    click.option(
        "--prefixes",
        metavar="BITS,...",
        callback=_numbers,
        help="Without labels, or of pictures: lengths, as 32,64, at which the first bits are a "
        "code of their own.",
    ),
    click.option(
        "--quality",
        help="Without labels, or of pictures: fast, default or best (the default on a GPU), the "
        "size of the training.",
    ),
    click.option("--solver", "z_step", help="Of the Z step: descent (the default), cut or quad."),
    click.option(
        "--similar",
        "n_similar",
        metavar="N|all",
        callback=_count,
        help="Similar points drawn for each point; 100 by default.",
    ),
    click.option(
        "--dissimilar",
        "n_dissimilar",
        metavar="N|all",
        callback=_count,
        help="Dissimilar points drawn for each point; 500 by default.",
    ),
    click.option(
        "--refine/--no-refine",
        "refined",
        default=None,
        help="Lower the loss further after MAC (the default), or stop after MAC.",
    ),
    click.option(
        "--method", metavar="NAME", help="Another method: ITQ, KSH, LSH, ... by its name."
    ),
    click.option(
        "--steps",
        type=click.IntRange(1),
        help="Gradient steps: all of them without labels, else those that --refine makes.",
    ),
    click.option(
        "--sample",
        type=click.IntRange(3),
        metavar="N",
        help="Learn from so many points, drawn at random; 100,000 by default without labels, else "
        "all.",
    ),
    click.option("--validation", type=float, help="Share of the points held out to stop early."),
    click.option("--auto", is_flag=True, help="Choose what is not given, on held-out points."),
    click.option(
        "--auto-seconds",
        type=float,
        metavar="N",
        help="With --auto: choose within so much time; the training with what is chosen comes "
        "after.",
    ),
    click.option("--init", metavar="MODEL", help="Go on from this model, with these points."),
    click.option("--checkpoint", metavar="DIR", help="Keep what a killed run needs to go on here."),
    seed_option,
    device_option,
)
