"""A model, and points in many files."""

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from auxhash import MACHash
from auxhash.files.shards import Folder, Here
from auxhash.files.shards.reading import Columns

N, D = 50, 6


@pytest.fixture(scope="session")
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3 * N, D))


@pytest.fixture(scope="session")
def model(points):
    y = np.arange(len(points)) % 3
    settings = {"n_bits": 12, "n_similar": 5, "n_dissimilar": 10, "max_iter": 1, "random_state": 0}
    return MACHash(**settings, refine=None, n_jobs=1).fit(points + y[:, None], y)


@pytest.fixture
def folder(tmp_path, points):
    """Three .parquet files with ids 1000, 1001, ..."""
    for part in range(3):
        write(tmp_path / "points" / f"{part}.parquet", points[part * N :][:N], 1000 + part * N)
    return tmp_path


def write(path, X, first=0, size=20):
    path.parent.mkdir(exist_ok=True, parents=True)
    columns = {"id": np.arange(first, first + len(X)), "vector": list(X)}
    parquet.write_table(arrow.table(columns), path, row_group_size=size)


def encode(model, folder, runner=None, pattern="points/*.parquet", **columns):
    """Return what `Folder.encode` does, and what was told meanwhile."""
    counts = []
    work = Folder(f"{folder}/{pattern}", f"{folder}/codes", model, Columns(**columns))
    done = work.encode(runner or Here(), lambda *both: counts.append(both), counts.append)
    return done, counts


def read(path):
    """Ids, codes and metadata of a file of codes."""
    table = parquet.read_table(path)
    codes = np.array([list(code) for code in table["code"].to_pylist()], np.uint8)
    return table["id"].to_pylist(), codes, table.schema.metadata[b"auxhash"]
