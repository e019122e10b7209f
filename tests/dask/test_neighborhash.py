"""NeighborHash on partitions: the codes of one machine, or those of a sample of all partitions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import auxhash
from auxhash import NeighborHash
from auxhash.dask import DaskNeighborHash
from auxhash.dask.neighborhash import _sample, _shares
from tests.dask.conftest import cluster_of, lazily

FEW_STEPS = {
    "n_bits": 8,
    "hash_function": "linear",
    "n_steps": 20,
    "n_neighbors": 3,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def X(points):
    return points[0]


@pytest.mark.parametrize("most", [100, 1000])
def test_one_partition_gives_the_codes_of_one_machine(client, X, tmp_path, most):
    local = NeighborHash(**FEW_STEPS, max_points=most).fit(X)
    model = DaskNeighborHash(**FEW_STEPS, max_points=most).fit(da.from_array(X, chunks=(500, -1)))
    local.save(tmp_path / "local")
    model.save(tmp_path / "found")
    assert (tmp_path / "found").read_bytes() == (tmp_path / "local").read_bytes()


def test_all_points_of_several_partitions_are_those_of_one_machine(client, X):
    """It does not matter how the points are cut, where nothing is drawn."""
    local = NeighborHash(**FEW_STEPS).fit(X)
    model = DaskNeighborHash(**FEW_STEPS).fit(da.from_array(X, chunks=((150, 0, 200, 150), -1)))
    np.testing.assert_array_equal(model.codes_.compute(), local.codes_)
    assert model.n_learnt_ == 500
    assert model.codes_.chunks == ((150, 200, 150), (1,))


def test_the_codes_do_not_depend_on_workers_and_threads(client, X):
    data = da.from_array(X, chunks=(120, -1))
    model = DaskNeighborHash(**FEW_STEPS, max_points=200).fit(data)
    assert model.n_learnt_ == 200
    with cluster_of(3, processes=False, n_threads=2) as other, Client(other) as own:
        again = DaskNeighborHash(**FEW_STEPS, max_points=200, client=own).fit(data)
        codes = again.to_local().codes_
    np.testing.assert_array_equal(model.to_local().codes_, codes)
    np.testing.assert_array_equal(model.hash_function_.W, again.hash_function_.W)


def test_the_sample_is_of_all_partitions_in_proportion(X):
    for most, sizes in ((100, [500, 300, 200]), (7, [1, 1, 1000]), (50, [10, 20]), (3, [1, 1, 1])):
        shares = _shares(most, sizes)
        assert sum(shares) == min(most, sum(sizes))
        for share, size in zip(shares, sizes, strict=True):
            assert abs(share - most * size / sum(sizes)) < 1 or share == size
            assert share <= size
    rows = _sample(X, 30, np.random.default_rng(0))
    assert len(np.unique(rows, axis=0)) == 30
    assert {tuple(row) for row in rows} <= {tuple(row) for row in X}


def test_it_encodes_lazily_and_saves(client, X, tmp_path):
    data = da.from_array(X, chunks=(200, -1))
    model = DaskNeighborHash(**FEW_STEPS).fit(data)
    made = model.encode(data)
    assert isinstance(made, da.Array)
    local = model.to_local()
    assert type(local) is NeighborHash
    np.testing.assert_array_equal(made.compute(), local.encode(X))
    np.testing.assert_array_equal(local.codes_, local.encode(X))
    assert model.to_local(codes=False).codes_.shape == (0, 1)
    model.save(tmp_path / "model.safetensors")
    loaded = auxhash.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.encode(X), local.encode(X))


def test_auto_is_the_processor(client, X):
    data = da.from_array(X, chunks=(200, -1))
    model = DaskNeighborHash(**FEW_STEPS, device="auto").fit(data)
    assert model.device_ == "cpu"
    expected = DaskNeighborHash(**FEW_STEPS).fit(data)
    np.testing.assert_array_equal(model.to_local().codes_, expected.to_local().codes_)


def test_dataframes(client, X):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = DaskNeighborHash(**FEW_STEPS).fit(dd.from_pandas(frame, npartitions=3))
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(
        model.to_local().codes_, NeighborHash(**FEW_STEPS).fit(frame).codes_
    )


@pytest.mark.parametrize(
    ("made", "settings", "said"),
    [
        (lambda X: X, {}, "X must be a dask array or dataframe, got ndarray"),
        (lambda X: None, {}, "X must be a dask array or dataframe, got None"),
        (lambda X: da.from_array(X[:2]), {}, "X must hold 3 points or more, got 2"),
        (lambda X: lazily([X[:9], X[9:, :5]]), {}, "partition 1 has 5 features"),
        (lambda X: lazily([X[:9], X[9:] * np.nan]), {}, "partition 1: .*NaN"),
        (da.from_array, {"max_points": None}, "max_points must be a whole number"),
        (da.from_array, {"device": "cuda"}, 'device must be "cpu" here'),
        (da.from_array, {"timeout": 0}, "timeout must be"),
        (da.from_array, {"n_steps": 0}, "n_steps must be"),
    ],
)
def test_what_cannot_be_learnt_from(client, X, made, settings, said):
    with pytest.raises(ValueError, match=said):
        DaskNeighborHash(**{**FEW_STEPS, **settings}).fit(made(X))


def test_labels_are_not_taken(client, X):
    data = da.from_array(X)
    with pytest.raises(ValueError, match="y must be None"):
        DaskNeighborHash(**FEW_STEPS).fit(data, data[:, 0])
