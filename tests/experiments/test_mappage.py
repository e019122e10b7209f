"""The map on pages: whose points are drawn, and that queries stand where the mapping puts them."""

import numpy as np
import pytest

from auxhash.experiments import datasets, mappage
from auxhash.experiments.datasets.dataset import Points
from auxhash.experiments.mappage import map_section

N = 40


@pytest.fixture(scope="module")
def data():
    return datasets.load("digits", n_train=60, n_query=30)


@pytest.fixture
def fitted(monkeypatch):
    """The maps that are fitted from here on."""
    result, fit = [], mappage.MACMap.fit
    monkeypatch.setattr(
        mappage.MACMap, "fit", lambda self, X: result.append((fit(self, X), X)) or result[-1][0]
    )
    return result


def drawn(plot):
    """The places of all points of a plot but the grey ones, in any order."""
    return np.array(sorted(p for s in plot.series if s.label for p in zip(s.x, s.y, strict=True)))


@pytest.mark.parametrize("cosine", [False, True])
def test_queries_are_drawn_where_the_mapping_puts_them(data, fitted, cosine, monkeypatch):
    monkeypatch.setattr(mappage, "N_BASE", N)
    [section] = map_section(data.base, data.query, cosine)
    [[base_plot, query_plot]] = section.rows
    [(learner, X)] = fitted
    assert len(X) == N
    Q = np.asarray(data.query.X, np.float64)
    if cosine:
        Q /= np.linalg.norm(Q, axis=1)[:, None]
        assert np.allclose(np.linalg.norm(X, axis=1), 1)
    places = learner.transform(X)
    landed = learner.transform(Q).clip(places.min(axis=0), places.max(axis=0))  # beyond: its edge
    assert np.ptp(landed, axis=0).min() > 0
    assert np.allclose(drawn(base_plot), sorted(places.tolist()))
    assert np.allclose(drawn(query_plot), sorted(landed.tolist()))


def test_few_points_make_no_map(data):
    assert map_section(Points(data.base.X[:9]), data.query) == []
