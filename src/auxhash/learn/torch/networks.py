"""Ready modules: a residual network for small pictures, and one for plain features."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from auxhash.compute import checks


def residual_network(
    n_bits: int, channels: int = 3, width: int = 64, blocks: Sequence[int] = (1, 0, 1)
) -> nn.Sequential:
    """A residual network, of nine layers by default, for pictures of about 32 x 32 pixels.

    Channels are standardised by what the training sees.

    Args:
        n_bits: outputs.
        channels: of the pictures: 3 for colours, 1 for grey.
        width: channels of the first layer; the others have 2, 4 and 8 times as many.
        blocks: residual blocks, of two layers each, after each of the three halvings of the
            picture's side.
    """
    n_bits = checks.integer("n_bits", n_bits, 1)
    w = checks.integer("width", width, 1)
    if not isinstance(blocks, (list, tuple)) or len(blocks) != 3:
        raise checks.ArgumentError(f"blocks must be three whole numbers, got {blocks!r}")
    layers = [
        nn.BatchNorm2d(checks.integer("channels", channels, 1), affine=False),
        _layer(channels, w),
    ]
    for number in blocks:
        layers.append(_layer(w, 2 * w, pool=True))
        w *= 2
        for _ in range(checks.integer("blocks", number, 0)):
            layers.append(Residual(nn.Sequential(_layer(w, w), _layer(w, w))))
    network = nn.Sequential(*layers, Largest(), nn.Linear(w, n_bits))
    return network.to(memory_format=torch.channels_last)


def feature_network(
    n_features: int, n_bits: int, units: int = 2048, dropout: float = 0.7, noise: float = 0.3
) -> nn.Sequential:
    """A hidden layer beside a linear part, for plain features.

    Features are standardised by what the training sees. Noise and dropout keep it from
    overfitting, as does the linear part, which is there from the start.

    Args:
        n_features: D of X (n, D).
        n_bits: outputs.
        units: rectified linear units of the hidden layer.
        dropout: chance of a unit to be left out in training.
        noise: deviation of the noise added to the standardised features in training.
    """
    checks.integer("n_features", n_features, 1)
    checks.integer("n_bits", n_bits, 1)
    checks.integer("units", units, 1)
    checks.number("noise", noise, 0)
    if checks.number("dropout", dropout, 0) >= 1:
        raise ValueError(f"dropout must be below 1, got {dropout}")
    hidden = nn.Sequential(nn.Linear(n_features, units), nn.ReLU(), nn.Dropout(dropout))
    return nn.Sequential(
        nn.BatchNorm1d(n_features, affine=False),
        Noise(noise),
        SumOf(nn.Linear(n_features, n_bits), nn.Sequential(hidden, nn.Linear(units, n_bits))),
    )


class Residual(nn.Module):  # type: ignore[misc]
    """x + f(x)."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class SumOf(nn.Module):  # type: ignore[misc]
    """The sum of two modules."""

    def __init__(self, one: nn.Module, other: nn.Module) -> None:
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) + self.other(x)


class BothWays(nn.Module):  # type: ignore[misc]
    """In use, the mean of a module's outputs for a picture (n, c, h, w) and its mirror image.

    With a `shift`, it is the mean of these and of both moved by so many pixels, up and to the left
    or down and to the right, each with half the weight; mirror images come in at the edges. In
    training, which has flips and crops of its own, it is the module as it is.
    """

    def __init__(self, inner: nn.Module, shift: int = 0) -> None:
        super().__init__()
        self.inner, self.shift = inner, checks.integer("shift", shift, 0)
        if shift:  # among the weights, so that a model file refuses a module with another shift
            self.register_buffer(f"shift_{shift}", torch.tensor([float(shift)]))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return self.inner(x)
        if not self.shift:
            return self._both(x)
        s, (height, width) = self.shift, x.shape[-2:]
        if s >= min(height, width):
            raise ValueError(f"shift must be below the sides of {height} x {width} pixels, got {s}")
        around = nn.functional.pad(x, (s, s, s, s), mode="reflect")
        moved = around[..., :height, :width], around[..., 2 * s :, 2 * s :]
        return (2 * self._both(x) + self._both(moved[0]) + self._both(moved[1])) / 4

    def _both(self, x: Tensor) -> Tensor:
        return (self.inner(x) + self.inner(x.flip(-1))) / 2


class Largest(nn.Module):  # type: ignore[misc]
    """The largest value of each channel (n, c) over a picture (n, c, h, w)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.amax(dim=(2, 3))


class Noise(nn.Module):  # type: ignore[misc]
    """Gaussian noise, in training only."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        self.deviation = deviation

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.deviation:
            return x
        return x + self.deviation * torch.randn_like(x)


def _layer(channels: int, more: int, pool: bool = False) -> nn.Sequential:
    parts = [
        nn.Conv2d(channels, more, 3, padding=1, bias=False),
        nn.BatchNorm2d(more),
        nn.GELU(approximate="tanh"),
    ]
    return nn.Sequential(*parts, nn.MaxPool2d(2)) if pool else nn.Sequential(*parts)
