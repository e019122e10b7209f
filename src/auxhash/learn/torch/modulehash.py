"""Any PyTorch module as a hash function."""

import copy
import os
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch

from auxhash.codes import Codes
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, Array, Matrix, Numbers
from auxhash.compute.registry import register
from auxhash.learn.torch import learning
from auxhash.learn.torch.learning import (
    Augment,
    Batches,
    LossName,
    OptimizerName,
    Place,
    ScheduleName,
    ToInput,
)
from auxhash.learn.torch.smooth import SmoothModule
from auxhash.mac.hashfunctions import BaseHash
from auxhash.model.encoding import TYPES

ModuleState = dict[str, AnyArray]  # a module's state_dict, as NumPy's arrays
FIRST_EPOCHS, MORE_EPOCHS = 20, 5  # of the first h step, and of each later one
MIN_STEPS = 200  # of an h step, where points are few
SETTINGS = (
    *("loss", "epochs", "more_epochs", "batch", "rate", "decay", "optimizer", "schedule", "half"),
    *("augment", "to_input"),
)
# Attributes of a module that its identity covers by its weights and its parts.
HASHED_SEPARATELY = ("_parameters", "_buffers", "_modules")


@register("ModuleHash")
@dataclass(frozen=True, eq=False)  # arrays and modules have no equality of one value
class ModuleHash(BaseHash):
    """h(x) = sign(module(x)), for a `torch.nn.Module` that maps a batch to n_bits real outputs.

    The h step trains all bits together on the codes Z, from the weights of the last iteration on;
    refinement trains the same weights on the loss or the rank. The module given is copied and never
    changed; its weights are where training starts, its device is where all is computed.

    Bits share layers, so that no bit can keep its old classifier alone: the h step takes the newly
    trained module if it misclassifies no more entries of Z in all, and the old one otherwise. So
    the h step never raises L_P.

    Args:
        module: the module. It sees batches (n, ...) of X on its device, as `to_input` gives them.
        loss: of the h step: "logistic", or "hinge", its square as in the SVM.
        epochs: rounds over the points in the first h step, which starts from the module's own
            weights. None takes 20, or as many as make 200 steps where points are few.
        more_epochs: rounds in each later h step. None takes 5, or as many as make 200 steps.
        batch: points per step of the h step.
        rate: length of the steps (the learning rate), the longest of a cycle.
        decay: weight decay, of weights but not of biases.
        optimizer: "adamw", or "sgd" with momentum.
        schedule: "one-cycle": the length of the steps rises in the first quarter, then falls to 0
            along a cosine, in each h step and in the refinement; or "constant".
        half: whether training computes in bfloat16 where that is safe (autocast); encoding never
            does.
        augment: a function of a raw batch and a `torch.Generator` on its device, which returns the
            batch, changed at random; in training only. See `auxhash.torch.augment`.
        to_input: a function of a raw batch that returns what the module takes. None takes pictures
            of bytes, (n, h, w, c) or (n, h, w), as numbers from 0 to 1 with channels first, and all
            else as it is.

    What training sets: `shape` and `bytes_` of the points, `seed`, `n_refits`, `state` (the
    weights) and `input_by` (the name of `to_input`).
    """

    module: torch.nn.Module
    loss: LossName = "logistic"
    epochs: int | None = None
    more_epochs: int | None = None
    batch: int = 256
    rate: float = 1e-3
    decay: float = 0.01
    optimizer: OptimizerName = "adamw"
    schedule: ScheduleName = "one-cycle"
    half: bool = False
    augment: Augment | None = None
    to_input: ToInput | None = None
    shape: tuple[int, ...] | None = None
    bytes_: bool = False
    seed: int = 0
    n_refits: int = 0
    state: ModuleState | None = None
    input_by: str = ""

    UNSTORED: ClassVar[tuple[str, ...]] = ("module", "augment", "to_input")
    TRAINING_ONLY: ClassVar[tuple[str, ...]] = (
        *("loss", "epochs", "more_epochs", "batch", "rate", "decay", "optimizer", "schedule"),
        *("half", "seed", "n_refits"),
    )
    shared = True

    def __post_init__(self) -> None:
        if not isinstance(self.module, torch.nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, got {type(self.module).__name__}")
        checks.one_of("loss", self.loss, learning.LOSSES)
        for name in ("epochs", "more_epochs"):
            if getattr(self, name) is not None:
                checks.integer(name, getattr(self, name), 0, instead=" or None")
        checks.integer("batch", self.batch, 1)
        checks.number("rate", self.rate, 0, strict=True)
        checks.number("decay", self.decay, 0)
        checks.one_of("optimizer", self.optimizer, learning.OPTIMIZERS)
        checks.one_of("schedule", self.schedule, learning.SCHEDULES)
        checks.flag("half", self.half)
        for name in ("augment", "to_input"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function, got {getattr(self, name)!r}")

    def check_read(self) -> None:
        checks.integer("seed", self.seed, 0)
        checks.integer("n_refits", self.n_refits, 0)
        checks.flag("bytes_", self.bytes_)
        if self.state is None:
            return
        if not (
            isinstance(self.shape, tuple) and all(type(n) is int and n > 0 for n in self.shape)
        ):
            raise ValueError(f"shape must be one of points, got {self.shape!r}")
        if self.input_by != _name(self.to_input):
            raise ValueError(
                f"it was learnt with to_input={self.input_by or None}, and is given "
                f"{_name(self.to_input) or None}: load it with "
                "module=ModuleHash(module, to_input=...)"
            )
        _check_state(self.state)
        _check_fit(self.state, _arrays(self.module))

    # A hash function of auxhash.

    def prepare(self, X: AnyArray, rng: np.random.Generator) -> "ModuleHash":
        """Return a copy with the module's own weights, for points of the shape of X."""
        return replace(
            self,
            shape=X.shape[1:],
            bytes_=X.dtype == np.uint8,
            seed=int(rng.integers(1 << 62)),
            n_refits=0,
            state=_arrays(self.module),
            input_by=_name(self.to_input),
        )

    def features(self, X: AnyArray) -> AnyArray:
        """X itself: the module learns features of its own."""
        if self.shape is None:
            raise ValueError("the hash function is not prepared")
        if X.shape[1:] != self.shape or (X.dtype == np.uint8) != self.bytes_:
            kind = "uint8" if self.bytes_ else "floats"
            wanted = ", ".join(str(n) for n in ("n", *self.shape))
            raise ValueError(
                f"X must be {kind} of shape ({wanted}), as the points learnt from; got {X.dtype} "
                f"of shape {X.shape}"
            )
        return X

    def check_bits(self, F: Matrix, n_bits: int) -> None:
        try:
            outputs = self._encoded(F[:2])
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"module cannot compute outputs for points of shape {F.shape[1:]}: {reason}"
            ) from error
        if outputs.shape != (len(F[:2]), n_bits):
            raise ValueError(
                f"module must give {n_bits} outputs per point (n_bits), got an array of shape "
                f"{outputs.shape} for {len(F[:2])} points"
            )

    def refit(self, F: Any, Z: Codes, bits: Numbers, weight: Array | None = None) -> "ModuleHash":
        """Train all bits, whichever are asked for: they share their layers."""
        module = self.trained_module()
        epochs = self._epochs(len(F))
        seed = (self.seed + self.n_refits) % (1 << 62)
        if epochs:
            learning.learn_codes(module, F, Z, weight, self, epochs, seed)
        return replace(self, state=_learnt(module), n_refits=self.n_refits + 1)

    def take(self, other: "ModuleHash", bits: Numbers) -> "ModuleHash":
        raise TypeError("the bits of a module share layers: none can be taken from another module")

    def decision(self, F: Any) -> Array:
        outputs = self._encoded(F).astype(np.float64)
        if outputs.ndim != 2:
            raise ValueError(f"module must give outputs (n, n_bits), got shape {outputs.shape}")
        return outputs

    def smooth(self, F: AnyArray, rng: np.random.Generator) -> SmoothModule:
        """Return a copy of the module to refine; it computes on its own device."""
        return SmoothModule(self.trained_module(), F, self, rng)

    def moved(self, weights: list[Array]) -> "ModuleHash":
        names = self._fitted()
        state = dict(zip(names, weights, strict=True))
        _check_state(state)
        return replace(self, state=state)

    def blank(self, n: int) -> AnyArray:
        if self.shape is None:
            raise ValueError("the hash function is not prepared")
        return np.zeros((n, *self.shape), np.uint8 if self.bytes_ else np.float64)

    def go_on_from(self, learnt: "ModuleHash") -> "ModuleHash":
        learnt_fields = ("shape", "bytes_", "seed", "n_refits", "state", "input_by")
        return replace(self, **{name: getattr(learnt, name) for name in learnt_fields})

    def export_onnx(self, path: str | os.PathLike[str], n_bits: int, dtype: str) -> bool:
        """Write the module, from raw points to packed codes, as `auxhash.export_onnx` does."""
        from auxhash.learn.torch.export import export  # PyTorch's exporter is slow to import

        export(self, n_bits, path, dtype)
        return True

    # The module and its identity.

    def trained_module(self) -> torch.nn.Module:
        """A copy of the module with the weights learnt, for use in PyTorch."""
        module = copy.deepcopy(self.module)
        tensors = {name: torch.from_numpy(np.array(a)) for name, a in self._fitted().items()}
        module.load_state_dict(tensors)
        return module.eval()

    def identity_parts(self) -> list[object]:
        """List what training depends on: settings, weights, and the code of the module."""
        settings = [
            getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("module", "state")
        ]
        inner = [
            (name, type(part), {k: v for k, v in vars(part).items() if k not in HASHED_SEPARATELY})
            for name, part in self.module.named_modules()
        ]
        trained = [p.requires_grad for p in self.module.parameters()]
        return [settings, inner, trained, _arrays(self.module), self.state]

    def __repr__(self) -> str:
        own = [field for field in fields(self) if field.name in SETTINGS]
        settings = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in own
            if getattr(self, field.name) != field.default
        ]
        return f"ModuleHash({', '.join([type(self.module).__name__, *settings])})"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_ready"}

    def _epochs(self, n: int) -> int:
        """Rounds over n points in the next h step."""
        epochs, least = self.epochs, FIRST_EPOCHS
        if self.n_refits:
            epochs, least = self.more_epochs, MORE_EPOCHS
        if epochs is not None:
            return epochs
        return max(least, -(-MIN_STEPS // learning.steps_per_epoch(n, self.batch)))

    def _fitted(self) -> ModuleState:
        if self.state is None:
            raise ValueError("the hash function is not fitted")
        return self.state

    def _encoded(self, F: AnyArray) -> AnyArray:
        module = vars(self).get("_ready")
        if module is None:  # made once; nothing trains it
            module = self.trained_module()
            object.__setattr__(self, "_ready", module)
        return learning.encoded(module, Batches(F, Place.of(module)), slice(None), self)


def _name(function: ToInput | None) -> str:
    if function is None:
        return ""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _arrays(module: torch.nn.Module) -> ModuleState:
    """The state of a module, as NumPy's arrays."""
    arrays = {}
    for name, tensor in module.state_dict().items():
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"module has no shape for {name} yet: run a batch through it first")
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"module keeps {name}, which is no tensor and cannot be stored")
        kind = str(tensor.dtype).removeprefix("torch.")
        if kind not in TYPES:
            raise TypeError(
                f"{name} of the module is {kind}, which cannot be stored: keep weights in float32 "
                "(half=True computes in bfloat16 all the same)"
            )
        arrays[name] = tensor.detach().cpu().numpy().copy()
    return arrays


def _learnt(module: torch.nn.Module) -> ModuleState:
    arrays = _arrays(module)
    _check_state(arrays)
    return arrays


def _check_state(state: ModuleState) -> None:
    for name, array in state.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"state must hold arrays, and {name} is {type(array).__name__}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} of the module is no longer finite: lower its rate")


def _check_fit(state: ModuleState, wanted: ModuleState) -> None:
    """Raise unless a state is one of the module whose own state is `wanted`."""
    if missing := sorted(set(wanted) - set(state)):
        raise ValueError(f"module is another one than that of the file, which has no {missing[0]}")
    if more := sorted(set(state) - set(wanted)):
        raise ValueError(f"module is another one than that of the file: it has no {more[0]}")
    for name, array in state.items():
        if (array.shape, array.dtype) != (wanted[name].shape, wanted[name].dtype):
            raise ValueError(
                f"module is another one than that of the file: its {name} is "
                f"{wanted[name].dtype} of shape {wanted[name].shape}, and that of the file "
                f"{array.dtype} of shape {array.shape}"
            )
