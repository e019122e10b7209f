"""Models as values, and their files: fields, encoding, export, the identity of a run.

model           `Model`, a learnt hash function with what encoding needs, and its fingerprint
points          checks of the points that a model is given
functions       hash functions of the baselines
modelfile       the file format; `encoding` values as JSON and arrays; `classifiers` scikit-learn's
fitted          a fitted estimator in a file, beside its model
onnxgraph       a model as an ONNX graph
identity        a run as a text
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auxhash.model.model import LearntFrom, Model

__all__ = ["LearntFrom", "Model"]


def __getattr__(name: str) -> object:  # at first use: files of the room need not all be imported
    if name in __all__:
        from auxhash.model import model

        return getattr(model, name)
    raise AttributeError(f"module 'auxhash.model' has no attribute {name!r}")
