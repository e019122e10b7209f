"""Particulars of each engine: its own errors, its own indexes, its own limits."""

import os
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from auxhash import stores
from auxhash.codes import hamming
from auxhash.stores import StoreError, milvus
from auxhash.stores.address import Address
from auxhash.stores.connection import Connection, settings
from tests.stores.engines import check_installed, without_sve
from tests.stores.test_contract import Gate, both, check, random_codes, truth


def test_postgresql_unreachable(tmp_path):
    check_installed("postgresql")
    with pytest.raises(StoreError, match=r"postgresql://me:\*\*\*@/db\?host=.*: connection .*fail"):
        stores.open(f"postgresql://me:secret@/db?host={tmp_path}", n_bits=8)


def test_the_server_outlives_the_start_of_other_sessions(server, tmp_path_factory):
    """Pytest takes the folder above its temporary ones from other users whenever it starts."""
    tmp_path_factory.getbasetemp().parent.chmod(0o700)
    with Connection(Address.of(server)) as connection:
        connection.run("CHECKPOINT")


def test_postgresql_connects_again(postgresql):
    """After the server has closed the connections, one call fails, and the next connects anew."""
    with stores.open(postgresql, n_bits=8) as store:
        store.upsert([1], np.zeros((1, 1), np.uint8))
        assert both(store.count, Gate(store, "_count")) == [1, 1]
        assert len(store._pool._idle) == 2
        with Connection(Address.of(postgresql)) as other:
            own = "pid <> pg_backend_pid() AND datname = current_database()"
            other.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {own}")

        def ask():
            for _ in range(50):  # until the signal has arrived
                store.count()
                time.sleep(0.02)

        with pytest.raises(StoreError, match=r"postgresql://.*: .*connection"):
            ask()
        assert store.count() == 1


def test_postgresql_reads_at_the_same_time(postgresql):
    """Two searches wait in the server at once, for a lock on the table."""
    zero = np.zeros((1, 1), np.uint8)
    with stores.open(postgresql, n_bits=8) as store, Connection(Address.of(postgresql)) as other:
        store.upsert([1], zero)
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        with ThreadPoolExecutor(2) as threads:
            with other.transaction():
                other.run("LOCK TABLE codes")
                answers = [threads.submit(store.search, zero, 1) for _ in range(2)]
                for _ in range(3000):  # until both have come so far
                    if other.run(waiting) == [[2]]:
                        break
                    time.sleep(0.01)
                assert other.run(waiting) == [[2]]
            assert [each.result()[1].tolist() for each in answers] == [[[1]], [[1]]]


def test_duckdb_reads_at_the_same_time(tmp_path):
    """A function in the statement waits for the other search to come so far."""
    check_installed("duckdb")
    zero, barrier = np.zeros((1, 1), np.uint8), threading.Barrier(2)

    def meet(number: int) -> int:
        barrier.wait(30)
        return number

    with stores.open(stores.file_url("duckdb", tmp_path / "a.db"), n_bits=8) as store:
        store.upsert([1], zero)
        store._database.create_function("meet", meet, ["INTEGER"], "INTEGER")
        store._distance = f"meet(({store._distance})::INTEGER)"
        answers = both(lambda: store.search(zero, 1))
        assert [ids.tolist() for _, ids in answers] == [[[1]], [[1]]]


def test_lancedb_lists_its_ids_once(tmp_path, monkeypatch):
    """Pages of one version are taken by their rows: a scan for each would be quadratic."""
    check_installed("lancedb")
    from lancedb.table import LanceTable

    scans = []
    search = LanceTable.search

    def counted(table, *query, **options):
        scans.append(query)
        return search(table, *query, **options)

    packed = random_codes(np.random.default_rng(6), 200, 16)
    with stores.open(stores.file_url("lancedb", tmp_path / "l"), n_bits=16) as store:
        store.upsert(np.arange(200)[::-1], packed)
        monkeypatch.setattr(LanceTable, "search", counted)
        read = list(store.batches(10))
        assert len(read) == 20
        np.testing.assert_array_equal(np.concatenate([codes for _, codes in read]), packed[::-1])
        assert len(scans) == 1
        assert store._listed is None


