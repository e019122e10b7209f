"""A GPU for tests where there is none: CuPy's names, over NumPy's arrays and a C++ compiler.

Kernels are compiled as C++ and run thread by thread (emulated.hpp), so that their logic is tested
as it stands in the .cu files. Arrays are told apart from NumPy's: an operation on both, which CuPy
would refuse, raises TypeError here, too.
"""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from auxhash.compute.arrays import Computed

COMPILER = shutil.which("g++") or shutil.which("clang++")
HEADER = Path(__file__).with_suffix(".hpp")
FREE = 8 << 30


class ndarray(np.ndarray):  # noqa: N801
    """An array "on the GPU"."""

    __cuda_array_interface__ = None

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        _check((inputs, out))
        out = None if out is None else tuple(_plain(each) for each in out)
        kwargs = kwargs if out is None else {**kwargs, "out": out}
        return _ours(getattr(ufunc, method)(*map(_plain, inputs), **kwargs))

    def __array_function__(self, func, types, args, kwargs):
        _check((args, kwargs))
        return _ours(func(*_plain(args), **_plain(kwargs)))

    def __getitem__(self, key):
        _check(key)
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        _check((key, value))
        super().__setitem__(key, value)


def _check(value):
    if isinstance(value, (tuple, list)):
        for each in value:
            _check(each)
    elif isinstance(value, dict):
        _check(list(value.values()))
    elif isinstance(value, np.ndarray) and value.ndim and not isinstance(value, ndarray):
        raise TypeError(f"an array of NumPy's among those of the GPU: {value.shape}")
    elif isinstance(value, Computed):
        raise TypeError("rows that are computed when needed are no array")


def _plain(value):
    if isinstance(value, ndarray):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(each) for each in value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _ours(array):
    if isinstance(array, np.ndarray):
        return array.view(ndarray)
    if isinstance(array, tuple):
        ours = [_ours(each) for each in array]
        return type(array)(*ours) if hasattr(array, "_fields") else tuple(ours)
    return [_ours(each) for each in array] if isinstance(array, list) else array


def asarray(array, dtype=None):
    return array if isinstance(array, ndarray) else np.array(array, dtype).view(ndarray)


def asnumpy(array):
    return np.array(array.view(np.ndarray))


def empty(shape, dtype=np.float64):
    made = np.empty(shape, dtype)
    made.view(np.uint8)[...] = 0xA5 if made.size and made.ndim else 0  # what nobody has written
    return made.view(ndarray)


def zeros(shape, dtype=np.float64):
    return np.zeros(shape, dtype).view(ndarray)


class _Generator:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __getattr__(self, name):
        return lambda *args, **kwargs: _ours(getattr(self.rng, name)(*args, **kwargs))


random = SimpleNamespace(default_rng=_Generator)
linalg = SimpleNamespace(inv=lambda A: _ours(np.linalg.inv(_plain(A))))
cuda = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(FREE, FREE), attributes={}))


def get_default_memory_pool():
    return SimpleNamespace(free_bytes=lambda: 0)


class RawModule:
    def __init__(self, code, options=()):
        code = (
            "".join(
                f"#define {o[2:].replace(chr(61), chr(32))}\n" for o in options if o[:2] == "-D"
            )
            + code
        )
        self.library, self.names = _compiled(code)

    def get_function(self, name):
        assert name in self.names, name
        function = getattr(self.library, f"launch_{name}")

        def launch(grid, block, args, shared_mem=0, enable_cooperative_groups=False):
            # Blocks run one after the other here: several cannot wait for each other.
            assert not (enable_cooperative_groups and grid[0] > 1)
            addresses = [_address(each) for each in args]
            pointers = (ctypes.c_void_p * len(addresses))(
                *(ctypes.addressof(each) for each in addresses)
            )
            function(ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), pointers)

        launch.kernel = launch
        return launch


def _address(value):
    """An argument as a C value."""
    if isinstance(value, ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    assert not isinstance(value, np.ndarray), "an array of NumPy's was given to a kernel"
    assert isinstance(value, np.generic), "a plain number was given to a kernel"
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())


@cache
def _compiled(code):
    names = re.findall(r"__global__ void (\w+)\(", code)
    wrappers = "".join(
        f'extern "C" void launch_{name}(unsigned b, unsigned t, void **args)'
        f" {{ launch({name}, b, t, args); }}\n"
        for name in names
    )
    text = f'#include "{HEADER}"\n{code}\n{wrappers}'
    digest = hashlib.sha256((text + HEADER.read_text()).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"auxhash-emulated-{digest}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            source.write_text(text)
            flags = "-std=c++17", "-O2", "-shared", "-fPIC", "-ffp-contract=off", "-w"
            subprocess.run([COMPILER, *flags, "-o", made, source], check=True)
            shutil.move(made, library)
    return ctypes.CDLL(str(library)), names
