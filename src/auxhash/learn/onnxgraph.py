"""A fitted hasher as an ONNX graph: raw features in, packed codes out.

The graph computes in double precision, as the hasher does, so that codes agree wherever an output
is not within rounding of zero. `outputs` has one function per model, which adds its computation to
the graph; for a hash function of your own, add one with `@outputs.register`.
"""

import os
from functools import singledispatch
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from auxhash.compute.arrays import Array
from auxhash.compute.version import __version__
from auxhash.files.writing import writing
from auxhash.learn import baselines
from auxhash.learn.baselines.logitlsh import MIN_PROBABILITY
from auxhash.learn.estimators import AffinityHash
from auxhash.learn.hasher import Hasher
from auxhash.learn.neighborhash import NeighborHash
from auxhash.mac.hashfunctions import NetworkHash, RadialBasis, Scaled, SVMHash, Unit, with_defaults

OPSET, IR_VERSION = 18, 8  # old enough for any runtime in use
ABOUT = (
    "Features (n, D) to packed codes (n, ceil(n_bits / 8)): "
    "bit k of a code at byte k // 8, bit k % 8; padding bits are 0."
)

Name = str  # of a value in the graph


class OnnxGraph:
    """Nodes and constants, in the order they are added."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operation: str, *inputs: Name, **attributes: Any) -> Name:
        """Add a node; return the name of its first result."""
        return self.several(operation, 1, *inputs, **attributes)[0]

    def several(
        self, operation: str, n_results: int, *inputs: Name, **attributes: Any
    ) -> list[Name]:
        results = [f"{operation}_{len(self.nodes)}_{i}" for i in range(n_results)]
        self.nodes.append(_onnx().helper.make_node(operation, inputs, results, **attributes))
        return results

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float64) -> Name:
        name = f"constant_{len(self.constants)}"
        array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
        self.constants.append(_onnx().numpy_helper.from_array(array, name))
        return name

    def minus(self, X: Name, constant: ArrayLike) -> Name:
        return self.add("Sub", X, self.constant(constant))

    def times(self, X: Name, constant: ArrayLike) -> Name:
        return self.add("Mul", X, self.constant(constant))

    def over(self, X: Name, constant: ArrayLike) -> Name:
        return self.add("Div", X, self.constant(constant))

    def matrix(self, X: Name, constant: ArrayLike) -> Name:
        """X @ constant."""
        return self.add("MatMul", X, self.constant(constant))

    def affine(self, X: Name, W: Array) -> Name:
        """[X, 1] @ W."""
        return self.add("Add", self.matrix(X, W[:-1]), self.constant(W[-1]))

    def squared_distances(self, X: Name, points: Any) -> Name:
        """|x - p|^2 for all rows of X and of the constant points, as in `affinity.distances`."""
        origin = points.mean(axis=0)
        X, points = self.minus(X, origin), points - origin
        axis = self.constant([1], np.int64)
        squares = self.add("ReduceSum", self.add("Mul", X, X), axis)
        both = self.add("Add", squares, self.constant((points * points).sum(1)))
        distance = self.add("Sub", both, self.times(self.matrix(X, points.T), 2.0))
        return self.add("Max", distance, self.constant(0.0))


def export_onnx(
    hasher: Hasher,
    path: str | os.PathLike[str],
    dtype: Literal["float32", "float64"] = "float32",
) -> None:
    """Write a fitted hasher as an ONNX model: input "features", of `dtype`, output "codes".

    A PyTorch module is exported by PyTorch's own exporter; the input of one that was learnt from
    pictures of bytes is uint8, of their shape.

    Raises TypeError for a hasher that cannot be exported, NotFittedError, and ImportError where
    the package onnx is missing.
    """
    onnx = _onnx()
    check_is_fitted(hasher)
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}')
    h = getattr(hasher, "hash_function_", None)
    if h is not None and with_defaults(h).export_onnx(path, int(hasher.n_bits), dtype):
        return
    types = onnx.TensorProto
    graph = OnnxGraph()
    Y = outputs(hasher, graph.add("Cast", "features", to=types.DOUBLE), graph)
    bits = graph.add("GreaterOrEqual", Y, graph.constant(0.0))
    place = np.arange(hasher.n_bits)
    weights = np.zeros((hasher.n_bits, -(-hasher.n_bits // 8)))
    weights[place, place // 8] = 2.0 ** (place % 8)
    packed = graph.matrix(graph.add("Cast", bits, to=types.DOUBLE), weights)  # exact
    last = onnx.helper.make_node("Cast", [packed], ["codes"], to=types.UINT8)
    kind = types.FLOAT if dtype == "float32" else types.DOUBLE
    value = onnx.helper.make_tensor_value_info
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [*graph.nodes, last],
            type(hasher).__name__,
            [value("features", kind, ["n", hasher.n_features_in_])],
            [value("codes", types.UINT8, ["n", weights.shape[1]])],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="auxhash",
        producer_version=__version__,
        doc_string=ABOUT,
    )
    onnx.checker.check_model(model)
    with writing(Path(path)) as temporary:
        temporary.write_bytes(model.SerializeToString())


@singledispatch
def outputs(model: object, X: Name, graph: OnnxGraph) -> Name:
    """Add the computation of a model's real-valued outputs of X; return the result's name."""
    raise TypeError(
        f"{type(model).__name__} cannot be exported to ONNX: only hash functions made of matrix "
        'products and kernels can ("linear", "rbf", "network"), not scikit-learn classifiers'
    )


@outputs.register(AffinityHash)
@outputs.register(NeighborHash)
@outputs.register(baselines.STH)
@outputs.register(baselines.ILH)
@outputs.register(baselines.BinaryAutoencoder)
def _with_hash_function(model: Any, X: Name, graph: OnnxGraph) -> Name:
    return outputs(model.hash_function_, X, graph)


@outputs.register
def _svm(model: SVMHash, X: Name, graph: OnnxGraph) -> Name:
    if model.W is None:
        raise ValueError("the hash function is not fitted")
    return graph.affine(outputs(model.map, X, graph), model.W)


@outputs.register
def _network(model: NetworkHash, X: Name, graph: OnnxGraph) -> Name:
    if model.V is None or model.W is None:
        raise ValueError("the hash function is not fitted")
    X = outputs(model.map, X, graph)
    hidden = graph.add("Max", graph.affine(X, model.V), graph.constant(0.0))
    n_hidden = model.V.shape[1]
    both = graph.matrix(hidden, model.W[:n_hidden]), graph.affine(X, model.W[n_hidden:])
    return graph.add("Add", *both)


@outputs.register
def _scaled(model: Scaled, X: Name, graph: OnnxGraph) -> Name:
    return graph.over(graph.minus(X, model.low), model.width)


@outputs.register
def _unit(model: Unit, X: Name, graph: OnnxGraph) -> Name:
    """Rows of unit length, divided by their largest entry first, as in `affinity.neighbors`."""
    axis = graph.constant([1], np.int64)
    for length in ("ReduceMax", "ReduceL2"):
        size = graph.add(length, graph.add("Abs", X), axis)
        zero = graph.add("Equal", size, graph.constant(0.0))
        X = graph.add("Div", X, graph.add("Where", zero, graph.constant(1.0), size))
    return X


@outputs.register
def _radial_basis(model: RadialBasis, X: Name, graph: OnnxGraph) -> Name:
    distance = graph.squared_distances(outputs(model.scaled, X, graph), model.centers)
    return graph.add("Exp", graph.over(distance, -2 * model.sigma**2))


@outputs.register
def _tpca(model: baselines.TPCA, X: Name, graph: OnnxGraph) -> Name:
    return graph.matrix(graph.minus(X, model.mean_), model.axes_)


@outputs.register
def _lsh(model: baselines.LSH, X: Name, graph: OnnxGraph) -> Name:
    return graph.matrix(graph.minus(X, model.mean_), model.hyperplanes_)


@outputs.register
def _itq(model: baselines.ITQ, X: Name, graph: OnnxGraph) -> Name:
    return graph.matrix(graph.minus(X, model.mean_), model.axes_ @ model.rotation_)


@outputs.register(baselines.PCARR)
@outputs.register(baselines.CCAITQ)
def _projection(model: Any, X: Name, graph: OnnxGraph) -> Name:
    return graph.matrix(graph.minus(X, model.mean_), model.projection_)


@outputs.register
def _sh(model: baselines.SH, X: Name, graph: OnnxGraph) -> Name:
    place = graph.minus(graph.matrix(graph.minus(X, model.mean_), model.axes_), model.low_)
    return graph.add("Cos", graph.times(place, model.omega_))


@outputs.register
def _sph(model: baselines.SPH, X: Name, graph: OnnxGraph) -> Name:
    radii = graph.constant(model.radii_)
    return graph.add("Sub", radii, graph.squared_distances(X, model.pivots_))


@outputs.register
def _ksh(model: baselines.KSH, X: Name, graph: OnnxGraph) -> Name:
    if model.hash_function == "rbf":
        distance = graph.squared_distances(X, model.anchors_)
        X = graph.add("Exp", graph.over(distance, -2 * model.width_))
    return graph.matrix(graph.minus(X, model.center_), model.weights_)


@outputs.register
def _bre(model: baselines.BRE, X: Name, graph: OnnxGraph) -> Name:
    centred = graph.minus(X, model.mean_)
    if model.kernel == "linear":
        kernel = graph.matrix(centred, model.points_.T)
    else:
        distance = graph.squared_distances(centred, model.points_)
        kernel = graph.add("Exp", graph.over(distance, -2 * model.width_))
    return graph.matrix(kernel, model.weights_)


@outputs.register
def _sdh(model: baselines.SDH, X: Name, graph: OnnxGraph) -> Name:
    return graph.matrix(outputs(model.map_, X, graph), model.weights_)


@outputs.register
def _agh(model: baselines.AGH, X: Name, graph: OnnxGraph) -> Name:
    k = graph.constant([model._nearest()], np.int64)
    last = graph.constant([-1], np.int64)
    distance = graph.squared_distances(X, model.anchors_)
    near, which = graph.several("TopK", 2, distance, k, largest=0)
    # The kernels over their sum are a softmax.
    tie = graph.add("Softmax", graph.over(near, -(model.width_**2)), axis=-1)
    rows = graph.add("Gather", graph.constant(model.weights_), which)  # (n, k, eigenvectors)
    products = graph.add("Mul", rows, graph.add("Unsqueeze", tie, last))
    Y = graph.add("ReduceSum", products, graph.constant([1], np.int64), keepdims=0)
    if model.layers == 1:
        return Y
    positive, negative = (graph.constant(side) for side in model.thresholds_)
    above = graph.add("GreaterOrEqual", Y, graph.constant(0.0))
    second = graph.add("Where", above, graph.add("Sub", Y, positive), graph.add("Sub", negative, Y))
    both = graph.add("Concat", Y, second, axis=1)
    columns = graph.constant(np.arange(model.n_bits), np.int64)
    return graph.add("Gather", both, columns, axis=1)


@outputs.register
def _one_hot(model: baselines.OneHot, X: Name, graph: OnnxGraph) -> Name:
    predicted = graph.add("ArgMax", outputs(model.classifier_, X, graph), axis=1, keepdims=0)
    return graph.add("Gather", graph.constant(model.codewords_), predicted)


@outputs.register
def _logit_lsh(model: baselines.LogitLSH, X: Name, graph: OnnxGraph) -> Name:
    probability = graph.add("Softmax", outputs(model.classifier_, X, graph), axis=1)
    logits = graph.add("Log", graph.add("Max", probability, graph.constant(MIN_PROBABILITY)))
    return graph.matrix(graph.minus(logits, model.mean_), model.hyperplanes_)


@outputs.register
def _pipeline(model: Pipeline, X: Name, graph: OnnxGraph) -> Name:
    for step in model:
        X = outputs(step, X, graph)
    return X


@outputs.register
def _standard(model: StandardScaler, X: Name, graph: OnnxGraph) -> Name:
    mean = model.mean_ if model.with_mean else 0.0
    return graph.over(graph.minus(X, mean), model.scale_ if model.with_std else 1.0)


@outputs.register
def _logistic(model: LogisticRegression, X: Name, graph: OnnxGraph) -> Name:
    """Logits of the classes, (n, n_classes)."""
    if model.solver == "liblinear" and len(model.classes_) > 2:
        raise TypeError("logistic regression by liblinear, class by class, cannot be exported")
    W, bias = model.coef_, model.intercept_
    if len(W) == 1:  # two classes: the logits of the first are 0
        W, bias = np.vstack([0 * W, W]), np.append(0.0, bias)
    return graph.add("Add", graph.matrix(X, W.T), graph.constant(bias))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError("export_onnx needs onnx: pip install 'auxhash[onnx]'") from error
    return onnx
