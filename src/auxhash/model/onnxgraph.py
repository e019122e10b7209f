"""A model as an ONNX graph: raw features in, packed codes out, and tables if it has learnt them.

The graph computes in double precision, as the model does, so that codes agree wherever an output is
not within rounding of zero. `outputs` has one function per hash function and feature map, which
adds its computation to the graph; for one of your own, add one with `@outputs.register`.
"""

import os
from functools import singledispatch
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from auxhash.codes import n_bytes
from auxhash.compute.arrays import Array, ArrayLike
from auxhash.compute.extras import install
from auxhash.compute.version import __version__
from auxhash.files.writing import writing
from auxhash.mac.hashfunctions import NetworkHash, RadialBasis, Scaled, SVMHash, Unit, with_defaults
from auxhash.model.functions import (
    MIN_PROBABILITY,
    AnchorGraph,
    Centred,
    Codewords,
    Eigenfunctions,
    KernelMap,
    LogProbabilities,
    Spheres,
    WeightedHash,
)
from auxhash.model.tables import TableFunction

if TYPE_CHECKING:
    import onnx

    from auxhash.model.model import Model

OPSET, IR_VERSION = 18, 8  # old enough for any runtime in use
ABOUT = (
    "Features (n, D) to packed codes (n, ceil(n_bits / 8)): "
    "bit k of a code at byte k // 8, bit k % 8; padding bits are 0. "
    "Tables (n, n_bytes, 256), if any: what each value of each byte adds to a code's distance."
)

Name = str  # of a value in the graph


