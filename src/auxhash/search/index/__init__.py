"""Search over codes: HammingIndex (exact), ApproximateIndex (faiss's lists), names, re-ranking."""

from auxhash.search.index import rerank
from auxhash.search.index.approximate import ApproximateIndex
from auxhash.search.index.hamming import HammingIndex
from auxhash.search.index.named import NamedIndex, load

__all__ = ["ApproximateIndex", "HammingIndex", "NamedIndex", "load", "rerank"]
