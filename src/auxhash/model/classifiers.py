"""scikit-learn estimators in model files: two defaults of auxhash as arrays, all others by skops.

The boosted trees of `hash_function="trees"` and the logistic regression of `OneHot` and `LogitLSH`
are stored as plain values. So they need no extra, and 16 bits of boosted trees take 0.4 s to save,
0.6 s to load and 4 MB, where skops takes 14 s, 10 s and 13 MB.

skops never executes what a file holds, but checks types alone. The types in `TRUSTED` are loaded
without being asked for: their content is checked here, as compiled code of scikit-learn reads it
without looking at bounds. Any other type must be trusted by the user, and a forged file of it could
crash the process.
"""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import AnyArray
from auxhash.compute.extras import install

# Class names, their modules, and the fitted attributes that a file holds.
KNOWN = {
    "LogisticRegression": (
        "sklearn.linear_model",
        ("n_features_in_", "classes_", "coef_", "intercept_", "n_iter_"),
    ),
    "StandardScaler": (
        "sklearn.preprocessing",
        ("n_features_in_", "mean_", "var_", "scale_", "n_samples_seen_"),
    ),
    "Pipeline": ("sklearn.pipeline", ()),
    "LabelEncoder": ("sklearn.preprocessing", ("classes_",)),
    "HistGradientBoostingClassifier": (
        "sklearn.ensemble",
        (
            *("n_features_in_", "_n_features", "classes_", "_label_encoder", "_random_seed"),
            *("n_trees_per_iteration_", "_baseline_prediction", "do_early_stopping_"),
            *("_use_validation_data", "train_score_", "validation_score_"),
        ),
    ),
}
# Attributes of boosted trees that are not stored: not needed, or set by `_set_trees`.
OF_TREES = {"_predictors", "_bin_mapper", "_loss", "_scorer", "_feature_subsample_rng"}
PLACEHOLDERS = ("deprecated", "warn")  # defaults of parameters that scikit-learn will remove
TRUSTED = {
    f"sklearn.{module}.{name}"
    for module, names in {
        "_loss._loss": "CyHalfBinomialLoss",
        "ensemble._forest": "ExtraTreesClassifier RandomForestClassifier",
        "linear_model._logistic": "LogisticRegression",
        "linear_model._perceptron": "Perceptron",
        "linear_model._ridge": "RidgeClassifier",
        "linear_model._sgd_fast": "Hinge ModifiedHuber SquaredHinge",
        "linear_model._stochastic_gradient": "SGDClassifier",
        "metrics._dist_metrics": "EuclideanDistance64 ManhattanDistance64 MinkowskiDistance64",
        "naive_bayes": "BernoulliNB GaussianNB",
        "neighbors._ball_tree": "BallTree",
        "neighbors._classification": "KNeighborsClassifier",
        "neighbors._kd_tree": "KDTree",
        "neural_network._multilayer_perceptron": "MLPClassifier",
        "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
        "pipeline": "Pipeline",
        "preprocessing._data": "StandardScaler",
        "preprocessing._label": "LabelBinarizer LabelEncoder",
        "svm._classes": "LinearSVC SVC",
        "tree._classes": "DecisionTreeClassifier ExtraTreeClassifier",
        "tree._tree": "Tree",
    }.items()
    for name in names.split()
}
KERNELS = ("linear", "poly", "rbf", "sigmoid")  # of libsvm that need nothing but the points
PLAIN = ("builtins.", "numpy.")  # modules whose types are left to skops to judge
DATED = 1980, 1, 1, 0, 0, 0  # the earliest date that a zip file can hold


def known(estimator: Any) -> tuple[str, dict[str, Any]] | None:
    """Class name and content, in plain values, of an estimator in `KNOWN`, else None."""
    name = type(estimator).__name__
    if name not in KNOWN or type(estimator) is not _class(name):
        return None
    parameters = estimator.get_params(deep=False)
    learnt = {
        attribute: value
        for attribute, value in vars(estimator).items()
        if attribute not in parameters and attribute not in OF_TREES
    }
    if _others(name, learnt):  # a rare kind of fit: categories, feature names
        return None
    learnt = {attribute: learnt[attribute] for attribute in KNOWN[name][1] if attribute in learnt}
    packed = {}
    if hasattr(estimator, "_predictors"):
        trees = [tree.nodes for trees in estimator._predictors for tree in trees]
        sizes = np.array([len(nodes) for nodes in trees], np.int64)
        nodes = _clean(np.concatenate(trees))
        data = nodes.view(np.uint8).reshape(len(nodes), -1)
        packed = {"sizes": sizes, "nodes": {"fields": _fields(nodes.dtype), "bytes": data}}
    return name, {"parameters": parameters, "learnt": learnt, "packed": packed}


