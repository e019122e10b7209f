"""The identity of a value as a text: the same in every process, and different for other values.

Checkpoints and kept runs are found again by such texts ("words"), so two runs that differ anywhere
must not share them. Arrays count by every byte, functions by their code, other objects by their
content. An unnecessary run is harmless, a stale result is not: if two values are not known to be
equal, their words differ.

`joblib.hash` with `inspect.getsource` cannot replace this: 19 of the 23 tests fail with it. It
cannot take locks, nor functions inside other values or without a source file, confuses functions
whose closures differ, and tells equal arrays of another order in memory apart.
"""

import copyreg
import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
)
from types import ModuleType as Module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.compute.arrays import AnyArray
from auxhash.compute.kernels import names_in
from auxhash.mac.hashfunctions.protocol import BaseHash
from auxhash.model.encoding import encode

MAX_CHARACTERS = 60  # characters of the words of a value; longer ones are replaced by a digest
DIGEST = "sha256 "
N_FUNCTION_DIGITS = 24  # hexadecimal, that tell functions of one name apart
BYTES_PER_COPY = 1 << 24  # bytes copied at a time of an array that is not contiguous
PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(...))
CONTAINERS = (list, tuple, set, frozenset, dict, MappingProxyType)
CACHED = type(functools.lru_cache(len))
PACKAGES = {"site-packages", "dist-packages"}  # folders of installed packages


def in_words(value: object) -> str:
    """A text that identifies a value: the same in every process, different for different values.

    A Python function is identified by its name, its code, its defaults, the variables it closes
    over and the global values that it names; a class likewise by the code of its methods. Functions
    and classes that it uses are followed, unless they are part of Python, of auxhash or of an
    installed package: those count by name, as compiled functions do.
    """
    return _Words().short(value)


