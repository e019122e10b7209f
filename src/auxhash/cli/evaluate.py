"""evaluate: how good codes are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from auxhash.cli.options import (
    DEFAULT_LABEL,
    Reading,
    any_model_option,
    bits_option,
    jobs_option,
    json_option,
    points_options,
)
from auxhash.cli.output import show, table, tell
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray
    from auxhash.compute.neighbors import Metric
    from auxhash.experiments.compareneighbors import Search
    from auxhash.experiments.comparison import Row
    from auxhash.files.rows import Rows
    from auxhash.model.model import Model

    Side = tuple[Packed, AnyArray]  # codes and labels


@click.command()
@click.argument("queries")
@click.argument("base", required=False)
@click.option("--model", help="The model that encodes QUERIES and BASE, where they are no codes.")
@click.option("--labels", metavar="FILE", help="Labels of QUERIES.")
@click.option("--base-labels", metavar="FILE", help="Labels of BASE.")
@click.option("--vectors", metavar="FILE", help="Vectors of QUERIES, where these are codes.")
@click.option("--base-vectors", metavar="FILE", help="Vectors of BASE.")
@click.option(
    "--metric", help="Of neighbours: cosine or euclidean; by default the model's, or cosine."
)
@click.option("-k", multiple=True, type=int, help="Ranks; may be repeated. 1, 10, 100, 1000.")
@bits_option
@any_model_option
@points_options
@jobs_option
@json_option
def evaluate(
    queries: str,
    base: str | None,
    model: str | None,
    labels: str | None,
    base_labels: str | None,
    vectors: str | None,
    base_vectors: str | None,
    metric: "Metric | None",
    k: tuple[int, ...],
    bits: int | None,
    any_model: bool,
    reading: Reading,
) -> None:
    """Measure how many of the nearest in BASE share the label of each of QUERIES.

    Without --model, QUERIES and BASE are codes. With it they are points; if BASE is left out, the
    model's own training points are searched. Ties count by their expected value over all orders.
    Where QUERIES and BASE are the same points, every one finds itself, and the command says so.

    Without labels (codes with their --vectors, or points that have none), the share of the nearest
    points in feature space is measured that codes find, and what they cost, as `auxhash compare`
    does. If BASE is left out, QUERIES are searched, for some of them that are held out.

    \b
    Examples:
      auxhash evaluate queries.npy --labels query-labels.npy --model model.safetensors
      auxhash evaluate table.csv table.csv --model table.safetensors -k 5 -k 20
      auxhash evaluate codes.npy codes.npy --labels labels.npy --base-labels labels.npy
      auxhash evaluate codes.npy --vectors features.npy
      auxhash evaluate queries.npy features.npy --model model.safetensors
    """
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.search import metrics

    sides = (queries, labels), (base, base_labels)
    if model is None and vectors is not None and labels is None:
        files = (queries, vectors), (base, base_vectors)
        metric = metric or "cosine"
        _check_no_ranks(k)
        _show_recall(*_of_codes(*files, metric, bits, any_model, reading))
        return
    if model is None:
        read = _codes_and_labels(*sides, bits, any_model, reading)
    else:
        hasher, points = _model_and_points(model, queries, base, reading)
        no_labels = labels is None and base_labels is None and reading.label == DEFAULT_LABEL
        if no_labels and _are_unlabelled(hasher, points):
            _check_no_ranks(k)
            _show_recall(*_of_points(hasher.model, points, metric))
            return
        known = labels, base_labels
        read = _encoded_and_labels(hasher, points, known, reading)
    asked, searched, n_bits, fingerprint = read
    inputs.comparable(asked[1], searched[1])
    ranks = k or (1, 10, 100, 1000)
    protocol = {"data_set": f"{queries} in {base or f'the training points of {model}'}"}
    if base is None:
        protocol["overlap"] = "the base is the training points"
    if np.array_equal(asked[0], searched[0]):
        protocol["overlap"] = "the base is the queries"
        other = "BASE" if base is not None else f"the training points of {model}"
        tell(
            f"QUERIES and {other} are the same: each finds itself, so the reported precision is "
            "too high"
        )
    if unmeasured := [str(rank) for rank in k if rank > len(searched[0])]:
        there = count(len(searched[0]), "code")
        if len(unmeasured) == len(k):
            raise ValueError(f"no k is left to measure: the base has {there}")
        tell(f"not measured: k = {', '.join(unmeasured)}: the base has {there}")
    scores = metrics.evaluate(
        asked[0],
        searched[0],
        asked[1],
        searched[1],
        k=ranks,
        n_bits=n_bits,
        protocol=protocol,
    )
    rows = [
        {"k": rank, "precision": precision, "recall": recall}
        for rank, precision, recall in zip(
            scores.k.tolist(),
            scores.precision.tolist(),
            scores.recall.tolist(),
            strict=True,
        )
    ]
    setup = scores.protocol
    message = (
        f"{count(setup['n_queries'], 'query')}, {count(setup['n_base'], 'code')} of "
        f"{count(n_bits, 'bit')}; relevant: "
        f"{setup['ground_truth']}; ties by their expected value"
    )
    summary = (
        f"mAP {scores.mean_average_precision:.4f} over the whole base; {scores.utilization:.2f} "
        f"effective bits of at most {scores.utilization_bound:.2f}"
    )
    result = {**scores.to_dict(), "fingerprint": fingerprint}
    show(result, message, *([table(rows)] if rows else []), summary)


def _codes_and_labels(
    asked: tuple[str, str | None],
    searched: tuple[str | None, str | None],
    bits: int | None,
    any_model: bool,
    reading: Reading,
) -> "tuple[Side, Side, int, str | None]":
    """Codes and labels of both sides, the number of bits, and the fingerprint of their model."""
    from auxhash.cli import inputs

    if searched[0] is None:
        raise click.UsageError("codes are searched among the codes BASE, or a --model is needed")
    sides, widths, marks = [], [], []
    for (path, labels), option in ((asked, "--labels"), (searched, "--base-labels")):
        assert path is not None  # mypy does not see that both are there
        if labels is None:
            raise click.UsageError(f"codes have no labels: give {option}, or --vectors")
        packed, n_bits, mark = inputs.codes(path, bits)
        sides.append((packed, inputs.labels(labels, reading)))
        widths.append(n_bits)
        marks.append(mark)
    if widths[0] != widths[1]:
        raise ValueError(
            f"{asked[0]} holds codes of {count(widths[0], 'bit')}, and {searched[0]} of "
            f"{widths[1]}; if packed codes use fewer, give --bits"
        )
    pair = str(asked[0]), marks[0], str(searched[0]), marks[1]
    fingerprint = inputs.same_model(*pair, any_model)
    return sides[0], sides[1], n_bits, fingerprint


class _Evaluated(NamedTuple):
    """A model, and the codes and labels of its training points, if its file holds them."""

    path: str
    model: "Model"
    codes: "Packed | None"
    labels: "AnyArray | None"


def _model_and_points(
    model: str, queries: str, base: str | None, reading: Reading
) -> "tuple[_Evaluated, list[Rows | None]]":
    """The model, and the points of QUERIES and of BASE, if there is one."""
    from auxhash.cli import inputs
    from auxhash.learn import loading

    loaded = loading.load(model)
    value = replace(loading.as_model(loaded, model), n_jobs=None)
    known = getattr(loaded, "codes_", None), getattr(loaded, "labels_", None)
    return _Evaluated(model, value, *known), [
        None if path is None else inputs.points_for(value, path, reading)
        for path in (queries, base)
    ]


def _are_unlabelled(hasher: "_Evaluated", points: "Sequence[Rows | None]") -> bool:
    """Return True if neither the points have labels nor, without BASE, the training points."""
    if points[1] is None and hasher.labels is not None:
        return False
    return all(side is None or side.read_labels is None for side in points)


def _encoded_and_labels(
    hasher: "_Evaluated",
    points: "Sequence[Rows | None]",
    files: tuple[str | None, str | None],
    reading: Reading,
) -> "tuple[Side, Side, int, str | None]":
    """`_codes_and_labels`, for points that a model encodes."""
    import numpy as np

    from auxhash.cli import inputs

    sides = []
    for side, labels, option in zip(points, files, ("--labels", "--base-labels"), strict=True):
        if side is None:
            if hasher.codes is None or hasher.labels is None:
                why = "was learnt without labels" if hasher.labels is None else "holds no codes"
                raise ValueError(f"{hasher.path} {why}: give BASE and --base-labels")
            sides.append((hasher.codes, hasher.labels))
            continue
        known = inputs.needed_labels(side, labels, option, reading)
        sides.append((np.concatenate([hasher.model.encode(X) for X in side.chunks()]), known))
    return sides[0], sides[1], hasher.model.n_bits, hasher.model.fingerprint


def _of_points(
    model: "Model", points: "Sequence[Rows | None]", metric: "Metric | None"
) -> "tuple[Search, list[Row], int]":
    """The neighbours of points, and how the codes of a model find them."""
    from auxhash.codes import n_bytes
    from auxhash.experiments.coders import rankings_of
    from auxhash.experiments.compareneighbors import learnt_rows, prepared, timed_codes
    from auxhash.experiments.runs import model_bytes
    from auxhash.learn.hasher import fingerprint

    first, second = points
    assert first is not None
    Q = first.all()
    X = Q if second is None else second.all()
    name = first.name if second is None else second.name
    own = model.metric or "cosine"
    if model.learnt.data == fingerprint(Q, None):
        tell(f"{first.name}: the model was learnt from these points, and recall of others is lower")
    search = prepared(X, None if second is None else Q, metric or own, name=name)
    base = X[search.base_rows]
    model.encode(base[:1])  # compiles
    codes, seconds = timed_codes(model.encode, base)
    facts = {"encode 1M s": seconds, "model bytes": model_bytes(model)}
    rankings = rankings_of(model, Q[search.query_rows], codes)
    return search, learnt_rows(rankings, n_bytes(model.n_bits), search, **facts), model.n_bits


def _of_codes(
    asked: tuple[str, str],
    searched: tuple[str | None, str | None],
    metric: "Metric",
    bits: int | None,
    any_model: bool,
    reading: Reading,
) -> "tuple[Search, list[Row], int]":
    """The neighbours of vectors, and how their codes find them."""
    from auxhash.cli import inputs
    from auxhash.codes import n_bytes
    from auxhash.experiments.coders import by_hamming
    from auxhash.experiments.compareneighbors import learnt_rows, prepared

    def read(codes: str, vectors: str) -> "tuple[Packed, AnyArray, int, str | None]":
        packed, n_bits, mark = inputs.codes(codes, bits)
        X = inputs.finite_vectors(vectors, reading)
        if len(X) != len(packed):
            raise ValueError(f"{codes} holds {len(packed):,} codes, but {vectors} {len(X):,} rows")
        return packed, X, n_bits, mark

    codes, Q, n_bits, mark = base_codes, X, _, _ = read(*asked)
    if searched[0] is not None:
        if searched[1] is None:
            raise click.UsageError("BASE has no vectors: give --base-vectors")
        base_codes, X, base_bits, base_mark = read(searched[0], searched[1])
        inputs.same_model(asked[0], mark, searched[0], base_mark, any_model)
        if base_bits != n_bits:
            raise ValueError(f"{asked[0]} holds codes of {n_bits} bits, {searched[0]} {base_bits}")
    alone = searched[0] is None
    name = (asked if searched[1] is None else searched)[1]
    search = prepared(X, None if alone else Q, metric, name=str(name))
    ranked = by_hamming(codes[search.query_rows], base_codes[search.base_rows], n_bits)
    return search, learnt_rows([ranked], n_bytes(n_bits), search), n_bits


def _check_no_ranks(k: tuple[int, ...]) -> None:
    if k:
        raise ValueError("-k is for labels: neighbours are looked for among the first 10 to 1,000")


def _show_recall(search: "Search", rows: "list[Row]", n_bits: int) -> None:
    """Show the figures of `auxhash compare` for codes that are there, without what is not known."""
    from auxhash.experiments.compareneighbors import (
        FIGURES,
        LEGEND,
        NeighborComparison,
        figure_texts,
        units,
    )
    from auxhash.experiments.comparison import NONE, FittingTable

    head = ["bytes", "by", *FIGURES]
    texts = [[f"{row['bytes']:,}", row["distance"], *figure_texts(row)] for row in rows]
    known = [at for at in range(len(head)) if any(text[at] != NONE for text in texts)]
    columns, *lines = ([text[at] for at in known] for text in [head, *texts])
    spare = [name for name in NeighborComparison.spare if name in columns]
    protocol = {"data": search.data.protocol, "metric": search.metric, "bits": n_bits}
    protocol |= units(search)
    line = f"{search.data.protocol}; {count(n_bits, 'bit')}, {search.metric} neighbours"
    about = "\n".join(f"{name}: {text}" for name, text in units(search).items())
    plain = [{"by": row["distance"], **row} for row in rows]
    for row in plain:
        del row["method"], row["distance"]
    show(
        {"protocol": protocol, "rows": plain},
        line,
        FittingTable(columns, lines, spare),
        LEGEND,
        about,
    )
