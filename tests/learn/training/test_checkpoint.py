"""Interrupted runs go on to the same bytes; nothing that was saved is ever lost."""

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import auxhash
from auxhash import MACHash, TrainingInterrupted, TwoStepHash
from auxhash.cli import main
from auxhash.learn import baselines
from auxhash.learn.smooth import Refine
from auxhash.learn.training import checkpoint
from auxhash.learn.training import run as training_run
from auxhash.learn.training.validation import TrainingPoints
from auxhash.mac import affinity
from auxhash.mac.hashfunctions import NetworkHash
from auxhash.mac.zstep import Cut, Quad
from auxhash.model.fitted import TIMES
from tests import oracle

KILLS = 40 if os.environ.get("AUXHASH_SOAK") else 2

y = np.arange(60) % 3
X = np.random.default_rng(0).normal(size=(60, 5)) + 1.2 * np.eye(3, 5)[y]
# Precision at 100 tells steps apart only among more than 100 points.
MANY = np.random.default_rng(1).normal(size=(180, 5)) + 1.2 * np.eye(3, 5)[np.tile(y, 3)]
SMALL = {
    **{"n_bits": 5, "n_similar": 5, "n_dissimilar": 8, "max_iter": 5, "alpha": 2.0},
    **{"refine": None, "random_state": 0, "n_jobs": 1},
}
QUICK = Refine(n_steps=20, batch=20)  # three steps per round, two per report


class Killed(BaseException):
    """Stands for SIGKILL between two steps."""


@pytest.fixture
def kill_after(monkeypatch):
    """Let every fit die once the step of that iteration has been made; None lets it live."""
    record = training_run._record
    made = []

    def kill_after(iteration):
        def recorded(steps, history, first):
            made.append([])
            for step, state in record(steps, history, first):
                made[-1].append(step.iteration)
                yield step, state
                if step.iteration == iteration:
                    raise Killed

        monkeypatch.setattr(training_run, "_record", recorded)
        return made

    return kill_after


def bytes_of(hasher):
    """Everything that was learnt, but for the times it took."""
    times = dict.fromkeys(TIMES, 0.0)
    history = [replace(step, **times) for step in hasher.history_]
    two = hasher.two_step_
    outputs = hasher.decision_function(X), two.decision(two.features(X)), hasher.codes_
    return [part.tobytes() for part in outputs], repr(history), hasher.loss_, hasher.n_iter_


def hasher_of(**settings):
    return MACHash(**{**SMALL, **settings})


FIRST_CODES = oracle.codes(np.random.default_rng(1), 60, 5)
RUNS = {
    **{
        f"{z_step}-{penalty}": hasher_of(z_step=z_step, penalty=penalty)
        for z_step in ("descent", "cut", "quad")
        for penalty in ("quadratic", "augmented")
    },
    "cut fixed": hasher_of(z_step=Cut("fixed", overlap=True)),
    "quad to convergence": hasher_of(z_step=Quad("eigenvector", "sign", None)),
    "validation": hasher_of(validation=0.3, alpha=1.6, random_state=1),
    "validation given": hasher_of(validation=(X, y), z_step="cut", refine=QUICK, random_state=2),
    "plain, last": hasher_of(h_step="plain", iterate="last", z_step="cut", random_state=1),
    "last, refined": hasher_of(h_step="plain", iterate="last", refine=QUICK),
    "init": hasher_of(init=FIRST_CODES),
    "refined": hasher_of(refine=QUICK),
    "rbf": hasher_of(hash_function="rbf", refine=QUICK, z_step="cut"),
    "network": hasher_of(hash_function="network", refine=QUICK),
    "network, chosen by validation": hasher_of(
        hash_function=NetworkHash(8, dropout=None, noise=None),
        **{"refine": QUICK, "validation": 0.3, "random_state": 1},
    ),
    "noise": hasher_of(hash_function=NetworkHash(8, noise=0.1), refine=QUICK),
    "thinned": hasher_of(
        hash_function=NetworkHash(8, dropout=0.5, noise=0.1, thinned=True), refine=QUICK
    ),
    "given pairs": hasher_of(refine=replace(QUICK, pairs="given")),
    "rank": hasher_of(refine=replace(QUICK, objective="rank", neighbors=0.5)),
    "classes": hasher_of(refine=replace(QUICK, objective="classes", cross_entropy=0.5)),
    "few steps": hasher_of(refine=replace(QUICK, n_steps=3)),
    "logistic": hasher_of(hash_function=LogisticRegression(), n_bits=3),
    "to the end": hasher_of(max_iter=50),
    "own loss": hasher_of(loss=oracle.similar_or_not),
    "generator": hasher_of(random_state=np.random.default_rng(5)),
    "random state": hasher_of(random_state=np.random.RandomState(5)),
    "two-step": TwoStepHash(**SMALL),
    "FastHash": baselines.FastHash(5, n_similar=5, n_dissimilar=8, random_state=0, n_jobs=1),
}


