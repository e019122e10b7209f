"""fit by the name of a method, on a sample, with fewer steps; and what Ctrl-C leaves."""

import inspect
import re
import signal

import numpy as np
import pytest

import auxhash
from auxhash.compute import context
from auxhash.files import images
from auxhash.learn import baselines, neighborhash
from auxhash.learn.classneighbors import same_class
from auxhash.learn.hasher import Hasher
from auxhash.learn.training import estimate
from auxhash.learn.training.ranking import RankTraining
from auxhash.mac import hashfunctions
from auxhash.search.metrics import recall


@pytest.mark.parametrize("name", ["itq", "LSH", "CCAITQ", "KSH", "FastHash"])
def test_a_baseline_by_its_name(here, run, name):
    common = ("fit", "features.npy", "labels.npy", "-o", "b.safetensors", "--bits", "3")
    shown = run(*common, "--method", name, "--seed", "1", "--jobs", "1").output
    assert "b.safetensors: 3 bits, learnt from 120 points of 64 features in " in shown
    X, y = np.load("features.npy"), np.load("labels.npy")
    [kind] = [each for each in baselines.__all__ if each.lower() == name.lower()]
    expected = getattr(baselines, kind)(n_bits=3, random_state=1).fit(X, y)
    np.testing.assert_array_equal(auxhash.load("b.safetensors").codes_, expected.codes_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("features.npy --method IQT", "--method must be one of .* did you mean 'ITQ'"),
        ("features.npy --method SDH", "--method SDH learns from labels, and features.npy has none"),
        ("features.npy labels.npy --method ITQ --loss ee", "--loss is not for --method ITQ"),
        ("features.npy labels.npy --method ITQ --similar 5", "--similar is not for --method ITQ"),
        ("features.npy labels.npy --method ITQ --steps 5", "--steps is not for --method ITQ"),
        ("features.npy --pairs pairs.csv --method ITQ", "--pairs are not for --method ITQ"),
        ("features.npy --pairs pairs.csv --sample 9", "--sample is not for --pairs"),
    ],
)
def test_what_does_not_go_together(here, run, options, message):
    result = run("fit", *options.split(), "-o", "x.safetensors", code=1)
    assert re.search(message, result.output)


@pytest.mark.parametrize("option", ["--auto", "--init m", "--checkpoint run", "--device auto"])
def test_options_of_other_methods(here, run, option):
    common = ("fit", "features.npy", "-o", "x.safetensors", "--method", "ITQ")
    assert (
        f"{option.split()[0]} is not for --method" in run(*common, *option.split(), code=2).output
    )


def test_a_sample_is_learnt_from_and_said(here, run):
    shown = run("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--steps", "7",
                "--sample", "60").output  # fmt: skip
    line = "features.npy: a sample of 60 of 120 points is learnt from (--sample)"
    assert line in shown
    assert "learnt from a sample of 60 of 120 points of 64 features" in shown
    assert " s and 7 steps\n" in shown
    X, y = np.load("features.npy"), np.load("labels.npy")
    expected = auxhash.NeighborHash(8, n_steps=7, max_points=60, random_state=0).fit(X)
    model = auxhash.load("n.safetensors")
    np.testing.assert_array_equal(model.codes_, expected.codes_)
    shown = run("fit", "features.npy", "labels.npy", "-o", "m.safetensors", "--similar", "5",
                "--dissimilar", "5", "--steps", "7", "--sample", "60").output  # fmt: skip
    assert line in shown
    assert "learnt from a sample of 60 of 120 points" in shown
    model = auxhash.load("m.safetensors")
    assert model.refine == auxhash.Refine(n_steps=7, keep="refined")
    assert len(model.codes_) == len(model.labels_) == 60
    rows = [np.flatnonzero((model.encode(X) == code).all(axis=1)) for code in model.codes_]
    assert all(label in y[each] for each, label in zip(rows, model.labels_, strict=True))


def test_the_usual_sample_is_said_too(here, run, monkeypatch):
    usual = neighborhash.NeighborHash.__init__
    other = dict(zip([*inspect.signature(usual).parameters][1:], usual.__defaults__, strict=True))
    other |= {"hash_function": "linear", "n_steps": 5, "max_points": 60}
    monkeypatch.setattr(usual, "__defaults__", tuple(other.values()))
    shown = run("fit", "features.npy", "-o", "n.safetensors").output
    assert "features.npy: a sample of 60 of 120 points is learnt from (--sample)" in shown


def test_seconds_and_steps_count_both_parts(here, run, monkeypatch):
    """Of a run that was killed, and went on."""
    common = ("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--steps", "20",
              "--hash-function", "linear", "--checkpoint", "run")  # fmt: skip
    steps, made = RankTraining._steps, []

    def slow(self, history):
        for step in steps(self, history):
            made.append(step.step)
            yield type(step)(step.step, step.rank, 1000.0)
            if len(made) == 10:
                raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(RankTraining, "_steps", slow)
        run(*common, code=1)
    result = run(*common, "--json")
    assert result["steps"] == 20
    assert 10_000 <= result["seconds"] < 11_000


