"""Search over codes: HammingIndex (exact), ApproximateIndex (faiss's lists), and re-ranking."""

from auxhash.index import rerank
from auxhash.index.approximate import ApproximateIndex
from auxhash.index.hamming import HammingIndex

__all__ = ["ApproximateIndex", "HammingIndex", "rerank"]
