"""Experiments with stored runs: `compare` and the figures. Runs write codes, reports only read."""
