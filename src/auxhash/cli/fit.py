"""fit: from points to a model."""

import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from auxhash.cli.group import INTERRUPTED
from auxhash.cli.options import (
    DEFAULT_LABEL,
    Reading,
    device_option,
    force_option,
    jobs_option,
    json_option,
    points_options,
    seed_option,
)
from auxhash.cli.output import as_json, number, show, table, tell, tell_of_ties
from auxhash.compute import clock
from auxhash.compute.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from auxhash.compute.arrays import AnyArray
    from auxhash.compute.context import ExpectedTime
    from auxhash.files.rows import Rows
    from auxhash.learn.choose import Choice
    from auxhash.learn.estimators import MACHash
    from auxhash.learn.hasher import Hasher
    from auxhash.learn.neighborhash import NeighborHash
    from auxhash.learn.smooth import Refine
    from auxhash.mac.affinity import Affinity
    from auxhash.search.expected import ExpectedRecall

# Options that are not called as the parameters are.
OPTIONS = {"z_step": "solver", "n_similar": "similar", "n_dissimilar": "dissimilar"}
OPTIONS |= {"n_bits": "bits", "hash_function": "hash-function", "query_function": "query-function"}
OF_NEIGHBOURS = ("metric", "query_function", "prefixes", "quality")  # parameters of NeighborHash
PICTURE_STEPS = 500  # twice as many find no more pictures of the class of a new one
LEAST_POINTS = 3  # that neighbours are learnt from


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


