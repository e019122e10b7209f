"""Partitions agree on sums, rows and decisions, and a lost one catches up."""

import threading
import time

import numpy as np
import pytest

from auxhash import Refine
from auxhash.compute import context, threads
from auxhash.compute.arrays import Computed
from auxhash.compute.context import ALONE
from auxhash.compute.peers import peers, quantile, share
from auxhash.dask import DaskMACHash
from auxhash.dask.learning import Learning, generators_of
from auxhash.dask.part import Partition, PartitionPeers, Request, combine
from auxhash.learn.smooth.classes import ClassCodes
from auxhash.mac.hashfunctions import exact, features, linear, network, svm, training_features
from tests.conftest import SOAK
from tests.dask.conftest import FEW_PAIRS
from tests.dask.lockstep import run


def test_alone_everything_is_what_it_was():
    assert peers() is ALONE
    rows = np.arange(3)
    assert ALONE.join(rows) is rows
    assert [ALONE.sum(2), ALONE.least(2), ALONE.most(2), ALONE.once(lambda: 2)] == [2] * 4
    assert ALONE.by(0, lambda: 3) == 3
    assert not ALONE.tell("a step")


def everything(_threads, value):
    us = peers()
    shared = np.full(2, float(value))
    total = us.sum(shared)
    total += 1  # their own, though they are in one process
    return (
        us.place,
        us.n,
        total.tolist(),
        us.least(value),
        us.most(shared).tolist(),
        us.join(np.arange(value)).tolist(),
        us.by(1, lambda: f"{us.place} made it"),
        us.once(lambda: us.sum(value)),
        us.tell(value),
    )


def test_all_get_the_same():
    result = run(everything, [(1,), (2,), (3,)])
    assert [one[:2] for one in result] == [(0, 3), (1, 3), (2, 3)]
    same = ([7.0, 7.0], 1, [3.0, 3.0], [0, 0, 1, 0, 1, 2], "1 made it", 6, False)
    assert [one[2:] for one in result] == [same] * 3


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("answer", range(1, 9))
def test_a_lost_partition_catches_up(place, answer):
    arguments = [(1,), (2,), (3,)]
    assert run(everything, arguments, lose=(place, answer)) == run(everything, arguments)


def test_what_was_made_once_is_not_made_again():
    made = []

    def program(_threads, place):
        total = peers().once(lambda: made.append(place) or peers().sum(peers().sum(1)))
        return peers().sum(total)

    log = []
    assert run(program, [(0,), (1,)], log) == [8, 8]
    assert sorted(made) == [0, 1]
    assert [entry.outcome for entry in log] == [True, False]  # its two sums are not kept
    part = Partition(program, 2, 1, 60.0, 1)
    assert part.begin(2, log) == Request("done", 8)
    assert sorted(made) == [0, 1]


@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("q", [0.01, 0.5, 1.0])
def test_a_quantile_of_all_parts_is_numpy_s(n_parts, q):
    rng = np.random.default_rng(n_parts)
    values = np.exp(rng.normal(scale=30, size=503)).round(2) + 1e-300
    cuts = np.sort(rng.integers(0, 503, n_parts - 1))
    result = run(lambda _threads, some: quantile(some, q), [(v,) for v in np.split(values, cuts)])
    assert result == [np.quantile(values, q)] * n_parts


def test_shares_add_up():
    sizes = [5, 0, 70, 1]
    for k in (1, 3, 40, 76, 1000):
        result = run(lambda _threads, n, k=k: share(k, n), [(n,) for n in sizes])
        assert sum(result) == min(k, 76)
        assert all(part <= n for part, n in zip(result, sizes, strict=True))
    assert share(3, 10) == 3


@pytest.fixture(params=[True, False], ids=["few points", "many points"])
def few(request, monkeypatch):
    """Tell whether all points are few enough for every part to hold them."""
    if not request.param:
        monkeypatch.setattr(features, "MAX_FEATURE_BYTES", 0)
    return request.param


def check_optimum(W, F, Z, C, few, monkeypatch):
    """The weights of parts are as near to the optimum as those of one machine, at least."""
    objective, optimum = (svm.objective(some, F, Z, C) for some in (W, svm.fit(F, Z, C)))
    if not few:  # bits stop together, as on one machine; otherwise some come nearer
        np.testing.assert_allclose(objective, optimum, rtol=1e-4)
    monkeypatch.setattr(svm, "TOLERANCE", 1e-12)
    best = svm.objective(svm.fit(F, Z, C), F, Z, C)
    assert (objective <= (1 + 1e-4) * optimum).all()
    assert (objective >= (1 - 1e-9) * best).all()


