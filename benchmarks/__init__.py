"""Measurements, each run by `python -m benchmarks.<name>`."""
