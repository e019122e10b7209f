"""Random hyperplanes."""

import numpy as np
import pytest

from auxhash.learn import baselines

faiss = pytest.importorskip("faiss")


@pytest.mark.parametrize("angle", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_two_points_share_a_bit_with_probability_1_minus_angle_over_pi(angle):
    X = np.zeros((2, 5))
    X[0, 0], X[1, 0], X[1, 1] = 2.0, np.cos(angle), np.sin(angle)
    codes = baselines.LSH(30_000, center=False, random_state=0).fit(X).transform(X)
    shared = (codes[0] == codes[1]).mean()
    expected = 1 - angle / np.pi
    assert abs(shared - expected) < 4 * np.sqrt(expected * (1 - expected) / 30_000)


def test_angles_are_measured_about_the_mean():
    X = np.random.default_rng(0).standard_normal((50, 4))
    near, far = (baselines.LSH(16, random_state=0).fit(X + at).encode(X + at) for at in (0.0, 9.0))
    np.testing.assert_array_equal(near, far)


def test_the_codes_are_those_of_faiss_for_its_hyperplanes():
    X = np.random.default_rng(0).standard_normal((100, 12)).astype(np.float32)
    index = faiss.IndexLSH(12, 20, True, False)
    rotation = faiss.vector_to_array(index.rrot.A).reshape(20, 12)
    hasher = baselines.LSH(20, center=False, random_state=0).fit(X)
    hasher.hyperplanes_ = rotation.T.astype(np.float64)
    np.testing.assert_array_equal(hasher.encode(X), index.sa_encode(X))
