"""Codes without labels: which share of the 10 nearest points is among the first 10, 100, 1,000?

python -m benchmarks neighbors --data glove-100 --bits 32 64 --seeds 0 1 2 [--methods ITQ LSH]
                               [--train N --base N] [--device cuda] [--results FILE] [--tables]

Every method is measured by the Hamming distance of codes and by the real outputs of the query
against the codes of the base; faiss's quantisers by their own distances. A seed is that of the
split and of the training. What was measured stands in a file of JSON lines,
docs/results/neighbors.jsonl, and is not measured again: a run that was stopped goes on. `--tables`
writes docs/tables/neighbors-DATA.md, neighbors-DATA-rerank.md and neighbors-DATA-ahead.md, by how
much NeighborHash is ahead of the others, out of that file, and measures nothing.

After the first R points are re-ranked by the true vectors, the 10 nearest among them come first:
the recall of 10 then is the share of the 10 nearest among the first R. So one measure, at more
ranks, serves both tables.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

import auxhash
from auxhash import MACHash
from auxhash.codes import MAX_BITS, pack, sign
from auxhash.compute.neighbors import Metric
from auxhash.experiments import datasets
from auxhash.experiments.datasets.dataset import Dataset, Points, ground_truth
from auxhash.learn import baselines
from auxhash.learn.hasher import Hasher
from auxhash.mac import affinity
from auxhash.mac.hashfunctions import NetworkHash, Scaled, SVMHash, Unit
from benchmarks import peers, recall
from benchmarks.recall import Shares
from benchmarks.records import RESULTS, Record, append, known, markdown, parsed, read, write_tables

if TYPE_CHECKING:  # faiss is imported where it is used
    from benchmarks.quantizers import Measured


@dataclass(frozen=True)
class Setting:
    """Setting of a data set: the metric of its neighbours, and the size of its base."""

    metric: Metric
    base: int


DATA = {
    "glove-100": Setting("cosine", 100_000),
    "glove-50": Setting("cosine", 100_000),
    "cifar10-sift": Setting("euclidean", 100_000),
    "cifar10-gist": Setting("euclidean", 58_000),
}
BITS = (16, 32, 64, 128)
N_NEAREST = 10
RANKS = (10, 100, 1000)
RERANKED = (100, 200, 500)
MEASURED = tuple(sorted({*RANKS, *RERANKED}))
LARGE_UNITS = 4096  # of a network
AIM_SHARE = 0.95  # of the nearest, after re-ranking
OURS = "NeighborHash"  # the methods that others are compared with
FILE = RESULTS / "neighbors.jsonl"

Scores = dict[str, Any]  # what a method adds to its record
Make = Callable[[int, int, Metric], Hasher]  # of bits, seed and metric


class Sign(Hasher):
    """One bit per feature, its sign: what people do today; or, centred, above or below the mean."""

    def __init__(self, n_bits: int, centred: bool = False) -> None:
        self.n_bits, self.centred = n_bits, centred

    def fit(self, X: Any) -> "Sign":
        self.mean_ = X.mean(axis=0) if self.centred else np.zeros(X.shape[1])
        return self

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X, np.float64) - self.mean_

    def encode(self, X: Any) -> Any:
        return pack(sign(self.decision_function(X)))


@dataclass(frozen=True)
class Coded:
    """A method of the project; `make` gives the hasher.

    `most` is the number of training points that it gets at most, since it takes long; `axes` says
    that it has no more bits than there are features.
    """

    make: Make
    most: int | None = None
    axes: bool = False
    own_bits: bool = False  # one bit per feature, whatever is asked for

    def refusal(self, data: Dataset, bits: int) -> str | None:
        """Reason why there is no answer, or None."""
        d = data.base.X.shape[1]
        if self.axes and bits > d:
            return f"more bits than the {d} features"
        return f"{bits} bits are not one per feature" if self.own_bits and bits != d else None

    def __call__(self, data: Dataset, bits: int, seed: int, device: str = "cpu") -> Scores:
        X = data.train.X
        if self.most is not None and len(X) > self.most:
            X = X[np.sort(np.random.default_rng(seed).permutation(len(X))[: self.most])]
        metric: Metric = DATA[data.name].metric if data.name in DATA else "euclidean"
        hasher = self.make(bits, seed, metric)
        on_gpu = device == "cuda" and "device" in hasher.get_params()
        if on_gpu:
            hasher.set_params(device=device)
        clock = perf_counter if on_gpu else process_time
        began = clock()
        hasher.fit(X)
        seconds = clock() - began
        near, base = data.query.neighbors, hasher.encode(data.base.X)
        ranks = _ranks(data)
        hamming = recall.by_hamming(hasher.encode(data.query.X), base, near, ranks)
        asymmetric = recall.by_outputs(hasher, data.query.X, base, near, ranks)
        shares = {"hamming": _by_rank(ranks, hamming), "asymmetric": _by_rank(ranks, asymmetric)}
        own = [getattr(hasher, limit, None) for limit in ("max_points", "n_train")]
        trained_on = min(len(X), *(limit for limit in own if limit), len(X))
        record = shares | {"bytes": -(-bits // 8), "trained_on": trained_on}
        return record | {"gpu_s" if on_gpu else "cpu_s": seconds}


@dataclass(frozen=True)
class Quantized:
    """A quantiser of faiss, by its name in `quantizers`."""

    name: str
    part_bits: int = 8

    def refusal(self, data: Dataset, bits: int) -> str | None:
        """Reason why there is no answer, or None."""
        if bits % self.part_bits:
            return f"{bits} bits are not in parts of {self.part_bits}"
        d = data.base.X.shape[1]
        return f"more than {d} parts" if bits > self.part_bits * d else None

    def __call__(self, data: Dataset, bits: int, seed: int, device: str = "cpu") -> Scores:
        ranks = _ranks(data)
        shares, size, seconds = self._search(data, bits, ranks, seed)
        record = {"hamming": None, "asymmetric": _by_rank(ranks, shares)}
        return record | {"bytes": size, "cpu_s": seconds, "trained_on": len(data.train)}

    def _search(self, data: Dataset, bits: int, ranks: Sequence[int], seed: int) -> "Measured":
        from benchmarks import quantizers

        search = getattr(quantizers, self.name)
        return search(data, bits, ranks, seed, self.part_bits)  # type: ignore[no-any-return]


class RaBitQ(Quantized):
    """faiss's RaBitQ: one bit per feature, and 64 bits of factors, which count as bits."""

    def refusal(self, data: Dataset, bits: int) -> str | None:
        from benchmarks.quantizers import FACTOR_BITS

        d = data.base.X.shape[1]
        if bits <= FACTOR_BITS:
            return f"the factors alone take {FACTOR_BITS} bits"
        return f"more than the {d} features and {FACTOR_BITS}" if bits > d + FACTOR_BITS else None

    def _search(self, data: Dataset, bits: int, ranks: Sequence[int], seed: int) -> "Measured":
        from benchmarks import quantizers

        return quantizers.rabitq(data, bits, ranks, seed)


