"""Killed workers cost their share of the work; a cluster that is gone is a clear error."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from distributed import Client

from auxhash.dask import ClusterError, DaskMACHash, cluster, rounds
from tests.dask.conftest import FEW, cluster_of, cut

SETTINGS = {**FEW, "refine": None, "timeout": 300}
SOAK = bool(os.environ.get("AUXHASH_SOAK"))


def killed_at(monkeypatch, client, when):
    """Let the worker of the first partition be killed as soon as `when(round, requests)`."""
    made = rounds.Rounds._round
    dead = []

    def watched(self, requests, watch):
        if not dead and when(self.number, requests):
            dead.append(self.parts[0]._address)
            pids = client.run(os.getpid, workers=dead)
            os.kill(pids[dead[0]], signal.SIGKILL)
        return made(self, requests, watch)

    monkeypatch.setattr(rounds.Rounds, "_round", watched)
    return dead


MOMENTS = {
    "before the first step": lambda number, requests: number == 0,
    "in an h step": lambda number, requests: number == 30,
    "after a step": lambda number, requests: requests[0].kind == "tell",
    "as the h step ends": lambda number, requests: requests[0].kind == "outcome",
}
if SOAK:
    MOMENTS |= {f"in round {n}": (lambda number, requests, n=n: number == n) for n in range(60)}


@pytest.fixture(scope="module")
def two_processes():
    with cluster_of(2, processes=True) as found, Client(found) as client:
        yield client


@pytest.fixture(scope="module")
def undisturbed(client, points):
    return DaskMACHash(**SETTINGS, client=client).fit(*cut(*points, 3)).to_local()


@pytest.mark.parametrize("moment", MOMENTS if SOAK else ["in an h step"])
def test_a_killed_worker_costs_its_share(two_processes, points, undisturbed, monkeypatch, moment):
    dead = killed_at(monkeypatch, two_processes, MOMENTS[moment])
    found = DaskMACHash(**SETTINGS, client=two_processes).fit(*cut(*points, 3))
    assert dead
    assert found.n_lost_ >= 1
    np.testing.assert_array_equal(found.to_local().codes_, undisturbed.codes_)


def test_a_partition_that_is_always_lost_ends_the_training(client, points, monkeypatch):
    def never(self, number, reply):
        raise KeyError("no such actor")

    monkeypatch.setattr(rounds.Partition, "advance", never)
    with pytest.raises(ClusterError, match=r"partition 0 was lost 6 times"):
        DaskMACHash(**SETTINGS, client=client).fit(*cut(*points, 2))


def test_what_takes_too_long_is_told(client, points):
    def slow(d, y, b):
        time.sleep(2.5)
        return d - b * y

    with pytest.raises(TimeoutError, match=r"partition 0.* took more than timeout=1"):
        DaskMACHash(**{**SETTINGS, "loss": slow, "timeout": 1}, client=client).fit(*cut(*points, 2))


def test_a_cluster_without_workers_is_told(points, monkeypatch):
    monkeypatch.setattr(cluster, "NO_WORKERS", 0.5)
    with (
        cluster_of(0, processes=False) as empty,
        Client(empty) as own,
        pytest.raises(ClusterError, match="no workers"),
    ):
        DaskMACHash(**SETTINGS, client=own).fit(*cut(*points, 2))


def test_a_scheduler_that_is_gone_is_told(points, monkeypatch):
    with cluster_of(1, processes=False) as found, Client(found) as own:
        made = rounds.Rounds._round

        def gone(self, requests, watch):
            if self.number == 5:
                own.close()
            return made(self, requests, watch)

        monkeypatch.setattr(rounds.Rounds, "_round", gone)
        with pytest.raises(ClusterError, match="scheduler"):
            DaskMACHash(**SETTINGS, client=own).fit(*cut(*points, 2))


def test_no_thread_is_left(client, points):
    before = set(threading.enumerate())
    DaskMACHash(**SETTINGS, client=client).fit(*cut(*points, 4))
    for _ in range(100):
        left = [one for one in set(threading.enumerate()) - before if "_run" in one.name]
        if not left:
            break
        time.sleep(0.05)
    assert not left
