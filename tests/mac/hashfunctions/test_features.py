import numpy as np

from auxhash.mac.hashfunctions import RadialBasis, Scaled


def test_one_global_range():
    X = np.array([[2.0, 4.0], [6.0, 10.0]])
    scaled = Scaled().fit(X, np.random.default_rng(0))
    np.testing.assert_allclose(scaled(X), [[0, 0.25], [0.5, 1]])
    np.testing.assert_allclose(scaled(np.array([[12.0, 2.0]])), [[1.25, 0]])


def test_constant_data_stay_finite():
    X = np.full((5, 3), 7.0)
    for kind in (Scaled(), RadialBasis(4)):
        assert np.isfinite(kind.fit(X, np.random.default_rng(0))(X)).all()


def test_radial_basis_by_the_formula():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(350, 4)) * 10
    basis = RadialBasis(20).fit(X, rng)
    S = (X - X.min()) / (X.max() - X.min())
    D = np.sqrt(((S[:, None] - S) ** 2).sum(2))
    first = D[:300, :300]
    sigma = first[~np.eye(300, dtype=bool)].mean()
    np.testing.assert_allclose(basis.sigma, sigma)
    centres = [int(np.argmin(np.abs(S - c).sum(1))) for c in basis.centers]
    assert len(set(centres)) == 20  # drawn from the training points, without repeats
    np.testing.assert_allclose(basis(X), np.exp(-(D[:, centres] ** 2) / (2 * sigma**2)), atol=1e-12)


def test_no_more_centres_than_points():
    X = np.random.default_rng(0).normal(size=(6, 2))
    assert RadialBasis(500).fit(X, np.random.default_rng(0))(X).shape == (6, 6)
