"""A service on a small store. `asking` needs auxhash[serve]; a module of tests skips without it."""

import numpy as np
import pytest

from auxhash.learn import baselines, encoder

BITS, FEATURES = 20, 6


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The path of a model of 20 bits for 6 features."""
    path = tmp_path_factory.mktemp("serve") / "model.safetensors"
    X = np.random.default_rng(0).normal(size=(200, FEATURES))
    baselines.LSH(n_bits=BITS, random_state=0).fit(X).save(path)
    return path


@pytest.fixture(scope="session")
def hasher(model):
    return encoder.load(model)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def client(url, hasher):
    from tests.serve.asking import asking

    with asking(url, hasher) as opened:
        yield opened
