"""Pictures changed at random, for training: `ModuleHash(module, augment=...)`.

Each function takes raw pictures (n, h, w, c) or (n, h, w) and a `torch.Generator` on their device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from auxhash import checks
from auxhash.torch.learning import Tensor


@dataclass(frozen=True)
class RandomChanges:
    """Crops, flips and cut-outs, each picture's own.

    Args:
        crop: pictures are moved by up to so many pixels in each direction; what comes in from
            outside is black.
        flip: whether half of the pictures are mirrored, left to right.
        cut_out: side of a square, anywhere on the picture, that becomes black; 0 leaves it out.
    """

    crop: int = 4
    flip: bool = True
    cut_out: int = 8

    def __post_init__(self) -> None:
        checks.whole("crop", self.crop, 0)
        checks.flag("flip", self.flip)
        checks.whole("cut_out", self.cut_out, 0)

    def __call__(self, batch: Tensor, generator: Any) -> Tensor:
        if self.crop:
            batch = crops(batch, generator, self.crop)
        if self.flip:
            batch = flips(batch, generator)
        return cut_outs(batch, generator, self.cut_out) if self.cut_out else batch


def crops(batch: Tensor, generator: Any, most: int = 4) -> Tensor:
    """Each picture moved by up to `most` pixels in both directions; what comes in is black."""
    n, height, width = batch.shape[:3]
    inner = (0, 0) * (batch.ndim - 3)
    padded = torch.nn.functional.pad(batch, (*inner, most, most, most, most))
    draw = _drawing(batch, generator)
    down, right = draw(2 * most + 1), draw(2 * most + 1)
    rows = down[:, None] + torch.arange(height, device=batch.device)
    columns = right[:, None] + torch.arange(width, device=batch.device)
    picture = torch.arange(n, device=batch.device)
    return padded[picture[:, None, None], rows[:, :, None], columns[:, None, :]]


def flips(batch: Tensor, generator: Any) -> Tensor:
    """Each picture mirrored, left to right, with a chance of one half."""
    mirrored = _drawing(batch, generator)(2).bool()
    return torch.where(mirrored.view(-1, *[1] * (batch.ndim - 1)), batch.flip(2), batch)


def cut_outs(batch: Tensor, generator: Any, side: int = 8) -> Tensor:
    """Each picture with a square of this side, whose centre is anywhere on it, made black."""
    height, width = batch.shape[1:3]
    draw = _drawing(batch, generator)
    top, left = draw(height) - side // 2, draw(width) - side // 2
    rows, columns = (torch.arange(size, device=batch.device) for size in (height, width))
    in_rows = (rows >= top[:, None]) & (rows < top[:, None] + side)
    in_columns = (columns >= left[:, None]) & (columns < left[:, None] + side)
    cut = in_rows[:, :, None] & in_columns[:, None, :]
    return batch.masked_fill(cut.view(*cut.shape, *[1] * (batch.ndim - 3)), 0)


def _drawing(batch: Tensor, generator: Any) -> Callable[[int], Tensor]:
    """A function that draws a whole number below another one for each picture."""

    def draw(below: int) -> Tensor:
        return torch.randint(below, (len(batch),), generator=generator, device=batch.device)

    return draw
