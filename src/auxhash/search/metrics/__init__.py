"""Retrieval metrics from one histogram pass, with ties counted by their exact expectation."""

from auxhash.search.metrics.bysort import map_by_sort
from auxhash.search.metrics.evaluation import Evaluation
from auxhash.search.metrics.measures import (
    bit_balance,
    bit_correlation,
    code_utilization,
    distance_histogram,
    evaluate,
    mean_average_precision,
    precision_at_k,
    precision_recall_by_radius,
    recall_at_k,
    utilization_bound,
)

__all__ = [
    "Evaluation",
    "bit_balance",
    "bit_correlation",
    "code_utilization",
    "distance_histogram",
    "evaluate",
    "map_by_sort",
    "mean_average_precision",
    "precision_at_k",
    "precision_recall_by_radius",
    "recall_at_k",
    "utilization_bound",
]