@pytest.mark.parametrize("name", RUNS)
def test_killed_after_every_step_it_ends_the_same(name, tmp_path, kill_after):
    data = (MANY, np.tile(y, 3)) if "validation" in name else (X, y)
    model = clone(RUNS[name]).fit(*data)
    assert all(step.accepted for step in model.history_) == ("validation" not in name)
    made = kill_after(None)
    for iteration in range(model.n_iter_):
        kill_after(iteration)
        with pytest.raises(Killed):
            clone(RUNS[name]).fit(*data, checkpoint=tmp_path)
    kill_after(None)
    resumed = clone(RUNS[name]).fit(*data, checkpoint=tmp_path)
    assert bytes_of(resumed) == bytes_of(model)
    # No step was made twice: only the first, the best and the last are seen again.
    for before, seen in enumerate(made[: model.n_iter_]):
        assert len([i for i in seen if i < before]) <= min(before, 3)
        assert seen[-1] == before
    # Once finished, the result is there at once.
    made.clear()
    again = clone(RUNS[name]).fit(*data, checkpoint=tmp_path)
    assert bytes_of(again) == bytes_of(model)
    assert len(made[0]) <= 3


def test_a_run_of_any_seed_can_go_on(tmp_path, kill_after):
    """Without a seed, the generators come from the checkpoint."""
    hasher = hasher_of(random_state=None, refine=QUICK, validation=0.2)
    kill_after(2)
    with pytest.raises(Killed):
        clone(hasher).fit(X, y, checkpoint=tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    kill_after(None)
    one, two = (clone(hasher).fit(X, y, checkpoint=tmp_path / name) for name in ("one", "two"))
    assert bytes_of(one) == bytes_of(two)
    other = clone(hasher).fit(X, y, checkpoint=tmp_path / "three")
    assert bytes_of(other) != bytes_of(one)


def test_warm_start_and_pairs(tmp_path, kill_after):
    pairs = affinity.from_labels(y, 4, 6, random_state=1)
    old = hasher_of(warm_start=True).fit(X[:40], y[:40])
    old.save(tmp_path / "old.safetensors")
    loaded = auxhash.load(tmp_path / "old.safetensors").fit(X, affinity=pairs)
    for iteration in (0, 2, None):
        kill_after(iteration)
        hasher = auxhash.load(tmp_path / "old.safetensors")
        if iteration is not None:
            with pytest.raises(Killed):
                hasher.fit(X, affinity=pairs, checkpoint=tmp_path / "run")
    hasher.fit(X, affinity=pairs, checkpoint=tmp_path / "run")
    assert bytes_of(hasher) == bytes_of(loaded)
    with pytest.raises(ValueError, match="the model to go on from is not the same"):
        hasher.fit(X, affinity=pairs, checkpoint=tmp_path / "run")


def test_threads_and_the_bar_may_change(tmp_path, kill_after, capsys):
    model = hasher_of(refine=QUICK).fit(X, y)
    kill_after(1)
    with pytest.raises(Killed):
        hasher_of(refine=QUICK).fit(X, y, checkpoint=tmp_path)
    kill_after(None)
    resumed = hasher_of(refine=QUICK, n_jobs=2, verbose=1).fit(X, y, checkpoint=tmp_path)
    assert bytes_of(resumed) == bytes_of(model)


# What is killed is forked from a process that has imported and compiled everything, and does
# hardly anything but write checkpoints.
KILLING = """
import os, random, signal, sys, time
from pathlib import Path
from tests.learn.training.test_checkpoint import X, y, QUICK, bytes_of, hasher_of

folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
hasher = lambda: hasher_of(mu=0.001, alpha=1.1, max_iter=40, refine=QUICK)
whole = bytes_of(hasher().fit(X, y))
takes = float("inf")  # the least of three: in a slow moment one would take too long
for number in range(3):
    clock = time.perf_counter()
    hasher().fit(X, y, checkpoint=folder / f"timed{number}")
    takes = min(takes, time.perf_counter() - clock)
moments = random.Random(seed)
killed = writing = 0
for number in range(kills):
    run = folder / str(number)
    for moment in (moments.uniform(0, takes), moments.uniform(0, takes)):
        pid = os.fork()
        if not pid:
            hasher().fit(X, y, checkpoint=run)
            os._exit(0)
        time.sleep(moment)
        os.kill(pid, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        writing += bool(list(run.glob(".checkpoint*")))
    assert bytes_of(hasher().fit(X, y, checkpoint=run)) == whole, (number, seed)
    assert os.listdir(run) == ["checkpoint.safetensors"]
print(killed, writing)
"""


def test_killed_at_any_moment_it_ends_the_same(tmp_path):
    root = Path(__file__).parents[3]
    seed = random.randrange(10**6)  # other moments every time; a failure tells it
    process = subprocess.run(
        [sys.executable, "-c", KILLING, tmp_path, str(KILLS), str(seed)],
        **{"capture_output": True, "text": True, "cwd": root, "timeout": 600},
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert process.returncode == 0, process.stderr
    killed, writing = map(int, process.stdout.split())
    assert killed >= KILLS / 2
    if KILLS >= 30:
        assert writing > 0


@pytest.fixture
def half_way(tmp_path, kill_after):
    """A folder with the checkpoint of a run killed after iteration 1."""
    folder = tmp_path / "half"
    kill_after(1)
    with pytest.raises(Killed):
        hasher_of().fit(X, y, checkpoint=folder)
    kill_after(None)
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_bits": 6}, "n_bits was 5 and is 6; change it back, or delete"),
        ({"loss": "bre", "C": 1.0}, "C was 100.0 and is 1.0, loss was 'ksh' and is 'bre';"),
        ({"refine": QUICK}, "refine is not the same"),
        ({"hash_function": LogisticRegression()}, "hash_function is not the same"),
        ({"z_step": Cut()}, "z_step was 'descent' and is .*Cut|z_step is not the same"),
        ({"start": "zeros"}, "start was 'random' and is 'zeros'"),
        ({"h_step": "plain"}, "h_step was 'monotone' and is 'plain'"),
        ({"iterate": "last"}, "iterate was 'lowest' and is 'last'"),
        ({"init": FIRST_CODES}, "init is not the same"),
        ({"loss": oracle.similar_or_not}, r"loss was 'ksh' and is similar_or_not \(\w+\);"),
        ({"random_state": 1}, "random_state was 0 and is 1;"),
        ({"random_state": np.random.default_rng(0)}, "random_state is not the same"),
    ],
)
def test_other_parameters_are_refused(half_way, change, message):
    before = (half_way / checkpoint.NAME).read_bytes()
    with pytest.raises(ValueError, match=f"belongs to another run: .*{message}"):
        hasher_of(**change).fit(X, y, checkpoint=half_way)
    assert (half_way / checkpoint.NAME).read_bytes() == before


