"""Learned features on the protocols of deep hashing: CIFAR-10's pixels and one residual network.

python -m benchmarks deep [--protocols first second] [--methods NAME ...] [--bits 16 32 48 64]
                          [--seeds 0 1 2] [--device cuda] [--epochs 30] [--width 64] [--batch 512]
                          [--rate 0.004] [--decay 0.05] [--iterations 8] [--crop 4] [--cut-out 8]
                          [--colour 0.2] [--warp 0] [--blocks 1 0 1] [--both-ways] [--shift 0]
                          [--train N] [--base N] [--query N] [--data FOLDER] [--results FILE]
python -m benchmarks deep --pieces FOLDER
python -m benchmarks deep --tables

first    5,000 training points, 1,000 queries, 54,000 other points as base; as many of each class
second   50,000 training points, which are the base, and the 10,000 test images as queries

All methods train the same network from scratch, on the same augmented pictures:

two-step          codes first, then the network for them: where mac starts
mac               codes and network in turn
refined           gradient steps from mac's network, for its loss
rank              the same for the rank of points of the same class
mac-classes       the same for the objective of end-to-end
end-to-end        gradient steps alone: all pairs of a batch, the classes far apart
cross-entropy     the same with a cross-entropy on top
one-hot           the network as a classifier (one against the rest), its class as a one-hot code

What was measured stands in a file of JSON lines, docs/results/deep.jsonl, written after each
training, and is not measured again; `--tables` writes docs/tables/deep.md out of it. `--data` names
a folder with the six files of CIFAR-10's binary version, or with pictures (n, 32, 32, 3) of bytes
in images*.npy and classes in labels*.npy, as `--pieces` writes them, each file below 64 MiB;
without it they are obtained as `auxhash data` does. `--both-ways` encodes a picture together with
its mirror image, `--shift` also with both moved by so many pixels. Needs PyTorch.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import pack
from auxhash.mac.hashfunctions import encoded
from auxhash.search import metrics
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables

FILE = RESULTS / "deep.jsonl"
METHODS = ("one-hot", "two-step", "mac", "refined", "rank", "mac-classes")
GRADIENTS = ("end-to-end", "cross-entropy")  # no pairs are learnt from
METHODS += GRADIENTS
BITS, SEEDS = (16, 32, 48, 64), (0, 1, 2)
FILES = (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin")
N_TEST, PER_CLASS_TRAIN, PER_CLASS_QUERY = 10_000, 500, 100
KAPPA = {"n_similar": 100, "n_dissimilar": 900}  # nine times as many others, as among all pairs
REPORTED_PAIRS = {"n_similar": 5, "n_dissimilar": 45}  # to report L(h), not to learn from
BATCH, WIDTH, PIECE = 512, 64, 20_000
KEY = ("protocol", "method", "bits", "seed", "epochs", "width", "batch")  # tells runs apart
SIZES = ("train", "base", "query")


class Split(NamedTuple):
    """Pictures (n, h, w, c) of bytes with their labels."""

    train: tuple[NDArray[np.uint8], NDArray[np.int64]]
    base: tuple[NDArray[np.uint8], NDArray[np.int64]]
    query: tuple[NDArray[np.uint8], NDArray[np.int64]]


class How(NamedTuple):
    """Settings of the training of the network."""

    epochs: int
    device: str = "cpu"
    rate: float = 4e-3
    decay: float = 0.05
    iterations: int = 8  # of MAC
    width: int = WIDTH
    batch: int = BATCH
    crop: int = 4
    cut_out: int = 8
    colour: float = 0.2
    both_ways: bool = False
    blocks: tuple[int, ...] = (1, 0, 1)
    shift: int = 0
    warp: float = 0.0


def pictures(folder: Path | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All 60,000 pictures and their labels, the 10,000 test images last."""
    if folder is None:
        from auxhash.experiments.datasets import (
            cifar10,  # here: it needs packages for the command line
        )

        pixels, labels = cifar10.read()
    elif (pieces := sorted(folder.glob("images*.npy"))) and sorted(folder.glob("labels*.npy")):
        return _joined(pieces), _joined(sorted(folder.glob("labels*.npy"))).astype(np.int64)
    else:
        records = np.concatenate([np.fromfile(folder / name, np.uint8) for name in FILES])
        records = records.reshape(-1, 1 + 3 * 32 * 32)
        pixels, labels = records[:, 1:], records[:, 0].astype(np.int64)
    planes = pixels.reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def _joined(files: Sequence[Path]) -> NDArray[Any]:
    return np.concatenate([np.load(file, allow_pickle=False) for file in files])


