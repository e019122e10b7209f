"""compare, bench, demo: methods side by side, and how fast they are here."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from auxhash.cli.output import number, progress_wanted, show, table, used_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from auxhash.experiments.comparison import ComparedRows
    from auxhash.experiments.datasets import Dataset
    from auxhash.experiments.datasets.dataset import MaybeArray
    from auxhash.files.rows import Rows


NEIGHBOR_OPTIONS = ("queries", "metric", "seconds", "n_base", "text")


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("labels", required=False)
@click.option("-m", "--method", "methods", multiple=True, help="May be repeated; all takes all.")
@click.option("--bits", multiple=True, type=int, help="With labels: lengths; 32 by default.")
@click.option(
    "--bytes",
    "n_bytes",
    multiple=True,
    type=int,
    help="Without labels: bytes per point; 4, 8, 16 and 32 by default. Labels are not used then.",
)
@click.option("--queries", metavar="FILE", help="Without labels: points to search for.")
@click.option("--metric", help="Without labels: cosine (the default) or euclidean.")
@click.option(
    "--seconds", type=float, help="Without labels: a limit; methods not done in time are named."
)
@click.option("--base", "n_base", type=int, help="Without labels: points to search, of all.")
@click.option(
    "--text",
    metavar="COLUMN|FILE",
    help="With --html and without labels: what points are called, in DATA or line by line; of a "
    "data set, names (the default) or texts.",
)
@click.option(
    "--seed", "seeds", multiple=True, type=click.IntRange(0), default=(0,), show_default=True
)
@click.option("-k", multiple=True, type=int, help="With labels: ranks; 100 by default.")
@click.option("--loss", help="With labels: of methods that have one, and of L(h); ksh by default.")
@click.option("--train", "n_train", type=int, help="Points to learn from, of all.")
@click.option("--folder", metavar="FOLDER", help="Keep runs here, and never run one twice.")
@click.option("--html", metavar="FILE", help="Also write a page about it: the table, and curves.")
@force_option
@points_options
@device_option
@jobs_option
@json_option
def compare(
    data: str,
    labels: str | None,
    methods: tuple[str, ...],
    html: str | None,
    force: bool,
    reading: Reading,
    **settings: Any,
) -> None:
    """Compare methods on DATA: a data set's name (auxhash data list), or your features.

    With LABELS (or a column of them), by the labels of what codes find. Without, by the share of a
    query's nearest points that codes of 4 to 32 bytes find.

    All methods that learn from pairs learn from the same ones. Of your own data, a tenth
    (at most 2,000 points; 1,000 without labels) become queries, and the others are searched.

    \b
    Examples:
      auxhash compare digits -m MAC -m ITQ --bits 16
      auxhash compare features.npy labels.npy -m MAC -m OneHot -k 10 --html compared.html
      auxhash compare features.npy -m signs -m ITQ --bytes 2 --bytes 4 --html bytes.html
      auxhash compare features.npy -m ITQ --bytes 4 --queries queries.npy --seconds 60
    """
    from auxhash.cli import inputs, kinds
    from auxhash.experiments import datasets
    from auxhash.experiments.entries import METHODS

    if "all" in methods and len(methods) > 1:
        raise ValueError("-m all takes every method there is: leave out any other -m")
    chosen = METHODS if "all" in methods else methods
    made_from = data, labels, settings["queries"]
    page = inputs.output_path(html, kinds.PAGE, *made_from, force=force) if html else None
    settings["verbose"] = progress_wanted()
    n_train = settings["n_train"]
    points: Rows | Dataset
    if not Path(data).exists() and not Path(data).suffix:
        points = datasets.load(data, **({} if n_train is None else {"n_train": n_train}))
        labelled = points.query.y is not None or bool(settings["bits"])
    else:
        points = inputs.points(data, _no_features(data, settings["text"], reading))
        asked = labels is not None or reading.label != DEFAULT_LABEL or points.names is not None
        labelled = asked or points.read_labels is not None
    if settings["n_bytes"] or not labelled:
        _refuse(settings, ("bits", "k", "loss"), "is for labels, and neighbours are compared")
        _compare_neighbors(points, chosen, page, reading, settings)
        return
    _refuse(settings, NEIGHBOR_OPTIONS, "is for points without labels, or with --bytes")
    if not isinstance(points, datasets.Dataset):
        y = inputs.labels_to_learn(points, labels, "LABELS", reading)
        drawn = {"n_train": n_train, "seed": settings["seeds"][0]}
        points = datasets.from_arrays(
            points.all(), y=y, **drawn, name=data, images=_pictures(points)[0]
        )
    _compare_labels(points, chosen, page, settings)


def _pictures(points: "Dataset | Rows") -> "tuple[MaybeArray, MaybeArray]":
    """Pictures of what is searched and of what is searched for; None where there are none."""
    from auxhash.experiments.datasets import Dataset
    from auxhash.files.images import Thumbnails

    if isinstance(points, Dataset):
        return points.base.images, points.query.images
    if points.names is None:
        return None, None
    every = Thumbnails([Path(points.name) / name for name in points.names])
    return every, every


def _refuse(settings: "Mapping[str, object]", options: "Sequence[str]", why: str) -> None:
    """Raise if one of these options was given."""
    for option in options:
        if settings[option]:
            dashes = "-" if len(option) == 1 else "--"
            raise ValueError(f"{dashes}{option.removeprefix('n_')} {why}")


def _compare_labels(
    dataset: "Dataset",
    chosen: "Sequence[str]",
    page: Path | None,
    settings: "Mapping[str, Any]",
) -> None:
    from auxhash.experiments.compare import Compared, compare_labels
    from auxhash.experiments.comparepage import PageHead, compare_on_page
    from auxhash.experiments.entries import WITH_LABELS

    lengths, ranks = settings["bits"] or (32,), settings["k"] or (100,)
    methods, loss = chosen or WITH_LABELS, settings["loss"] or "ksh"
    asked = Compared(dataset, methods, lengths, settings["seeds"], ranks, loss)
    common = [settings[name] for name in ("folder", "verbose", "device")]
    if page is None:
        comparison = compare_labels(asked, *common)
        _show_comparison(comparison)
    else:
        title = f"Methods compared on {dataset.name}"
        head = PageHead("auxhash compare", title, "", used_command())
        comparison = compare_on_page(asked, page, head, *common)
        _show_comparison(comparison, f"The same with curves: {page}", page=str(page))
    if all(row["failed"] for row in comparison.rows[:-1]):  # the last has exact distances
        raise click.ClickException("every method failed")


def _compare_neighbors(
    points: "Dataset | Rows",
    chosen: "Sequence[str]",
    page: Path | None,
    reading: Reading,
    settings: "Mapping[str, Any]",
) -> None:
    from auxhash.cli import inputs
    from auxhash.experiments.compareneighbors import N_BYTES, compare_neighbors
    from auxhash.experiments.datasets import Dataset
    from auxhash.experiments.neighborpage import write_page

    text, queries = settings["text"], None
    query_names: Sequence[str] | None = None
    if text and page is None:
        raise ValueError("--text is for --html, which is not given")
    if len(settings["seeds"]) > 1:
        raise ValueError("--seed can be given once where neighbours are compared")
    if settings["queries"]:
        columns = None if isinstance(points, Dataset) else points.columns
        passed = _no_features(settings["queries"], text, reading)
        queries = inputs.finite_vectors(settings["queries"], passed, columns)
        if passed != reading:
            query_names = inputs.texts(text, settings["queries"], len(queries), reading.header)
    names, held_out_names = _texts(points, text, reading.header) if page else (None, None)
    comparison = compare_neighbors(
        points if isinstance(points, Dataset) else points.all(),
        chosen or None,
        settings["n_bytes"] or N_BYTES,
        queries,
        settings["metric"] or "cosine",
        settings["n_train"],
        settings["n_base"],
        settings["seconds"],
        settings["folder"],
        settings["seeds"][0],
        None,
        settings["verbose"],
        settings["device"],
        points.name,
    )
    if page is None:
        _show_comparison(comparison)
        return
    query_names = query_names if settings["queries"] else held_out_names
    # Queries of a file have no pictures; and where texts are given, they are wanted.
    pictures = _pictures(points) if queries is None and not text else ()
    write_page(comparison, page, used_command(), names, query_names, *pictures)
    line = f"The same with curves, and what queries find: {page}"
    _show_comparison(comparison, line, page=str(page))


def _no_features(path: str, text: str | None, reading: Reading) -> Reading:
    """Leave the column of --text out of the features, if there is one."""
    from auxhash.files import tables

    if not text or text not in tables.column_names(path, reading.header):
        return reading
    return replace(reading, id_column=(reading.ids, text))


def _texts(
    points: "Dataset | Rows", text: str | None, header: bool | None
) -> "tuple[Sequence[str] | None, Sequence[str] | None]":
    """Return names of points, and of queries held out of them; None where they are not known."""
    from auxhash.cli import inputs
    from auxhash.experiments.datasets import Dataset

    if not isinstance(points, Dataset):
        names = inputs.texts(text, points.name, len(points), header) if text else None
        return names, names
    if text and Path(text).is_file():
        return inputs.texts(text, points.name, len(points.base), header), None
    kind = text or "names"
    known = [name for name in ("names", "texts") if getattr(points.base, name) is not None]
    if text and text not in known:
        has = f"has {' and '.join(known)}" if known else "has no texts"
        raise ValueError(f"--text {text}: {points.name} {has}, and there is no file {text}")
    return getattr(points.base, kind), getattr(points.query, kind)


@click.command()
@click.option("--points", default=5_000, show_default=True, help="To learn from.")
@click.option("--codes", default=1_000_000, show_default=True, help="To search.")
@click.option("--bits", default=64, show_default=True)
@jobs_option
@json_option
def bench(points: int, codes: int, bits: int) -> None:
    """Time learning, encoding, searching and measuring on this machine, with synthetic data.

    \b
    Example:
      auxhash bench --points 500 --codes 10000
    """
    from auxhash.experiments.bench import bench

    rows = bench(points, codes, bits)
    shown = [
        {
            "job": row["job"],
            "of": row["of"],
            "seconds": f"{row['seconds']:.4f}",
            "rate": f"{number(row['rate'])} {row['unit']}" if row["rate"] else "",
        }
        for row in rows
    ]
    show({"rows": rows}, table(shown))


@click.command()
@click.option("--bits", default=32, show_default=True, help="Length of the codes.")
@seed_option
@click.option(
    "-o", "--output", default="auxhash-demo.html", show_default=True, help="A page about it."
)
@force_option
@jobs_option
@json_option
def demo(bits: int, seed: int, output: str, force: bool) -> None:
    """Learn codes for handwritten digits with several methods, and compare them.

    \b
    Example:
      auxhash demo --bits 16
    """
    from auxhash.cli import inputs, kinds
    from auxhash.experiments.demo import ABOUT, run

    path = inputs.output_path(output, kinds.PAGE, force=force)
    comparison = run(bits, seed, path, verbose=progress_wanted())
    page_line = f"The same with curves, and what each method retrieves, in pictures: {output}"
    _show_comparison(comparison, ABOUT, page_line, page=output)


def _show_comparison(comparison: "ComparedRows", *more: str, **facts: str) -> None:
    protocol = "\n".join(f"{name}: {value}" for name, value in comparison.protocol.items())
    result = {"protocol": comparison.protocol, "rows": comparison.rows, **facts}
    show(result, protocol, comparison.table(), comparison.legend, *more)
