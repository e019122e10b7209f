"""The types of arrays: what they hold stands in a comment where they are declared."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Array = NDArray[np.float64]
Single = NDArray[np.float32]
Numbers = NDArray[np.int64]  # of points, of rows, of bits
