"""Many threads at once give the bytes that one after the other gives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_info

from auxhash import HammingIndex, MACHash
from auxhash.learn import baselines
from auxhash.learn.smooth import Refine
from auxhash.search import metrics
from tests.conftest import SOAK

N_THREADS, N_SEEDS = (6, 3) if SOAK else (4, 2)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400], X[400:600], y[400:600]


def fit_and_use(digits, seed):
    """Everything that a server's thread may do: bytes and numbers, to be compared."""
    X, y, queries, labels = digits
    settings = {"n_bits": 16, "n_similar": 10, "n_dissimilar": 30, "max_iter": 6}
    hashers = [
        MACHash(**settings, refine=Refine(n_steps=20, batch=200), random_state=seed),
        MACHash(**settings, hash_function="rbf", z_step="cut", refine=None, random_state=seed),
        baselines.ITQ(n_bits=16, random_state=seed),
        baselines.KSH(n_bits=8, n_anchors=100, max_iter=20, random_state=seed),
    ]
    parts = []
    for hasher in hashers:
        hasher.fit(X, y)
        base, codes = hasher.encode(X), hasher.encode(queries)
        distances, ids = HammingIndex(hasher.n_bits).add(base).search(codes, 20)
        precision = metrics.precision_at_k(codes, base, labels, y, [5, 50])
        parts += [base, codes, hasher.decision_function(queries), distances, ids, precision]
    return [np.asarray(part).tobytes() for part in parts]


def blas_threads():
    return [part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"]


def test_threads_do_not_disturb_each_other(digits):
    seeds = [seed % N_SEEDS for seed in range(N_THREADS)]
    expected = {seed: fit_and_use(digits, seed) for seed in set(seeds)}
    before = blas_threads()
    with ThreadPoolExecutor(N_THREADS) as executor:
        result = list(executor.map(lambda seed: fit_and_use(digits, seed), seeds))
    assert blas_threads() == before
    for seed, parts in zip(seeds, result, strict=True):
        assert parts == expected[seed]
