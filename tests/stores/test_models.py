"""Stores and the models of their codes: fingerprints, and codes that are encoded again."""

import json
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from auxhash import stores
from auxhash.codes import pack
from auxhash.compute.fingerprint import OtherModelError, UnknownModelWarning
from auxhash.model.model import LearntFrom
from auxhash.stores import ReencodingError
from tests.stores.test_contract import check, random_codes, truth

OLD, NEW, THIRD = "0123456789abcdef", "fedcba9876543210", "00000000000000ff"
BITS, FEATURES = 16, 5


class Model:
    """Random hyperplanes, which the fingerprint names."""

    n_bits, n_features = BITS, FEATURES
    learnt, table_function = LearntFrom("Model", 0, ""), None

    def __init__(self, fingerprint):
        self.fingerprint = fingerprint
        self._W = np.random.default_rng(int(fingerprint, 16)).normal(size=(FEATURES, BITS))

    def encode(self, X):
        return pack(np.where(np.asarray(X) @ self._W >= 0, 1, -1))


OLD_MODEL, NEW_MODEL = Model(OLD), Model(NEW)


def points(n):
    """Ids, and their vectors: always the same ones."""
    rng = np.random.default_rng(3)
    return np.sort(rng.choice(10 * n, n, replace=False)), rng.normal(size=(n, FEATURES))


def filled(url, n=50):
    """A store of points with codes of OLD_MODEL, their vectors beside them if it keeps any."""
    ids, X = points(n)
    store = stores.open(url, BITS)
    beside = (X, [{"even": bool(i % 2 == 0)} for i in ids]) if store.keeps_points else ()
    store.upsert(ids, OLD_MODEL.encode(X), *beside, fingerprint=OLD)
    return store


def extra(store, n=50):
    """The arguments with which a store of codes is encoded again."""
    ids, X = points(n)
    return {} if store.keeps_points else {"ids": ids, "vectors": X}


