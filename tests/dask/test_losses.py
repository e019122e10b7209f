"""Killed workers cost their share of the work; a cluster that is gone is a clear error."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from distributed import Client, Worker

from auxhash import Refine
from auxhash.compute import cluster
from auxhash.dask import ClusterError, DaskMACHash, rounds, watching
from auxhash.learn.training.interrupt import TrainingInterrupted
from tests.dask.conftest import FEW_PAIRS, cluster_of, cut

SETTINGS = {**FEW_PAIRS, "refine": None, "timeout": 300}
SOAK = bool(os.environ.get("AUXHASH_SOAK"))


def killed_at(monkeypatch, client, when, computing):
    """Let the worker of the first partition be killed as soon as `when(round, requests)`.

    That is before the partitions are answered, or, if `computing`, as they have been.
    """
    made, gathered = rounds.Rounds._round, rounds.Rounds._gather
    dead, due = [], []

    def kill(self):
        dead.append(self.parts[0]._address)
        pids = client.run(os.getpid, workers=dead)
        os.kill(pids[dead[0]], signal.SIGKILL)

    def round_of(self, requests, watch):
        if not dead and when(self.number, requests):
            due.append(True) if computing else kill(self)
        return made(self, requests, watch)

    def gather(self, *arguments):
        if due and not dead:
            kill(self)
        return gathered(self, *arguments)

    monkeypatch.setattr(rounds.Rounds, "_round", round_of)
    monkeypatch.setattr(rounds.Rounds, "_gather", gather)
    return dead


class Nth:
    """True for the nth round in which the partitions ask for this kind of thing."""

    def __init__(self, kind, n):
        self.kind, self.left = kind, n

    def __call__(self, number, requests):
        self.left -= requests[0].kind == self.kind
        return self.left <= 0


MOMENTS = {  # by the kind of request: a Z step ends with a sum, an h step with an outcome
    "before the first step": lambda: lambda number, requests: number == 0,
    "in an h step": lambda: Nth("join", 7),  # once it has all points: after those of the start
    "after a step": lambda: Nth("tell", 1),
    "after the last but one": lambda: Nth("tell", 3),
    "as an h step ends": lambda: Nth("outcome", 1),
    "as a later h step ends": lambda: Nth("outcome", 3),
    "in the refinement": lambda: Nth("by", 3),
    "in a later turn of it": lambda: Nth("by", 6),
}
if SOAK:
    MOMENTS |= {
        f"in round {n}": lambda n=n: lambda number, requests: number == n for n in range(5, 100, 24)
    }


# Many kills in one cluster are apart: after some of them a nanny brings no worker back.
@pytest.fixture(scope="function" if SOAK else "module")
def two_processes():
    with cluster_of(2, processes=True) as cluster, Client(cluster) as client:
        yield client


REFINED = {**SETTINGS, "refine": Refine(n_steps=80)}


@pytest.fixture(scope="module")
def undisturbed(client, points):
    return DaskMACHash(**REFINED, client=client).fit(*cut(*points, 3)).to_local()


@pytest.mark.parametrize("computing", [False, True] if SOAK else [True])
@pytest.mark.parametrize("moment", MOMENTS if SOAK else ["in an h step"])
def test_a_killed_worker_costs_its_share(
    two_processes, points, undisturbed, monkeypatch, moment, computing
):
    two_processes.wait_for_workers(2, timeout=300)  # the one that was killed before is back
    dead = killed_at(monkeypatch, two_processes, MOMENTS[moment](), computing)
    model = DaskMACHash(**REFINED, client=two_processes).fit(*cut(*points, 3))
    assert dead
    assert model.n_lost_ >= 1
    np.testing.assert_array_equal(model.to_local().codes_, undisturbed.codes_)


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
    monkeypatch.setattr(cluster, "MAX_WORKERLESS_SECONDS", 0.5)
    with (
        cluster_of(0, processes=False) as empty,
        Client(empty) as own,
        pytest.raises(ClusterError, match="no workers"),
    ):
        DaskMACHash(**SETTINGS, client=own).fit(*cut(*points, 2))


def test_a_scheduler_that_is_gone_is_told(points, monkeypatch):
    with cluster_of(1, processes=False) as cluster, Client(cluster) as own:
        made = rounds.Rounds._round

        def gone(self, requests, watch):
            if self.number == 5:
                own.close()
            return made(self, requests, watch)

        monkeypatch.setattr(rounds.Rounds, "_round", gone)
        with pytest.raises(ClusterError, match="scheduler"):
            DaskMACHash(**SETTINGS, client=own).fit(*cut(*points, 2))


def gone_at(client, round_number, monkeypatch, do):
    """Let `do` be called in this round of the training."""
    made = rounds.Rounds._round

    def watched(self, requests, watch):
        if self.number == round_number:
            do(self)
        return made(self, requests, watch)

    monkeypatch.setattr(rounds.Rounds, "_round", watched)


SCHEDULER = """
import asyncio
from distributed import Scheduler

