"""Ids of tables in all commands: text too, in stores, and of folders of codes."""

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from auxhash import stores
from auxhash.search import index
from auxhash.stores import Having

N = 120


@pytest.fixture
def docs(here, run):
    """A table of documents with text ids, titles and years, and the codes of its vectors."""
    X = np.load("features.npy")[:, :6]
    names = [f"doc/{i:03}'ü" for i in range(N)][::-1]
    table = {
        "doc": names,
        "vector": list(X),
        "title": [f"title {i}" for i in range(N)],
        "year": [2000 + i % 3 for i in range(N)],
        "when": arrow.array([i * 86_400 for i in range(N)], arrow.timestamp("s")),
    }
    parquet.write_table(arrow.table(table), "docs.parquet")
    np.save("vectors.npy", X)
    learn = "docs.parquet -o m.safetensors --method LSH --bits 16 --id doc"
    run("fit", *learn.split())
    run("encode", "m.safetensors", "docs.parquet", "--id", "doc", "-o", "c.safetensors")
    return X, names


def test_push_takes_ids_vectors_and_payloads_from_the_table(docs, run, tmp_path):
    X, names = docs
    url = f"sqlite:///{tmp_path}/a.db"
    table = ("--vectors", "docs.parquet", "--id", "doc", "--payload", "title,year,when")
    for _ in range(2):  # a push with ids may be repeated
        said = run("store", "push", url, "c.safetensors", *table, "--json")
        assert (said["pushed"], said["codes"]) == (N, N)
    with stores.open(url) as store:
        assert store.id_type == "text"
        points = store.read(names)
        for i, name in enumerate(names):
            np.testing.assert_array_equal(points[name].vector, X[i])
            assert points[name].payload["title"] == f"title {i}"
            assert points[name].payload["year"] == 2000 + i % 3
        assert points[names[1]].payload["when"] == "1970-01-02T00:00:00"
        hits = store.search(points[names[0]].code, N, Having("year", (2001,)))[1][0]
        assert set(hits) == set(names[1::3])
    run("store", "verify", url, "c.safetensors", "--ids", "docs.parquet", "--id", "doc")
    result = run("store", "search", url, "c.safetensors", "-k", "3", "--json")
    with stores.open(url) as store:
        codes = np.concatenate([store.read([name])[name].code[None] for name in names])
        assert result["ids"] == store.search(codes, 3)[1].tolist()
    more = "docs.parquet --id doc --model m.safetensors -k 3 -o h.npz"
    run("store", "search", url, *more.split())
    assert np.load("h.npz")["ids"].tolist() == result["ids"]
    wrong = run("store", "push", url, "c.safetensors", *table[:4], "--payload", "years", code=1)
    assert "has no column 'years', but" in " ".join(wrong.output.split())


def test_vectors_of_other_ids_are_refused(docs, run, tmp_path, here):
    _, names = docs
    (here / "ids.txt").write_text("\n".join(names[::-1]))
    url = f"sqlite:///{tmp_path}/a.db"
    more = "c.safetensors --ids ids.txt --vectors docs.parquet --id doc"
    output = run("store", "push", url, *more.split(), code=1).output
    assert "docs.parquet has other ids than ids.txt, or in another order" in output


def test_push_takes_ids_and_payloads_of_a_csv(docs, run, tmp_path, here):
    _, names = docs
    lines = [f'"{name}",{i},title {i}' for i, name in enumerate(names)]
    (here / "docs.csv").write_text("\n".join(["doc,number,title", *lines]))
    url = f"sqlite:///{tmp_path}/a.db"
    more = "c.safetensors --ids docs.csv --id doc --payload title,number"
    run("store", "push", url, *more.split())
    with stores.open(url) as store:
        assert store.read(names[3:4])[names[3]].payload == {"title": "title 3", "number": 3}


def test_a_store_of_text_takes_digits_as_text(docs, run, tmp_path, here):
    url = f"sqlite:///{tmp_path}/a.db"
    run("store", "push", url, "c.safetensors", "--ids", "docs.parquet", "--id", "doc")
    (here / "digits.txt").write_text("\n".join(map(str, range(N))))
    run("store", "push", url, "c.safetensors", "--ids", "digits.txt")
    with stores.open(url) as store:
        assert len(store) == 2 * N
        assert "7" in store.read(["7"])
    (here / "few.txt").write_text("a\nb")
    output = run("store", "push", url, "c.safetensors", "--ids", "few.txt", code=1).output
    assert "few.txt holds 2 ids, and there are 120 codes" in output
    output = run("store", "push", url, "c.safetensors", "--payload", "title", code=2).output
    assert "--payload are columns of a table" in " ".join(output.split())


