"""store push, search and verify, on a file of SQLite."""

import sqlite3

import numpy as np
import pytest

import auxhash
from auxhash import HammingIndex, NeighborHash, stores
from auxhash.cli import queries
from auxhash.search.index import rerank, tables_from_outputs
from auxhash.stores.sqlite import SqliteStore
from auxhash.stores.store import Store


@pytest.fixture
def pushed(here, run, model, tmp_path):
    """The URL of a store with the codes of features.npy, of 12 bits."""
    run("encode", model, "features.npy", "-o", tmp_path / "c.npy")
    url = f"sqlite:///{tmp_path}/c.db"
    said = run("store", "push", url, tmp_path / "c.npy", "--bits", "12", "--json")
    assert said == {
        **{"store": url, "pushed": 120, "codes": 120, "bits": 12},
        "fingerprint": None,  # plain .npy files carry none
    }
    return url


def test_search_finds_what_the_index_finds(pushed, run, model, tmp_path):
    codes = np.load(tmp_path / "c.npy")
    index = HammingIndex(12).add(codes)
    result = run("store", "search", pushed, tmp_path / "c.npy", "-k", 4, "--json")
    distances, ids = index.search(codes, 4)
    assert result["distances"] == distances.tolist()
    assert result["ids"] == ids.tolist()
    assert (result["store"], result["queries"], result["k"]) == (pushed, 120, 4)
    result = run("store", "search", pushed, tmp_path / "c.npy", "-r", 1, "--json")
    assert result["ids"] == [near.tolist() for near in index.radius_search(codes, 1)[1]]
    assert result["radius"] == 1
    near = tmp_path / "near.npz"
    message = run("store", "search", pushed, "features.npy", "--model", model, "-k", 4, "-o", near)
    assert "near.npz: 120 queries, 4 nearest of 120 codes" in message.stdout
    np.testing.assert_array_equal(np.load(near)["ids"], ids)
    assert "2 (0)" in run("store", "search", pushed, tmp_path / "c.npy").output


@pytest.mark.parametrize("scanned", [True, False])
@pytest.mark.parametrize("by", ["outputs", "tables"])
def test_search_by_tables(here, run, tmp_path, monkeypatch, keeps_tables, by, scanned):
    """All codes of SQLite; a shortlist of the other stores, and it says so."""
    X, Q = np.load("features.npy"), np.load("queries.npy")
    settings = {"hash_function": "linear", "query_function": "linear", "n_steps": 20}
    hasher = NeighborHash(16, **settings, random_state=0).fit(X)
    hasher.save(tmp_path / "t.safetensors")
    with stores.open(url := f"sqlite:///{tmp_path}/t.db", n_bits=16) as store:
        store.upsert(np.arange(120), hasher.codes_, fingerprint=hasher.fingerprint_)
    tables = tables_from_outputs(hasher.decision_function(Q))
    tables = hasher.tables(Q) if by == "tables" else tables
    index = HammingIndex(16).add(hasher.codes_)
    distances, ids = index.search_tables(tables, 3)
    if not scanned:
        monkeypatch.setattr(SqliteStore, "search_tables", Store.search_tables)
        monkeypatch.setattr(SqliteStore, "scans_tables", False)
        monkeypatch.setattr("auxhash.stores.store.MIN_CANDIDATES", 40)
        few = np.sort(index.search(hasher.encode(Q), 40)[1], axis=1)
        distances, ids = rerank.by_tables(few, tables, index, 3)
    monkeypatch.setattr(queries, "QUERIES_PER_SEARCH", 7)
    ask = ("store", "search", url, "queries.npy", "--model", tmp_path / "t.safetensors", "-k", 3)
    result = run(*ask, "--by", by, "--json")
    assert result["ids"] == ids.tolist()
    np.testing.assert_allclose(result["distances"], distances, rtol=1e-5, atol=1e-6)
    among = "" if scanned else ", among 40 nearest by code,"
    assert f"40 queries, 3 nearest by {by}{among} of 120 codes" in run(*ask, "--by", by).output


def test_push_with_ids_replaces(pushed, run, tmp_path):
    np.save(tmp_path / "one.npy", np.zeros((1, 2), np.uint8))
    np.save(tmp_path / "id.npy", [2**63 - 1])
    for _ in range(2):  # the bits are those of the store
        result = run("store", "push", pushed, tmp_path / "one.npy", "--ids", tmp_path / "id.npy")
        assert "1 code of 12 bits pushed, 121 in all" in result.stdout
    assert (
        "holds 121 codes already: give the --ids"
        in run("store", "push", pushed, tmp_path / "one.npy", code=1).output
    )


