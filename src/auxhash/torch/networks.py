"""Ready modules: a residual network for small pictures, and one for plain features."""

from typing import Any

import torch
from torch import nn

from auxhash import checks
from auxhash.torch.learning import Tensor


def residual_network(n_bits: int, channels: int = 3, width: int = 64) -> Any:
    """A residual network of nine layers for pictures of about 32 x 32 pixels.

    Channels are standardised by what the training sees.

    Args:
        n_bits: outputs.
        channels: of the pictures: 3 for colours, 1 for grey.
        width: channels of the first layer; the others have 2, 4 and 8 times as many.
    """
    n_bits = checks.whole("n_bits", n_bits, 1)
    w = checks.whole("width", width, 1)
    network = nn.Sequential(
        nn.BatchNorm2d(checks.whole("channels", channels, 1), affine=False),
        _layer(channels, w),
        _layer(w, 2 * w, pool=True),
        Residual(nn.Sequential(_layer(2 * w, 2 * w), _layer(2 * w, 2 * w))),
        _layer(2 * w, 4 * w, pool=True),
        _layer(4 * w, 8 * w, pool=True),
        Residual(nn.Sequential(_layer(8 * w, 8 * w), _layer(8 * w, 8 * w))),
        Largest(),
        nn.Linear(8 * w, n_bits),
    )
    return network.to(memory_format=torch.channels_last)


def feature_network(
    n_features: int, n_bits: int, units: int = 2048, dropout: float = 0.7, noise: float = 0.3
) -> Any:
    """A hidden layer beside a linear part, for plain features.

    Features are standardised by what the training sees. Noise and dropout keep it from learning the
    points by heart, as does the linear part, which is there from the start.

    Args:
        n_features: D of X (n, D).
        n_bits: outputs.
        units: rectified linear units of the hidden layer.
        dropout: chance of a unit to be left out in training.
        noise: deviation of the noise added to the standardised features in training.
    """
    checks.whole("n_features", n_features, 1)
    checks.whole("n_bits", n_bits, 1)
    checks.whole("units", units, 1)
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

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class SumOf(nn.Module):  # type: ignore[misc]
    """The sum of two modules."""

    def __init__(self, one: Any, other: Any) -> None:
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) + self.other(x)


class BothWays(nn.Module):  # type: ignore[misc]
    """In use, the mean of a module's outputs for a picture (n, c, h, w) and its mirror image.

    In training, which has flips of its own, the module as it is.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return self.inner(x)
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


def _layer(channels: int, more: int, pool: bool = False) -> Any:
    parts = [
        nn.Conv2d(channels, more, 3, padding=1, bias=False),
        nn.BatchNorm2d(more),
        nn.GELU(approximate="tanh"),
    ]
    return nn.Sequential(*parts, nn.MaxPool2d(2)) if pool else nn.Sequential(*parts)
