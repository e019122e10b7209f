"""Models and a map of the handwritten digits that the page shows, learnt once and kept in a file.

One run gives three linear hash functions: the two-step solution, where it starts; MAC's, before the
refinement; and the refined one. All its steps are kept, with Z and h(X), so that the page can show
how the two come together. Kernels and a network are learnt beside it.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auxhash.codes import Packed, n_bytes, pack, sign
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray, Array
from auxhash.compute.random import generator
from auxhash.compute.version import __version__
from auxhash.experiments.datasets.dataset import Dataset
from auxhash.files.writing import destination
from auxhash.learn.estimators import MACHash
from auxhash.learn.macmap import MACMap
from auxhash.learn.smooth import Refine
from auxhash.learn.training import Settings, Training
from auxhash.learn.training.run import N_GENERATORS
from auxhash.learn.training.validation import TrainingPoints
from auxhash.mac import hashfunctions, loop, zstep
from auxhash.mac.hashfunctions import HashFunction
from auxhash.mac.loop import State, Step
from auxhash.model import modelfile
from auxhash.model.encoding import decode, encode
from auxhash.model.identity import in_words
from auxhash.model.modelfile import StoredModel

N_BITS = 16
PAIRS: dict[str, Any] = {"n_similar": 20, "n_dissimilar": 100}
# Free codes near their optimum, so that two-step hashing is shown at its best; MAC to its end.
FREE: dict[str, Any] = {"start": "bitwise", "max_sweeps": 5, "tol": None}
# Kernels and network start near what they end with: a short path and a short refinement will do.
SHORT: dict[str, Any] = {"max_iter": 4, "refine": Refine(n_steps=300, keep="refined")}
NAMES = ("two-step", "mac", "refined", "kernels", "network")
KIND = "Show"  # in the file
MAP: dict[str, Any] = {"mapping": "rbf", "alpha": 2.0}


@dataclass(frozen=True, eq=False)
class Learnt:
    """Hash functions by name, the steps of the linear ones, and a map for any picture."""

    functions: dict[str, HashFunction]
    steps: list[Step]
    Z: Packed  # (steps, n_base, n_bytes): after each step
    H: Packed  # h(X), likewise
    queries: Packed  # (steps, n_query, n_bytes): the queries' codes after each step
    mapping: HashFunction  # whose two outputs are a picture's place on the map

    def check(self, data: Dataset) -> None:
        """Raise ValueError unless the parts are of the shapes that this data set gives."""
        n, q, width = len(data.base), len(data.query), n_bytes(N_BITS)
        wanted: dict[str, tuple[AnyArray, tuple[int, ...]]] = {
            "Z": (self.Z, (len(self.steps), n, width)),
            "H": (self.H, (len(self.steps), n, width)),
            "queries": (self.queries, (len(self.steps), q, width)),
            "mapping": (outputs_of(self.mapping, data.query.X), (q, 2)),
        }
        for name, (array, shape) in wanted.items():
            if array.shape != shape:
                raise ValueError(f"{name} is of shape {array.shape}, not {shape}")
        if tuple(self.functions) != NAMES or not self.steps:
            raise ValueError("it does not hold what the page shows")


def kept(data: Dataset, seed: int, folder: Path) -> Learnt:
    """Result for a data set, read from a file in the folder; if there is none, learnt and written.

    A file of other settings is replaced, and so is a damaged one, with a warning. Where no file can
    be written, a warning says so.
    """
    path = folder / "show" / f"{data.name}-{len(data.base)}-{seed}.safetensors"
    identity = _identity(data, seed)
    before = _read(path, identity, data)
    if before is not None:
        return before
    learnt = learn(data, seed)
    coded, arrays = encode({"identity": identity, **vars(learnt)}, KIND)
    try:
        destination(path)
        modelfile.write(path, StoredModel(KIND, coded, arrays))
    except OSError as error:
        warnings.warn(f"what was learnt is not kept: {error}", stacklevel=2)
    return learnt


def _read(path: Path, identity: str, data: Dataset) -> Learnt | None:
    """Result in a file; None if there is none, or it is of other data, settings or version."""
    try:
        stored = modelfile.read(path)
        content = decode(stored.content, stored.arrays)
        if content.pop("identity") != identity:
            return None
        learnt = Learnt(**content)
        learnt.check(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        warnings.warn(f"{path} cannot be used, and is made again: {error}", stacklevel=3)
        return None
    return learnt


def _identity(data: Dataset, seed: int) -> str:
    """Everything that the result depends on."""
    points = [data.name, data.base.X, data.base.y, data.query.X]
    return in_words([points, seed, N_BITS, PAIRS, FREE, SHORT, NAMES, MAP, __version__])


@threads.one_blas_thread()
def learn(data: Dataset, seed: int) -> Learnt:
    """Learn everything; the base is the training set. The same seed gives the same bytes."""
    if len(data.train) != len(data.base):
        raise ValueError("the page shows the codes of training points: train must be the base")
    X, y = data.base.X.astype(np.float64), np.asarray(data.base.y)
    path = _path(X, y, seed)
    two_step, refined = path[0][1].h, path[-1][1].h
    _, lowest = loop.lowest((step, state) for step, state in path if step.mu < np.inf)
    functions = {"two-step": two_step, "mac": lowest.h, "refined": refined}
    for name, kind in (("kernels", "rbf"), ("network", "network")):
        hasher = MACHash(N_BITS, hash_function=kind, **PAIRS, **FREE, **SHORT, random_state=seed)
        functions[name] = hasher.fit(X, y).hash_function_
    return Learnt(
        functions,
        [step for step, _ in path],
        np.stack([pack(state.Z) for _, state in path]),
        np.stack([pack(state.H) for _, state in path]),
        np.stack([codes_of(state.h, data.query.X) for _, state in path]),
        MACMap(**MAP, random_state=seed).fit(X).mapping_,
    )


def codes_of(h: HashFunction, X: AnyArray) -> Packed:
    """The packed codes (n, n_bytes) of raw points X (n, D), as an estimator with h gives them."""

    return pack(sign(outputs_of(h, X)))


def outputs_of(h: HashFunction, X: AnyArray) -> Array:
    """The outputs of h for raw points X (n, D): of the mapping, their places (n, 2)."""

    def outputs(chunk: AnyArray) -> Array:
        return hashfunctions.outputs(h, chunk)

    return hashfunctions.decided(outputs, np.asarray(X, np.float64))


def _path(X: Array, y: AnyArray, seed: int) -> list[tuple[Step, State]]:
    """The steps of MACHash(N_BITS, **PAIRS, **FREE), which is linear, each with its state."""
    settings = Settings(
        N_BITS,
        "ksh",
        loop.MAC(zstep.get("descent"), **FREE),
        hashfunctions.linear(),
        **PAIRS,
        refine="auto",
        tol=FREE["tol"],
    )
    generators = generator(seed).spawn(N_GENERATORS)
    return list(Training(settings, TrainingPoints(X, y, None), generators).steps())
