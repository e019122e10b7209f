"""Pictures: images that clients send, as the vectors that a model takes."""

import base64
import binascii
import io
from collections.abc import Sequence

import numpy as np

from auxhash.compute import deadline
from auxhash.compute.arrays import Array
from auxhash.files.images import ImageFeature, image_size
from auxhash.serve.limits import Limits
from auxhash.serve.refused import invalid

SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")  # of PNG and JPEG files


class Upload(io.BytesIO):
    """An image that a client has sent; in messages it is "an image"."""

    def __str__(self) -> str:
        return "an image"


class Pictures:
    """Vectors of images by the feature that a model was learnt from."""

    def __init__(self, feature: ImageFeature) -> None:
        self._feature = feature

    def vectors(self, images: Sequence[str], limits: Limits) -> Array:
        """Return vectors (n, D) of images in base64; refuse what is no image, or is too large."""
        files = [_decoded(text) for text in images]
        for file in files:
            _check_size(file, limits.pixels)
        try:  # one after the other: only one decoded image is in memory
            X = np.concatenate([self._feature.of([file]) for file in deadline.each(files)])
            return X.astype(np.float64)
        except ValueError as error:  # a picture that cannot be read
            raise invalid(str(error)) from error


def _decoded(text: str) -> Upload:
    try:
        return Upload(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise invalid(f"an image must be in base64: {error}") from error


def _check_size(file: Upload, max_pixels: int) -> None:
    """Refuse what is no image, or too large by its header: nothing is decoded before."""
    if not file.getvalue().startswith(SIGNATURES):
        raise invalid("an image must be PNG or JPEG")
    try:
        width, height = image_size(file)
    except ValueError as error:
        raise invalid(str(error)) from error
    if width * height > max_pixels:
        raise invalid(
            f"an image must have at most {max_pixels:,} pixels, got {width:,} x {height:,}"
        )
