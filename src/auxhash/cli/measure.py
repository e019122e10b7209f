"""evaluate, compare, bench, demo: how good, and how fast."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.output import (
    bits_option,
    jobs_option,
    json_option,
    label_option,
    number,
    own_feature_option,
    progress_wanted,
    seed_option,
    show,
    table,
)

if TYPE_CHECKING:
    from auxhash.datasets import Dataset
    from auxhash.experiments.compare import Comparison


@click.command()
@click.argument("queries")
@click.argument("base", required=False)
@click.option("--model", help="The model that encodes QUERIES and BASE, where they are no codes.")
@click.option("--labels", metavar="FILE", help="Labels of QUERIES.")
@click.option("--base-labels", metavar="FILE", help="Labels of BASE.")
@click.option("-k", multiple=True, type=int, help="Ranks; may be repeated. 1, 10, 100, 1000.")
@bits_option
@own_feature_option
@label_option
@jobs_option
@json_option
def evaluate(
    queries: str,
    base: str | None,
    model: str | None,
    labels: str | None,
    base_labels: str | None,
    k: tuple[int, ...],
    bits: int | None,
    own: str | None,
    label: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Measure how many of the nearest in BASE share the label of each of QUERIES.

    Without a model both are codes. With one they are points, and without BASE the model's own
    training points are searched. Ties count by their expected value over all orders.

    \b
    Examples:
      auxhash evaluate queries.npy --labels query-labels.npy --model model.safetensors
      auxhash evaluate table.csv table.csv --model table.safetensors -k 5 -k 20
      auxhash evaluate codes.npy codes.npy --labels labels.npy --base-labels labels.npy
    """
    from auxhash import metrics

    sides = (queries, labels), (base, base_labels)
    if model is None:
        asked, searched, n_bits = _codes_and_labels(*sides, bits, label)
    else:
        asked, searched, n_bits = _encoded_and_labels(model, *sides, own, label, jobs)
    ranks = k or (1, 10, 100, 1000)
    protocol = {"data_set": f"{queries} in {base or f'the training points of {model}'}"}
    found = metrics.evaluate(
        asked[0],
        searched[0],
        asked[1],
        searched[1],
        k=ranks,
        n_bits=n_bits,
        protocol=protocol,
        n_jobs=jobs,
    )
    rows = [
        {"k": rank, "precision": precision, "recall": recall}
        for rank, precision, recall in zip(
            found.k.tolist(), found.precision.tolist(), found.recall.tolist(), strict=True
        )
    ]
    told = found.protocol
    said = (
        f"{told['n_queries']:,} queries, {told['n_base']:,} codes of {n_bits} bits; relevant: "
        f"{told['ground_truth']}; ties by their expected value"
    )
    summary = (
        f"mAP {found.mean_average_precision:.4f} over the whole base; {found.utilization:.2f} "
        f"effective bits of at most {found.utilization_bound:.2f}"
    )
    show(found.to_dict(), as_json, said, *([table(rows)] if rows else []), summary)


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("labels", required=False)
@click.option("-m", "--method", "methods", multiple=True, help="May be repeated; all takes all.")
@click.option("--bits", multiple=True, type=int, default=(32,), show_default=True, help="Lengths.")
@click.option(
    "--seed", "seeds", multiple=True, type=click.IntRange(0), default=(0,), show_default=True
)
@click.option("-k", multiple=True, type=int, default=(100,), show_default=True, help="Ranks.")
@click.option("--loss", default="ksh", show_default=True, help="Of all methods that have one.")
@click.option("--train", "n_train", type=int, help="Training points; by default the data set's.")
@click.option("--folder", metavar="FOLDER", help="Keep runs here, and never run one twice.")
@own_feature_option
@label_option
@jobs_option
@json_option
def compare(
    data: str,
    labels: str | None,
    methods: tuple[str, ...],
    bits: tuple[int, ...],
    seeds: tuple[int, ...],
    k: tuple[int, ...],
    loss: str,
    n_train: int | None,
    folder: str | None,
    own: str | None,
    label: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare methods on DATA: a data set's name (auxhash data list), or your FEATURES and LABELS.

    All methods that learn from pairs learn from the same ones. Of your own data, a tenth become
    queries, the others are searched.

    \b
    Examples:
      auxhash compare digits -m MAC -m ITQ --bits 16
      auxhash compare features.npy labels.npy -m MAC -m OneHot -k 10
    """
    from auxhash.demo import METHODS as FEW
    from auxhash.experiments.compare import METHODS, compare

    chosen = METHODS if "all" in methods else methods or FEW
    found = compare(
        _dataset(data, labels, n_train, own, label, seeds[0], jobs),
        chosen,
        bits,
        seeds,
        k,
        loss,
        folder=folder,
        n_jobs=jobs,
        verbose=progress_wanted(as_json),
    )
    _show_comparison(found, as_json)
    if all(row["failed"] for row in found.rows):
        raise click.ClickException("every method failed")


@click.command()
@click.option("--points", default=5_000, show_default=True, help="To learn from.")
@click.option("--codes", default=1_000_000, show_default=True, help="To search.")
@click.option("--bits", default=64, show_default=True)
@jobs_option
@json_option
def bench(points: int, codes: int, bits: int, jobs: int | None, as_json: bool) -> None:
    """Time learning, encoding, searching and measuring on this machine, with made data.

    \b
    Example:
      auxhash bench --points 500 --codes 10000
    """
    from auxhash.experiments.bench import bench

    rows = bench(points, codes, bits, n_jobs=jobs)
    shown = [
        {
            "job": row["job"],
            "of": row["of"],
            "seconds": f"{row['seconds']:.4f}",
            "rate": f"{number(row['rate'])} {row['unit']}" if row["rate"] else "",
        }
        for row in rows
    ]
    show({"rows": rows}, as_json, table(shown))


@click.command()
@click.option("--bits", default=32, show_default=True, help="Length of the codes.")
@seed_option
@jobs_option
@json_option
def demo(bits: int, seed: int, jobs: int | None, as_json: bool) -> None:
    """Learn codes for handwritten digits with several methods, and compare them.

    \b
    Example:
      auxhash demo --bits 16
    """
    from auxhash.demo import ABOUT, run

    found = run(bits, seed, jobs, verbose=progress_wanted(as_json))
    _show_comparison(found, as_json, ABOUT)


def _show_comparison(found: "Comparison", as_json: bool, *more: str) -> None:
    protocol = "\n".join(f"{name}: {value}" for name, value in found.protocol.items())
    result = {"protocol": found.protocol, "rows": found.rows}
    show(result, as_json, protocol, found.table(), *more)


def _codes_and_labels(
    asked: tuple[str, str | None],
    searched: tuple[str | None, str | None],
    bits: int | None,
    label: str,
) -> Any:
    """(codes, labels) of both sides, and how many bits they have."""
    from auxhash.cli import inputs
    from auxhash.datasets import tables

    if searched[0] is None:
        raise click.UsageError("codes are searched among the codes BASE, or a --model is needed")
    sides = []
    for (path, labels), option in ((asked, "--labels"), (searched, "--base-labels")):
        assert path is not None  # mypy does not see that both are there
        if labels is None:
            raise click.UsageError(f"codes have no labels: give {option}")
        packed, n_bits = inputs.codes(path, bits)
        sides.append((packed, tables.read_labels(labels, label)))
    return *sides, n_bits


def _encoded_and_labels(
    model: str,
    asked: tuple[str, str | None],
    searched: tuple[str | None, str | None],
    own: str | None,
    label: str,
    jobs: int | None,
) -> Any:
    """The same of points that a model encodes."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.loading import load

    hasher = load(model)
    hasher.n_jobs = jobs
    sides = []
    for (path, labels), option in ((asked, "--labels"), (searched, "--base-labels")):
        if path is None:
            if hasher.labels_ is None:
                raise ValueError(f"{model} was learnt without labels: give BASE and --base-labels")
            sides.append((hasher.codes_, hasher.labels_))
            continue
        points = inputs.points_for(hasher, path, own, label)
        known = inputs.needed_labels(points, labels, label, option)
        sides.append((np.concatenate([hasher.encode(X) for X in points.chunks()]), known))
    return *sides, hasher.n_bits


def _dataset(
    data: str,
    labels: str | None,
    n_train: int | None,
    own: str | None,
    label: str,
    seed: int,
    jobs: int | None,
) -> "Dataset":
    from auxhash import datasets
    from auxhash.cli import inputs

    if not Path(data).exists() and not Path(data).suffix:
        options: dict[str, Any] = {} if n_train is None else {"n_train": n_train}
        return datasets.load(data, **options)
    points, _ = inputs.points(data, own, label, jobs)
    y = inputs.needed_labels(points, labels, label, "LABELS")
    return datasets.from_arrays(points.all(), y=y, n_train=n_train, seed=seed, name=data)
