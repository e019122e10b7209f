import sys

import numpy as np
import pytest
from PIL import Image

from auxhash.datasets import images, rows
from auxhash.datasets.gist import gist


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, (kind, suffix) in enumerate([("b", "png"), ("a", "png"), ("a/deep", "bmp")]):
        pixels = rng.integers(0, 256, (32 + 4 * i, 40, 3), np.uint8)
        path = tmp_path / "pictures" / kind
        path.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path / f"{i}.{suffix}")
    (tmp_path / "pictures" / "a" / "notes.txt").write_text("no picture")
    (tmp_path / "pictures" / "no.png").mkdir()
    hidden = tmp_path / "pictures" / ".cache"
    hidden.mkdir()
    (hidden / "x.png").write_bytes(b"")
    return tmp_path / "pictures"


def test_pictures_by_class(folder):
    found = images.image_folder(folder)
    assert found.names == ["a/1.png", "a/deep/2.bmp", "b/0.png"]
    assert found.labels.tolist() == ["a", "a", "b"]
    assert images.image_folder(folder / "b").labels is None


def test_gist_of_the_centred_square(folder):
    path = folder / "square.png"
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32), np.uint8)
    Image.fromarray(pixels).save(path)
    found = images.gist_feature(32).of([path])
    np.testing.assert_array_equal(found, gist(pixels[None]))
    wide = np.zeros((32, 50), np.uint8)
    wide[:, 9:41] = pixels
    Image.fromarray(wide).save(path)
    np.testing.assert_array_equal(images.gist_feature(32).of([path]), found)


def test_the_side_follows_the_pictures(folder):
    found = images.image_folder(folder)
    assert images.feature_for(found).name == "gist:36"
    for path in found.paths:
        Image.fromarray(np.zeros((200, 300, 3), np.uint8)).save(path)
    assert images.feature_for(found).name == "gist:64"


def test_grey_transparent_and_turned_pictures(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(np.full((4, 6), 7, np.uint8)).save(path)
    np.testing.assert_array_equal(images.read_image(path), np.full((4, 6, 3), 7))
    Image.fromarray(np.full((4, 6, 4), 9, np.uint8)).save(path)
    assert images.read_image(path).shape == (4, 6, 3)
    picture = Image.fromarray(np.zeros((4, 6, 3), np.uint8))
    exif = picture.getexif()
    exif[0x0112] = 6  # turned by a quarter
    picture.save(tmp_path / "a.jpg", exif=exif)
    assert images.read_image(tmp_path / "a.jpg").shape == (6, 4, 3)


def test_rows_of_pictures(folder):
    found = images.image_folder(folder)
    feature = images.gist_feature(16)
    part = rows.of_images(found, feature)
    np.testing.assert_array_equal(part.all(), feature.of(found.paths))
    assert part.labels.tolist() == ["a", "a", "b"]


def test_a_feature_of_one_s_own_that_fails(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_feature.py").write_text(
        "def fails(pictures):\n    return {}['lost']\n"
        "def short(pictures):\n    return [[1.0]]\n"
        "def holes(pictures):\n    return [[float('nan')]] * len(pictures)\n"
    )
    paths = images.image_folder(folder).paths
    for name, message in [
        ("fails", "the feature broken_feature:fails failed: KeyError: 'lost'"),
        ("short", "for 3 pictures must be as many rows, got 1"),
        ("holes", "must not hold NaN or infinity; row 0 does"),
    ]:
        with pytest.raises(ValueError, match=message):
            images.own_feature(f"broken_feature:{name}").of(paths)
    with pytest.raises(ValueError, match=r"learnt from a:b, not from c:d"):
        images.remembered("a:b", "c:d")
    with pytest.raises(ValueError, match="learnt from GIST, not from c:d"):
        images.remembered("gist:32", "c:d")


def test_without_pillow(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'auxhash\[images\]'"):
        images.read_image(folder / "a" / "1.png")
