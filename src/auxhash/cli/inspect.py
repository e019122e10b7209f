"""inspect: what a file is, how it was made, and whether its codes use all their bits."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.output import bits_option, json_option, number, show
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT = 8  # lines of a curve
MAX_COLUMNS = 60  # of a curve


@click.command()
@click.argument("file")
@click.option("--model", help="Compare codes with those of this model's training points.")
@bits_option
@json_option
def inspect(file: str, model: str | None, bits: int | None, as_json: bool) -> None:
    """Tell what FILE is: a model, codes or an index.

    For a model: how it was trained, with the curve of its loss. For codes: how balanced the bits
    are (+1 in 1/2 of the codes is best) and how many are effective (the entropy of the codes); with
    --model, also the same for the codes of its training points.

    \b
    Examples:
      auxhash inspect model.safetensors
      auxhash inspect codes.safetensors --model model.safetensors
      auxhash inspect codes.index
    """
    from auxhash.cli.kinds import CODES, kind_of
    from auxhash.files.writing import check_regular
    from auxhash.search.index.named import is_index

    path = Path(file).expanduser()
    check_regular(path, "what can be inspected")
    if is_index(path):
        _inspect_index(file, as_json)
    elif path.suffix == ".npy" or kind_of(path) == CODES:
        _inspect_codes(file, model, bits, as_json)
    else:
        _inspect_model(file, as_json)


def _inspect_model(path: str, as_json: bool) -> None:
    from auxhash.learn.summary import summary

    model = summary(path)
    parameters = {
        name: _describe(value)
        for name, value in model.parameters.items()
        if name not in ("n_jobs", "verbose")
    }
    bits = _about_bits(model.codes, model.n_bits)
    result = {
        "file": path,
        "kind": model.kind,
        "package": model.package,
        "features": model.n_features,
        "bits": model.n_bits,
        "image_feature": model.image_feature,
        "points": len(model.codes),
        "fingerprint": model.fingerprint,
        "parameters": parameters,
        "training_codes": bits,
        "loss": model.loss,
        "history": [_of_step(step) for step in model.history],
    }
    facts = [
        f"{path}: a model of {model.kind}, written by auxhash {model.package}",
        f"{count(model.n_features, 'feature')} to {count(model.n_bits, 'bit')}, "
        f"learnt from {count(len(model.codes), 'point')} (fingerprint {model.fingerprint[:12]})",
    ]
    if model.image_feature:
        facts.append(f"feature of pictures: {model.image_feature}")
    facts.append(", ".join(f"{name}={value}" for name, value in parameters.items()))
    facts.append("")
    facts += ["codes of the training points", *_bit_lines(bits)]
    if model.history:
        facts += ["", *_history_lines(model.history)]
    show(result, as_json, "\n".join(facts))


def _of_step(step: Any) -> dict[str, Any]:
    """The values of a step, without its time, which models do not keep."""
    from auxhash.model.fitted import TIMES

    values = step._asdict() if hasattr(step, "_asdict") else vars(step)
    return {name: value for name, value in values.items() if name not in TIMES}


def _history_lines(history: Sequence[Any]) -> list[str]:
    if hasattr(history[0], "rank"):  # of NeighborHash
        lines = [f"typical rank of a neighbour over {count(history[-1].step, 'step')}"]
        return lines + curve([step.rank for step in history])
    if not hasattr(history[0], "accepted"):  # of an autoencoder
        lines = [f"E(h, f) over {count(len(history), 'iteration')}"]
        return lines + curve([step.error for step in history])
    last = history[-1]
    finite = [step.mu for step in history if step.mu < math.inf]
    refined = len(history) - len(finite)
    how = f"mu up to {finite[-1]:.3g}"
    if refined:
        how += f", then refined in {count(refined, 'step')}"
    accepted = sum(step.accepted for step in history)
    iterations = count(len(history) - 1, "iteration")
    lines = [f"L(h) over {iterations}; the two-step solution is at 0"]
    lines += curve([step.loss for step in history])
    lines.append(
        f"{how}, {accepted} of {count(len(history), 'step')} accepted; codes and hash function "
        + ("agree" if not last.violations else f"differ in {count(last.violations, 'bit')}")
    )
    return lines


def _inspect_codes(path: str, model: str | None, bits: int | None, as_json: bool) -> None:
    from auxhash.cli import inputs
    from auxhash.compute.fingerprint import match

    hasher = None
    if model is not None:
        from auxhash.learn.loading import load

        hasher = load(model)
        bits = hasher.n_bits if bits is None else bits
    packed, n_bits, fingerprint = inputs.codes(path, bits)
    if hasher is not None:
        match(path, fingerprint, f"the codes of {model}", hasher.fingerprint)
    now = _about_bits(packed, n_bits)
    result = {"file": path, "kind": "codes", "codes": len(packed), "bits": n_bits}
    result |= {"fingerprint": fingerprint, **now}
    lines = [f"{path}: {count(len(packed), 'code')} of {count(n_bits, 'bit')}"]
    lines += [_made_by(fingerprint), *_bit_lines(now)]
    if hasher is not None:
        before = _about_bits(hasher.codes_, n_bits)
        result["training_codes"] = before
        moved = [abs(a - b) for a, b in zip(now["balance"], before["balance"], strict=True)]
        most = max(range(n_bits), key=moved.__getitem__)
        lines += [
            "",
            f"at training time, {count(len(hasher.codes_), 'code')}",
            *_bit_lines(before),
            "",
        ]
        lines.append(
            f"bit {most} changed most: +1 in {before['balance'][most]:.2f} of the codes then, "
            f"in {now['balance'][most]:.2f} now"
        )
    show(result, as_json, "\n".join(lines))


def _inspect_index(path: str, as_json: bool) -> None:
    from auxhash.search.index import HammingIndex, NamedIndex, load

    loaded = load(path)
    named = isinstance(loaded, NamedIndex)
    index = loaded.index if isinstance(loaded, NamedIndex) else loaded
    exact = isinstance(index, HammingIndex)
    result: dict[str, Any] = {"file": path, "kind": "index" if exact else "approximate index"}
    result |= {"codes": len(index), "bits": index.n_bits, "named": named}
    result["fingerprint"] = index.fingerprint
    lines = [
        f"{path}: {'an' if exact else 'an approximate'} index of {count(len(index), 'code')} of "
        f"{count(index.n_bits, 'bit')}" + (", called by names" if named else ""),
        _made_by(index.fingerprint),
    ]
    if len(index) and isinstance(index, HammingIndex):
        bits = _about_bits(index.packed, index.n_bits)
        result |= bits
        lines += _bit_lines(bits)
    show(result, as_json, "\n".join(lines))


def _made_by(fingerprint: str | None) -> str:
    if fingerprint is None:
        return "  it does not say which model made the codes"
    return f"  made by the model of fingerprint {fingerprint}"


def _about_bits(packed: "Packed", n_bits: int) -> dict[str, Any]:
    from auxhash.search import metrics

    return {
        "utilization": metrics.code_utilization(packed),
        "utilization_bound": metrics.utilization_bound(n_bits, len(packed)),
        "balance": metrics.bit_balance(packed, n_bits).tolist(),
    }


def _bit_lines(bits: dict[str, Any]) -> list[str]:
    balance = bits["balance"]
    bars = "".join(BLOCKS[round(share * 8)] for share in balance)
    constant = sum(share in (0, 1) for share in balance)
    constant_bits = f", {constant} of them constant" if constant else ""
    return [
        f"  {bits['utilization']:.2f} effective bits of at most {bits['utilization_bound']:.2f}",
        f"  +1 in {min(balance):.2f} to {max(balance):.2f} of the codes{constant_bits}",
        *(f"  {bars[at : at + 64]}" for at in range(0, len(bars), 64)),
    ]


def curve(values: Sequence[float]) -> list[str]:
    """Bars in eighths of a line, with an axis; one column per value, or several values if many."""
    shown = [value for value in values if math.isfinite(value)]
    step = -(-len(shown) // MAX_COLUMNS)
    shown = [min(shown[at : at + step]) for at in range(0, len(shown), step)]
    low, high = min(shown), max(shown)
    eighths = 8 * HEIGHT - 1
    heights = [1 + round(eighths * (v - low) / ((high - low) or 1)) for v in shown]
    width = max(len(number(low)), len(number(high)))
    lines = []
    for row in reversed(range(HEIGHT)):
        mark = number(high) if row == HEIGHT - 1 else number(low) if row == 0 else ""
        bars = "".join(BLOCKS[min(8, max(0, height - 8 * row))] for height in heights)
        lines.append(f"  {mark:>{width}} ┤{bars}")
    return lines


def _describe(value: Any) -> Any:
    """A parameter in short: an array by its shape."""
    if isinstance(value, tuple):
        return tuple(_describe(part) for part in value)
    if hasattr(value, "shape"):
        return f"array {tuple(value.shape)}"
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)
