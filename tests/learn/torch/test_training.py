"""Estimators with a module: two-step, MAC, refinement, rank; files, checkpoints, pictures."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from tests.learn.torch.made import N_BITS, dense, hashed, pictures, points, small
from tests.programs import run_python

torch = pytest.importorskip("torch")

import auxhash  # noqa: E402
from auxhash import (  # noqa: E402
    EndToEndHash,
    MACHash,
    ModelFileError,
    NeighborHash,
    Refine,
    TwoStepHash,
    Validation,
)
from auxhash.compute import context, threads  # noqa: E402
from auxhash.compute.neighbors import nearest  # noqa: E402
from auxhash.learn import neighborhash  # noqa: E402
from auxhash.learn.torch import ModuleHash, augment  # noqa: E402
from auxhash.learn.training import ranking  # noqa: E402
from auxhash.learn.training import run as training_run  # noqa: E402
from auxhash.mac import affinity  # noqa: E402
from auxhash.mac.hashfunctions.smooth import Moment  # noqa: E402
from auxhash.model.fitted import TIMES  # noqa: E402
from auxhash.search import metrics  # noqa: E402

SMALL = {"n_bits": N_BITS, "n_similar": 10, "n_dissimilar": 20, "random_state": 0, "n_jobs": 1}
QUICK = Refine(n_steps=20, batch=60, keep="refined")
X, y = points()
IMAGES, KINDS = pictures()


def mac(**settings):
    usual = {"hash_function": hashed(), "max_iter": 3, "refine": None}
    return MACHash(**{**SMALL, **usual, **settings})


def test_two_step_learns():
    hasher = TwoStepHash(hash_function=hashed(), **SMALL).fit(X[:100], y[:100])
    assert hasher.score(X[100:], y[100:], k=20) > 0.65
    np.testing.assert_array_equal(hasher.encode(X[:100]), hasher.codes_)


@pytest.mark.parametrize("penalty", ["quadratic", "augmented"])
def test_mac_never_raises_its_objective_in_an_h_step(penalty, monkeypatch):
    """At the same Z, the penalty on wrong bits is never more after the h step than before."""
    from auxhash.mac import loop as macs
    from auxhash.mac.hashfunctions import h_step

    compared = []

    def watched(h, H, F, Z, bits, weight=None, *monotone):
        new, new_H = h_step(h, H, F, Z, bits, weight, *monotone)
        if H is not None:
            cost = np.ones(Z.shape) if weight is None else weight
            compared.append([(cost * (codes != Z)).sum() for codes in (new_H, H)])
        return new, new_H

    monkeypatch.setattr(macs, "h_step", watched)
    mac(penalty=penalty, max_iter=6).fit(X, y)
    assert compared
    assert all(after <= before for after, before in compared)


def test_mac_lowers_the_loss():
    hasher = mac(max_iter=15).fit(X, y)
    assert hasher.loss_ < hasher.history_[0].loss


@pytest.mark.parametrize("objective", ["loss", "rank"])
def test_refinement_lowers_what_it_is_for(objective):
    hasher = mac(
        hash_function=hashed(epochs=1, more_epochs=0),
        max_iter=1,
        refine=Refine(n_steps=60, batch=60, objective=objective),
    ).fit(X, y)
    assert hasher.loss_ < 0.9 * hasher.history_[0].loss


def test_refinement_on_given_pairs():
    near = affinity.from_neighbors(X, 5, 20, random_state=0)
    hasher = mac(refine=Refine(n_steps=20, batch=60, pairs="given")).fit(X, affinity=near)
    assert hasher.loss_ <= min(step.loss for step in hasher.history_)


@pytest.mark.parametrize("settings", [{}, {"schedule": "constant"}])
def test_gradients_are_those_of_the_outputs(settings):
    """A step moves the weights along the gradient of sum(a * pull), a of unit size."""
    module = dense()
    h = hashed(module, optimizer="sgd", decay=0.0, rate=1.0, **settings)
    h = h.prepare(X, np.random.default_rng(0))
    smooth = h.smooth(X, np.random.default_rng(0))
    rows = np.array([3, 5, 8, 90])
    pull = np.random.default_rng(1).normal(size=(4, N_BITS)).astype(np.float32)
    with context.using(n_jobs=1), threads.pool() as run:
        every = smooth.outputs(slice(None), run)
        np.testing.assert_allclose(np.square(every).mean(axis=0), 1, rtol=1e-4)
        a = smooth.batch(rows, run)
        np.testing.assert_allclose(a, smooth.outputs(rows, run), rtol=1e-6)
        np.testing.assert_allclose(np.square(a).mean(axis=0), 1, rtol=1e-4)
        smooth.move(rows, pull, Moment(0, 0.25, 0.02), run)
    outputs = module(torch.from_numpy(X).float())
    size = outputs[rows].square().mean(dim=0).sqrt().detach()
    (outputs[rows] / size * torch.from_numpy(pull)).sum().backward()
    moved = smooth.module
    for before, after in zip(module.parameters(), moved.parameters(), strict=True):
        # Nesterov's first step is longer by the momentum.
        expected = before.detach() - 1.9 * before.grad
        np.testing.assert_allclose(after.detach(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("cross_entropy", [0.0, 0.5])
def test_end_to_end(cross_entropy):
    refine = Refine(60, 60, objective="classes", cross_entropy=cross_entropy, keep="refined")
    hasher = EndToEndHash(hash_function=hashed(small()), refine=refine, **SMALL)
    hasher.fit(IMAGES[:90], KINDS[:90])
    assert hasher.loss_ < 0.5 * hasher.history_[0].loss
    assert hasher.score(IMAGES[90:], KINDS[90:], k=20) > 0.9
    again = clone(hasher).fit(IMAGES[:90], KINDS[:90])
    np.testing.assert_array_equal(again.codes_, hasher.codes_)


def test_a_module_whose_outputs_hardly_differ_is_learnt_all_the_same():
    """Divided by their deviation, tanh was flat, and nothing moved."""
    module = dense()
    with torch.no_grad():
        module[2].bias.fill_(20.0)
    h = hashed(module).prepare(X, np.random.default_rng(0))
    smooth = h.smooth(X, np.random.default_rng(0))
    with context.using(n_jobs=1), threads.pool() as run:
        a = smooth.outputs(slice(None), run)
    assert (1 - np.tanh(a) ** 2).min() > 0.2


def test_neighborhash_ranks_neighbours_first():
    hasher = NeighborHash(N_BITS, hash_function=hashed(), n_steps=100, random_state=0, n_jobs=1)
    hasher.fit(X, y)
    assert hasher.history_[-1].rank < 0.8 * hasher.history_[0].rank
    with pytest.raises(ValueError, match='leave it at "cpu"'):
        clone(hasher).set_params(device="cuda").fit(X)
    again = clone(hasher).set_params(device="auto", n_steps=1).fit(X)
    assert again.device_ == "cpu"


@pytest.mark.parametrize("quality", ["fast", "best"])  # of codes that stay, and of codes that move
def test_tables_of_a_module(quality, tmp_path, keeps_tables, monkeypatch):
    small = neighborhash.PLANS[quality]._replace(n_hidden=16, batch=64, sample=100)
    monkeypatch.setitem(neighborhash.PLANS, quality, small._replace(n_steps=60, table_steps=60))
    hasher = NeighborHash(
        N_BITS, hash_function=hashed(), query_function="network", quality=quality, random_state=0
    ).fit(X)
    distance = hasher.tables(X)[:, 0, hasher.codes_[:, 0]]
    np.fill_diagonal(distance, np.inf)
    first, true = np.argsort(distance, axis=1)[:, :10], nearest(X, k=10, metric="cosine")[0]
    right = np.mean([np.isin(*rows).mean() for rows in zip(true, first, strict=True)])
    assert right > 3 * 10 / (len(X) - 1)  # three times as many as by chance
    hasher.save(tmp_path / "model.safetensors")
    again = auxhash.load(tmp_path / "model.safetensors", module=dense())
    np.testing.assert_array_equal(again.tables(X), hasher.tables(X))
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    onnxruntime = pytest.importorskip("onnxruntime")
    auxhash.export_onnx(hasher, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    codes, tables = session.run(["codes", "tables"], {"features": X[:7].astype(np.float32)})
    np.testing.assert_array_equal(codes, hasher.codes_[:7])
    np.testing.assert_allclose(tables, hasher.tables(X[:7]), atol=1e-4)


def test_tables_of_pictures_are_refused():
    hasher = NeighborHash(N_BITS, hash_function=hashed(small()), query_function="network")
    with pytest.raises(ValueError, match="not for pictures"):
        hasher.fit(IMAGES)


def test_neighborhash_of_pictures():
    hasher = NeighborHash(N_BITS, hash_function=hashed(small()), n_steps=10, random_state=0)
    hasher.set_params(n_jobs=1).fit(IMAGES)
    assert hasher.encode(IMAGES).shape == (len(IMAGES), 1)


def test_pictures_with_augmentation():
    h = hashed(small(), augment=augment.RandomChanges(1, False, 2))
    hasher = mac(hash_function=h, refine=QUICK).fit(IMAGES[:90], KINDS[:90])
    assert hasher.n_features_in_ == 8 * 8 * 3
    assert hasher.score(IMAGES[90:], KINDS[90:], k=20) > 0.9
    again = clone(hasher).fit(IMAGES[:90], KINDS[:90])
    np.testing.assert_array_equal(again.codes_, hasher.codes_)
    np.testing.assert_array_equal(again.decision_function(IMAGES), hasher.decision_function(IMAGES))


def test_parameters_can_be_read_and_set():
    hasher = mac()
    assert isinstance(hasher.get_params()["hash_function"], ModuleHash)
    assert "ModuleHash(Sequential" in repr(hasher)


def test_validation_on_pictures():
    validation = IMAGES[90:], KINDS[90:]
    hasher = mac(hash_function=hashed(small()), validation=validation, refine=QUICK)
    hasher.fit(IMAGES[:90], KINDS[:90])
    assert all(0 <= step.score <= 1 for step in hasher.history_)
    mac(hash_function=hashed(small()), validation=0.3).fit(IMAGES, KINDS)


def test_warm_start_goes_on_with_new_settings():
    hasher = mac(warm_start=True).fit(X[:100], y[:100])
    first = hasher.loss_
    hasher.set_params(hash_function=hashed(more_epochs=20)).fit(X[:100], y[:100])
    assert hasher.loss_ <= first
    with pytest.raises(ValueError, match="must stay what it was"):
        hasher.set_params(hash_function="linear").fit(X[:100], y[:100])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    hasher = mac(hash_function=hashed(small()), refine=QUICK).fit(IMAGES, KINDS)
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    hasher.save(path)
    return hasher, path


def test_saved_and_loaded(saved, tmp_path):
    hasher, path = saved
    module = small(seed=9)
    loaded = auxhash.load(path, module=module)
    np.testing.assert_array_equal(
        loaded.decision_function(IMAGES), hasher.decision_function(IMAGES)
    )
    assert torch.equal(module.first.weight, small(seed=9).first.weight)
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    model = auxhash.load(path, module=hashed(small(seed=9)))
    np.testing.assert_array_equal(model.encode(IMAGES), hasher.encode(IMAGES))
    refitted = auxhash.load(path, module=small()).fit(IMAGES, KINDS)
    np.testing.assert_array_equal(refitted.codes_, hasher.codes_)


def test_a_file_without_its_module_is_not_loaded(saved):
    _, path = saved
    with pytest.raises(ModelFileError, match=r"give it, as in auxhash.load\(path, module=...\)"):
        auxhash.load(path)
    with pytest.raises(ModelFileError, match=r"its last.weight is float32 of shape \(9, 96\)"):
        auxhash.load(path, module=small(n_bits=9))
    with pytest.raises(ModelFileError, match=r"has no 0\.bias"):
        auxhash.load(path, module=dense())
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module, got str"):
        auxhash.load(path, module="small")


def test_nothing_of_pytorch_is_imported_to_refuse_a_file(saved):
    _, path = saved
    lines = [
        "import sys, auxhash",
        "from auxhash.learn import encoder",
        "for load in (auxhash.load, encoder.load):",
        f"    try: load({str(path)!r})",
        "    except auxhash.ModelFileError as error: assert 'module=' in str(error), error",
        "    else: raise SystemExit('it was loaded')",
        "assert 'torch' not in sys.modules",
    ]
    run_python("\n".join(lines))


def flat(batch):
    return batch.to(torch.float32).flatten(1) / 255


def test_the_way_to_the_input_must_be_given_again(tmp_path):
    hasher = mac(hash_function=hashed(dense(192), to_input=flat)).fit(IMAGES, KINDS)
    hasher.save(tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError, match="learnt with to_input=flat, and is given None"):
        auxhash.load(tmp_path / "m.safetensors", module=dense(192))
    loaded = auxhash.load(tmp_path / "m.safetensors", module=ModuleHash(dense(192), to_input=flat))
    np.testing.assert_array_equal(loaded.encode(IMAGES), hasher.encode(IMAGES))


class Killed(BaseException):
    """Stands for SIGKILL between two steps."""


def seen(hasher):
    history = [
        replace(step, **{name: 0.0 for name in TIMES if hasattr(step, name)})
        for step in hasher.history_
    ]
    return hasher.decision_function(IMAGES).tobytes(), repr(history), hasher.codes_.tobytes()


def test_killed_after_every_step_it_ends_the_same(tmp_path, monkeypatch):
    hasher = mac(hash_function=hashed(small(), epochs=3, more_epochs=2), refine=QUICK, max_iter=2)
    model = clone(hasher).fit(IMAGES, KINDS)
    record = training_run._record
    for iteration in range(model.n_iter_):

        def recorded(steps, history, first, last=iteration):
            for step, state in record(steps, history, first):
                yield step, state
                if step.iteration == last:
                    raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(training_run, "_record", recorded)
            with pytest.raises(Killed):
                clone(hasher).fit(IMAGES, KINDS, checkpoint=tmp_path)
    resumed = clone(hasher).fit(IMAGES, KINDS, checkpoint=tmp_path)
    assert seen(resumed) == seen(model)
    other = small(seed=1)
    with pytest.raises(ValueError, match="hash_function is not the same"):
        clone(hasher).set_params(hash_function=hashed(other)).fit(
            IMAGES, KINDS, checkpoint=tmp_path
        )


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_neighborhash_goes_on_from_a_checkpoint(optimizer, tmp_path, monkeypatch):
    h = hashed(small(), optimizer=optimizer)
    hasher = NeighborHash(N_BITS, hash_function=h, n_steps=40, random_state=0, n_jobs=1)
    model = clone(hasher).fit(IMAGES)
    steps = ranking.RankTraining._steps

    def dying(self, history):
        for step in steps(self, history):
            yield step
            if step.step == 30:
                raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ranking.RankTraining, "_steps", dying)
        with pytest.raises(Killed):
            clone(hasher).fit(IMAGES, checkpoint=tmp_path)
    resumed = clone(hasher).fit(IMAGES, checkpoint=tmp_path)
    assert seen(resumed) == seen(model)


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (IMAGES.astype(np.int64), "must be uint8 .pictures., float32 or float64, got int64"),
        (np.full((120, 4, 4), np.nan), "must be finite; row 0 is not"),
        (IMAGES[:1], "must hold at least 2 points, got 1"),
        (IMAGES[:, :0], "must not be empty"),
        (IMAGES[:, :4], r"cannot compute outputs for points of shape \(4, 8, 3\)"),
        (X[:120], r"cannot compute outputs for points of shape \(6,\)"),
    ],
)
def test_points_that_do_not_suit(images, says):
    with pytest.raises(ValueError, match=says):
        mac(hash_function=hashed(small())).fit(images, KINDS[: len(images)])


def test_other_hash_functions_take_no_pictures():
    with pytest.raises(ValueError, match="Found array with dim 4"):
        mac(hash_function="linear").fit(IMAGES, KINDS)
    with pytest.raises(ValueError, match="requires y"):
        mac(hash_function=hashed(small())).fit(IMAGES)


def test_the_number_of_outputs_must_be_that_of_the_bits():
    for hasher in (mac(n_bits=9), NeighborHash(9, hash_function=hashed(), n_jobs=1)):
        with pytest.raises(ValueError, match=r"module must give 9 outputs per point .*\(2, 8\)"):
            hasher.fit(X, y)


def test_neighbours_are_of_fixed_features():
    refine = Refine(objective="rank", neighbors=0.5)
    with pytest.raises(TypeError, match="leave it at 0"):
        mac(refine=refine).fit(X, y)


def test_auxhash_itself_imports_no_pytorch():
    lines = [
        "import sys, auxhash, auxhash.cli",
        "auxhash.MACHash, auxhash.NeighborHash, auxhash.load, auxhash.export_onnx",
        "assert 'torch' not in sys.modules",
        "auxhash.torch.ModuleHash",
        "assert 'torch' in sys.modules",
    ]
    run_python("\n".join(lines))


def test_a_bare_module_is_told_what_to_do():
    with pytest.raises(TypeError, match=r"give auxhash.torch.ModuleHash\(module\)"):
        mac(hash_function=small()).fit(IMAGES, KINDS)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("half", [False, True])
def test_on_a_gpu(half, tmp_path):
    """Trained there with the same codes every time; loaded here with nearly the same."""
    h = hashed(small().to("cuda"), augment=augment.RandomChanges(1, True, 2), half=half)
    hasher = mac(hash_function=h, refine=QUICK).fit(IMAGES, KINDS)
    assert hasher.score(IMAGES, KINDS, k=20) > 0.9
    np.testing.assert_array_equal(clone(hasher).fit(IMAGES, KINDS).codes_, hasher.codes_)
    ranked = Refine(10, 60, objective="rank")
    mac(hash_function=h, refine=ranked).fit(IMAGES, KINDS)
    EndToEndHash(hash_function=h, refine=Refine(10, 60), **SMALL).fit(IMAGES, KINDS)
    mac(hash_function=hashed(dense().to("cuda"))).fit(X, y)
    hasher.save(tmp_path / "m.safetensors")
    loaded = auxhash.load(tmp_path / "m.safetensors", module=small())
    outputs = [each.decision_function(IMAGES) for each in (hasher, loaded)]
    np.testing.assert_allclose(*outputs, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("validation", [0.2, IMAGES[:10]], ids=["a share", "given"])
def test_the_nearest_pictures_judge_the_steps(validation):
    hasher = mac(hash_function=hashed(small()), validation=Validation(validation, k=5, neighbors=5))
    hasher.fit(IMAGES, KINDS)
    assert 0 <= hasher.history_[-1].score <= 1
    if not isinstance(validation, float):
        flat = IMAGES.reshape(len(IMAGES), -1)
        truth = nearest(flat, flat[:10], 5)[0]
        codes = hasher.encode(IMAGES)
        right = metrics.precision_at_k(codes[:10], codes, k=5, neighbors=truth)
        assert right in [step.score for step in hasher.history_]
