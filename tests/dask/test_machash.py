"""MACHash on partitions: the same codes as on one machine, or as with any number of workers."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.base import clone

import auxhash
from auxhash import MACHash, Refine, Validation
from auxhash.compute import bars
from auxhash.compute.extras import install
from auxhash.dask import DaskMACHash
from auxhash.dask.learning import Learning, generators_of
from auxhash.mac.hashfunctions import features
from auxhash.mac.hashfunctions.protocol import BaseHash
from tests.dask.conftest import FEW_PAIRS, cluster_of, cut, lazily
from tests.dask.lockstep import run
from tests.programs import run_python


@pytest.mark.parametrize(
    "more",
    [
        {"refine": Refine(n_steps=20)},
        {"hash_function": "rbf", "refine": Refine(n_steps=20)},
        {"hash_function": "network", "refine": Refine(n_steps=20, objective="rank")},
        {"penalty": "augmented", "z_step": "cut", "validation": 0.2, "refine": None},
        {"z_step": "quad", "start": "bitwise", "refine": None},
        {"h_step": "plain", "iterate": "last", "validation": 0.2, "refine": None},
        {"refine": Refine(n_steps=20, objective="classes", keep="refined")},
    ],
)
def test_one_partition_gives_the_codes_of_one_machine(client, points, tmp_path, more):
    X, y = points
    local = MACHash(**FEW_PAIRS, **more).fit(X, y)
    model = DaskMACHash(**FEW_PAIRS, **more).fit(*cut(X, y, 1)).to_local()
    local.save(tmp_path / "local")
    model.save(tmp_path / "found")
    assert (tmp_path / "found").read_bytes() == (tmp_path / "local").read_bytes()


@pytest.mark.parametrize(
    ("function", "objective"),
    [("linear", "loss"), ("linear", "classes"), ("rbf", "loss"), ("network", "loss")],
)
def test_several_partitions_learn_as_well(client, points, function, objective):
    X, y = points
    settings = {**FEW_PAIRS, "hash_function": function, "refine": Refine(40, objective=objective)}
    local = MACHash(**settings).fit(X[:400], y[:400])
    model = DaskMACHash(**settings).fit(*cut(X[:400], y[:400], 3))
    assert model.score(X[400:], y[400:]) > local.score(X[400:], y[400:]) - 0.05
    assert len(model.history_) == model.n_iter_ == len(model.traffic_)
    assert model.n_learnt_ == 400
    assert model.n_lost_ == 0


@pytest.mark.parametrize("function", ["linear", "rbf"])
def test_refinement_in_turns_learns_no_partition_by_heart(points, function):
    X, y = points
    settings = {**FEW_PAIRS, "hash_function": function, "refine": Refine(40), "n_jobs": 1}
    local = MACHash(**settings).fit(X, y)
    program = Learning(DaskMACHash(**settings)._settings())
    cuts = np.array_split(np.arange(len(X)), 4)
    made = generators_of(4, np.random.default_rng(0))
    arguments = [(X[rows], y[rows], own) for rows, own in zip(cuts, made, strict=True)]
    model = run(program, arguments)[0].model
    assert model.loss < 1.05 * local.loss_


def test_the_numbers_are_those_of_all_points(client, points):
    """L(h) of the steps is the sum over the pairs of all partitions."""
    X, y = points
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(*cut(X, y, 2))
    step = model.history_[-1]
    assert step.penalized_loss >= step.free_loss > 0
    best = min(model.history_, key=lambda one: one.loss)
    assert model.loss_ == best.loss


@pytest.mark.parametrize("refine", [None, Refine(n_steps=40, keep="refined")])
@pytest.mark.parametrize("capacity", [1, 3, 5])  # partitions whose features may be held, of five
def test_the_codes_do_not_depend_on_workers_and_threads(
    client, points, monkeypatch, refine, capacity
):
    X, y = points
    monkeypatch.setattr(features, "MAX_FEATURE_BYTES", capacity * 100 * 7 * 8)
    monkeypatch.setattr(features, "MIN_POINTS_PER_FEATURE", 1)
    data = cut(X, y, 5)
    model = DaskMACHash(**FEW_PAIRS, refine=refine).fit(*data).to_local()
    with cluster_of(3, processes=False, n_threads=2) as other, Client(other) as own:
        again = DaskMACHash(**FEW_PAIRS, refine=refine, client=own).fit(*data).to_local()
    np.testing.assert_array_equal(model.codes_, again.codes_)
    np.testing.assert_array_equal(model.hash_function_.W, again.hash_function_.W)


@pytest.mark.parametrize("validation", [0.2, "points"])
def test_validation_counts_over_all_partitions(client, points, validation):
    X, y = points
    judges = (X[400:], y[400:]) if validation == "points" else validation
    model = DaskMACHash(**FEW_PAIRS, refine=None, validation=judges).fit(*cut(X[:400], y[:400], 3))
    local = model.to_local()
    assert len(local.codes_) == (320 if validation == 0.2 else 400)
    if validation == "points":  # of the hash function that was kept, among all training points
        scores = [step.score for step in model.history_]
        assert any(np.isclose(local.score(X[400:], y[400:]), score) for score in scores)


def test_codes_are_lazy_and_cut_as_the_points_are(client, points):
    X, y = points
    dX, dy = cut(X, y, 3)
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(dX, dy)
    local = model.to_local()
    for method in ("encode", "transform", "decision_function"):
        made = getattr(model, method)(dX)
        assert isinstance(made, da.Array)
        assert made.chunks[0] == dX.chunks[0]
        want = getattr(local, method)(X)
        assert made.dtype == want.dtype
        np.testing.assert_allclose(made.compute(), want, rtol=1e-12)
        np.testing.assert_array_equal(getattr(model, method)(X), want)
    np.testing.assert_array_equal(model.codes_.compute(), local.codes_)
    np.testing.assert_array_equal(model.labels_.compute(), y)
    narrow = dX.rechunk((100, 2))
    np.testing.assert_array_equal(model.encode(narrow).compute(), local.encode(X))


def test_dataframes(client, points, tmp_path):
    X, y = points
    frame = pd.DataFrame(X, columns=list("abcdef"))
    lazy, labels = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(lazy, labels)
    assert model.feature_names_in_.tolist() == list("abcdef")
    made = model.encode(lazy)
    assert made.numblocks == (3, 1)
    np.testing.assert_array_equal(made.compute(), model.to_local().encode(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.encode(lazy[list("fedcba")]).compute()
    model.save(tmp_path / "model.safetensors")
    assert isinstance(auxhash.load(tmp_path / "model.safetensors"), MACHash)


def test_without_codes_the_model_encodes_the_same(client, points):
    X, y = points
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(*cut(X, y, 2))
    light = model.to_local(codes=False)
    assert light.codes_.shape == (0, 1)
    np.testing.assert_array_equal(light.encode(X), model.to_local().encode(X))
    assert model.fingerprint_ == light.fingerprint_ == model.to_local().fingerprint_
    assert light.model_.learnt.n_points == len(X)


def test_labels_of_text_and_of_several_kinds_at_once(client, points):
    X, y = points
    dX, dy = cut(X, np.array(["cat", "mouse", "horse"])[y], 2)
    assert set(DaskMACHash(**FEW_PAIRS, refine=None).fit(dX, dy).to_local().labels_) == {
        "cat",
        "mouse",
        "horse",
    }
    several = da.from_array(np.eye(3, dtype=np.int8)[y], chunks=(250, -1))
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(dX, several)
    np.testing.assert_array_equal(model.to_local().labels_, np.eye(3)[y])


@pytest.mark.parametrize("n_parts", [1, 2])
def test_going_on_does_not_forget(client, points, n_parts):
    X, y = points
    model = DaskMACHash(**FEW_PAIRS, warm_start=True, refine=None).fit(
        *cut(X[:300], y[:300], n_parts)
    )
    model.fit(*cut(X[300:], y[300:], n_parts))
    assert model.n_learnt_ == 500
    if n_parts == 1:
        local = MACHash(**FEW_PAIRS, warm_start=True, refine=None)
        local.fit(X[:300], y[:300]).fit(X[300:], y[300:])
        np.testing.assert_array_equal(model.hash_function_.W, local.hash_function_.W)


def test_bytes_per_iteration_do_not_grow_with_the_points(client, points, monkeypatch):
    """The points are more than every part may hold."""
    monkeypatch.setattr(features, "MAX_FEATURE_BYTES", 0)
    X, y = points
    per_round = []
    for times in (1, 4):
        dX, dy = cut(np.tile(X, (times, 1)), np.tile(y, times), 2)
        model = DaskMACHash(**FEW_PAIRS, refine=None).fit(dX, dy)
        per_round.append(max(one.sent / one.rounds for one in model.traffic_))
    assert 0 < per_round[1] < 1.5 * per_round[0]


def test_it_can_be_cloned_and_printed(client):
    model = DaskMACHash(n_bits=5, timeout=7)
    assert clone(model).get_params() == model.get_params()
    assert set(model.get_params()) == {*MACHash().get_params(), "client", "timeout"}
    assert "n_bits=5" in repr(model)


def test_progress_is_shown(client, points, capsys, monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 1e-3)
    DaskMACHash(**FEW_PAIRS, verbose=1).fit(*cut(*points, 2))
    assert "L(h)" in capsys.readouterr().err


class SharedByAllBits(BaseHash):
    """A hash function as PyTorch modules are: its bits share all layers."""

    shared = True


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"hash_function": "trees"}, "linear, rbf or network"),
        ({"init": np.ones((500, 8))}, "init must be None"),
        ({"timeout": 0}, "timeout"),
        ({"client": "tcp://127.0.0.1:8786"}, "client must be a distributed.Client"),
        ({"validation": Validation(np.ones((5, 6)), neighbors=3)}, "neighbors"),
        ({"n_bits": 0}, "n_bits"),
        ({"refine": Refine(objective="classes", cross_entropy=0.5)}, "cross_entropy must be 0"),
        ({"hash_function": SharedByAllBits()}, "linear, rbf or network here.*SharedByAllBits"),
    ],
)
def test_parameters_that_cannot_be(client, points, more, said):
    with pytest.raises((ValueError, TypeError), match=said):
        DaskMACHash(**{**FEW_PAIRS, **more}).fit(*cut(*points, 2))


def test_there_must_be_a_client(points):
    code = (
        "import numpy as np, dask.array as da; from auxhash.dask import DaskMACHash\n"
        "try: DaskMACHash().fit(da.ones((10, 2), chunks=(5, 2)), da.arange(10, chunks=5))\n"
        "except ValueError as error: print(error)"
    )
    assert "distributed.Client(ADDRESS)" in run_python(code)


def test_auxhash_starts_without_dask():
    code = "import sys, auxhash, auxhash.learn.estimators; print('dask' in sys.modules)"
    assert run_python(code).strip() == "False"
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "try: import auxhash.dask\n"
        "except ImportError as error: print(error)"
    )
    said = run_python(code)
    assert install("cluster") in said
    assert len(said.splitlines()) == 1


def test_empty_partitions_are_passed_over(client, points):
    X, y = points
    blocks = [X[:200], X[:0], X[200:]]
    dX, dy = lazily(blocks), lazily([y[:200], y[:0], y[200:]])
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(dX, dy)
    want = DaskMACHash(**FEW_PAIRS, refine=None).fit(
        lazily([X[:200], X[200:]]), lazily([y[:200], y[200:]])
    )
    np.testing.assert_array_equal(model.to_local().codes_, want.to_local().codes_)
    assert len(model.encode(dX).compute()) == 500


def test_partitions_that_lack_classes_are_told(client, points):
    X, y = points
    order = np.argsort(y == 2, kind="stable")
    with pytest.warns(UserWarning, match=r"1 partition of 2 lack some of the 3 classes \(0\)"):
        DaskMACHash(**FEW_PAIRS, refine=None).fit(*cut(X[order], y[order], 2))


def test_kinds_of_numbers_may_differ(client, points):
    X, y = points
    X = X.astype(np.float32)
    dX = lazily([X[:200], X[200:].astype(np.float64)])
    dy = lazily([y[:200], y[200:].astype(np.int8)])
    model = DaskMACHash(**FEW_PAIRS, refine=None).fit(dX, dy)
    want = DaskMACHash(**FEW_PAIRS, refine=None).fit(
        lazily([X[:200], X[200:]]), lazily([y[:200], y[200:]])
    )
    np.testing.assert_array_equal(model.to_local().codes_, want.to_local().codes_)


WRONG = {
    "one class": (lambda X, y: (lazily([X, X]), lazily([y, y * 0])), "partition 1 .* 1 label"),
    "one point": (lambda X, y: (lazily([X, X[:1]]), lazily([y, y[:1]])), "partition 1 .* 1 point"),
    "features": (lambda X, y: (lazily([X, X[:, 1:]]), lazily([y, y])), "partition 1 has 5"),
    "lengths": (lambda X, y: (lazily([X, X]), lazily([y, y[1:]])), "partition 1: X has 500"),
    "rows": (lambda X, y: (cut(X, y, 2)[0], cut(X, y[1:], 2)[1]), "X has 500 rows, but y has 499"),
    "partitions": (lambda X, y: (lazily([X, X]), lazily([y])), "2 partitions and 1"),
    "labels": (lambda X, y: (lazily([X, X]), lazily([y, y.astype(str)])), "of one kind"),
    "words": (lambda X, y: (lazily([X, np.full(X.shape, "a")]), lazily([y, y])), "partition 1: "),
    "NaN": (lambda X, y: (lazily([X, X * np.nan]), lazily([y, y])), "partition 1: .*NaN"),
    "none": (lambda X, y: (lazily([X[:0]]), lazily([y[:0]])), "no points"),
    "no labels": (lambda X, y: (lazily([X]), None), "y must be a dask array"),
    "NumPy": (lambda X, y: (X, y), "X must be a dask array"),
    "axes": (lambda X, y: (lazily([y]), lazily([y])), "shape"),
}


@pytest.mark.parametrize("name", WRONG)
def test_data_that_cannot_be_learnt_from(client, points, name):
    made, said = WRONG[name]
    with pytest.raises(ValueError, match=said):
        DaskMACHash(**FEW_PAIRS, refine=None).fit(*made(*points))


def test_what_fails_in_a_partition_names_it(client, points):
    def loss(d, y, b):
        raise ZeroDivisionError("a loss of my own")

    with pytest.raises(ZeroDivisionError, match="partition 0: a loss of my own"):
        DaskMACHash(**{**FEW_PAIRS, "loss": loss}).fit(*cut(*points, 2))
