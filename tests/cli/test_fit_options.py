"""Every pair of options of `auxhash fit`: it writes a model, or refuses at once and says why."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import auxhash
from auxhash.cli import main
from auxhash.learn.training.ranking import RankTraining
from auxhash.learn.training.run import Training
from tests.pairwise import Rule, check_told, covering, named, refused

N = 60
FEW = ("--similar", "5", "--dissimilar", "8")
# Each option with the ways to give it, as on the command line; the first is the usual one.
OPTIONS = {
    "similar": ("labels.npy", "labels.npy --pairs pairs.csv", "--pairs pairs.csv", ""),
    "hash_function": ("", *(f"--hash-function {name}" for name in ("linear", "rbf", "network"))),
    "solver": ("", "--solver cut", "--solver quad"),
    "loss": ("", "--loss hinge"),
    "refine": ("", "--refine", "--no-refine"),
    "validation": ("", "--validation 0.25"),
    "steps": ("", "--steps 3"),
    "sample": ("", "--sample 40"),
    "auto": ("", "--auto --auto-seconds 1e-9"),
    "init": ("", "--init model.safetensors"),
    "checkpoint": ("", "--checkpoint run"),
    "device": ("", "--device auto", "--device cuda"),
    "metric": ("", "--metric euclidean"),
    "query-function": ("", "--query-function linear", "--query-function none"),
    "quality": ("", "--quality fast"),
    "json": ("", "--json"),
}


def given(name):
    return OPTIONS[name][1:]


NOTHING = ("",)
RULES = [
    Rule({"device": ("--device cuda",)}, "device='cuda' needs CuPy"),
    *(
        Rule({name: given(name), "similar": OPTIONS["similar"][:3]}, f"--{name} is for points")
        for name in ("metric", "query-function", "quality")
    ),
    *(
        Rule({"similar": NOTHING, name: given(name)}, f"--{name} is for labels or pairs")
        for name in ("solver", "loss", "refine", "validation")
    ),
    Rule(
        {"similar": NOTHING, "init": given("init")}, "learnt from labels or pairs, and .* has none"
    ),
    Rule(
        {"similar": OPTIONS["similar"][:3], "steps": given("steps"), "refine": ("--no-refine",)},
        "--no-refine makes none",
    ),
    Rule({"similar": OPTIONS["similar"][1:3], "sample": given("sample")}, "--sample is not for"),
    Rule({"auto": given("auto"), "init": given("init")}, "there is none to --auto"),
    Rule({"auto": given("auto"), "similar": ("--pairs pairs.csv",)}, "--auto .*needs labels"),
    Rule(
        {"hash_function": given("hash_function")[1:], "init": given("init")},
        "--init goes on with linear for --hash-function",
    ),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    rng, y = np.random.default_rng(0), np.arange(N) % 3
    X = rng.normal(size=(N, 6)) + 2 * np.eye(3, 6)[y]
    np.save(folder / "features.npy", X)
    np.save(folder / "labels.npy", y)
    pairs = [f"{i},{j},{1 if y[i] == y[j] else -1}" for i in range(N) for j in range(i)]
    (folder / "pairs.csv").write_text("\n".join(["i,j,y", *pairs[::3]]))
    few = {"n_bits": 4, "n_similar": 5, "n_dissimilar": 8, "max_iter": 2, "refine": None}
    auxhash.MACHash(**few, random_state=0).fit(X, y).save(folder / "model.safetensors")
    return folder


@pytest.fixture
def fit(files, tmp_path, monkeypatch):
    """Run the command on a case and return its result and the path of the model."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.chdir(files)

    def fit(case, name):
        words = [word for way in case.values() for word in way.split()]
        if case["similar"]:
            words += FEW
        if not case["init"]:
            words += ["--bits", "4"]
        words = [str(tmp_path / f"{name} run") if word == "run" else word for word in words]
        path = tmp_path / f"{name}.safetensors"
        arguments = ["fit", "features.npy", *words, "-o", str(path), "--jobs", "1"]
        return CliRunner().invoke(main, arguments), path

    return fit


@pytest.mark.parametrize("case", named(covering(OPTIONS, RULES), OPTIONS))
def test_what_can_be_fitted(case, fit):
    result, path = fit(case, "one")
    assert result.exit_code == 0, result.output
    model = auxhash.load(path)
    assert model.n_bits == 4
    n = 40 if case["sample"] and case["similar"] else N
    assert len(model.codes_) == (n * 3 // 4 if case["validation"] else n)
    said = json.loads(result.stdout)["read"] if case["json"] else result.output
    assert ("a sample of 40 of 60 points is learnt from" in str(said)) == bool(case["sample"])
    if case["json"]:
        assert json.loads(result.stdout)["device"] == "cpu"
    again, other = fit(case, "two")
    assert again.exit_code == 0, again.output
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("case", named(refused(OPTIONS, RULES), OPTIONS))
def test_what_is_refused(case, fit, tmp_path, monkeypatch):
    for training in (Training, RankTraining):
        monkeypatch.setattr(training, "run", lambda self: pytest.fail("training has begun"))
    result, _ = fit(case | {"checkpoint": "--checkpoint run"}, "one")
    assert result.exit_code in (1, 2)
    said = result.stderr.splitlines()[-1]
    assert said.startswith("Error: ")
    check_told(ValueError(said), case, RULES)
    assert not list(tmp_path.iterdir())
