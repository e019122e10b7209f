import numpy as np
import pytest

from auxhash.files.png import read_png, write_png
from tests.experiments.datasets.made import png_of


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_every_filter_is_undone(colour, channels):
    pixels = np.random.default_rng(0).integers(0, 256, (11, 7, channels), np.uint8)
    data = png_of(pixels, [0, 1, 2, 3, 4, 4, 3, 2, 1], colour)
    np.testing.assert_array_equal(read_png(data), pixels)


def test_what_is_not_a_whole_png_is_refused():
    data = png_of(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(ValueError, match="not a PNG"):
        read_png(b"GIF89a")
    with pytest.raises(ValueError, match="truncated"):
        read_png(data[:-12])
    damaged = bytearray(data)
    damaged[-20] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        read_png(bytes(damaged))
    with pytest.raises(ValueError, match="no palette"):
        read_png(png_of(np.zeros((4, 4, 1), np.uint8), colour=3))
    with pytest.raises(ValueError, match="bytes where"):
        read_png(png_of(np.zeros((4, 4, 1), np.uint8), colour=2))
    with pytest.raises(ValueError, match="holds more bytes where 52 are right"):
        read_png(png_of(np.zeros((4, 4, 4), np.uint8), colour=2))


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_what_is_written_is_read_back(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(read_png(write_png(pixels)).reshape(shape), pixels)
