"""Every test here runs on an emulated GPU, where there is a C++ compiler, and on a real one."""

import numpy as np
import pytest

from auxhash.compute import device as devices
from tests.gpu import emulated


def _real():
    try:
        return devices.get("cuda")
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"needs a GPU: {error}")


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request, monkeypatch):
    """A GPU, which device="cuda" is then."""
    if request.param == "cuda":
        return _real()
    if emulated.COMPILER is None:
        pytest.skip("an emulated GPU needs a C++ compiler")
    kernels = devices.Device.kernels
    # Few threads: an emulated one takes as long as any other.
    monkeypatch.setattr(devices.Device, "kernels", lambda self, file, n=0: kernels(self, file, 128))
    device = devices.Device("cuda", emulated)
    monkeypatch.setattr(devices, "_cuda", lambda: device)
    put = devices.Device.put
    monkeypatch.setattr(devices.Device, "put", lambda self, array: put(self, _there(self, array)))
    return device


def _there(device, array):
    """The array, unless it is on a GPU and put elsewhere, which CuPy refuses."""
    if device is devices.CPU and isinstance(array, emulated.ndarray):
        raise TypeError("implicit conversion to a NumPy array is not allowed")
    return array


@pytest.fixture
def rng():
    return np.random.default_rng(0)
