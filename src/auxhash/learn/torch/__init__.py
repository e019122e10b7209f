"""PyTorch modules as hash functions. Only this package imports PyTorch, and nothing imports it.

modulehash  `ModuleHash`: any module that maps a batch to b outputs, as a hash function
learning    batches of points on the module's device, steps of its optimiser, the h step
smooth      the module in refinement: outputs forward, the pull of an objective backward
networks    ready modules, for pictures and for features
augment     crops, flips, warps, colours and cut-outs of pictures
export      the module down to packed codes, in ONNX
"""

from auxhash.compute.extras import install

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(f"auxhash.torch needs PyTorch: {install('torch')}") from error

from auxhash.learn.torch import augment
from auxhash.learn.torch.modulehash import ModuleHash
from auxhash.learn.torch.networks import feature_network, residual_network

__all__ = ["ModuleHash", "augment", "feature_network", "residual_network"]