def made(name: str, content: Mapping[str, Any]) -> Any:
    """The estimator of a content that `known` returned; raises ValueError if it is not valid."""
    if name not in KNOWN:
        raise ValueError(
            f"it holds {name!r} of scikit-learn in a form that this version does not read: fit the "
            "model again and save it"
        )
    parameters, learnt = dict(content["parameters"]), content["learnt"]
    cls = _class(name)
    here = parameters if name == "Pipeline" else cls().get_params(deep=False)
    for parameter in sorted(set(parameters) - set(here)):
        if parameters.pop(parameter) not in PLACEHOLDERS:
            raise ValueError(f"{name} has no {parameter!r} in this version of scikit-learn")
    if others := _others(name, learnt):
        raise ValueError(f"{name} has no attribute {min(others)!r}")
    estimator = cls(**parameters)
    for attribute, value in learnt.items():
        if getattr(value, "dtype", np.dtype(int)).kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{attribute} of {name} must hold finite numbers")
        setattr(estimator, attribute, value)
    if learnt and name == "HistGradientBoostingClassifier":
        _set_trees(estimator, content["packed"])
    return estimator


def _class(name: str) -> Any:
    return getattr(import_module(KNOWN[name][0]), name)


def _others(name: str, learnt: Mapping[str, object]) -> set[str]:
    """Attributes that are not None and that files do not hold."""
    return {
        attribute
        for attribute, value in learnt.items()
        if attribute not in KNOWN[name][1] and value is not None
    }


def _set_trees(estimator: Any, packed: Mapping[str, Any]) -> None:
    """Give boosted trees their nodes, and what else predictions read."""
    from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    data, sizes = packed["nodes"]["bytes"], packed["sizes"]
    if packed["nodes"]["fields"] != _fields(PREDICTOR_RECORD_DTYPE):
        raise ValueError("its trees are of another version of scikit-learn")
    if data.dtype != np.uint8 or data.shape[1:] != (PREDICTOR_RECORD_DTYPE.itemsize,):
        raise ValueError("it has damaged trees")
    every = np.ascontiguousarray(data).view(PREDICTOR_RECORD_DTYPE).reshape(len(data))
    n_classes = len(estimator.classes_)
    per_round = 1 if n_classes == 2 else n_classes
    if (sizes < 1).any() or sizes.sum() != len(every) or not len(sizes) or len(sizes) % per_round:
        raise ValueError("it has damaged trees")
    none, n = np.zeros((0, 8), np.uint32), estimator.n_features_in_
    if estimator.n_trees_per_iteration_ != per_round or estimator._n_features != n:
        raise ValueError("its trees are not of its classes and features")
    trees = []
    for nodes in np.split(every, np.cumsum(sizes)[:-1]):
        _check_links(nodes["is_leaf"] == 0, nodes["left"], nodes["right"], nodes["feature_idx"], n)
        if nodes["is_categorical"].any() or not np.isfinite(nodes["value"]).all():
            raise ValueError("it has a damaged tree")
        trees.append(TreePredictor(nodes.copy(), none, none))
    estimator._predictors = [trees[at : at + per_round] for at in range(0, len(trees), per_round)]
    estimator._loss = HalfBinomialLoss() if n_classes == 2 else HalfMultinomialLoss(n_classes)
    # Prediction only asks it which features are categories: none.
    estimator._bin_mapper = _BinMapper()
    estimator._bin_mapper.is_categorical_ = np.zeros(n, np.uint8)
    estimator._bin_mapper.bin_thresholds_ = []
    estimator._preprocessor = estimator.is_categorical_ = estimator._scorer = None


def _check_links(
    inner: NDArray[np.bool_], left: AnyArray, right: AnyArray, feature: AnyArray, n: int
) -> None:
    """Raise unless inner nodes split one of n features and lead to later nodes: all paths end."""
    own = np.flatnonzero(inner)
    for to in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        if not ((own < to) & (to < len(inner))).all():
            raise ValueError("it has a damaged tree")
    if not len(inner) or not ((feature[inner] >= 0) & (feature[inner] < n)).all():
        raise ValueError("it has a damaged tree")


def _clean(nodes: AnyArray) -> AnyArray:
    """Records with zeros between their fields, where NumPy leaves arbitrary bytes."""
    clean = np.zeros(nodes.shape, nodes.dtype)  # zeros_like leaves such bytes as they are
    for name in nodes.dtype.names or ():
        clean[name] = nodes[name]
    return clean if nodes.dtype.names else nodes


def _fields(dtype: np.dtype) -> list[str]:
    """Each field as a text: its name, type and offset."""
    return [f"{name} {part[0].str} {part[1]}" for name, part in (dtype.fields or {}).items()]


def to_bytes(estimator: object) -> bytes:
    """An estimator of any class in skops's format; raises ImportError without skops.

    skops numbers objects by their address in memory and stores the time. Both are replaced, so that
    equal estimators give equal bytes.
    """
    check(estimator)
    with zipfile.ZipFile(io.BytesIO(_skops().dumps(estimator))) as archive:
        schema = json.loads(archive.read("schema.json"))
        numbers: dict[int, int] = {}
        names: dict[str, str] = {}
        for node in _nodes(schema):
            if node.get("__loader__") == "JsonNode":  # equal numbers are one object or several
                node.pop("__id__", None)
            if "__id__" in node:
                node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
            if "file" in node:
                node["file"] = names.setdefault(node["file"], f"array-{len(names)}.npy")
        content = {new: _clean_file(archive.read(old)) for old, new in names.items()}
    content["schema.json"] = json.dumps(schema, sort_keys=True).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(content):
            archive.writestr(zipfile.ZipInfo(name, DATED), content[name])
    return out.getvalue()