class OnNeighbours(Hasher):
    """MACHash as the paper has it for data without labels: from pairs of neighbours.

    With `ranked`, this is only where NeighborHash starts from, in place of ITQ's rotation.
    """

    def __init__(self, n_bits: int, seed: int, metric: Metric, ranked: bool = False) -> None:
        self.n_bits, self.seed, self.metric, self.ranked = n_bits, seed, metric, ranked

    def fit(self, X: Any) -> "OnNeighbours":
        near = affinity.from_neighbors(X, metric=self.metric, random_state=self.seed)
        mac = MACHash(self.n_bits, random_state=self.seed)
        if self.ranked:  # with NeighborHash's own kind of hash function
            mac.set_params(hash_function=SVMHash(_scaled(self.metric)), refine=None)
        self.fitted_: Hasher = mac.fit(X, affinity=near)
        if self.ranked:
            start = Started(**vars(self.fitted_.hash_function_))
            learnt = auxhash.NeighborHash(self.n_bits, self.metric, start, random_state=self.seed)
            self.fitted_ = learnt.fit(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return self.fitted_.decision_function(X)

    def encode(self, X: Any) -> Any:
        return self.fitted_.encode(X)


class Started(SVMHash):
    """A learnt linear hash function, as a start for gradient steps: it keeps its own weights."""

    def prepare(self, X: Any, rng: np.random.Generator) -> "Started":
        return self

    def with_linear(self, W: Any) -> "Started":
        return self


def _scaled(metric: Metric) -> Scaled | Unit:
    """The feature map that NeighborHash takes."""
    return Unit() if metric == "cosine" else Scaled()


def _learnt(hash_function: str | None, n_steps: int | None = None) -> Make:
    """NeighborHash; without a name of its hash function, with a network of 4,096 units."""

    def make(bits: int, seed: int, metric: Metric) -> Hasher:
        h: Any = hash_function
        if h is None:
            h = NetworkHash(LARGE_UNITS, decay=0.0, map=_scaled(metric))
        return auxhash.NeighborHash(bits, metric, h, n_steps=n_steps, random_state=seed)

    return make


def _baseline(name: str, **settings: Any) -> Make:
    def make(bits: int, seed: int, metric: Metric) -> Hasher:
        hasher: Hasher = getattr(baselines, name)(n_bits=bits, **settings)
        if "random_state" in hasher.get_params():
            hasher.set_params(random_state=seed)
        return hasher

    return make


METHODS: dict[str, Coded | Quantized] = {
    "sign": Coded(lambda bits, seed, metric: Sign(bits), own_bits=True),
    "sign, centred": Coded(lambda bits, seed, metric: Sign(bits, centred=True), own_bits=True),
    "LSH": Coded(_baseline("LSH")),
    "TPCA": Coded(_baseline("TPCA"), axes=True),
    "PCARR": Coded(_baseline("PCARR"), axes=True),
    "ITQ": Coded(_baseline("ITQ"), axes=True),
    "SH": Coded(_baseline("SH")),
    "SPH": Coded(_baseline("SPH")),
    "AGH": Coded(_baseline("AGH")),
    "AGH, two layers": Coded(_baseline("AGH", layers=2)),
    "BRE": Coded(_baseline("BRE")),
    "STH": Coded(_baseline("STH"), most=10_000),
    "BinaryAutoencoder": Coded(_baseline("BinaryAutoencoder"), most=10_000),
    "MACHash on neighbours": Coded(OnNeighbours, most=10_000),
    "NeighborHash, linear, from MAC": Coded(
        lambda bits, seed, metric: OnNeighbours(bits, seed, metric, ranked=True), most=10_000
    ),
    "NeighborHash, linear": Coded(_learnt(hash_function="linear")),
    "NeighborHash, network": Coded(_learnt(hash_function="network")),
    "NeighborHash, large network": Coded(_learnt(hash_function=None, n_steps=8_000)),
    "PQ (faiss)": Quantized("product"),
    "OPQ (faiss)": Quantized("rotated"),
    "RaBitQ (faiss)": RaBitQ("rabitq"),
}


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, and print the shares of all that it has."""
    asked = _options(options)
    if small:
        _run_small()
        return
    if asked.tables:
        write_tables(tables(read(asked.results), asked))
    else:
        measure(asked, Console(width=130))


def measure(asked: argparse.Namespace, console: Console) -> None:
    """Run the methods that are asked for, one record each, and show the means."""
    done = known(asked.results, _key)
    for seed in asked.seeds:
        data = load(asked.data, asked.train, asked.base, seed)
        console.print(data.protocol)
        for name in asked.methods:
            for bits in _bits_of(METHODS[name], data, asked.bits):
                setup = {"data": asked.data, "train": len(data.train), "base": len(data.base)}
                record = {**setup, "method": name, "bits": bits, "seed": seed}
                if _key(record) in done:
                    continue
                if reason := _refusal(name, data, bits):
                    console.print(f"{name}, {bits} bits: {reason}")
                    continue
                record |= METHODS[name](data, bits, seed, asked.device)
                append(asked.results, record)
                console.print(_line(record))
    if records := _chosen(read(asked.results), asked):
        console.print(_shown(records))


def load(name: str, n_train: int | None, n_base: int | None, seed: int) -> Dataset:
    """The data set with its 10 nearest neighbours, in float32; trained on all the base if no
    `n_train` is given."""
    options: dict[str, Any] = {
        "n_train": n_train,
        "n_base": n_base or DATA[name].base,
        "n_query": 2_000,
    }
    if name != "cifar10-gist":
        options |= {"n_neighbors": N_NEAREST}
    data = datasets.load(name, seed=seed, **options)
    parts = (Points(np.asarray(part.X, np.float32)) for part in (data.train, data.base, data.query))
    train, base, query = parts
    near = data.query.neighbors
    if near is None:
        near = ground_truth(base.X, query.X, N_NEAREST)
    return replace(data, train=train, base=base, query=replace(query, neighbors=near))


def tables(records: Sequence[Record], asked: argparse.Namespace) -> dict[str, str]:
    """The texts of the tables, by file name."""
    chosen = _chosen(records, asked)
    if not chosen:
        raise SystemExit(f"{asked.results} holds nothing of {asked.data} with these points")
    name = "neighbors-" + asked.data
    if asked.train or asked.base:
        name += f"-{chosen[0]['train']}-of-{chosen[0]['base']}"
    makers = {"": recalls, "-rerank": reranked, "-ahead": margins}
    return {f"{name}{ending}.md": make(chosen) for ending, make in makers.items()}


def recalls(records: Sequence[Record]) -> str:
    """Markdown: the shares of the 10 nearest among the first 10 / 100 / 1,000."""
    head = (
        "bits",
        "method",
        "bytes",
        "Hamming",
        "outputs against codes",
        "training CPU s",
        "seeds",
    )
    rows = []
    for (bits, method), own in _grouped(records):
        shares = (_slashed(_means(own, how, RANKS)) for how in ("hamming", "asymmetric"))
        seconds = _seconds(own)
        fewer = own[0]["trained_on"] < own[0]["train"]
        shown = f"{method} (of {own[0]['trained_on']:,})" if fewer else method
        rows.append((str(bits), shown, str(own[0]["bytes"]), *shares, seconds, str(len(own))))
    return markdown(head, rows) + _note(records)


def _seconds(records: Sequence[Record]) -> str:
    """CPU seconds of training, or the time it took with a GPU."""
    on_gpu = [record["gpu_s"] for record in records if "gpu_s" in record]
    mean = np.mean(on_gpu or [record["cpu_s"] for record in records])
    return f"{mean:.0f} (GPU)" if on_gpu else f"{mean:.0f}"


def reranked(records: Sequence[Record]) -> str:
    """Markdown: the recall of 10 after re-ranking the first R by the true vectors, by bits.

    The last column interpolates the number of bits for 95% between the measured ones.
    """
    all_bits = sorted({record["bits"] for record in records})
    head = ("re-ranked", "method", "first by", *map(str, all_bits), f"bits for {AIM_SHARE:.0%}")
    rows = []
    for rank in RERANKED:
        for method in dict.fromkeys(record["method"] for record in _ordered(records)):
            for how, words in (("hamming", "Hamming"), ("asymmetric", "outputs")):
                own = [r for r in records if r["method"] == method and r[how]]
                share = {
                    bits: _means([r for r in own if r["bits"] == bits], how, (rank,))
                    for bits in all_bits
                }
                known = {bits: float(value[0]) for bits, value in share.items() if value}
                if known:
                    cells = (f"{known[b]:.3f}" if b in known else "" for b in all_bits)
                    rows.append((str(rank), method, words, *cells, enough(known)))
    return markdown(head, rows) + _note(records)


def margins(records: Sequence[Record]) -> str:
    """Markdown: by how much NeighborHash is ahead of others of as many bits, at 10 / 100 / 1,000.

    Of binary methods it is the least margin over all of them, each rank for itself.
    """
    groups = dict(_grouped(records))
    rows = []
    for (bits, method), own in groups.items():
        if not method.startswith(OURS):
            continue
        for how, words in (("hamming", "Hamming"), ("asymmetric", "outputs")):
            shares = {
                other: _means(theirs, how, RANKS)
                for (b, other), theirs in groups.items()
                if b == bits and not other.startswith(OURS)
            }
            mine = np.array(_means(own, how, RANKS))
            binary = [s for other, s in shares.items() if s and not _is_quantizer(other)]
            cells = [_signed(mine - np.max(binary, axis=0)) if binary else ""]
            for name in ("PQ (faiss)", "OPQ (faiss)"):
                cells.append(_signed(mine - shares[name]) if shares.get(name) else "")
            rows.append((str(bits), method, words, *cells))
    head = ("bits", "method", "by", "over all binary methods", "over PQ", "over OPQ")
    return markdown(head, rows) + _note(records)


def _is_quantizer(method: str) -> bool:
    return isinstance(METHODS[method], Quantized)


def enough(share: dict[int, float]) -> str:
    """Number of bits that reach the aim: measured, between two measured, or more than measured."""
    before: tuple[int, float] | None = None
    for bits, value in sorted(share.items()):
        if value >= AIM_SHARE:
            if before is None:
                return f"at most {bits}"
            low, least = before
            return f"{low + (AIM_SHARE - least) / (value - least) * (bits - low):.0f}"
        before = (bits, value)
    return f"more than {max(share)}"


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks neighbors")
    parser.add_argument("--data", choices=DATA, default="glove-100")
    parser.add_argument("--bits", type=int, nargs="+", default=list(BITS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=list(METHODS))
    parser.add_argument("--train", type=int, help="training points, a part of the base")
    parser.add_argument("--base", type=int, help="base points")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of NeighborHash")
    asked = parsed(parser, options, FILE)
    if not all(1 <= bits <= MAX_BITS for bits in asked.bits):
        parser.error(f"--bits must be from 1 to {MAX_BITS}")
    return asked


def _run_small() -> None:
    """Show that all of it runs, on made data."""
    X, _ = peers.decaying(330, 24, 0)
    X = X.astype(np.float32)
    base, query = Points(X[:300]), X[300:]
    near = ground_truth(base.X, query, N_NEAREST)
    data = Dataset("made", base, base, Points(query, neighbors=near), "made data")
    records = []
    for name, method in METHODS.items():
        if name == "MACHash on neighbours":
            continue  # takes long at any size
        if name.startswith("NeighborHash"):
            method = Coded(_learnt("linear" if "linear" in name else "network", n_steps=20))
        elif isinstance(method, Quantized):
            method = replace(method, part_bits=2)  # 300 points are too few for parts of 8 bits
        for bits in _bits_of(method, data, [8]):
            setup = {"data": "made", "train": 300, "base": 300, "method": name}
            if not _refusal(name, data, bits):
                records.append({**setup, "bits": bits, "seed": 0, **method(data, bits, 0)})
    console = Console(width=130)
    console.print(_shown(records))
    print(recalls(records), reranked(records), margins(records), sep="\n")


def _bits_of(method: Coded | Quantized, data: Dataset, bits: Sequence[int]) -> list[int]:
    """The bits to measure: those asked for, a method's own number, or both."""
    d = data.base.X.shape[1]
    if isinstance(method, Coded):
        return [d] if method.own_bits else list(bits)
    if not isinstance(method, RaBitQ):
        return list(bits)
    from benchmarks.quantizers import FACTOR_BITS

    return sorted({*bits, d + FACTOR_BITS})


def _refusal(name: str, data: Dataset, bits: int) -> str | None:
    return METHODS[name].refusal(data, bits)


def _ranks(data: Dataset) -> list[int]:
    return [rank for rank in MEASURED if rank <= len(data.base)]


def _by_rank(ranks: Sequence[int], shares: Shares) -> dict[str, float]:
    return {str(rank): round(float(share), 5) for rank, share in zip(ranks, shares, strict=True)}


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("data", "train", "base", "method", "bits", "seed"))