def test_a_new_store_and_an_old_one_say_the_same(here, run, tmp_path):
    np.save("codes.npy", np.zeros((120, 2), np.uint8))
    push = ("store", "push", f"sqlite:///{tmp_path}/new.db", "codes.npy", "--ids", "documents.csv")
    first, second = (run(*push, "--id", "doc") for _ in range(2))
    assert "documents.csv: 120 ids, text; column doc; line 1 names the columns" in first.stderr
    assert second.output == first.output


def test_verify(pushed, run, tmp_path):
    result = run("store", "verify", pushed, tmp_path / "c.npy", "--queries", 5)
    assert "120 codes as in" in " ".join(result.stdout.split())
    assert "5 queries found the same" in " ".join(result.stdout.split())  # long paths wrap the line
    assert run("store", "verify", pushed, "--json") == {
        "store": pushed,
        "codes": 120,
        "bits": 12,
        "compared": False,
        "queries": 20,
    }
    np.save(tmp_path / "few.npy", np.load(tmp_path / "c.npy")[:100])
    said = run("store", "verify", pushed, tmp_path / "few.npy", code=1).output
    assert "20 ids not in" in said
    assert "the first is 100" in said
    file = sqlite3.connect(tmp_path / "c.db")
    with file:
        file.execute("UPDATE codes SET code = x'0F0F' WHERE id IN (7, 9)")
    said = run("store", "verify", pushed, tmp_path / "c.npy", code=1).output
    assert "2 codes in" in said
    assert "the first has id 7" in said
    with file:
        file.execute("DELETE FROM codes WHERE id = 3")
    file.close()
    said = run("store", "verify", pushed, tmp_path / "c.npy", code=1).output
    assert f"1 id missing from {pushed}, the first is 3" in said


def test_verify_tells_of_a_search_that_is_wrong(pushed, run, monkeypatch):
    from auxhash.stores.sqlite import SqliteStore

    right = SqliteStore.search
    with monkeypatch.context() as patch:
        patch.setattr(
            SqliteStore, "search", lambda s, q, k: (right(s, q, k)[0], right(s, q, k)[1] + 1)
        )
        assert "finds other neighbours" in run("store", "verify", pushed, code=1).output
    near = SqliteStore.search_radius
    monkeypatch.setattr(SqliteStore, "search_radius", lambda s, q, r: near(s, q, r + 1))
    assert "finds others within" in run("store", "verify", pushed, code=1).output


def test_codes_that_say_their_model(pushed, run, model, tmp_path, monkeypatch):
    """Of the same model, of another, and of none; and so do queries."""
    from auxhash.cli import inputs
    from auxhash.learn.encoder import load

    own, other, files = load(model).fingerprint, "0123456789abcdef", []
    read = inputs.codes_and_ids
    monkeypatch.setattr(inputs, "codes_and_ids", lambda *_: (*read(*_)[:2], files.pop(), None))
    np.save(tmp_path / "ids.npy", np.arange(120))
    push = ("store", "push", pushed, tmp_path / "c.npy", "--ids", tmp_path / "ids.npy")
    files.append(own)
    assert "does not say which model made the codes" in run(*push).stderr
    files.append(own)
    assert "Note" not in run(*push).stderr
    files.append(None)
    assert "the new codes does not say which model" in run(*push).stderr
    files.append(other)
    said = run(*push, code=1).output
    assert f"was made by model {own} and the new codes by model {other}" in said
    files.append(other)
    assert run(*push, "--any-model", "--json")["fingerprint"] == own
    search = ("store", "search", pushed, "features.npy", "--model")
    assert "Note" not in run(*search, model).output


def test_queries_of_their_own_know_their_codes(pushed, here, run, model, tmp_path):
    """A model of queries searches the codes that it was learnt for, and no others."""
    run("encode", model, "features.npy", "-o", tmp_path / "c.safetensors")
    np.save(tmp_path / "ids.npy", np.arange(120))
    push = (tmp_path / "c.safetensors", "--ids", tmp_path / "ids.npy")
    run("store", "push", pushed, *push)
    X, own = np.load("features.npy"), auxhash.Model.load(model)
    for name, made_for in (("own", own.fingerprint), ("other", "0123456789abcdef")):
        asker = auxhash.QueryTables(12, "linear", n_steps=2, random_state=0)
        asker.fit(X, np.arange(120), own.encode(X), made_for).save(tmp_path / name)
    search = ("store", "search", pushed, "features.npy", "--model")
    assert "Note" not in run(*search, tmp_path / "own").output
    said = run(*search, tmp_path / "other", code=1).output
    assert "codes of two models cannot be compared" in said
    run(*search, tmp_path / "other", "--any-model")


