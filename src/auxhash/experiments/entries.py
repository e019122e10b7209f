"""The methods of a comparison: what each is called, and which parameters are its own.

A name stands for a method under the settings that the comparison shares. A hasher is the user's,
and keeps every parameter of its own: only n_bits, random_state, n_jobs are set.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from auxhash.compute.checks import ArgumentError, unknown
from auxhash.compute.device import DeviceName
from auxhash.compute.imported import imported
from auxhash.compute.neighbors import Metric
from auxhash.experiments import runs
from auxhash.experiments.cells import Configuration
from auxhash.experiments.runs import PairNumbers
from auxhash.learn import baselines, paper
from auxhash.learn.estimators import PARAMETERS_WITHOUT_EFFECT, MACHash
from auxhash.learn.hasher import Hasher
from auxhash.learn.neighborhash import NeighborHash
from auxhash.mac.losses import LossLike
from auxhash.model.identity import in_words

# cut and quad are the paper's two-step methods, MACcut and MACquad start from them. MAC has our
# own Z step; MACrefined, the default of MACHash, adds refinement.
OURS: dict[str, Callable[[], Hasher]] = {
    "MACrefined": lambda: MACHash(),
    "MAC": lambda: MACHash(refine=None),
    "MACcut": paper.maccut,
    "MACquad": paper.macquad,
    "cut": paper.cut,
    "quad": paper.quad,
}
METHODS = (*OURS, *baselines.__all__)
LINEAR, NETWORK = "NeighborHash, linear", "NeighborHash, network"
BY_NAME: dict[str, Callable[[], Hasher]] = {  # not among all: they take minutes
    "MACrefined, kernels": lambda: MACHash(hash_function="rbf"),
    "MACrefined, network": lambda: MACHash(hash_function="network"),
    "NeighborHash": lambda: NeighborHash(),
    LINEAR: lambda: NeighborHash(hash_function="linear"),
    NETWORK: lambda: NeighborHash(hash_function="network"),
}
# Two-step hashing and MAC started from it, what is best, and three to be measured against.
WITH_LABELS = (
    *("cut", "MACcut", "MACrefined", "MACrefined, kernels", "MACrefined, network"),
    *("ITQ", "CCAITQ", "OneHot"),
)
SET = ("n_bits", "random_state", *PARAMETERS_WITHOUT_EFFECT)
UNUSED = SET[:2]  # of a hasher's own, which the comparison says it does not use
MAX_SHOWN_CHARACTERS = 40  # of a parameter's value

MethodLike = str | Hasher
Methods = MethodLike | Iterable[MethodLike] | Mapping[str, MethodLike]


@dataclass(frozen=True)
class Shared:
    """Settings that all methods of a comparison share, unless they have their own."""

    loss: LossLike = "ksh"
    n_similar: int | None = 100
    n_dissimilar: int | None = 500
    metric: Metric = "cosine"  # of methods that learn from neighbours

    @property
    def pairs(self) -> PairNumbers:
        return self.n_similar, self.n_dissimilar


@dataclass(frozen=True, eq=False)
class Entry:
    """One method of a comparison."""

    name: str
    hasher: Hasher  # with every parameter but those that are SET
    own: dict[str, object]  # parameters other than its class's defaults and what is shared
    pairs: PairNumbers  # drawn for each point, if it learns from pairs
    unused: dict[str, object] = field(default_factory=dict)  # given, but SET by the comparison

    def prepared(self, n_bits: int, seed: int, device: DeviceName = "cpu") -> Hasher:
        """A fresh hasher, to be fitted; on that device, if it is one that can be."""
        fresh = runs.prepared(self.hasher, n_bits, random_state=seed, n_jobs=None)
        return fresh if device == "cpu" else runs.on_device(fresh, device)

    def configuration(
        self, mark: str, n_bits: int, seed: int, device: DeviceName = "cpu"
    ) -> Configuration:
        """Everything that the result depends on."""
        fresh = self.prepared(n_bits, seed, device)
        return runs.configuration(mark, fresh, self.pairs, seed)


def known(name: str) -> Hasher:
    """The method of that name; module:function is one of the user's."""
    if ":" in name:
        own = imported(name, "a method of your own")
        own = own if isinstance(own, Hasher) else own() if callable(own) else own
        if not isinstance(own, Hasher):
            raise ArgumentError(f"{name} must be a hasher or return one, got {shown(own)}")
        return own
    if name in BY_NAME:
        return BY_NAME[name]()
    if name not in METHODS:
        raise unknown("method", name, (*METHODS, *BY_NAME), "a hasher")
    return OURS[name]() if name in OURS else getattr(baselines, name)()


def entries(methods: Methods, shared: Shared) -> list[Entry]:
    """The methods, each under a name of its own; raises for what is no method."""
    if isinstance(methods, (str, Hasher)):
        methods = [methods]
    if not isinstance(methods, Iterable):
        raise ArgumentError(f"methods must be names or hashers, got {shown(methods)}")
    if isinstance(methods, Mapping):
        if wrong := [name for name in methods if not (isinstance(name, str) and name)]:
            raise ArgumentError(f"methods must have names for keys, got {wrong[0]!r}")
        chosen = [_entry(method, shared, name) for name, method in methods.items()]
    else:
        chosen = _named_apart([(method, _entry(method, shared)) for method in methods])
    if not chosen:
        raise ArgumentError("methods must hold at least one name or hasher, got none")
    return chosen


