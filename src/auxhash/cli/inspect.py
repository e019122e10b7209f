"""inspect: what a file is, how it was made, and whether its codes use all their bits."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.options import Reading, bits_option, json_option
from auxhash.cli.output import number, show
from auxhash.compute.words import count

if TYPE_CHECKING:
    from auxhash.codes import Packed
    from auxhash.compute.arrays import AnyArray
    from auxhash.model.model import Model

BLOCKS = " ▁▂▃▄▅▆▇█"
CURVE_LINES = 8
MAX_CURVE_COLUMNS = 60
POINT_SUFFIXES = (".npz", ".csv", ".parquet", ".fvecs", ".bvecs")  # files of points alone


@click.command()
@click.argument("file")
@click.option("--model", help="Compare codes, or points, with this model's training points.")
@bits_option
@json_option
def inspect(file: str, model: str | None, bits: int | None) -> None:
    """Tell what FILE is: a model, codes, an index or, with --model, points.

    For a model: how it was trained, with the curve of its loss. For codes: how balanced the bits
    are (+1 in 1/2 of the codes is best) and how many are effective (the entropy of the codes); with
    --model, also the same for the codes of its training points. For points: the same of their
    codes, and which share of their nearest neighbours these codes find.

    \b
    Examples:
      auxhash inspect model.safetensors
      auxhash inspect codes.safetensors --model model.safetensors
      auxhash inspect new.npy --model model.safetensors
      auxhash inspect codes.index
    """
    from auxhash.cli.kinds import CODES, kind_of
    from auxhash.files.writing import check_regular
    from auxhash.search.index.named import is_index

    path = Path(file).expanduser()
    check_regular(path, "what can be inspected")
    if is_index(path):
        _inspect_index(file)
    elif (
        path.suffix == ".npy"
        or (model is not None and path.suffix in POINT_SUFFIXES)
        or kind_of(path) == CODES
    ):
        _inspect_codes(file, model, bits)
    else:
        _inspect_model(file)


def _inspect_model(path: str) -> None:
    from auxhash.learn.encoder import load
    from auxhash.model.fitted import stored_history

    model, history = load(path), [SimpleNamespace(**step) for step in stored_history(path)]
    learnt, bits = model.learnt, _about_training(model)
    size = Path(path).expanduser().stat().st_size
    result = {
        "file": path,
        "kind": learnt.method,
        "package": model.version,
        "fingerprint": model.fingerprint,
        "features": model.n_features,
        "bits": model.n_bits,
        "prefixes": list(model.prefixes),
        "tables": model.table_function is not None,
        "bytes": size,
        "image_feature": model.image_feature,
        "points": learnt.n_points,
        "data": learnt.data,
        "parameters": learnt.parameters,
        "expected_recall": [vars(each) for each in learnt.expected],
        "training_codes": bits,
        "loss": learnt.loss,
        "history": [vars(step) for step in history],
    }
    facts = [
        f"{path}: a model of {learnt.method}, written by auxhash {model.version}, {size:,} bytes",
        f"fingerprint {model.fingerprint}, which its codes carry",
        f"{count(model.n_features, 'feature')} to {count(model.n_bits, 'bit')}, "
        f"learnt from {count(learnt.n_points, 'point')} (data {learnt.data[:12]})",
    ]
    if model.table_function is not None:
        facts.append("tables of queries: search --by tables")
    if model.prefixes:
        facts.append(f"codes of their own: the first {', '.join(map(str, model.prefixes))} bits")
    if model.image_feature:
        facts.append(f"feature of pictures: {model.image_feature}")
    facts.append(", ".join(f"{name}={value}" for name, value in learnt.parameters.items()))
    if learnt.expected:
        facts.append(f"recall to expect of other points: {learnt.expected[-1]}")
    if bits is not None:
        facts += ["", "codes of the training points", *_bit_lines(bits)]
    if history:
        facts += ["", *_history_lines(history)]
    show(result, "\n".join(facts))


def _about_training(model: "Model") -> dict[str, Any] | None:
    """The figures of `_about_bits` for the training points, if the model has them."""
    learnt = model.learnt
    if learnt.balance is None:
        return None
    bound = min(float(model.n_bits), math.log2(learnt.n_points))
    balance = learnt.balance.tolist()
    return {"utilization": learnt.utilization, "utilization_bound": bound, "balance": balance}


def _history_lines(history: Sequence[SimpleNamespace]) -> list[str]:
    if hasattr(history[0], "rank"):  # of NeighborHash
        lines = [f"typical rank of a neighbour over {count(history[-1].step, 'step')}"]
        return lines + curve([step.rank for step in history])
    if hasattr(history[0], "recall"):  # of QueryTables
        steps, shares = count(history[-1].step, "step"), [step.recall for step in history]
        if not shares[0]:
            return [f"{steps}, without queries held out"]
        lines = [f"share of relevant rows among the first 10 over {steps}"]
        return lines + curve([ten for _, ten, _ in shares])
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


def _inspect_codes(path: str, model: str | None, bits: int | None) -> None:
    from auxhash.cli import inputs
    from auxhash.compute.fingerprint import match

    loaded, X = None, None
    if model is not None:
        from auxhash.learn.encoder import load

        loaded = load(model)
        bits = loaded.n_bits if bits is None else bits
    try:
        if Path(path).suffix in POINT_SUFFIXES:
            raise inputs.NoCodesError
        packed, n_bits, fingerprint = inputs.codes(path, bits)
    except inputs.NoCodesError:
        if loaded is None:
            raise
        X = inputs.points_for(loaded, path, Reading()).all()
        packed, n_bits, fingerprint = loaded.encode(X), loaded.n_bits, loaded.fingerprint
    if loaded is not None:
        match(path, fingerprint, f"the codes of {model}", loaded.fingerprint)
    now = _about_bits(packed, n_bits)
    kind = "codes" if X is None else "points"
    result = {"file": path, "kind": kind, "codes": len(packed), "bits": n_bits}
    result |= {"fingerprint": fingerprint, **now}
    lines = [f"{path}: {count(len(packed), 'code')} of {count(n_bits, 'bit')}"]
    lines += [_made_by(fingerprint), *_bit_lines(now)]
    if loaded is not None:
        before = _about_training(loaded)
        if before is None:
            raise ValueError(f"{model} says nothing of the codes of its training points")
        result["training_codes"] = before
        moved = [abs(a - b) for a, b in zip(now["balance"], before["balance"], strict=True)]
        most = max(range(n_bits), key=moved.__getitem__)
        lines += [
            "",
            f"at training time, {count(loaded.learnt.n_points, 'code')}",
            *_bit_lines(before),
            "",
        ]
        lines.append(
            f"bit {most} changed most: +1 in {before['balance'][most]:.2f} of the codes then, "
            f"in {now['balance'][most]:.2f} now"
        )
        if X is not None:
            facts, line = _recall_of(loaded, X)
            result |= facts
            lines.append(line)
    show(result, "\n".join(lines))


def _recall_of(model: "Model", X: "AnyArray") -> tuple[dict[str, object], str]:
    """Recall of these points among themselves, beside what the model promises if it does."""
    from auxhash.search.metrics.recall import drift, expected_recall

    metric = model.metric or "cosine"
    tables = None if model.table_function is None else model.tables
    now = expected_recall(model.encode, model.decision_function, X, metric=metric, tables=tables)
    if not now:
        return {}, f"recall is not measured: {count(len(X), 'point')} are too few"
    facts: dict[str, object] = {"recall": [vars(each) for each in now]}
    change = drift(model.learnt.expected, now)
    if change is None:
        return facts, f"recall of these points: {now[-1]}"
    facts |= {"by": change.by, "change": change.change, "lower": change.lower}
    return facts, str(change)


def _inspect_index(path: str) -> None:
    from auxhash.search.index import HammingIndex, NamedIndex, load

    loaded = load(path)
    named = isinstance(loaded, NamedIndex)
    index = loaded.index if isinstance(loaded, NamedIndex) else loaded
    exact = isinstance(index, HammingIndex)
    result: dict[str, object] = {"file": path, "kind": "index" if exact else "approximate index"}
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
    show(result, "\n".join(lines))


def _made_by(fingerprint: str | None) -> str:
    if fingerprint is None:
        return "  it does not say which model made the codes"
    return f"  made by the model of fingerprint {fingerprint}"


def _about_bits(packed: "Packed", n_bits: int) -> dict[str, Any]:
    from auxhash.codes import shared
    from auxhash.search import metrics

    return {
        "coincide": shared(packed),
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
        *(f"  {line}" for line in [bits.get("coincide")] if line),
        f"  {bits['utilization']:.2f} effective bits of at most {bits['utilization_bound']:.2f}",
        f"  +1 in {min(balance):.2f} to {max(balance):.2f} of the codes{constant_bits}",
        *(f"  {bars[at : at + 64]}" for at in range(0, len(bars), 64)),
    ]


def curve(values: Sequence[float]) -> list[str]:
    """Bars in eighths of a line, with an axis; one column per value, or several values if many."""
    shown = [value for value in values if math.isfinite(value)]
    step = -(-len(shown) // MAX_CURVE_COLUMNS)
    shown = [min(shown[at : at + step]) for at in range(0, len(shown), step)]
    low, high = min(shown), max(shown)
    eighths = 8 * CURVE_LINES - 1
    heights = [1 + round(eighths * (v - low) / ((high - low) or 1)) for v in shown]
    width = max(len(number(low)), len(number(high)))
    lines = []
    for row in reversed(range(CURVE_LINES)):
        mark = number(high) if row == CURVE_LINES - 1 else number(low) if row == 0 else ""
        bars = "".join(BLOCKS[min(8, max(0, height - 8 * row))] for height in heights)
        lines.append(f"  {mark:>{width}} ┤{bars}")
    return lines
