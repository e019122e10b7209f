"""`Model`: a learnt hash function as a value, with all that encoding, searching and serving need.

Estimators are how a model is learnt: each keeps one in `model_`, and its codes are the model's. The
value holds no points, codes or labels that it was learnt from, and needs no scikit-learn unless its
hash function is a classifier of scikit-learn.

`fingerprint` says which codes can be compared. It is a digest of whatever decides the bits of a
given X: the hash function with its scaling, the weights in their order. Fields of hash functions
that matter for training alone (`TRAINING_ONLY`: C, decay, dropout, seeds) do not count, and neither
do the names of the features, n_jobs or what the model was learnt from. Of a scikit-learn classifier
all that is stored counts; of a PyTorch module the weights, and not its code.

A file (`modelfile`) holds the value, under "model", and, if an estimator wrote it, the estimator
beside it. `Model.load` reads the former alone.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, Codes, Packed, n_bytes, sign
from auxhash.compute import checks, context
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.compute.fingerprint import checked as checked_fingerprint
from auxhash.compute.neighbors import Metric
from auxhash.compute.registry import register
from auxhash.compute.version import __version__
from auxhash.files.feature import GIST_SIDES, is_feature
from auxhash.mac.hashfunctions.protocol import HashFunction, is_shared, is_smooth, with_defaults
from auxhash.mac.hashfunctions.step import (
    NotFiniteError,
    OfChunk,
    decided,
    encoded,
    outputs,
    packed,
)
from auxhash.model import encoding, modelfile
from auxhash.model import points as checked
from auxhash.model.modelfile import StoredModel
from auxhash.model.tables import VALUES_PER_BYTE, TableFunction
from auxhash.search.expected import ExpectedRecall

KIND = "Model"  # of a file that holds a value and no estimator
PART = "model"  # of a file: the names of a value's arrays begin so
MAX_FEATURES = 1 << 22  # with more, trying a model out would take too much memory
CODES_PER_CHUNK = 1 << 16  # whose bits are counted at a time
METRICS = (None, "cosine", "euclidean")


class NeedsEstimatorError(ValueError):
    """A file of format 1 from which only the estimator can make a model."""


@register("LearntFrom")
@dataclass(frozen=True, eq=False)
class LearntFrom:
    """The origin of a model: how, and from how many points, but none of them."""

    method: str  # the class of the estimator
    n_points: int
    data: str  # a digest of the points and labels
    parameters: Mapping[str, Any] = field(default_factory=dict)  # in short: plain values, or text
    loss: float | None = None  # L(h) on the training affinities
    balance: Array | None = None  # (n_bits,): share of the training points with +1, per bit
    utilization: float | None = None  # effective bits of the codes of the training points
    expected: Sequence[ExpectedRecall] = ()  # of held-out points, by the number searched

    def check_read(self) -> None:
        for name in ("method", "data"):
            if type(getattr(self, name)) is not str:
                raise ValueError(f"{name} must be text, got {getattr(self, name)!r}")
        checks.integer("n_points", self.n_points, 0)
        for name in ("loss", "utilization"):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), -np.inf)
        if self.balance is not None:
            checks.numbers("balance", self.balance, 1)
        if type(self.parameters) is not dict:
            raise ValueError(f"parameters must be a dict, got {self.parameters!r}")
        if not all(isinstance(each, ExpectedRecall) for each in self.expected):
            raise ValueError(f"expected must be recall, got {self.expected!r}")


@register(KIND)
@dataclass(frozen=True, eq=False)
class Model:
    """A learnt hash function: points in, codes out.

    Attributes:
        hash_function: what computes the outputs; see `auxhash.hashfunctions`.
        n_bits, n_features: of a code and of a point.
        learnt: what it was learnt from.
        feature_names: of the columns, if they had names.
        image_feature: how the points were computed from pictures, if they were.
        metric: that the codes were learnt for, if it is one of neighbours.
        prefixes: lengths at which the first bits are a code of their own.
        table_function: what makes tables of queries, if it was learnt.
        made_for: fingerprint of the codes of another model that these codes are comparable with.
        version: of auxhash, that it was learnt with.
        n_jobs: threads; None takes every core that this process may use. No file holds it.
    """

    hash_function: HashFunction
    n_bits: int
    n_features: int
    learnt: LearntFrom
    feature_names: tuple[str, ...] | None = None
    image_feature: str | None = None
    metric: Metric | None = None
    prefixes: tuple[int, ...] = ()
    table_function: TableFunction | None = None
    made_for: str | None = None
    version: str = __version__
    n_jobs: int | None = None

    UNSTORED: ClassVar[tuple[str, ...]] = ("n_jobs",)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of whatever decides the bits: codes with the same one can be compared.

        Of a model that was made for the codes of another one, that of the other.
        """
        return self.made_for or encoding.fingerprint(self.hash_function)

    def decision_function(self, X: ArrayLike) -> Array:
        """Real-valued outputs (n, n_bits); a bit is +1 where its output is not negative."""
        with context.using(n_jobs=self.n_jobs):
            if not devices.on_processor(X):
                decisions: Array = devices.like(X, decided(*self._on_gpu(X)))
                return decisions
            points = self._points(X)
            checked.check_finite(points)
            return self.decide(points)

    def transform(self, X: ArrayLike) -> Codes:
        """Codes (n, n_bits), int8 in {-1, +1}."""
        codes: Codes = devices.like(X, sign(devices.native(self.decision_function(X))))
        return codes

    def encode(self, X: ArrayLike) -> Packed:
        """Packed codes (n, ceil(n_bits / 8)), uint8: bit k at byte k // 8, bit k % 8.

        X is encoded chunk by chunk: it may be a memory map larger than memory, and bytes, half or
        single precision are not copied. Points on a GPU, CuPy's or PyTorch's, get codes there, as
        they do from `transform` and `decision_function`; the processor makes them where the hash
        function is none that a GPU could compute.
        """
        with context.using(n_jobs=self.n_jobs):
            if not devices.on_processor(X):
                codes: Packed = devices.like(X, packed(*self._on_gpu(X)))
                return codes
            points = self._points(X)
            try:
                return encoded(self.hash_function, points, finite=False)
            except NotFiniteError:
                checked.check_finite(points)  # says in which row
                raise

    def tables(self, Q: ArrayLike) -> NDArray[np.float32]:
        """Tables of queries, (m, ceil(n_bits / 8), 256): what each byte adds to the distance."""
        if self.table_function is None:
            raise ValueError(
                f"this model of {self.learnt.method} has learnt no tables of queries: search by "
                "codes (encode) or by outputs (decision_function), or let NeighborHash learn them "
                "(query_function)"
            )
        with context.using(n_jobs=self.n_jobs):
            points = self._points(Q)
            checked.check_finite(points)
            return self.table_function.tables(points)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the value to a file, for `Model.load` and `auxhash.load`; no estimator with it."""
        self.check_read()
        write(path, self.stored(), stacklevel=3)

    def stored(self) -> StoredModel:
        """Return the content of its file."""
        coded, arrays = encoding.encode(self, PART)
        return StoredModel(KIND, {"dict": {PART: coded}}, arrays)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        trusted: Sequence[str] = (),
        unstored: Mapping[str, object] | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Read the model in a file, and nothing else: not the estimator, nor its training codes.

        Args:
            trusted: as for `auxhash.load`.
            unstored: the fields of hash functions that no file holds (code), by name.
            n_jobs: threads that it will use.

        Raises as `auxhash.load` does, and for files of format 1 that hold a baseline, which need
        the estimator: `auxhash.load(path).model_`.
        """
        stored = modelfile.read(path, f"{PART}.")
        with modelfile.reading(path, stored):
            return cls.stored_in(stored, trusted, {**(unstored or {}), "n_jobs": n_jobs})

    @classmethod
    def stored_in(
        cls, stored: StoredModel, trusted: Sequence[str], unstored: Mapping[str, object]
    ) -> Self:
        """Return the model that a file holds; raises ValueError if it is not valid."""
        check_module(stored, unstored)
        content = encoding.parts(stored.content)
        from auxhash.model import functions  # noqa: F401  registers what a model may hold

        if PART not in content:
            return cls._old(stored, trusted, unstored)
        arrays = {name: a for name, a in stored.arrays.items() if name.startswith(f"{PART}.")}
        model = encoding.decode(content[PART], arrays, trusted, unstored=unstored)
        if type(model) is not cls:
            raise ValueError(f"it holds {type(model).__name__} in the place of a model")
        return model

    @classmethod
    def _old(cls, stored: StoredModel, trusted: Sequence[str], unstored: Mapping[str, Any]) -> Self:
        """Return the model in a file of format 1, which holds an estimator."""
        content = encoding.parts(stored.content)
        parameters, learnt = (encoding.parts(content[part]) for part in ("parameters", "learnt"))
        if "hash_function_" not in learnt:
            raise NeedsEstimatorError(
                f"it is of format 1 and holds {stored.kind!r}: auxhash.load(path).model_ reads it"
            )

        def read(part: Mapping[str, encoding.Json], name: str) -> Any:
            return encoding.decode(part.get(name), stored.arrays, trusted, True, unstored)

        names = read(learnt, "feature_names_in_")
        plain = {k: v for k, v in parameters.items() if not isinstance(v, (dict, list))}
        codes = read(learnt, "codes_")
        model = cls(
            read(learnt, "hash_function_"),
            read(parameters, "n_bits"),
            read(learnt, "n_features_in_"),
            LearntFrom(
                stored.kind,
                len(codes),
                read(learnt, "fingerprint_"),
                plain,
                read(learnt, "loss_"),
                *about_codes(codes, int(read(parameters, "n_bits"))),
            ),
            None if names is None else tuple(names),
            read(learnt, "image_feature_"),
            read(parameters, "metric"),
            version=stored.package,
            n_jobs=unstored.get("n_jobs"),
        )
        model.learnt.check_read()
        model.check_read()
        return model

    def export_onnx(
        self,
        path: str | os.PathLike[str],
        dtype: Literal["float32", "float64"] = "float32",
    ) -> None:
        """Write it as an ONNX graph; see `auxhash.export_onnx`."""
        from auxhash.model.onnxgraph import export_onnx

        export_onnx(self, path, dtype)

    # Names that fitted estimators have, so that either serves where codes are made.

    @property
    def n_features_in_(self) -> int:
        return self.n_features

    @property
    def feature_names_in_(self) -> AnyArray | None:
        return None if self.feature_names is None else np.array(self.feature_names, object)

    @property
    def image_feature_(self) -> str | None:
        return self.image_feature

    def decide(self, points: AnyArray) -> Array:
        """Return the outputs of points that were checked."""
        return decided(lambda chunk: outputs(self.hash_function, chunk), points)

    def _points(self, X: ArrayLike) -> AnyArray:
        if is_shared(self.hash_function) and np.ndim(X) > 2:
            return checked.pictures(X, finite=False)
        return checked.rows(X, self.n_features, self.feature_names, self.learnt.method)

    def _on_gpu(self, X: ArrayLike) -> tuple[OfChunk, AnyArray]:
        """Return a function for the outputs of a chunk on the GPU, and X, checked, as CuPy's.

        Without a hash function that a GPU can compute, the processor computes the outputs.
        """
        points, h = devices.native(X), self.hash_function
        device = devices.of(points)

        def fetched(chunk: AnyArray) -> Any:
            return device.put(outputs(h, device.fetch(chunk)))

        if is_shared(h) and points.ndim > 2:
            return fetched, points
        if not len(points):
            raise ValueError("X must hold at least one point, got none")
        checked.rows(np.zeros((1, *points.shape[1:])), self.n_features, None, self.learnt.method)
        if not np.isfinite(points).all():
            raise ValueError("X must not hold NaN or infinity")
        if not is_smooth(h) or is_shared(h):
            return fetched, points
        there = device.carry(h)
        return lambda chunk: outputs(there, chunk), points

    def check_read(self) -> None:
        """Raise ValueError unless the parts are valid and fit together: it encodes."""
        checks.integer("n_bits", self.n_bits, 1, MAX_BITS)
        if type(self.n_features) is not int or not 1 <= self.n_features <= MAX_FEATURES:
            raise ValueError(f"n_features_in_ is not right: {self.n_features!r}")
        names = self.feature_names
        if names is not None and not all(type(name) is str for name in names):
            raise ValueError("feature_names must be text")
        if names is not None and len(names) != self.n_features:
            raise ValueError(f"it has {len(names)} feature names for {self.n_features} features")
        image = self.image_feature
        if image is not None and not (type(image) is str and is_feature(image)):
            raise ValueError(
                f'image_feature_ must be "gist:SIDE" with a side from {GIST_SIDES[0]} to '
                f'{GIST_SIDES[-1]}, or "module:function", got {image!r}'
            )
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {METRICS}, got {self.metric!r}")
        checked_fingerprint("made_for", self.made_for)
        self._check_tables()
        if not isinstance(self.learnt, LearntFrom) or type(self.version) is not str:
            raise ValueError("it does not say what it was learnt from, or by which version")
        self._try_out()

    def _check_tables(self) -> None:
        """Raise unless prefixes and tables are those of the codes."""
        if type(self.prefixes) is not tuple:
            raise ValueError(f"prefixes must be a tuple, got {self.prefixes!r}")
        for bits in self.prefixes:
            if checks.integer("prefixes", bits, 8, self.n_bits) % 8:
                raise ValueError(f"prefixes must be multiples of 8, got {bits}")
        if self.table_function is None:
            return
        if not isinstance(self.table_function, TableFunction):
            raise ValueError(f"table_function is a {type(self.table_function).__name__}")
        tables = self.table_function.tables(np.zeros((2, self.n_features)))
        if tables.shape != (2, n_bytes(self.n_bits), VALUES_PER_BYTE):
            raise ValueError(f"its tables are of shape {tables.shape} for 2 queries")

    def _try_out(self) -> None:
        """Raise unless outputs are of the right shape and type."""
        for n in (1, 2):  # a part of a wrong shape could be stretched to one of them, not to both
            blank = with_defaults(self.hash_function).blank(n)
            with np.errstate(all="ignore"):
                Y = self.decide(np.zeros((n, self.n_features)) if blank is None else blank)
            if Y.shape == (n, Y.size // n) and Y.size != n * self.n_bits:
                raise ValueError(
                    f"n_bits is {self.n_bits}, but it was fitted to {Y.size // n} bits"
                )
            if Y.shape != (n, self.n_bits) or Y.dtype != np.float64:
                raise ValueError(f"its outputs are of shape {Y.shape} for {n} points")


def write(path: str | os.PathLike[str], stored: StoredModel, stacklevel: int) -> None:
    """Write a model file, and warn if whoever loads it will have to trust it."""
    modelfile.write(path, stored)
    if trusted := sorted(encoding.to_trust(stored.content, stored.arrays)):
        warnings.warn(
            f"{os.fspath(path)} holds a scikit-learn estimator that auxhash cannot check; "
            f"whoever loads it has to say auxhash.load(..., trusted={trusted})",
            stacklevel=stacklevel,
        )


def check_module(stored: StoredModel, unstored: Mapping[str, object]) -> None:
    """Raise ValueError if a file needs a PyTorch module that is not given."""
    if "ModuleHash" in encoding.class_names(stored.content) and "module" not in unstored:
        raise ValueError(
            "it holds the weights of a PyTorch module, and not the module itself, which is code: "
            "give it, as in auxhash.load(path, module=...)"
        )


def about_codes(codes: Packed, n_bits: int) -> tuple[Array | None, float | None]:
    """Return balance and utilization of packed codes; None each without any."""
    from auxhash.search.metrics import code_utilization

    if not len(codes):
        return None, None
    counts = np.zeros(n_bits, np.int64)
    for at in range(0, len(codes), CODES_PER_CHUNK):
        chunk = codes[at : at + CODES_PER_CHUNK]
        counts += np.unpackbits(chunk, axis=1, count=n_bits, bitorder="little").sum(0, np.int64)
    return counts / len(codes), code_utilization(codes)
