"""fit: from points to a model."""

import warnings
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.group import INTERRUPTED
from auxhash.cli.output import (
    DEFAULT_LABEL,
    device_option,
    force_option,
    header_option,
    jobs_option,
    json_option,
    label_option,
    number,
    own_feature_option,
    seed_option,
    show,
    table,
    tell,
)
from auxhash.compute import clock
from auxhash.compute.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from auxhash.compute.arrays import AnyArray
    from auxhash.files.rows import Rows
    from auxhash.learn.choose import Choice
    from auxhash.learn.estimators import MACHash
    from auxhash.learn.neighborhash import NeighborHash
    from auxhash.mac.affinity import Affinity


def _count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """A whole number, or all."""
    if value is None or value == "all":
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a whole number nor all") from None


@click.command()
@click.argument("features", metavar="FEATURES")
@click.argument("labels", required=False)
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--pairs", metavar="FILE", help="Pairs with columns i, j, y in place of labels.")
@click.option(
    "--bits", "n_bits", type=int, help="Length of the codes; 32 by default, 64 without labels."
)
@click.option("--loss", help="ksh (the default), esplh, bre, ee or hinge.")
@click.option(
    "--hash-function",
    help="linear (the default), rbf, network (the default without labels) or trees.",
)
@click.option(
    "--metric", help="Without labels: cosine (the default) or euclidean, of nearest neighbours."
)
@click.option("--solver", "z_step", help="Of the Z step: descent (the default), cut or quad.")
@click.option(
    "--similar",
    "n_similar",
    metavar="N|all",
    callback=_count,
    help="Similar points drawn for each point; 100 by default.",
)
@click.option(
    "--dissimilar",
    "n_dissimilar",
    metavar="N|all",
    callback=_count,
    help="Dissimilar points drawn for each point; 500 by default.",
)
@click.option(
    "--refine/--no-refine",
    "refined",
    default=None,
    help="Lower the loss further after MAC (the default), or stop after MAC.",
)
@click.option("--validation", type=float, help="Share of the points held out to stop early.")
@click.option("--auto", is_flag=True, help="Choose what is not given, on held-out points.")
@click.option(
    "--auto-seconds",
    type=float,
    metavar="N",
    help="With --auto: choose within so much time; the training with what is chosen comes after.",
)
@click.option("--init", metavar="MODEL", help="Go on from this model, with these points.")
@click.option("--checkpoint", metavar="DIR", help="Keep what a killed run needs to go on here.")
@force_option
@own_feature_option
@label_option
@header_option
@seed_option
@device_option
@jobs_option
@json_option
def fit(
    features: str,
    labels: str | None,
    output: str,
    pairs: str | None,
    auto: bool,
    auto_seconds: float | None,
    init: str | None,
    refined: bool | None,
    checkpoint: str | None,
    force: bool,
    own: str | None,
    label: str,
    header: bool | None,
    seed: int,
    device: str,
    jobs: int | None,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Learn a model from FEATURES and LABELS, or from FEATURES alone.

    FEATURES is a .npy, .npz, .csv, .parquet or .fvecs file with one row per point, or a folder
    of pictures, one folder per class. LABELS may be left out if FEATURES holds them (a column y, or
    the folders' names). Pairs say which rows i and j are similar (y = 1) or dissimilar (y = -1).
    Without labels and pairs, codes are learnt that rank the nearest neighbours of a point first
    (auxhash.NeighborHash).

    Ctrl-C stops after the current step and writes the best model so far (exit code 130). With
    --checkpoint, the same command goes on where it was stopped or killed, to the same model.

    \b
    Examples:
      auxhash fit features.npy labels.npy -o model.safetensors
      auxhash fit table.csv -o model.safetensors --bits 16 --loss hinge --no-refine
      auxhash fit features.npy labels.npy -o model.safetensors --auto --bits 16
      auxhash fit features.npy labels.npy -o model.safetensors --auto --auto-seconds 2
      auxhash fit features.npy --pairs pairs.csv -o pairs.safetensors
      auxhash fit features.npy -o nearest.safetensors --hash-function linear --bits 16
      auxhash fit new.npy new-labels.npy --init model.safetensors -o newer.safetensors
      auxhash fit features.npy labels.npy -o model.safetensors --checkpoint run
      auxhash fit photos -o photos.safetensors
      auxhash fit photos --features mine:colours -o colours.safetensors
    """
    import numpy as np

    from auxhash.cli import inputs, kinds
    from auxhash.compute import device as devices
    from auxhash.learn.training.interrupt import TrainingInterrupted

    devices.get(device)  # or raise before anything is read
    path = inputs.output_path(output, kinds.MODEL, features, labels, pairs, checkpoint, force=force)
    if auto_seconds is not None and not auto:
        raise click.UsageError("--auto-seconds is for --auto, which is not given")
    settings = {name: None if v == "all" else v for name, v in parameters.items() if v is not None}
    if refined is not None:
        settings["refine"] = "auto" if refined else None
    hasher, points = _start(features, own, label, header, jobs, init, auto, settings)
    y, known = _similarity(points, labels, pairs, label, header)
    learnt_from: dict[str, Any] = {"y": y, "affinity": known}
    if y is None and known is None:
        hasher, learnt_from = _neighbor_hash(points.name, init, settings), {}
    elif "metric" in settings:
        raise ValueError("--metric is for points without labels and pairs")
    X = points.all()
    verbose = int(not as_json)
    choice = _choose(X, y, known, settings, seed, jobs, auto_seconds, verbose) if auto else None
    settings |= choice.settings if choice else {}
    hasher.set_params(**settings, random_state=seed, n_jobs=jobs, device=device)
    hasher.verbose = verbose
    names = points.columns or getattr(hasher, "feature_names_in_", None)
    began = clock.seconds()
    warnings.simplefilter("ignore", TrainingInterrupted)  # reported below
    hasher.fit(X, **learnt_from, checkpoint=checkpoint)
    seconds = clock.seconds() - began
    if points.feature is not None:
        hasher.image_feature_ = points.feature
    if names is not None:
        hasher.feature_names_in_ = np.array(names, object)
    # How it was fitted is no part of the model: the file is the same on any number of threads.
    hasher.set_params(n_jobs=None, verbose=0, device="cpu")
    if learnt_from:
        hasher.set_params(warm_start=False)
    hasher.save(path)
    _show_fitted(output, hasher, seconds, choice, as_json)
    if hasher.interrupted_:
        how = "the same command goes on" if checkpoint else "with --checkpoint it could go on"
        click.echo(f"Interrupted: {output} is the best model so far; {how}.", err=True)
        raise click.exceptions.Exit(INTERRUPTED)


def _start(
    features: str,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    init: str | None,
    auto: bool,
    settings: dict[str, Any],
) -> "tuple[MACHash, Rows]":
    """A hasher to fit, and the points to fit it to."""
    from auxhash.cli import inputs
    from auxhash.learn.estimators import MACHash
    from auxhash.learn.loading import load

    if init is None:
        return MACHash(), inputs.points(features, own, label, jobs, header)
    if auto:
        raise click.UsageError("--init goes on with a model's settings: there is none to --auto")
    model = load(init)
    if not isinstance(model, MACHash):
        kind = type(model).__name__
        raise ValueError(
            f"{init} holds a model of {kind}, and only those that `auxhash fit` learnt from labels "
            "or pairs can go on"
        )
    for option, name in (("--bits", "n_bits"), ("--hash-function", "hash_function")):
        old = getattr(model, name)
        if settings.get(name, old) != old:
            raise ValueError(
                f"--init goes on with {old} for {option}, which {init} was learnt with; "
                f"got {settings[name]}"
            )
    # Codes to start from would be those of other points.
    return model.set_params(warm_start=True, init=None, n_jobs=jobs), inputs.points_for(
        model, features, own, label, header
    )


def _similarity(
    points: "Rows", labels: str | None, pairs: str | None, label: str, header: bool | None
) -> "tuple[AnyArray | None, Affinity | None]":
    """Labels and None, or with `pairs` the labels, if any, and the affinity of the pairs.

    None and None for points of a file that has no labels, if none were asked for.
    """
    from auxhash.cli import inputs
    from auxhash.mac import affinity

    asked = labels is not None or label != DEFAULT_LABEL or points.names is not None
    if pairs is None and not asked and points.labels is None:
        return None, None
    if pairs is None:
        return inputs.labels_to_learn(points, labels, label, "LABELS or --pairs", header), None
    i, j, y = inputs.pairs(pairs, header)
    try:
        known = affinity.from_pairs(i, j, y, n_points=len(points))
    except ValueError as error:
        raise ValueError(f"{pairs}: {error}") from error
    return inputs.labels_of(points, labels, label, header), known


def _neighbor_hash(name: str, init: str | None, settings: dict[str, Any]) -> "NeighborHash":
    """The hasher for points without labels and pairs."""
    from auxhash.learn.neighborhash import NeighborHash

    if init is not None:
        raise ValueError("--init goes on with labels or pairs, and there are none")
    known = NeighborHash().get_params(deep=False)
    options = {"z_step": "solver", "n_similar": "similar", "n_dissimilar": "dissimilar"}
    for setting in settings:
        if setting not in known:
            option = options.get(setting, setting)
            raise ValueError(f"--{option} is for labels or pairs, and {name} has none")
    metric = settings.get("metric", known["metric"])
    tell(f"{name}: no labels, so that codes are learnt which rank its {metric} neighbours first")
    return NeighborHash()


def _choose(
    X: "AnyArray",
    y: "AnyArray | None",
    known: "Affinity | None",
    settings: dict[str, Any],
    seed: int,
    jobs: int | None,
    seconds: float | None,
    verbose: int,
) -> "Choice":
    from auxhash.learn.choose import choose
    from auxhash.learn.chooseneighbors import choose_neighbors

    if y is None and known is None:
        return choose_neighbors(X, settings, seed, jobs, seconds, verbose)
    if y is None:
        raise ValueError("--auto measures precision, and needs labels")
    return choose(X, y, settings, seed, jobs, seconds, verbose)


def _show_fitted(
    output: str,
    hasher: "MACHash | NeighborHash",
    seconds: float,
    choice: "Choice | None",
    as_json: bool,
) -> None:
    result: dict[str, Any] = {
        "model": output,
        "bits": hasher.n_bits,
        "points": len(hasher.codes_),
        "features": hasher.n_features_in_,
        **_reached(hasher),
        "device": hasher.device_,
        "seconds": seconds,
    }
    message = (
        f"{output}: {count(hasher.n_bits, 'bit')}, learnt from {count(result['points'], 'point')} "
        f"of {count(result['features'], 'feature')} in {number(seconds)} s and "
    )
    if hasher.device_ != "cpu":
        message = message.replace(" s and ", " s on a GPU and ")
    if "loss" in result:
        message += f"{count(result['iterations'], 'iteration')}; L(h) {number(result['loss'])}"
    else:
        message += (
            f"{count(result['steps'], 'step')}; a neighbour's rank is typically "
            f"{number(result['rank'])} of {hasher.n_learnt_:,}"
        )
    if "validation_precision" in result:
        message += f"; validation precision {result['validation_precision']:.3f}"
    shown: list[RenderableType] = [message]
    if choice is not None:
        result |= {"chosen": choice.settings, "tried": choice.rows, "protocol": choice.protocol}
        shown.insert(0, _tried(choice))
    show(result, as_json, *shown)


def _reached(hasher: "MACHash | NeighborHash") -> dict[str, Any]:
    """Loss or rank at the end of the training, and the number of steps."""
    from auxhash.learn.neighborhash import NeighborHash

    if isinstance(hasher, NeighborHash):
        last = hasher.history_[-1]
        return {"learnt": hasher.n_learnt_, "rank": last.rank, "steps": last.step}
    reached: dict[str, Any] = {"loss": hasher.loss_, "iterations": hasher.n_iter_ - 1}
    if hasher.validation is not None:
        scores = [step.score for step in hasher.history_ if step.accepted]
        reached["validation_precision"] = max(scores)
    return reached


def _tried(choice: "Choice") -> "RenderableType":
    if not choice.rows:
        return f"Nothing was tried, and the defaults are taken: {choice.protocol}."
    names = {
        "n_bits": "bits",
        "loss": "loss",
        "hash_function": "hash function",
        "n_similar": "similar",
        "n_dissimilar": "dissimilar",
        "metric": "metric",
        "points": "points",
        "precision": "precision",
        "recall": "of the 10 nearest, among the first 100",
        "seconds": "seconds",
    }
    names = {name: names[name] for name in names if name in choice.rows[0]}
    rows = []
    for row in choice.rows:
        shown = {
            heading: "all" if row[name] is None else row[name] for name, heading in names.items()
        }
        mark = "✓" if choice.settings.items() <= row.items() else ""
        rows.append({**shown, "chosen": mark})
    return table(rows, f"Tried: {choice.protocol}.")
