import io

import numpy as np
import pytest
from PIL import Image

from auxhash.files.png import write_png


@pytest.mark.parametrize(("shape", "mode"), [((5, 7), "L"), ((5, 7, 3), "RGB")])
def test_what_is_written_is_read_back(shape, mode):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    image = Image.open(io.BytesIO(write_png(pixels)))
    assert (image.format, image.mode) == ("PNG", mode)
    np.testing.assert_array_equal(np.asarray(image), pixels)