@pytest.fixture
def asked(monkeypatch):
    """The kinds of all requests, of all parts."""
    kinds = []
    exchange = PartitionPeers._exchange

    def counted(self, kind, *more):
        kinds.append(kind)
        return exchange(self, kind, *more)

    monkeypatch.setattr(PartitionPeers, "_exchange", counted)
    return kinds


def slow_points():
    """Rare features, and classes apart: conjugate gradients are slow on them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 1500)
    F = np.maximum(0, rng.normal(size=(6, 120))[y] + rng.normal(size=(1500, 120)) - 1)
    F = np.hstack([F * rng.random(120) ** 4, np.ones((1500, 1))])
    return F, np.where(rng.integers(0, 2, (6, 8))[y] == 0, -1, 1).astype(np.int8)


@pytest.mark.parametrize("separable", [False, True])
def test_the_svm_does_not_depend_on_how_the_points_are_cut(separable, few, monkeypatch):
    rng = np.random.default_rng(0)
    F = np.hstack([rng.normal(size=(600, 12)), np.ones((600, 1))])
    outputs = F @ rng.normal(size=(13, 5))
    Z = np.where(outputs + (0 if separable else 3) * rng.normal(size=outputs.shape) < 0, -1, 1)
    Z = Z.astype(np.int8)

    def program(_threads, rows):
        with context.using(n_jobs=1):
            return svm.fit(F[rows], Z[rows], 10.0)

    cut = [(slice(0, 100),), (slice(100, 350),), (slice(350, 600),)]
    first, *others = run(program, cut)
    for other in others:
        np.testing.assert_array_equal(first, other)
    check_optimum(first, F, Z, 10.0, few, monkeypatch)


@pytest.mark.parametrize("weighted", [False, True])
def test_exact_steps_join_the_points_inside(weighted):
    rng = np.random.default_rng(0)
    F, gradient = rng.normal(size=(300, 40)), rng.normal(size=(40, 4))
    inside = np.zeros((300, 4))
    for bit, count in enumerate([30, 3, 0, 41]):  # the last are more than features
        rows = rng.permutation(300)[:count]
        inside[rows, bit] = rng.uniform(0.1, 3, count) if weighted else 1.0
    inside[:100, 1] = 0  # one part has none

    def program(_threads, rows):
        with context.using(n_jobs=1), threads.pool() as pool:
            steps = exact.JoinedSteps(F[rows], F.T @ F, 10.0, pool, 300)
            few = steps.few(inside[rows])
            return few, steps.solve(np.flatnonzero(few), gradient[:, few], inside[rows][:, few])

    cut = [(slice(0, 100),), (slice(100, 110),), (slice(110, 300),)]
    for few, result in run(program, cut):
        assert few.tolist() == [True, True, True, False]
        for bit in range(3):
            hessian = np.eye(40) + 20.0 * (F * inside[:, [bit]]).T @ F
            best = -np.linalg.solve(hessian, gradient[:, bit])
            np.testing.assert_allclose(result[:, bit], best, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("lost", [None, (0, 3), (1, 4)])
def test_bits_that_conjugate_gradients_are_slow_on(few, lost, monkeypatch):
    """One machine gives up on them, and solves them exactly; so do parts, where points are few."""
    F, Z = slow_points()

    def program(_threads, rows):
        with context.using(n_jobs=1):
            return svm.fit(F[rows], Z[rows], 100.0)

    cut = [(slice(0, 500),), (slice(500, 1500),)]
    first, second = run(program, cut, lose=lost)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, run(program, cut)[0])
    check_optimum(first, F, Z, 100.0, few, monkeypatch)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_bits", [1, 8])  # two parts have no bit; all have some
def test_few_points_take_few_rounds(weighted, n_bits, asked, monkeypatch):
    """They are joined once, whatever conjugate gradients would take."""
    F, Z = slow_points()
    Z, weight = Z[:, :n_bits], np.random.default_rng(1).uniform(0, 2, (1500, n_bits)).round(1)

    def program(_threads, rows):
        W = svm.fit(F[rows], Z[rows], 100.0, weight=weight[rows] if weighted else None)
        return svm.fit(F[rows], Z[rows], 100.0, start=W)

    result = run(program, [(slice(0, 500),), (slice(500, 600),), (slice(600, 1500),)])
    np.testing.assert_array_equal(result[0], result[2])
    assert len(asked) == 3 * (10 + weighted)
    check_optimum(result[0], F, Z, 100.0, True, monkeypatch)


def test_one_part_with_all_the_weight_solves_alone(few, asked):
    """The first part does, whose codes the others start from: its optimum, in a few rounds."""
    F, Z = slow_points()
    weight = np.zeros(Z.shape)
    weight[500:] = 1.0

    def program(_threads, rows):
        return svm.fit(F[rows], Z[rows], 100.0, weight=weight[rows])

    first, second = run(program, [(slice(0, 500),), (slice(500, 1500),)])
    np.testing.assert_array_equal(first, second)
    assert len(asked) <= 2 * 6
    optimum = svm.objective(svm.fit(F[500:], Z[500:], 100.0), F[500:], Z[500:], 100.0)
    assert (svm.objective(first, F[500:], Z[500:], 100.0) <= (1 + 1e-4) * optimum).all()


def test_a_single_part_asks_for_no_sums():
    def program(_threads):
        us = peers()
        made = us.once(lambda: us.sum(us.least(us.most(3))))
        return us.by(0, lambda: us.join(np.arange(made))).tolist(), us.tell(made)

    log = []
    assert run(program, [()], log) == [([0, 1, 2], False)]
    assert log == [(3, True), (False, False)]  # what `once` made, and the answer to `tell`


@pytest.mark.parametrize("lost", [None, (0, 40), (1, 60)] if SOAK else [(1, 60)])
@pytest.mark.parametrize("function", ["linear", network(n_hidden=20)], ids=["linear", "network"])
def test_features_may_be_computed_when_needed_in_some_parts(points, monkeypatch, function, lost):
    """The larger part computes its features; then both do; and a lost part catches up."""
    X, y = points
    settings = {**FEW_PAIRS, "max_iter": 2, "hash_function": function, "refine": Refine(n_steps=60)}
    program = Learning(DaskMACHash(**settings, n_jobs=1)._settings())
    made = generators_of(2, np.random.default_rng(0))
    arguments = [(X[:200], y[:200], made[0]), (X[200:], y[200:], made[1])]
    monkeypatch.setattr(features, "MAX_FEATURE_BYTES", 1)
    monkeypatch.setattr(features, "MIN_POINTS_PER_FEATURE", 1000)  # both are held, and not joined
    want = run(program, arguments)[0].model

    def is_computed(_threads, X, *_):
        return isinstance(training_features(linear(), X), Computed)

    monkeypatch.setattr(features, "MIN_POINTS_PER_FEATURE", 1)
    for largest in (2 * 250 * 7 * 8, 1):  # of both parts, which one process may hold
        monkeypatch.setattr(features, "MAX_FEATURE_BYTES", largest)
        assert run(is_computed, arguments) == [largest == 1, True]
        model = run(program, arguments, lose=lost)[0].model
        np.testing.assert_allclose(model.two_step.W, want.two_step.W, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.loss, want.loss, rtol=0.02)


def test_the_classes_of_all_parts_count():
    """-1/(C - 1) is for all C classes, also where a part lacks the last."""

    def program(_threads, classes):
        return float(ClassCodes(np.array(classes), 8).apart)

    assert run(program, [([0, 1, 2],), ([0, 1],)]) == [-0.5, -0.5]


@pytest.mark.parametrize("answer", [1, 3, 10, 40, 80])
def test_a_training_ends_the_same_wherever_a_partition_is_lost(points, answer):
    X, y = points
    model = DaskMACHash(**{**FEW_PAIRS, "max_iter": 2}, refine=None, n_jobs=1)
    made = generators_of(2, np.random.default_rng(0))
    arguments = [(X[:250], y[:250], made[0]), (X[250:], y[250:], made[1])]
    program = Learning(model._settings())
    want = run(program, arguments)[0].model.h.W
    for place in (0, 1):
        result = run(program, arguments, lose=(place, answer))[0].model.h.W
        np.testing.assert_array_equal(result, want)


def test_an_error_in_one_partition_is_the_error_of_all():
    def program(_threads, place):
        peers().sum(1)
        if place == 1:
            raise ValueError("no such label")
        return peers().sum(1)

    with pytest.raises(ValueError, match="no such label"):
        run(program, [(0,), (1,)])


def test_partitions_that_differ_are_noticed():
    with pytest.raises(RuntimeError, match="different ways"):
        combine([Request("sum", 1), Request("join", np.ones(1))])


def test_a_repeated_call_is_no_news_and_a_gap_is_an_error():
    part = Partition(lambda _threads: peers().sum(peers().sum(1)), 2, 0, 60.0)
    part.begin(0, [])
    assert part.advance(1, 5) == part.advance(1, 5) == Request("sum", 5, at=2)
    with pytest.raises(RuntimeError, match="not where the others are"):
        part.advance(3, 5)
    assert part.advance(2, 6) == Request("done", 6)


def test_a_partition_that_nobody_holds_ends():
    before = threading.active_count()
    part = Partition(lambda _threads: peers().sum(1), 2, 0, 60.0)
    part.begin(0, [])
    assert threading.active_count() == before + 1
    del part
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before
