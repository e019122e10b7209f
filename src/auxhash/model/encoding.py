"""Values as JSON and named arrays, and back: what model files hold.

None, bool, int, finite float, str and list stand for themselves. Everything else is an object with
one key, which says what it is:

    {"float": "nan"}    "inf" or "-inf": JSON has no word for them
    {"tuple": [...]}
    {"dict": {...}}     where all keys are text, else {"items": [[key, value], ...]}
    {"scalar": ["int64", 3]}                       of NumPy
    {"array": ["name", "float64", [2, 3], "C"]}    name, type, shape and order in memory; stored in
                                                   half precision where that holds all its numbers
    {"dates": ["datetime64[D]", {"array": ...}]}   as whole numbers
    {"objects": [[2], ["a", "b"]]}                 an array of Python objects, with its shape
    {"object": ["SVMHash", {...}]}                 an instance of a registered class
    {"generator": {...}}, {"random state": {...}}  where the next draws begin
    {"estimator": ["Pipeline", {...}]}             of scikit-learn, of a class in classifiers.KNOWN
    {"classifier": "name"}                         any other of scikit-learn, by skops

Decoding makes nothing but these, and instances of registered classes only: a file cannot choose
what code is run.

A registered class may have `check_read`, `TRAINING_ONLY` and `UNSTORED`. Hash functions have them
from `BaseHash`, with defaults; other registered classes have no base class, so they are looked up.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from auxhash.compute.arrays import AnyArray
from auxhash.compute.fingerprint import digest
from auxhash.compute.registry import CLASSES
from auxhash.model import classifiers

Json = Any
Arrays = dict[str, AnyArray]

TYPES = (
    *("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)
TEXT = re.compile(r"<U([1-9][0-9]{0,6})")  # a NumPy type: text, and its number of characters
DATES = re.compile(r"datetime64\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")  # a NumPy type
LAST_CHARACTER = 0x10FFFF
INT_BOUND = 2**1024  # bound on the size of an int
GENERATORS = ("PCG64", "PCG64DXSM", "SFC64", "MT19937", "Philox")
# Largest indices into arrays in the state of a generator, which NumPy does not check.
MAX_POSITIONS = {"pos": 624, "buffer_pos": 4}


def encode(value: object, name: str = "value") -> tuple[Json, Arrays]:
    """Encode a value as JSON and arrays, whose names begin with `name`.

    Raises TypeError for what cannot be stored, and says where in the value it is.
    """
    arrays: Arrays = {}
    coded = _encode(value, name, arrays)
    return coded, {name: _in_half(array) for name, array in arrays.items()}


def fingerprint(value: object) -> str:
    """Return the fingerprint of a value that can be stored, the same on every machine.

    Of objects, it leaves out the fields in `TRAINING_ONLY`; of arrays, the order in memory.
    """
    return digest(_deciding(value))


def _deciding(value: object) -> Iterator[bytes | memoryview]:
    """Yield, as bytes, all parts of a value that count for its fingerprint."""
    kind = type(value)
    if isinstance(value, (list, tuple)) and kind in (list, tuple):
        value = dict(enumerate(value))
    elif registered := _registered_name(kind):
        yield registered.encode()
        training = getattr(kind, "TRAINING_ONLY", ())
        names = [name for name in _stored_fields(kind) if name not in training]
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, dict):
        yield f"{len(value)} parts".encode()
        for name, part in value.items():
            yield str(name).encode()
            yield from _deciding(part)
    elif isinstance(value, np.ndarray) and value.dtype.name in TYPES:
        yield f"{value.dtype.name} {value.shape}".encode()
        plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        yield plain.reshape(-1).view(np.uint8).data
    else:
        arrays: Arrays = {}
        coded = _encode(value, "value", arrays)  # as it is, not as files hold it
        yield json.dumps(coded, sort_keys=True).encode()
        for name in sorted(arrays):
            yield np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data


def parts(coded: Json) -> dict[str, Json]:
    """Return the parts of an encoded dict whose keys are text, still encoded."""
    if type(coded) is not dict or [*coded] != ["dict"] or type(coded["dict"]) is not dict:
        raise ValueError("a value is no dict of names")
    return coded["dict"]


def decode(
    coded: Json,
    arrays: Mapping[str, AnyArray],
    trusted: Sequence[str] = (),
    part: bool = False,
    unstored: Mapping[str, object] | None = None,
) -> Any:
    """Decode a value. Raises ValueError if JSON and arrays do not fit together.

    `trusted` names types inside scikit-learn estimators, besides the usual ones; `part` says that
    other parts of the value, which are not decoded, may refer to the other arrays; `unstored` are
    the fields of objects that files do not hold (code, such as a PyTorch module), by name.
    """
    decoder = _Decoder(arrays, trusted, unstored or {})
    try:
        needed = to_trust(coded, arrays)
        if others := sorted(needed - set(trusted)):
            raise ValueError(
                f"it holds {', '.join(others)}, and a forged file of these could crash the process "
                "or worse; if you trust whoever made it, load it with "
                f"trusted={sorted(needed)}"
            )
        value = decoder.decode(coded)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"a value is malformed ({error})") from error
    if decoder.left and not part:
        raise ValueError(f"nothing refers to the array {min(decoder.left)!r}")
    return value


def check(value: object) -> None:
    """Raise ValueError if a value holds objects that `decode` would refuse."""
    name = _registered_name(type(value))
    if name:
        _check_object(value, name)
        value = [getattr(value, part) for part in _stored_fields(type(value))]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            check(part)


def to_trust(coded: Json, arrays: Mapping[str, AnyArray]) -> set[str]:
    """The types that `trusted` must name for an encoded value to be decoded."""
    if not isinstance(coded, (dict, list)):
        return set()
    if isinstance(coded, dict) and list(coded) == ["classifier"]:
        name = coded["classifier"]
        if isinstance(name, str) and name in arrays and arrays[name].dtype == np.uint8:
            return set(classifiers.types(arrays[name].tobytes()))
    parts = coded.values() if isinstance(coded, dict) else coded
    return {name for part in parts for name in to_trust(part, arrays)}


def class_names(coded: Json) -> set[str]:
    """Names of the registered classes whose instances an encoded value holds."""
    if not isinstance(coded, (dict, list)):
        return set()
    parts = list(coded.values() if isinstance(coded, dict) else coded)
    names = {name for part in parts for name in class_names(part)}
    match coded:
        case {"object": [str(name), _]}:
            names.add(name)
    return names


def _encode(value: Any, name: str, arrays: Arrays) -> Json:
    kind = type(value)
    if value is None or kind in (bool, str) or (kind is int and abs(value) < INT_BOUND):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind in (list, tuple):
        coded = [_encode(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
        return coded if kind is list else {"tuple": coded}
    if kind is dict:
        return _encode_dict(value, name, arrays)
    if isinstance(value, np.generic) and value.dtype.name in TYPES:
        return {"scalar": [value.dtype.name, _encode(value.item(), name, arrays)]}
    if kind in (np.ndarray, np.memmap):
        return _encode_array(value, name, arrays)
    if CLASSES.get(registered := _registered_name(kind)) is kind:
        parts = {field: getattr(value, field) for field in _stored_fields(kind)}
        each = {field: _encode(part, f"{name}.{field}", arrays) for field, part in parts.items()}
        return {"object": [registered, each]}
    if kind is np.random.Generator:
        return {"generator": _encode(_generator_parts(value, name), name, arrays)}
    if kind is np.random.RandomState:
        state = {**value.get_state(legacy=False)}
        return {"random state": _encode(state, name, arrays)}
    if hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type):
        if (known := classifiers.known(value)) is not None:
            return {"estimator": [known[0], _encode(known[1], name, arrays)]}
        arrays[name] = np.frombuffer(classifiers.to_bytes(value), np.uint8)
        return {"classifier": name}
    raise TypeError(
        f"{name} is of type {kind.__qualname__}, which cannot be stored: only plain values, NumPy "
        "arrays, scikit-learn estimators, and dataclasses decorated with auxhash.register"
    )


def _encode_dict(value: dict[object, object], name: str, arrays: Arrays) -> Json:
    if all(type(key) is str for key in value):
        return {
            "dict": {key: _encode(part, f"{name}.{key}", arrays) for key, part in value.items()}
        }
    pairs = [list(pair) for pair in value.items()]
    return {"items": _encode(pairs, name, arrays)}


def _encode_array(array: AnyArray, name: str, arrays: Arrays) -> Json:
    array, shape = np.asarray(array), list(array.shape)
    if array.dtype == object:
        return {"objects": [shape, _encode(array.ravel().tolist(), name, arrays)]}
    if array.dtype.kind == "U":
        width = max(1, array.dtype.itemsize // 4)
        text = np.ascontiguousarray(array, dtype=f"<U{width}")
        arrays[name] = (
            text.reshape(*shape, 1).view("<u4") if text.size else np.zeros((*shape, width), "<u4")
        )
        return {"array": [name, f"<U{width}", shape, "C"]}
    if DATES.fullmatch(array.dtype.name):
        return {"dates": [array.dtype.name, _encode(array.astype(np.int64), name, arrays)]}
    if array.dtype.name not in TYPES:
        raise TypeError(f"{name} is an array of {array.dtype}, which cannot be stored")
    array = array.astype(array.dtype.newbyteorder("<"), order="K", copy=False)
    # The order in memory can change the last bit of a matrix product, and codes must not change.
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy(order="K")
    if array.flags.c_contiguous or not array.flags.f_contiguous:
        arrays[name] = np.ascontiguousarray(array).reshape(shape)
        return {"array": [name, array.dtype.name, shape, "C"]}
    arrays[name] = array.T
    return {"array": [name, array.dtype.name, shape, "F"]}


def _in_half(array: AnyArray) -> AnyArray:
    """Return the array in half precision if no number changes by that, else as it is."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore", under="ignore"):
        half = array.astype(np.float16)
    return half if np.array_equal(half, array) else array


