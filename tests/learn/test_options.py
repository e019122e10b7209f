"""Every pair of options of the estimators: it trains as it should, or is refused at once.

RULES state what is refused and what the error says. All other pairs are in cases that are trained,
so that a wrong acceptance and a wrong refusal both fail.
"""

import importlib.util
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import auxhash
from auxhash import EndToEndHash, MACHash, NeighborHash, Refine, TwoStepHash, Validation
from auxhash.codes import unpack
from auxhash.learn.smooth import refinement
from auxhash.learn.training import checkpoint as checkpoints
from auxhash.learn.training.ranking import RankTraining
from auxhash.learn.training.run import Training
from auxhash.mac import affinity, losses
from tests.conftest import SOAK
from tests.pairwise import Rule, check_message, covering, named, refused

N, N_BITS = 60, 4
AGAIN = ("one", "two") if SOAK else ("one",)  # folders: of a checkpoint, the result at once; anew
TORCH = importlib.util.find_spec("torch") is not None


@auxhash.register("tests.OwnHash")
@dataclass(frozen=True)
class OwnHash:
    """A hash function of a user's own, with the five methods and no more: least squares."""

    W: Any = None

    def prepare(self, X, rng):
        return self

    def features(self, X):
        return np.column_stack([X, np.ones(len(X))])

    def refit(self, F, Z, bits, weight=None):
        W = np.zeros((F.shape[1], Z.shape[1])) if self.W is None else self.W.copy()
        for k in bits:
            w = np.ones(len(F)) if weight is None else np.sqrt(weight[:, k])
            W[:, k] = np.linalg.lstsq(F * w[:, None], Z[:, k] * w, rcond=None)[0]
        return OwnHash(W)

    def take(self, other, bits):
        W = self.W.copy()
        W[:, bits] = other.W[:, bits]
        return OwnHash(W)

    def decision(self, F):
        return F @ self.W


def own_solver(bit, z, rng):
    """Flip one point, if that lowers the energy."""
    new = z.copy()
    new[rng.integers(len(z))] *= -1
    return new if bit.energy(new) < bit.energy(z) else z


def module_for(X, n_bits=N_BITS):
    from torch import manual_seed, nn

    from auxhash.learn.torch import ModuleHash

    manual_seed(0)
    n_inputs = int(np.prod(X.shape[1:]))
    module = nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, 8), nn.ReLU(), nn.Linear(8, n_bits))
    return ModuleHash(module, epochs=3, more_epochs=1, batch=32, rate=1e-2)


