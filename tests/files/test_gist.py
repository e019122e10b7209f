import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from auxhash.files.gist import FINEST_CYCLES_PER_PIXEL, SCALE_STEP, even_contrast, gabor_bank, gist


def grating(side, frequency, angle, phase=0.0):
    """A wave of so many cycles a pixel that runs at `angle` to the x axis, around mid grey."""
    y, x = np.mgrid[:side, :side]
    wave = np.cos(2 * np.pi * frequency * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    return 127 + 60 * wave


def energy(image, orientations):
    """Mean response of each filter over the grid, a list a scale."""
    result = gist(image[None], orientations).reshape(sum(orientations), -1).mean(axis=1)
    return np.split(result, np.cumsum(orientations)[:-1])


@pytest.mark.parametrize("side", [32, 64])
@pytest.mark.parametrize("scale", [0, 1, 2])
def test_a_grating_answers_at_its_own_orientation_and_scale(side, scale):
    orientations = (8, 8, 8)
    for j in range(8):
        image = grating(side, FINEST_CYCLES_PER_PIXEL / SCALE_STEP**scale, np.pi * j / 8)
        result = energy(image, orientations)
        assert np.argmax(result[scale]) == j
        assert np.argmax([level.max() for level in result]) == scale


def test_an_angle_in_between_answers_in_both_neighbours():
    result = energy(grating(64, FINEST_CYCLES_PER_PIXEL, np.pi * 2.5 / 8), (8,))[0]
    assert set(np.argsort(result)[-2:]) == {2, 3}


def test_energy_does_not_depend_on_phase_or_brightness():
    one, other = (gist(grating(32, 0.3, 0.4, phase)[None]) for phase in (0.0, 1.3))
    assert np.linalg.norm(one - other) < 0.1 * np.linalg.norm(one)
    picture = np.random.default_rng(0).uniform(20, 120, (1, 32, 32))
    dark, bright = gist(picture), gist(2 * picture)
    assert np.linalg.norm(dark - bright) < 0.05 * np.linalg.norm(dark)


def test_a_small_shift_matters_little_and_another_picture_much():
    rng = np.random.default_rng(0)
    scenes = 127 + 200 * gaussian_filter(rng.normal(size=(2, 40, 40)), (0, 2, 2))
    here, there, other = (
        gist(picture[None])[0]
        for picture in (scenes[0, 4:36, 4:36], scenes[0, 5:37, 5:37], scenes[1, 4:36, 4:36])
    )
    assert np.linalg.norm(here - there) < 0.35 * np.linalg.norm(here - other)


def test_the_grid_tells_where():
    image = np.full((32, 32), 127.0)
    image[:8, 24:] = grating(32, FINEST_CYCLES_PER_PIXEL, 0)[:8, 24:]
    cells = gist(image[None]).reshape(20, 4, 4)[0]
    assert np.unravel_index(np.argmax(cells), (4, 4)) == (0, 3)


def test_a_flat_picture_has_no_energy():
    assert np.abs(gist(np.full((1, 32, 32), 200.0))).max() < 1e-4
    assert np.abs(even_contrast(np.full((1, 32, 32), 3, np.float32))).max() < 1e-4


def test_shapes_colours_and_threads():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (600, 32, 32), np.uint8)
    result = gist(pictures)
    assert result.shape == (600, 320)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, gist(pictures, n_jobs=1))
    np.testing.assert_allclose(result[:3], gist(pictures[:3]), rtol=1e-3, atol=1e-5)
    colour = rng.integers(0, 256, (5, 30, 30, 3), np.uint8)
    channels = [gist(colour[..., c], (6, 4), 3) for c in range(3)]
    assert channels[0].shape == (5, 90)
    np.testing.assert_allclose(gist(colour, (6, 4), 3), np.hstack(channels), rtol=1e-3, atol=1e-5)
    assert gist(np.zeros((0, 32, 32))).shape == (0, 320)
    assert gist(rng.uniform(0, 255, (1, 17, 17)), (5,), 4).shape == (1, 80)


def test_filters_see_one_half_plane_and_no_mean():
    bank = gabor_bank(64, (8, 8, 4))
    assert bank.shape == (20, 64, 64)
    assert (bank[:, 0, 0] == 0).all()
    assert bank[0, 0, 19] > 0.9  # 0.3 cycles a pixel along x
    assert bank[0, 0, -19] < 1e-6


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.zeros((2, 32, 16)), {}, "images must be of shape"),
        (np.zeros((32, 32)), {}, "images must be of shape"),
        (np.full((1, 32, 32), -1), {}, "intensities of 0 or more"),
        (np.full((1, 32, 32), np.nan), {}, "intensities of 0 or more"),
        (np.zeros((1, 8, 8)), {}, "at least 10 pixels wide"),
        (np.zeros((1, 32, 32)), {"orientations": ()}, "orientations must be positive"),
        (np.zeros((1, 32, 32)), {"orientations": (8, 0)}, "orientations must be positive"),
        (np.zeros((1, 32, 32)), {"grid": 33}, "grid must be from 1 to 32"),
    ],
)
def test_wrong_arguments_are_named(images, options, message):
    with pytest.raises(ValueError, match=message):
        gist(images, **options)
