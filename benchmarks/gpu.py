"""Training, search and metrics on a GPU, each beside the processor of the same machine.

python -m benchmarks gpu [--rows ROW ...] [--devices cuda cpu] [--repeats N]
                         [--results FILE] [--tables]

Rows are `train-10k` (CIFAR GIST, 48 bits), `train-58k` (32 bits), `train-1m` (Infinite MNIST),
`train-10m` (ten shifts of each of its images by a pixel), `agree` (L(h) and precision of five seeds
on both), `search` (10,000 queries over 10,000,000 codes of 64 bits, k = 100), `metrics` (all curves
of the same). Times are the best of N after a first run that compiles, those of `train-10m` of one
run alone, with what was compiled before; the GPU is waited for.
Results are JSON lines, and a row that is there is not measured again; `--tables` measures nothing,
and writes docs/tables/gpu.md and gpu-agreement.md.
"""

import argparse
import contextlib
import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.datasets import load_digits

from auxhash import HammingIndex, MACHash
from auxhash.compute import device as devices
from auxhash.experiments import datasets
from auxhash.search import metrics
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables

FILE = RESULTS / "gpu.jsonl"
AIM_SECONDS = {"train-10k": 0.5, "train-58k": 0.6, "train-1m": 10.0, "train-10m": 180.0}
COMPILING_POINTS = 1_000  # with which kernels of the processor are compiled
LARGE_POINTS = 2_000_000  # of more there is one run, with what others have compiled
SIDE = 28
QUERIES, RANK = 2_000, 100
CODES, ASKED, BITS = 10_000_000, 10_000, 64
N_SEEDS = 5


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    if small:
        _run_small()
        return
    asked = _options(options)
    console = Console()
    if not asked.tables:
        done = known(asked.results, lambda record: record["name"])
        for row in asked.rows:
            for name, measure in ROWS[row](asked):
                if name not in done:
                    record = {"name": name, "row": row, **measure()}
                    append(asked.results, record)
                    console.print(_line(record), highlight=False)
    records = read(asked.results)
    texts = {"gpu.md": table(records), "gpu-agreement.md": agreement(records)}
    print(*texts.values(), sep="\n")
    if asked.tables:
        write_tables(texts)


def _run_small() -> None:
    """One training of some digits, on a GPU where there is one."""
    X, y = load_digits(return_X_y=True)
    record = trained(
        X[:200], y[:200], X[200:300], y[200:300], 8, devices.get("auto").name, False, 1
    )
    print(f"train-small, {record['device']}: {record['seconds']:.2f} s; ratio to itself 1")


def _trainings(row: str, data: Callable[[], tuple[Any, ...]], bits: int, asked: Any) -> Any:
    """A cell for MAC alone and one with refinement; on the processor the latter, the default."""
    for device in ("cuda", "cpu"):
        for refined in (False, True):
            kind = "MAC, refined" if refined else "MAC"
            if device not in asked.devices or (device == "cpu" and not refined):
                continue

            def measure(device: str = device, refined: bool = refined) -> Record:
                repeats = asked.repeats if device == "cuda" else 1
                return trained(*data(), bits, device, refined, repeats)

            yield f"{row}, {kind}, {device}", measure


