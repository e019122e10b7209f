"""Search over codes: HammingIndex (exact), ApproximateIndex (faiss's lists), names, re-ranking."""

from auxhash.search.index import rerank
from auxhash.search.index.approximate import ApproximateIndex
from auxhash.search.index.hamming import HammingIndex
from auxhash.search.index.named import NamedIndex, load
from auxhash.search.index.rerank import cascade
from auxhash.search.index.tables import tables_from_outputs

__all__ = [
    "ApproximateIndex",
    "HammingIndex",
    "NamedIndex",
    "cascade",
    "load",
    "rerank",
    "tables_from_outputs",
]
