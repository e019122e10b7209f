"""Numba's compiler for kernels: no interpreter lock, compiled once and kept on disk.

Numba's cache is valid as long as the file of a function is unchanged. A kernel that calls a
function of another file, or reads a constant of one, would keep its old machine code after an edit
there. Here such files and constants count, too.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
from numba.core import event

from auxhash.compute.clock import compiling

PACKAGE = str(Path(__file__).parents[1])


class _Listener(event.Listener):  # type: ignore[misc]
    """Stops the clock while Numba compiles; what comes from its cache is no compiling."""

    def on_start(self, event: Any) -> None:
        compiling.start()

    def on_end(self, event: Any) -> None:
        compiling.stop()


event.register("numba:compile", _Listener())


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorate a function to be compiled; options are those of `numba.njit`."""
    if function is None:
        return partial(kernel, **options)
    compiled = numba.njit(nogil=True, cache=True, **options)(function)
    cache = getattr(compiled, "_cache", None)  # none where NUMBA_DISABLE_JIT is set
    file = getattr(cache, "_cache_file", None)
    if file is None:
        return compiled
    if not hasattr(file, "_source_stamp"):  # an unknown version of Numba: do without the cache
        return numba.njit(nogil=True, **options)(function)
    file._source_stamp = (file._source_stamp, dependencies(function))
    return compiled


def dependencies(function: Callable[..., Any]) -> str:
    """A digest of everything outside a kernel's own file that its machine code depends on.

    Functions that a kernel calls must be defined before it, or they are not found here.
    """
    found: dict[str, str] = {}
    _collect(function, found, set())
    found.pop(function.__code__.co_filename, None)  # which Numba checks itself
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def _collect(function: Callable[..., Any], found: dict[str, str], seen: set[Any]) -> None:
    """Add to `found` the files of auxhash's functions that this one uses, and its constants."""
    if function in seen:
        return
    seen.add(function)
    names = _names(function.__code__)
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, value in [*used.items()]:
        if isinstance(value, ModuleType) and value.__name__.startswith("auxhash."):
            used |= {f"{name}.{each}": getattr(value, each, None) for each in names}
    for name, value in used.items():
        if isinstance(value, (bool, int, float, str, tuple)):
            found[f"{function.__module__}.{name}"] = repr(value)
            continue
        module = sys.modules.get(str(getattr(value, "__module__", "")))
        file = str(getattr(module, "__file__", ""))
        if callable(value) and file.startswith(PACKAGE):
            found[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            if hasattr(value, "py_func"):
                _collect(value.py_func, found, seen)


def _names(code: CodeType) -> set[str]:
    """All names that a function and the functions defined inside it look up."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names, inner))