@pytest.fixture
def pressed(monkeypatch):
    """A function that lets Ctrl-C be pressed when a method is called."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press_in(owner, name):
        method = getattr(owner, name)

        def called(*args, **kwargs):
            signal.raise_signal(signal.SIGINT)
            return method(*args, **kwargs)

        monkeypatch.setattr(owner, name, called)

    yield press_in
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (RankTraining, "_ranks"),
        (hashfunctions, "encoded"),
        (recall, "expected_recall"),
        (Hasher, "save"),
    ],
)
def test_ctrl_c_keeps_the_model_in_every_phase_after_the_first(here, run, pressed, owner, name):
    pressed(owner, name)
    common = ("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--steps", "10")
    run(*common, "--hash-function", "linear", code=130)
    assert len(auxhash.load("n.safetensors").codes_) == 120


def test_ctrl_c_keeps_a_model_of_labels(here, run, pressed):
    pressed(Hasher, "save")
    common = ("fit", "features.npy", "labels.npy", "-o", "n.safetensors", "--bits", "8")
    run(*common, "--similar", "5", "--dissimilar", "5", code=130)
    assert len(auxhash.load("n.safetensors").codes_) == 120


def test_codes_that_coincide_are_said(here, run):
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 4)), 60, axis=0)
    np.save("same.npy", X)
    result = run("fit", "same.npy", "-o", "s.safetensors", "--method", "LSH", "--bits", "32")
    line = "10 codes cover 600 of 1,200 points"
    assert line not in result.output
    X[:60] = X[60]
    np.save("same.npy", X)
    result = run("fit", "same.npy", "-o", "s.safetensors", "--method", "LSH", "--bits", "32")
    line = r"s.safetensors: 10 codes cover 6\d\d of 1,140 points, whose order .* leaves open"
    assert re.search(line, result.output)  # of those learnt from
    run("encode", "s.safetensors", "same.npy", "-o", "s.npy")
    shown = run("index", "s.npy", "-o", "s.index").output
    assert "s.index: 10 codes cover 660 of 1,200 points, whose order" in shown


def test_pictures_of_a_class_do_not_coincide(here, run):
    """The class first, and in it the most similar; options of MACHash learn classes alone."""
    common = ("fit", "photos", "-o", "p.safetensors", "--steps", "20", "--jobs", "1")
    shown = run(*common).output
    assert "photos: codes are learnt which rank pictures of the same class first" in shown
    model = auxhash.load("p.safetensors")
    assert isinstance(model, auxhash.NeighborHash)
    assert (model.n_bits, model.hash_function, model.image_feature_) == (64, "linear", "gist:22")
    folder = images.image_folder("photos")
    X = images.remembered(model.image_feature_).of(folder.paths)
    near = same_class(X, folder.labels, "cosine")
    again = auxhash.NeighborHash(
        64, hash_function="linear", query_function=None, n_steps=20, random_state=0
    )
    np.testing.assert_array_equal(again.fit(X, neighbors=near).codes_, model.codes_)
    assert model.score(X, folder.labels) > 0.95
    run(*common, "--query-function", "linear", "--prefixes", "32", "--quality", "fast")
    more = auxhash.load("p.safetensors")
    assert (more.query_function, more.prefixes, more.quality) == ("linear", (32,), "fast")
    assert more.history_[-1].table_rank is not None
    run("fit", "photos", "-o", "p.safetensors", "--similar", "5", "--bits", "64", "--jobs", "1")
    by_class = auxhash.load("p.safetensors")
    assert isinstance(by_class, auxhash.MACHash)
    distinct = [len(np.unique(each.codes_, axis=0)) for each in (model, by_class)]
    assert distinct[0] > 2 * distinct[1]


def test_neighbours_of_the_same_class():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.repeat([0, 1, 2, 3], [30, 26, 3, 1])
    near = same_class(X, y, "euclidean")
    assert near.shape == (60, 13)
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    for row in range(56):
        own = np.where(y == y[row], apart[row], np.inf)
        np.testing.assert_array_equal(near[row], np.argsort(own)[:13])
    assert {*near[56]} == {57, 58}
    assert {*near[59]} == {apart[59].argmin()}


def test_the_time_is_said_before_training(here, run, monkeypatch):
    time = context.ExpectedTime(60.0, 65.0)
    monkeypatch.setattr(estimate, "expected_time", lambda hasher, X, y: time)
    used = []
    monkeypatch.setattr(RankTraining, "run", _noting(RankTraining.run, used))
    common = ("fit", "features.npy", "-o", "n.safetensors", "--bits", "8", "--steps", "3")
    shown = run(*common).output
    assert "training will take about 0:02:05, by what small parts of it take" in shown
    assert used == [time]  # for the lines of progress


def _noting(method, used):
    def noted(self):
        used.append(context.current().expected)
        return method(self)

    return noted