class _Words:
    """The words of one value and all that it holds."""

    def __init__(
        self, met: dict[int, tuple[int, object]] | None = None, around: Iterable[int] = ()
    ) -> None:
        # Functions and objects are described once, and after that named by a number, as they may
        # refer to each other in circles. Each is kept, so that no other object gets its id.
        self.met = dict(met or {})
        self.around = list(around)  # ids of the containers that the value is in

    def short(self, value: object) -> str:
        text = self.full(value)
        return text if len(text) <= MAX_CHARACTERS else DIGEST + _hex(text)

    def full(self, value: object) -> str:
        if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
            value = value.item()
        if type(value) in PLAIN:
            return hex(value) if type(value) is int and abs(value) >= 2**64 else repr(value)
        if type(value) in CONTAINERS:
            return self._container(value)
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            return f"{type(value).__name__} {self.short(encode(value))}"
        # Some modules have every attribute that one asks for.
        if not isinstance(value, Module) and (array := self._array(value)) is not None:
            return array
        if id(value) in self.met:
            return f"#{self.met[id(value)][0]}"
        self.met[id(value)] = len(self.met), value
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, Module):
            return f"module {value.__name__}"
        return self._callable(value) or self._object(value)

    def _container(self, value: Any) -> str:
        if id(value) in self.around:
            return f"around {self.around.index(id(value))}"
        self.around.append(id(value))
        if isinstance(value, (list, tuple)):
            text = ", ".join([self.short(part) for part in value])
            text = f"[{text}]" if isinstance(value, list) else f"({text})"
        elif isinstance(value, (set, frozenset)):
            text = f"{type(value).__name__}({', '.join(sorted(map(self._apart, value)))})"
        else:
            keys = sorted(((self._apart(key), key) for key in value), key=lambda pair: pair[0])
            text = f"{{{', '.join([f'{words}: {self.short(value[key])}' for words, key in keys])}}}"
        self.around.pop()
        return text

    def _apart(self, value: object) -> str:
        """The words of a member of an unordered container, independent of the other members."""
        return _Words(self.met, self.around).short(value)

    def _array(self, value: Any) -> str | None:
        """The words of an array, a sparse matrix or a data frame; None for anything else."""
        if isinstance(value, np.ma.MaskedArray):
            return f"masked {self.short([value.data, np.ma.getmaskarray(value)])}"
        if isinstance(value, type):
            return None
        if hasattr(value, "tocsr"):
            rows = value.tocsr().copy()
            rows.sum_duplicates()
            places = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
            return f"{type(value).__name__} {self.short((value.shape, rows.data, *places))}"
        if not hasattr(value, "__array__"):
            return None
        if hasattr(value, "columns"):  # a data frame
            each = [np.asarray(value[name]) for name in value.columns]
            return f"{type(value).__name__} {self.short([list(value.columns), *each])}"
        array = np.asarray(value)
        kind = f"{array.dtype} {array.shape}"
        if array.dtype.hasobject:
            return f"{kind} {self.short(array.ravel().tolist())}"
        if array.dtype.names:  # the bytes between the fields are arbitrary
            return f"{kind} {self.short([array[name] for name in array.dtype.names])}"
        digest = hashlib.sha256()
        for block in _blocks(array):
            digest.update(block.data)
        return f"{kind} {digest.hexdigest()}"

    def _class(self, kind: type) -> str:
        name = f"{kind.__module__}.{kind.__qualname__}"
        own = [base for base in kind.__mro__ if not _installed(base.__module__)]
        if not own:
            return name
        parts = [[base.__qualname__, self._members(base)] for base in own]
        return f"{name} ({_hex(self.short(parts))[:N_FUNCTION_DIGITS]})"

    def _members(self, kind: type) -> dict[str, object]:
        """The methods and attributes of a class, without those that Python adds."""
        methods = FunctionType, staticmethod, classmethod, property
        return {
            name: member
            for name, member in vars(kind).items()
            if isinstance(member, methods) or not (name.startswith("__") and name.endswith("__"))
        }

    def _callable(self, value: object) -> str | None:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, MethodType):
            return f"method {self.short([value.__func__, value.__self__])}"
        if isinstance(value, functools.partial):
            parts = [value.func, value.args, value.keywords, vars(value)]
            return f"partial {self.short(parts)}"
        if isinstance(value, (staticmethod, classmethod)):
            return f"{type(value).__name__} {self.short(value.__func__)}"
        if isinstance(value, property):
            return f"property {self.short([value.fget, value.fset, value.fdel])}"
        if isinstance(value, CACHED):
            return f"cached {self.short(value.__wrapped__)}"
        if hasattr(value, "py_func"):  # compiled by numba
            return f"compiled {self.short([value.py_func, getattr(value, 'targetoptions', None)])}"
        return None

    def _function(self, function: FunctionType) -> str:
        cells = [_content(cell) for cell in function.__closure__ or ()]
        brings = [function.__defaults__, function.__kwdefaults__, cells, vars(function)]
        name = f"{function.__module__}.{function.__qualname__}"
        if _installed(function.__module__):
            return f"{name} {self.short(brings)}" if any(brings) else name
        named = sorted(names_in(function.__code__) & function.__globals__.keys())
        reached = [(name, self._reached(function, name)) for name in named]
        parts = [function.__code__, brings, reached]
        return f"{function.__qualname__} ({_hex(self.short(parts))[:N_FUNCTION_DIGITS]})"

    def _reached(self, function: FunctionType, name: str) -> object:
        """The value of a global name; of a module of the user's own, the parts that are used."""
        value = function.__globals__[name]
        if not isinstance(value, Module) or _installed(value.__name__):
            return value
        used = sorted(names_in(function.__code__) & vars(value).keys())
        return [(part, vars(value)[part]) for part in used]

    def _code(self, code: CodeType) -> str:
        """Everything that determines what the code does; not its file and lines."""
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        parts = [code.co_code, code.co_exceptiontable, counts, names, code.co_consts]
        return f"code {self.short(parts)}"

    def _object(self, value: Any) -> str:
        parts: Any
        kind = self.short(type(value))
        own = value.identity_parts() if isinstance(value, BaseHash) else None
        if own is not None:  # it knows itself what it depends on
            return f"{kind} {self.short(own)}"
        if hasattr(value, "get_tree_stats"):  # scikit-learn's search trees count their uses
            parts = [value.get_arrays(), value.__getstate__()[-2:]]  # the metric and the weights
            return f"{kind} {self.short(parts)}"
        if is_dataclass(value) and not hasattr(value, "get_params"):  # estimators learn more
            parts = {field.name: getattr(value, field.name, None) for field in fields(value)}
            return f"{kind} {self.short(parts)}"
        try:  # taken apart as for a copy; an estimator, into parameters and what it has learnt
            known = copyreg.dispatch_table.get(type(value))
            parts = known(value) if known else value.__reduce_ex__(4)
        except Exception:  # a lock, an open file
            parts = getattr(value, "__dict__", None)
            return kind if parts is None else f"{kind} {self.short(dict(parts))}"
        if isinstance(parts, str):
            home = getattr(value, "__module__", "")
            bound = value.__self__ if isinstance(value, BuiltinFunctionType) else None
            of = "" if bound is None or isinstance(bound, Module) else f" {self.short(bound)}"
            return f"{home}.{parts}{of}"
        listed = [list(part) if isinstance(part, Iterator) else part for part in parts]
        return f"{kind} {self.short(listed)}"


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return ...


@functools.cache
def _installed(module: str | None) -> bool:
    """Tell whether a module comes with Python, with auxhash or with another package."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:
        return False
    return not PACKAGES.isdisjoint(Path(file).parts) or _has_record(top)


def _has_record(top: str) -> bool:
    """Tell whether a package lies beside the record of its installation: pip install --target."""
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None or Path(file).stem != "__init__":
        return False
    return any(Path(file).parents[1].glob(f"{top}-*.dist-info"))


def _blocks(array: AnyArray) -> Iterator[NDArray[np.uint8]]:
    """The bytes of an array in C order, without a copy of the whole."""
    if not array.nbytes:
        return
    if array.flags.c_contiguous:
        yield array.reshape(-1).view(np.uint8)
        return
    rows = max(1, BYTES_PER_COPY * len(array) // array.nbytes)
    for at in range(0, len(array), rows):
        yield np.ascontiguousarray(array[at : at + rows]).reshape(-1).view(np.uint8)


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
