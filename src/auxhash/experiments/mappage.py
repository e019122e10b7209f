"""Maps of points for pages: some points of the base, and where queries land among them."""

import warnings

import numpy as np

from auxhash.compute.arrays import AnyArray
from auxhash.compute.neighbors import normalized
from auxhash.experiments.datasets.dataset import Points
from auxhash.experiments.figures.figure import Section
from auxhash.experiments.figures.maps import map_plot
from auxhash.experiments.svg import Series, Style
from auxhash.learn.macmap import MACMap

N_BASE, N_QUERIES = 500, 200  # points of a page's map, at most
MIN_BASE_POINTS = 10  # fewer make no map
GREY = Style("muted", "dot", joined=False)


def map_section(base: Points, query: Points, cosine: bool = False) -> list[Section]:
    """The base on a map, and queries where its mapping puts them; none for few points."""
    if np.ndim(base.X) != 2 or len(base) < MIN_BASE_POINTS:
        return []
    rows = _spread(len(base), N_BASE)
    asked = _spread(len(query), N_QUERIES)
    X, Q = (
        np.asarray(part.X[chosen], np.float64) for part, chosen in ((base, rows), (query, asked))
    )
    if cosine:
        X, Q = normalized(X), normalized(Q)
    perplexity = min(30.0, (len(X) - 1) / 3)
    learner = MACMap(mapping="rbf", perplexity=perplexity, alpha=2.0, random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd about the points, the methods have said
            places = learner.fit(X).transform(X)
        queries = learner.transform(Q)
    except ValueError as error:
        return [Section("Map", note=f"There is no map: {error}")]
    y, query_y = (
        None if part.y is None or np.ndim(part.y) != 1 else np.asarray(part.y)[chosen]
        for part, chosen in ((base, rows), (query, asked))
    )
    x, up = places.T.tolist()
    grey = Series("", GREY, x, up, keyed=False)
    landed = queries.clip(places.min(axis=0), places.max(axis=0))  # beyond the map: its edge
    plots = [
        map_plot(f"{len(X):,} points", places, y),
        map_plot(f"{len(Q):,} queries among them", landed, query_y, [grey], "circle"),
    ]
    note = (
        "MACMap, with radial basis functions: neighbours among these points are neighbours on the "
        "map. The queries were not learnt from, and stand where the mapping puts them."
    )
    return [Section("Map", [plots], note=note)]


def _spread(n: int, most: int) -> AnyArray:
    """Row numbers, `most` at most, spread over n."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