@pytest.mark.parametrize("kind", [ConnectionResetError, BrokenPipeError, TimeoutError])
def test_postgresql_tells_of_a_broken_connection(postgresql, monkeypatch, kind):
    """The system's error depends on when the server's last words arrive."""

    def broken(*_, **__):
        raise kind(1, "Words of the system")

    with stores.open(postgresql, n_bits=8) as store:
        store.upsert([1], np.zeros((1, 1), np.uint8))
        monkeypatch.setattr(store._pool._idle[0]._server, "run", broken)
        with pytest.raises(StoreError, match=r"the connection broke: Words of the system$"):
            store.count()
        assert store.count() == 1


def test_postgresql_after_an_interrupt(postgresql):
    """The answer that nobody waited for is not taken for the next one's."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with stores.open(postgresql, n_bits=8) as store:
            store.upsert([1], np.zeros((1, 1), np.uint8))
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt), store._talking():
                store._connection.run("SELECT 77 FROM pg_sleep(0.5)")
            assert store.count() == 1
    finally:
        signal.signal(signal.SIGALRM, before)


def test_postgresql_errors_of_the_server(postgresql):
    """They are told in the server's words, nothing of the write stays, and the store goes on."""
    with Connection(Address.of(postgresql)) as connection:
        connection.run("CREATE TABLE codes (id bigint PRIMARY KEY CHECK (id < 9), code bit(8))")
    with stores.open(postgresql) as store:
        with pytest.raises(StoreError, match=r"^postgresql://[^{\n]*: new row .* violates [^\n]*$"):
            store.upsert([1, 9], np.zeros((2, 1), np.uint8))
        assert store.count() == 0
        store.upsert([1], np.zeros((1, 1), np.uint8))
        assert store.count() == 1
    with pytest.raises(StoreError, match='connection failed: database "none" does not exist'):
        stores.open(postgresql.replace("/postgres?", "/none?"), n_bits=8)


def test_postgresql_that_has_gone_before_the_leave(postgresql, monkeypatch):
    """pg8000 takes its leave of a server that has hung up already: what it said is told."""
    from pg8000.core import CoreConnection

    leave = CoreConnection.close

    def late(connection):
        time.sleep(0.3)
        leave(connection)

    monkeypatch.setattr(CoreConnection, "close", late)
    with pytest.raises(StoreError, match='connection failed: database "none" does not exist'):
        stores.open(postgresql.replace("/postgres?", "/none?"), n_bits=8)


def test_postgresql_that_says_nothing_while_an_error_is_handled(tmp_path):
    """The error that is handled is another one, and not told as the server's."""
    check_installed("postgresql")
    from pg8000.exceptions import DatabaseError

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / ".s.PGSQL.5432"))
        listening.listen()

        def hang_up():
            for _ in range(2):
                listening.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        url = f"postgresql:///postgres?host={tmp_path}&user=me"
        with pytest.raises(StoreError, match="the server has closed the connection"):
            stores.open(url, n_bits=8)
        try:
            raise DatabaseError({"M": "something else"})
        except DatabaseError:
            with pytest.raises(StoreError, match="the server has closed the connection"):
                stores.open(url, n_bits=8)
        thread.join()


@pytest.fixture
def port(postgresql):
    """A port of this machine that leads to the server's socket."""
    folder = settings(Address.of(postgresql))["host"]

    class Forward(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(f"{folder}/.s.PGSQL.5432")
                ends = {self.request: server, server: self.request}
                while True:
                    for end in select.select(list(ends), [], [])[0]:
                        data = end.recv(65536)
                        if not data:
                            return
                        ends[end].sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Forward) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield listening.server_address[1]
        listening.shutdown()
        thread.join()


def test_postgresql_by_tcp(postgresql, port):
    rng = np.random.default_rng(5)
    packed = random_codes(rng, 300, 64)
    options = postgresql.partition("&")[2]
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres?{options}"
    with stores.open(f"{url}&connect_timeout=9", n_bits=64) as store:
        store.upsert(range(300), packed)
        check(store, np.arange(300), packed, packed[:2])
    with pytest.raises(StoreError, match=r"connection failed: .*Server refuses SSL"):
        stores.open(f"{url}&sslmode=require")