def quiet(call, *args, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call(*args, **more)


def test_codes_of_the_same_model_of_another_and_of_none(url):
    rng = np.random.default_rng(0)
    packed = random_codes(rng, 9, BITS)
    with stores.open(url, BITS, fingerprint=OLD) as store:
        assert store.fingerprint is None
        quiet(store.upsert, [1], packed[:1], fingerprint=OLD)  # the first says it
        assert store.fingerprint == OLD
        quiet(store.upsert, [2], packed[1:2], fingerprint=OLD)
        with pytest.raises(OtherModelError, match=rf"made by model {OLD} .*codes by model {NEW}"):
            store.upsert([3], packed[2:3], fingerprint=NEW)
        assert len(store) == 2
        store.upsert([3], packed[2:3], fingerprint=NEW, force=True)
        with pytest.warns(UnknownModelWarning, match="the new codes does not say which model"):
            store.upsert([4], packed[3:4])
        assert store.fingerprint == OLD
    with quiet(stores.open, url, fingerprint=OLD) as store:
        check(store, np.arange(1, 5), packed[:4], packed[:2])
    with quiet(stores.open, url) as store:
        assert store.fingerprint == OLD
    with pytest.raises(OtherModelError, match=rf"by model {OLD} and the model by model {NEW}"):
        stores.open(url, fingerprint=NEW)
    with pytest.raises(ValueError, match="fingerprint must be the fingerprint of a model, 16 hex"):
        stores.open(url, fingerprint="other")


def test_a_store_that_says_nothing(url):
    """It opens as before, as today's do, and takes the first fingerprint it is given."""
    rng = np.random.default_rng(0)
    packed = random_codes(rng, 9, BITS)
    with quiet(stores.open, url, BITS) as store:
        quiet(store.upsert, [1], packed[:1])
        quiet(store.upsert, [2], packed[1:2])
        assert store.fingerprint is None
    with (
        pytest.warns(UnknownModelWarning, match="does not say which model"),
        stores.open(url, fingerprint=OLD) as store,
    ):
        assert store.fingerprint is None  # whoever only looks says nothing
    with stores.open(url) as store:
        with pytest.warns(UnknownModelWarning, match=r"db|postgresql.* does not say which model"):
            store.upsert([3], packed[2:3], fingerprint=OLD)
        assert store.fingerprint == OLD
        check(store, np.arange(1, 4), packed[:3], packed[:2])


def test_tables_have_their_own_models(url):
    other = f"{url}{'&' if '?' in url else '?'}table=other"
    with stores.open(url, BITS) as store:
        store.upsert([1], random_codes(np.random.default_rng(0), 1, BITS), fingerprint=OLD)
    with stores.open(other, BITS) as store:
        store.upsert([1], random_codes(np.random.default_rng(0), 1, BITS), fingerprint=NEW)
    with stores.open(url) as store:
        assert store.fingerprint == OLD


def check_reencoded(store, n=50):
    """The store is as if the new model had filled it."""
    ids, X = points(n)
    assert store.fingerprint == NEW
    check(store, ids, NEW_MODEL.encode(X), NEW_MODEL.encode(X[:3]))
    if store.keeps_points:
        read = store.read(ids)
        for name, x in zip(ids.tolist(), X, strict=True):
            np.testing.assert_array_equal(read[name].vector, x)
            assert read[name].payload == {"even": name % 2 == 0}
        even = store.search(NEW_MODEL.encode(X[:1]), n, stores.Having("even", (True,)))[1][0]
        assert set(even) == set(ids[ids % 2 == 0])


def test_encoding_again(url):
    """Batch by batch the old codes are all that is found, and then the new ones."""
    ids, X = points(50)
    with filled(url) as store:

        def look(_):
            assert store.fingerprint == OLD
            check(store, ids, OLD_MODEL.encode(X), OLD_MODEL.encode(X[:3]))

        assert stores.encode_again(store, NEW_MODEL, **extra(store), batch=7, notify=look) == 50
        check_reencoded(store)
        assert stores.encode_again(store, NEW_MODEL, **extra(store)) == 0
        with pytest.raises(OtherModelError, match=f"{NEW}.*{OLD}"):
            store.upsert(ids[:1], OLD_MODEL.encode(X[:1]), fingerprint=OLD)
    with stores.open(url) as store:
        check_reencoded(store)
        assert stores.encode_again(store, OLD_MODEL, **extra(store)) == 50  # and back
    with stores.open(url) as store:
        check(store, ids, OLD_MODEL.encode(X), OLD_MODEL.encode(X[:3]))
        assert store.fingerprint == OLD


def test_encoding_a_store_again_that_says_nothing(url):
    ids, X = points(50)
    with stores.open(url, BITS) as store:
        payloads = ([{"even": bool(i % 2 == 0)} for i in ids],) if store.keeps_points else ()
        beside = (X, *payloads) if store.keeps_points else ()
        store.upsert(ids, OLD_MODEL.encode(X), *beside)
        assert stores.encode_again(store, NEW_MODEL, **extra(store)) == 50
        check_reencoded(store)


def test_another_connection_sees_the_switch(url):
    if url.startswith("milvus:"):
        pytest.skip("does not apply: one process, one connection")
    ids, X = points(50)
    with filled(url) as one, stores.open(url) as two:
        check(two, ids, OLD_MODEL.encode(X), OLD_MODEL.encode(X[:3]))
        with pytest.raises(ReencodingError, match="another model's now"), two.of_one_model():
            stores.encode_again(one, NEW_MODEL, **extra(one), batch=7)
        check_reencoded(two)


def test_writers_of_another_connection_meanwhile(url):
    """Whatever they put in until the switch is encoded again; after it, their codes are refused."""
    rng = np.random.default_rng(5)
    with filled(url, 400) as one:
        if not one.keeps_points:
            pytest.skip("does not apply: it keeps no vectors")

        def write():
            with stores.open(url) as two:
                begun.set()
                while not failed.is_set():
                    X = rng.normal(size=(3, FEATURES))
                    ids = rng.choice(5_000, 3, replace=False)
                    two.upsert(ids, OLD_MODEL.encode(X), X, fingerprint=OLD)

        begun, failed = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as threads:
            writer = threads.submit(write)
            assert begun.wait(30)
            try:
                stores.encode_again(one, NEW_MODEL, batch=20)
            except BaseException:
                failed.set()
                raise
            with pytest.raises(OtherModelError):
                writer.result()
        ids = np.concatenate([names for names, _ in one.batches()])
        read = one.read(ids)
        X = np.stack([read[name].vector for name in ids.tolist()])
        check(one, ids, NEW_MODEL.encode(X), NEW_MODEL.encode(X[:3]))


class StopError(Exception):
    pass


def stop_after(n):
    def stop(done):
        if done >= n:
            raise StopError

    return stop


def test_what_is_put_in_and_deleted_meanwhile(url):
    """Points with vectors are encoded again; codes alone are refused; what is deleted is gone."""
    ids, X = points(50)
    changed = np.random.default_rng(9).normal(size=(3, FEATURES))
    with filled(url) as store:
        with pytest.raises(StopError):
            stores.encode_again(store, NEW_MODEL, **extra(store), batch=10, notify=stop_after(20))
        with pytest.raises(ReencodingError, match=f"being encoded again by model {NEW}: until"):
            store.upsert(ids[:1], OLD_MODEL.encode(X[:1]), fingerprint=OLD)
        assert store.delete(ids[[1, 40]]) == 2
        names, vectors = np.delete(ids, [1, 40]), np.delete(X, [1, 40], axis=0)
        if store.keeps_points:
            new = [ids[0], ids[45], 10**6]  # encoded already, not yet, and new
            store.upsert(new, OLD_MODEL.encode(changed), changed, fingerprint=OLD)
            vectors[[0, 43]] = changed[:2]
            names, vectors = np.append(names, 10**6), np.vstack([vectors, changed[2]])
        check(store, names, OLD_MODEL.encode(vectors), OLD_MODEL.encode(X[:3]))
        stores.encode_again(store, NEW_MODEL, **extra(store), batch=10)
        check(store, names, NEW_MODEL.encode(vectors), NEW_MODEL.encode(X[:3]))


def test_a_change_of_plan(url):
    """Another model begins anew; the store's own gives up; and two at once do not mix."""
    third = Model(THIRD)
    with filled(url) as store:
        ids, X = points(50)
        with pytest.raises(StopError):
            stores.encode_again(store, third, **extra(store), batch=10, notify=stop_after(20))
        assert stores.encode_again(store, OLD_MODEL, **extra(store)) == 0  # given up
        check(store, ids, OLD_MODEL.encode(X), OLD_MODEL.encode(X[:3]))
        with pytest.raises(StopError):
            stores.encode_again(store, third, **extra(store), batch=10, notify=stop_after(20))

        def begin(_):
            stores.encode_again(store, NEW_MODEL, **extra(store), batch=9)

        with pytest.raises(ReencodingError, match=f"by model None now, and no longer by {THIRD}"):
            stores.encode_again(store, third, **extra(store), batch=10, notify=begin)
        check_reencoded(store)


def test_what_cannot_be_encoded_again(url):
    ids, X = points(50)
    wide = Model(NEW)
    wide.n_bits = 24
    with filled(url) as store:
        with pytest.raises(ValueError, match=r"codes of 24 bits, and .* holds codes of 16: they"):
            stores.encode_again(store, wide, ids, X)
        with pytest.raises(ValueError, match="ids are those of vectors: give both"):
            stores.encode_again(store, NEW_MODEL, ids)
        with pytest.raises(ValueError, match="vectors must be one for each of 50 ids, got 49"):
            stores.encode_again(store, NEW_MODEL, ids, X[1:])
        with pytest.raises(ValueError, match="ids must not name a vector twice, 3 does"):
            stores.encode_again(store, NEW_MODEL, [3, 3], X[:2])
        if not store.keeps_points:
            with pytest.raises(ValueError, match=f"point {ids[-1]} has no vector in"):
                stores.encode_again(store, NEW_MODEL, ids[:-1], X[:-1])
            with pytest.raises(ValueError, match="keeps no vectors: give those of its"):
                stores.encode_again(store, NEW_MODEL)
        check(store, ids, OLD_MODEL.encode(X), OLD_MODEL.encode(X[:3]))


def test_vectors_of_the_store_before_those_of_a_file(url):
    ids, X = points(50)
    with filled(url) as store:
        if not store.keeps_points:
            pytest.skip("does not apply: it keeps no vectors")
        store.upsert([77_777], OLD_MODEL.encode(X[:1]), fingerprint=OLD)  # a code alone
        with pytest.raises(ValueError, match="point 77777 has no vector"):
            stores.encode_again(store, NEW_MODEL)
        names, others = np.append(ids, 77_777), np.vstack([np.zeros_like(X), X[1]])
        stores.encode_again(store, NEW_MODEL, names, others)
        check(store, names, NEW_MODEL.encode(np.vstack([X, X[1]])), NEW_MODEL.encode(X[:3]))


@pytest.fixture
def service():
    """The classes of a service, and of a query to it."""
    pytest.importorskip("fastapi", reason="auxhash[serve] is missing")
    from auxhash.serve.schemas import NewPoint, Queries
    from auxhash.serve.service import RefusedError, Service

    class Asked(Service):
        def near(self, **asked):
            [result] = json.loads(self.query(Queries(**asked)))["results"]
            return tuple([hit[name] for hit in result["hits"]] for name in ("id", "distance"))

        def put(self, fingerprint=None, **point):
            return self.upsert([NewPoint(**point)], fingerprint)

    Asked.Refused = RefusedError
    return Asked


def nearest(model, x, k=10):
    """Ids and distances that a store of this model's codes finds."""
    ids, X = points(50)
    near, names = truth(ids, model.encode(X), model.encode(x[None])[0])
    return names[:k].tolist(), near[:k].tolist()


def test_a_service_of_the_same_model_of_another_and_of_none(url, service):
    x = points(50)[1][3]
    with filled(url) as store:
        assert quiet(service, store, OLD_MODEL).near(vectors=[x.tolist()]) == nearest(OLD_MODEL, x)
        with pytest.raises(OtherModelError, match=rf"{OLD} .*{NEW}: .*; --old-model .*again`"):
            service(store, NEW_MODEL)
        quiet(service, store, NEW_MODEL, any_model=True).near(vectors=[x.tolist()])
        quiet(service, store)
    other = f"{url}{'&' if '?' in url else '?'}table=other"
    with stores.open(other, BITS) as store:
        quiet(service, store, NEW_MODEL)  # empty: it will be this model's
        store.upsert([1], OLD_MODEL.encode(x[None]))
        with pytest.warns(UnknownModelWarning, match="does not say which model"):
            asked = service(store, NEW_MODEL)
        assert asked.info()["made_by"] is None


def test_a_service_never_mixes(url, service):
    """It answers from the old codes, and then from the new ones; also amid a query."""
    ids, X = points(50)
    x = X[7].tolist()
    with filled(url) as store:
        asked = service(store, NEW_MODEL, old=OLD_MODEL)
        both = [{"vectors": [x]}, {"ids": [int(ids[7])]}]

        def look(done):
            assert [asked.near(**each) for each in both] == [nearest(OLD_MODEL, X[7])] * 2
            assert asked.info()["made_by"] == OLD
            if store.keeps_points:  # the same vector, by the model of the moment
                asked.put(id=int(ids[0]), vector=X[0].tolist(), payload={"a": 1})
            else:
                with pytest.raises(service.Refused, match="being encoded again") as refused:
                    asked.put(id=int(ids[0]), vector=X[0].tolist())
                assert refused.value.status == 503
            stop_after(20)(done)

        with pytest.raises(StopError):
            stores.encode_again(store, NEW_MODEL, **extra(store), batch=10, notify=look)
        search, searches = store.search, []

        def late(*args):
            """The codes are replaced between encoding the first query and its search."""
            searches.append(args)
            if len(searches) == 1:
                stores.encode_again(store, NEW_MODEL, **extra(store))
            return search(*args)

        store.search = late
        assert asked.near(**both[0]) == nearest(NEW_MODEL, X[7])
        assert len(searches) == 2
        assert asked.near(**both[1]) == nearest(NEW_MODEL, X[7])
        assert (asked.info()["model"], asked.info()["made_by"]) == (NEW, NEW)
        asked.put(id=5_000, vector=x)
        np.testing.assert_array_equal(store.read([5_000])[5_000].code, NEW_MODEL.encode(X[7:8])[0])


def test_a_service_without_the_model_of_the_codes(url, service):
    ids, X = points(50)
    with filled(url) as store:
        asked = service(store, OLD_MODEL)
        stores.encode_again(store, NEW_MODEL, **extra(store))
        for call in (lambda: asked.near(vectors=[X[7]]), lambda: asked.put(id=1, vector=X[7])):
            with pytest.raises(service.Refused, match=f"are of model {NEW}.*has model {OLD}") as no:
                call()
            assert no.value.status == 503
        assert asked.near(ids=[int(ids[7])]) == nearest(NEW_MODEL, X[7])
        code = bytes(NEW_MODEL.encode(X[7:8])[0]).hex()
        assert asked.near(codes=[code], fingerprint=NEW) == nearest(NEW_MODEL, X[7])
        with pytest.raises(service.Refused, match=f"by model {OLD}, and those in .*{NEW}") as no:
            asked.near(codes=[code], fingerprint=OLD)
        assert no.value.status == 409
        with pytest.raises(service.Refused, match=f"by model {OLD}, and those in .*{NEW}") as no:
            asked.put(id=1, code=code, fingerprint=OLD)
        assert no.value.status == 409
        assert asked.put(id=1, code=code, fingerprint=NEW) == quiet(asked.put, id=1, code=code) == 1


KILLED = """
import os, signal, sys
from auxhash import stores
from tests.stores.test_contract import check
from tests.stores.test_models import BITS, NEW, NEW_MODEL, OLD, OLD_MODEL, extra, filled, points

url, step, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = filled(url) if step == "_stage" else stores.open(url)
ids, X = points(50)
model = {OLD: OLD_MODEL, NEW: NEW_MODEL}[store.fingerprint]
check(store, ids, model.encode(X), model.encode(X[:3]))
owner = store
*path, last = step.split(".")
for name in path:
    owner = getattr(owner, name)
call, calls = getattr(owner, last), 0
def counted(*args, **more):
    global calls
    calls += 1
    if calls == n:
        os.kill(os.getpid(), signal.SIGKILL)
    return call(*args, **more)
setattr(owner, last, counted)
print(model.fingerprint, stores.encode_again(store, NEW_MODEL, **extra(store), batch=20))
check(store, ids, NEW_MODEL.encode(X), NEW_MODEL.encode(X[:3]))
"""
LAST = {"lancedb": "_database.drop_table", "milvus": "_client.drop_collection"}


def test_kills(url):
    """In the second batch, and amid the switch: the codes are of one model, and the rest follows.

    Processes of their own open the store: Milvus Lite leaves its file to one at a time.
    """

    def run(step, n):
        command = [sys.executable, "-c", KILLED, url, step, str(n)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=200, check=False)

    engine = url.partition(":")[0]
    assert run("_stage", 2).returncode == -signal.SIGKILL
    assert run(LAST.get(engine, "_set_models"), 1).returncode == -signal.SIGKILL
    ended = run("_switch", 99)
    assert ended.returncode == 0
    # The last transaction was undone; or, without transactions, only clearing up was missing.
    assert ended.stdout.split() == [NEW if engine in LAST else OLD, "0"]