def test_other_data_are_refused(half_way):
    moved = X.copy()
    moved[17, 3] += 1e-9
    pairs = affinity.from_labels(y, 5, 8, random_state=0)
    for data, message in [
        ((moved, y), "X is not the same"),
        ((X[:59], y[:59]), "X is not the same, y is not the same"),
        ((X, np.roll(y, 1)), "y is not the same"),
        ((X, y.astype(str).astype(object)), "y is not the same"),
        ((X, y, pairs), "affinity is not the same"),
    ]:
        with pytest.raises(ValueError, match=f"another run: {message}; .*delete .*to start anew"):
            hasher_of().fit(*data, checkpoint=half_way)
    with pytest.raises(ValueError, match="method was 'MACHash' and is 'TwoStepHash'"):
        TwoStepHash(**SMALL).fit(X, y, checkpoint=half_way)


def test_another_version_is_refused(half_way, monkeypatch):
    monkeypatch.setattr(checkpoint, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"by auxhash 0.*, and this is auxhash 99.0: go on with"):
        hasher_of().fit(X, y, checkpoint=half_way)


def test_a_damaged_file_is_refused(half_way):
    path = half_way / checkpoint.NAME
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [good[:n] for n in (0, 1, 8, 500, len(good) // 2, len(good) - 1)]
    for at in rng.integers(0, len(good), 60):
        flipped = bytearray(good)
        flipped[at] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"delete .*checkpoint.safetensors to start anew"):
            hasher_of().fit(X, y, checkpoint=half_way)
    hasher_of().fit(X, y).save(path)
    with pytest.raises(ValueError, match="holds MACHash, and no checkpoint; delete"):
        hasher_of().fit(X, y, checkpoint=half_way)
    path.write_bytes(good)
    resumed = hasher_of().fit(X, y, checkpoint=half_way)
    assert bytes_of(resumed) == bytes_of(hasher_of().fit(X, y))


def test_one_run_at_a_time(half_way):
    with (
        checkpoint.opened(half_way, hasher_of()._in_words(TrainingPoints(X, y, None))),
        pytest.raises(ValueError, match="half is in use by another run: wait for its end"),
    ):
        hasher_of().fit(X, y, checkpoint=half_way)
    hasher_of().fit(X, y, checkpoint=half_way)


@pytest.mark.parametrize("name", [checkpoint.NAME, checkpoint.LOCK])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_something_else_in_the_place_of_a_file(name, make, tmp_path, kill_after):
    made = kill_after(None)
    make(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name} is no file, as it would be in a checkpoint"):
        hasher_of().fit(X, y, checkpoint=tmp_path)
    assert not made


def test_a_limit_of_the_system_loses_nothing(half_way):
    """A full disk is such a limit."""
    content = bytes_of(hasher_of().fit(X, y))
    path = half_way / checkpoint.NAME
    before = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limit[1]))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = bytes_of(hasher_of().fit(X, y, checkpoint=half_way))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert result == content
    [message] = [str(one.message) for one in caught]
    assert "File too large" in message
    assert "the last one stays" in message
    assert path.read_bytes() == before
    assert os.listdir(half_way) == ["checkpoint.safetensors"]
    assert bytes_of(hasher_of().fit(X, y, checkpoint=half_way)) == content


