"""Batches of points on a module's device, the steps of its optimiser, and the h step."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from auxhash.codes import Codes
from auxhash.compute.arrays import AnyArray, Array, Numbers, Single
from auxhash.learn.smooth.gradient import Shuffled

if TYPE_CHECKING:
    from auxhash.learn.torch.modulehash import ModuleHash

MAX_BYTES_ON_GPU = 4 << 30  # of points kept on a GPU; more are moved there batch by batch
ENCODING_BATCH_SIZE = 1024  # points encoded at a time
MOMENTUM = 0.9
WARM_UP_SHARE = 0.25  # of the steps of one cycle, in which their length rises

Augment = Callable[[Tensor, torch.Generator], Tensor]  # of a raw batch
ToInput = Callable[[Tensor], Tensor]  # of a raw batch: what the module takes
LossName = Literal["logistic", "hinge"]
OptimizerName = Literal["adamw", "sgd"]
ScheduleName = Literal["one-cycle", "constant"]

LOSSES: dict[str, Callable[[Tensor], Tensor]] = {  # of the margin z a
    "logistic": lambda margin: torch.nn.functional.softplus(-margin),
    "hinge": lambda margin: torch.clamp(1 - margin, min=0).square(),
}
OPTIMIZERS = ("adamw", "sgd")
SCHEDULES = ("one-cycle", "constant")


class Place(NamedTuple):
    """Device and type of a module's parameters."""

    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, module: torch.nn.Module) -> "Place":
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                return cls(tensor.device, tensor.dtype)
        return cls(torch.device("cpu"), torch.float32)


class _Flags:
    """The flags of cuDNN, which belong to the process: how many threads need them set."""

    def __init__(self) -> None:
        self.lock, self.users, self.before = threading.Lock(), 0, (False, False)


_flags = _Flags()
_seeding = threading.RLock()


@contextmanager
def repeatable() -> Iterator[None]:
    """Let cuDNN take only algorithms that give the same result every time.

    The first thread that needs it sets the flags, the last one restores them.
    """
    cudnn = torch.backends.cudnn
    with _flags.lock:
        if not _flags.users:
            _flags.before = cudnn.deterministic, cudnn.benchmark
            cudnn.deterministic, cudnn.benchmark = True, False
        _flags.users += 1
    try:
        yield
    finally:
        with _flags.lock:
            _flags.users -= 1
            if not _flags.users:
                cudnn.deterministic, cudnn.benchmark = _flags.before


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[torch.Generator]:
    """A generator for augmentation; what the module itself draws (dropout) is seeded as well.

    PyTorch's own generators are left as they were. They belong to the process, too: other threads
    that train wait, or they would draw from one another's.
    """
    with _seeding, torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield torch.Generator(device).manual_seed(seed)


class Batches:
    """Points (n, ...) as tensors on the device of a module, batch by batch."""

    def __init__(self, X: AnyArray, place: Place) -> None:
        self.X, self.place = X, place
        self.on_device: Tensor | None = None
        size = 1 if X.dtype == np.uint8 else torch.finfo(place.dtype).bits // 8
        if place.device.type != "cpu" and X.size * size <= MAX_BYTES_ON_GPU:
            self.on_device = self._moved(X)

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Numbers | slice) -> Tensor:
        """The raw points of these rows: bytes as bytes, numbers in the module's type."""
        if self.on_device is None:
            return self._moved(self.X[rows])
        if isinstance(rows, slice):
            return self.on_device[rows]
        return self.on_device[torch.from_numpy(rows).to(self.place.device)]

    def _moved(self, X: AnyArray) -> Tensor:
        X = np.ascontiguousarray(X)
        tensor = torch.from_numpy(X if X.flags.writeable else X.copy())
        dtype = tensor.dtype if X.dtype == np.uint8 else self.place.dtype
        return tensor.to(self.place.device, dtype)


def plain_input(batch: Tensor, dtype: torch.dtype) -> Tensor:
    """Pictures of bytes, (n, h, w, c) or (n, h, w), from 0 to 1 with channels first.

    Other points stay as they are.
    """
    if batch.dtype != torch.uint8:
        return batch
    batch = batch.to(dtype) / 255
    if batch.ndim == 4:
        return batch.permute(0, 3, 1, 2)
    return batch.unsqueeze(1) if batch.ndim == 3 else batch


def forward(module: torch.nn.Module, batch: Tensor, how: "ModuleHash", place: Place) -> Tensor:
    """Outputs of a raw batch."""
    inputs = plain_input(batch, place.dtype) if how.to_input is None else how.to_input(batch)
    return module(inputs)


def forward_in_training(
    module: torch.nn.Module,
    batch: Tensor,
    how: "ModuleHash",
    place: Place,
    generator: torch.Generator,
) -> Tensor:
    """Outputs of a raw batch in training: augmented, in half precision where `how.half`."""
    if how.augment is not None:
        batch = how.augment(batch, generator)
    with torch.autocast(place.device.type, torch.bfloat16, enabled=how.half):
        outputs = forward(module, batch, how, place)
    return outputs.to(place.dtype)


