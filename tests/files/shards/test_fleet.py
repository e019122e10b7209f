"""Many files encoded by the workers of a cluster, also where some of them are killed."""

import os
import signal
import time
from functools import partial

import distributed
import numpy as np
import pytest
from click.testing import CliRunner
from distributed import Client

from auxhash import MACHash
from auxhash.cli import main
from auxhash.compute import cluster
from auxhash.compute.cluster import Cluster
from auxhash.dask import ClusterError
from auxhash.files.shards import fleet
from auxhash.files.shards.fleet import Fleet
from tests.dask.conftest import client, cluster_of  # noqa: F401
from tests.files.shards.conftest import encode, read, write


def coded(where, names):
    return {name: read(where / "codes" / name)[1].tobytes() for name in names}


def test_the_files_are_those_of_one_process(client, folder, model):  # noqa: F811
    done, counts = encode(model, folder, Fleet(Cluster(client, 60)))
    assert done == (3, 3, 150)
    assert sum(counts[1:]) == 150
    names = sorted(os.listdir(folder / "codes"))
    codes = coded(folder, names)
    (folder / "codes").rename(folder / "before")
    encode(model, folder)
    assert sorted(os.listdir(folder / "codes")) == names == ["0.parquet", "1.parquet", "2.parquet"]
    assert coded(folder, names) == codes
    assert encode(model, folder, Fleet(Cluster(client, 60)))[0].encoded == 0


class Slow(MACHash):
    """A model that takes its time, so that workers can be killed meanwhile."""

    def encode(self, X):
        time.sleep(0.3)
        return super().encode(X)


def test_a_killed_worker_costs_its_files(tmp_path, model, points):
    for part in range(12):
        write(tmp_path / "points" / f"{part:02}.parquet", points + part)
    slow = Slow()
    slow.__dict__.update(vars(model))
    with cluster_of(2, processes=True) as cluster, Client(cluster) as own:
        pids = own.run(os.getpid)
        killed = []

        class Killing(Fleet):
            def each(self, *arguments):
                for done in super().each(*arguments):
                    if arguments[2] is not None and not killed:
                        killed.append(next(iter(pids.values())))
                        os.kill(killed[0], signal.SIGKILL)
                    yield done

        done, _ = encode(slow, tmp_path, Killing(Cluster(own, 60)))
    assert killed
    assert done == (12, 12, 1800)
    names = [f"{part:02}.parquet" for part in range(12)]
    assert sorted(os.listdir(tmp_path / "codes")) == names  # and nothing is left of the lost ones
    for part, name in enumerate(names):
        np.testing.assert_array_equal(
            read(tmp_path / "codes" / name)[1], model.encode(points + part)
        )


def test_an_error_names_its_file(client, folder, model, points):  # noqa: F811
    rows = points[:50].copy()
    rows[3, 3] = np.inf
    write(folder / "points" / "1.parquet", rows)
    with pytest.raises(ValueError, match=r"1\.parquet.*row 3"):
        encode(model, folder, Fleet(Cluster(client, 60)))
    assert "1.parquet" not in os.listdir(folder / "codes")


def test_no_scheduler_is_told_within_a_limit(monkeypatch):
    monkeypatch.setattr(fleet, "CONNECT_TIMEOUT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with (
            pytest.raises(ClusterError, match=f"no scheduler answers at {address}"),
            fleet.fleet_at(address, None),
        ):
            pass


def test_no_workers_are_told_within_a_limit(folder, model, monkeypatch):
    monkeypatch.setattr(fleet, "MAX_WORKERLESS_SECONDS", 0.5)
    with (
        cluster_of(0, processes=False) as empty,
        Client(empty) as own,
        pytest.raises(ClusterError, match=r"no workers for 0\.5 seconds"),
    ):
        encode(model, folder, Fleet(Cluster(own, 60)))


def test_a_file_that_takes_too_long_is_told(client):  # noqa: F811
    runner = Fleet(Cluster(client, 0.1))
    assert cluster.SECONDS_PER_POLL > 0.1
    with pytest.raises(TimeoutError, match=r"no file was done within 0\.1 seconds"):
        list(runner.each(_slow, [1, 2, 3], None, lambda points: None))


@pytest.mark.parametrize("scheduler", ["address", "local"])
def test_the_command(client, folder, model, tmp_path, monkeypatch, scheduler):  # noqa: F811
    here = partial(distributed.LocalCluster, processes=False)  # quicker than processes
    monkeypatch.setattr(distributed, "LocalCluster", here)
    model.save(tmp_path / "model.safetensors")
    address = client.scheduler.address if scheduler == "address" else "local"
    arguments = [str(tmp_path / "model.safetensors"), str(folder / "points" / "*.parquet")]
    arguments += ["-o", str(tmp_path / "codes"), "--scheduler", address, "--jobs", "1"]
    result = CliRunner().invoke(main, ["encode", *arguments])
    assert result.exit_code == 0, result.output
    assert "150 codes of 12 bits in 3 files, 3 of them encoded now" in result.output
    assert client.status == "running"


def _slow(item, shared, tell):
    time.sleep(2)
