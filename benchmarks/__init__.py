"""Measurements, run by `python -m benchmarks NAME`."""