def _entry(method: object, shared: Shared, name: str = "") -> Entry:
    if isinstance(method, str) and ":" in method:
        name, method = name or method, known(method)
    if isinstance(method, str):
        hasher = known(method)
        hasher = runs.prepared(hasher, hasher.n_bits, **vars(shared))
        return Entry(name or method, hasher, {}, shared.pairs)
    named = name or (method.__name__ if isinstance(method, type) else type(method).__name__)
    if not isinstance(method, Hasher):
        hint = (
            f": write {named}()" if isinstance(method, type) and issubclass(method, Hasher) else ""
        )
        raise ArgumentError(f"methods must be names or hashers, got {shown(method)}{hint}")
    parameters = method.get_params(deep=False)
    if "n_bits" not in parameters:
        raise ArgumentError(f"methods must have a parameter n_bits to be set, and {named} has none")
    if parameters.get("warm_start") and _is_fitted(method):
        raise ArgumentError(
            f"{named} is fitted and has warm_start=True, but methods are trained from scratch: "
            "set warm_start=False"
        )
    pairs = {"n_similar": shared.n_similar, "n_dissimilar": shared.n_dissimilar}
    usual = inspect.signature(type(method)).parameters
    chosen = [n for n in pairs if n in parameters and parameters[n] != usual[n].default]
    try:  # pairs that are not the hasher's own are those of all
        others = {n: value for n, value in pairs.items() if n not in chosen}
        hasher = runs.prepared(method, parameters["n_bits"], **others)
    except Exception as error:
        raise ArgumentError(f"{named} cannot be copied to be trained: {error}") from error
    if runs.learns_from_pairs(hasher):
        pairs |= {n: parameters[n] for n in chosen}
    changed = _changed(hasher, shared)
    own = {name: value for name, value in changed.items() if name not in SET}
    unused = {name: changed[name] for name in changed if name in UNUSED}
    return Entry(named, hasher, own, (pairs["n_similar"], pairs["n_dissimilar"]), unused)


def _changed(hasher: Hasher, shared: Shared) -> dict[str, object]:
    """Parameters other than the defaults and what is shared, in the order of the signature."""
    values = hasher.get_params(deep=False)
    signature = inspect.signature(type(hasher)).parameters
    usual = {name: parameter.default for name, parameter in signature.items()} | vars(shared)
    return {
        name: values[name]
        for name in signature
        if name in values and in_words(values[name]) != in_words(usual[name])
    }


def _named_apart(methods: list[tuple[MethodLike, Entry]]) -> list[Entry]:
    """The entries under distinct names: with parameters that differ and, if needed, a number."""
    texts = Counter(method for method, _ in methods if isinstance(method, str))
    if twice := [name for name, times in texts.items() if times > 1]:
        raise ArgumentError(f"methods must be named once each, got {twice[0]!r} twice")
    alike: dict[str, list[Entry]] = {}
    for _, entry in methods:
        alike.setdefault(entry.name, []).append(entry)
    taken = set(texts)
    apart = []
    for method, entry in methods:
        name = entry.name
        if not isinstance(method, str):
            if special := _special(entry, alike[name]):
                name = f"{name}({in_short(special)})"
            numbers = (f"{name} #{number}" for number in range(2, len(methods) + 2))
            name = name if name not in taken else next(n for n in numbers if n not in taken)
            taken.add(name)
        apart.append(replace(entry, name=name))
    return apart


def _special(entry: Entry, alike: list[Entry]) -> dict[str, object]:
    """Own parameters of an entry that not all of these have with the same value."""
    nothing = object()
    return {
        name: value
        for name, value in entry.own.items()
        if any(in_words(other.own.get(name, nothing)) != in_words(value) for other in alike)
    }


def _is_fitted(hasher: Hasher) -> bool:
    try:
        check_is_fitted(hasher)
    except Exception:
        return False
    return True


def in_short(parameters: Mapping[str, object]) -> str:
    """Parameters as they would be written in a call, long values cut off."""
    return ", ".join(f"{name}={shown(value)}" for name, value in parameters.items())


def shown(value: object) -> str:
    """A value as text, cut off if it is long."""
    if isinstance(value, partial):
        parts = [shown(part) for part in (value.func, *value.args)]
        text = f"partial({', '.join([*parts, *filter(None, [in_short(value.keywords)])])})"
    elif isinstance(value, np.ndarray):
        text = f"{value.dtype} array {value.shape}"
    elif isinstance(value, tuple):
        text = f"({', '.join(map(shown, value))})"
    elif hasattr(value, "__name__"):  # a function, a class
        text = value.__name__
    elif repr(value) == object.__repr__(value):  # which tells nothing but an address
        text = f"{type(value).__name__}()"
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 3]}..."