def encoded(
    module: torch.nn.Module, batches: Batches, rows: slice | Numbers, how: "ModuleHash"
) -> Single:
    """Outputs (rows, b) for encoding: no augmentation, no dropout, no gradients."""
    module.eval()
    numbers = np.arange(len(batches))[rows]
    chunks = []
    with torch.no_grad(), repeatable():
        for start in range(0, len(numbers), ENCODING_BATCH_SIZE):
            batch_rows = numbers[start : start + ENCODING_BATCH_SIZE]
            inner: slice | Numbers = batch_rows
            if isinstance(rows, slice):
                inner = slice(int(batch_rows[0]), int(batch_rows[-1]) + 1)
            outputs = forward(module, batches.take(inner), how, batches.place)
            chunks.append(outputs.cpu().numpy())
    return np.concatenate(chunks)


class Stepper:
    """The optimiser of a module, with the schedule of its steps.

    Decay acts on weights alone: not on biases, nor on the scales of normalising layers.
    """

    def __init__(self, module: torch.nn.Module, how: "ModuleHash") -> None:
        self.how, self.n_steps = how, 0
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        if not self.parameters:
            raise ValueError("module has no parameters to train")
        groups = [
            {"params": [p for p in self.parameters if p.ndim > 1], "weight_decay": how.decay},
            {"params": [p for p in self.parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        if how.optimizer == "adamw":
            self.optimizer = torch.optim.AdamW(groups, lr=how.rate)
        else:
            self.optimizer = torch.optim.SGD(groups, how.rate, MOMENTUM, nesterov=True)

    def step(self, done: float, factor: float = 1.0) -> None:
        """One step along the gradients, the share `done` of all steps being made."""
        length = self.how.rate * factor
        if self.how.schedule == "one-cycle":
            length *= one_cycle(done)
        for group in self.optimizer.param_groups:
            group["lr"] = length
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.n_steps += 1

    def state(self) -> tuple[list[Single], list[Single]]:
        """The means of the gradients and of their squares; SGD has the first alone."""
        names = ("exp_avg", "exp_avg_sq") if self.how.optimizer == "adamw" else ("momentum_buffer",)
        lists = [[self._entry(p, name).cpu().numpy() for p in self.parameters] for name in names]
        return lists[0], lists[1] if len(lists) > 1 else []

    def _entry(self, parameter: Tensor, name: str) -> Tensor:
        value = self.optimizer.state.get(parameter, {}).get(name)
        return torch.zeros_like(parameter) if value is None else value

    def counts(self) -> Single:
        """Steps made, and steps of each parameter: a layer may be left out of some."""
        n_updates = [float(self._entry(p, "step").max()) for p in self.parameters]
        return np.array([self.n_steps, *n_updates], np.float32)

    def restore(self, counts: Single, mean: list[Single], square: list[Single]) -> None:
        self.n_steps = int(counts[0])
        if not self.n_steps:
            return
        for n, parameter in enumerate(self.parameters):
            first = _like(parameter, mean[n])
            if self.how.optimizer == "sgd":
                self.optimizer.state[parameter] = {"momentum_buffer": first}
            else:
                self.optimizer.state[parameter] = {
                    "step": torch.tensor(float(counts[1 + n])),
                    "exp_avg": first,
                    "exp_avg_sq": _like(parameter, square[n]),
                }


def _like(parameter: Tensor, values: Single) -> Tensor:
    tensor = torch.empty_like(parameter)
    tensor.copy_(torch.from_numpy(values))
    return tensor


def one_cycle(done: float) -> float:
    """Relative length of a step: it rises to 1, then falls to 0 along a cosine."""
    if done < WARM_UP_SHARE:
        return 0.05 + 0.95 * done / WARM_UP_SHARE
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP_SHARE) / (1 - WARM_UP_SHARE)))


def steps_per_epoch(n: int, batch: int) -> int:
    return max(1, n // batch)


def learn_codes(
    module: torch.nn.Module,
    X: AnyArray,
    Z: Codes,
    weight: Array | None,
    how: "ModuleHash",
    epochs: int,
    seed: int,
) -> None:
    """The h step: train a module, in place, on the codes Z (n, b), all bits together."""
    place = Place.of(module)
    batches, stepper = Batches(X, place), Stepper(module, how)
    loss = LOSSES[how.loss]
    rng = np.random.default_rng(seed)
    per_epoch = steps_per_epoch(len(X), how.batch)
    n_steps = epochs * per_epoch
    module.train()
    with repeatable(), seeded(seed, place.device) as generator:
        for t, rows in zip(range(n_steps), Shuffled(len(X), how.batch, rng), strict=False):
            outputs = forward_in_training(module, batches.take(rows), how, place, generator)
            margin = outputs * torch.from_numpy(Z[rows]).to(place.device)
            each = loss(margin)
            if weight is not None:
                each = each * torch.from_numpy(weight[rows]).to(place.device, place.dtype)
            each.mean().backward()
            stepper.step(t / n_steps)
    module.eval()
