"""Whole trainings on a GPU, beside those of the processor."""

import copy
import pickle
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import auxhash
from auxhash import EndToEndHash, HammingIndex, MACHash, NeighborHash, QueryTables, Refine
from auxhash.codes import unpack
from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.learn import neighborhash, querytables
from auxhash.learn.smooth.similar import SameClass
from auxhash.learn.smooth.slopes import soft_rank
from auxhash.learn.smooth.tables import Asker, packed
from auxhash.learn.training.checkpoint import Checkpoint
from auxhash.mac import affinity, losses
from auxhash.mac.affinity import build

SMALL = {"n_bits": 6, "n_similar": 8, "n_dissimilar": 16, "max_iter": 3, "random_state": 0}
BRIEF = Refine(n_steps=10, batch=40)


@pytest.fixture(scope="module")
def points():
    X, y = load_digits(return_X_y=True)
    return X[:60, 18:26], y[:60] % 3  # few features, or MAC would end after one step


def trained(points, device, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return MACHash(**{**SMALL, "refine": BRIEF, **settings}, device=device).fit(*points)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hash_function": "rbf"},
        {"hash_function": "network"},
        {"loss": "esplh"},
        {"penalty": "augmented"},
        {"validation": 0.2},
        {"refine": None},
        {"refine": None, "h_step": "plain", "iterate": "last"},
        {"refine": Refine(n_steps=10, objective="rank", batch=40)},
        {"refine": Refine(n_steps=10, pairs="given", batch=40)},
        {"refine": Refine(n_steps=10, objective="classes", cross_entropy=1.0, batch=40)},
    ],
    ids=str,
)
def test_it_learns_as_well_as_the_processor(gpu, points, settings):
    there, here = (trained(points, device, **settings) for device in ("cuda", "cpu"))
    assert (there.device_, here.device_) == ("cuda", "cpu")
    assert there.loss_ == pytest.approx(here.loss_, rel=0.06)
    assert type(there.codes_) is np.ndarray
    assert type(there.hash_function_.W) is np.ndarray
    again = trained(points, "cuda", **settings)
    np.testing.assert_array_equal(there.codes_, again.codes_)


def test_it_learns_from_pairs(gpu, points, rng):
    i, j = rng.integers(0, 60, (2, 600))
    i, j = i[i != j], j[i != j]
    y = np.where(points[1][i] == points[1][j], 0.8, -0.6) + 0.1 * rng.random(len(i))
    pairs = affinity.from_pairs(i, j, y, 60)
    there, here = (
        MACHash(**{**SMALL, "refine": BRIEF}, device=device).fit(points[0], affinity=pairs)
        for device in ("cuda", "cpu")
    )
    # Few points have optima far apart; but what it says of its own is right.
    codes = unpack(there.codes_, SMALL["n_bits"])
    assert there.loss_ == pytest.approx(losses.total(codes, pairs, "ksh"), rel=1e-9)
    assert there.loss_ < 1.2 * here.loss_


@pytest.mark.parametrize("kept", [0.0, 0.4], ids=["computed", "single"])
@pytest.mark.parametrize("hash_function", ["linear", "network"])
def test_features_that_are_not_held(gpu, points, monkeypatch, hash_function, kept):
    X, y = points
    model = trained((X.astype(np.uint8), y), "cuda", hash_function=hash_function)
    monkeypatch.setattr("auxhash.mac.hashfunctions.features.FREE_MEMORY_SHARE", 0.0)
    monkeypatch.setattr("auxhash.mac.hashfunctions.features.SINGLE_MEMORY_SHARE", kept)
    monkeypatch.setattr("auxhash.compute.device.ROWS_PER_TASK", 16)  # in several parts
    for values in (X, X.astype(np.uint8)):
        other = trained((values, y), "cuda", hash_function=hash_function)
        assert other.loss_ == pytest.approx(model.loss_, rel=0.06)


@pytest.mark.parametrize("hash_function", ["linear", "rbf", "network"])
def test_points_that_stay_with_the_processor(gpu, points, monkeypatch, tmp_path, hash_function):
    X, y = points
    np.save(tmp_path / "X.npy", X.astype(np.uint8))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = trained((mapped, y), "cuda", hash_function=hash_function)
    monkeypatch.setattr("auxhash.compute.device.POINTS_SHARE", 0.0)
    np.testing.assert_array_equal(
        trained((mapped, y), "cuda", hash_function=hash_function).codes_, model.codes_
    )
    monkeypatch.setattr("auxhash.mac.hashfunctions.features.FREE_MEMORY_SHARE", 0.0)
    monkeypatch.setattr("auxhash.compute.device.ROWS_PER_TASK", 16)  # in several parts
    streamed = trained((mapped, y), "cuda", hash_function=hash_function)
    assert streamed.loss_ == pytest.approx(model.loss_, rel=0.06)


