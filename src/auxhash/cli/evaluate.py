"""evaluate: how good codes are."""

from typing import TYPE_CHECKING

import click

from auxhash.cli.output import (
    any_model_option,
    bits_option,
    header_option,
    jobs_option,
    json_option,
    label_option,
    own_feature_option,
    show,
    table,
    tell,
)
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray

    Side = tuple[Packed, AnyArray]  # codes and labels


@click.command()
@click.argument("queries")
@click.argument("base", required=False)
@click.option("--model", help="The model that encodes QUERIES and BASE, where they are no codes.")
@click.option("--labels", metavar="FILE", help="Labels of QUERIES.")
@click.option("--base-labels", metavar="FILE", help="Labels of BASE.")
@click.option("-k", multiple=True, type=int, help="Ranks; may be repeated. 1, 10, 100, 1000.")
@bits_option
@any_model_option
@own_feature_option
@label_option
@header_option
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
    any_model: bool,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Measure how many of the nearest in BASE share the label of each of QUERIES.

    Without --model, QUERIES and BASE are codes. With it they are points; if BASE is left out, the
    model's own training points are searched. Ties count by their expected value over all orders.
    Where QUERIES and BASE are the same points, every one finds itself, and the command says so.

    \b
    Examples:
      auxhash evaluate queries.npy --labels query-labels.npy --model model.safetensors
      auxhash evaluate table.csv table.csv --model table.safetensors -k 5 -k 20
      auxhash evaluate codes.npy codes.npy --labels labels.npy --base-labels labels.npy
    """
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.search import metrics

    sides = (queries, labels), (base, base_labels)
    if model is None:
        read = _codes_and_labels(*sides, bits, any_model, label, header)
    else:
        read = _encoded_and_labels(model, *sides, own, label, header, jobs)
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
        n_jobs=jobs,
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
    show(result, as_json, message, *([table(rows)] if rows else []), summary)


def _codes_and_labels(
    asked: tuple[str, str | None],
    searched: tuple[str | None, str | None],
    bits: int | None,
    any_model: bool,
    label: str,
    header: bool | None,
) -> "tuple[Side, Side, int, str | None]":
    """Codes and labels of both sides, the number of bits, and the fingerprint of their model."""
    from auxhash.cli import inputs

    if searched[0] is None:
        raise click.UsageError("codes are searched among the codes BASE, or a --model is needed")
    sides, widths, marks = [], [], []
    for (path, labels), option in ((asked, "--labels"), (searched, "--base-labels")):
        assert path is not None  # mypy does not see that both are there
        if labels is None:
            raise click.UsageError(f"codes have no labels: give {option}")
        packed, n_bits, mark = inputs.codes(path, bits)
        sides.append((packed, inputs.labels(labels, label, header)))
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


def _encoded_and_labels(
    model: str,
    asked: tuple[str, str | None],
    searched: tuple[str | None, str | None],
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
) -> "tuple[Side, Side, int, str | None]":
    """`_codes_and_labels`, for points that a model encodes."""
    import numpy as np

    from auxhash.cli import inputs
    from auxhash.learn.loading import load

    hasher = load(model)
    hasher.n_jobs = jobs
    sides = []
    for (path, labels), option in ((asked, "--labels"), (searched, "--base-labels")):
        if path is None:
            if hasher.labels_ is None:
                raise ValueError(f"{model} was learnt without labels: give BASE and --base-labels")
            sides.append((hasher.codes_, hasher.labels_))
            continue
        points = inputs.points_for(hasher, path, own, label, header)
        known = inputs.needed_labels(points, labels, label, option, header)
        sides.append((np.concatenate([hasher.encode(X) for X in points.chunks()]), known))
    return sides[0], sides[1], hasher.n_bits, hasher.fingerprint