async def main():
    async with Scheduler(port=0, dashboard=False, host="127.0.0.1") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""


@pytest.mark.parametrize("round_number", [0, 30, 60] if SOAK else [30])
def test_a_killed_scheduler_is_told_within_a_limit(points, monkeypatch, round_number):
    """A scheduler in a process of its own, killed; its worker is in this one."""
    command = [sys.executable, "-c", SCHEDULER]
    scheduler = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    address = scheduler.stdout.readline().strip()

    async def worker():
        return await Worker(address, nthreads=1, dashboard=False, death_timeout=1)

    def kill(_):
        scheduler.kill()
        scheduler.wait()

    try:
        with Client(address, timeout=30) as own:
            started = own.sync(worker)
            gone_at(own, round_number, monkeypatch, kill)
            with pytest.raises(ClusterError, match="scheduler"):
                DaskMACHash(**SETTINGS, client=own).fit(*cut(*points, 2))
            own.sync(started.close, nanny=False)
    finally:
        scheduler.kill()
        scheduler.wait()
        scheduler.stdout.close()


def test_a_worker_that_joins_late_is_used(points, undisturbed, monkeypatch):
    """One worker; another joins; the first is closed, and the other takes its partitions."""
    with cluster_of(1, processes=False) as cluster, Client(cluster) as own:
        [first] = cluster.workers.values()

        def change(_):
            cluster.scale(2)
            own.wait_for_workers(2, timeout=60)
            cluster.sync(first.close)

        gone_at(own, 20, monkeypatch, change)
        model = DaskMACHash(**REFINED, client=own).fit(*cut(*points, 3))
        assert model.n_lost_ == 3
        np.testing.assert_array_equal(model.to_local().codes_, undisturbed.codes_)


class DiedError(Exception):
    pass


@pytest.mark.parametrize(
    ("step", "validation"),
    [(step, share) for step in range(9) for share in (None, 0.2)]
    if SOAK
    else [(1, None), (5, 0.2)],
)
def test_another_client_goes_on_from_a_checkpoint(
    client, points, tmp_path, monkeypatch, step, validation
):
    settings = {**SETTINGS, "refine": Refine(n_steps=40), "validation": validation}
    data = cut(*points, 3)
    want = DaskMACHash(**settings, client=client).fit(*data)

    def dying(self, one):
        if one.iteration == step:
            raise DiedError
        return False

    with monkeypatch.context() as patch:
        patch.setattr(watching.Watcher, "__call__", dying)
        with pytest.raises(DiedError):
            DaskMACHash(**settings, client=client).fit(*data, checkpoint=tmp_path)
    counted = []
    gone_at(client, 0, monkeypatch, lambda one: counted.append(len(one.log)))
    model = DaskMACHash(**settings, client=client).fit(*data, checkpoint=tmp_path)
    assert (counted[0] > 0) == (step > 0)  # answers that were there: a step is told, then kept
    np.testing.assert_array_equal(model.to_local().codes_, want.to_local().codes_)
    np.testing.assert_array_equal(model.hash_function_.W, want.hash_function_.W)
    assert [one.iteration for one in model.traffic_] == [one.iteration for one in want.traffic_]
    # Once more: all is there.
    again = DaskMACHash(**settings, client=client).fit(*data, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.hash_function_.W, want.hash_function_.W)


def test_a_checkpoint_of_another_run_is_refused(client, points, tmp_path):
    X, y = points
    settings = {**SETTINGS, "max_iter": 1}
    DaskMACHash(**settings, client=client).fit(*cut(X, y, 2), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"C was 100\.0 and is 10\.0"):
        DaskMACHash(**settings, C=10.0, client=client).fit(*cut(X, y, 2), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="partitions is not the same"):
        DaskMACHash(**settings, client=client).fit(*cut(X, y, 3), checkpoint=tmp_path)


def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(client, points, tmp_path, monkeypatch):
    data = cut(*points, 2)
    want = DaskMACHash(**SETTINGS, client=client).fit(*data)
    with monkeypatch.context() as patch:
        patch.setattr(watching.Watcher, "__call__", lambda self, one: one.iteration == 1)
        with pytest.warns(TrainingInterrupted):
            short = DaskMACHash(**SETTINGS, client=client).fit(*data, checkpoint=tmp_path)
    assert short.interrupted_
    model = DaskMACHash(**SETTINGS, client=client).fit(*data, checkpoint=tmp_path)
    assert not model.interrupted_
    np.testing.assert_array_equal(model.hash_function_.W, want.hash_function_.W)


def test_no_thread_is_left(client, points):
    before = set(threading.enumerate())
    DaskMACHash(**SETTINGS, client=client).fit(*cut(*points, 4))
    for _ in range(100):
        left = [one for one in set(threading.enumerate()) - before if "_run" in one.name]
        if not left:
            break
        time.sleep(0.05)
    assert not left