def test_gradient_steps_alone(gpu, points):
    settings = {**SMALL, "refine": Refine(n_steps=10, objective="classes", batch=40)}
    model = EndToEndHash(**settings, device="cuda").fit(*points)
    assert model.device_ == "cuda"
    assert model.loss_ <= model.history_[0].loss


def test_other_groups_of_what_was_drawn_there_stay(gpu, points):
    model = trained(points, "cuda", refine=None)
    groups = np.arange(60) % 7
    other = model.affinity_.grouped(groups)
    assert len(other) == len(model.affinity_)
    np.testing.assert_array_equal(other.groups, groups)
    assert model.affinity_.by_class
    assert not other.by_class


def test_pairs_drawn_there_are_drawn_here_once_and_when_needed(gpu, points, monkeypatch):
    pairs, drawn = trained(points, "cuda", refine=None).affinity_, []
    draw = build.drawn_from_labels
    monkeypatch.setattr(build, "drawn_from_labels", lambda *how: drawn.append(how) or draw(*how))
    for some in (pairs, pickle.loads(pickle.dumps(pairs)), copy.copy(pairs)):
        drawn.clear()
        assert repr(some) == "Affinity(pairs of 60 points, not drawn yet, y is a similarity)"
        for name in ("_repr_html_", "_ipython_display_", "shape", "__array__"):  # of a notebook
            with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
                getattr(some, name)
        assert not drawn
        message = f"Affinity({len(some)} pairs of 60 points, y is a similarity)"
        assert repr(some) == message
        assert not hasattr(some, "_repr_html_")
        assert some.nbytes > 4 * len(some.y)
        assert len(drawn) == 1


SHORT = Refine(n_steps=20, batch=50, keep="refined")


@pytest.mark.parametrize(
    "refine",
    [
        None,
        SHORT,
        replace(SHORT, objective="rank"),
        replace(SHORT, objective="classes", cross_entropy=0.5),
    ],
)
def test_a_checkpoint_of_one_device_goes_on_on_the_other(
    refine, gpu, points, tmp_path, monkeypatch
):
    settings = {**SMALL, "refine": refine, "max_iter": 1 if refine else 6}

    def stopped(device, folder, after):
        model = MACHash(**settings, device=device)
        write = auxhash.learn.training.checkpoint.Checkpoint.write
        count = []

        def failing(self, saved):
            write(self, saved)
            count.append(1)
            if len(count) == after:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(auxhash.learn.training.checkpoint.Checkpoint, "write", failing)
            with pytest.raises(KeyboardInterrupt):
                model.fit(*points, checkpoint=folder)

    for first, then in (("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")):
        folder = tmp_path / (first + then)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            stopped(first, folder, 5 if refine else 2)
            model = MACHash(**settings, device=then).fit(*points, checkpoint=folder)
        assert model.device_ == then
        assert len(model.history_) == 2 + 10 if refine else len(model.history_) > 2
        assert model.loss_ <= model.history_[0].loss


def test_neighbours_are_learnt_there(gpu, points):
    there, here = (
        NeighborHash(8, n_steps=20, hash_function=h, random_state=0, device=device).fit(points[0])
        for h, device in (("linear", "cuda"), ("linear", "cpu"))
    )
    assert there.device_ == "cuda"
    assert there.history_[-1].rank == pytest.approx(here.history_[-1].rank, rel=0.3)


@pytest.mark.parametrize("quality", ["fast", "best"])  # of codes that stay, and of codes that move
def test_tables_are_learnt_there(gpu, points, quality, keeps_tables, monkeypatch):
    small = neighborhash.PLANS[quality]._replace(n_hidden=8, n_steps=20, table_steps=20)
    monkeypatch.setitem(neighborhash.PLANS, quality, small)
    settings = {"quality": quality, "query_function": "linear", "hash_function": "linear"}
    there, here = (
        NeighborHash(12, n_steps=20, **settings, random_state=0, device=device).fit(points[0])
        for device in ("cuda", "cpu")
    )
    assert there.tables(points[0]).shape == here.tables(points[0]).shape == (60, 2, 256)
    assert there.history_[-1].table_rank == pytest.approx(here.history_[-1].table_rank, rel=0.3)