def test_a_folder_that_cannot_be_written_is_told_before_training(tmp_path, kill_after, monkeypatch):
    made = kill_after(None)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"must be a folder, and .*file is a file"):
        hasher_of().fit(X, y, checkpoint=tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        hasher_of().fit(X, y, checkpoint=tmp_path / "file" / "below")

    for number, kind in [(errno.EACCES, PermissionError), (errno.ENOSPC, OSError)]:

        def denied(number=number, **options):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(checkpoint.tempfile, "TemporaryFile", denied)
        with pytest.raises(kind, match=r"no checkpoint can be written here: .*run'"):
            hasher_of().fit(X, y, checkpoint=tmp_path / "run")
    assert not made


class Own(LogisticRegression):
    """A classifier that no file may bring along."""


def test_a_hash_function_that_cannot_be_read_back_is_told_at_once(tmp_path, kill_after):
    made = kill_after(None)
    for run in (hasher_of(hash_function=Own()), hasher_of(hash_function=Undeclared())):
        with pytest.raises((ValueError, TypeError), match=r"hash_function(:| is of type)"):
            run.fit(X, y, checkpoint=tmp_path)
    assert not made
    assert not (tmp_path / checkpoint.NAME).exists()


class Undeclared:
    """A hash function that is not registered."""

    def __init__(self):
        self.inner = auxhash.hashfunctions.linear()

    def prepare(self, X, rng):
        self.inner = self.inner.prepare(X, rng)
        return self

    def features(self, X):
        return self.inner.features(X)

    refit = take = decision = features


def own_loss(power):
    def own(d, y, b):
        return np.abs(d / b - (1 - y) / 2) ** power

    return own


def test_a_loss_that_was_changed_is_refused(tmp_path, kill_after):
    kill_after(1)
    with pytest.raises(Killed):
        hasher_of(loss=own_loss(2)).fit(X, y, checkpoint=tmp_path)
    kill_after(None)
    with pytest.raises(ValueError, match=r"loss was .*own .* and is .*own|loss is not the same"):
        hasher_of(loss=own_loss(3)).fit(X, y, checkpoint=tmp_path)
    resumed = hasher_of(loss=own_loss(2)).fit(X, y, checkpoint=tmp_path)
    assert bytes_of(resumed) == bytes_of(hasher_of(loss=own_loss(2)).fit(X, y))


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C while the step of that iteration is being made, as often as told."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    iterate = auxhash.mac.loop.MAC._iterate
    made = []

    def press(iteration, times=1):
        made.clear()

        def pressed(self, *arguments):
            made.append(arguments)
            if len(made) == iteration:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)
            return iterate(self, *arguments)

        monkeypatch.setattr(auxhash.mac.loop.MAC, "_iterate", pressed)
        return lambda: monkeypatch.setattr(auxhash.mac.loop.MAC, "_iterate", iterate)

    yield press
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, handler)