@pytest.mark.parametrize("answer", [b"", b"N", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 99])
def test_postgresql_server_of_something_else(answer):
    check_installed("postgresql")

    class Other(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(8)
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Other) as listening:
        thread = threading.Thread(target=listening.handle_request)
        thread.start()
        with pytest.raises(StoreError, match=r"^postgresql://me:\*\*\*@[^\n]*connection failed: "):
            stores.open(f"postgresql://me:secret@127.0.0.1:{listening.server_address[1]}/db", 8)
        thread.join()
    with pytest.raises(StoreError, match=r"connection to 127.0.0.1:\d+ failed: .*refused"):
        stores.open(f"postgresql://me:secret@127.0.0.1:{listening.server_address[1]}/db", 8)


def test_postgresql_tables_of_something_else(postgresql):
    with Connection(Address.of(postgresql)) as connection:
        connection.run("CREATE TABLE codes (id bigint, code bytea)")
        connection.run("CREATE TABLE small (id integer, code bit(8))")
    for table in ("codes", "small"):
        with pytest.raises(StoreError, match=rf"{table} is no store: it needs columns id bigint"):
            stores.open(f"{postgresql}&table={table}", n_bits=8)


def test_postgresql_beside_vectors(postgresql):
    """A table of the user's own, where codes stand beside other columns and some are missing."""
    rng = np.random.default_rng(0)
    packed = random_codes(rng, 30, 12)
    with Connection(Address.of(postgresql)) as connection:
        connection.run("CREATE TABLE items (id bigint PRIMARY KEY, name text, code bit(12))")
        connection.run("INSERT INTO items VALUES (5, 'five', NULL), (99, 'no code', NULL)")
        with stores.open(f"{postgresql}&table=items") as store:
            assert store.n_bits == 12
            assert len(store) == 0
            store.upsert(range(30), packed)
            check(store, np.arange(30), packed, packed[:2])
        assert connection.run("SELECT name FROM items WHERE id = 5") == [["five"]]


@pytest.mark.skipif(
    without_sve(), reason="the pgvector of this package needs a processor with SVE, and dies here"
)
def test_pgvector_agrees_and_its_indexes_do_not_mislead_us(postgresql):
    """`<~>` gives our distances. With its index, PostgreSQL's own answer is wrong; ours is not."""
    rng = np.random.default_rng(1)
    packed, queries = random_codes(rng, 3000, 64), random_codes(rng, 3, 64)
    with Connection(Address.of(postgresql)) as connection:
        connection.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        with stores.open(postgresql, n_bits=64) as store:
            store.upsert(range(3000), packed)
            [[text]] = connection.run("SELECT code::text FROM codes WHERE id = 7")
            rows = connection.run(
                "SELECT id, code <~> :code::bit(64) FROM codes ORDER BY id", code=text
            )
            expected = hamming(packed[7][None], packed)[0]
            assert [distance for _, distance in rows] == expected.tolist()
            connection.run("CREATE INDEX ON codes USING ivfflat (code bit_hamming_ops)")
            connection.run("ANALYZE codes")
            theirs = [
                distance
                for (distance,) in connection.run(
                    "SELECT code <~> :code::bit(64) AS d FROM codes ORDER BY d, id LIMIT 50",
                    code=text,
                )
            ]
            assert theirs != np.sort(expected)[:50].tolist()  # only one list was looked into
            check(store, np.arange(3000), packed, queries, (50,), (20,))


def test_lancedb_indexes_do_not_mislead_us(tmp_path):
    """An index that somebody else has made on the column is passed by."""
    check_installed("lancedb")
    import lancedb

    rng = np.random.default_rng(2)
    packed, queries = random_codes(rng, 3000, 64), random_codes(rng, 3, 64)
    with stores.open(f"lancedb:///{tmp_path}/l", n_bits=64) as store:
        store.upsert(range(3000), packed)
        table = lancedb.connect(tmp_path / "l").open_table("codes")
        lists = lancedb.index.IvfFlat(distance_type="hamming", num_partitions=16)
        table.create_index("code", config=lists)
        theirs = table.search(queries[0], vector_column_name="code").distance_type("hamming")
        result = theirs.nprobes(1).select(["_distance"]).limit(50).to_arrow()["_distance"]
        right = np.sort(hamming(queries[:1], packed)[0])[:50]
        assert result.to_pylist() != right.tolist()
        check(store, np.arange(3000), packed, queries, (50,), (20,))


WRITER = """
import sys
import numpy as np
from auxhash import stores

with stores.open(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(10):
        store.upsert(np.arange(5) + 5 * turn, np.zeros((5, 2), np.uint8))
"""