def test_encode_again(pushed, here, run, model, tmp_path):
    """Codes of another model replace those of the first, and its queries are refused then."""
    few = ("--similar", "10", "--dissimilar", "20", "--jobs", "1", "--seed", "5")
    run("fit", "features.npy", "labels.npy", "--bits", "12", *few, "-o", tmp_path / "b.safetensors")
    again = ("store", "encode-again", pushed, "--model", tmp_path / "b.safetensors")
    assert "point 0 has no vector in" in run(*again, code=1).output
    said = run(*again, "--vectors", "features.npy", "--json")
    assert (said["encoded"], said["codes"]) == (120, 120)
    run("encode", tmp_path / "b.safetensors", "features.npy", "-o", tmp_path / "d.npy")
    run("store", "verify", pushed, tmp_path / "d.npy")
    said = run("store", "search", pushed, "features.npy", "--model", model, code=1).output
    assert "codes of two models cannot be compared" in said
    run("store", "search", pushed, "features.npy", "--model", model, "--any-model")
    run("store", "search", pushed, "features.npy", "--model", tmp_path / "b.safetensors")
    assert "0 codes encoded again" in run(*again, "--vectors", "features.npy").output


def test_an_empty_store(run, tmp_path):
    url = f"sqlite:///{tmp_path}/empty.db"
    stores.open(url, n_bits=8).close()
    np.save(tmp_path / "q.npy", np.zeros((2, 1), np.uint8))
    assert run("store", "search", url, tmp_path / "q.npy", "--json")["ids"] == [[], []]
    assert "0 codes" in run("store", "search", url, tmp_path / "q.npy").output
    assert run("store", "verify", url, "--json")["queries"] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("push sqlite://c.db c.npy", "url must be sqlite:///path"),
        ("push mysql://x/y c.npy", "url must begin with one of sqlite://"),
        ("push c.db c.npy", "milvus+https://; got 'c.db'"),
        ("push {url} c.npy --bits 16", "n_bits must be 12, as of the codes in"),
        ("push {url} c.npy --ids names.txt", "ids must be whole numbers, as those in the store"),
        ("push {url} c.npy --ids few.npy", "few.npy holds 2 ids, and there are 120 codes"),
        ("push {url} missing.npy", "codes: there is no file missing.npy"),
        ("search {url} features.npy", "features.npy holds no codes"),
        ("search {url} c.npy -k 0", "k must be a whole number of at least 1"),
        (
            "search sqlite:///missing.db c.npy",
            "there is no store at sqlite:///missing.db;",
        ),
        ("search {url} features.npy --model {model} --by tables", "has no tables: --by outputs"),
        ("search {url} features.npy --model wide.safetensors", "wide.safetensors"),
        (
            "verify sqlite:///missing.db",
            "there is no store at sqlite:///missing.db;",
        ),
        ("verify {url} c.npy --ids few.npy", "few.npy holds 2 ids, and there are 120 codes"),
    ],
)
def test_problems_are_told_in_one_line(
    pushed, here, run, model, tmp_path, monkeypatch, arguments, says
):
    np.save(tmp_path / "features.npy", np.load("features.npy"))
    np.save(tmp_path / "few.npy", [1, 2])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("\n".join(f"n{i}" for i in range(120)))
    result = run("store", *arguments.format(url=pushed, model=model).split(), code=1)
    messages = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(messages) == 1
    assert says in messages[0]
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("search sqlite:///a.db c.npy -k 3 -r 2", "--radius finds all codes within it"),
        ("search sqlite:///a.db c.npy --by tables", "--by tables needs the --model"),
        ("search sqlite:///a.db c.npy -r 2 --by outputs", "--radius counts bits: leave out --by"),
        ("verify sqlite:///a.db --ids i.npy", "--ids are those of CODES: give both"),
        ("encode-again sqlite:///a.db --model m --ids i.npy", "--ids are those of --vectors"),
        ("verify sqlite:///a.db --queries 0", "0 is not in the range"),
        ("psuh sqlite:///a.db", "No such command 'psuh'. Did you mean 'push'?"),
    ],
)
def test_wrong_use(run, arguments, says):
    assert says in run("store", *arguments.split(), code=2).output
