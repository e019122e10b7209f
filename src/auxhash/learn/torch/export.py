"""A module as an ONNX graph, from raw points to packed codes, by PyTorch's own exporter."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from auxhash.codes import n_bytes
from auxhash.compute.extras import install
from auxhash.files.writing import writing
from auxhash.learn.torch.learning import Place, forward

if TYPE_CHECKING:
    from auxhash.learn.torch.modulehash import ModuleHash

LOGGER = "torch.onnx._internal.exporter"  # reports which optional packages are missing


class ToPackedCodes(torch.nn.Module):  # type: ignore[misc]
    """Packed codes (n, n_bytes) of raw points: bit k of a code at byte k // 8, bit k % 8."""

    def __init__(self, module: torch.nn.Module, how: "ModuleHash", n_bits: int) -> None:
        super().__init__()
        self.module, self.how, self.place = module, how, Place.of(module)
        place = np.arange(n_bits)
        weights = np.zeros((n_bits, n_bytes(n_bits)), np.float32)
        weights[place, place // 8] = 2.0 ** (place % 8)
        self.register_buffer("weights", torch.from_numpy(weights))

    def forward(self, features: Tensor) -> Tensor:
        if features.dtype != torch.uint8:
            features = features.to(self.place.dtype)
        outputs = forward(self.module, features, self.how, self.place)
        return ((outputs >= 0).to(torch.float32) @ self.weights).to(torch.uint8)  # exact


def export(h: "ModuleHash", n_bits: int, path: str | os.PathLike[str], dtype: str) -> None:
    """Write the module of a fitted `ModuleHash`: input "features", output "codes".

    The input is uint8 for pictures of bytes, else of `dtype`. Raises ImportError where onnxscript
    is missing, and TypeError for a module that PyTorch cannot export.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"PyTorch's exporter needs onnx and onnxscript: {install('torch')}"
        ) from error
    packed = ToPackedCodes(h.trained_module().cpu(), h, n_bits).eval()
    example = torch.from_numpy(h.blank(2).astype(np.uint8 if h.bytes_ else dtype))
    with writing(Path(path)) as temporary, _quiet():
        try:
            torch.onnx.export(
                packed,
                (example,),
                str(temporary),
                dynamo=True,
                input_names=["features"],
                output_names=["codes"],
                dynamic_shapes=({0: torch.export.Dim("n")},),
                external_data=False,
                verbose=False,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            reason = str(error).strip().splitlines()[0]
            raise TypeError(f"PyTorch cannot export this module to ONNX: {reason}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence PyTorch's messages about optional packages and its own deprecations."""
    logger = logging.getLogger(LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
