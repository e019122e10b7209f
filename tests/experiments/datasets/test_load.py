import numpy as np
import pytest

import auxhash
from auxhash.experiments import datasets
from tests.programs import run_python


def test_digits():
    data = datasets.load("digits", seed=1)
    assert [len(part) for part in (data.train, data.base, data.query)] == [1500, 1500, 297]
    assert data.base.X.shape == (1500, 64)
    np.testing.assert_array_equal(data.query.images.reshape(297, 64), data.query.X)
    assert set(data.query.y) == set(range(10))
    assert "training points (the whole base)" in data.protocol
    assert "none of them in the base" in data.protocol
    assert "Seed 1." in data.protocol
    again = datasets.load("digits", seed=1)
    np.testing.assert_array_equal(data.query.X, again.query.X)
    assert not np.array_equal(datasets.load("digits", seed=2).query.y, data.query.y)


def test_sizes_can_be_lowered():
    data = datasets.load("digits", n_train=50, n_base=200, n_query=20)
    assert [len(part) for part in (data.train, data.base, data.query)] == [50, 200, 20]
    assert "50 training points (a random part of the base)" in data.protocol


def test_cosine_variant():
    data = datasets.load("digits", cosine=True)
    np.testing.assert_allclose(np.linalg.norm(data.base.X, axis=1), 1, rtol=1e-5)
    assert data.name == "digits-cosine"
    assert "Cosine" in data.protocol
    assert data.base.y is not None


@pytest.mark.parametrize(
    ("name", "meant"),
    [("cifar-10", "cifar10"), ("CIFAR10_GIST", "cifar10-gist"), ("minst", "mnist"), ("sift", None)],
)
def test_unknown_names_get_a_suggestion(name, meant):
    with pytest.raises(ValueError, match="data set must be one of") as caught:
        datasets.load(name)
    if meant:
        assert f"did you mean {meant!r}?" in str(caught.value)
    assert "digits, mnist" in str(caught.value)


def test_unknown_options_are_named():
    with pytest.raises(TypeError, match="digits has no option 'n_queries'; it takes n_train,"):
        datasets.load("digits", n_queries=3)


def test_every_name_has_a_loader():
    for name, entry in datasets.REGISTRY.items():
        assert callable(entry.load), name
        assert (not entry.files) == (name == "digits")


def test_public_names():
    assert auxhash.datasets is datasets
    for name in datasets.__all__:
        assert getattr(datasets, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        datasets.nothing  # noqa: B018


def test_naming_the_data_sets_is_quick():
    heavy = "{'numpy', 'numba', 'rich'}"
    code = f"import sys; from auxhash import datasets; assert not {heavy} & set(sys.modules)"
    run_python(code)
