"""The paper's claim on real data: MAC never ends above the two-step loss it starts from."""

import itertools
import os

import numpy as np
import pytest
from sklearn.datasets import load_digits

from auxhash import MACHash, TwoStepHash

SEEDS = range(10 if os.environ.get("AUXHASH_SOAK") else 3)


@pytest.mark.parametrize(
    ("z_step", "hash_function", "loss", "n_bits"),
    list(itertools.product(["cut", "quad"], ["linear", "rbf"], ["ksh", "esplh"], [16, 32])),
)
def test_mac_is_better_than_two_steps(z_step, hash_function, loss, n_bits):
    X, y = load_digits(return_X_y=True)
    before, after = [], []
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = order[:400], order[400:]
        settings = {
            "n_bits": n_bits,
            "loss": loss,
            "z_step": z_step,
            "hash_function": hash_function,
            "n_similar": 15,
            "n_dissimilar": 40,
            "mu": 0.05,
            "max_sweeps": 1,
            "random_state": seed,
        }
        two = TwoStepHash(**settings).fit(X[train], y[train])
        mac = MACHash(**settings).fit(X[train], y[train])
        assert mac.loss_ <= two.loss_
        if hash_function == "linear":
            assert mac.loss_ < two.loss_
        before.append(two.score(X[test], y[test], k=50))
        after.append(mac.score(X[test], y[test], k=50))
    standard_error = np.std(before, ddof=1) / np.sqrt(len(before))
    assert np.mean(after) >= np.mean(before) - standard_error