def trained(
    X: NDArray[Any],
    y: NDArray[Any],
    queries: NDArray[Any],
    labels: NDArray[Any],
    bits: int,
    device: str,
    refined: bool,
    repeats: int,
    seed: int = 0,
) -> Record:
    """Time, L(h) and precision of one training."""
    settings: dict[str, Any] = {} if refined else {"refine": None}
    large = len(X) > LARGE_POINTS
    if device == "cpu":  # a GPU has a first run of its own
        MACHash(bits, random_state=seed, **settings).fit(X[:COMPILING_POINTS], y[:COMPILING_POINTS])
    best, model, compiled = math.inf, None, device == "cpu" or large
    for _ in range(1 if large else repeats + (device == "cuda")):  # the first one compiles
        began = time.perf_counter()
        hasher = MACHash(bits, random_state=seed, device=device, **settings).fit(X, y)
        waited_for()
        took = time.perf_counter() - began
        if compiled and took < best:
            best, model = took, hasher
        compiled = True
    assert model is not None
    steps = model.history_
    codes = model.encode(queries)
    precision = metrics.precision_at_k(codes, model.codes_, labels, y, RANK, device=model.device_)
    return {
        "points": len(X),
        "features": X.shape[1],
        "bits": bits,
        "device": model.device_,
        "seconds": best,
        "z_seconds": sum(s.z_seconds for s in steps),
        "h_seconds": sum(s.h_seconds for s in steps),
        "refine_seconds": sum(s.seconds for s in steps if s.mu == math.inf),
        "iterations": sum(s.mu < math.inf for s in steps) - 1,
        "loss": model.loss_,
        "precision": precision,
    }


def waited_for() -> None:
    """Wait for all that the GPU is still to do."""
    with contextlib.suppress(ImportError, RuntimeError):
        devices.get("cuda").module.cuda.Device().synchronize()


@cache
def gist(n: int) -> tuple[Any, ...]:
    data = datasets.load("cifar10-gist", n_train=min(n, 50_000), n_query=QUERIES)
    points = data.base if n > len(data.train.X) else data.train
    return points.X[:n], points.y[:n], data.query.X, data.query.y