def _check_object(value: object, name: str) -> None:
    if hasattr(value, "check_read"):
        try:
            value.check_read()
        except ValueError as error:
            raise ValueError(f"{name} is not right: {error}") from error


def _registered_name(kind: type) -> str:
    return next((name for name, cls in CLASSES.items() if cls is kind), "")


def _field_names(cls: Any) -> list[str]:
    if is_dataclass(cls):
        return [field.name for field in fields(cls) if field.init]
    return list(cls._fields)


def _stored_fields(cls: type) -> list[str]:
    """The fields that files hold."""
    return [name for name in _field_names(cls) if name not in getattr(cls, "UNSTORED", ())]


def _generator_parts(generator: np.random.Generator, name: str) -> dict[str, Json]:
    """The state, and the seed from which further generators are spawned."""
    source = generator.bit_generator
    seed = getattr(source, "seed_seq", None)
    kind = type(source).__name__
    if kind not in GENERATORS or type(seed) is not np.random.SeedSequence:
        raise TypeError(f"{name} is a Generator on {kind}, which cannot be stored")
    entropy: Any = seed.entropy
    return {
        "state": {**source.state},
        "entropy": entropy if isinstance(entropy, int) else [int(part) for part in entropy],
        "spawn_key": [int(key) for key in seed.spawn_key],
        "n_children_spawned": int(seed.n_children_spawned),
    }


