"""Devices that compute with arrays: the processor with NumPy, or a GPU with CuPy.

Matrix code calls NumPy's functions, and they act on arrays of either kind. What differs is how
arrays come and go, and how work is cut: a GPU wants large pieces, threads want small ones. The few
compiled loops exist twice: for the processor in a Python file, for the GPU in a file of the same
name that ends in .cu, beside it, under the same names. CuPy compiles it when it is first needed,
and keeps the result on disk.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import DTypeLike

from auxhash.compute.arrays import AnyArray, Array, ArrayLike, Computed, Numbers, Streamed
from auxhash.compute.checks import one_of
from auxhash.compute.extras import install

Carried = TypeVar("Carried")

DeviceName = Literal["cpu", "cuda", "auto"]
NAMES = get_args(DeviceName)
ROWS_PER_TASK, BYTES_PER_TASK = 1 << 18, 1 << 31  # of a GPU, at most
POINTS_SHARE = 0.25  # of a GPU's free memory, that points may take; of more, some come when needed
THREADS_PER_BLOCK, MAX_THREADS_PER_BLOCK = 256, 1024  # that work on one point together
BYTES_PER_GB = 1e9
INCLUDE_LINE = re.compile(r'^#include "(.*)"$', re.MULTILINE)


class NoDeviceError(RuntimeError, ValueError):
    """A GPU was asked for, and there is none."""


@dataclass(frozen=True)
class Device:
    """A device, by the module whose arrays it computes with."""

    name: DeviceName
    module: ModuleType  # numpy or cupy

    def __reduce__(self) -> tuple[Callable[[str], "Device"], tuple[str]]:
        """Pickle by name: another process has another module."""
        return get, (self.name,)

    def put(self, array: ArrayLike) -> AnyArray:
        """Return the array on this device."""
        there: AnyArray = self.module.asarray(array)
        return there

    def fetch(self, array: Any) -> AnyArray:
        """Return the array as NumPy's."""
        here: AnyArray = array if on_processor(array) else self.module.asnumpy(array)
        return here

    def points(self, X: AnyArray) -> Any:
        """Return points on this device; too many of them stay where they are (`Streamed`)."""
        if self.module is np or not on_processor(X) or X.nbytes <= POINTS_SHARE * self.free():
            return self.put(X)
        return Streamed(X, lambda rows: self.put(X[self.fetch(rows)]))

    def carry(self, value: Carried) -> Carried:
        """Return a value on this device: an array, or a dataclass with all arrays inside it."""
        if self.module is np:
            return value
        carried: Carried = _carried(value, self.put)
        return carried

    def bring(self, value: Carried) -> Carried:
        """Return a value in the processor's memory: the reverse of `carry`."""
        brought: Carried = _carried(value, self.fetch)
        return brought

    def columns(self, A: AnyArray, chosen: Numbers) -> AnyArray:
        """Return these columns of a matrix, in rising order, to be read.

        On a GPU they are row by row in memory, as its kernels want them; all of them are A itself.
        """
        if self.module is np:
            return A[:, chosen]
        return A if len(chosen) == A.shape[1] else A[:, self.put(chosen)].copy()

    def set_columns(self, A: AnyArray, chosen: Numbers, values: AnyArray) -> None:
        """Replace these columns, in rising order: A[:, chosen] = values."""
        if len(chosen) == A.shape[1]:
            A[...] = values
        else:
            A[:, self.put(chosen)] = values

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
        made: AnyArray = self.module.empty(shape, dtype)
        return made

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> AnyArray:
        made: AnyArray = self.module.zeros(shape, dtype)
        return made

    def generator(self, rng: np.random.Generator) -> Any:
        """Return a generator of arrays on this device: `rng` itself, or one that it seeds."""
        if self.module is np:
            return rng
        return self.module.random.default_rng(int(rng.integers(1 << 62)))

    def rows(self, size: int, width: int = 1) -> int:
        """Return the rows of `width` numbers per task: `size` on the processor, many on a GPU."""
        if self.module is np:
            return size
        return max(1, min(ROWS_PER_TASK, BYTES_PER_TASK // (8 * width)))

    def inverse(self, A: Array) -> Any:
        """Return the inverse of a symmetric positive definite matrix."""
        if self.module is not np:
            return self.module.linalg.inv(A)
        from scipy.linalg import cho_factor, cho_solve  # imported for training alone

        return cho_solve(cho_factor(A), np.eye(len(A)))

    @contextmanager
    def rough(self) -> Iterator[None]:
        """Multiply matrices of single precision with 11 significant bits, on a GPU that can (TF32).

        It is enough for gradients, and several times as fast.
        """
        linalg = getattr(getattr(self.module, "_core", None), "_routines_linalg", None)
        tf32 = getattr(linalg, "COMPUTE_TYPE_TF32", None)
        if linalg is None or tf32 is None:
            yield
            return
        before = linalg.get_compute_type(np.float32)
        linalg.set_compute_type(np.float32, tf32)
        try:
            yield
        finally:
            linalg.set_compute_type(np.float32, before)

    def kernels(self, file: str, threads: int = THREADS_PER_BLOCK) -> "Kernels":
        """Return the kernels of the .cu file beside this Python file, in blocks of `threads`."""
        return _kernels(self.module, file, threads)

    def free(self) -> int:
        """Return the number of free bytes of its memory."""
        pool = self.module.get_default_memory_pool()
        return int(self.module.cuda.Device().mem_info[0] + pool.free_bytes())

    def check_room(self, needed: float, what: str) -> None:
        """Raise MemoryError unless `needed` bytes are free; `what` says what they are for."""
        if needed > self.free():
            raise MemoryError(
                f"device={self.name!r} has {self.free() / BYTES_PER_GB:.1f} GB of memory free, "
                f"and {what} needs about {needed / BYTES_PER_GB:.1f} GB: take fewer, or "
                'device="cpu"'
            )


@dataclass(frozen=True)
class Kernels:
    """Kernels of a GPU, by name."""

    module: ModuleType
    path: str
    threads: int

    def __call__(self, name: str, n_blocks: int, *args: object) -> None:
        """Run the kernel of this name in n_blocks blocks; counts are passed as 64-bit numbers."""
        if n_blocks:
            self._function(name)((n_blocks,), (self.threads,), self._passed(name, args))

    def together(self, name: str, n_blocks: int, *args: object) -> None:
        """Run the kernel with all blocks at the same time, so that they may wait for each other.

        There must be room for them (`at_once`): the GPU takes them all, or refuses them.
        """
        launch = self._function(name).kernel
        passed = self._passed(name, args)
        launch((n_blocks,), (self.threads,), passed, enable_cooperative_groups=True)

    def over(self, name: str, n: int, *args: object) -> None:
        """Run the kernel with one thread for each of n entries."""
        self(name, -(-n // self.threads), *args)

    def at_once(self, name: str) -> int:
        """Return how many blocks of this kernel an idle GPU runs at once; 1 if unknown."""
        cuda = self.module.cuda
        processors: int = cuda.Device().attributes.get("MultiProcessorCount", 0)
        if not processors:
            return 1
        compiled = self._function(name).kernel.ptr
        each = cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(compiled, self.threads, 0)
        return processors * int(each)

    def _function(self, name: str) -> Any:
        return _function(self.module, self.path, name, self.threads)

    def _passed(self, name: str, args: tuple[object, ...]) -> tuple[object, ...]:
        """Return the arguments as a kernel takes them: counts as 64-bit numbers."""
        plain = tuple([np.int64(a) if type(a) is int else a for a in args])
        if not all(a.flags.c_contiguous for a in plain if isinstance(a, self.module.ndarray)):
            raise RuntimeError(f"{name} was given an array with gaps")  # it would not see them
        return plain


@cache
def _kernels(module: ModuleType, file: str, threads: int) -> Kernels:
    return Kernels(module, str(Path(file).with_suffix(".cu")), threads)


@cache
def _function(module: ModuleType, path: str, name: str, threads: int) -> Any:
    """Return a kernel, compiled or from CuPy's cache on disk."""
    options = "--std=c++17", f"-DTHREADS={threads}"
    return module.RawModule(code=source(path), options=options).get_function(name)


def source(path: str) -> str:
    """Return the text of a .cu file, includes inlined: CuPy's cache knows no other files."""
    file = Path(path)
    return INCLUDE_LINE.sub(
        lambda match: source(str(file.parent / match[1])), file.read_text(encoding="utf-8")
    )


def _carried(value: Any, move: Callable[[Any], Any]) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "shape") and value.shape:
        return move(value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        moved = {name: _carried(part, move) for name, part in parts.items()}
        if any(moved[name] is not parts[name] for name in parts):
            return replace(value, **moved)
    return value


@contextmanager
def telling(device: Device, needed: float, advice: str) -> Iterator[None]:
    """Add the memory needed, and advice, to the MemoryError of a GPU that runs out of it."""
    try:
        yield
    except MemoryError as error:
        if not type(error).__module__.startswith("cupy"):
            raise
        raise MemoryError(
            f"device={device.name!r} ran out of memory: {error}. What must be held takes about "
            f"{needed / BYTES_PER_GB:.1f} GB, and the features more: {advice}, or train on "
            'device="cpu"'
        ) from error


CPU = Device("cpu", np)


def of(array: object) -> Device:
    """Return the device of an array of NumPy or CuPy, or that a `Computed` one is made on."""
    if isinstance(array, Computed):
        return of(array.like)
    if on_processor(array):
        return CPU
    name = type(array).__module__
    return Device("cuda", sys.modules["cupy" if name.startswith("cupy.") else name])


def on_processor(array: Any) -> bool:
    """Return True unless it is an array on a GPU, of CuPy or PyTorch."""
    if _is_tensor(array):
        return not array.is_cuda
    if not hasattr(type(array), "__cuda_array_interface__"):
        return True
    # Arrays of other libraries, which may be anywhere, become NumPy's as they always did.
    return not hasattr(sys.modules.get(type(array).__module__), "RawModule")


def native(array: Any) -> Any:
    """Return an array on a GPU as CuPy's, without a copy; anything else as it is."""
    if on_processor(array) or not _is_tensor(array):
        return array
    return _cuda().module.from_dlpack(array.detach())


def fetched(array: Any) -> Any:
    """Return an array on a GPU as NumPy's; anything else as it is."""
    here = native(array)
    return here if on_processor(here) else of(here).fetch(here)


def like(original: object, result: Any) -> Any:
    """Return a result of NumPy's or CuPy's as the kind of array, on the device of `original`."""
    if on_processor(original):
        return result
    there = of(native(original)).put(result)
    return sys.modules["torch"].from_dlpack(there) if _is_tensor(original) else there


def _is_tensor(array: object) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def get(name: str, needed: float = 0.0, refusal: str = "") -> Device:
    """Return the device of that name; "auto" is a GPU with `needed` bytes free, if there is one.

    `refusal` says why no GPU can do what is wanted, where that is so: "auto" is the processor then.

    Raises ImportError where "cuda" is asked for without CuPy, RuntimeError without a GPU, and
    ValueError where a GPU is refused.
    """
    one_of("device", name, NAMES)
    if name == "cpu" or (name == "auto" and refusal):
        return CPU
    if refusal:
        raise ValueError(refusal)
    try:
        gpu = _cuda()
    except (ImportError, RuntimeError):
        if name == "auto":
            return CPU
        raise
    return CPU if name == "auto" and needed > gpu.free() else gpu


def _cuda() -> Device:
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"device='cuda' needs CuPy, built for your CUDA: {install('gpu')} for CUDA 12, pip "
            "install cupy-cuda13x for CUDA 13"
        ) from error
    try:
        n_gpus = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDeviceError(f"device='cuda' finds no GPU that can be used: {error}") from error
    if not n_gpus:
        raise NoDeviceError("device='cuda' finds no GPU")
    return Device("cuda", cupy)
