"""Models to take along: any saved estimator loaded, any fitted one as an ONNX graph."""
