"""Pictures changed at random, for training: `ModuleHash(module, augment=...)`.

Each function takes raw pictures (n, h, w, c) or (n, h, w), bytes or other numbers, and a
`torch.Generator` on their device. Channels are last: floats, which a module gets as they are, need
a `to_input` that moves them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from auxhash.compute import checks


@dataclass(frozen=True)
class RandomChanges:
    """Warps, crops, flips, colours and cut-outs, each picture's own.

    Args:
        crop: pictures are moved by up to so many pixels in each direction; what comes in from
            outside is their mirror image.
        flip: whether half of the pictures are mirrored, left to right.
        cut_out: side of a square, anywhere on the picture, that becomes grey; 0 leaves it out.
        colour: contrast of each channel, and brightness, change by up to this share; 0 leaves
            them.
        warp: half of the pictures are turned, stretched and slanted, by a matrix whose entries
            differ by up to this, which should be well below 1, from those of the identity; 0 leaves
            them.
    """

    crop: int = 4
    flip: bool = True
    cut_out: int = 8
    colour: float = 0.2
    warp: float = 0.0

    def __post_init__(self) -> None:
        checks.integer("crop", self.crop, 0)
        checks.flag("flip", self.flip)
        checks.integer("cut_out", self.cut_out, 0)
        checks.number("colour", self.colour, 0)
        checks.number("warp", self.warp, 0)

    def __call__(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        if self.warp:
            batch = warps(batch, generator, self.warp)
        if self.crop:
            batch = crops(batch, generator, self.crop)
        if self.flip:
            batch = flips(batch, generator)
        if self.colour:
            batch = colours(batch, generator, self.colour)
        return cut_outs(batch, generator, self.cut_out) if self.cut_out else batch


def crops(batch: Tensor, generator: torch.Generator, most: int = 4) -> Tensor:
    """Each picture moved by up to `most` pixels in both directions; its mirror image comes in."""
    draw = _drawing(batch, generator)
    moved = [
        _mirrored(
            draw(2 * most + 1)[:, None] - most + torch.arange(size, device=batch.device), size
        )
        for size in batch.shape[1:3]
    ]
    picture = torch.arange(len(batch), device=batch.device)
    return batch[picture[:, None, None], moved[0][:, :, None], moved[1][:, None, :]]


def warps(batch: Tensor, generator: torch.Generator, most: float = 0.2) -> Tensor:
    """Half of the pictures turned, stretched and slanted around their middle.

    Pixels between others are interpolated, and mirror images come in from outside. With `most` of
    1 or more a picture can collapse, or be turned over.
    """
    checks.number("most", most, 0)
    if batch.ndim not in (3, 4):
        shape = tuple(batch.shape)
        raise ValueError(f"pictures must be (n, h, w) or (n, h, w, c), got shape {shape}")
    if not len(batch):
        return batch
    exact = batch.dtype in (torch.float64, torch.int32, torch.int64)
    numbers = batch.double() if exact else batch.float()
    planes = numbers.permute(0, 3, 1, 2) if batch.ndim == 4 else numbers[:, None]
    chosen = _drawing(batch, generator)(2).view(-1, 1, 1)
    matrix = torch.eye(2, 3, device=batch.device, dtype=numbers.dtype).repeat(len(batch), 1, 1)
    matrix[:, :, :2] += most * chosen * _around_zero((len(batch), 2, 2), numbers, generator)
    places = nn.functional.affine_grid(matrix, list(planes.shape), align_corners=False)
    moved = nn.functional.grid_sample(
        planes, places, padding_mode="reflection", align_corners=False
    )
    moved = moved.permute(0, 2, 3, 1) if batch.ndim == 4 else moved[:, 0]
    return moved.to(batch.dtype) if batch.is_floating_point() else moved.round().to(batch.dtype)


def flips(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Each picture mirrored, left to right, with a chance of one half."""
    mirrored = _drawing(batch, generator)(2).bool()
    return torch.where(mirrored.view(-1, *[1] * (batch.ndim - 1)), batch.flip(2), batch)


def colours(batch: Tensor, generator: torch.Generator, most: float = 0.2) -> Tensor:
    """Each picture with other contrast, channel by channel, and other brightness.

    Contrast is multiplied by 1 - most to 1 + most, around the mean of the batch; brightness
    changes by up to `most` times its deviation. Bytes stay bytes.
    """
    numbers = _floats(batch)
    over = 0, 1, 2
    mean, deviation = (
        numbers.mean(over, keepdim=True),
        numbers.std(over, correction=0, keepdim=True),
    )
    size = len(batch), 1, 1, *batch.shape[3:]
    contrast = 1 + most * _around_zero(size, numbers, generator)
    alike = len(batch), *[1] * (batch.ndim - 1)
    brightness = most * deviation * _around_zero(alike, numbers, generator)
    changed = mean + (numbers - mean) * contrast + brightness
    if batch.dtype == torch.uint8:
        changed = changed.clamp(0, 255)
    return changed if numbers is batch else changed.round().to(batch.dtype)


def cut_outs(batch: Tensor, generator: torch.Generator, side: int = 8) -> Tensor:
    """Each picture with a square of this side, whose centre is anywhere on it, made grey.

    The grey is the mean colour of the batch.
    """
    height, width = batch.shape[1:3]
    draw = _drawing(batch, generator)
    top, left = draw(height) - side // 2, draw(width) - side // 2
    rows, columns = (torch.arange(size, device=batch.device) for size in (height, width))
    in_rows = (rows >= top[:, None]) & (rows < top[:, None] + side)
    in_columns = (columns >= left[:, None]) & (columns < left[:, None] + side)
    cut = in_rows[:, :, None] & in_columns[:, None, :]
    grey = _floats(batch).mean((0, 1, 2), keepdim=True).to(batch.dtype)
    return torch.where(cut.view(*cut.shape, *[1] * (batch.ndim - 3)), grey, batch)


def _floats(batch: Tensor) -> Tensor:
    return batch if batch.is_floating_point() else batch.float()


def _mirrored(at: Tensor, size: int) -> Tensor:
    """Places outside of 0..size - 1 mirrored at the edge that they are beyond."""
    last = size - 1
    return (last - (last - at.abs()).abs()).clamp(0, last)


def _around_zero(size: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    """Random numbers from -1 to 1."""
    drawn = torch.rand(size, generator=generator, device=like.device, dtype=like.dtype)
    return 2 * drawn - 1


def _drawing(batch: Tensor, generator: torch.Generator) -> Callable[[int], Tensor]:
    """A function that draws a whole number below another one for each picture."""

    def draw(below: int) -> Tensor:
        return torch.randint(below, (len(batch),), generator=generator, device=batch.device)

    return draw
