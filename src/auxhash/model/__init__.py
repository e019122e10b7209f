"""Storage: writing files whole, values as JSON and arrays, model files, the identity of a run."""