@click.command()
@click.argument("features", metavar="FEATURES")
@click.argument("labels", required=False)
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--pairs", metavar="FILE", help="Pairs with columns i, j, y in place of labels.")
@click.option(
    "--bits",
    "n_bits",
    type=int,
    help="Length of the codes; 32 by default, 64 of pictures or without labels.",
)
@click.option("--loss", help="ksh (the default), esplh, bre, ee or hinge.")
@click.option(
    "--hash-function",
    help="linear (the default), rbf, network (the default without labels) or trees.",
)
@click.option(
    "--metric",
    help="Without labels, or of pictures: cosine (the default) or euclidean, of neighbours.",
)
@click.option(
    "--query-function",
    help="Without labels, or of pictures: network or linear learns tables of queries as well, none "
    "does not; auto (the default) takes a network from 1,000 points on, and none of pictures.",
)
@click.option(
    "--prefixes",
    metavar="BITS,...",
    callback=_numbers,
    help="Without labels, or of pictures: lengths, as 32,64, at which the first bits are a code of "
    "their own.",
)
@click.option(
    "--quality",
    help="Without labels, or of pictures: fast, default or best (the default on a GPU), the size "
    "of the training.",
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
@click.option("--method", metavar="NAME", help="Another method: ITQ, KSH, LSH, ... by its name.")
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="Gradient steps: all of them without labels, else those that --refine makes.",
)
@click.option(
    "--sample",
    type=click.IntRange(3),
    metavar="N",
    help="Learn from so many points, drawn at random; 100,000 by default without labels, else all.",
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
@points_options
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
    method: str | None,
    steps: int | None,
    sample: int | None,
    checkpoint: str | None,
    force: bool,
    reading: Reading,
    seed: int,
    device: str,
    **parameters: Any,
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
    import numpy as np

    from auxhash.cli import inputs, kinds
    from auxhash.compute import context
    from auxhash.compute import device as devices
    from auxhash.learn.classneighbors import same_class
    from auxhash.learn.neighborhash import NeighborHash
    from auxhash.learn.training import interrupt
    from auxhash.learn.training.checkpoint import seconds_before
    from auxhash.search.metrics.recall import checked_points

    devices.get(device)  # or raise before anything is read
    path = inputs.output_path(output, kinds.MODEL, features, labels, pairs, checkpoint, force=force)
    if auto_seconds is not None and not auto:
        raise click.UsageError("--auto-seconds is for --auto, which is not given")
    settings = {name: None if v == "all" else v for name, v in parameters.items() if v is not None}
    if settings.get("query_function") == "none":
        settings["query_function"] = None
    if refined is not None:
        settings["refine"] = "auto" if refined else None
    _check_method(method, init, auto, checkpoint, device)
    hasher: Hasher
    hasher, points = _start(features, reading, init, auto, settings)
    y, known = _similarity(points, labels, pairs, reading)
    learnt_from: dict[str, Any] = {"y": y, "affinity": known}
    if method is not None:
        hasher, learnt_from = _by_name(method, points.name, y, known, steps, settings)
    elif y is None and known is None:
        hasher, learnt_from = _neighbor_hash(points.name, hasher, init, settings), {}
        limits = {"n_steps": steps, "max_points": sample}
        settings |= {name: limit for name, limit in limits.items() if limit is not None}
    elif isinstance(hasher, NeighborHash):
        raise ValueError(
            f"--init: {init} was learnt from neighbours, and {points.name} has labels or pairs: "
            "learn anew, from the old points and the new ones together"
        )
    elif _by_look(points, y, known, settings, init, auto):
        hasher = _picture_hash(points.name, steps, settings)
    elif other := next((name for name in OF_NEIGHBOURS if name in settings), None):
        raise ValueError(f"--{OPTIONS.get(other, other)} is for points without labels and pairs")
    elif steps is not None:
        settings["refine"] = _refinement(steps, refined, y is not None and known is None)
    X = every = points.all()
    if isinstance(hasher, NeighborHash):
        checked_points(X, points.name, LEAST_POINTS)
    held_out: AnyArray | None = None  # rows of `every`; NeighborHash chooses its own
    if learnt_from or method is not None:
        rows, held_out = _rows(len(X), learnt_from, sample, seed, "validation" in settings)
        asked = y[held_out] if y is not None else None
        if len(rows) < len(X):
            X = X[rows]
            learnt_from = {name: v if v is None else v[rows] for name, v in learnt_from.items()}
    most, is_sample = _most_points(points, len(X), hasher, sample)
    verbose = int(not as_json())
    choice = None
    if auto:
        y = learnt_from.get("y")
        choice = _choose(X, y, known, settings, seed, auto_seconds, verbose)
        settings |= choice.settings
        if y is not None and (line := _time_by_trial(choice, len(X))):
            tell(line)
    technical = {"random_state": seed, "device": device, "verbose": verbose}
    _set_known(hasher, settings | technical)
    if isinstance(hasher, NeighborHash) and held_out is None:
        hasher.set_params(max_points=most)
    elif isinstance(hasher, NeighborHash):
        learnt_from = {"y": learnt_from["y"]}
        learnt_from["neighbors"] = same_class(X, learnt_from["y"], hasher.metric)
    time = None if auto or as_json() else _time_expected(hasher, X, learnt_from)
    began = clock.seconds()
    if checkpoint is not None:
        learnt_from["checkpoint"] = checkpoint
        began -= seconds_before(checkpoint)
    warnings.simplefilter("ignore", interrupt.TrainingInterrupted)  # reported below
    names = points.columns or getattr(hasher, "feature_names_in_", None)
    with context.using(expected=time):
        hasher.fit(X, **learnt_from)
    seconds = clock.seconds() - began
    with interrupt.watching() as watch:  # the model is not to be lost now
        expected, precision = [], None
        if held_out is None or learnt_from.get("y") is None:
            expected = _expected(hasher, every, held_out, seed)
        elif len(held_out):
            precision = _precision(hasher, every[held_out], asked)
        if expected:
            hasher.expected_recall_ = expected
        if points.feature is not None:
            hasher.image_feature_ = points.feature
        if names is not None:
            hasher.feature_names_in_ = np.array(names, object)
        # How it was fitted is no part of the model: the file is the same on any number of threads.
        _set_known(hasher, {"n_jobs": None, "verbose": 0, "device": "cpu", "warm_start": False})
        hasher.save(path)
    _show_fitted(output, hasher, len(points), is_sample, seconds, choice, expected, precision)
    if init is not None and not as_json():
        click.echo(
            f"Codes of {init} are another model's: encode all again with {output}, or learn to ask "
            "the old codes with it (auxhash fit-queries)."
        )
    if getattr(hasher, "interrupted_", False):
        how = "the same command goes on" if checkpoint else "with --checkpoint it could go on"
        click.echo(f"Interrupted: {output} is the best model so far; {how}.", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    if watch.pressed:
        raise click.exceptions.Exit(INTERRUPTED)


def _time_by_trial(choice: "Choice", n: int) -> str:
    """The time that training on n points will take, judged by the trial of the same settings."""
    for row in choice.rows:
        if choice.settings.items() <= row.items():
            seconds = row["seconds"] * n / row["points"]
            return f"training on {count(n, 'point')} will take about {number(seconds)} s"
    return ""


def _time_expected(
    hasher: "Hasher", X: "AnyArray", learnt_from: dict[str, Any]
) -> "ExpectedTime | None":
    """The time that training will take, which is said at once where there are many points."""
    from auxhash.learn.training.estimate import expected_time

    if learnt_from.get("affinity") is not None:
        return None
    time = expected_time(hasher, X, learnt_from.get("y"))
    if time is not None:
        left = timedelta(seconds=round(time.before + time.steps))
        tell(f"training will take about {left}, by what small parts of it take")
    return time


def _set_known(hasher: "Hasher", values: dict[str, Any]) -> None:
    """Set those of the values that are parameters of the hasher."""
    known = hasher.get_params(deep=False)
    hasher.set_params(**{name: value for name, value in values.items() if name in known})


def _check_method(
    method: str | None, init: str | None, auto: bool, checkpoint: str | None, device: str
) -> None:
    """Raise UsageError where an option is for the methods of this package alone."""
    others = {"--init": init, "--auto": auto, "--checkpoint": checkpoint}
    others["--device"] = device != "cpu"
    for option, value in others.items():
        if method is not None and value:
            raise click.UsageError(f"{option} is not for --method")


def _by_name(
    method: str,
    name: str,
    y: "AnyArray | None",
    known: "Affinity | None",
    steps: int | None,
    settings: dict[str, Any],
) -> "tuple[Hasher, dict[str, Any]]":
    """The baseline of this name, and what it learns from beside the points."""
    from inspect import signature

    from auxhash.compute.checks import unknown
    from auxhash.learn import baselines

    names = {each.lower(): each for each in baselines.__all__}
    if method.lower() not in names:
        raise unknown("--method", method, baselines.__all__)
    hasher: Hasher = getattr(baselines, names[method.lower()])()
    parameters = hasher.get_params(deep=False)
    if steps is not None:
        settings = {**settings, "steps": steps}
    for setting in settings:
        if setting not in parameters:
            raise ValueError(f"--{OPTIONS.get(setting, setting)} is not for --method {method}")
    if known is not None:
        if "affinity" not in signature(hasher.fit).parameters:
            raise ValueError(f"--pairs are not for --method {method}")
        return hasher, {"y": y, "affinity": known}
    if y is None and hasher.__sklearn_tags__().target_tags.required:
        raise ValueError(f"--method {method} learns from labels, and {name} has none")
    return hasher, {} if y is None else {"y": y}


def _refinement(steps: int, refined: bool | None, fresh: bool) -> "Refine":
    """The refinement of "auto" with so many steps."""
    from auxhash.learn.smooth import Refine

    if refined is False:
        raise click.UsageError("--steps are those of the refinement, and --no-refine makes none")
    return Refine(n_steps=steps, keep="refined" if fresh else "lower")


def _rows(
    n: int, learnt_from: dict[str, Any], sample: int | None, seed: int, validated: bool
) -> "tuple[AnyArray, AnyArray]":
    """Rows to learn from, at most `sample`, and rows held out to measure what to expect.

    None are held out where there are few points, where pairs name rows of all points, or where
    `validated` on points held out already. The first point of each class is learnt from.
    """
    import numpy as np

    from auxhash.search.metrics.recall import n_held_out

    none, y = np.empty(0, np.int64), learnt_from.get("y")
    if learnt_from.get("affinity") is not None:
        if sample is not None and sample < n:
            raise ValueError("--sample is not for --pairs: they name rows of all points")
        return np.arange(n), none
    order = np.random.default_rng(seed).permutation(n)
    first = none if y is None or y.ndim > 1 else np.unique(y, return_index=True)[1]
    free = order[~np.isin(order, first)]
    held_out = none if validated else np.sort(free[: n_held_out(n)])
    return np.sort(order[~np.isin(order, held_out)][:sample]), held_out


def _most_points(
    points: "Rows", n_left: int, hasher: "Hasher", sample: int | None
) -> tuple[int, bool]:
    """The number of points to learn from, and whether they are a sample, which is said at once.

    Points held out to measure what to expect, here or by NeighborHash, make no sample.
    """
    from auxhash.learn.neighborhash import NeighborHash
    from auxhash.search.metrics.recall import n_held_out

    n = len(points)
    most = sample or getattr(hasher, "max_points", None) or n
    is_sample = most < n
    most = min(most, n_left, n - n_held_out(n) if isinstance(hasher, NeighborHash) else n)
    if is_sample:
        tell(f"{points.name}: a sample of {most:,} of {n:,} points is learnt from (--sample)")
    return most, is_sample


def _start(
    features: str, reading: Reading, init: str | None, auto: bool, settings: dict[str, Any]
) -> "tuple[MACHash | NeighborHash, Rows]":
    """A hasher to fit, and the points to fit it to."""
    from auxhash.cli import inputs
    from auxhash.learn.estimators import MACHash
    from auxhash.learn.loading import load
    from auxhash.learn.neighborhash import NeighborHash

    if init is None:
        return MACHash(), inputs.points(features, reading)
    if auto:
        raise click.UsageError("--init goes on with a model's settings: there is none to --auto")
    model = load(init)
    if not isinstance(model, MACHash | NeighborHash):
        kind = type(model).__name__
        raise ValueError(
            f"{init} holds a model of {kind}, and only those of MACHash and NeighborHash can go "
            "on: learn anew, from the old points and the new ones together"
        )
    for option, name in (("--bits", "n_bits"), ("--hash-function", "hash_function")):
        old = getattr(model, name)
        if settings.get(name, old) != old:
            raise ValueError(
                f"--init goes on with {old} for {option}, which {init} was learnt with; "
                f"got {settings[name]}"
            )
    model.set_params(warm_start=True, n_jobs=None)
    if isinstance(model, MACHash):
        model.set_params(init=None)  # codes to start from would be those of other points
    else:
        model.set_params(max_points=NeighborHash.max_points)  # the model's was for other points
    return model, inputs.points_for(model, features, reading)


def _similarity(
    points: "Rows", labels: str | None, pairs: str | None, reading: Reading
) -> "tuple[AnyArray | None, Affinity | None]":
    """Labels and None, or with `pairs` the labels, if any, and the affinity of the pairs.

    None and None for points of a file that has no labels, if none were asked for.
    """
    from auxhash.cli import inputs
    from auxhash.mac import affinity

    asked = labels is not None or reading.label != DEFAULT_LABEL or points.names is not None
    if pairs is None and not asked and points.labels is None:
        return None, None
    if pairs is None:
        return inputs.labels_to_learn(points, labels, "LABELS or --pairs", reading), None
    i, j, y = inputs.pairs(pairs, reading.header)
    try:
        known = affinity.from_pairs(i, j, y, n_points=len(points))
    except ValueError as error:
        raise ValueError(f"{pairs}: {error}") from error
    return inputs.labels_of(points, labels, reading), known


def _neighbor_hash(
    name: str, hasher: "Hasher", init: str | None, settings: dict[str, Any]
) -> "NeighborHash":
    """The hasher for points without labels and pairs: that of `init`, if there is one."""
    from auxhash.learn.neighborhash import NeighborHash

    if init is not None and not isinstance(hasher, NeighborHash):
        raise ValueError(
            f"--init: {init} was learnt from labels or pairs, and {name} has none: learn anew, "
            "from the old points and the new ones together"
        )
    known = NeighborHash().get_params(deep=False)
    for setting in settings:
        if setting not in known:
            option = OPTIONS.get(setting, setting)
            raise ValueError(f"--{option} is for labels or pairs, and {name} has none")
    metric = settings.get("metric", known["metric"])
    if isinstance(hasher, NeighborHash):
        metric = settings.get("metric", hasher.metric)
    tell(f"{name}: no labels, so that codes are learnt which rank its {metric} neighbours first")
    return hasher if isinstance(hasher, NeighborHash) else NeighborHash()


def _by_look(
    points: "Rows",
    y: "AnyArray | None",
    known: "Affinity | None",
    settings: dict[str, Any],
    init: str | None,
    auto: bool,
) -> bool:
    """True for pictures of classes, unless options ask for what MACHash alone has."""
    from auxhash.learn.neighborhash import NAMES

    if points.names is None or y is None or y.ndim > 1 or known is not None or init or auto:
        return False
    here = {"n_bits", "hash_function", *OF_NEIGHBOURS}
    return here.issuperset(settings) and settings.get("hash_function", "linear") in NAMES


def _picture_hash(name: str, steps: int | None, settings: dict[str, Any]) -> "NeighborHash":
    """The hasher for pictures of classes: from labels alone, most of a class would coincide."""
    from auxhash.learn.neighborhash import NeighborHash

    settings["n_steps"] = PICTURE_STEPS if steps is None else steps
    tell(
        f"{name}: codes are learnt which rank pictures of the same class first, the most similar "
        "before the others (--loss ksh learns from classes alone)"
    )
    return NeighborHash(hash_function="linear", query_function=None, max_points=None)


def _choose(
    X: "AnyArray",
    y: "AnyArray | None",
    known: "Affinity | None",
    settings: dict[str, Any],
    seed: int,
    seconds: float | None,
    verbose: int,
) -> "Choice":
    from auxhash.learn.choose import choose
    from auxhash.learn.chooseneighbors import choose_neighbors

    if y is None and known is None:
        codes_only = {**settings, "query_function": None}  # which tables change nothing of
        return choose_neighbors(X, codes_only, seed, seconds, verbose)
    if y is None:
        raise ValueError("--auto measures precision, and needs labels")
    return choose(X, y, settings, seed, seconds, verbose)


def _show_fitted(
    output: str,
    hasher: "Hasher",
    n_points: int,
    is_sample: bool,
    seconds: float,
    choice: "Choice | None",
    expected: "list[ExpectedRecall]",
    precision: "_Precision | None",
) -> None:
    reached, words = _reached(hasher)
    n_learnt = reached.get("learnt", len(hasher.codes_))
    device = getattr(hasher, "device_", "cpu")
    result: dict[str, Any] = {
        "model": output,
        "bits": hasher.n_bits,
        "points": len(hasher.codes_),
        "features": hasher.n_features_in_,
        **reached,
        "device": device,
        "seconds": seconds,
    }
    of = count(n_learnt, "point")
    if is_sample:
        of = f"a sample of {n_learnt:,} of {n_points:,} points"
    elif n_learnt < n_points:  # the others were held out
        of = f"{n_learnt:,} of {count(n_points, 'point')}"
    message = (
        f"{output}: {count(hasher.n_bits, 'bit')}, learnt from {of} of "
        f"{count(result['features'], 'feature')} in {number(seconds)} s"
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


class _Precision(NamedTuple):
    """Precision at k of held-out points among those learnt from."""

    precision: float
    k: int
    n_queries: int
    n_base: int

    def __str__(self) -> str:
        return (
            f"{self.precision:.3f} of the first {self.k} of {self.n_base:,} codes share the label "
            f"of a query ({self.n_queries:,} queries)"
        )


def _precision(hasher: "Hasher", X: "AnyArray", y: "AnyArray | None") -> _Precision:
    from auxhash.learn.training.validation import SCORE_K, typical_class

    assert y is not None
    assert hasher.labels_ is not None
    k = min(SCORE_K, typical_class(hasher.labels_))
    return _Precision(hasher.score(X, y, k), k, len(X), len(hasher.codes_))


def _expected(
    hasher: "Hasher", X: "AnyArray", held_out: "AnyArray | None", seed: int
) -> "list[ExpectedRecall]":
    """Recall of points that were not learnt from: these, or those that NeighborHash has chosen."""
    from auxhash.learn.neighborhash import NeighborHash
    from auxhash.search.metrics.recall import expected_recall

    functions = hasher.encode, hasher.decision_function
    if isinstance(hasher, NeighborHash):
        rows, metric, codes = hasher.held_out_, hasher.metric, hasher.codes_
        tables = None if hasher.tables_ is None else hasher.tables
        return expected_recall(*functions, X, rows, metric, codes, seed, hasher.n_jobs, tables)
    return expected_recall(*functions, X, held_out, "cosine", seed=seed)


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
