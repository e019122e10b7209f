"""Every pair of options of `auxhash fit`: it writes a model, or refuses at once and says why."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from sklearn.ensemble import HistGradientBoostingClassifier

import auxhash
from auxhash.cli import main
from auxhash.learn.training.ranking import RankTraining
from auxhash.learn.training.run import Training
from auxhash.mac.hashfunctions import step
from auxhash.mac.hashfunctions.classifiers import ClassifierHash
from tests.conftest import SOAK
from tests.pairwise import Rule, check_message, covering, named, refused

N, N_FEATURES, N_BITS = 60, 16, 9
N_ROUNDS = 5  # of boosted trees
OWN_FEATURE = """
import numpy as np


def coarse(pictures):
    return np.array([picture[::8, ::8].ravel() for picture in pictures])
"""
# Each option with the ways to give it, as on the command line; the first is the usual one.
OPTIONS = {
    "points": ("features.npy", "features.npz", "photos"),
    "similar": ("labels.npy", "labels.npy --pairs pairs.csv", "--pairs pairs.csv", ""),
    "method": ("", "--method ITQ", "--method KSH"),
    "label": ("", "--label kind"),
    "features": ("", "--features mine:coarse"),
    "hash-function": (
        "",
        *(f"--hash-function {name}" for name in ("linear", "rbf", "network", "trees")),
    ),
    "solver": ("", "--solver cut", "--solver quad"),
    "loss": ("", "--loss hinge"),
    "drawn": ("", "--similar 5 --dissimilar 8"),
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
    "prefixes": ("", "--prefixes 8"),
    "json": ("", "--json"),
}
OF_NEIGHBORS = ("metric", "query-function", "quality", "prefixes")
OF_LABELS = ("solver", "loss", "drawn", "refine", "validation")


def ways(name):
    """The ways to give an option, but for leaving it out."""
    return OPTIONS[name][1:]


def called(name):
    return "similar" if name == "drawn" else name


NOTHING, PAIRS = ("",), OPTIONS["similar"][1:3]
UNLABELLED = {"points": ("features.npy",), "similar": NOTHING}
TREES = {"hash-function": ways("hash-function")[-1:]}
# For labels or pairs, or for pictures with something that only MACHash has.
BY_MAC = [
    {"points": ("features.npy", "features.npz"), "similar": OPTIONS["similar"][:3]},
    {"points": ("features.npz",), "similar": NOTHING},
    {"points": ("photos",), "similar": PAIRS},
    *({"points": ("photos",), name: ways(name)} for name in (*OF_LABELS, "auto")),
    {"points": ("photos",), **TREES},
]
RULES = [
    Rule({"device": ("--device cuda",)}, "device='cuda' needs CuPy"),
    *(
        Rule({name: ways(name), **case}, f"--{name} is for points without")
        for name in OF_NEIGHBORS
        for case in BY_MAC
    ),
    *(
        Rule({**UNLABELLED, name: ways(name)}, f"--{called(name)} is for labels or pairs")
        for name in OF_LABELS
    ),
    *(
        Rule({"method": ways("method"), name: ways(name)}, f"--{name} is not for --method")
        for name in ("auto", "init", "checkpoint", "device")
    ),
    *(
        Rule({"method": ways("method"), name: ways(name)}, f"--{called(name)} is not for --method")
        for name in (*OF_NEIGHBORS, *OF_LABELS, "steps")
    ),
    Rule(
        {"method": ("--method ITQ",), "hash-function": ways("hash-function")},
        "--hash-function is not for --method",
    ),
    Rule(
        {
            "method": ("--method KSH",),
            "hash-function": ("--hash-function network", "--hash-function trees"),
        },
        "hash_function must be one of",
    ),
    Rule({"method": ("--method ITQ",), "similar": PAIRS}, "--pairs are not for --method"),
    Rule({**UNLABELLED, "method": ("--method KSH",)}, "--method KSH learns from labels"),
    Rule({**UNLABELLED, "label": ways("label")}, "holds no labels called 'kind'"),
    Rule({**UNLABELLED, **TREES}, "hash_function must be one of"),
    Rule(
        {"features": ways("features"), "points": ("features.npy", "features.npz")},
        "--features is for folders of pictures",
    ),
    Rule({**UNLABELLED, "init": ways("init")}, "learnt from labels or pairs, and .* has none"),
    Rule({"points": ("photos",), "init": ways("init")}, "the model was not learnt from pictures"),
    Rule({"steps": ways("steps"), "refine": ("--no-refine",)}, "--no-refine makes none"),
    Rule({**TREES, "refine": ("--refine",)}, "--refine is for .*: trees has no gradient"),
    Rule({**TREES, "steps": ways("steps")}, "--steps is for .*: trees has no gradient"),
    Rule({"similar": PAIRS, "sample": ways("sample")}, "--sample is not for"),
    Rule({"auto": ways("auto"), "init": ways("init")}, "there is none to --auto"),
    Rule(
        {"auto": ways("auto"), "points": ("features.npy",), "similar": ("--pairs pairs.csv",)},
        "--auto .*needs labels",
    ),
    Rule(
        {"hash-function": ways("hash-function")[1:], "init": ways("init")},
        "--init goes on with linear for --hash-function",
    ),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    rng, y = np.random.default_rng(0), np.arange(N) % 3
    X = rng.normal(size=(N, N_FEATURES)) + 2 * np.eye(3, N_FEATURES)[y]
    np.save(folder / "features.npy", X)
    np.save(folder / "labels.npy", y)
    np.savez(folder / "features.npz", X=X, y=y, kind=y)
    pairs = [f"{i},{j},{1 if y[i] == y[j] else -1}" for i in range(N) for j in range(i)]
    (folder / "pairs.csv").write_text("\n".join(["i,j,y", *pairs[::3]]))
    (folder / "mine.py").write_text(OWN_FEATURE)
    for i, label in enumerate(y):
        kind = folder / "photos" / f"kind {label}"
        kind.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 150, (16, 16, 3)) + 100 * np.eye(3)[label]
        Image.fromarray(pixels.astype(np.uint8)).save(kind / f"{i:02}.png")
    few = {"n_bits": N_BITS, "n_similar": 5, "n_dissimilar": 8, "max_iter": 2, "refine": None}
    auxhash.MACHash(**few, random_state=0).fit(X, y).save(folder / "model.safetensors")
    return folder


@pytest.fixture
def fit(files, tmp_path, monkeypatch):
    """Run the command on a case and return its result and the path of the model."""
    few_trees = HistGradientBoostingClassifier(max_iter=N_ROUNDS, early_stopping=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(step, "boosted_trees", lambda: ClassifierHash(few_trees))
    monkeypatch.chdir(files)

    def fit(case, name):
        words = [word for name in OPTIONS for word in case[name].split()]
        if not case["init"]:
            words += ["--bits", str(N_BITS)]
        words = [str(tmp_path / f"{name} run") if word == "run" else word for word in words]
        path = tmp_path / f"{name}.safetensors"
        arguments = ["fit", *words, "-o", str(path), "--jobs", "1"]
        return CliRunner().invoke(main, arguments), path

    return fit


def unlabelled(case):
    return all(case[name] in values for name, values in UNLABELLED.items())


@pytest.mark.parametrize("case", named(covering(OPTIONS, RULES), OPTIONS))
def test_what_can_be_fitted(case, fit):
    result, path = fit(case, "one")
    assert result.exit_code == 0, result.output
    model = auxhash.load(path)
    assert model.n_bits == N_BITS
    n = 40 if case["sample"] and (case["method"] or not unlabelled(case)) else N
    assert len(model.codes_) == (n * 3 // 4 if case["validation"] else n)
    said = json.loads(result.stdout)["read"] if case["json"] else result.output
    assert ("a sample of 40 of 60 points is learnt from" in str(said)) == bool(case["sample"])
    if case["json"]:
        assert json.loads(result.stdout)["device"] == "cpu"
    if case["json"] or SOAK:
        again, other = fit(case, "two")
        assert again.exit_code == 0, again.output
        assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("case", named(refused(OPTIONS, RULES), OPTIONS))
def test_what_is_refused(case, fit, tmp_path, monkeypatch):
    for training in (Training, RankTraining):
        monkeypatch.setattr(training, "run", lambda self: pytest.fail("training has begun"))
    more = {} if case["method"] else {"checkpoint": "--checkpoint run"}
    result, _ = fit(case | more, "one")
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    said = result.stderr.splitlines()[-1]
    assert said.startswith("Error: ")
    check_message(ValueError(said), case, RULES)
    assert not list(tmp_path.iterdir())