def _chosen(records: Sequence[Record], asked: argparse.Namespace) -> list[Record]:
    """Records of this data set and these numbers of points, in the order of bits and methods."""
    base = asked.base or DATA[asked.data].base
    wanted = (asked.data, asked.train or base, base)
    return _ordered([r for r in records if (r["data"], r["train"], r["base"]) == wanted])


def _ordered(records: Sequence[Record]) -> list[Record]:
    place = list(METHODS)
    return sorted(records, key=lambda r: (r["bits"], place.index(r["method"]), r["seed"]))


def _grouped(records: Sequence[Record]) -> Iterator[tuple[tuple[int, str], list[Record]]]:
    groups: dict[tuple[int, str], list[Record]] = {}
    for record in _ordered(records):
        groups.setdefault((record["bits"], record["method"]), []).append(record)
    yield from groups.items()


def _means(records: Sequence[Record], how: str, ranks: Sequence[int]) -> list[float]:
    """Means over the seeds at these ranks; empty where a method has no such ranking."""
    measured = [record[how] for record in records if record[how]]
    known = [str(rank) for rank in ranks if measured and str(rank) in measured[0]]
    return [float(np.mean([shares[rank] for shares in measured])) for rank in known]


def _slashed(shares: Sequence[float]) -> str:
    return " / ".join(f"{share:.3f}".lstrip("0") for share in shares)


