"""A run of training: points held out, first codes, steps and their consumers, the result."""

from auxhash.learn.training.run import Result, Settings, Training

__all__ = ["Result", "Settings", "Training"]
