"""fit-queries: pairs by ids or rows, of an index, a store or codes, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import auxhash
from auxhash import ApproximateIndex, HammingIndex, NamedIndex, stores

N, BITS = 90, 16


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Documents with codes under ids and names, and queries that see the documents otherwise."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    codes = np.packbits(X @ rng.normal(size=(6, BITS)) > 0, axis=1, bitorder="little")
    Q = np.tanh(X @ rng.normal(size=(6, 9)))
    np.save("queries.npy", Q)
    np.save("codes.npy", codes)
    named = NamedIndex(HammingIndex(BITS)).add(codes, [f"d{i}" for i in range(N)])
    named.fingerprint = "0123456789abcdef"
    named.save("named.index")
    tens = HammingIndex(BITS).add(codes, 10 * np.arange(N))
    tens.save("tens.index")
    ApproximateIndex.from_exact(tens, n_lists=4).save("lists.index")
    several = NamedIndex(ApproximateIndex(BITS, n_lists=4)).add(codes, [f"d{i}" for i in range(N)])
    several.save("named-lists.index")
    with stores.open("sqlite:///asked.db", BITS) as store:
        store.upsert(10 * np.arange(N), codes, fingerprint="0123456789abcdef")
    pairs = [f"{i},d{i}" for i in range(N)]
    (tmp_path / "pairs.csv").write_text("query,id\n" + "\n".join(pairs) + "\n")
    np.save("tens.npy", np.column_stack([np.arange(N), 10 * np.arange(N), np.ones(N)]))
    table = [f"q{i}," + ",".join(map(str, row)) for i, row in enumerate(Q)]
    head = "id," + ",".join(f"f{i}" for i in range(9))
    (tmp_path / "table.csv").write_text("\n".join([head, *table]) + "\n")
    columns = {f"f{i}": column for i, column in enumerate(Q.T)}
    named_queries = {"id": [f"q{i}" for i in range(N)], **columns}
    parquet.write_table(pa.table(named_queries), "table.parquet")
    own_queries = pa.table({"id": 10 * np.arange(N), **columns}).slice(0, 50)
    parquet.write_table(own_queries, "own.parquet")
    by_id = [f"{i % 3 + 1},d{i},q{i},x" for i in range(N)]
    (tmp_path / "by-id.csv").write_text("weight,id,query,note\n" + "\n".join(by_id) + "\n")
    own = [f"{10 * i}," + ",".join(map(str, Q[i])) for i in range(50)]
    (tmp_path / "own.csv").write_text("\n".join([head, *own]) + "\n")
    return tmp_path


FEW_STEPS = ("--steps", "2", "--hash-function", "linear", "--metric", "euclidean")


@pytest.mark.parametrize(
    "arguments",
    [
        ("queries.npy", "pairs.csv", "--index", "named.index"),
        ("queries.npy", "tens.npy", "--index", "tens.index"),
        ("queries.npy", "tens.npy", "--index", "lists.index"),
        ("queries.npy", "pairs.csv", "--index", "named-lists.index"),
        ("queries.npy", "tens.npy", "--store", "sqlite:///asked.db"),
        ("table.csv", "by-id.csv", "--index", "named.index"),
        ("table.parquet", "by-id.csv", "--index", "named.index"),
        ("queries.npy", "--codes", "codes.npy"),
        ("queries.npy", "--index", "tens.index"),
        ("own.csv", "--index", "tens.index"),
        ("own.parquet", "--index", "tens.index"),
    ],
)
def test_pairs_by_ids_and_rows_teach_the_same_rows(asked, run, arguments):
    result = run("fit-queries", *arguments, "-o", "asker.safetensors", *FEW_STEPS, "--json")
    assert result["bits"] == BITS
    assert result["queries"] == (50 if arguments[0].startswith("own") else N)
    assert result["recall"]["10"] > 0.5
    asker = auxhash.Model.load("asker.safetensors")
    assert asker.made_for == result["fingerprint"]
    index = HammingIndex(BITS).add(np.load("codes.npy"))
    hits = index.search_tables(asker.tables(np.load("queries.npy")), 10)[1]
    assert np.mean([row in near for row, near in enumerate(hits)]) > 0.5


def test_the_model_searches_the_codes_it_was_learnt_for_and_no_others(asked, run):
    run("fit-queries", "queries.npy", "pairs.csv", "--index", "named.index", "-o", "a.st",
        *FEW_STEPS)  # fmt: skip
    result = run(
        "search", "named.index", "queries.npy", "--model", "a.st", "--by", "tables", "--json"
    )
    assert np.mean([f"d{i}" in row for i, row in enumerate(result["names"])]) > 0.5
    other = HammingIndex(BITS, fingerprint="f" * 16).add(np.load("codes.npy"))
    other.save("other.index")
    refused = run("search", "other.index", "queries.npy", "--model", "a.st", code=1)
    assert (
        "was made by model ffffffffffffffff and the codes of a.st by model 0123" in refused.output
    )
    (asked / "names.txt").write_text("\n".join(f"new-{i}" for i in range(N)))
    run("encode", "a.st", "queries.npy", "-o", "new.safetensors")
    run("add", "named.index", "new.safetensors", "--ids", "names.txt")  # comparable: of one model


def test_codes_of_another_length_are_refused(asked, run):
    """By --bits, by the model that training is to start with, and where they are asked."""
    files = "queries.npy", "--codes", "codes.npy", "-o", "a.safetensors"
    refused = run("fit-queries", *files, "--bits", "24", code=1)
    assert "codes.npy of 24 bits must be" in refused.output
    assert "got uint8 of shape (90, 2)" in refused.output
    auxhash.baselines.LSH(8).fit(np.load("queries.npy")).save("short.safetensors")
    refused = run("fit-queries", *files, "--init", "short.safetensors", code=1)
    assert "9 features to 8 bits, and Q has 9 for n_bits=16" in refused.output
    assert not (asked / "a.safetensors").exists()
    run("fit-queries", *files, *FEW_STEPS)
    HammingIndex(24).add(np.zeros((9, 3), np.uint8)).save("longer.index")
    asking = "queries.npy", "--model", "a.safetensors", "--by", "tables"
    refused = run("search", "longer.index", *asking, code=1)
    assert "codes of 24 bits, and a.safetensors makes codes of 16" in refused.output


def test_a_finished_checkpoint_gives_the_same_model(asked, run):
    arguments = ("fit-queries", "queries.npy", "--codes", "codes.npy", *FEW_STEPS,
        "--checkpoint", "run")  # fmt: skip
    run(*arguments, "-o", "one.safetensors")
    run(*arguments, "-o", "two.safetensors")
    one, two = (asked / f"{name}.safetensors" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("held_out", [True, False])
def test_inspect_shows_what_was_learnt(asked, run, monkeypatch, held_out):
    if not held_out:
        monkeypatch.setattr("auxhash.learn.querytables.MAX_HELD_OUT_QUERIES", 0)
    run("fit-queries", "queries.npy", "pairs.csv", "--index", "named.index", "-o", "a.st",
        *FEW_STEPS)  # fmt: skip
    shown = run("inspect", "a.st").output
    assert "a model of QueryTables" in shown
    assert ("share of relevant rows among the first 10 over" in shown) == held_out
    assert ("steps, without queries held out" in shown) != held_out
    history = run("inspect", "a.st", "--json")["history"]
    assert [len(step["recall"]) for step in history] == [3 * held_out] * len(history)


def test_columns_are_read_by_order_only_if_no_name_is_known(asked, run):
    """Of `document,query` the second column is the query, whatever stands first."""
    backwards = "\n".join(f"d{i},{N - 1 - i}" for i in range(N))
    (asked / "backwards.csv").write_text(f"document,query\n{backwards}\n")
    common = "--index", "named.index", "-o", "a.st", *FEW_STEPS
    refused = run("fit-queries", "queries.npy", "backwards.csv", *common, code=1)
    assert "must hold columns query and id, and perhaps weight, but has" in refused.output
    (asked / "asked.csv").write_text((asked / "pairs.csv").read_text().replace("query,id", "q,doc"))
    said = run("fit-queries", "queries.npy", "asked.csv", *common).output
    assert f"asked.csv: {N} pairs, query and id by order: q, doc" in said
    said = run("fit-queries", "queries.npy", "pairs.csv", *common, "--force").output
    assert "by order" not in said


def test_another_model_to_start_with_is_refused_before_any_work(asked, run):
    auxhash.baselines.LSH(BITS).fit(np.load("queries.npy")).save("other.safetensors")
    files = "queries.npy", "--index", "named.index", "-o", "a.st"
    refused = run(
        "fit-queries", "queries.npy", "pairs.csv", *files[1:], "--init", "other.safetensors", code=1
    )
    assert "codes was made by model 0123456789abcdef and start by model" in refused.output
    assert not (asked / "a.st").exists()