def _signed(margins: Sequence[float]) -> str:
    return " / ".join(f"{margin:+.3f}".replace("0.", ".") for margin in margins)


def _note(records: Sequence[Record]) -> str:
    one = records[0]
    seeds = sorted({record["seed"] for record in records})
    spreads = [
        np.std([record[how][rank] for record in own])
        for _, own in _grouped(records)
        for how in ("hamming", "asymmetric")
        if own[0][how]
        for rank in own[0][how]
    ]
    return (
        f"\n{one['data']}: {one['base']:,} base points, {one['train']:,} training points, means "
        f"over seeds {', '.join(map(str, seeds))} of split and training, or the first of them "
        f"(largest standard deviation {max(spreads):.3f}); ties by their exact expectation.\n"
    )


def _line(record: Record) -> str:
    shares = (_slashed(_means([record], how, RANKS)) for how in ("hamming", "asymmetric"))
    text = " | ".join(share or "-" for share in shares)
    return f"{record['method']}, {record['bits']} bits: {text} ({_seconds([record])} s)"


def _shown(records: Sequence[Record]) -> Table:
    """The means, and the ratio to ITQ's share among the first 100, by outputs against codes."""
    columns = ("bits", "method", "bytes", "Hamming", "outputs", "ratio to ITQ at 100", "CPU s")
    table = Table(*columns)
    for (bits, method), own_records in _grouped(records):
        itq = [r for r in records if r["bits"] == bits and r["method"] == "ITQ"]
        base = _means(itq, "asymmetric", (100,))
        own = _means(own_records, "asymmetric", (100,))
        ratio = f"{own[0] / base[0]:.2f}" if base and own else ""
        shares = (_slashed(_means(own_records, how, RANKS)) for how in ("hamming", "asymmetric"))
        seconds = _seconds(own_records)
        table.add_row(str(bits), method, str(own_records[0]["bytes"]), *shares, ratio, seconds)
    return table
