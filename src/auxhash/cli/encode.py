"""encode and export: from a model to codes, or to ONNX."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import click

from auxhash.cli.options import Reading, force_option, jobs_option, json_option, points_options
from auxhash.cli.output import as_json, number, show
from auxhash.compute import context
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.files.shards.fleet import Fleet


@click.command()
@click.argument("model")
@click.argument("features")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="CODES",
    help="The .safetensors or .npy file to write, or the folder.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Of a Dask cluster that encodes many files; local: one on this machine.",
)
@force_option
@points_options
@jobs_option
@json_option
def encode(
    model: str,
    features: str,
    output: str,
    scheduler: str | None,
    force: bool,
    reading: Reading,
) -> None:
    """Encode FEATURES with MODEL into packed codes.

    CODES is a uint8 array with one row per point; bit k of a code is bit k % 8 of byte k // 8. A
    .safetensors file also says how many bits are used and which model made them, so that no other
    model's codes are compared with them; a .npy file is the array alone.
    Files in .npy, .parquet, .fvecs and .bvecs, and folders of pictures, may be larger than memory:
    they are encoded chunk by chunk.

    FEATURES can be a pattern of many .parquet or .npy files, at any address that fsspec knows. Then
    CODES is a folder: one .parquet file for each, with the columns id and code. .npy files have no
    ids: their rows are numbered through all files, by name. The same command goes on where it was
    stopped, and encodes files anew that have changed. With --scheduler, the workers of a Dask
    cluster (auxhash[cluster]) read and write them: addresses must be theirs, too.

    \b
    Examples:
      auxhash encode model.safetensors features.npy -o codes.safetensors
      auxhash encode model.safetensors features.npy -o codes.npy
      auxhash encode model.safetensors 'parts/*.parquet' -o codes
      auxhash encode photos.safetensors photos -o photo-codes.safetensors
      auxhash encode colours.safetensors photos --features mine:colours -o colours.npy
    """
    from auxhash.cli import inputs, kinds
    from auxhash.compute.bars import new_bar
    from auxhash.files import codefiles
    from auxhash.files.shards import places
    from auxhash.learn.encoder import load

    if scheduler is not None or places.is_pattern(features):
        if reading.own is not None or reading.header is not None:
            raise ValueError("--features and --header are not for many .parquet or .npy files")
        encode_many(model, features, output, scheduler, (reading.ids, reading.label))
        return
    made_from, suffixes = (model, features), codefiles.SUFFIXES
    path = inputs.output_path(output, kinds.CODES, *made_from, suffixes=suffixes, force=force)
    hasher = load(model)
    points = inputs.points_for(hasher, features, reading)
    n, n_bits, fingerprint = len(points), hasher.n_bits, hasher.fingerprint
    clock = perf_counter()
    with new_bar(disable=as_json()) as bar:
        task = bar.add_task("points", total=n, stage="encoding")

        def encoded() -> "Iterator[Packed]":
            for chunk in points.chunks():
                yield hasher.encode(chunk)
                bar.advance(task, len(chunk))

        codefiles.write(path, n, n_bits, fingerprint, encoded())
    seconds = perf_counter() - clock
    result = {"codes": output, "points": n, "bits": n_bits, "bytes": -(-n_bits // 8)}
    result["fingerprint"] = fingerprint
    message = (
        f"{output}: {count(n, 'code')} of {count(n_bits, 'bit')} "
        f"({count(-(-n_bits // 8), 'byte')} each) in {number(seconds)} s"
    )
    if n_bits % 8 and path.suffix == ".npy":
        message += f"; where they are read, --bits {n_bits} leaves out the padding"
    show({**result, "seconds": seconds}, message)


def encode_many(
    model: str, pattern: str, output: str, scheduler: str | None, columns: tuple[str, str]
) -> None:
    """Encode the files that match the pattern, one by one, here or on a cluster."""
    from auxhash.cli import inputs
    from auxhash.compute.bars import new_bar
    from auxhash.files.shards import Folder, Here
    from auxhash.files.shards.reading import Columns
    from auxhash.learn.encoder import load

    hasher = load(model, None if scheduler is None else 1)  # a cluster's threads have a file each
    inputs.names_are_checked_here()
    folder = Folder(pattern, output, hasher, Columns(*columns))
    clock = perf_counter()
    with new_bar(disable=as_json()) as bar, _runner(scheduler) as runner:
        task = bar.add_task("points", total=None, stage="looking")
        done = folder.encode(
            runner or Here(),
            lambda total, before: bar.update(task, total=total, completed=before, stage="encoding"),
            lambda points: bar.advance(task, points),
        )
    seconds, width = perf_counter() - clock, -(-hasher.n_bits // 8)
    result = {"codes": output, "files": done.files, "encoded": done.encoded}
    result |= {"points": done.points, "bits": hasher.n_bits, "bytes": width}
    result["fingerprint"] = hasher.fingerprint
    message = (
        f"{output}: {count(done.points, 'code')} of {count(hasher.n_bits, 'bit')} in "
        f"{count(done.files, 'file')}, {done.encoded} of them encoded now, in {number(seconds)} s"
    )
    show({**result, "seconds": seconds}, message)


@contextmanager
def _runner(scheduler: str | None) -> Iterator["Fleet | None"]:
    """The workers of a cluster, if one is asked for; its errors are the user's."""
    if scheduler is None:
        yield None
        return
    from auxhash.dask import ClusterError
    from auxhash.files.shards.fleet import fleet_at

    try:
        with fleet_at(scheduler, context.current().n_jobs) as fleet:
            yield fleet
    except ClusterError as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.argument("model")
@click.option("--onnx", "output", required=True, metavar="FILE", help="The .onnx file to write.")
@force_option
@json_option
def export(model: str, output: str, force: bool) -> None:
    """Export MODEL to ONNX: raw features in, packed codes out.

    \b
    Example:
      auxhash export model.safetensors --onnx model.onnx
    """
    from auxhash.cli import inputs, kinds
    from auxhash.learn.encoder import load

    path = inputs.output_path(output, kinds.GRAPH, model, force=force)
    loaded = load(model)
    loaded.export_onnx(path)
    result = {"onnx": output, "features": loaded.n_features, "bits": loaded.n_bits}
    bits = count(loaded.n_bits, "bit")
    message = f"{output}: features (n, {loaded.n_features}) to packed codes of {bits}"
    show(result, message)
