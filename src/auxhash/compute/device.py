"""Where matrix code computes: on the processor with NumPy, or on a GPU with CuPy.

Matrix code calls NumPy's functions, and they act on arrays of either kind. What differs is how
arrays come and go, and how work is cut: a GPU wants it whole, threads want it in chunks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from auxhash.checks import unknown

NAMES = ("cpu", "cuda", "auto")
WHOLE = 1 << 40  # rows per task: all of them


@dataclass(frozen=True)
class Device:
    """A device, by the module whose arrays it computes with."""

    name: str
    module: Any  # numpy or cupy

    def put(self, array: Any) -> Any:
        """The array on this device."""
        return self.module.asarray(array)

    def fetch(self, array: Any) -> Any:
        """The array as NumPy's."""
        return array if self.module is np else self.module.asnumpy(array)

    def generator(self, rng: np.random.Generator) -> Any:
        """A generator of arrays on this device: `rng` itself, or one that it seeds."""
        if self.module is np:
            return rng
        return self.module.random.default_rng(int(rng.integers(1 << 62)))

    def rows(self, size: int) -> int:
        """Rows per task, of which `size` suits a thread."""
        return size if self.module is np else WHOLE


CPU = Device("cpu", np)


def get(name: str) -> Device:
    """The device of that name; "auto" is a GPU where there is one that can be used.

    Raises ImportError where "cuda" is asked for without CuPy, RuntimeError without a GPU.
    """
    if name not in NAMES:
        raise unknown("device", name, NAMES)
    if name == "cpu":
        return CPU
    try:
        return _cuda()
    except (ImportError, RuntimeError):
        if name == "auto":
            return CPU
        raise


def _cuda() -> Device:
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            "device='cuda' needs CuPy, built for your CUDA: pip install 'auxhash[gpu]', or "
            "cupy-cuda12x for CUDA 12"
        ) from error
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"device='cuda' finds no GPU that can be used: {error}") from error
    if not found:
        raise RuntimeError("device='cuda' finds no GPU")
    return Device("cuda", cupy)
