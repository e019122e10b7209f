"""The version of the package; model files and caches name it."""

__version__ = "0.1.0"
