"""Counters of the service, for Prometheus."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Counters:
    """Requests by path and status, their latencies, and how many are present; own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "auxhash_requests",
            "Requests that were answered.",
            ["method", "path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "auxhash_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["path"],
            buckets=LATENCY_BUCKETS,
            registry=self._registry,
        )
        self.present = Gauge(
            "auxhash_requests_present", "Requests that are being answered.", registry=self._registry
        )
        self._working = Gauge(
            "auxhash_requests_working",
            "Requests that are worked on, or wait for it.",
            registry=self._registry,
        )
        self._points = Gauge("auxhash_points", "Points in the store.", registry=self._registry)
        self._recall = Gauge(
            "auxhash_recall",
            "Share of the 10 nearest that codes find: now, of points that came in, and expected by "
            "the model. NaN if it is not known.",
            ["of"],
            registry=self._registry,
        )
        self._ready = Gauge("auxhash_ready", "1 if the store answers.", registry=self._registry)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def follow(self, working: Callable[[], int]) -> None:
        """Set the function that gives the number of requests in work."""
        self._working.set_function(working)

    def text(self, points: int | None, drift: Mapping[str, Any] | None) -> bytes:
        """Return all counters in the text format of Prometheus; no points: the store is down."""
        self._points.set(math.nan if points is None else points)
        self._ready.set(points is not None)
        for of in ("now", "expected"):
            self._recall.labels(of).set(drift[of] if drift else math.nan)
        return generate_latest(self._registry)