class OnnxGraph:
    """Nodes and constants, in the order they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

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
    hasher: Any,
    path: str | os.PathLike[str],
    dtype: Literal["float32", "float64"] = "float32",
) -> None:
    """Write a `Model` or a fitted estimator as ONNX: input "features", of `dtype`, output "codes".

    The second output of a model that has learnt tables are its "tables", float32.

    The graph's metadata hold the model's fingerprint, under "fingerprint".

    A PyTorch module is exported by PyTorch's own exporter; the input of one that was learnt from
    pictures of bytes is uint8, of their shape.

    Raises TypeError for a model that cannot be exported, NotFittedError, and ImportError where the
    package onnx is missing.
    """
    onnx = _onnx()
    model: Model = hasher.model_ if hasattr(type(hasher), "model_") else hasher
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}')
    if with_defaults(model.hash_function).export_onnx(path, model.n_bits, dtype):
        written = onnx.load(path)
        if model.table_function is not None:
            _add_tables(onnx, model.table_function, written.graph)
    else:
        written = _graph(onnx, model, dtype)
    onnx.helper.set_model_props(written, {"fingerprint": model.fingerprint})
    onnx.checker.check_model(written)
    with writing(Path(path)) as temporary:
        temporary.write_bytes(written.SerializeToString())


def _graph(onnx: ModuleType, model: "Model", dtype: str) -> "onnx.ModelProto":
    """Return the graph of a hash function made of matrix products and kernels."""
    types = onnx.TensorProto
    graph = OnnxGraph()
    X = graph.add("Cast", "features", to=types.DOUBLE)
    Y = outputs(model.hash_function, X, graph)
    bits = graph.add("GreaterOrEqual", Y, graph.constant(0.0))
    place = np.arange(model.n_bits)
    weights = np.zeros((model.n_bits, n_bytes(model.n_bits)))
    weights[place, place // 8] = 2.0 ** (place % 8)
    packed = graph.matrix(graph.add("Cast", bits, to=types.DOUBLE), weights)  # exact
    last = [onnx.helper.make_node("Cast", [packed], ["codes"], to=types.UINT8)]
    value = onnx.helper.make_tensor_value_info
    results = [value("codes", types.UINT8, ["n", weights.shape[1]])]
    if model.table_function is not None:
        node, result = _tables(onnx, model.table_function, X, graph)
        last.append(node)
        results.append(result)
    kind = types.FLOAT if dtype == "float32" else types.DOUBLE
    return onnx.helper.make_model(
        onnx.helper.make_graph(
            [*graph.nodes, *last],
            model.learnt.method,
            [value("features", kind, ["n", model.n_features])],
            results,
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="auxhash",
        producer_version=__version__,
        doc_string=ABOUT,
    )


def _tables(
    onnx: ModuleType, function: TableFunction, X: Name, graph: OnnxGraph
) -> tuple["onnx.NodeProto", "onnx.ValueInfoProto"]:
    """Return the node and the value of the tables -a(q)'C[g, v], in single precision as the model.

    What they are made of is added to the graph.
    """
    single = onnx.TensorProto.FLOAT
    vector = graph.add("Cast", outputs(function.vector, X, graph), to=single)
    codebook = -function.codebook.reshape(-1, function.codebook.shape[2]).T
    terms = graph.add("MatMul", vector, graph.constant(codebook, np.float32))
    shape = [0, *function.codebook.shape[:2]]  # 0: as many as there are queries
    node = onnx.helper.make_node("Reshape", [terms, graph.constant(shape, np.int64)], ["tables"])
    return node, onnx.helper.make_tensor_value_info("tables", single, ["n", *shape[1:]])


def _add_tables(onnx: ModuleType, function: TableFunction, written: "onnx.GraphProto") -> None:
    """Add the tables to a graph of codes that another program has written."""
    graph = OnnxGraph()
    X = graph.add("Cast", "features", to=onnx.TensorProto.DOUBLE)
    node, value = _tables(onnx, function, X, graph)
    written.node.extend([*graph.nodes, node])
    written.initializer.extend(graph.constants)
    written.output.append(value)


@singledispatch
def outputs(model: object, X: Name, graph: OnnxGraph) -> Name:
    """Add the computation of a model's real-valued outputs of X; return the result's name."""
    raise TypeError(
        f"{type(model).__name__} cannot be exported to ONNX: only hash functions made of matrix "
        'products and kernels can ("linear", "rbf", "network"), not scikit-learn classifiers'
    )


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
def _weighted(model: WeightedHash, X: Name, graph: OnnxGraph) -> Name:
    return graph.matrix(outputs(model.map, X, graph), model.W)


@outputs.register
def _centred(model: Centred, X: Name, graph: OnnxGraph) -> Name:
    return graph.minus(X, model.mean)


@outputs.register
def _kernels(model: KernelMap, X: Name, graph: OnnxGraph) -> Name:
    if model.mean is not None:
        X = graph.minus(X, model.mean)
    if model.width is None:
        X = graph.matrix(X, model.points.T)
    else:
        X = graph.add("Exp", graph.over(graph.squared_distances(X, model.points), -2 * model.width))
    return X if model.kernel_mean is None else graph.minus(X, model.kernel_mean)


@outputs.register
def _log_probabilities(model: LogProbabilities, X: Name, graph: OnnxGraph) -> Name:
    probability = graph.add("Softmax", _classifier(model.classifier, X, graph), axis=1)
    logits = graph.add("Log", graph.add("Max", probability, graph.constant(MIN_PROBABILITY)))
    return logits if model.mean is None else graph.minus(logits, model.mean)


@outputs.register
def _eigenfunctions(model: Eigenfunctions, X: Name, graph: OnnxGraph) -> Name:
    place = graph.minus(graph.matrix(graph.minus(X, model.mean), model.axes), model.low)
    # The cosine, as a sine: many versions of ONNX Runtime have no cosine of doubles.
    return graph.add("Sin", graph.minus(graph.times(place, model.omega), -np.pi / 2))


@outputs.register
def _spheres(model: Spheres, X: Name, graph: OnnxGraph) -> Name:
    return graph.add("Sub", graph.constant(model.radii), graph.squared_distances(X, model.pivots))


@outputs.register
def _anchor_graph(model: AnchorGraph, X: Name, graph: OnnxGraph) -> Name:
    k = graph.constant([model.n_nearest], np.int64)
    last = graph.constant([-1], np.int64)
    distance = graph.squared_distances(X, model.anchors)
    near, which = graph.several("TopK", 2, distance, k, largest=0)
    # The kernels over their sum are a softmax.
    tie = graph.add("Softmax", graph.over(near, -(model.width**2)), axis=-1)
    rows = graph.add("Gather", graph.constant(model.weights), which)  # (n, k, eigenvectors)
    products = graph.add("Mul", rows, graph.add("Unsqueeze", tie, last))
    Y = graph.add("ReduceSum", products, graph.constant([1], np.int64), keepdims=0)
    if model.thresholds is None:
        return Y
    positive, negative = (graph.constant(side) for side in model.thresholds)
    above = graph.add("GreaterOrEqual", Y, graph.constant(0.0))
    second = graph.add("Where", above, graph.add("Sub", Y, positive), graph.add("Sub", negative, Y))
    both = graph.add("Concat", Y, second, axis=1)
    columns = graph.constant(np.arange(model.n_bits), np.int64)
    return graph.add("Gather", both, columns, axis=1)


@outputs.register
def _codewords(model: Codewords, X: Name, graph: OnnxGraph) -> Name:
    logits = _classifier(model.classifier, X, graph)
    predicted = graph.add("ArgMax", logits, axis=1, keepdims=0)
    return graph.add("Gather", graph.constant(model.codewords), predicted)


def _classifier(model: Any, X: Name, graph: OnnxGraph) -> Name:
    """Logits of the classes, (n, n_classes), by logistic regression, scaled features or not."""
    kind = type(model).__name__
    if kind == "Pipeline":
        for step in model:
            X = _classifier(step, X, graph)
        return X
    if kind == "StandardScaler":
        mean = model.mean_ if model.with_mean else 0.0
        return graph.over(graph.minus(X, mean), model.scale_ if model.with_std else 1.0)
    if kind != "LogisticRegression":
        return outputs(model, X, graph)  # which refuses it
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
        raise ImportError(f"export_onnx needs onnx: {install('onnx')}") from error
    return onnx