def write_pieces(folder: Path, X: NDArray[np.uint8], y: NDArray[np.int64]) -> None:
    """Files for `--data`, none of them above 64 MiB."""
    folder.mkdir(parents=True, exist_ok=True)
    for at, first in enumerate(range(0, len(X), PIECE)):
        np.save(folder / f"images-{at:03}.npy", X[first : first + PIECE])
    np.save(folder / "labels.npy", y.astype(np.uint8))
    print(f"wrote {at + 1} files of pictures and labels.npy to {folder}")


def split(
    X: NDArray[np.uint8],
    y: NDArray[np.int64],
    protocol: str,
    seed: int,
    most: tuple[int | None, int | None, int | None] = (None, None, None),
) -> Split:
    """The points of a protocol; `most` is the most of training points, base and queries."""
    rng = np.random.default_rng(seed)
    if protocol == "second":
        train, query = np.arange(len(X) - N_TEST), np.arange(len(X) - N_TEST, len(X))
        base = train
    else:
        order = rng.permutation(len(X))
        each = [order[y[order] == c] for c in np.unique(y)]
        query = np.concatenate([own[:PER_CLASS_QUERY] for own in each])
        until = PER_CLASS_QUERY + PER_CLASS_TRAIN
        train = np.concatenate([own[PER_CLASS_QUERY:until] for own in each])
        base = np.concatenate([own[until:] for own in each])
    parts = []
    for rows, n in zip((train, base, query), most, strict=True):
        chosen = rows if n is None or n >= len(rows) else rng.permutation(rows)[:n]
        parts.append((X[chosen], y[chosen]))
    return Split(*parts)


