"""Where numbers are crunched: threads, compiled kernels, and the types of arrays."""
