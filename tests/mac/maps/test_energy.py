"""Energies of maps against plain definitions, their gradients, and the sum on a grid."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform
from sklearn.manifold._t_sne import _kl_divergence

from auxhash.compute import context
from auxhash.mac import affinity
from auxhash.mac.maps import LOSSES, Energy, attraction, energy, repulsion

N = 40


@pytest.fixture(scope="module")
def P():
    return attraction.of_neighbors(np.random.default_rng(0).standard_normal((N, 5)), 5.0)


def plain(P, Z, loss):
    """E(Z) pair by pair, by its definition."""
    d = ((Z[:, None] - Z) ** 2).sum(axis=2)
    others = ~np.eye(len(Z), dtype=bool)
    p, d = P.toarray()[others], d[others]
    if loss == "ee":
        return (p * d).sum() + energy.LAMBDA * np.exp(-d).mean()
    q = 1 / (1 + d) / (1 / (1 + d)).sum()
    divergence = (p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum()
    return divergence + energy.WEIGHT_OF_SIZE * (Z**2).sum(axis=1).mean()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("size", [1.0, 3.0])
def test_the_exact_form_is_the_definition(P, loss, width, size):
    Z = size * np.random.default_rng(1).standard_normal((N, width))
    assert Energy(P, loss)(Z)[0] == pytest.approx(plain(P, Z, loss), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("exact", "width"), [(True, 2), (True, 3), (False, 1), (False, 2)])
def test_the_gradient_is_that_of_finite_differences(P, loss, exact, width):
    """On the grid, too: it is the gradient of the very sum that the grid gives."""
    rng = np.random.default_rng(2)
    E, Z = Energy(P, loss, exact), 2 * rng.standard_normal((N, width))
    gradient = E(Z)[1]
    for _ in range(5):
        way = rng.standard_normal(Z.shape)
        step = 1e-5 * way
        slope = (E(Z + step)[0] - E(Z - step)[0]) / 2e-5
        assert slope == pytest.approx((gradient * way).sum(), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("exact", [True, False])
def test_t_sne_is_that_of_scikit_learn(P, exact):
    """Without the term that keeps groups in sight; scikit-learn sums in single precision."""
    Z = 2 * np.random.default_rng(8).standard_normal((N, 2))
    value, gradient = Energy(P, "tsne", exact)(Z)
    divergence, slope = _kl_divergence(Z.ravel(), squareform(P.toarray()), 1, N, 2)
    size = energy.WEIGHT_OF_SIZE / N
    assert value - size * (Z**2).sum() == pytest.approx(divergence, rel=1e-6 if exact else 1e-3)
    off = np.linalg.norm(gradient - 2 * size * Z - slope.reshape(N, 2))
    assert off < (1e-6 if exact else 1e-2) * np.linalg.norm(slope)


def scattered(size, width):
    """Points anywhere, in pairs or in clusters, so that a sum consists of few or many near ones."""
    rng = np.random.default_rng(3)
    for n_clusters in (300, 150, 10):
        centres = size * rng.uniform(-0.5, 0.5, (n_clusters, width)) + 7
        yield centres[np.arange(300) % n_clusters] + 0.3 * rng.standard_normal((300, width))


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("size", [1.0, 20.0, 150.0, 805.0, 1610.0])
@pytest.mark.parametrize(("finer", "off", "slope_off"), [(1, 1e-3, 2e-2), (2, 1e-4, 2e-3)])
def test_the_grid_is_near_the_exact_sum(heavy, width, size, finer, off, slope_off):
    for Z in scattered(size, width):
        exact, slope = repulsion.exact(Z, heavy)
        total, on_grid = repulsion.on_grid(Z, heavy, repulsion.SPACING / finer)
        assert total == pytest.approx(exact, rel=off, abs=1e-6)
        assert np.linalg.norm(on_grid - slope) < slope_off * np.linalg.norm(slope) + 1e-6


def test_a_map_too_wide_for_a_grid_is_summed_exactly(monkeypatch):
    monkeypatch.setattr(repulsion, "MAX_NODES", 1 << 10)
    for size, is_exact in ((5.0, False), (20.0, True)):
        Z = next(scattered(size, 2))
        assert (repulsion.on_grid(Z, True)[0] == repulsion.exact(Z, True)[0]) is is_exact


def test_one_point_far_away_ends_no_fit(P):
    Z = np.random.default_rng(4).standard_normal((N, 2))
    Z[0] = 1e9
    on_grid, exact = (Energy(P, "tsne", way)(Z) for way in (False, True))
    assert on_grid[0] == exact[0]
    assert np.isfinite(on_grid[1]).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [1.0, 5.0, 50.0])
def test_what_is_reported_is_exact_to_four_digits(P, loss, size):
    Z = size * np.random.default_rng(4).standard_normal((N, 2))
    exact = Energy(P, loss, exact=True)
    assert exact.value(Z) == exact(Z)[0]
    assert Energy(P, loss, exact=False).value(Z) == pytest.approx(exact.value(Z), rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("exact", [True, False])
def test_the_same_bytes_on_any_number_of_threads(P, loss, exact, monkeypatch):
    monkeypatch.setattr(energy, "ROWS_PER_TASK", 7)
    monkeypatch.setattr(repulsion, "ROWS_PER_TASK", 7)
    Z = np.random.default_rng(5).standard_normal((N, 2))
    results = []
    for n_jobs in (1, 3):
        with context.using(n_jobs=n_jobs):
            results.append(Energy(P, loss, exact)(Z))
    assert results[0][0] == results[1][0]
    assert (results[0][1] == results[1][1]).all()


def test_affinities_have_the_perplexity_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(attraction, "_symmetric", lambda P: P)
    X = np.random.default_rng(6).standard_normal((100, 4)) * 1e6
    p = attraction.of_neighbors(X, 10.0).data.reshape(100, 30)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.allclose(np.exp(-(p * np.log(p)).sum(axis=1)), 10)


def test_affinities_are_symmetric_and_sum_to_one(P):
    assert P.sum() == pytest.approx(1)
    assert abs(P - P.T).max() == 0
    assert P.diagonal().max() == 0


def test_equal_points_have_affinities():
    P = attraction.of_neighbors(np.zeros((10, 3)), 2.0)
    assert np.isfinite(P.data).all()
    assert P.sum() == pytest.approx(1)


def test_a_perplexity_beyond_the_points_is_capped():
    X = np.random.default_rng(7).standard_normal((10, 2))
    with pytest.warns(UserWarning, match="perplexity=30 is capped at 3 for 10 points"):
        P = attraction.of_neighbors(X, 30.0)
    assert abs(P - attraction.of_neighbors(X, 3.0)).max() == 0


def test_similar_pairs_attract_by_y_and_weight():
    pairs = affinity.from_pairs([0, 1, 2], [1, 2, 0], [1.0, -1.0, 0.5], 4, weight=[1.0, 9.0, 4.0])
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1 / 6
    expected[0, 2] = expected[2, 0] = 2 / 6
    assert np.allclose(attraction.of_pairs(pairs).toarray(), expected)


def test_dissimilar_pairs_alone_make_no_map():
    with pytest.raises(ValueError, match="no similar pairs"):
        attraction.of_pairs(affinity.from_pairs([0], [1], [-1.0], 2))