@cache
def digits(n: int) -> tuple[Any, ...]:
    """n images of Infinite MNIST and queries; beyond a million, shifted by a pixel."""
    n_made = min(n, 1_000_000)
    data = datasets.load("infinite-mnist", n_train=n_made, n_base=n_made, n_query=QUERIES)
    X, y = data.base.X, data.base.y
    if n > n_made:
        moved_all = np.empty((n, SIDE * SIDE), np.uint8)
        shifts = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)] + [(0, 2)]
        for number, shift in enumerate(shifts[: n // n_made]):
            moved = np.roll(X.reshape(n_made, SIDE, SIDE), shift, axis=(1, 2))
            moved_all[number * n_made : (number + 1) * n_made] = moved.reshape(n_made, -1)
        X, y = moved_all, np.tile(y, n // n_made)
    return X, y, data.query.X, data.query.y


def _agreement(asked: Any) -> Any:
    """Loss and precision of five seeds, on each device."""
    for seed in range(N_SEEDS):
        for device in ("cuda", "cpu"):
            for refined in (False, True):
                kind = "MAC, refined" if refined else "MAC"
                if device not in asked.devices:
                    continue

                def measure(
                    device: str = device, refined: bool = refined, seed: int = seed
                ) -> Record:
                    record = trained(*gist(10_000), 32, device, refined, 1, seed)
                    return {**record, "seed": seed}

                yield f"agree, {kind}, {device}, seed {seed}", measure


@cache
def made_codes() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Codes of 64 bits as uneven as learnt ones, whose bits depend on each other."""
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((24, BITS)).astype(np.float32)
    parts = []
    for start in range(0, CODES + ASKED, 1 << 20):
        n = min(1 << 20, CODES + ASKED - start)
        outputs = rng.standard_normal((n, 24), np.float32) @ mix
        parts.append(np.packbits(outputs > 0, axis=1, bitorder="little"))
    packed = np.concatenate(parts)
    return packed[:CODES], packed[CODES:]


def _search(options: Any) -> Any:
    for device in ("cuda", "cpu"):
        if device not in options.devices:
            continue

        def measure(device: str = device) -> Record:
            base, queries = made_codes()
            index = HammingIndex(BITS, device=device).add(base)
            asked = queries if device == "cuda" else queries[:500]
            hits = index.search(asked, RANK)
            seconds = _best(lambda: index.search(asked, RANK), options.repeats)
            few = HammingIndex(BITS).add(base).search(queries[:20], RANK)
            same = all(np.array_equal(a[:20], b) for a, b in zip(hits, few, strict=True))
            return {
                "points": CODES,
                "bits": BITS,
                "device": device,
                "queries": len(asked),
                "seconds": seconds,
                "right": same,
            }

        yield f"search, {device}", measure


def _metrics(options: Any) -> Any:
    for device in ("cuda", "cpu"):
        if device not in options.devices:
            continue

        def measure(device: str = device) -> Record:
            base, queries = made_codes()
            asked = queries if device == "cuda" else queries[:200]
            labels = np.arange(CODES) % 10, np.arange(len(asked)) % 10

            def count() -> Any:
                return metrics.distance_histogram(asked, base, labels[1], labels[0], device=device)

            count()
            return {
                "points": CODES,
                "bits": BITS,
                "device": device,
                "queries": len(asked),
                "seconds": _best(count, options.repeats),
            }

        yield f"metrics, {device}", measure


def _best(call: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        waited_for()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


ROWS: dict[str, Callable[[Any], Any]] = {
    "train-10k": lambda asked: _trainings("train-10k", lambda: gist(10_000), 48, asked),
    "train-58k": lambda asked: _trainings("train-58k", lambda: gist(58_000), 32, asked),
    "agree": _agreement,
    "search": _search,
    "metrics": _metrics,
    "train-1m": lambda asked: _trainings("train-1m", lambda: digits(1_000_000), 32, asked),
    "train-10m": lambda asked: _trainings("train-10m", lambda: digits(10_000_000), 32, asked),
}


def table(records: Sequence[Record]) -> str:
    """Times, as a table of Markdown."""
    head = ["", "s", "Z step", "h step", "refining", "L(h)", f"precision at {RANK}", "aim"]
    rows = []
    for record in records:
        if record["row"] == "agree":
            continue
        parts = [record.get(name) for name in ("z_seconds", "h_seconds", "refine_seconds")]
        asked = f", {record['queries']:,} queries" if "queries" in record else ""
        alone = record["device"] == "cuda" and "refined" not in record["name"]
        aimed = alone and record["row"] in AIM_SECONDS
        rows.append(
            [
                record["name"] + asked,
                f"{record['seconds']:.2f}",
                *("" if part is None else f"{part:.2f}" for part in parts),
                f"{record['loss']:.4g}" if "loss" in record else "",
                f"{record['precision']:.3f}" if "precision" in record else "",
                f"{AIM_SECONDS[record['row']]:g}" if aimed else "",
            ]
        )
    return markdown(head, rows)


def agreement(records: Sequence[Record]) -> str:
    """Mean and range over seeds of L(h) and precision, and the GPU's relative to the CPU's."""
    head = ["", "seeds", "L(h), cuda over cpu", "precision, cuda", "precision, cpu"]
    rows = []
    for kind in ("MAC", "MAC, refined"):
        by_device = {
            device: {
                record["seed"]: record
                for record in records
                if record["name"].startswith(f"agree, {kind}, {device},")
            }
            for device in ("cuda", "cpu")
        }
        seeds = sorted(set(by_device["cuda"]) & set(by_device["cpu"]))
        if not seeds:
            continue
        ratio = [by_device["cuda"][s]["loss"] / by_device["cpu"][s]["loss"] for s in seeds]
        precision = [
            [by_device[device][s]["precision"] for s in seeds] for device in ("cuda", "cpu")
        ]
        cells = [f"{np.mean(ratio):.4f} ({min(ratio):.4f} to {max(ratio):.4f})"]
        cells += [f"{np.mean(own):.3f} ({min(own):.3f} to {max(own):.3f})" for own in precision]
        rows.append([kind, str(len(seeds)), *cells])
    return markdown(head, rows)


def _line(record: Record) -> str:
    text = f"{record['name']}: {record['seconds']:.3f} s"
    if "loss" in record:
        text += f", L(h) {record['loss']:.4g}, precision {record['precision']:.3f}"
    return text


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks gpu")
    parser.add_argument("--rows", nargs="+", choices=[*ROWS], default=list(ROWS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--devices", nargs="+", choices=["cuda", "cpu"], default=["cuda", "cpu"])
    return parsed(parser, options, FILE)