@pytest.mark.parametrize("start", [False, True], ids=["pairs", "codes' model"])
@pytest.mark.parametrize("hash_function", ["linear", "network"])
def test_tables_for_codes_that_stay_are_learnt_there(
    gpu, points, monkeypatch, hash_function, start
):
    """Tables are as good as on the processor, always the same, and search where there is no GPU."""
    monkeypatch.setattr(querytables, "N_HIDDEN", 8)
    X = points[0]
    hasher = NeighborHash(12, "euclidean", "linear", n_steps=5, random_state=0).fit(X)
    index = HammingIndex(12, fingerprint=hasher.fingerprint_).add(hasher.codes_)
    Q, rows = X + 0.5 if start else X[:, ::-1], np.arange(60)

    def learnt(device):
        asker = QueryTables(12, hash_function, "euclidean", n_steps=20, random_state=0)
        asker.set_params(device=device, validation=0)  # all steps are made
        return asker.fit(Q, rows, index, start=hasher if start else None)

    there, here = learnt("cuda"), learnt("cpu")
    tables = there.tables(Q)
    assert (type(tables), tables.shape) == (np.ndarray, (60, 2, 256))
    np.testing.assert_array_equal(learnt("cuda").tables(Q), tables)
    assert there.score(Q, rows, index) == pytest.approx(here.score(Q, rows, index), abs=0.1)
    assert (there.codes_ == here.codes_).mean() > 0.9
    np.testing.assert_allclose(tables, here.tables(Q), atol=0.1 * np.abs(tables).max())


def test_tables_learnt_there_go_on_from_a_checkpoint(gpu, points, tmp_path, monkeypatch):
    X, rows = points[0], np.arange(60)
    codes = np.random.default_rng(0).integers(0, 256, (60, 1)).astype(np.uint8)
    asker = QueryTables(8, "linear", n_steps=20, random_state=0, device="cuda")
    expected = asker.fit(X, rows, codes).tables(X)
    write, times = Checkpoint.write, iter(range(99))

    def interrupted(self, saved):
        write(self, saved)
        if next(times) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asker.fit(X, rows, codes, checkpoint=tmp_path)
    np.testing.assert_array_equal(
        asker.fit(X, rows, codes, checkpoint=tmp_path).tables(X), expected
    )