def from_bytes(data: bytes, trusted: Sequence[str]) -> Any:
    """The estimator, checked; `trusted` must list the `types` of the data."""
    estimator = _skops().loads(data, trusted=[*TRUSTED, *trusted])
    check(estimator)
    return estimator


def types(data: bytes) -> list[str]:
    """Full names of the types in skops's format that the user has to trust."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # A small archive could otherwise unfold to any size.
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("a stored classifier is compressed, which skops never does")
            schema = json.loads(archive.read("schema.json"))
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"a stored classifier is damaged ({error})") from error
    named = (node for node in _nodes(schema) if "__class__" in node)
    types = {f"{node['__module__']}.{node['__class__']}" for node in named}
    ours = {name for name in types if not name.startswith(PLAIN)}
    return sorted((ours | set(_skops().get_untrusted_types(data=data))) - TRUSTED)


def check(value: Any) -> None:
    """Raise ValueError where compiled code of a type in `TRUSTED` would read outside of arrays."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.neighbors._base import NeighborsBase
    from sklearn.svm._base import BaseLibSVM
    from sklearn.tree import BaseDecisionTree

    fitted = hasattr(value, "n_features_in_")
    if isinstance(value, BaseDecisionTree) and fitted:
        _check_tree(value)
    elif isinstance(value, BaseForest) and fitted:
        if any(tree.n_features_in_ != value.n_features_in_ for tree in value.estimators_):
            raise ValueError("it has a tree of other features")
    elif isinstance(value, BaseLibSVM) and fitted:
        _check_vectors(value)
    elif isinstance(value, NeighborsBase) and fitted:
        _check_neighbors(value)
    elif isinstance(value, np.random.RandomState) and not (
        0 <= value.get_state(legacy=False)["state"]["pos"] <= 624
    ):
        raise ValueError("it has a damaged random state")
    if not isinstance(value, (dict, list, tuple)):
        value = {} if isinstance(value, type) else getattr(value, "__dict__", {})
    for part in value.values() if isinstance(value, dict) else value:
        check(part)


def _check_tree(model: Any) -> None:
    tree = model.tree_
    if tree.n_features != model.n_features_in_:
        raise ValueError("it has a damaged tree")
    nodes = tree.__getstate__()["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    _check_links(left != -1, left, right, nodes["feature"], tree.n_features)


def _check_vectors(model: Any) -> None:
    """Support vectors of libsvm, whose counts say where it reads."""
    n, n_classes = len(model.support_), len(model._n_support)
    pairs = n_classes * (n_classes - 1) // 2
    shapes = {
        "support_": (n,),
        "support_vectors_": (n, model.n_features_in_),
        "_n_support": (len(model.classes_),),
        "_dual_coef_": (n_classes - 1, n),
        "_intercept_": (pairs,),
        "_probA": (pairs,) if len(model._probA) else (0,),
        "_probB": (len(model._probA),),
    }
    for name, shape in shapes.items():
        if np.shape(getattr(model, name)) != shape:
            raise ValueError(f"it has a damaged attribute {name!r}")
    if model.kernel not in KERNELS:
        raise ValueError(f"it has the kernel {model.kernel!r}, which is none of {KERNELS}")
    counts = model._n_support.astype(np.int64)
    if (counts < 0).any() or counts.sum() != n or model._sparse:
        raise ValueError("it has other support vectors than it says")


def _check_neighbors(model: Any) -> None:
    """Points and their classes; the tree over them is made again, as a file's could be forged."""
    from sklearn.neighbors import BallTree, KDTree

    X, y = model._fit_X, model._y
    if X.shape != (len(y), model.n_features_in_) or y.shape != (len(X),) or y.dtype.kind != "i":
        raise ValueError("it has points of other features, or without a class")
    if y.min() < 0 or y.max() >= len(model.classes_):
        raise ValueError("it has points of no class")
    if model._fit_method != "brute":
        kind = KDTree if model._fit_method == "kd_tree" else BallTree
        options = model.effective_metric_params_
        model._tree = kind(X, model.leaf_size, metric=model.effective_metric_, **options)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON value, outer ones first, in the order of their keys."""
    if isinstance(value, dict):
        yield value
    for part in [value[key] for key in sorted(value)] if isinstance(value, dict) else value:
        if isinstance(part, (dict, list)):
            yield from _nodes(part)


def _clean_file(data: bytes) -> bytes:
    """A .npy file with zeros between the fields of records; any other file as it is."""
    if not data.startswith(np.lib.format.MAGIC_PREFIX):  # a sparse matrix
        return data
    array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    out = io.BytesIO()
    np.lib.format.write_array(out, _clean(array), allow_pickle=False)
    return out.getvalue()


def _skops() -> Any:
    try:
        from skops import io as skops_io
    except ImportError as error:
        raise ImportError(
            "a model that holds a scikit-learn classifier of this kind is stored through skops: "
            f"{install('classifiers')}"
        ) from error
    return skops_io
