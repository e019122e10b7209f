"""Numba's compiler for kernels: no interpreter lock, compiled once and kept on disk.

Numba is imported when a kernel is first called: its import, and getting ready to run the first
machine code, take longer than most commands that need no kernel.

Numba's cache is valid as long as the file of a function is unchanged. A kernel that calls a
function of another file, or reads a constant of one, would keep its old machine code after an edit
there. Here such files and constants count, too.

Where no folder can be written to (a read-only installation without a home), kernels are compiled
in memory, by each process anew, and a warning says so once.
"""

import hashlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache, partial, update_wrapper
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar, overload

from auxhash.compute.clock import compiling

Made = TypeVar("Made")  # by a kernel

PACKAGE = str(Path(__file__).parents[1])

_making = threading.RLock()


class Kernel:
    """A function that Numba compiles, or finds compiled, when it is first called."""

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options
        # Taken now: the file may be another one when the kernel is called.
        self.stamp = _file_stamp(function), dependencies(function)
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher; the function itself where NUMBA_DISABLE_JIT is set."""
        if self._compiled is None:
            with _making:
                if self._compiled is None:
                    self._compiled = self._compile()
        return self._compiled

    def __call__(self, *args: object) -> Any:
        return self.compiled(*args)

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of this kernel, where another kernel calls it."""
        return numba().typeof(self.compiled)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # pickled and copied as functions are: by name

    def _compile(self) -> Any:
        try:
            compiled = numba().njit(nogil=True, cache=True, **self.targetoptions)(self.py_func)
        except RuntimeError as error:  # Numba has no other name for it
            if "no locator available" not in str(error):
                raise
            _warn_not_kept("no folder for them can be written to")
            return numba().njit(nogil=True, **self.targetoptions)(self.py_func)
        kept = getattr(compiled, "_cache", None)  # none where NUMBA_DISABLE_JIT is set
        file = getattr(kept, "_cache_file", None)
        if file is None:
            return compiled
        known = all(hasattr(file, name) for name in ("_source_stamp", "_load_index", "save"))
        if not known:  # an unknown version of Numba: without the cache
            return numba().njit(nogil=True, **self.targetoptions)(self.py_func)
        file._source_stamp = self.stamp
        file._load_index = partial(_index, file._load_index)
        file.save = partial(_save, file.save)
        return compiled


def _index(load: Callable[[], dict[object, object]]) -> dict[object, object]:
    """Return the index of a kernel's cache; empty if it names a type that has moved since."""
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def _save(save: Callable[..., None], *args: object) -> None:
    """Save a compiled kernel to disk, or warn: it can be used in any case."""
    try:
        save(*args)
    except OSError as error:
        _warn_not_kept(error.strerror)


@cache
def _warn_not_kept(why: str | None) -> None:
    """Warn once per process and reason, however many kernels there are."""
    warnings.warn(
        f"compiled kernels are not kept, and every process compiles them anew: {why}; "
        "NUMBA_CACHE_DIR names another folder",
        RuntimeWarning,
        stacklevel=2,
    )


class Intrinsic:
    """A function that writes instructions of LLVM into the kernels that call it."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._intrinsic: Any = None

    @property
    def _numba_type_(self) -> Any:
        known = numba().core.registry.cpu_target.typing_context
        with _making:
            if self._intrinsic is None:
                self._intrinsic = numba().extending.intrinsic(self.py_func)
                known.refresh()  # takes it in
        return known.resolve_value_type(self._intrinsic)

    def __call__(self, *args: object) -> Any:
        name = self.py_func.__qualname__
        raise TypeError(f"{name} is for compiled kernels only: NUMBA_DISABLE_JIT must not be set")


@overload
def kernel(function: Callable[..., Made]) -> Callable[..., Made]: ...
@overload
def kernel(**options: Any) -> Callable[[Callable[..., Made]], Callable[..., Made]]: ...
def kernel(function: Callable[..., object] | None = None, **options: Any) -> Any:
    """Decorate a function to be compiled; options are those of `numba.njit`."""
    return partial(Kernel, options=options) if function is None else Kernel(function, options)


def intrinsic(function: Callable[..., object]) -> Any:
    """Decorate a function as `numba.extending.intrinsic` does."""
    return Intrinsic(function)


@cache
def numba() -> Any:
    """Import Numba, and stop the clock whenever it compiles."""
    import numba
    import numba.core.registry
    import numba.extending
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        """Stop the clock while Numba compiles, not while it loads from its cache."""

        def on_start(self, event: object) -> None:
            compiling.start()

        def on_end(self, event: object) -> None:
            compiling.stop()

    event.register("numba:compile", Listener())
    return numba


def loaded() -> bool:
    """Return True if Numba is imported, so that the next kernel starts at once."""
    return numba.cache_info().currsize > 0


def _file_stamp(function: Callable[..., object]) -> tuple[int, int] | None:
    """Return time and size of a function's file; None if there is no file."""
    try:
        status = os.stat(function.__code__.co_filename)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def dependencies(function: Callable[..., object]) -> str:
    """Return a digest of everything outside a kernel's own file that its machine code depends on.

    Functions that a kernel calls must be defined before it, or they are missing here.
    """
    digests: dict[str, str] = {}
    _collect(function, digests, set())
    digests.pop(function.__code__.co_filename, None)  # which has a stamp of its own
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()


def _collect(function: Callable[..., object], digests: dict[str, str], seen: set[object]) -> None:
    """Add to `digests` the files of auxhash's functions that this one uses, and its constants."""
    if function in seen:
        return
    seen.add(function)
    names = names_in(function.__code__)
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, value in [*used.items()]:
        if isinstance(value, ModuleType) and value.__name__.startswith("auxhash."):
            used |= {f"{name}.{each}": getattr(value, each, None) for each in names}
    for name, value in used.items():
        if isinstance(value, (bool, int, float, str, tuple)):
            digests[f"{function.__module__}.{name}"] = repr(value)
            continue
        module = sys.modules.get(str(getattr(value, "__module__", "")))
        file = str(getattr(module, "__file__", ""))
        if callable(value) and file.startswith(PACKAGE):
            digests[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            if hasattr(value, "py_func"):
                _collect(value.py_func, digests, seen)


def names_in(code: CodeType) -> set[str]:
    """Return all names that a function and the functions defined inside it look up."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))
