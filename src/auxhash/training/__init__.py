"""A run of training: points held out, the start, the steps and who consumes them, the result."""

from auxhash.training.run import Result, Settings, Training

__all__ = ["Result", "Settings", "Training"]