def module_hash(n_outputs: int, seed: int, how: How, channels: int = 3) -> Any:
    """A fresh network as a hash function."""
    import torch

    from auxhash.learn.torch import ModuleHash, augment, residual_network
    from auxhash.learn.torch.networks import BothWays

    torch.manual_seed(seed)
    network = residual_network(n_outputs, channels, how.width, how.blocks).to(how.device)
    return ModuleHash(
        BothWays(network, how.shift) if how.both_ways else network,
        epochs=how.epochs,
        more_epochs=max(1, how.epochs // 6),
        batch=how.batch,
        rate=how.rate,
        decay=how.decay,
        half=how.device != "cpu",
        augment=augment.RandomChanges(how.crop, True, how.cut_out, how.colour, how.warp),
    )


def mac(bits: int, seed: int, how: How) -> Any:
    """The estimator of mac, whose first step is that of two-step."""
    from auxhash import MACHash

    h = module_hash(bits, seed, how)
    settings = {"max_iter": how.iterations, "alpha": 2.0, "random_state": seed, **KAPPA}
    return MACHash(bits, hash_function=h, refine=None, **settings)


def descent(method: str, bits: int, seed: int, n: int, how: How, start: Any = None) -> Any:
    """The estimator of a method of gradient steps, for n points; `start` is the network of mac."""
    from auxhash import EndToEndHash, Refine

    h = module_hash(bits, seed, how)
    if start is not None:
        h = replace(h, module=start)
    steps = max(10, how.epochs * n // how.batch)
    objective: dict[str, Any] = {"objective": "classes", "steepness": (1.0, 4.0)}
    if method == "cross-entropy":
        objective["cross_entropy"] = 1.0
    elif method == "refined":
        objective = {}
    elif method == "rank":  # a step of which looks at about five times as many points
        objective, steps = {"objective": "rank"}, max(10, steps // 5)
    refine = Refine(steps, how.batch, keep="refined", **objective)
    pairs = REPORTED_PAIRS if method in GRADIENTS else KAPPA
    return EndToEndHash(bits, hash_function=h, refine=refine, random_state=seed, **pairs)


class Trained(NamedTuple):
    """A trained method: its codes, seconds and losses."""

    encode: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
    seconds: float
    losses: Record


class Methods:
    """The methods on the training points of a split; those after mac share its network."""

    def __init__(self, data: Split, bits: int, seed: int, how: How) -> None:
        self.train, self.bits, self.seed, self.how = data.train, bits, seed, how

    def trained(self, method: str) -> Trained:
        began = perf_counter()
        if method == "one-hot":
            encode = one_hot(*self.train, self.seed, self.how)
            return Trained(encode, perf_counter() - began, {})
        if method == "two-step":
            h, first = self.mac[0].two_step_, self.mac[0].history_[0]
            losses = {"loss": first.loss, "first_loss": first.loss}
            return Trained(lambda X: encoded(h, X), first.seconds, losses)
        if method == "mac":
            return Trained(self.mac[0].encode, self.mac[1], _losses(self.mac[0]))
        start, before = None, 0.0
        if method not in GRADIENTS:
            start, before = self.mac[0].hash_function_.trained_module(), self.mac[1]
        began = perf_counter()
        arguments = self.bits, self.seed, len(self.train[0]), self.how, start
        hasher = descent(method, *arguments).fit(*self.train)
        return Trained(hasher.encode, before + perf_counter() - began, _losses(hasher))

    @cached_property
    def mac(self) -> tuple[Any, float]:
        """The estimator, fitted, and the seconds that it took."""
        began = perf_counter()
        return mac(self.bits, self.seed, self.how).fit(*self.train), perf_counter() - began


def _losses(hasher: Any) -> Record:
    return {"loss": hasher.loss_, "first_loss": hasher.history_[0].loss}


def one_hot(
    X: NDArray[np.uint8], y: NDArray[np.int64], seed: int, how: How
) -> Callable[[NDArray[np.uint8]], NDArray[np.uint8]]:
    """A function to encode with: the class that the network as a classifier takes points for."""
    classes = np.unique(y)
    h = module_hash(len(classes), seed, how).prepare(X, np.random.default_rng(seed))
    Z = np.where(y[:, None] == classes, 1, -1).astype(np.int8)
    h = h.refit(X, Z, np.arange(len(classes)))

    def encode(points: NDArray[np.uint8]) -> NDArray[np.uint8]:
        taken_for = h.decision(points).argmax(axis=1)
        return pack(np.where(taken_for[:, None] == np.arange(len(classes)), 1, -1))

    return encode


def measure(data: Split, trained: Trained) -> Record:
    """Encode base and queries, and measure."""
    base, query = trained.encode(data.base[0]), trained.encode(data.query[0])
    codes = query, base, data.query[1], data.base[1]
    n = len(base)
    return {
        "map": metrics.mean_average_precision(*codes),
        "map_at_5000": metrics.mean_average_precision(*codes, k=min(5000, n)),
        "precision_at_100": metrics.precision_at_k(*codes, k=min(100, n)),
        "map_by_sort": metrics.map_by_sort(*codes),
        "seconds": trained.seconds,
        **trained.losses,
    }


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what is asked for and not measured yet, and print all of it."""
    if small:
        _run_small()
        return
    asked = _options(options)
    if asked.tables:
        write_tables({"deep.md": table(read(asked.results))})
        return
    if asked.pieces is not None:
        write_pieces(asked.pieces, *pictures(asked.data))
        return
    done = known(asked.results, _key)
    X, y = pictures(asked.data)
    names = [name for name in How._fields if hasattr(asked, name)]
    how = How(**{name: getattr(asked, name) for name in names})
    for protocol in asked.protocols:
        for seed in asked.seeds:
            data = split(X, y, protocol, seed, (asked.train, asked.base, asked.query))
            sizes = {name: len(part[0]) for name, part in data._asdict().items()}
            for bits in asked.bits:
                methods = Methods(data, bits, seed, how)
                for method in asked.methods:
                    if method == "one-hot" and bits != asked.bits[0]:
                        continue  # it has as many bits as there are classes
                    values = (protocol, method, bits, seed, how.epochs, how.width, how.batch)
                    setup = {**dict(zip(KEY, values, strict=True)), **sizes}
                    setup["how"] = how._asdict()
                    if _key(setup) in done:
                        continue
                    record = {**setup, **measure(data, methods.trained(method))}
                    append(asked.results, record)
                    print(line(record), flush=True)


def line(record: Record) -> str:
    scores = "  ".join(
        f"{name} {record[name]:.3f}"
        for name in ("map", "map_at_5000", "precision_at_100", "map_by_sort")
    )
    setup = f"{record['protocol']:6} {record['method']:13} {record['bits']:2} bits"
    return f"{setup}  seed {record['seed']}  {scores}  {record['seconds']:.0f} s"


def table(records: Sequence[Record]) -> str:
    """Markdown: the means over seeds, runs of the same settings together."""
    columns = ("protocol", "method", "bits", "epochs", "width", "batch")
    measures = ("map", "map_at_5000", "precision_at_100", "map_by_sort")
    names = "mAP", "mAP at 5,000", "precision at 100", "mAP by sort"
    heads = [*columns, "layers", "warp", "views", *names, "s", "seeds"]
    rows = []
    runs: dict[tuple[Any, ...], list[Record]] = {}
    for record in sorted(records, key=_rank):
        key = _key({**record, "seed": 0})
        runs.setdefault(key, []).append(record)
    for own in runs.values():
        how = _how(own[0])
        trained = [str(5 + 2 * sum(how.blocks)), f"{how.warp:g}", str(_views(how))]
        means = [f"{np.mean([r[name] for r in own]):.3f}" for name in measures]
        seconds = f"{np.mean([r['seconds'] for r in own]):.0f}"
        values = (str(own[0][name]) for name in columns)
        rows.append([*values, *trained, *means, seconds, str(len(own))])
    return markdown(heads, rows)


def _views(how: How) -> int:
    """Number of times that the network sees a picture that is encoded."""
    return (2 if how.both_ways else 1) * (3 if how.both_ways and how.shift else 1)


def _rank(record: Record) -> tuple[Any, ...]:
    """The order of the table: methods that were trained alike beside each other."""
    how = _how(record)
    trained = how.epochs, how.width, how.batch, how.blocks, how.warp, how.shift
    return record["protocol"], record["bits"], *trained, METHODS.index(record["method"])


def _key(record: Record) -> tuple[Any, ...]:
    how = _how(record)._replace(device="")
    return (*(record[name] for name in (*KEY, *SIZES)), *how)


def _how(record: Record) -> How:
    """Settings of the training; what was not asked for then had the default."""
    how = How(**record["how"])
    return how._replace(blocks=tuple(how.blocks))  # a list in JSON


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks deep")
    parser.add_argument("--protocols", nargs="+", choices=("first", "second"), default=["first"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--bits", type=int, nargs="+", default=list(BITS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--device", default="cpu", help="of PyTorch: cpu, cuda")
    parser.add_argument("--epochs", type=int, default=30, help="rounds of each training")
    parser.add_argument("--rate", type=float, default=How._field_defaults["rate"])
    parser.add_argument("--decay", type=float, default=How._field_defaults["decay"])
    parser.add_argument("--batch", type=int, default=BATCH, help="points per step")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the network's first layer")
    parser.add_argument("--crop", type=int, default=How._field_defaults["crop"])
    parser.add_argument("--cut-out", type=int, default=How._field_defaults["cut_out"])
    parser.add_argument("--colour", type=float, default=How._field_defaults["colour"])
    parser.add_argument("--warp", type=float, default=How._field_defaults["warp"])
    parser.add_argument("--both-ways", action="store_true", help="mirror images at encoding, too")
    parser.add_argument("--shift", type=int, default=0, help="with --both-ways, moved ones, too")
    parser.add_argument("--blocks", type=int, nargs=3, default=How._field_defaults["blocks"])
    parser.add_argument("--iterations", type=int, default=How._field_defaults["iterations"])
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, help="so many points at most")
    parser.add_argument("--data", type=Path, help="folder of CIFAR-10, binary or .npy")
    parser.add_argument("--pieces", type=Path, help="only write .npy files here, for --data")
    asked = parsed(parser, options, FILE)
    if asked.shift and not asked.both_ways:
        parser.error("--shift is for --both-ways")
    return asked


def _run_small() -> None:
    """Show that all of it runs, on made pictures of three classes."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.integers(0, 100, (120, 8, 8, 3)).astype(np.uint8)
    for c in range(3):
        X[y == c, 2 * c + 1, :, c] += 140
    data = Split((X[:90], y[:90]), (X[:90], y[:90]), (X[90:], y[90:]))
    how = How(epochs=4, iterations=1, width=2, batch=30, crop=1, cut_out=2, both_ways=True)
    methods, first = Methods(data, 8, 0, how), 0.0
    for method in METHODS:
        setup = {"protocol": "made", "method": method, "bits": 8, "seed": 0}
        record = {**setup, **measure(data, methods.trained(method))}
        first = first or record["map"]
        print(line(record), f" ratio to one-hot {record['map'] / first:.2f}")
