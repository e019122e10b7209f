"""Model files that somebody forged, their sums right: none crashes the process that loads it.

scikit-learn's compiled code believes what fitted arrays say of each other. So another process loads
the files, and a crash would be seen.
"""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import auxhash
from auxhash.learn import baselines
from auxhash.model import classifiers, modelfile
from auxhash.model.fitted import stored

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated:FutureWarning"),
]
X, y = make_blobs(90, 5, centers=3, cluster_std=5.0, random_state=0)
CLASSIFIERS = {
    "logistic": LogisticRegression(),
    "linear svc": LinearSVC(random_state=0),
    "sgd": SGDClassifier(random_state=0),
    "perceptron": Perceptron(random_state=0),
    "ridge": RidgeClassifier(),
    "bayes": GaussianNB(),
    "svc": SVC(),
    "probable svc": SVC(probability=True, random_state=0),
    "neighbours": KNeighborsClassifier(),
    "neighbours by brute force": KNeighborsClassifier(algorithm="brute"),
    "neighbours in another metric": KNeighborsClassifier(p=1.5, algorithm="ball_tree"),
    "network": MLPClassifier((4, 3), max_iter=5, random_state=0),
    "boosted": HistGradientBoostingClassifier(max_iter=3, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(4, random_state=0),
    "extra": ExtraTreesClassifier(4, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
}


def setting(**values):
    """Set attributes to values, or to what functions make of them."""

    def change(model):
        for name, value in values.items():
            setattr(model, name, value(getattr(model, name)) if callable(value) else value)

    return change


def doubled(array):
    return np.concatenate([array, array])


def node(**values):
    """Change the first node of the first boosted tree."""

    def change(model):
        for name, value in values.items():
            model._predictors[0][0].nodes[name][0] = value

    return change


def tree_node(**values):
    """Change the first node of a tree, or of a forest's first tree."""

    def change(model):
        tree = model.estimators_[0] if hasattr(model, "estimators_") else model
        for name, value in values.items():
            tree.tree_.__getstate__()["nodes"][name][0] = value

    return change


def on_step(number, change):
    return lambda model: change(model[number])


def no_nodes(model):
    tree = model._predictors[0][0]
    tree.nodes = tree.nodes[:0]


class RandomState(np.random.RandomState):
    """A generator with a state that points beyond its numbers, which NumPy 2.5.5 lets none have."""

    __module__ = np.random.RandomState.__module__  # in a file it is called NumPy's own

    def get_state(self, legacy=True):
        state = super().get_state(legacy)
        state["state"]["pos"] = 10**6
        return state


def drawing_far(model):
    model._random_state = RandomState(0)


SVC_COUNTS = "other support vectors than it says"
FORGERIES = [
    ("svc", setting(support_vectors_=doubled), "support_vectors_"),
    ("svc", setting(support_vectors_=doubled, support_=doubled), "_dual_coef_"),
    ("svc", setting(_n_support=lambda n: n * 1000), SVC_COUNTS),
    ("svc", setting(_n_support=lambda n: n - n.max()), SVC_COUNTS),
    ("svc", setting(_n_support=lambda n: n[:2]), "_n_support"),
    ("svc", setting(_dual_coef_=lambda a: a[:, :1].copy()), "_dual_coef_"),
    ("svc", setting(_intercept_=lambda a: a[:1]), "_intercept_"),
    ("svc", setting(support_vectors_=lambda a: a[:, :2].copy()), "support_vectors_"),
    ("svc", setting(n_features_in_=4000), "support_vectors_"),
    ("svc", setting(kernel="precomputed"), "the kernel 'precomputed'"),
    ("svc", setting(kernel="no such kernel"), "the kernel 'no such kernel'"),
    ("svc", setting(_sparse=True), SVC_COUNTS),
    ("svc", setting(support_vectors_=lambda a: a.astype(np.float32)), "dtype mismatch"),
    ("probable svc", setting(_probA=lambda a: a[:0]), "_probB"),
    ("probable svc", setting(_probA=lambda a: a[:1], _probB=lambda a: a[:1]), "_probA"),
    ("boosted", no_nodes, "damaged tree"),
    ("boosted", node(left=2**20), "damaged tree"),
    ("boosted", node(right=0), "damaged tree"),
    ("boosted", node(feature_idx=10**6), "damaged tree"),
    ("boosted", node(feature_idx=-1), "damaged tree"),
    ("boosted", node(is_categorical=1, bitset_idx=10**6), "damaged tree"),
    ("boosted", node(value=np.nan), "damaged tree"),
    ("boosted", setting(_predictors=lambda p: p[:0] or [p[0][:1]]), "damaged trees"),
    ("boosted", setting(n_trees_per_iteration_=7), "not of its classes"),
    ("boosted", setting(_n_features=70), "not of its classes and features"),
    ("boosted", setting(n_features_in_=1), "not of its classes and features"),
    ("boosted", setting(is_categorical_=np.ones(5, bool)), "could crash the process"),
    ("tree", tree_node(left_child=10**6), "damaged tree"),
    ("tree", tree_node(right_child=0), "damaged tree"),
    ("tree", tree_node(right_child=-1), "damaged tree"),
    ("tree", tree_node(left_child=-5), "damaged tree"),
    ("tree", tree_node(feature=10**6), "damaged tree"),
    ("tree", tree_node(feature=-3), "damaged tree"),
    ("tree", setting(n_features_in_=1), "damaged tree"),
    ("forest", tree_node(feature=10**6), "damaged tree"),
    ("forest", setting(n_features_in_=1), "a tree of other features"),
    ("forest", setting(estimators_=[]), "out of range"),
    ("forest", setting(estimators_=lambda e: [*e[:2], DecisionTreeClassifier()]), "malformed"),
    ("neighbours", setting(_y=lambda a: a + 10**6), "points of no class"),
    ("neighbours", setting(_y=lambda a: a - 1), "points of no class"),
    ("neighbours", setting(_y=lambda a: a[:-1]), "without a class"),
    ("neighbours by brute force", setting(_fit_X=lambda a: a[:, :2].copy()), "other features"),
    (
        "neighbours by brute force",
        setting(effective_metric_="seuclidean", effective_metric_params_={"V": np.ones(1)}),
        "SEuclidean dist: size of V does not match",
    ),
    ("network", setting(coefs_=lambda c: [*c[:1], c[1][:, :1], *c[2:]]), "broadcast"),
    ("network", drawing_far, "state"),  # "damaged random state", or NumPy's own words
    ("logistic", setting(coef_=lambda a: a[:, :2].copy()), "mismatch"),
    ("logistic", setting(coef_=lambda a: a * np.nan), "coef_ of LogisticRegression must hold"),
    ("bayes", setting(theta_=lambda a: a[:1]), "out of bounds"),
    ("pipeline", on_step(0, setting(mean_=lambda a: a[:2])), "could not be broadcast"),
    ("pipeline", on_step(1, setting(support_vectors_=doubled)), "support_vectors_"),
]
# Of the defaults of hash functions and baselines.
WITHOUT_SKOPS = {
    "trees": HistGradientBoostingClassifier(max_iter=3, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
}
LOAD = """
    import sys
    import numpy as np
    import auxhash

    for path in sys.argv[1:]:
        print(path, end=": ", flush=True)
        try:
            hasher = auxhash.load(path)
        except auxhash.ModelFileError as error:
            print(error)
        else:
            hasher.encode(np.random.default_rng(0).normal(size=(99, hasher.n_features_in_)))
            print("loaded")
"""


def fitted(name):
    return baselines.OneHot(n_bits=4, classifier=CLASSIFIERS[name], random_state=0).fit(X, y)


@pytest.mark.parametrize("name", WITHOUT_SKOPS)
def test_what_needs_no_extra(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    for labels in (y, y % 2):
        hasher = baselines.OneHot(n_bits=4, classifier=WITHOUT_SKOPS[name]).fit(X, labels)
        hasher.save(tmp_path / "model")
        np.testing.assert_array_equal(auxhash.load(tmp_path / "model").encode(X), hasher.encode(X))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_usual_classifiers_come_back_untrusted(name, tmp_path, recwarn):
    hasher = fitted(name)
    hasher.save(tmp_path / "model")
    assert not [each for each in recwarn if "trusted" in str(each.message)]
    loaded = auxhash.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
    for output in ("decision_function", "predict_proba"):
        if hasattr(hasher.classifier_, output):
            expected = getattr(hasher.classifier_, output)(X)
            assert getattr(loaded.classifier_, output)(X).tobytes() == expected.tobytes()
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("labels", ["two", "text", "objects"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_any_kind(name, labels, tmp_path):
    kinds = {"two": y % 2 * 2 - 1, "text": y.astype(str), "objects": y.astype(str).astype(object)}
    classifier = CLASSIFIERS[name]
    hasher = baselines.OneHot(n_bits=4, classifier=classifier, random_state=0).fit(X, kinds[labels])
    hasher.save(tmp_path / "model")
    np.testing.assert_array_equal(auxhash.load(tmp_path / "model").encode(X), hasher.encode(X))


def test_forged_classifiers_are_refused(tmp_path, monkeypatch):
    paths = []
    with monkeypatch.context() as patch:
        patch.setattr(classifiers, "check", lambda value: None)
        for number, (name, change, _) in enumerate(FORGERIES):
            hasher = fitted(name)
            change(hasher.classifier_)
            paths.append(tmp_path / f"{number}")
            modelfile.write(paths[-1], stored(hasher))
    command = [sys.executable, "-c", textwrap.dedent(LOAD), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], FORGERIES[max(0, len(lines) - 1)][0], done.stderr)
    assert len(lines) == len(FORGERIES)
    for (name, _, message), line in zip(FORGERIES, lines, strict=True):
        assert "cannot be loaded" in line, (name, message, line)
        assert message in line, (name, message, line)


def test_parameters_of_other_versions_of_scikit_learn():
    """One that was never given does not matter; any other could change what is predicted."""
    name, content = classifiers.known(LogisticRegression(C=3.0).fit(X, y))
    content["parameters"]["past"] = "deprecated"
    assert classifiers.made(name, content).C == 3.0
    content["parameters"]["past"] = "ovr"
    with pytest.raises(ValueError, match="LogisticRegression has no 'past' in this version"):
        classifiers.made(name, content)


def test_a_form_of_files_that_is_no_longer_read():
    with pytest.raises(ValueError, match=r"'SVC' of scikit-learn in a form.*fit the model again"):
        classifiers.made("SVC", {"parameters": {}, "learnt": {}, "packed": {}})


def test_classes_that_we_do_not_know_need_trust(tmp_path):
    model = BaggingClassifier(LinearDiscriminantAnalysis(), 2, random_state=0)
    hasher = baselines.OneHot(n_bits=4, classifier=model).fit(X, y)
    with pytest.warns(UserWarning, match=r"cannot check; whoever loads it.*trusted=\['sklearn"):
        hasher.save(tmp_path / "model")
    types = [
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.ensemble._bagging.BaggingClassifier",
    ]
    for trusted in ([], types[:1]):
        with pytest.raises(auxhash.ModelFileError, match="could crash the process") as caught:
            auxhash.load(tmp_path / "model", trusted=trusted)
        assert f"trusted={types}" in str(caught.value)
    loaded = auxhash.load(tmp_path / "model", trusted=types)
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
