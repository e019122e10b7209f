"""fit: from points to a model."""

from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.fitoptions import FitOptions, fit_options
from auxhash.cli.group import INTERRUPTED
from auxhash.cli.options import Reading, force_option, jobs_option, json_option, points_options
from auxhash.cli.output import as_json, number, show, table, tell_of_ties
from auxhash.compute.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from auxhash.cli.fitting import HeldOutPrecision, Task
    from auxhash.learn.choose import Choice
    from auxhash.learn.hasher import Hasher
    from auxhash.search.expected import ExpectedRecall


@click.command()
@click.argument("features", metavar="FEATURES")
@click.argument("labels", required=False)
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@fit_options
@force_option
@points_options
@jobs_option
@json_option
def fit(
    features: str,
    labels: str | None,
    output: str,
    options: FitOptions,
    force: bool,
    reading: Reading,
) -> None:
    """Learn a model from FEATURES and LABELS, or from FEATURES alone.

    FEATURES is a .npy, .npz, .csv, .parquet or .fvecs file with one row per point, or a folder
    of pictures, one folder per class. LABELS may be left out if FEATURES holds them (a column y, or
    the folders' names). Pairs say which rows i and j are similar (y = 1) or dissimilar (y = -1).
    Without labels and pairs, codes are learnt that rank the nearest neighbours of a point first
    (auxhash.NeighborHash); of pictures with classes, those that rank the nearest neighbours of the
    same class first, unless an option is for MACHash alone (--loss, --similar, ...).

    Ctrl-C stops after the current step and writes the best model so far (exit code 130), once a
    first step is made. With --checkpoint, the same command goes on where it was stopped or killed,
    to the same model.

    \b
    Examples:
      auxhash fit features.npy labels.npy -o model.safetensors
      auxhash fit table.csv -o model.safetensors --bits 16 --loss hinge --no-refine
      auxhash fit features.npy labels.npy -o model.safetensors --auto --bits 16
      auxhash fit features.npy labels.npy -o model.safetensors --auto --auto-seconds 2
      auxhash fit features.npy --pairs pairs.csv -o pairs.safetensors
      auxhash fit features.npy -o nearest.safetensors --hash-function linear --bits 16
      auxhash fit features.npy -o nearest.safetensors --query-function linear --prefixes 8 --bits 16
      auxhash fit features.npy -o itq.safetensors --method ITQ --bits 16 --sample 100
      auxhash fit new.npy new-labels.npy --init model.safetensors -o newer.safetensors
      auxhash fit features.npy labels.npy -o model.safetensors --checkpoint run
      auxhash fit photos -o photos.safetensors
      auxhash fit photos --features mine:colours -o colours.safetensors
    """
    from auxhash.cli import inputs, kinds
    from auxhash.cli.fitting import Task
    from auxhash.compute import device as devices
    from auxhash.learn.training import interrupt

    devices.get(options.device)  # or raise before anything is read
    made_from = features, labels, options.pairs, options.checkpoint
    path = inputs.output_path(output, kinds.MODEL, *made_from, force=force)
    options.check()
    task = Task(features, labels, options, reading)
    if options.auto:
        task.choose()
    seconds = task.learn()
    with interrupt.watching() as watch:  # the model is not to be lost now
        expected, precision = task.expected()
        task.save(path, expected)
    _show_fitted(output, task, seconds, expected, precision)
    if options.init is not None and not as_json():
        click.echo(
            f"Codes of {options.init} are another model's: encode all again with {output}, or "
            "learn to ask the old codes with it (auxhash fit-queries)."
        )
    stopped = getattr(task.hasher, "interrupted_", False)
    if stopped:
        goes_on = "the same command goes on"
        how = goes_on if options.checkpoint else "with --checkpoint it could go on"
        click.echo(f"Interrupted: {output} is the best model so far; {how}.", err=True)
    if stopped or watch.pressed:
        raise click.exceptions.Exit(INTERRUPTED)


def _show_fitted(
    output: str,
    task: "Task",
    seconds: float,
    expected: "list[ExpectedRecall]",
    precision: "HeldOutPrecision | None",
) -> None:
    hasher, choice, n_points = task.hasher, task.choice, len(task.points)
    reached, words = _reached(hasher)
    n_learnt = reached.get("learnt", len(hasher.codes_))
    device = getattr(hasher, "device_", "cpu")
    result: dict[str, object] = {
        "model": output,
        "bits": hasher.n_bits,
        "points": len(hasher.codes_),
        "features": hasher.n_features_in_,
        **reached,
        "device": device,
        "seconds": seconds,
    }
    of = count(n_learnt, "point")
    if task.is_sample:
        of = f"a sample of {n_learnt:,} of {n_points:,} points"
    elif n_learnt < n_points:  # the others were held out
        of = f"{n_learnt:,} of {count(n_points, 'point')}"
    message = (
        f"{output}: {count(hasher.n_bits, 'bit')}, learnt from {of} of "
        f"{count(hasher.n_features_in_, 'feature')} in {number(seconds)} s"
        f"{' on a GPU' if device != 'cpu' else ''}{words}"
    )
    tell_of_ties(output, hasher.codes_)
    shown: list[RenderableType] = [message]
    if not reached.get("tables", True):
        shown.append(
            "Tables of queries are left out: they find no more neighbours than outputs do."
        )
    if expected:
        result["expected_recall"] = [vars(each) for each in expected]
        shown.append(f"Recall to expect, measured on points held out: {expected[-1]}")
    if precision is not None:
        result["expected_precision"] = precision._asdict()
        shown.append(f"Precision to expect, measured on points held out: {precision}")
    if choice is not None:
        result |= {"chosen": choice.settings, "tried": choice.rows, "protocol": choice.protocol}
        shown.insert(0, _tried(choice))
    show(result, *shown)


def _reached(hasher: "Hasher") -> tuple[dict[str, Any], str]:
    """Loss or rank at the end of the training with the number of steps, and these in words."""
    from auxhash.learn.estimators import MACHash
    from auxhash.learn.neighborhash import NeighborHash

    if isinstance(hasher, NeighborHash):
        last = hasher.history_[-1]
        n_steps = max((step.step for step in hasher.history_ if step.table_rank is None), default=0)
        reached = {"learnt": hasher.n_learnt_, "rank": last.rank, "steps": n_steps}
        words = f" and {count(n_steps, 'step')}"
        if last.table_rank is not None:
            reached |= {"table_rank": last.table_rank, "table_steps": last.step - n_steps}
            reached["tables"] = hasher.tables_ is not None
            words += f", and {reached['table_steps']:,} of tables"
        return reached, words
    if not isinstance(hasher, MACHash):
        return {}, ""
    n_iterations = hasher.n_iter_ - 1
    reached = {"loss": hasher.loss_, "iterations": n_iterations}
    words = f" and {count(n_iterations, 'iteration')}"
    if hasher.validation is not None:
        best = max(step.score for step in hasher.history_ if step.accepted)
        reached["validation_precision"] = best
        words += f"; validation precision {best:.3f}"
    return reached, words


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