def test_encode_again_finds_vectors_by_their_text_ids(docs, run, tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    run("store", "push", url, "c.safetensors", "--ids", "docs.parquet", "--id", "doc")
    learn = "docs.parquet -o n.safetensors --method LSH --bits 16 --id doc --seed 3"
    run("fit", *learn.split())
    more = "--model n.safetensors --vectors docs.parquet --id doc --json"
    result = run("store", "encode-again", url, *more.split())
    assert result["encoded"] == N
    run("encode", "n.safetensors", "docs.parquet", "--id", "doc", "-o", "d.safetensors")
    run("store", "verify", url, "d.safetensors", "--ids", "docs.parquet", "--id", "doc")


@pytest.mark.parametrize("text", [False, True])
def test_a_folder_of_codes_is_indexed_and_pushed(docs, run, tmp_path, here, text):
    X, names = docs
    ids = names if text else [3 * i for i in range(N)]
    for part in range(3):
        rows = slice(40 * part, 40 * part + 40)
        table = arrow.table({"key": ids[rows], "vector": list(X[rows])})
        parquet.write_table(table, f"day{part}.parquet")
    run("encode", "m.safetensors", "day*.parquet", "--id", "key", "-o", "coded")
    made = run("index", "coded", "-o", "c.index", "--json")
    assert made["codes"] == N
    assert made["fingerprint"] is not None
    loaded = index.load("c.index")
    assert (loaded.names if text else loaded.ids.tolist()) == ids
    run("encode", "m.safetensors", "vectors.npy", "-o", "plain.safetensors")
    run("add", "c.index", "coded", "--replace")
    assert len(index.load("c.index")) == N
    url = f"sqlite:///{tmp_path}/a.db"
    run("store", "push", url, "coded")
    (here / "ids.txt").write_text("\n".join(map(str, ids)))
    run("store", "verify", url, "plain.safetensors", "--ids", "ids.txt")
    with stores.open(url) as store:
        assert store.fingerprint == made["fingerprint"]
        assert store.id_type == ("text" if text else "number")


def test_what_is_no_folder_of_codes(docs, run, here):
    (here / "empty").mkdir()
    assert "empty holds no files of codes" in run("index", "empty", "-o", "x.index", code=1).output
    (here / "other").mkdir()
    parquet.write_table(arrow.table({"a": [1]}), "other/a.parquet")
    output = run("index", "other", "-o", "x.index", code=1).output
    assert "a.parquet is no file of codes that auxhash wrote" in " ".join(output.split())
    run("encode", "m.safetensors", "doc*.parquet", "--id", "doc", "-o", "both")
    run("fit", "vectors.npy", "-o", "n.safetensors", "--method", "LSH", "--bits", "24")
    parquet.write_table(arrow.table({"doc": ["x"], "vector": [[0.0] * 6]}), "one.parquet")
    run("encode", "n.safetensors", "one*.parquet", "--id", "doc", "-o", "others")
    (here / "others" / "one.parquet").rename(here / "both" / "one.parquet")
    output = " ".join(run("index", "both", "-o", "x.index", code=1).output.split())
    assert "holds codes of 24 bits of model" in output


def test_evaluate_and_compare_leave_the_ids_out(here, run):
    X = np.load("features.npy")[:, :6]
    columns = {f"pixel{i}": X[:, i] for i in range(6)}
    rng = np.random.default_rng(0)
    parquet.write_table(arrow.table({"key": rng.permutation(N) * 1000, **columns}), "k.parquet")
    np.save("plain.npy", X)
    run("fit", "plain.npy", "-o", "m.safetensors", "--method", "LSH", "--bits", "16")
    run("encode", "m.safetensors", "plain.npy", "-o", "c.safetensors")
    for command in (
        ("evaluate", "{}", "--model", "m.safetensors"),
        ("evaluate", "c.safetensors", "--vectors", "{}"),
        ("compare", "{}", "-m", "signs", "--bytes", "1", "--queries", "{}"),
    ):
        both = []
        for table, more in (("plain.npy", ()), ("k.parquet", ("--id", "key"))):
            said = run(*(part.format(table) for part in command), *more, "--json")
            rows = said.get("rows", [said])
            both.append(
                [{k: row[k] for k in row if k in ("R@10", "recall", "bytes")} for row in rows]
            )
        assert both[0] == both[1]
        wrong = run(*(part.format("k.parquet") for part in command), "--id", "doc", code=1)
        assert "has no column 'doc' of ids" in " ".join(wrong.output.split())