@pytest.mark.parametrize("engine", ["sqlite", "lancedb"])
def test_two_processes_that_insert_the_same_ids(engine, tmp_path):
    """LanceDB by itself would hold some of them twice."""
    check_installed(engine)
    url = f"{engine}:///{tmp_path}/{engine}.db"
    stores.open(url, n_bits=16).close()
    command = [sys.executable, "-c", WRITER, url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen(command, **pipes) for _ in range(2)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate() and writer.returncode for writer in writers] == [0, 0]
    with stores.open(url) as store:
        check(store, np.arange(50), np.zeros((50, 2), np.uint8), np.zeros((1, 2), np.uint8))


def test_lancedb_tables_of_something_else(tmp_path):
    check_installed("lancedb")
    import lancedb

    lancedb.connect(tmp_path / "l").create_table("codes", [{"id": 1, "x": 2.0}])
    with pytest.raises(StoreError, match="codes is no store: its schema does not say"):
        stores.open(f"lancedb:///{tmp_path}/l", n_bits=8)


@pytest.mark.parametrize("tied", [False, True])
def test_more_than_milvus_gives_at_once(tmp_path, monkeypatch, tied):
    """Its limit, 16,384 here, is made small; `make soak` meets the real one with 100,000 ties."""
    check_installed("milvus")
    monkeypatch.setattr(milvus, "MAX_RESULTS", 64)
    rng = np.random.default_rng(3)
    packed, queries = random_codes(rng, 600, 16, tied), random_codes(rng, 2, 16, tied)
    ids = rng.permutation(600)
    with stores.open(f"milvus:///{tmp_path}/m.db", n_bits=16) as store:
        store.upsert(ids, packed)
        expected = [truth(ids, packed, query) for query in queries]
        for k in (1, 63, 64, 65, 300, 600, 1000):
            distances, hits = store.search(queries, k)
            np.testing.assert_array_equal(distances, [near[:k] for near, _ in expected])
            np.testing.assert_array_equal(hits, [names[:k] for _, names in expected])
        for near, (right, _) in zip(store.search_radius(queries, 9)[0], expected, strict=True):
            np.testing.assert_array_equal(near, right[right <= 9])
        assert [len(part) for part, _ in store.batches(1000)][:2] == [64, 64]


def test_milvus_collections_of_something_else(tmp_path):
    check_installed("milvus")
    from pymilvus import MilvusClient

    client = MilvusClient(f"{tmp_path}/m.db")
    client.create_collection("codes", dimension=4)
    client.close()
    with pytest.raises(StoreError, match="codes is no store: its description names no n_bits"):
        stores.open(f"milvus:///{tmp_path}/m.db", n_bits=8)


def test_milvus_unreachable():
    check_installed("milvus")
    with pytest.raises(StoreError, match=r"milvus\+http://127.0.0.1:9: "):
        stores.open("milvus+http://127.0.0.1:9", n_bits=8)


def test_duckdb_files(tmp_path):
    check_installed("duckdb")
    import duckdb

    (tmp_path / "text.db").write_text("no database\n" * 1000)
    with pytest.raises(StoreError, match=r"text\.db: .*not a valid DuckDB"):
        stores.open(f"duckdb:///{tmp_path}/text.db", n_bits=8)
    with duckdb.connect(f"{tmp_path}/other.db") as other:
        other.execute("CREATE TABLE codes (country VARCHAR)")
    with pytest.raises(StoreError, match="codes is no store: auxhash_stores does not agree"):
        stores.open(f"duckdb:///{tmp_path}/other.db", n_bits=8)


@pytest.mark.skipif(not os.environ.get("AUXHASH_SOAK"), reason="make soak runs it")
def test_a_million_in_sqlite(tmp_path):
    rng = np.random.default_rng(4)
    packed = random_codes(rng, 1_000_000, 64, tied=True)
    with stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=64) as store:
        store.upsert(np.arange(len(packed)), packed)
    with stores.open(f"sqlite:///{tmp_path}/a.db") as store:
        expected = truth(np.arange(len(packed)), packed, packed[3])
        distances, ids = store.search(packed[3], 1000)
        np.testing.assert_array_equal(distances[0], expected[0][:1000])
        np.testing.assert_array_equal(ids[0], expected[1][:1000])
