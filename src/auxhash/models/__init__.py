"""Load a saved estimator of any kind, or export a fitted one as an ONNX graph."""
