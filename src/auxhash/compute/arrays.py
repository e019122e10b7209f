"""Types of arrays. Where one is declared, a comment says what it holds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Array = NDArray[np.float64]
Single = NDArray[np.float32]
Numbers = NDArray[np.int64]  # indices of points, rows or bits
