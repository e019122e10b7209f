"""How computations are run: threads, parts of the data, compiled kernels, types of arrays."""
