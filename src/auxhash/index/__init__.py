"""Search over codes: HammingIndex (exact), ApproximateIndex (faiss's lists), names, re-ranking."""

from auxhash.index import rerank
from auxhash.index.approximate import ApproximateIndex
from auxhash.index.hamming import HammingIndex
from auxhash.index.named import NamedIndex, load

__all__ = ["ApproximateIndex", "HammingIndex", "NamedIndex", "load", "rerank"]
