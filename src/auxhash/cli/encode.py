"""encode and export: from a model to codes, or to ONNX."""

from time import perf_counter

import click

from auxhash.cli.output import (
    header_option,
    jobs_option,
    json_option,
    label_option,
    number,
    own_feature_option,
    show,
)
from auxhash.words import count


@click.command()
@click.argument("model")
@click.argument("features")
@click.option("-o", "--output", required=True, metavar="CODES", help="The .npy file to write.")
@own_feature_option
@label_option
@header_option
@jobs_option
@json_option
def encode(
    model: str,
    features: str,
    output: str,
    own: str | None,
    label: str,
    header: bool | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Encode FEATURES with MODEL into packed codes.

    CODES is a uint8 array with one row per point; bit k of a code is bit k % 8 of byte k // 8.
    Files in .npy, .parquet, .fvecs and .bvecs, and folders of pictures, may be larger than memory:
    they are encoded chunk by chunk.

    \b
    Examples:
      auxhash encode model.safetensors features.npy -o codes.npy
      auxhash encode photos.safetensors photos -o photos.npy
      auxhash encode colours.safetensors photos --features mine:colours -o colours.npy
    """
    from auxhash.cli import inputs
    from auxhash.datasets.files.rows import write_npy
    from auxhash.models.encoder import load

    path = inputs.output_path(output, model, features, suffix=".npy")
    hasher = load(model)
    hasher.n_jobs = jobs
    found = inputs.points_for(hasher, features, own, label, header)
    shape = len(found), -(-hasher.n_bits // 8)
    clock = perf_counter()
    write_npy(path, shape, (hasher.encode(chunk) for chunk in found.chunks()))
    seconds = perf_counter() - clock
    result = {"codes": output, "points": shape[0], "bits": hasher.n_bits, "bytes": shape[1]}
    said = (
        f"{output}: {count(shape[0], 'code')} of {count(hasher.n_bits, 'bit')} "
        f"({count(shape[1], 'byte')} each) in {number(seconds)} s"
    )
    if hasher.n_bits % 8:
        said += f"; where they are read, --bits {hasher.n_bits} leaves out the padding"
    show({**result, "seconds": seconds}, as_json, said)


@click.command()
@click.argument("model")
@click.option("--onnx", "output", required=True, metavar="FILE", help="The .onnx file to write.")
@json_option
def export(model: str, output: str, as_json: bool) -> None:
    """Export MODEL to ONNX: raw features in, packed codes out.

    \b
    Example:
      auxhash export model.safetensors --onnx model.onnx
    """
    from auxhash.cli import inputs
    from auxhash.models.loading import load
    from auxhash.models.onnxgraph import export_onnx

    path = inputs.output_path(output, model)
    hasher = load(model)
    export_onnx(hasher, path)
    result = {"onnx": output, "features": hasher.n_features_in_, "bits": hasher.n_bits}
    bits = count(hasher.n_bits, "bit")
    said = f"{output}: features (n, {hasher.n_features_in_}) to packed codes of {bits}"
    show(result, as_json, said)
