"""GIST: the spatial envelope of a picture (Oliva and Torralba, 2001).

The log intensity of a picture, its local contrast evened out, is passed through a bank of
Gabor-like filters, one per scale and orientation. The mean magnitude of each filter's response
in each cell of a grid is the descriptor: scale by scale, orientation by orientation, the cells
row by row. For 32 x 32 grey pictures, 8 + 8 + 4 orientations on a 4 x 4 grid, that is 320 numbers.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.fft

from auxhash.compute import context, threads
from auxhash.compute.arrays import AnyArray, ArrayLike, Single

ORIENTATIONS = (8, 8, 4)  # from the finest scale to the coarsest
CELLS_PER_SIDE = 4
PIXELS_PER_CHUNK = 1 << 18  # worked on at once: what fits a core's cache

FINEST_CYCLES_PER_PIXEL = 0.3  # cycles per pixel at the centre of the finest filters
SCALE_STEP = 1.85  # factor on the wavelength from one scale to the next
RADIAL_DECAY = 3.5  # filters fall as exp(-RADIAL_DECAY (f / centre - 1)^2)
ANGULAR_WIDTH = 8.0  # and as exp(-2 pi (m angle / ANGULAR_WIDTH)^2) for m orientations
CONTRAST_CUTOFF_CYCLES = 4.0  # cycles per picture at which the local mean has fallen to half
CONTRAST_PAD_PIXELS = 5
CONTRAST_FLOOR = 0.2  # in units of log intensity: below it, a flat region is not amplified


def gist(
    images: ArrayLike,
    orientations: Sequence[int] = ORIENTATIONS,
    grid: int = CELLS_PER_SIDE,
    n_jobs: int | None = None,
) -> Single:
    """GIST descriptors (n, sum(orientations) grid^2) of square pictures, float32.

    Args:
        images: grey (n, side, side) or colour (n, side, side, channels), intensities 0..255. A
            colour picture's descriptor joins those of its channels.
        orientations: filters at each scale, from fine to coarse.
        grid: cells along a side.
        n_jobs: threads.
    """
    pictures = np.asarray(images)
    _check(pictures, orientations, grid)
    if pictures.ndim == 4:
        n, side, _, channels = pictures.shape
        planes = np.moveaxis(pictures, 3, 1).reshape(n * channels, side, side)
        return gist(planes, orientations, grid, n_jobs).reshape(n, -1)
    side = pictures.shape[1]
    pad = side // 2
    filters = gabor_bank(side + 2 * pad, orientations)
    cells = _cells(side, grid)
    features = np.empty((len(pictures), len(filters) * grid**2), np.float32)

    def describe(rows: slice) -> None:
        even = even_contrast(np.log1p(pictures[rows].astype(np.float32)))
        features[rows] = _mean_responses(even, pad, filters, cells)

    with context.using(n_jobs=n_jobs), threads.pool() as run:
        run(describe, threads.chunks(len(pictures), max(1, PIXELS_PER_CHUNK // side**2)))
    return features


def gabor_bank(side: int, orientations: Sequence[int]) -> Single:
    """Transfer functions (filters, side, side) over the frequencies of an FFT.

    Each is a bump in one half of the plane, so that the response is analytic: its magnitude
    is the local energy, whatever the phase. Filter j of m answers to waves that run at angle
    pi j / m to the x axis.
    """
    f = np.fft.fftfreq(side)
    radius, angle = np.hypot(f, f[:, None]), np.arctan2(f[:, None], f)
    bank = []
    for scale, m in enumerate(orientations):
        centre = FINEST_CYCLES_PER_PIXEL / SCALE_STEP**scale
        ring = np.exp(-RADIAL_DECAY * (radius / centre - 1) ** 2)
        for j in range(m):
            off = np.angle(np.exp(1j * (angle - np.pi * j / m)))  # in -pi..pi
            bank.append(ring * np.exp(-2 * np.pi * (m * off / ANGULAR_WIDTH) ** 2))
    transfer = np.array(bank, np.float32)
    transfer[:, 0, 0] = 0  # the mean has no direction
    return transfer


def even_contrast(log_intensity: Single) -> Single:
    """Pictures (n, side, side) minus their local mean, divided by their local deviation."""
    padded = _padded(log_intensity, CONTRAST_PAD_PIXELS)
    side = padded.shape[1]
    f = np.fft.fftfreq(side, 1 / side)  # cycles per picture
    f2 = (f**2)[: side // 2 + 1] + (f**2)[:, None]
    blur = (0.5 ** (f2 / CONTRAST_CUTOFF_CYCLES**2)).astype(np.float32)

    def local_mean(a: Single) -> Single:
        mean: Single = scipy.fft.irfft2(scipy.fft.rfft2(a) * blur, s=(side, side))
        return mean

    detail: Single = padded - local_mean(padded)
    deviation: Single = np.sqrt(np.abs(local_mean(detail**2)))
    inside = slice(CONTRAST_PAD_PIXELS, side - CONTRAST_PAD_PIXELS)
    return (detail / (np.float32(CONTRAST_FLOOR) + deviation))[:, inside, inside]


def _mean_responses(pictures: Single, pad: int, filters: Single, cells: Single) -> Single:
    """Mean magnitude of each filter's response in each cell: (n, filters x cells)."""
    spectrum = scipy.fft.fft2(_padded(pictures, pad))
    inside = slice(pad, spectrum.shape[1] - pad)
    responses = []
    for transfer in filters:
        # Invert one axis and cut off its padding, then invert the other.
        columns = scipy.fft.ifft(spectrum * transfer, axis=1)[:, inside]
        size = np.abs(scipy.fft.ifft(columns, axis=2)[:, :, inside])
        responses.append((cells @ size @ cells.T).reshape(len(pictures), -1))
    return np.hstack(responses)


def _padded(pictures: Single, pad: int) -> Single:
    return np.pad(pictures, ((0, 0), (pad, pad), (pad, pad)), "symmetric")


def _cells(side: int, grid: int) -> Single:
    """The matrix (grid, side) that averages each of `grid` nearly equal stretches."""
    edges = np.linspace(0, side, grid + 1).round().astype(int)
    cells = np.zeros((grid, side), np.float32)
    for cell, (start, stop) in enumerate(pairwise(edges)):
        cells[cell, start:stop] = 1 / (stop - start)
    return cells


def _check(pictures: AnyArray, orientations: Sequence[int], grid: int) -> None:
    if pictures.ndim not in (3, 4) or pictures.shape[1] != pictures.shape[2]:
        raise ValueError(
            "images must be of shape (n, side, side) or (n, side, side, channels), "
            f"got shape {pictures.shape}"
        )
    if not np.all(pictures >= 0):  # NaN included
        raise ValueError("images must hold intensities of 0 or more")
    side = pictures.shape[1]
    if side < (least := 2 * CONTRAST_PAD_PIXELS):
        raise ValueError(f"images must be at least {least} pixels wide, got {side}")
    if not len(orientations) or any(m < 1 for m in orientations):
        raise ValueError(f"orientations must be positive numbers, got {tuple(orientations)}")
    if not 1 <= grid <= side:
        raise ValueError(f"grid must be from 1 to {side}, the pictures' side; got {grid}")