class _Decoder:
    """Decoder of values; each array must be referred to exactly once."""

    def __init__(
        self,
        arrays: Mapping[str, AnyArray],
        trusted: Sequence[str],
        unstored: Mapping[str, object],
    ) -> None:
        self.left = dict(arrays)
        self.trusted, self.unstored = trusted, unstored
        self.makers: dict[str, Callable[[Json], object]] = {
            "array": self._array,
            "classifier": self._classifier,
            "dates": self._dates,
            "dict": self._dict,
            "estimator": self._estimator,
            "float": self._float,
            "generator": self._generator,
            "items": lambda pairs: dict(self.decode(pairs)),
            "object": self._object,
            "objects": self._objects,
            "random state": self._random_state,
            "scalar": self._scalar,
            "tuple": lambda parts: tuple(self.decode(part) for part in parts),
        }

    def decode(self, coded: Json) -> Any:
        if coded is None or type(coded) in (bool, int, float, str):
            return coded
        if type(coded) is list:
            return [self.decode(part) for part in coded]
        if type(coded) is not dict or len(coded) != 1:
            raise ValueError("a value does not say what it is")
        [(kind, content)] = coded.items()
        if kind not in self.makers:
            raise ValueError(f"a value is of the unknown kind {kind!r}")
        return self.makers[kind](content)

    def _take(self, name: str) -> AnyArray:
        if name not in self.left:
            raise ValueError(f"the array {name!r} is missing, or referred to twice")
        return np.array(self.left.pop(name))  # a copy, to be written to

    def _array(self, content: Json) -> AnyArray:
        name, type_name, shape, order = content
        array = self._take(name)
        if width := TEXT.fullmatch(type_name):
            array = _text(array, name, int(width[1]))
        elif order == "F":
            array = array.T
        if array.dtype == np.float16 and type_name in ("float32", "float64"):
            array = array.astype(type_name)
        actual = array.dtype.str if width else array.dtype.name
        if [actual, *array.shape] != [type_name, *shape] or order not in ("C", "F"):
            raise ValueError(
                f"the array {name!r} is {actual} of shape {array.shape} and ought to be "
                f"{type_name} of shape {tuple(shape)}"
            )
        return array

    def _classifier(self, name: str) -> object:
        data = self._take(name)
        if data.dtype != np.uint8 or data.ndim != 1:
            raise ValueError(f"the array {name!r} holds no classifier")
        return classifiers.from_bytes(data.tobytes(), self.trusted)

    def _estimator(self, content: Json) -> object:
        name, parts = content
        return classifiers.made(name, self.decode(parts))

    def _dates(self, content: Json) -> AnyArray:
        type_name, coded = content
        numbers = self.decode(coded)
        if not DATES.fullmatch(type_name) or getattr(numbers, "dtype", None) != np.int64:
            raise ValueError(f"an array of dates is of the unknown type {type_name!r}")
        dates: AnyArray = numbers.astype(type_name)
        return dates

    def _dict(self, content: dict[str, Json]) -> dict[str, object]:
        return {key: self.decode(part) for key, part in content.items()}

    def _float(self, text: Json) -> float:
        if text not in ("nan", "inf", "-inf"):
            raise ValueError(f"{text!r} is no float")
        return float(text)

    def _scalar(self, content: Json) -> object:
        type_name, number = content
        if type_name not in TYPES:
            raise ValueError(f"a number is of the unknown type {type_name!r}")
        return np.dtype(type_name).type(self.decode(number))

    def _objects(self, content: Json) -> AnyArray:
        shape, values = content
        items = self.decode(values)
        if math.prod(shape) != len(items):
            raise ValueError(f"{len(items)} objects do not fill an array of shape {tuple(shape)}")
        array = np.empty(len(items), object)
        for i, item in enumerate(items):  # one by one: lists among them would become axes
            array[i] = item
        return array.reshape(shape)

    def _object(self, content: Json) -> object:
        name, parts = content
        if name not in CLASSES:
            raise ValueError(
                f"the class {name!r} is unknown here; one of your own must be imported first"
            )
        cls = CLASSES[name]
        if more := set(parts) - set(_stored_fields(cls)):
            raise ValueError(f"{name} has no field {min(more)!r}")
        unstored = {field: self.unstored[field] for field in getattr(cls, "UNSTORED", ())}
        value = cls(**self._dict(parts), **unstored)
        _check_object(value, name)
        return value

    def _generator(self, content: Json) -> np.random.Generator:
        parts = self.decode(content)
        kind = parts["state"]["bit_generator"]
        if kind not in GENERATORS:
            raise ValueError(f"a generator is of the unknown kind {kind!r}")
        seed = np.random.SeedSequence(
            parts["entropy"],
            spawn_key=parts["spawn_key"],
            n_children_spawned=parts["n_children_spawned"],
        )
        source = getattr(np.random, kind)(seed)
        source.state = _checked_state(parts["state"])
        return np.random.Generator(source)

    def _random_state(self, content: Json) -> np.random.RandomState:
        state = np.random.RandomState()
        state.set_state(_checked_state(self.decode(content)))
        return state


def _text(array: AnyArray, name: str, width: int) -> AnyArray:
    """Text from its character codes, which are along the last axis."""
    if array.dtype != np.uint32 or not array.ndim or array.shape[-1] != width:
        raise ValueError(f"the array {name!r} holds no text of {width} characters")
    if array.max(initial=0) > LAST_CHARACTER:
        raise ValueError(f"the array {name!r} holds numbers that are no characters")
    if not array.size:
        return np.empty(array.shape[:-1], f"<U{width}")
    return array.view(f"<U{width}")[..., 0]


def _checked_state(state: dict[str, Any]) -> dict[str, Any]:
    for part in (state, state["state"]):
        for name, most in MAX_POSITIONS.items():
            if name in part and not 0 <= part[name] <= most:
                raise ValueError(f"a generator's {name} is {part[name]}, beyond {most}")
    return state
