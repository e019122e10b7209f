import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from auxhash import MACHash, NeighborHash, affinity, baselines, metrics
from auxhash.compute import context, threads
from auxhash.compute.context import ALONE
from auxhash.compute.peers import peers
from auxhash.files.gist import gist
from auxhash.learn.training import interrupt
from auxhash.search.index import ApproximateIndex, HammingIndex

rng = np.random.default_rng(0)
y = np.arange(120) % 3
X = rng.normal(size=(120, 6)) + 2 * np.eye(3, 6)[y]
FEW_PAIRS = {"n_similar": 5, "n_dissimilar": 10, "random_state": 0}


def test_what_is_not_given_stays_as_it_is():
    assert context.current() == context.Context(None, None, None)
    assert peers() is ALONE
    with context.using(n_jobs=3):
        with context.using(n_jobs=None), context.using(peers="others"):
            assert context.current() == context.Context(3, "others", None)
        with pytest.raises(ZeroDivisionError), context.using(n_jobs=5):
            raise ZeroDivisionError
        assert context.current() == context.Context(3, None, None)
    assert context.current() == context.Context(None, None, None)


def test_threads_of_a_pool_share_the_context_and_others_do_not():
    meeting = threading.Barrier(3, timeout=20)  # no thread takes two items

    def seen(_):
        meeting.wait()
        return context.current().n_jobs

    with context.using(n_jobs=3):
        with threads.pool() as run:
            assert run(seen, range(3)) == [3, 3, 3]
        assert threads.run_kernels(seen, range(3)) == [3, 3, 3]
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(lambda: context.current().n_jobs).result() is None


@pytest.fixture
def counts(monkeypatch):
    """The numbers of threads of all pools, by thread that asks."""
    result = {}
    count = threads.count

    def counted():
        result.setdefault(threading.current_thread().name, set()).add(count())
        return count()

    monkeypatch.setattr(threads, "count", counted)
    return result


def test_two_fits_at_once_have_threads_of_their_own(counts):
    def fit(n_jobs):
        threading.current_thread().name = f"fit {n_jobs}"
        MACHash(8, **FEW_PAIRS, max_iter=2, n_jobs=n_jobs).fit(X, y).encode(X)

    both = [threading.Thread(target=fit, args=(n_jobs,)) for n_jobs in (1, 3)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert counts["fit 1"] == {1}
    assert counts["fit 3"] == {3}


def fit_and_use(hasher):
    hasher.fit(X, y).score(X, y)
    hasher.decision_function(X)
    hasher.encode(X)


def search():
    index = HammingIndex(16, n_jobs=2).add(rng.integers(0, 256, (70_000, 2), np.uint8))
    index.search(np.zeros((40, 2), np.uint8), 5)
    index.radius_search(np.zeros((40, 2), np.uint8), 2)


def search_lists():
    pytest.importorskip("faiss")
    index = ApproximateIndex(16, n_lists=4, n_jobs=2).add(rng.integers(0, 256, (500, 2), np.uint8))
    index.search(np.zeros((4, 2), np.uint8), 5)


CODES = np.sign(X - X.mean(axis=0)).astype(np.int8)
PUBLIC = {
    "MACHash": lambda: fit_and_use(MACHash(8, **FEW_PAIRS, validation=0.2, max_iter=2, n_jobs=2)),
    "network": lambda: fit_and_use(MACHash(8, **FEW_PAIRS, hash_function="network", n_jobs=2)),
    "trees": lambda: fit_and_use(
        MACHash(2, **FEW_PAIRS, hash_function="trees", refine=None, max_iter=1, n_jobs=2)
    ),
    "NeighborHash": lambda: fit_and_use(NeighborHash(8, n_steps=20, random_state=0, n_jobs=2)),
    "AGH": lambda: fit_and_use(baselines.AGH(4, n_jobs=2)),
    "BRE": lambda: fit_and_use(baselines.BRE(4, n_jobs=2)),
    "KSH": lambda: fit_and_use(baselines.KSH(4, n_jobs=2)),
    "STH": lambda: fit_and_use(baselines.STH(4, n_jobs=2)),
    "from_labels": lambda: affinity.from_labels(y, 5, 10, 0, n_jobs=2),
    "from_neighbors": lambda: affinity.from_neighbors(X, 5, 10, random_state=0, n_jobs=2),
    "evaluate": lambda: metrics.evaluate(CODES, CODES, y, y, k=10, n_jobs=2),
    "map_by_sort": lambda: metrics.map_by_sort(CODES, CODES, y, y, n_jobs=2),
    "bit_correlation": lambda: metrics.bit_correlation(CODES, n_jobs=2),
    "HammingIndex": search,
    "ApproximateIndex": search_lists,
    "gist": lambda: gist(rng.integers(0, 256, (40, 32, 32), np.uint8), n_jobs=2),
}


@pytest.mark.filterwarnings("ignore")  # few points
@pytest.mark.parametrize("name", PUBLIC)
def test_n_jobs_reaches_every_pool(name, counts):
    PUBLIC[name]()
    assert set().union(*counts.values()) == {2}
    assert context.current() == context.Context()


def test_steps_leave_no_context_to_their_consumer(monkeypatch):
    """Nor do their generators, where they are closed after the training is over."""
    kept = []

    def first(watch, steps):
        kept.append(iter(steps))
        return [next(kept[-1])]

    monkeypatch.setattr(interrupt.Watch, "until_pressed", first)
    MACHash(8, **FEW_PAIRS, n_jobs=2, verbose=1).fit(X, y)
    NeighborHash(8, n_steps=20, random_state=0, n_jobs=2, verbose=1).fit(X)
    for steps in kept:
        steps.close()
        assert context.current() == context.Context()