def test_ctrl_c_keeps_the_best_model(tmp_path, press, capfd):
    model = hasher_of(refine=QUICK).fit(X, y)
    release = press(2)
    with pytest.warns(TrainingInterrupted, match="after iteration 2: the model is the best so far"):
        hasher = hasher_of(refine=QUICK).fit(X, y)
    assert "Ctrl-C again stops at once" in capfd.readouterr().err
    assert hasher.interrupted_
    assert hasher.n_iter_ == 3
    assert hasher.loss_ == min(step.loss for step in model.history_[:3])
    assert hasher.transform(X).shape == (60, 5)
    hasher.save(tmp_path / "model.safetensors")
    assert auxhash.load(tmp_path / "model.safetensors").interrupted_
    release()
    press(1)
    with pytest.warns(TrainingInterrupted, match=r"fit with the same data.*run'"):
        hasher.fit(X, y, checkpoint=tmp_path / "run")
    release()
    hasher.fit(X, y, checkpoint=tmp_path / "run")
    assert not hasher.interrupted_
    assert bytes_of(hasher) == bytes_of(model)


def test_a_second_ctrl_c_stops_at_once(tmp_path, press):
    model = hasher_of().fit(X, y)
    release = press(3, times=2)
    with pytest.raises(KeyboardInterrupt):
        hasher_of().fit(X, y, checkpoint=tmp_path)
    release()
    assert bytes_of(hasher_of().fit(X, y, checkpoint=tmp_path)) == bytes_of(model)


def test_other_threads_and_handlers_are_left_alone(press):
    models = []
    thread = threading.Thread(target=lambda: models.append(hasher_of().fit(X, y)))
    thread.start()
    thread.join()
    assert not models[0].interrupted_
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    press(1)
    assert not hasher_of().fit(X, y).interrupted_
    assert seen == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_on_the_command_line(tmp_path, press, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    np.save("y.npy", y)
    settings = ["--bits", "5", "--similar", "5", "--dissimilar", "8", "--jobs", "1"]
    fit = ["fit", "X.npy", "y.npy", *settings, "-o"]
    result = CliRunner().invoke(main, [*fit, "whole.safetensors"])
    assert result.exit_code == 0
    release = press(2)
    stopped = CliRunner().invoke(main, [*fit, "m.safetensors", "--checkpoint", "run"])
    assert stopped.exit_code == 130
    message = "Interrupted: m.safetensors is the best model so far; the same command goes on.\n"
    assert stopped.stderr.endswith(message)
    assert auxhash.load("m.safetensors").n_iter_ == 3
    release()
    resumed = CliRunner().invoke(main, [*fit, "m.safetensors", "--checkpoint", "run"])
    assert resumed.exit_code == 0
    actual, expected = auxhash.load("m.safetensors"), auxhash.load("whole.safetensors")
    assert actual.decision_function(X).tobytes() == expected.decision_function(X).tobytes()
    other = CliRunner().invoke(main, [*fit, "m.safetensors", "--checkpoint", "run", "--seed", "1"])
    assert other.exit_code == 1
    assert "random_state was 0 and is 1; change it back, or delete run" in other.output
    same = CliRunner().invoke(main, [*fit, "run", "--checkpoint", "run"])
    assert same.exit_code == 1
    press(2)
    alone = CliRunner().invoke(main, [*fit, "m.safetensors"])
    assert alone.exit_code == 130
    assert alone.stderr.endswith("best model so far; with --checkpoint it could go on.\n")


def test_ctrl_c_before_there_is_a_model_is_code_130(tmp_path, monkeypatch):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(MACHash, "fit", pressed)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    fit = ["fit", str(tmp_path / "data.npz"), "-o", str(tmp_path / "m")]
    result = CliRunner().invoke(main, fit)
    assert result.exit_code == 130
    assert result.stderr.endswith("\nInterrupted.\n")
    debugged = CliRunner().invoke(main, ["--debug", *fit])
    assert debugged.exit_code == 130
    assert debugged.stderr.endswith("\nKeyboardInterrupt\nInterrupted.\n")
