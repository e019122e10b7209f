"""fit, encode and export."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import auxhash
from auxhash import MACHash, affinity, baselines
from auxhash.datasets import images
from tests.cli.conftest import FEW


def test_fit_is_the_library_s(here, run, model):
    X, y = np.load("features.npy"), np.load("labels.npy")
    expected = MACHash(n_bits=12, n_similar=10, n_dissimilar=20, random_state=0).fit(X, y)
    found = auxhash.load(model)
    np.testing.assert_array_equal(found.encode(X), expected.encode(X))
    assert found.n_jobs is None


@pytest.mark.parametrize("name", ["features.npz", "table.csv"])
def test_labels_inside_the_file(here, run, model, name):
    told = run("fit", name, "-o", "inside.safetensors", "--bits", "12", *FEW, "--json")
    assert (told["points"], told["features"], told["bits"]) == (120, 64, 12)
    X = np.load("features.npy")
    found = auxhash.load("inside.safetensors")
    np.testing.assert_array_equal(found.encode(X), auxhash.load(model).encode(X))


def test_pairs(here, run):
    run("fit", "features.npy", "--pairs", "pairs.csv", "-o", "p.safetensors", "--bits", "4", *FEW)
    i, j, y = np.loadtxt("pairs.csv", delimiter=",", skiprows=1).T
    pairs = affinity.from_pairs(i.astype(int), j.astype(int), y, 120)
    X = np.load("features.npy")
    expected = MACHash(n_bits=4, random_state=0).fit(X, affinity=pairs)
    np.testing.assert_array_equal(auxhash.load("p.safetensors").encode(X), expected.encode(X))


def test_every_setting_reaches_the_model(here, run):
    settings = ["--loss", "hinge", "--solver", "cut", "--hash-function", "rbf"]
    counts = ["--similar", "all", "--dissimilar", "7", "--seed", "3", "--validation", "0.2"]
    told = run(
        *("fit", "features.npy", "labels.npy", "-o", "s.safetensors", "--bits", "5"),
        *(*settings, *counts, "--json"),
    )
    found = auxhash.load("s.safetensors").get_params()
    expected = {"loss": "hinge", "z_step": "cut", "hash_function": "rbf", "n_similar": None}
    expected |= {"n_dissimilar": 7, "random_state": 3, "validation": 0.2, "n_bits": 5}
    assert expected.items() <= found.items()
    assert 0 < told["validation_precision"] <= 1


def test_init_goes_on(here, run, model):
    common = ("new.npy", "new-labels.npy", "--init", model, "--jobs", "1")
    told = run("fit", *common, "-o", "on.safetensors", "--json")
    hasher = auxhash.load(model).set_params(warm_start=True)
    hasher.fit(np.load("new.npy"), np.load("new-labels.npy"))
    assert told["loss"] == hasher.loss_
    found = auxhash.load("on.safetensors")
    assert (found.n_bits, found.n_similar, found.warm_start) == (12, 10, False)
    result = run("fit", *common, "--bits", "8", "-o", "on.safetensors", code=1)
    assert "goes on from 12 bits; n_bits is 8 now" in result.output


def test_init_of_a_baseline_is_refused(here, run):
    baselines.ITQ(n_bits=4).fit(np.load("features.npy")).save("itq.safetensors")
    common = ("fit", "features.npy", "labels.npy", "--init", "itq.safetensors", "-o", "x")
    assert "holds a ITQ, and only models of `auxhash fit`" in run(*common, code=1).output


def test_auto_shows_what_it_chose_from(here, run):
    common = ("fit", "features.npy", "labels.npy", "-o", "auto.safetensors", "--auto", *FEW)
    fixed = ("--loss", "ksh", "--hash-function", "linear")
    told = run(*common, *fixed, "--json")
    assert set(told["chosen"]) == {"n_bits"}
    assert [row["n_bits"] for row in told["tried"]] == [32, 8, 16, 64]
    best = max(row["precision"] for row in told["tried"])
    [row] = [row for row in told["tried"] if row["n_bits"] == told["chosen"]["n_bits"]]
    assert row["precision"] >= best - 0.01
    assert auxhash.load("auto.safetensors").n_bits == told["chosen"]["n_bits"]
    shown = run(*common, *fixed, "--bits", "8").output
    assert "✓" in shown
    assert "held-out points" in shown


def test_encode_every_kind_of_file(here, run, model):
    expected = auxhash.load(model).encode(np.load("features.npy"))
    for name in ("features.npy", "features.npz", "features.fvecs", "table.csv"):
        told = run("encode", model, name, "-o", "out.npy", "--json")
        found = np.load("out.npy")
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, expected)
        assert (told["points"], told["bits"], told["bytes"]) == (120, 12, 2)


def test_a_fault_in_the_middle_leaves_no_codes(here, run, model, monkeypatch):
    monkeypatch.setattr("auxhash.datasets.rows.NUMBERS", 64 * 10)
    X = np.load("features.npy")
    X[57, 3] = np.nan
    np.save("hole.npy", X)
    result = run("encode", model, "hole.npy", "-o", "none.npy", code=1)
    assert "hole.npy must not hold NaN or infinity; row 57 does" in result.output
    assert not (here / "none.npy").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="measures as Unix does")
@pytest.mark.parametrize("suffix", [".npy", ".fvecs"])
def test_encoding_takes_constant_memory(made, model, tmp_path, suffix):
    """200 MB of features raise the peak by less than a fifth of them, codes included."""
    code = f"""
        import resource, sys
        import numpy as np
        from auxhash.cli import main

        def encoded(n):
            path = {str(tmp_path)!r} + f"/{{n}}{suffix}"
            if path.endswith(".npy"):
                np.lib.format.open_memmap(path, "w+", np.float32, (n, 64))[0] = 1
            else:
                record = np.dtype([("dimension", "<i4"), ("vector", "<f4", (64,))])
                with open(path, "wb") as out:
                    for _ in range(n // 1000):
                        part = np.zeros(1000, record)
                        part["dimension"] = 64
                        out.write(part.tobytes())
            arguments = ["encode", {str(model)!r}, path, "-o", path + ".codes.npy", "--jobs", "1"]
            main(arguments, standalone_mode=False)
            assert np.load(path + ".codes.npy", mmap_mode="r").shape == (n, 2)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        small, large = encoded(40_000), encoded(800_000)
        unit = 1 if sys.platform == "darwin" else 1024
        print((large - small) * unit / 2**20)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(out.stdout.splitlines()[-1]) < 40


def test_a_folder_of_pictures(here, run):
    run("fit", "photos", "-o", "ph.safetensors", "--bits", "6", *FEW)
    hasher = auxhash.load("ph.safetensors")
    assert hasher.image_feature_ == "gist:22"  # the median of the smaller sides
    assert sorted(set(hasher.labels_)) == ["across", "down"]
    run("encode", "ph.safetensors", "photos", "-o", "ph.npy")
    folder = images.image_folder("photos")
    X = images.gist_feature(22).of(folder.paths)
    np.testing.assert_array_equal(np.load("ph.npy"), hasher.encode(X))
    run("fit", "photos", "--init", "ph.safetensors", "-o", "ph2.safetensors", *FEW)
    assert auxhash.load("ph2.safetensors").image_feature_ == "gist:22"


def test_a_feature_of_one_s_own_is_run_only_when_named(here, run):
    run("fit", "photos", "--features", "mine:colours", "-o", "own.safetensors", *FEW)
    assert auxhash.load("own.safetensors").image_feature_ == "mine:colours"
    sys.modules.pop("mine")
    result = run("encode", "own.safetensors", "photos", "-o", "own.npy", code=1)
    assert "--features mine:colours lets it be run" in result.output
    assert "mine" not in sys.modules
    run("encode", "own.safetensors", "photos", "--features", "mine:colours", "-o", "own.npy")
    assert len(np.load("own.npy")) == 24


def test_export(here, run, model):
    runtime = pytest.importorskip("onnxruntime")
    told = run("export", model, "--onnx", "m.onnx", "--json")
    assert told == {"onnx": "m.onnx", "features": 64, "bits": 12}
    session = runtime.InferenceSession("m.onnx")
    X = np.load("features.npy")
    [name] = [each.name for each in session.get_inputs()]
    np.testing.assert_array_equal(
        session.run(None, {name: X.astype(np.float32)})[0], auxhash.load(model).encode(X)
    )