def points(kind, n=N, seed=0):
    """Points of three classes: features, or pictures of bytes whose first rows show the class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    if kind == "features":
        return rng.normal(size=(n, 6)) + 2 * np.eye(3, 6)[y], y
    shape = (n, 4, 4) if kind == "grey pictures" else (n, 4, 4, 3)
    X = rng.integers(0, 150, shape).astype(np.uint8)
    for c in range(3):
        X[y == c, c] += 100
    return X, y


HASH_FUNCTIONS = {
    "linear": "linear",
    "rbf": "rbf",
    "network": "network",
    "own": OwnHash(),
    "classifier": LogisticRegression(),
    "unweighted classifier": KNeighborsClassifier(3),
}
WITHOUT_GRADIENT = ("own", "classifier", "unweighted classifier")
REFINEMENTS = {
    "no refinement": None,
    "auto": "auto",
    "loss": Refine(10),
    "fresh pairs": Refine(10, pairs="fresh", batch=30),
    "rank": Refine(10, objective="rank"),
    "rank of neighbors": Refine(10, objective="rank", neighbors=0.5),
    "classes": Refine(10, objective="classes", keep="refined"),
}
ASKED = ("loss", "fresh pairs", "rank", "rank of neighbors", "classes")
OF_LABELS, OF_PAIRS = ("labels",), ("pairs", "real values", "distances", "neighbors")

OPTIONS = {  # the first of each is the usual one
    "method": ("MACHash", "TwoStepHash", "EndToEndHash"),
    "hash_function": (*HASH_FUNCTIONS, "torch module"),
    "X": ("features", "grey pictures", "colour pictures"),
    "similar": (*OF_LABELS, "labels and pairs", *OF_PAIRS, "nothing"),
    "validation": ("no validation", "fraction", "(X, y)", "by neighbors", "X by neighbors"),
    "refine": ("auto", *(name for name in REFINEMENTS if name != "auto")),
    "z_step": ("descent", "cut", "quad", "own solver"),
    "start": ("random", "bitwise", "zeros"),
    "loss": ("ksh", "hinge", "bre"),
    "device": ("cpu", "auto device", "cuda"),
    "penalty": ("quadratic", "augmented"),
    "init": ("no init", "codes"),
    "fits": ("once", "warm"),
    "checkpoint": ("no checkpoint", "checkpoint"),
    "h_step": ("monotone", "plain"),
    "iterate": ("lowest", "last"),
}
SMOOTHLY = ("MACHash", "EndToEndHash")  # TwoStepHash makes nothing of refine
RULES = [
    Rule({"device": ("cuda",)}, "cuda", (ValueError, ImportError)),
    Rule({"similar": ("nothing",)}, "requires y"),
    Rule(
        {"X": ("grey pictures", "colour pictures"), "hash_function": tuple(HASH_FUNCTIONS)},
        "array with dim [34]",
    ),
    Rule({"validation": ("(X, y)",), "similar": OF_PAIRS}, r"validation on \(X, y\).*needs y"),
    Rule({"init": ("codes",), "start": ("bitwise", "zeros")}, "init takes the place"),
    Rule(
        {"hash_function": WITHOUT_GRADIENT, "refine": ASKED, "method": SMOOTHLY},
        "has no gradient|by gradients alone",
        TypeError,
    ),
    Rule(
        {"hash_function": WITHOUT_GRADIENT, "method": ("EndToEndHash",)},
        "by gradients alone",
        TypeError,
    ),
    Rule({"refine": ("no refinement",), "method": ("EndToEndHash",)}, "refine is all of this"),
    Rule(
        {
            "refine": ("fresh pairs", "classes"),
            "similar": ("labels and pairs", *OF_PAIRS),
            "method": SMOOTHLY,
        },
        "needs an affinity drawn from classes",
    ),
    Rule(
        {
            "refine": ("rank of neighbors",),
            "hash_function": ("torch module",),
            "method": SMOOTHLY,
        },
        "neighbors are those of fixed features",
        TypeError,
    ),
    Rule(
        {
            "hash_function": ("unweighted classifier",),
            "penalty": ("augmented",),
            "method": ("MACHash",),
        },
        "takes no sample_weight",
        TypeError,
    ),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch, briefly_refined):
    """Few steps, and no CuPy, whether it is installed or not."""
    monkeypatch.setattr(refinement, "MIN_STEPS_ALONE", 10)
    monkeypatch.setitem(sys.modules, "cupy", None)


def hash_function_of(case, X, n_bits=N_BITS):
    name = case["hash_function"]
    return module_for(X, n_bits) if name == "torch module" else HASH_FUNCTIONS[name]


def affinity_of(case, y):
    """The affinity that is given, or None."""
    i, j = np.triu_indices(N, 1)
    some = np.random.default_rng(1).random(len(i)) < 0.3
    i, j = i[some], j[some]
    y = np.where(y[i] == y[j], 1.0, -1.0)
    match case["similar"]:
        case "labels and pairs" | "pairs":
            return affinity.from_pairs(i, j, y, N)
        case "real values":
            return affinity.from_pairs(i, j, y * np.linspace(0.2, 1, len(i)), N)
        case "distances":
            return affinity.from_pairs(i, j, 2 - y * np.linspace(0.2, 1, len(i)), N, "distance")
        case "neighbors":
            return affinity.from_neighbors(points("features")[0], 5, 10, random_state=0)


def validation_of(case):
    X, y = points(case["X"], 12, seed=1)
    return {
        "no validation": None,
        "fraction": 0.25,
        "(X, y)": (X, y),
        "by neighbors": Validation(0.25, k=5, neighbors=5),
        "X by neighbors": Validation(X, neighbors=5),
    }[case["validation"]]


def trained(case, folder):
    """The estimator of the case, fitted once or twice, and its points."""
    X, y = points(case["X"])
    method = {each.__name__: each for each in (MACHash, TwoStepHash, EndToEndHash)}[case["method"]]
    model = method(
        n_bits=N_BITS,
        n_similar=5,
        n_dissimilar=8,
        max_iter=2,
        hash_function=hash_function_of(case, X),
        validation=validation_of(case),
        refine=REFINEMENTS[case["refine"]],
        z_step=own_solver if case["z_step"] == "own solver" else case["z_step"],
        start=case["start"],
        loss=case["loss"],
        device=case["device"].removesuffix(" device"),
        penalty=case["penalty"],
        init=None if case["init"] == "no init" else first_codes(),
        warm_start=case["fits"] == "warm",
        h_step=case["h_step"],
        iterate=case["iterate"],
        random_state=0,
        n_jobs=1,
    )
    labels = y if "labels" in case["similar"] else None
    for fit in range(1 if case["fits"] == "once" else 2):
        place = None if case["checkpoint"] == "no checkpoint" else folder / str(fit)
        model.fit(X, labels, affinity_of(case, y), checkpoint=place)
    return model, X


def first_codes():
    return np.where(np.random.default_rng(2).random((N, N_BITS)) < 0.5, -1, 1)


def check_encodes(model, X, case, path):
    """A file gives the same model again, which is returned."""
    codes = model.encode(X)
    assert codes.shape == (N, -(-model.n_bits // 8))
    model.save(path)
    module = module_for(X, model.n_bits).module if case["hash_function"] == "torch module" else None
    loaded = auxhash.load(path, module=module)
    np.testing.assert_array_equal(loaded.encode(X), codes)
    assert [step.__class__ for step in loaded.history_] == [type(step) for step in model.history_]
    assert model.device_ == "cpu"
    return loaded


def check_mac(model, case):
    """The history and the loss are those of the codes."""
    steps = model.history_
    assert [step.iteration for step in steps] == list(range(model.n_iter_))
    assert all(np.isfinite(step.loss) and step.loss >= 0 for step in steps)
    judged = case["validation"] != "no validation"
    assert all((0 <= step.score <= 1) if judged else np.isnan(step.score) for step in steps)
    assert steps[0].mu == 0 or case["fits"] == "warm"
    if case["method"] == "TwoStepHash":
        assert len(steps) == 1
    n_held_out = 15 if case["validation"] in ("fraction", "by neighbors") else 0
    assert len(model.codes_) == N - n_held_out
    loss = losses.total(unpack(model.codes_, N_BITS), model.affinity_, case["loss"])
    assert model.loss_ == pytest.approx(loss, rel=1e-9)


def check_torch(case):
    if case["hash_function"] == "torch module" and not TORCH:
        pytest.skip("PyTorch is not installed; make test-torch installs it")


def check_refused(case, rules, fit, folder):
    """An error that a rule states, before any step and without a checkpoint."""
    with pytest.raises((ValueError, TypeError, ImportError)) as raised:
        fit(case, folder)
    check_message(raised.value, case, rules)
    assert not list(folder.rglob(checkpoints.NAME))


@pytest.mark.parametrize("case", named(covering(OPTIONS, RULES), OPTIONS))
def test_what_can_be_trained(case, tmp_path):
    check_torch(case)
    model, X = trained(case, tmp_path / "one")
    check_mac(model, case)
    check_encodes(model, X, case, tmp_path / "model")
    for folder in AGAIN:
        again, _ = trained(case, tmp_path / folder)
        np.testing.assert_array_equal(again.codes_, model.codes_)
        assert again.loss_ == model.loss_


@pytest.mark.parametrize("case", named(refused(OPTIONS, RULES), OPTIONS))
def test_what_is_refused(case, tmp_path, monkeypatch):
    check_torch(case)
    monkeypatch.setattr(Training, "run", lambda self: pytest.fail("training has begun"))
    case = case | {"checkpoint": "checkpoint"}
    check_refused(case, RULES, trained, tmp_path)


NEIGHBOR_BITS, NEIGHBOR_STEPS = 12, 10
NEIGHBOR_OPTIONS = {
    "hash_function": ("linear", "rbf", "network", *WITHOUT_GRADIENT, "torch module"),
    "X": ("features", "grey pictures", "colour pictures"),
    "y": ("no labels", "labels"),
    "neighbors": ("neighbors by distance", "known neighbors"),
    "queries": ("no queries", "queries", "queries of no row", "rows of no query"),
    "metric": ("cosine", "euclidean"),
    "query_function": ("auto tables", "no tables", "network tables", "linear tables"),
    "prefixes": ("no prefixes", "prefixes"),
    "quality": ("default quality", "fast quality", "best quality"),
    "max_points": ("all points", "30 points"),
    "device": ("cpu", "auto device", "cuda"),
    "fits": ("once", "warm"),
    "checkpoint": ("no checkpoint", "checkpoint"),
}
OF_ONE_WORD = ("linear", "rbf", "network")
PICTURES = ("grey pictures", "colour pictures")
NEIGHBOR_RULES = [
    Rule({"device": ("cuda",)}, "cuda", (ValueError, ImportError)),
    Rule({"X": PICTURES, "hash_function": OF_ONE_WORD}, "array with dim [34]"),
    Rule({"hash_function": WITHOUT_GRADIENT}, "hash_function must be one of", TypeError),
    Rule(
        {"X": PICTURES, "query_function": ("network tables", "linear tables")},
        "query_function is for features",
    ),
    Rule({"queries": ("queries of no row", "rows of no query")}, "queries and relevant.* together"),
]


def queries_of(case):
    """Arguments of `fit`: queries beside the first points of their class, which are relevant."""
    Q, classes = points(case["X"], 9, seed=2)
    rows = [[label, label + 3] for label in classes]
    return {
        "no queries": {},
        "queries": {"queries": Q, "relevant": rows},
        "queries of no row": {"queries": Q},
        "rows of no query": {"relevant": rows},
    }[case["queries"]]


def trained_by_neighbors(case, folder):
    X, y = points(case["X"])
    name, device = case["hash_function"], case["device"].removesuffix(" device")
    tables = case["query_function"].removesuffix(" tables")
    model = NeighborHash(
        n_bits=NEIGHBOR_BITS,
        n_steps=NEIGHBOR_STEPS,
        n_neighbors=4,
        hash_function=name if name in OF_ONE_WORD else hash_function_of(case, X, NEIGHBOR_BITS),
        metric=case["metric"],
        query_function=None if tables == "no" else tables,
        prefixes=(8,) if case["prefixes"] == "prefixes" else (),
        quality=case["quality"].removesuffix(" quality"),
        max_points=30 if case["max_points"] == "30 points" else None,
        warm_start=case["fits"] == "warm",
        device=device,
        random_state=0,
        n_jobs=1,
    )
    known = case["neighbors"] == "known neighbors"
    table = (np.arange(N)[:, None] + [1, 2, 3]) % N if known else None
    labels = None if case["y"] == "no labels" else y
    for fit in range(1 if case["fits"] == "once" else 2):
        place = None if case["checkpoint"] == "no checkpoint" else folder / str(fit)
        model.fit(X, labels, neighbors=table, checkpoint=place, **queries_of(case))
    return model, X


def check_tables(model, X, case, loaded):
    """Tables are learnt where they are asked for, and a file gives the same ones again."""
    wanted = case["query_function"] in ("network tables", "linear tables")
    assert (model.tables_ is not None) == wanted
    if not wanted:
        with pytest.raises(ValueError, match="tables"):
            model.tables(X)
        return
    tables = model.tables(X)
    assert tables.shape == (N, 2, 256)
    assert np.isfinite(tables).all()
    np.testing.assert_array_equal(loaded.tables(X), tables)


@pytest.mark.usefixtures("keeps_tables")
@pytest.mark.parametrize(
    "case", named(covering(NEIGHBOR_OPTIONS, NEIGHBOR_RULES), NEIGHBOR_OPTIONS)
)
def test_what_neighbors_can_train(case, tmp_path):
    check_torch(case)
    model, X = trained_by_neighbors(case, tmp_path / "one")
    steps = [step.step for step in model.history_]
    assert steps == sorted(steps)
    assert steps[-1] == NEIGHBOR_STEPS + model._settings(len(X), X[0].size).table_steps
    assert all(step.rank >= 1 for step in model.history_)
    of_points = case["neighbors"] == "neighbors by distance" and case["queries"] == "no queries"
    sampled = of_points and case["max_points"] == "30 points"
    assert model.n_learnt_ == (30 if sampled else N)
    loaded = check_encodes(model, X, case, tmp_path / "model")
    check_tables(model, X, case, loaded)
    np.testing.assert_array_equal(model.codes_, model.encode(X))
    for folder in AGAIN:
        again, _ = trained_by_neighbors(case, tmp_path / folder)
        np.testing.assert_array_equal(again.codes_, model.codes_)
        if model.tables_ is not None:
            np.testing.assert_array_equal(again.tables(X), model.tables(X))


@pytest.mark.parametrize("case", named(refused(NEIGHBOR_OPTIONS, NEIGHBOR_RULES), NEIGHBOR_OPTIONS))
def test_what_neighbors_refuse(case, tmp_path, monkeypatch):
    check_torch(case)
    monkeypatch.setattr(RankTraining, "run", lambda self: pytest.fail("training has begun"))
    case = case | {"checkpoint": "checkpoint"}
    check_refused(case, NEIGHBOR_RULES, trained_by_neighbors, tmp_path)
