"""Running computations: threads, parts of the data, compiled kernels, types of arrays."""
