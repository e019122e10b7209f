"""The demonstration's digits."""

import numpy as np

from auxhash.experiments.demonstration.digits import ink


def test_digits_as_images():
    """White on black, as numbers from 0 to 16."""
    picture = np.zeros((80, 80, 3), np.uint8)
    picture[40:50, 20:30] = 255
    [result] = ink([picture])
    expected = np.zeros((8, 8))
    expected[4, 2] = 16
    np.testing.assert_array_equal(result.reshape(8, 8), expected)