def test_a_query_s_side_is_the_same_there(gpu, rng):
    """Vectors of codes, and gradients by the codebook and by bits."""
    C = rng.normal(size=(2 * 256, 5)).astype(np.float32)
    codes = rng.integers(0, 256, (30, 2)).astype(np.uint8)
    pull = rng.normal(size=(30, 5)).astype(np.float32)
    with threads.pool() as run:
        there, here = (
            [
                device.fetch(each)
                for each in (
                    asker.vectors(device.put(codes), run),
                    asker.through_bits(device.put(pull), device.put(codes), 12, run),
                    asker.gather(device.put(pull), device.put(codes), run),
                    packed(device.put(pull)),
                )
            ]
            for device in (gpu, devices.CPU)
            for asker in (Asker(SimpleNamespace(device=device, parameters=[], rates=()), C.copy()),)
        )
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hash_function", ["linear", "rbf", "network"])
def test_points_on_a_gpu_get_codes_there(gpu, points, hash_function):
    X, y = points
    model = trained(points, "cpu", hash_function=hash_function)
    there = gpu.put(X)
    for name in ("encode", "transform", "decision_function"):
        moved, expected = getattr(model, name)(there), getattr(model, name)(X)
        assert devices.of(moved) == gpu
        np.testing.assert_allclose(gpu.fetch(moved), expected, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="features"):
        model.encode(there[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.encode(gpu.put(np.full((2, 8), np.nan)))
    assert model.score(there, gpu.put(y), k=5) == model.score(X, y, k=5)
    learnt = trained((there, gpu.put(y)), "cpu", hash_function=hash_function)
    np.testing.assert_array_equal(learnt.codes_, model.codes_)


@pytest.mark.parametrize("hash_function", ["linear", "rbf", "network"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_points_on_a_gpu_get_codes_of_a_model_without_labels(gpu, points, metric, hash_function):
    X = points[0]
    model = NeighborHash(8, metric, hash_function, n_steps=5, random_state=0).fit(X)
    for name in ("encode", "decision_function"):
        moved, expected = getattr(model, name)(gpu.put(X)), getattr(model, name)(X)
        assert devices.of(moved) == gpu
        np.testing.assert_allclose(gpu.fetch(moved), expected, rtol=1e-9, atol=1e-9)


def test_slopes_of_the_rank_are_the_same(gpu, rng):
    U = np.tanh(rng.normal(size=(30, 6))).astype(np.float32)
    classes = rng.integers(0, 3, 30)
    least, weight = np.float32(0.01), np.float32(0.2)

    def slopes(put):
        own, near, sample = put(U[:4]), put(U[4:8]), put(U[8:])
        level = (own * near).sum(axis=1, keepdims=True)
        known = SameClass(classes).among(np.arange(4), np.arange(4, 8), np.arange(8, 30))
        S = 4 * (own @ sample.T)
        known.clear(S, slice(0, 4), to=-np.inf)
        return soft_rank(S, level, least, weight)

    for there, here in zip(slopes(gpu.put), slopes(np.asarray), strict=True):
        assert devices.of(there) == gpu
        np.testing.assert_allclose(gpu.fetch(there), here, rtol=1e-4, atol=1e-8)


def test_other_methods_take_them_too(gpu, points):
    X, _ = points
    model = auxhash.baselines.ITQ(8, random_state=0).fit(X)
    np.testing.assert_array_equal(gpu.fetch(model.encode(gpu.put(X))), model.encode(X))


def test_what_is_not_for_a_gpu_is_refused(gpu, points):
    for settings, message in [
        ({"z_step": "cut"}, "descent"),
        ({"start": "zeros", "z_step": "cut"}, "descent"),
        ({"hash_function": "trees"}, "processor"),
        ({"device": "gpu"}, "device"),
    ]:
        with pytest.raises(ValueError, match=message):
            MACHash(**{**SMALL, "device": "cuda", **settings}).fit(*points)


@pytest.mark.parametrize(
    "settings",
    [
        {"z_step": "cut"},
        {"start": "zeros", "z_step": "cut"},
        {"hash_function": "trees"},
        {"hash_function": DecisionTreeClassifier(max_depth=2)},
    ],
)
def test_auto_takes_the_processor_for_what_is_not_for_a_gpu(gpu, points, settings):
    quick = {"refine": None, "max_iter": 1, **settings}
    result, here = (trained(points, device, **quick) for device in ("auto", "cpu"))
    assert result.device_ == "cpu"
    np.testing.assert_array_equal(result.codes_, here.codes_)


def test_too_little_memory_is_told_before_anything_is_trained(gpu, points, monkeypatch):
    monkeypatch.setattr(devices.Device, "free", lambda self: 1000)
    with pytest.raises(MemoryError, match=r"GB.*fewer"):
        MACHash(**SMALL, device="cuda").fit(*points)
    assert trained(points, "auto", refine=None).device_ == "cpu"


def test_what_runs_out_of_memory_says_how_much_it_needs(gpu, points, monkeypatch):
    class OutOfMemoryError(MemoryError):
        pass

    OutOfMemoryError.__module__ = "cupy.cuda.memory"

    def failing(*args):
        raise OutOfMemoryError("Out of memory allocating 8 bytes")

    monkeypatch.setattr("auxhash.mac.zstep.problem_on", failing)
    with pytest.raises(MemoryError, match=r"8 bytes.*GB.*fewer"):
        MACHash(**SMALL, device="cuda").fit(*points)


def test_without_a_gpu_nothing_falls_back_silently(points):
    if _there():
        pytest.skip("does not apply: there is a GPU")
    with pytest.raises((ImportError, RuntimeError), match="cuda"):
        MACHash(**SMALL, device="cuda").fit(*points)
    assert trained(points, "auto", refine=None).device_ == "cpu"


def _there():
    try:
        return devices.get("cuda") is not devices.CPU
    except (ImportError, RuntimeError):
        return False


@pytest.mark.gpu
def test_tensors_of_pytorch_stay_there(points):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    X, y = points
    there = torch.from_numpy(X).cuda()
    for model in (trained(points, "cuda"), trained((there, y), "cuda")):
        for name in ("encode", "transform", "decision_function"):
            result, expected = getattr(model, name)(there), getattr(model, name)(X)
            assert isinstance(result, torch.Tensor)
            assert result.device == there.device
            np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=1e-9, atol=1e-9)
    index = auxhash.HammingIndex(6, device="cuda").add(model.codes_)
    codes = model.encode(there)
    for result, expected in zip(index.search(codes, 3), index.search(model.codes_, 3), strict=True):
        assert isinstance(result, torch.Tensor)
        np.testing.assert_array_equal(result.cpu().numpy(), expected)
