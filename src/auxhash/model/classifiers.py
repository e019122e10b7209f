"""scikit-learn estimators in model files: the classes that we know, and all others.

For the classes in `KINDS` a file holds parameters and fitted attributes as plain values. What is
read is checked against the table of the class before scikit-learn gets it: its compiled code trusts
links, indices and sizes, and would crash on forged ones.

All other classes are stored through skops, never as a pickle. skops checks types, not their
content, so such a file is loaded only if the user trusts each type by name.
"""

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sizes = dict[str, int]  # the value of each name in a shape, set by its first use
Form = Callable[[Any, Sizes], bool]  # whether an attribute is valid

PLAIN = ("builtins.", "numpy.")  # modules whose types are left to skops to judge
NOT_GIVEN = ("deprecated", "warn")  # defaults of parameters that scikit-learn will remove
DATED = 1980, 1, 1, 0, 0, 0  # the earliest date that a zip file can hold


def whole(size: str | None = None) -> Form:
    """A whole number; with `size`, at least 1 and equal to the size of that name."""

    def fits(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            return False
        return size is None or bool(value >= 1 and sizes.setdefault(size, int(value)) == value)

    return fits


def array(kinds: str, *shape: str | int, least: float | None = None) -> Form:
    """A finite array of this shape; `kinds` are NumPy's letters for kinds, or a type's name."""

    def fits(value: Any, sizes: Sizes) -> bool:
        if type(value) is not np.ndarray or value.ndim != len(shape):
            return False
        named = kinds[-1].isdecimal()
        if not (value.dtype.name == kinds if named else value.dtype.kind in kinds):
            return False
        for side, size in zip(value.shape, shape, strict=True):
            if side != (sizes.setdefault(size, side) if isinstance(size, str) else size):
                return False
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return False
        return least is None or bool((value >= least).all())

    return fits


def classes(value: Any, sizes: Sizes) -> bool:
    """Two or more classes, sorted; for two of them, linear models have a single row."""
    if not array("biufUO", "classes")(value, sizes) or len(value) < 2:
        return False
    if value.dtype == object and not all(type(name) is str for name in value):
        return False
    sizes["rows"] = 1 if len(value) == 2 else len(value)
    sizes["one class less"] = len(value) - 1
    sizes["pairs"] = len(value) * (len(value) - 1) // 2
    return np.array_equal(np.unique(value), value)


def one_of(*values: Any) -> Form:
    return lambda value, sizes: any(type(value) is type(v) and value == v for v in values)


def either(*forms: Form) -> Form:
    return lambda value, sizes: any(form(value, sizes) for form in forms)


def number(value: Any, sizes: Sizes) -> bool:
    """A finite number."""
    return isinstance(value, (int, float, np.integer, np.floating)) and bool(np.isfinite(value))


def instance(name: str) -> Form:
    """An estimator of the known class `name`, which has been checked itself."""
    return lambda value, sizes: type(value) is KINDS[name].cls


def listed(form: Form) -> Form:
    return lambda value, sizes: type(value) is list and all(form(v, sizes) for v in value)


FEATURES = whole("features")
NONE = one_of(None)
FLAG = one_of(True, False)
COUNT = either(whole(), NONE, array("iu", "counts"))
FIGURE = either(number, NONE)


def _nothing(estimator: Any) -> dict[str, Any]:
    return {}


def _check_nothing(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    pass


@dataclass(frozen=True)
class KnownClass:
    """A class that we can check: its module, and what its fitted instances hold."""

    module: str
    learnt: Mapping[str, Form] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()  # those of `learnt` that may be missing
    left_out: frozenset[str] = frozenset()  # attributes not stored: not needed, or set by `build`
    pack: Callable[[Any], dict[str, Any]] = _nothing  # what `build` sets them from
    # Sets what was packed, and checks what `learnt` does not cover; raises ValueError.
    build: Callable[[Any, Mapping[str, Any], Sizes], None] = _check_nothing
    name: str = ""

    @property
    def cls(self) -> Any:
        return getattr(import_module(self.module), self.name)

    def check(self, learnt: Mapping[str, Any]) -> Sizes:
        """Check all attributes and return their sizes; raises ValueError if one is not valid."""
        if more := set(learnt) - set(self.learnt):
            raise ValueError(f"{self.name} has no attribute {min(more)!r}")
        if less := set(self.learnt) - set(learnt) - self.optional:
            raise ValueError(f"{self.name} lacks its attribute {min(less)!r}")
        sizes: Sizes = {}
        for name, form in self.learnt.items():
            if name in learnt and not form(learnt[name], sizes):
                raise ValueError(f"{self.name} has a damaged attribute {name!r}")
        return sizes


def known(estimator: Any) -> tuple[str, dict[str, Any]] | None:
    """Class name and content, in plain values, of an estimator that we can check, else None."""
    name = type(estimator).__name__
    kind = KINDS.get(name)
    if kind is None or type(estimator) is not kind.cls:
        return None
    parameters = estimator.get_params(deep=False)
    unfitted = vars(kind.cls(**parameters))
    learnt = {
        name: value
        for name, value in vars(estimator).items()
        if name not in unfitted and name not in kind.left_out
    }
    if learnt:
        try:
            kind.check(learnt)
        except ValueError:  # a rare kind of fit: sparse, categories, feature names
            return None
    packed = kind.pack(estimator) if learnt else {}
    return name, {"parameters": parameters, "learnt": learnt, "packed": packed}


def made(name: str, content: Mapping[str, Any]) -> Any:
    """The estimator of a content that `known` returned; raises ValueError if it is not valid."""
    from sklearn.utils._param_validation import validate_parameter_constraints

    if name not in KINDS:
        raise ValueError(f"the class {name!r} of scikit-learn is unknown here")
    kind = KINDS[name]
    here = kind.cls().get_params(deep=False) if name != "Pipeline" else content["parameters"]
    given = dict(content["parameters"])
    for parameter in sorted(set(given) - set(here)):
        if given.pop(parameter) not in NOT_GIVEN:
            raise ValueError(f"{name} has no {parameter!r} in this version of scikit-learn")
    estimator = kind.cls(**given)
    if given:
        # scikit-learn's own check before a fit.
        parameters = estimator.get_params(deep=False)
        validate_parameter_constraints(estimator._parameter_constraints, parameters, name)
    learnt = content["learnt"]
    if learnt:
        sizes = kind.check(learnt)
        for attribute, value in learnt.items():
            setattr(estimator, attribute, value)
        kind.build(estimator, content["packed"], sizes)
    return estimator


def _records(nodes: NDArray[Any]) -> dict[str, Any]:
    """An array of records as bytes, equal for equal records, and a description of their fields."""
    clean = np.zeros(len(nodes), nodes.dtype)
    for name in nodes.dtype.names or ():
        clean[name] = nodes[name]  # without the bytes between fields, which are arbitrary
    return {"fields": _fields(nodes.dtype), "bytes": clean.view(np.uint8).reshape(len(nodes), -1)}


def _read_records(packed: Mapping[str, Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    data = packed["bytes"]
    if packed["fields"] != _fields(dtype):
        raise ValueError("its trees are of another version of scikit-learn")
    if not array("uint8", "n", dtype.itemsize)(data, {}):
        raise ValueError("it has damaged trees")
    records: NDArray[Any] = np.ascontiguousarray(data).view(dtype).reshape(len(data))
    return records


def _fields(dtype: np.dtype[Any]) -> list[str]:
    """Each field as a text: its name, type and offset."""
    return [f"{name} {part[0].str} {part[1]}" for name, part in (dtype.fields or {}).items()]


def _check_links(inner: NDArray[np.bool_], *sides: NDArray[Any]) -> None:
    """Raise unless every link of an inner node leads to a later node, so that every path ends."""
    own = np.flatnonzero(inner)
    for side in sides:
        to = side[inner].astype(np.int64)
        if not ((own < to) & (to < len(inner))).all():
            raise ValueError("it has a damaged tree")


def _pack_boosted(estimator: Any) -> dict[str, Any]:
    trees = [tree for trees in estimator._predictors for tree in trees]
    return {
        "sizes": np.array([len(tree.nodes) for tree in trees], np.int64),
        "nodes": _records(np.concatenate([tree.nodes for tree in trees])),
    }


def _build_boosted(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    every = _read_records(packed["nodes"], PREDICTOR_RECORD_DTYPE)
    lengths, per_round = packed["sizes"], sizes["rows"]
    fine = array("int64", "trees", least=1)(lengths, {}) and int(lengths.sum()) == len(every)
    if not fine or not len(lengths) or len(lengths) % per_round:
        raise ValueError("it has damaged trees")
    if estimator.n_trees_per_iteration_ != per_round or estimator._n_features != sizes["features"]:
        raise ValueError("its trees are not of its classes and features")
    none = np.zeros((0, 8), np.uint32)
    trees = []
    for nodes in np.split(every, np.cumsum(lengths)[:-1]):
        inner = nodes["is_leaf"] == 0
        _check_links(inner, nodes["left"], nodes["right"])
        feature = nodes["feature_idx"][inner]
        if nodes["is_categorical"].any() or not (
            ((feature >= 0) & (feature < sizes["features"])).all()
            and np.isfinite(nodes["value"]).all()
            and not np.isnan(nodes["num_threshold"]).any()
        ):
            raise ValueError("it has a damaged tree")
        trees.append(TreePredictor(nodes.copy(), none, none))
    estimator._predictors = [trees[at : at + per_round] for at in range(0, len(trees), per_round)]
    two = sizes["classes"] == 2
    estimator._loss = HalfBinomialLoss() if two else HalfMultinomialLoss(n_classes=sizes["classes"])
    # Prediction only asks it which features are categories: none.
    estimator._bin_mapper = _BinMapper()
    estimator._bin_mapper.is_categorical_ = np.zeros(sizes["features"], np.uint8)
    estimator._bin_mapper.bin_thresholds_ = []
    estimator._scorer = None


def _pack_tree(estimator: Any) -> dict[str, Any]:
    state = estimator.tree_.__getstate__()
    return {
        "nodes": _records(state["nodes"]),
        "values": state["values"],
        "max_depth": int(state["max_depth"]),
    }


def _build_tree(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    from sklearn.tree._tree import NODE_DTYPE, Tree

    nodes = _read_records(packed["nodes"], NODE_DTYPE)
    leaf = nodes["left_child"] == -1
    _check_links(~leaf, nodes["left_child"], nodes["right_child"])
    feature = nodes["feature"][~leaf]
    if (
        not len(nodes)
        or not (nodes["right_child"][leaf] == -1).all()
        or not ((feature >= 0) & (feature < sizes["features"])).all()
        or np.isnan(nodes["threshold"]).any()
        or not array("float64", len(nodes), 1, sizes["classes"])(packed["values"], {})
        or not whole()(packed["max_depth"], {})
        or not 0 <= packed["max_depth"] < len(nodes)
        or estimator.n_classes_ != sizes["classes"]
    ):
        raise ValueError("it has a damaged tree")
    tree = Tree(sizes["features"], np.array([sizes["classes"]], np.intp), 1)
    tree.__setstate__(
        {
            "max_depth": packed["max_depth"],
            "node_count": len(nodes),
            "nodes": nodes.copy(),
            "values": np.ascontiguousarray(packed["values"]),
        }
    )
    estimator.tree_ = tree


def _check_forest(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    for tree in estimator.estimators_:
        if (
            not hasattr(tree, "tree_")
            or tree.n_features_in_ != sizes["features"]
            or tree.n_classes_ != sizes["classes"]
            or type(tree) is not type(estimator.estimator)
        ):
            raise ValueError("it has a tree of other features or classes")
    if not estimator.estimators_ or estimator.n_classes_ != sizes["classes"]:
        raise ValueError("it has no trees of its classes")


def _check_svc(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    counts = estimator._n_support
    n, d = estimator.shape_fit_
    if (counts < 0).any() or counts.astype(np.int64).sum() != sizes["vectors"]:
        raise ValueError("it has another number of support vectors than it says")
    if d != sizes["features"] or not (estimator.support_ < n).all():
        raise ValueError("its support vectors are none of its points")
    # Before scikit-learn 1.9 only the parameter says whether there are probabilities.
    asked = getattr(estimator, "_effective_probability", estimator.probability is True)
    probable = sizes["pairs"] if asked else 0
    if len(estimator._probA) != probable or estimator.kernel == "precomputed":
        raise ValueError("it has a damaged attribute '_probA'")


def _check_neighbors(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    from sklearn.neighbors import BallTree, KDTree

    if estimator._y.max() >= sizes["classes"]:
        raise ValueError("it has points of no class")
    estimator._tree = None
    if estimator._fit_method != "brute":  # remade: a tree from a file could be forged
        kind = KDTree if estimator._fit_method == "kd_tree" else BallTree
        metric = estimator.effective_metric_
        estimator._tree = kind(estimator._fit_X, estimator.leaf_size, metric=metric)


def _check_layers(estimator: Any, packed: Mapping[str, Any], sizes: Sizes) -> None:
    shapes = [weights.shape for weights in estimator.coefs_]
    ends = [sizes["features"], *(shape[1] for shape in shapes)]
    if (
        not shapes
        or [shape[0] for shape in shapes] != ends[:-1]
        or [bias.shape for bias in estimator.intercepts_] != [(end,) for end in ends[1:]]
        or ends[-1] != sizes["rows"]
        or estimator.n_layers_ != len(ends)
        or estimator.n_outputs_ != ends[-1]
    ):
        raise ValueError("its layers do not fit together")


def _layer(*shape: str) -> Form:
    """The array of one layer; each layer has sizes of its own."""
    return lambda value, sizes: array("f", *shape)(value, {})


LINEAR: dict[str, Form] = {
    "n_features_in_": FEATURES,
    "classes_": classes,
    "coef_": array("f", "rows", "features"),
    "intercept_": array("f", "rows"),
    "n_iter_": COUNT,
}
STOCHASTIC = {**LINEAR, "t_": number, "_expanded_class_weight": array("f", "classes")}
TREE: dict[str, Form] = {
    "n_features_in_": FEATURES,
    "classes_": classes,
    "n_outputs_": one_of(1),
    "n_classes_": whole(),
    "max_features_": whole(),
}


def _forest(tree: str) -> dict[str, Form]:
    return {
        "n_features_in_": FEATURES,
        "classes_": classes,
        "n_outputs_": one_of(1),
        "n_classes_": whole(),
        "_n_samples": whole(),
        "_n_samples_bootstrap": COUNT,
        "estimator_": instance(tree),
        "estimators_": listed(instance(tree)),
    }


_KINDS = {
    "LogisticRegression": KnownClass("sklearn.linear_model", LINEAR),
    "LinearSVC": KnownClass("sklearn.svm", LINEAR),
    "SGDClassifier": KnownClass(
        "sklearn.linear_model", STOCHASTIC, left_out=frozenset({"_loss_function_"})
    ),
    "Perceptron": KnownClass(
        "sklearn.linear_model", STOCHASTIC, left_out=frozenset({"_loss_function_"})
    ),
    "RidgeClassifier": KnownClass(
        "sklearn.linear_model",
        {
            **LINEAR,
            "coef_": either(array("f", "rows", "features"), array("f", "features")),
            "intercept_": either(number, array("f", "rows")),
            "solver_": one_of(
                *("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")
            ),
            "_label_binarizer": instance("LabelBinarizer"),
        },
    ),
    "GaussianNB": KnownClass(
        "sklearn.naive_bayes",
        {
            "n_features_in_": FEATURES,
            "classes_": classes,
            "epsilon_": number,
            "theta_": array("f", "classes", "features"),
            "var_": array("f", "classes", "features", least=0),
            "class_count_": array("f", "classes"),
            "class_prior_": array("f", "classes", least=0),
        },
    ),
    "SVC": KnownClass(
        "sklearn.svm",
        {
            "n_features_in_": FEATURES,
            "classes_": classes,
            "class_weight_": array("f", "classes"),
            "_sparse": one_of(False),
            "_effective_probability": FLAG,
            "_gamma": number,
            "support_": array("int32", "vectors", least=0),
            "support_vectors_": array("float64", "vectors", "features"),
            "_n_support": array("int32", "classes"),
            "dual_coef_": array("float64", "one class less", "vectors"),
            "_dual_coef_": array("float64", "one class less", "vectors"),
            "intercept_": array("float64", "pairs"),
            "_intercept_": array("float64", "pairs"),
            "_probA": array("float64", "probable"),
            "_probB": array("float64", "probable"),
            "fit_status_": one_of(0, 1),
            "_num_iter": array("int32", "pairs"),
            "n_iter_": array("int32", "pairs"),
            "shape_fit_": lambda value, sizes: (
                type(value) is tuple and len(value) == 2 and all(map(_is_whole, value))
            ),
        },
        optional=frozenset({"_effective_probability"}),
        build=_check_svc,
    ),
    "KNeighborsClassifier": KnownClass(
        "sklearn.neighbors",
        {
            "n_features_in_": FEATURES,
            "classes_": classes,
            "outputs_2d_": one_of(False),
            "_fit_X": array("float64", "points", "features"),
            "_y": array("int64", "points", least=0),
            "n_samples_fit_": whole("points"),
            "effective_metric_": one_of("euclidean", "manhattan", "chebyshev"),
            "effective_metric_params_": one_of({}),
            "_fit_method": one_of("brute", "kd_tree", "ball_tree"),
        },
        left_out=frozenset({"_tree"}),
        build=_check_neighbors,
    ),
    "MLPClassifier": KnownClass(
        "sklearn.neural_network",
        {
            "n_features_in_": FEATURES,
            "classes_": classes,
            "_label_binarizer": instance("LabelBinarizer"),
            "coefs_": listed(_layer("in", "out")),
            "intercepts_": listed(_layer("out")),
            "n_layers_": whole(),
            "n_outputs_": whole(),
            "out_activation_": one_of("logistic", "softmax"),
            "n_iter_": COUNT,
            "t_": FIGURE,
            "loss_": FIGURE,
            "best_loss_": FIGURE,
            "loss_curve_": listed(number),
            "validation_scores_": either(NONE, listed(number)),
            "best_validation_score_": FIGURE,
        },
        optional=frozenset(
            {"t_", "loss_curve_", "best_loss_", "validation_scores_", "best_validation_score_"}
        ),
        left_out=frozenset(
            {
                *("_random_state", "_optimizer", "_no_improvement_count"),
                *("_best_coefs", "_best_intercepts", "_coef_indptr", "_intercept_indptr"),
            }
        ),
        build=_check_layers,
    ),
    "HistGradientBoostingClassifier": KnownClass(
        "sklearn.ensemble",
        {
            "n_features_in_": FEATURES,
            "classes_": classes,
            "_label_encoder": instance("LabelEncoder"),
            "n_trees_per_iteration_": whole(),
            "_n_features": whole(),
            "_random_seed": whole(),
            "_baseline_prediction": array("float64", 1, "rows"),
            "do_early_stopping_": FLAG,
            "_use_validation_data": FLAG,
            "train_score_": array("f", "scores"),
            "validation_score_": array("f", "held-out scores"),
            **dict.fromkeys(("is_categorical_", "_preprocessor", "_is_categorical_remapped"), NONE),
        },
        optional=frozenset(  # of some versions of scikit-learn only
            {
                *("_random_seed", "_use_validation_data", "_label_encoder"),
                *("is_categorical_", "_preprocessor", "_is_categorical_remapped"),
            }
        ),
        left_out=frozenset(
            {"_predictors", "_bin_mapper", "_loss", "_scorer", "_feature_subsample_rng"}
        ),
        pack=_pack_boosted,
        build=_build_boosted,
    ),
    "DecisionTreeClassifier": KnownClass(
        "sklearn.tree", TREE, left_out=frozenset({"tree_"}), pack=_pack_tree, build=_build_tree
    ),
    "ExtraTreeClassifier": KnownClass(
        "sklearn.tree", TREE, left_out=frozenset({"tree_"}), pack=_pack_tree, build=_build_tree
    ),
    "RandomForestClassifier": KnownClass(
        "sklearn.ensemble",
        _forest("DecisionTreeClassifier"),
        left_out=frozenset({"_sample_weight"}),
        build=_check_forest,
    ),
    "ExtraTreesClassifier": KnownClass(
        "sklearn.ensemble",
        _forest("ExtraTreeClassifier"),
        left_out=frozenset({"_sample_weight"}),
        build=_check_forest,
    ),
    "LabelBinarizer": KnownClass(
        "sklearn.preprocessing",
        {
            "classes_": classes,
            "y_type_": one_of("binary", "multiclass"),
            "sparse_input_": one_of(False),
        },
    ),
    "LabelEncoder": KnownClass("sklearn.preprocessing", {"classes_": classes}),
    "StandardScaler": KnownClass(
        "sklearn.preprocessing",
        {
            "n_features_in_": FEATURES,
            "mean_": either(NONE, array("f", "features")),
            "var_": either(NONE, array("f", "features", least=0)),
            "scale_": either(NONE, array("f", "features", least=np.finfo(np.float64).tiny)),
            "n_samples_seen_": either(number, array("iuf", "features", least=0)),
        },
    ),
    "Pipeline": KnownClass("sklearn.pipeline"),
}


def _is_whole(value: Any) -> bool:
    return whole()(value, {})


KINDS = {name: KnownClass(**{**vars(kind), "name": name}) for name, kind in _KINDS.items()}


def to_bytes(estimator: Any) -> bytes:
    """An estimator of any class in skops's format; raises ImportError without skops.

    skops numbers objects by their address in memory and stores the time. Both are replaced, so that
    equal estimators give equal bytes.
    """
    with zipfile.ZipFile(io.BytesIO(_skops().dumps(estimator))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop("schema.json"))
    numbers: dict[str, int] = {}
    for node in _nodes(schema):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(str(node["__id__"]), len(numbers) + 1)
    names = {name: f"array-{at}.npy" for at, name in enumerate(_files(schema))}
    for node in _nodes(schema):
        if "file" in node:
            node["file"] = names[node["file"]]
    content = {names[name]: data for name, data in members.items()}
    content["schema.json"] = json.dumps(schema, sort_keys=True).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(content):
            archive.writestr(zipfile.ZipInfo(name, DATED), content[name])
    return out.getvalue()


def from_bytes(data: bytes, trusted: Sequence[str]) -> Any:
    """The estimator; raises ValueError unless `trusted` lists the full names of all its types."""
    if others := sorted(set(types(data)) - set(trusted)):
        raise ValueError(f"{', '.join(others)} must be trusted to be loaded")
    return _skops().loads(data, trusted=list(trusted))


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
    found = {f"{node['__module__']}.{node['__class__']}" for node in named}
    ours = {name for name in found if not name.startswith(PLAIN)}
    return sorted(ours | set(_skops().get_untrusted_types(data=data)))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON value, outer ones first."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (dict, list)):
            yield from _nodes(part)


def _files(schema: Any) -> list[str]:
    """The files that a schema names, each once, in the order of their first use."""
    return list(dict.fromkeys(node["file"] for node in _nodes(schema) if "file" in node))


def _skops() -> Any:
    try:
        from skops import io as skops_io
    except ImportError as error:
        raise ImportError(
            "a model that holds a scikit-learn classifier of this kind is stored through skops: "
            "pip install 'auxhash[classifiers]'"
        ) from error
    return skops_io
