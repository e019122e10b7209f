"""inspect."""

import re

import numpy as np
from sklearn.datasets import load_digits

import auxhash
from auxhash import MACHash, NeighborHash
from auxhash.cli.inspect import curve
from auxhash.learn import baselines
from auxhash.search import metrics
from auxhash.search.expected import ExpectedRecall


def test_a_model(here, run, model):
    result = run("inspect", model, "--json")
    hasher = auxhash.load(model)
    assert result["kind"] == "MACHash"
    assert result["fingerprint"] == hasher.fingerprint_
    assert result["parameters"]["n_bits"] == 12
    assert [step["loss"] for step in result["history"]] == [s.loss for s in hasher.history_]
    assert result["training_codes"]["utilization"] == metrics.code_utilization(hasher.codes_)
    shown = run("inspect", model).output
    for text in (
        "a model of MACHash, written by auxhash",
        "64 features to 12 bits",
        "┤█",
        "loss=ksh",
    ):
        assert text in shown


def test_wordings(here, run, model):
    assert re.search(r"mu up to [\d.e-]+, then refined in 10 steps, ", run("inspect", model).output)
    np.save("one.npy", np.array([[1]], np.uint8))
    assert "1 code of 1 bit\n" in run("inspect", "one.npy", "--bits", "1").output
    settings = {"n_bits": 1, "n_similar": 10, "n_dissimilar": 20, "max_iter": 1, "refine": None}
    X, y = np.load("features.npy"), np.load("labels.npy")
    MACHash(**settings, random_state=0).fit(X[:, 30:31], y).save("one.safetensors")
    shown = run("inspect", "one.safetensors").output
    assert "1 feature to 1 bit, learnt from 120 points" in shown
    assert "L(h) over 1 iteration;" in shown
    assert re.search(r"mu up to [\d.e-]+, ", shown)


def test_a_baseline_has_no_curve(here, run):
    baselines.LSH(n_bits=4, random_state=0).fit(np.load("features.npy")).save("lsh.safetensors")
    shown = run("inspect", "lsh.safetensors").output
    assert "a model of LSH" in shown
    assert "┤" not in shown


def test_codes_beside_those_of_training(here, run, model):
    np.save("shift.npy", np.zeros((50, 2), np.uint8))
    result = run("inspect", "shift.npy", "--model", model, "--json")
    assert result["balance"] == [0.0] * 12
    assert result["utilization"] == 0
    assert result["training_codes"]["utilization"] > 1
    shown = run("inspect", "shift.npy", "--model", model).output
    assert "12 of them constant" in shown
    assert "changed most" in shown


def test_an_index(here, run):
    np.save("few.npy", np.arange(8, dtype=np.uint8)[:, None])
    run("index", "few.npy", "-o", "few.index", "--bits", "3")
    result = run("inspect", "few.index", "--json")
    assert (result["kind"], result["codes"], result["bits"]) == ("index", 8, 3)
    assert result["utilization"] == 3
    assert "an index of 8 codes of 3 bits" in run("inspect", "few.index").output


def test_curve():
    lines = curve([8.0, 4.0, 0.0])
    assert len(lines) == 8
    assert lines[0].endswith("8.000 ┤█  ")
    assert lines[-1].endswith("0.000 ┤██▁")
    assert curve([2.0, 2.0])[-1].endswith("┤▁▁")
    assert max(map(len, curve(range(1000)))) < 80


def test_every_kind_of_model(run, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5))
    path = tmp_path / "model.safetensors"
    for hasher in (baselines.BinaryAutoencoder(n_bits=4, random_state=0), baselines.ITQ(n_bits=4)):
        hasher.fit(X).save(path)
        shown = run("inspect", path).output
        result = run("inspect", path, "--json")
        assert ("E(h, f) over" in shown) == bool(result["history"])
        assert result["kind"] == type(hasher).__name__


def test_models_keep_no_times(here, run, model):
    assert not any(
        "seconds" in str(list(step)) for step in run("inspect", model, "--json")["history"]
    )


def test_a_model_learnt_without_labels(here, run):
    X = np.load("features.npy")
    settings = {"hash_function": "linear", "n_steps": 7, "query_function": None}
    model = NeighborHash(9, **settings, random_state=0).fit(X)
    model.save("near.safetensors")
    result = run("inspect", "near.safetensors", "--json")
    assert result["kind"] == "NeighborHash"
    assert [step["step"] for step in result["history"]] == [step.step for step in model.history_]
    shown = run("inspect", "near.safetensors").output
    assert "typical rank of a neighbour over 7 steps" in shown


def test_recall_of_new_points(here, run):
    X = load_digits().data
    model = NeighborHash(16, hash_function="linear", n_steps=50, random_state=0, n_jobs=1)
    model.fit(X[:500]).save("m.safetensors")
    np.save("points.npy", X[500:1000])
    result = run("inspect", "points.npy", "--model", "m.safetensors", "--json")
    assert result["kind"] == "points"
    assert result["codes"] == 500
    sizes = [each["n_base"] for each in result["recall"]]
    assert sizes == [100, 300, 475]
    shown = run("inspect", "points.npy", "--model", "m.safetensors").output
    assert "changed most" in shown
    assert "recall of these points: 0." in shown
    np.savez("few.npz", X=X[:50])
    few = run("inspect", "few.npz", "--model", "m.safetensors").output
    assert "recall is not measured: 50 points are too few" in few
    # A model that knows what to expect.
    promised = [ExpectedRecall(300, 500, 0.99, 0.001, 0.99, 0.001)]
    model.expected_recall_ = promised
    model.save("m.safetensors")
    assert "recall to expect of other points: 0.990" in run("inspect", "m.safetensors").output
    low = run("inspect", "points.npy", "--model", "m.safetensors")
    assert "recall is lower than expected" in low.output
    result = run("inspect", "points.npy", "--model", "m.safetensors", "--json")
    assert result["lower"] is True
    assert result["change"] < 0
