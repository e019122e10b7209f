"""Search codes: exactly with HammingIndex, or through faiss's lists; then order more finely."""

from auxhash.index import rerank
from auxhash.index.approximate import ApproximateIndex
from auxhash.index.hamming import HammingIndex

__all__ = ["ApproximateIndex", "HammingIndex", "rerank"]
