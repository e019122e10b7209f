"""The SQL of docs/interop.md and docs/stores.md runs, and finds what it should."""

import re
from pathlib import Path

import numpy as np

from auxhash import HammingIndex, stores
from auxhash.codes import hamming, pack, sign, to_words
from auxhash.stores.address import Address
from auxhash.stores.connection import Connection
from auxhash.stores.postgresql import bit_strings
from tests.stores.engines import check_installed
from tests.stores.test_contract import random_codes

DOCS = Path(__file__).parents[2] / "docs"


def statements(heading, page="interop"):
    """The SQL of a section, statement by statement, without comments."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    text = "\n".join(re.findall(r"```sql\n(.*?)```", section, re.DOTALL))
    plain = re.sub(r"--.*", "", text)
    return [part.strip() for part in plain.split(";") if part.strip()]


def test_postgresql(postgresql, tmp_path):
    rng = np.random.default_rng(0)
    base = random_codes(rng, 200, 32)
    texts = bit_strings(base, 32)
    file = tmp_path / "codes.csv"
    file.write_text("".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    query = np.array([[0b10000001, 0b00000010, 0, 0]], np.uint8)
    distances, ids = HammingIndex(32).add(base).search(query, 5)
    searched = 0
    with Connection(Address.of(postgresql)) as connection:
        for statement in statements("PostgreSQL with pgvector"):
            if statement.startswith("CREATE EXTENSION"):
                connection.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            elif statement.startswith("COPY"):
                # The server reads a file of its own machine; a client sends one the same way.
                command, options = re.fullmatch(
                    r"(COPY items FROM) '[^']*'(.*)", statement
                ).groups()
                connection.run(f"{command} STDIN{options}", stream=[file.read_text()])
            else:
                rows = connection.run(statement)
                if statement.startswith("SELECT"):
                    searched += 1
                    assert [row[0] for row in rows] == ids[0].tolist()
                    assert [row[1] for row in rows] == distances[0].tolist()
    assert searched == 2


def test_duckdb():
    check_installed("duckdb")
    import duckdb

    rng = np.random.default_rng(1)
    base = random_codes(rng, 300, 32)
    words = to_words(base)[:, 0]
    [query] = np.array([1234567890], "<u8").view(np.uint8).reshape(1, 8)[:, :4]
    distances, ids = HammingIndex(32).add(base).search(query, 5)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE items (id BIGINT, code UBIGINT, bits BIT)")
    rows = zip(range(300), words.tolist(), bit_strings(base, 32), strict=True)
    connection.executemany("INSERT INTO items VALUES (?, ?, ?::BIT)", list(rows))
    answers = [connection.execute(statement).fetchall() for statement in statements("DuckDB")]
    assert len(answers) == 2
    for answer in answers:
        assert [row[0] for row in answer] == ids[0].tolist()
        assert [row[1] for row in answer] == distances[0].tolist()


def recipe_data():
    """Vectors, their codes, a query with its code, and what the recipe should find."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 64)).astype(np.float32)
    packed, query = pack(sign(X)), X[3] + np.float32(0.1)
    [code] = pack(sign(query[None]))
    near = np.lexsort((np.arange(500), hamming(code[None], packed)[0]))[:100]
    expected = near[np.argsort(((X[near] - query) ** 2).sum(axis=1))[:10]]
    return X, packed, query, code, expected.tolist()


def test_recipe_in_postgresql(postgresql):
    X, packed, query, code, expected = recipe_data()
    statement = statements("A filter of codes, then the vectors", "stores")[0]
    with Connection(Address.of(postgresql)) as connection:
        connection.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.run(
            "CREATE TABLE items (id bigint PRIMARY KEY, code bit(64), vector vector(64))"
        )
        lines = [f"{i}\t{x.tolist()}\n" for i, x in enumerate(X)]
        connection.run("COPY items (id, vector) FROM STDIN", stream=lines)
        with stores.open(f"{postgresql}&table=items") as store:
            store.upsert(range(500), packed)
        parameters = {"code": bit_strings(code[None], 64)[0], "vector": str(query.tolist())}
        assert [name for (name,) in connection.run(statement, **parameters)] == expected


def test_recipe_in_duckdb():
    check_installed("duckdb")
    import duckdb

    X, packed, query, code, expected = recipe_data()
    statement = statements("A filter of codes, then the vectors", "stores")[1]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE items (id BIGINT, code UBIGINT, vector FLOAT[64])")
    rows = zip(range(500), to_words(packed)[:, 0].tolist(), X.tolist(), strict=True)
    connection.executemany("INSERT INTO items VALUES (?, ?, ?)", list(rows))
    parameters = [to_words(code[None]).item(), query.tolist()]
    assert [name for (name,) in connection.execute(statement, parameters).fetchall()] == expected
