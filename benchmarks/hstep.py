"""Both forms of MAC's h step side by side, and both readings of the paper's mu: docs/verdicts.md.

python -m benchmarks hstep [--ways WAY ...] [--bits N ...] [--functions NAME ...] [--seeds N ...]
    [--points N] [--results FILE] [--tables]

2,000 (or N) of CIFAR's GIST features with labels to learn from, 58,000 to search, 2,000 queries.
"MACcut" is `auxhash.paper`'s, with validation and without; "to the letter" has the mu_1 of eq. (3)
as it stands, 0.3 / b²; "MACHash" is the package's default, with refinement and without. What was
measured stands in a file of JSON lines, docs/results/hstep.jsonl, and is not measured again.
`--tables` writes docs/tables/hstep.md out of it.
"""

import argparse
import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from auxhash import MACHash
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.learn import paper
from auxhash.mac import hashfunctions, presets
from auxhash.mac.loop import H_STEPS, HStep
from auxhash.search import metrics
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables

FILE, TABLE = RESULTS / "hstep.jsonl", "hstep.md"
RANK = 100
WAYS = (
    *(
        f"MACcut, {order}{change}"
        for order in ("one order", "random order")
        for change in ("", ", no validation", ", to the letter")
    ),
    *("MACHash, no refinement", "MACHash, refined"),
)
KEY = ("way", "function", "bits", "points", "seed", "h_step")
HEAD = ("way", "function", "bits", "points", "seeds", "L(h) falls by, monotone", "plain", "larger")
HEAD += (f"precision at {RANK}, two-step", "monotone", "plain", "higher", "last is lowest")
HEAD += ("iterations, monotone", "plain")


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks hstep")
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=list(WAYS))
    parser.add_argument("--bits", type=int, nargs="+", default=[16])
    parser.add_argument("--functions", nargs="+", default=["linear"])
    parser.add_argument("--points", type=int, default=2_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    asked = parsed(parser, options, FILE)
    if small:
        data = datasets.load("digits", n_train=150, n_base=400, n_query=50)
        print(table([measured(data, WAYS[-2], "linear", 8, 0, form, (5, 20)) for form in H_STEPS]))
    elif asked.tables:
        write_tables({TABLE: table(read(asked.results))})
    else:
        measure(asked)


def measure(asked: argparse.Namespace) -> None:
    done = known(asked.results, lambda record: tuple(record[name] for name in KEY))
    data = datasets.load("cifar10-gist", n_train=asked.points)
    for seed, function, bits, way, form in product(
        asked.seeds, asked.functions, asked.bits, asked.ways, H_STEPS
    ):
        if (way, function, bits, asked.points, seed, form) not in done:
            record = measured(data, way, function, bits, seed, form)
            append(asked.results, record)
            print(record, flush=True)


def hasher(way: str, function: str, bits: int, seed: int, h_step: HStep) -> MACHash:
    """Return an estimator that ends with the iterate of lowest L(h)."""
    settings = {"hash_function": function, "random_state": seed, "h_step": h_step}
    settings["iterate"] = "lowest"
    if not way.startswith("MACcut"):
        return MACHash(bits, refine="auto" if way == "MACHash, refined" else None, **settings)
    if way.endswith("no validation"):
        settings["validation"] = None
    if way.endswith("to the letter"):
        settings["mu"] = presets.FIRST_MU_CUT / bits**2
    return paper.maccut(bits, order="fixed" if "one order" in way else "random", **settings)


def measured(
    data: Dataset,
    way: str,
    function: str,
    bits: int,
    seed: int,
    h_step: HStep,
    pairs: tuple[int, int] = (presets.N_SIMILAR, presets.N_DISSIMILAR),
) -> Record:
    """Train, and judge the two-step solution, the iterate of lowest L(h) and the last one."""
    one = hasher(way, function, bits, seed, h_step).set_params(
        n_similar=pairs[0], n_dissimilar=pairs[1]
    )
    one.fit(data.train.X, data.train.y)
    steps = [step for step in one.history_ if step.accepted and math.isfinite(step.mu)]
    start, lowest = steps[0].loss, min(step.loss for step in steps)
    precision = _precision(data, one.hash_function_)
    record = dict(zip(KEY, (way, function, bits, len(data.train), seed, h_step), strict=True))
    record |= {
        "iterations": sum(math.isfinite(step.mu) for step in one.history_) - 1,
        "two_step": {"loss": start, "precision": _precision(data, one.two_step_)},
        "lowest": {"loss": lowest, "precision": precision},
        "last": {"loss": steps[-1].loss, "precision": precision},
        "loss": float(one.loss_),  # refined, where it is
    }
    if steps[-1].loss != lowest:
        one.set_params(iterate="last").fit(data.train.X, data.train.y)
        record["last"]["precision"] = _precision(data, one.hash_function_)
    return record


def _precision(data: Dataset, h: hashfunctions.HashFunction) -> float:
    query, base = (hashfunctions.encoded(h, part.X) for part in (data.query, data.base))
    [share] = metrics.precision_at_k(query, base, data.query.y, data.base.y, k=[RANK])
    return round(float(share), 5)


def table(records: Sequence[Record]) -> str:
    """Markdown: means over the seeds that both forms have, and how often plain is better."""
    runs = {tuple(record[name] for name in KEY): record for record in records}
    rows = []
    cases = dict.fromkeys(key[:4] for key in runs)
    for case in sorted(cases, key=lambda case: (case[3], WAYS.index(case[0]), *case[1:3])):
        pairs = [
            [runs[*case, seed, form] for form in ("monotone", "plain")]
            for seed in sorted({r["seed"] for r in records})
            if all((*case, seed, form) in runs for form in H_STEPS)
        ]
        if pairs:
            rows.append([*case[:3], f"{case[3]:,}", len(pairs), *_cells(pairs)])
    return markdown(HEAD, rows)


def _cells(pairs: Sequence[Sequence[Record]]) -> list[str]:
    """Compare monotone and plain, seed by seed."""
    gains = np.array([[1 - r["loss"] / r["two_step"]["loss"] for r in pair] for pair in pairs])
    shares = np.array([[r["lowest"]["precision"] for r in pair] for pair in pairs])
    start = float(np.mean([pair[0]["two_step"]["precision"] for pair in pairs]))
    lowest = sum(r["last"]["loss"] == r["lowest"]["loss"] for pair in pairs for r in pair)
    n = len(pairs)
    return [
        *(f"{gain:.2%}" for gain in gains.mean(axis=0)),
        f"{(gains[:, 1] > gains[:, 0]).sum()} of {n}",
        *(f"{share:.3f}".removeprefix("0") for share in (start, *shares.mean(axis=0))),
        f"{(shares[:, 1] > shares[:, 0]).sum()} of {n}",
        f"{lowest} of {2 * n}",
        *(f"{np.mean([pair[at]['iterations'] for pair in pairs]):.0f}" for at in (0, 1)),
    ]
