"""Pictures: from images that clients send to the vectors that a model takes."""

import base64
import binascii
import io
from collections.abc import Sequence

import numpy as np

from auxhash.compute import deadline
from auxhash.compute.arrays import Array
from auxhash.files.images import ImageFeature, image_size
from auxhash.serve.limits import Limits
from auxhash.serve.refused import wrong

BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")  # of PNG and JPEG files


class Upload(io.BytesIO):
    """An image that a client has sent; errors call it so."""

    def __str__(self) -> str:
        return "an image"


class Pictures:
    """Vectors of images by the feature that a model was learnt from."""

    def __init__(self, feature: ImageFeature) -> None:
        self._feature = feature

    def vectors(self, images: Sequence[str], limits: Limits) -> Array:
        """(n, D) of images in base64; refuses what is no image, or is too large to be decoded."""
        files = [_decoded(text) for text in images]
        for file in files:
            _check_size(file, limits.pixels)
        try:  # one after the other: only one of them is held decoded
            X = np.concatenate([self._feature.of([file]) for file in deadline.each(files)])
            return X.astype(np.float64)
        except ValueError as error:  # a picture that cannot be read
            raise wrong(str(error)) from error


def _decoded(text: str) -> Upload:
    try:
        return Upload(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise wrong(f"an image must be in base64: {error}") from error


def _check_size(file: Upload, most: int) -> None:
    """Its header says how large it is: nothing is decoded before that is known."""
    if not file.getvalue().startswith(BEGINNINGS):
        raise wrong("an image must be PNG or JPEG")
    try:
        width, height = image_size(file)
    except ValueError as error:
        raise wrong(str(error)) from error
    if width * height > most:
        raise wrong(f"an image must have at most {most:,} pixels, got {width:,} x {height:,}")
