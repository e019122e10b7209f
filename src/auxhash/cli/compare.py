"""compare, bench, demo: methods side by side, and how fast they are here."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from auxhash.cli.output import (
    device_option,
    force_option,
    header_option,
    jobs_option,
    json_option,
    label_option,
    number,
    own_feature_option,
    progress_wanted,
    seed_option,
    show,
    table,
    used_command,
)

if TYPE_CHECKING:
    from auxhash.compute.device import DeviceName
    from auxhash.experiments.compare import Comparison
    from auxhash.experiments.datasets import Dataset


COLUMNS = """\
L(h) is the loss over the training pairs; p@k the share of a query's k nearest that are right, mAP
the same over all ranks; b_eff how many bits are effective. Means over the seeds."""


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("labels", required=False)
@click.option("-m", "--method", "methods", multiple=True, help="May be repeated; all takes all.")
@click.option("--bits", multiple=True, type=int, default=(32,), show_default=True, help="Lengths.")
@click.option(
    "--seed", "seeds", multiple=True, type=click.IntRange(0), default=(0,), show_default=True
)
@click.option("-k", multiple=True, type=int, default=(100,), show_default=True, help="Ranks.")
@click.option(
    "--loss", default="ksh", show_default=True, help="Of all methods that have one, and of L(h)."
)
@click.option("--train", "n_train", type=int, help="Training points; by default the data set's.")
@click.option("--folder", metavar="FOLDER", help="Keep runs here, and never run one twice.")
@click.option("--html", metavar="FILE", help="Also write a page about it: the table, and curves.")
@force_option
@own_feature_option
@label_option
@header_option
@device_option
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
    html: str | None,
    force: bool,
    own: str | None,
    label: str,
    header: bool | None,
    device: "DeviceName",
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare methods on DATA: a data set's name (auxhash data list), or your features and LABELS.

    All methods that learn from pairs learn from the same ones. Of your own data, a tenth
    (at most 2,000 points) become queries, and the others are searched.

    \b
    Examples:
      auxhash compare digits -m MAC -m ITQ --bits 16
      auxhash compare features.npy labels.npy -m MAC -m OneHot -k 10 --html compared.html
    """
    from auxhash.cli import inputs, kinds
    from auxhash.experiments.compare import compare
    from auxhash.experiments.comparepage import Compared, PageHead
    from auxhash.experiments.demo import METHODS as DEFAULT_METHODS
    from auxhash.experiments.entries import METHODS

    if "all" in methods and len(methods) > 1:
        raise ValueError("-m all takes every method there is: leave out any other -m")
    chosen = METHODS if "all" in methods else methods or DEFAULT_METHODS
    page = inputs.output_path(html, kinds.PAGE, data, labels, force=force) if html else None
    dataset = _dataset(data, labels, n_train, own, label, header, seeds[0], jobs)
    arguments, verbose = (dataset, chosen, bits, seeds, k, loss), progress_wanted(as_json)
    if page is None:
        comparison = compare(*arguments, folder=folder, n_jobs=jobs, verbose=verbose, device=device)
        _show_comparison(comparison, as_json)
    else:
        title = f"Methods compared on {dataset.name}"
        head = PageHead("auxhash compare", title, "", used_command(), COLUMNS)
        comparison = Compared(*arguments).run(page, head, folder, jobs, verbose, device)
        _show_comparison(comparison, as_json, f"The same with curves: {html}", page=str(html))
    if all(row["failed"] for row in comparison.rows):
        raise click.ClickException("every method failed")


@click.command()
@click.option("--points", default=5_000, show_default=True, help="To learn from.")
@click.option("--codes", default=1_000_000, show_default=True, help="To search.")
@click.option("--bits", default=64, show_default=True)
@jobs_option
@json_option
def bench(points: int, codes: int, bits: int, jobs: int | None, as_json: bool) -> None:
    """Time learning, encoding, searching and measuring on this machine, with synthetic data.

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
@click.option(
    "-o", "--output", default="auxhash-demo.html", show_default=True, help="A page about it."
)
@force_option
@jobs_option
@json_option
def demo(bits: int, seed: int, output: str, force: bool, jobs: int | None, as_json: bool) -> None:
    """Learn codes for handwritten digits with several methods, and compare them.

    \b
    Example:
      auxhash demo --bits 16
    """
    from auxhash.cli import inputs, kinds
    from auxhash.experiments.demo import ABOUT, run

    path = inputs.output_path(output, kinds.PAGE, force=force)
    comparison = run(bits, seed, path, jobs, verbose=progress_wanted(as_json))
    page_line = f"The same with curves, and what each method retrieves, in pictures: {output}"
    _show_comparison(comparison, as_json, ABOUT, page_line, page=output)


def _show_comparison(comparison: "Comparison", as_json: bool, *more: str, **facts: str) -> None:
    protocol = "\n".join(f"{name}: {value}" for name, value in comparison.protocol.items())
    result = {"protocol": comparison.protocol, "rows": comparison.rows, **facts}
    show(result, as_json, protocol, comparison.table(), *more)


def _dataset(
    data: str,
    labels: str | None,
    n_train: int | None,
    own: str | None,
    label: str,
    header: bool | None,
    seed: int,
    jobs: int | None,
) -> "Dataset":
    from auxhash.cli import inputs
    from auxhash.experiments import datasets

    if not Path(data).exists() and not Path(data).suffix:
        return datasets.load(data) if n_train is None else datasets.load(data, n_train=n_train)
    points = inputs.points(data, own, label, jobs, header)
    y = inputs.labels_to_learn(points, labels, label, "LABELS", header)
    return datasets.from_arrays(points.all(), y=y, n_train=n_train, seed=seed, name=data)
