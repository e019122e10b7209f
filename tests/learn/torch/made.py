"""Small modules, and pictures whose class can be seen."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

from torch import nn  # noqa: E402

from auxhash.learn.torch import ModuleHash  # noqa: E402

N_BITS = 8


def dense(n_features=6, n_bits=N_BITS, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(n_features, 16), nn.ReLU(), nn.Linear(16, n_bits))


class Small(nn.Module):
    """A convolution, with all that training and encoding must treat differently."""

    def __init__(self, n_bits=N_BITS, channels=3):
        super().__init__()
        self.first = nn.Conv2d(channels, 6, 3, padding=1)
        self.normal = nn.BatchNorm2d(6)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(6 * 16, n_bits)

    def forward(self, x):
        x = torch.relu(self.normal(self.first(x)))
        return self.last(self.drop(nn.functional.max_pool2d(x, 2).flatten(1)))


def small(seed=0, **settings):
    torch.manual_seed(seed)
    return Small(**settings)


def points(n=150, seed=0):
    """Points (n, 6) of three classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 6)) + 2 * np.eye(3, 6)[y], y


def pictures(n=120, seed=0):
    """Pictures (n, 8, 8, 3) of bytes: the class is the row, and the colour, of a bright line."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.integers(0, 100, (n, 8, 8, 3)).astype(np.uint8)
    for c in range(3):
        X[y == c, 2 * c + 1, :, c] += 140
    return X, y


def hashed(module=None, **settings):
    """A hash function that trains quickly."""
    quick = {"epochs": 30, "more_epochs": 10, "batch": 50, "rate": 1e-2}
    return ModuleHash(dense() if module is None else module, **{**quick, **settings})
